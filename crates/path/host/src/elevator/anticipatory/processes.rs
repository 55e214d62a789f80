//! What is known of each process.

use super::super::habits::{Habits, RecentMean};
use crate::Clock;
use fullstroke_contract::Extent;
use fullstroke_units::{Duration, Time};
use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

/// Longer thoughts count as this: `MAX_THINKTIME` of `block/as-iosched.c`, Linux
/// 2.6.24, from which it takes a tick. One pause for a user's next key would be felt in the mean for long.
const THINK_MAX: Duration = Duration::from_millis(20);

/// One, as a probability.
const ONE: u32 = 256;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Process {
    pub(super) habits: Habits,
    /// Its requests that wait.
    pub(super) waiting: u32,
    /// Whether it has sent a synchronous request.
    has_asked: bool,
    /// Whether one of them has completed.
    was_served: bool,
}

/// All of them, and what is to be expected of a new one.
#[derive(Debug)]
pub(super) struct Processes {
    clock: Clock,
    by_id: BTreeMap<u32, u32>,
    all: Vec<Process>,
    /// How long processes think after their first request, as `clock` counts.
    new_think: RecentMean,
    /// How far they go after it, in sectors.
    new_seek: RecentMean,
    /// The probability that a first request is the last one. (The kernel sees
    /// processes exit, and keeps a second probability: that nobody goes on where
    /// such a one has left off. Here that counts as certain.)
    exit_probability: u32,
}

impl Index<u32> for Processes {
    type Output = Process;
    fn index(&self, process: u32) -> &Process {
        &self.all[process as usize]
    }
}

impl IndexMut<u32> for Processes {
    fn index_mut(&mut self, process: u32) -> &mut Process {
        &mut self.all[process as usize]
    }
}

impl Processes {
    pub(super) fn new(clock: Clock) -> Processes {
        Processes {
            clock,
            by_id: BTreeMap::new(),
            all: Vec::new(),
            new_think: RecentMean::default(),
            new_seek: RecentMean::default(),
            exit_probability: 0,
        }
    }

    /// The index of the process called `id`.
    pub(super) fn find(&mut self, id: u32) -> u32 {
        *self.by_id.entry(id).or_insert_with(|| {
            self.all.push(Process::default());
            self.all.len() as u32 - 1
        })
    }

    /// `process`, or one that works together with it, asks for something:
    /// `as_update_iohist`.
    pub(super) fn asks(&mut self, now: Time, process: u32, extent: Extent) {
        let clock = self.clock;
        let Process {
            habits,
            waiting,
            has_asked,
            was_served,
        } = &mut self.all[process as usize];
        if *has_asked {
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
                self.exit_probability = 7 * self.exit_probability / 8;
            }
            if habits.seeking().is_empty() {
                self.new_seek.add(distance);
            }
            habits.thought(think, clock);
            habits.sought(distance);
        }
        habits.moved(extent);
        *has_asked = true;
    }

    /// A synchronous request of `process` has completed.
    pub(super) fn served(&mut self, now: Time, process: u32) {
        let process = &mut self[process];
        process.habits.completed = now;
        process.was_served = true;
    }

    /// A pause for `process` has ended without a request that was worth it:
    /// `as_antic_timeout`.
    pub(super) fn waited_in_vain(&mut self, process: Option<u32>) {
        if process.is_some_and(|process| self[process].habits.thinking().is_empty()) {
            self.exit_probability = (7 * self.exit_probability + ONE) / 8;
        }
    }

    /// Whether `process` is likely to ask for more within `pause`.
    pub(super) fn returns_within(&self, process: u32, pause: Duration) -> bool {
        let habits = &self[process].habits;
        if habits.thinking().is_empty() {
            self.new_think.mean() <= self.clock.count(pause) && self.exit_probability <= ONE / 2
        } else {
            habits.think(self.clock) <= pause
        }
    }

    /// How far from the last one the next request of `process` is expected, in
    /// sectors.
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
        let mut processes = Processes::new(Clock::EXACT);
        let (pause, extent) = (Duration::from_millis(7), Extent::new(0, 8));
        let come = |processes: &mut Processes, id: u32, returns_ms: Option<u64>| {
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
        // They return, but late.
        (20..40).for_each(|id| come(&mut processes, id, Some(15)));
        assert!(!processes.returns_within(new, pause));
        // Of who has returned already, its own habits count.
        let known = processes.find(10);
        assert!(processes.returns_within(known, pause));
    }
}
