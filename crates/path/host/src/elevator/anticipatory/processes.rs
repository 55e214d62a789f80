//! The habits of each process.

use super::super::habits::{Habits, RecentMean};
use crate::TickClock;
use fullstroke_contract::Extent;
use fullstroke_units::{Duration, Time};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// Limit of a think time: `MAX_THINKTIME` of `block/as-iosched.c`, Linux 2.6.24, where the limit is
/// one tick less. Without the limit, one pause for a user's next key would distort the mean for a
/// long time.
const THINK_MAX: Duration = Duration::from_millis(20);

/// The value 1 of a probability.
const ONE: u32 = 256;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessHabits {
    pub(super) habits: Habits,
    /// Number of waiting requests.
    pub(super) waiting: u32,
    /// True if the process has sent a synchronous request.
    has_asked: bool,
    /// True if a synchronous request of the process has completed.
    was_served: bool,
}

/// All processes, and the expectations for a new process.
#[derive(Debug)]
pub(super) struct HabitTable {
    clock: TickClock,
    by_id: BTreeMap<u32, u32>,
    all: Vec<ProcessHabits>,
    /// Mean think time after the first request of a process, as `clock` counts.
    new_think: RecentMean,
    /// Mean distance from the first request to the second, in sectors.
    new_seek: RecentMean,
    /// Probability that the first request of a process is its last. (The kernel sees processes
    /// exit, and keeps a second probability for the case of no successor at the same place. Here
    /// this probability is 1.)
    exit_probability: u32,
}

impl Index<u32> for HabitTable {
    type Output = ProcessHabits;
    fn index(&self, process: u32) -> &ProcessHabits {
        &self.all[process as usize]
    }
}

impl IndexMut<u32> for HabitTable {
    fn index_mut(&mut self, process: u32) -> &mut ProcessHabits {
        &mut self.all[process as usize]
    }
}

impl HabitTable {
    pub(super) fn new(clock: TickClock) -> HabitTable {
        HabitTable {
            clock,
            by_id: BTreeMap::new(),
            all: Vec::new(),
            new_think: RecentMean::default(),
            new_seek: RecentMean::default(),
            exit_probability: 0,
        }
    }

    /// Returns the index of the process called `id`.
    pub(super) fn find(&mut self, id: u32) -> u32 {
        *self.by_id.entry(id).or_insert_with(|| {
            self.all.push(ProcessHabits::default());
            self.all.len() as u32 - 1
        })
    }

    /// Records a synchronous request of `process`, or of a cooperating process: `as_update_iohist`.
    pub(super) fn asks(&mut self, now: Time, process: u32, extent: Extent) {
        let clock = self.clock;
        let ProcessHabits {
            habits,
            waiting,
            has_asked,
            was_served,
        } = &mut self.all[process as usize];
        if *has_asked {
            // Pauses beside own requests are no thinking.
            let idle = *was_served && *waiting == 0;
            let most = clock.short_of(THINK_MAX);
            let think = if idle {
                now.since(habits.completed).min(most)
            } else {
                Duration::ZERO
            };
            let distance = habits.distance(extent);
            if habits.thinking().is_empty() {
                self.new_think.add(clock.count(think));
                // A process that returns counts against the chance that processes end after one
                // request.
                self.exit_probability = 7 * self.exit_probability / 8;
            }
            if habits.seeking().is_empty() {
                self.new_seek.add(distance);
            }
            habits.note_think_time(think, clock);
            habits.note_seek(distance);
        }
        habits.moved(extent);
        *has_asked = true;
    }

    /// Records the completion of a synchronous request of `process`.
    pub(super) fn served(&mut self, now: Time, process: u32) {
        let process = &mut self[process];
        process.habits.completed = now;
        process.was_served = true;
    }

    /// Records a pause in vain for `process`: `as_antic_timeout`.
    pub(super) fn waited_in_vain(&mut self, process: Option<u32>) {
        if process.is_some_and(|process| self[process].habits.thinking().is_empty()) {
            self.exit_probability = (7 * self.exit_probability + ONE) / 8;
        }
    }

    /// True if `process` will probably send a request within `pause`.
    pub(super) fn returns_within(&self, process: u32, pause: Duration) -> bool {
        let habits = &self[process].habits;
        if habits.thinking().is_empty() {
            self.new_think.mean() <= self.clock.count(pause) && self.exit_probability <= ONE / 2
        } else {
            habits.think(self.clock) <= pause
        }
    }

    /// Returns the expected distance from the last request of `process` to the next, in sectors.
    pub(super) fn expected_distance(&self, process: u32) -> u64 {
        let habits = &self[process].habits;
        if habits.seeking().is_empty() {
            self.new_seek.mean()
        } else {
            habits.seek()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_process_is_expected_back_as_others_were_before_it() {
        let mut processes = HabitTable::new(TickClock::EXACT);
        let (pause, extent) = (Duration::from_millis(7), Extent::new(0, 8));
        let come = |processes: &mut HabitTable, id: u32, returns_ms: Option<u64>| {
            let process = processes.find(id);
            processes.asks(Time::ZERO, process, extent);
            processes.served(Time::ZERO, process);
            match returns_ms {
                Some(ms) => processes.asks(Time::ZERO + Duration::from_millis(ms), process, extent),
                None => processes.waited_in_vain(Some(process)),
            }
        };
        (1..=6).for_each(|id| come(&mut processes, id, None));
        let new = processes.find(99);
        assert!(!processes.returns_within(new, pause));
        (10..12).for_each(|id| come(&mut processes, id, Some(1)));
        assert!(processes.returns_within(new, pause));
        // New processes send a second request, but late.
        (20..40).for_each(|id| come(&mut processes, id, Some(15)));
        assert!(!processes.returns_within(new, pause));
        // For a process with two requests, its own habits count.
        let known = processes.find(10);
        assert!(processes.returns_within(known, pause));
    }
}
