//! The waiting requests of one kind, synchronous or asynchronous, by address and by expiry.

use super::super::fifos::{Fifos, RequestFifo};
use super::super::forest::{Forest, SlotTree};
use crate::block::Queued;
use fullstroke_units::{Duration, Time};

/// The requests of one kind. The caller passes the forest and the links. Both kinds share them.
#[derive(Debug)]
pub(super) struct WaitingRequests {
    pub(super) sorted: SlotTree,
    pub(super) arrived: RequestFifo,
    /// End of the last dispatched request of this kind.
    pub(super) here: u64,
    /// Time of the last search for expired requests.
    pub(super) looked_at: Time,
    expire: Duration,
    /// Deadline by slot.
    deadlines: Vec<Time>,
}

impl WaitingRequests {
    pub(super) fn new(expire: Duration) -> WaitingRequests {
        WaitingRequests {
            sorted: SlotTree::default(),
            arrived: RequestFifo::default(),
            here: 0,
            looked_at: Time::ZERO,
            expire,
            deadlines: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    pub(super) fn add(
        &mut self,
        now: Time,
        slot: u32,
        request: &Queued,
        forest: &mut Forest,
        links: &mut Fifos,
    ) {
        forest.insert(&mut self.sorted, request.extent.start.0, slot);
        links.push_back(&mut self.arrived, slot);
        if self.deadlines.len() <= slot as usize {
            self.deadlines.resize(slot as usize + 1, Time::NEVER);
        }
        self.deadlines[slot as usize] = now + self.expire;
    }

    /// Sorts a request whose start has moved.
    pub(super) fn moved(&mut self, slot: u32, request: &Queued, forest: &mut Forest) {
        forest.remove(&mut self.sorted, slot);
        forest.insert(&mut self.sorted, request.extent.start.0, slot);
    }

    pub(super) fn remove(&mut self, slot: u32, forest: &mut Forest, links: &mut Fifos) {
        forest.remove(&mut self.sorted, slot);
        links.remove(&mut self.arrived, slot);
        debug_assert_eq!(
            self.sorted.len(),
            self.arrived.len(),
            "a request waits in both orders, or in neither"
        );
    }

    /// Removes `gone` after its merge into `kept`. `kept` takes the earlier deadline of the two,
    /// and its place in the order.
    pub(super) fn inherit(&mut self, kept: u32, gone: u32, forest: &mut Forest, links: &mut Fifos) {
        debug_assert!(
            kept != gone && self.sorted.len() >= 2,
            "slot {gone} becomes part of {kept}, and fewer than two wait"
        );
        let deadline = self.deadlines[gone as usize];
        // The merged request keeps the earlier deadline, and the place in the order of arrival that
        // belongs to it.
        if deadline < self.deadlines[kept as usize] {
            self.deadlines[kept as usize] = deadline;
            forest.remove(&mut self.sorted, gone);
            links.remove(&mut self.arrived, kept);
            links.replace(&mut self.arrived, gone, kept);
        } else {
            self.remove(gone, forest, links);
        }
    }

    /// Returns the oldest request if it has expired. The search happens once in each expiry time.
    /// Otherwise many expired requests would turn the order into first come, first served
    /// (`as_fifo_expired` of `block/as-iosched.c`).
    pub(super) fn expired(&mut self, now: Time) -> Option<u32> {
        if now.since(self.looked_at) < self.expire {
            return None;
        }
        self.looked_at = now;
        self.arrived
            .front()
            .filter(|&slot| self.deadlines[slot as usize] < now)
    }
}
