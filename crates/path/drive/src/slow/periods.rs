//! The times in which a drive is slow.

use super::config::Slowness;
use fullstroke_units::{Duration, Random, Time};

/// State of a drive between two changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeriodState {
    /// The drive is not slow.
    Healthy,
    /// The drive does nothing.
    Stalled,
    /// The drive is slow.
    Slow,
}

/// The sequence of slow periods.
#[derive(Clone, Debug)]
pub(super) struct Periods {
    pub(super) state: PeriodState,
    /// Time of the next change.
    pub(super) next: Time,
    /// End of the present period.
    end: Time,
    stall: Duration,
    lasts: Option<Duration>,
    every: Option<Duration>,
    random: Random,
    /// Start of the present period, and the length of all earlier ones.
    began: Time,
    before: Duration,
    /// Number of stalls so far.
    pub(super) stalls: u64,
}

impl Periods {
    pub(super) fn new(slowness: &Slowness) -> Periods {
        Periods {
            state: PeriodState::Healthy,
            next: Time::ZERO.saturating_add(slowness.from),
            end: Time::NEVER,
            stall: slowness.stall,
            lasts: slowness.lasts,
            every: slowness.every,
            random: slowness.seed.stream("slow periods"),
            began: Time::ZERO,
            before: Duration::ZERO,
            stalls: 0,
        }
    }

    /// Makes the change that is due at `next`.
    pub(super) fn change(&mut self) {
        let now = self.next;
        match self.state {
            PeriodState::Healthy => {
                self.began = now;
                self.end = self
                    .lasts
                    .map_or(Time::NEVER, |lasts| now.saturating_add(lasts));
                if self.stall > Duration::ZERO {
                    self.stalls += 1;
                    self.state = PeriodState::Stalled;
                    self.next = now.saturating_add(self.stall);
                } else {
                    self.state = PeriodState::Slow;
                    self.next = self.end;
                }
            }
            PeriodState::Stalled if now < self.end => {
                self.state = PeriodState::Slow;
                self.next = self.end;
            }
            PeriodState::Stalled | PeriodState::Slow => {
                self.before = self.before.saturating_add(now.since(self.began));
                self.state = PeriodState::Healthy;
                self.next = match self.every {
                    None => Time::NEVER,
                    // A gap of 0 would make one period of two.
                    Some(mean) => {
                        let gap = self.random.exponential(mean).max(Duration::from_nanos(1));
                        now.saturating_add(gap)
                    }
                };
            }
        }
    }

    /// Returns the time spent in slow periods until `now`.
    pub(super) fn spent(&self, now: Time) -> Duration {
        match self.state {
            PeriodState::Healthy => self.before,
            _ => (self.before).saturating_add(now.saturating_since(self.began)),
        }
    }
}
