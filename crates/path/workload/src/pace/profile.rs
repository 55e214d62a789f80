//! Requests that were outstanding in the trace at an arrival.

use fullstroke_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Requests that the trace had issued and not completed at one of its arrivals.
#[derive(Clone, Debug, Default)]
pub(super) struct OutstandingProfile(BinaryHeap<Reverse<(Time, u64)>>);

impl OutstandingProfile {
    /// Adds request `number` of the trace, which completes at `completed`.
    pub(super) fn issued(&mut self, completed: Time, number: u64) {
        self.0.push(Reverse((completed, number)));
    }

    /// Advances to `arrival`: reports the requests completed by then, and returns the number of the
    /// others: "the number of previous requests that are still outstanding" (*Pro-active storage
    /// systems*, 2012, section 6.5).
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
