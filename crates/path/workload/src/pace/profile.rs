//! What of a trace was outstanding when a request came.

use fullstroke_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The requests of a trace that were issued there and not yet complete, at one of its arrivals.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile(BinaryHeap<Reverse<(Time, u64)>>);

impl Profile {
    /// Request `number` was issued in the trace, and complete at `completed`.
    pub(super) fn issued(&mut self, completed: Time, number: u64) {
        self.0.push(Reverse((completed, number)));
    }

    /// Goes on to `arrival`: tells the numbers of those that were complete by then, and returns
    /// how many were not: "the number of previous requests that are still outstanding"
    /// (*Pro-active storage systems*, 2012, section 6.5).
    pub(super) fn advance(&mut self, arrival: Time, mut complete: impl FnMut(u64)) -> u64 {
        while let Some(&Reverse((completed, number))) = self.0.peek()
            && completed <= arrival
        {
            self.0.pop();
            complete(number);
        }
        self.0.len() as u64
    }
}
