//! Tells if requests from above compete with the volume's own work.

use fullstroke_units::{Duration, Time};

/// A volume counts as idle after this time without a request. Shorter pauses belong to a continuing
/// load.
pub(super) const PEACE: Duration = Duration::from_nanos(1_000_000_000);

/// Requests from above with precedence over a rebuild.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pressure {
    in_flight: u32,
    /// Time of the latest arrival or completion; `None` before the first request.
    latest: Option<Time>,
}

impl Pressure {
    pub(super) fn request_came(&mut self, now: Time) {
        self.in_flight += 1;
        self.latest = Some(now);
    }

    pub(super) fn request_ended(&mut self, now: Time) {
        self.in_flight -= 1;
        self.latest = self.latest.max(Some(now));
    }

    /// True if a request is in flight or has ended since `looked`.
    pub(super) fn is_since(&self, looked: Time) -> bool {
        self.in_flight > 0 || self.latest.is_some_and(|latest| latest > looked)
    }

    /// Returns the time from which the volume counts as idle if no further request comes. Returns
    /// `NEVER` while a request is in flight.
    pub(super) fn gone(&self) -> Time {
        match self.latest {
            _ if self.in_flight > 0 => Time::NEVER,
            None => Time::ZERO,
            Some(latest) => latest + PEACE,
        }
    }
}
