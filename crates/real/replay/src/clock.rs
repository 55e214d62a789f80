//! When it is: one absolute schedule, nothing added up.

use fullstroke_units::{Duration, Time};
use std::time::Instant;

/// Time since the beginning of a replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// A clock whose time 0 is `ahead` from now.
    pub(crate) fn beginning_in(ahead: std::time::Duration) -> Clock {
        Clock(Instant::now() + ahead)
    }

    /// What time it is; 0 before the beginning.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// What time it was at an instant.
    #[inline]
    pub(crate) fn at(&self, instant: Instant) -> Time {
        Time::from_nanos(instant.saturating_duration_since(self.0).as_nanos() as u64)
    }

    /// How long it is until `at`.
    pub(crate) fn until(&self, at: Time) -> std::time::Duration {
        (self.0 + std::time::Duration::from_nanos(at.as_nanos()))
            .saturating_duration_since(Instant::now())
    }

    /// How long it is until the beginning.
    pub(crate) fn until_beginning(&self) -> std::time::Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// As the standard library's.
pub(crate) fn outside(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}
