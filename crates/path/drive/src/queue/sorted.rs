//! A store of requests sorted by position. Most disciplines choose from this store.

use super::Waiting;
use fullstroke_contract::Slots;

/// Requests in ascending order of a key, then of arrival. Queues inside drives hold at most some
/// hundreds of requests. For so few, moving the tail of a vector is cheaper than a tree. The large
/// records do not move.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted {
    order: Vec<(u64, u32)>,
    records: Slots<Waiting>,
    /// Key of each waiting request by slot of the drive. The key finds a request that leaves out of
    /// turn without a search.
    keys: Vec<Option<u64>>,
}

/// Distance and index of a request.
pub(super) type Neighbour = (u64, usize);

impl Sorted {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn insert(&mut self, key: u64, waiting: Waiting) {
        let (record, slot) = (self.records.keep(waiting), waiting.slot as usize);
        if self.keys.len() <= slot {
            self.keys.resize(slot + 1, None);
        }
        let other = self.keys[slot].replace(key);
        assert!(other.is_none(), "the request of slot {slot} waits twice");
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

    pub(super) fn get(&self, index: usize) -> &Waiting {
        &self.records[self.order[index].1]
    }

    /// Returns the nearest request on either side of `here`, the outer one first. Both may lie at
    /// `here`.
    pub(super) fn neighbours(&self, here: u64) -> (Option<Neighbour>, Option<Neighbour>) {
        let outer = self.at_or_after(here.saturating_add(1)).checked_sub(1);
        let inner = self.at_or_after(here);
        let distance = |index: usize| self.key(index).map(|key| (key.abs_diff(here), index));
        (outer.and_then(distance), distance(inner))
    }

    /// Removes the earliest arrival among the requests with the key of `index`.
    pub(super) fn remove_first_of_key(&mut self, index: usize) -> Waiting {
        self.remove(self.at_or_after(self.order[index].0))
    }

    /// Removes the request in `slot`. `None` if no such request waits.
    pub(super) fn remove_slot(&mut self, slot: u32) -> Option<Waiting> {
        let key = self.keys.get(slot as usize).copied().flatten()?;
        let alike = self.order[self.at_or_after(key)..].iter();
        let index = alike
            .take_while(|&&(other, _)| other == key)
            .position(|&(_, record)| self.records[record].slot == slot)?;
        Some(self.remove(self.at_or_after(key) + index))
    }

    pub(super) fn remove(&mut self, index: usize) -> Waiting {
        let (_, record) = self.order.remove(index);
        let waiting = self.records.take(record);
        let key = self.keys[waiting.slot as usize].take();
        assert!(
            key.is_some() && self.order.len() == self.records.len(),
            "the request of slot {} left the queue before",
            waiting.slot
        );
        waiting
    }
}
