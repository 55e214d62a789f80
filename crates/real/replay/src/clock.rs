//! The clock of a replay: one absolute schedule, so errors do not add up.

use fullstroke_units::{Duration, Time};
use std::time::Instant;

/// Time since the beginning of a replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayClock(Instant);

impl ReplayClock {
    /// Returns a clock whose time 0 is `ahead` from now.
    pub(crate) fn beginning_in(ahead: std::time::Duration) -> ReplayClock {
        ReplayClock(Instant::now() + ahead)
    }

    /// Returns the present time; 0 before the beginning.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// Returns the time of an instant.
    #[inline]
    pub(crate) fn at(&self, instant: Instant) -> Time {
        // An instant before the beginning counts as time 0.
        Time::from_nanos(instant.saturating_duration_since(self.0).as_nanos() as u64)
    }

    /// Returns the time left until `at`.
    pub(crate) fn until(&self, at: Time) -> std::time::Duration {
        (self.0 + std::time::Duration::from_nanos(at.as_nanos()))
            .saturating_duration_since(Instant::now())
    }

    /// Returns the time left until the beginning.
    pub(crate) fn until_beginning(&self) -> std::time::Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// Converts to a duration of the standard library.
pub(crate) fn outside(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}
