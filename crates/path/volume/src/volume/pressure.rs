//! Whether somebody waits for the members beside the volume's own work.

use fullstroke_units::{Duration, Time};

/// A volume is left in peace when nothing was asked of it for so long. Shorter
/// pauses are those of a load that goes on.
const PEACE: Duration = Duration::from_nanos(1_000_000_000);

/// Requests from above, as far as a rebuild makes way for them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pressure {
    in_flight: u32,
    /// When the latest came or ended; `None` before the first.
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

    /// When it is over, if nothing more comes; never, while a request is in
    /// flight.
    pub(super) fn gone(&self) -> Time {
        match self.latest {
            _ if self.in_flight > 0 => Time::NEVER,
            None => Time::ZERO,
            Some(latest) => latest + PEACE,
        }
    }
}
