//! The threads of the server, the calls that wait for them, and their next steps.

use crate::cost::RequestCost;
use crate::fairness::Fairness;
use fullstroke_units::{Sectors, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A pool of threads above one processor.
pub(super) struct ThreadPool {
    fairness: Box<dyn Fairness>,
    cost: Box<dyn RequestCost>,
    /// Number of threads with a call, and number of threads.
    busy: u32,
    threads: u32,
    /// Time from which the processor is free.
    processor_free: Time,
}

impl ThreadPool {
    pub(super) fn new(
        fairness: Box<dyn Fairness>,
        cost: Box<dyn RequestCost>,
        threads: u32,
    ) -> ThreadPool {
        ThreadPool {
            fairness,
            cost,
            busy: 0,
            threads,
            processor_free: Time::ZERO,
        }
    }

    /// Adds a call of a client.
    pub(super) fn wait(&mut self, client: usize, call: u32, sectors: Sectors) {
        self.fairness.add(client, call, sectors);
    }

    /// Gives the next call to a free thread. Returns the call and the time at which the processor
    /// has worked on the call.
    pub(super) fn start(&mut self, now: Time) -> Option<(u32, Time)> {
        if self.busy >= self.threads {
            return None;
        }
        let call = self.fairness.next()?;
        self.busy += 1;
        // All threads share the processor. They overlap only while the file system works.
        let start = now.max(self.processor_free);
        self.processor_free = start + self.cost.take(start);
        Some((call, self.processor_free))
    }

    /// Frees the thread of a call.
    pub(super) fn end(&mut self) {
        assert!(self.busy > 0, "a call ends that no thread has");
        self.busy -= 1;
    }
}

/// Next steps of calls by time, and in the order of their planning.
#[derive(Debug, Default)]
pub(super) struct PlannedSteps {
    steps: BinaryHeap<Reverse<(Time, u64, u32)>>,
    planned: u64,
}

impl PlannedSteps {
    pub(super) fn plan(&mut self, at: Time, call: u32) {
        self.planned += 1;
        // The number keeps steps of one instant in the order of their planning, so that a run
        // repeats.
        self.steps.push(Reverse((at, self.planned, call)));
    }

    /// Returns the time of the next step; NEVER if there is none.
    pub(super) fn next_at(&self) -> Time {
        self.steps.peek().map_or(Time::NEVER, |step| step.0.0)
    }

    /// Removes the next step, if it is due by `now`.
    pub(super) fn take_due(&mut self, now: Time) -> Option<(Time, u32)> {
        if self.next_at() > now {
            return None;
        }
        self.steps.pop().map(|Reverse((at, _, call))| (at, call))
    }
}
