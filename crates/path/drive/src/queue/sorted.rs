//! A store of requests sorted by position. Most disciplines choose from this store.

use super::WaitingRequest;
use fullstroke_contract::Slots;

/// Requests in ascending order of a key, then of arrival. Queues inside drives hold at most some
/// hundreds of requests. For so few, moving the tail of a vector is cheaper than a tree. The large
/// records do not move.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted {
    order: Vec<(u64, u32)>,
    records: Slots<WaitingRequest>,
    /// Key and record of each of the drive's slots that waits here, because a request that
    /// leaves out of turn must be found without a search of all.
    slots: Vec<Option<(u64, u32)>>,
}

/// Distance and index of a request.
pub(super) type Neighbour = (u64, usize);

impl Sorted {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn insert(&mut self, key: u64, waiting: WaitingRequest) {
        let (record, slot) = (self.records.keep(waiting), waiting.slot as usize);
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, None);
        }
        let other = self.slots[slot].replace((key, record));
        assert!(other.is_none(), "the request of slot {slot} waits twice");
        // Behind requests with an equal key: equal requests go in the order of arrival.
        let at = self.order.partition_point(|&(other, _)| other <= key);
        self.order.insert(at, (key, record));
    }

    /// Returns the index of the first request at `key` or behind.
    pub(super) fn at_or_after(&self, key: u64) -> usize {
        self.order.partition_point(|&(other, _)| other < key)
    }

    pub(super) fn key(&self, index: usize) -> Option<u64> {
        self.order.get(index).map(|&(key, _)| key)
    }

    pub(super) fn get(&self, index: usize) -> &WaitingRequest {
        &self.records[self.order[index].1]
    }

    /// Returns the nearest request on either side of `here`, the outer one first. Both may lie at
    /// `here`.
    pub(super) fn neighbours(&self, here: u64) -> (Option<Neighbour>, Option<Neighbour>) {
        // Requests at the arm's own place are neighbours on both sides.
        let outer = self.at_or_after(here.saturating_add(1)).checked_sub(1);
        let inner = self.at_or_after(here);
        let distance = |index: usize| self.key(index).map(|key| (key.abs_diff(here), index));
        (outer.and_then(distance), distance(inner))
    }

    /// Removes the earliest arrival among the requests with the key of `index`.
    pub(super) fn remove_first_of_key(&mut self, index: usize) -> WaitingRequest {
        self.remove(self.at_or_after(self.order[index].0))
    }

    /// Removes the request in `slot`. `None` if no such request waits.
    pub(super) fn remove_slot(&mut self, slot: u32) -> Option<WaitingRequest> {
        self.index_of(slot).map(|index| self.remove(index))
    }

    /// Returns the index of the request in `slot`, if the request waits here.
    pub(super) fn index_of(&self, slot: u32) -> Option<usize> {
        let (key, record) = self.slots.get(slot as usize).copied().flatten()?;
        let first = self.at_or_after(key);
        let among = self.order[first..]
            .iter()
            .position(|&(_, other)| other == record)?;
        Some(first + among)
    }

    /// Returns the request in `slot`, if the request waits here.
    pub(super) fn of_slot(&self, slot: u32) -> Option<&WaitingRequest> {
        let (_, record) = self.slots.get(slot as usize).copied().flatten()?;
        Some(&self.records[record])
    }

    pub(super) fn remove(&mut self, index: usize) -> WaitingRequest {
        let (_, record) = self.order.remove(index);
        let waiting = self.records.take(record);
        let key = self.slots[waiting.slot as usize].take();
        assert!(
            key.is_some() && self.order.len() == self.records.len(),
            "the request of slot {} left the queue before",
            waiting.slot
        );
        waiting
    }
}
