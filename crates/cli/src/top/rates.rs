//! Rates between two looks at a server, per second of simulated time. Without elapsed time, as at
//! the first look, a rate is NaN.

use fullstroke_counters::Counter;
use fullstroke_live::{DriveStatus, ExportStatus, OperationStatus};

/// Rates of one kind of request. Failed requests are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OperationRates {
    pub(super) requests_per_s: f64,
    pub(super) mb_per_s: f64,
    /// Mean response time in milliseconds. `None` without completed requests.
    pub(super) response_ms: Option<f64>,
}

/// Rates of one drive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DriveRates {
    pub(super) ios_per_s: f64,
    pub(super) mb_per_s: f64,
    /// Share of the time in which the drive was busy.
    pub(super) busy_share: f64,
}

/// World's time between two looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeSpan {
    seconds: f64,
}

impl TimeSpan {
    pub(super) fn between(before: &ExportStatus, now: &ExportStatus) -> TimeSpan {
        TimeSpan {
            // A restarted server begins at 0 again.
            seconds: now.world_ns.saturating_sub(before.world_ns) as f64 / 1e9,
        }
    }

    /// Returns `amount` per second, or NaN if no time has passed.
    fn rate(self, amount: f64) -> f64 {
        if self.seconds > 0.0 {
            // Counters of a restarted server fall; a negative rate would be shown for one interval.
            amount.max(0.0) / self.seconds
        } else {
            f64::NAN
        }
    }

    pub(super) fn operation(
        self,
        before: &OperationStatus,
        now: &OperationStatus,
    ) -> OperationRates {
        let requests = now.served().saturating_sub(before.served()) as f64;
        let response_s = (now.response_s - before.response_s).max(0.0);
        OperationRates {
            requests_per_s: self.rate(requests),
            mb_per_s: self.rate(now.bytes.saturating_sub(before.bytes) as f64 / 1e6),
            // Without requests there is no response time.
            response_ms: (requests > 0.0).then(|| 1000.0 * response_s / requests),
        }
    }

    /// Returns the power in watts of all drives with energy figures. `None` if no drive has any.
    pub(super) fn watts(self, before: &[DriveStatus], now: &[DriveStatus]) -> Option<f64> {
        let joules = |drive: &DriveStatus| drive.totals.value(Counter::ENERGY);
        let taken = before
            .iter()
            .zip(now)
            .map(|(before, now)| joules(now) - joules(before));
        taken
            .filter(|joules| !joules.is_nan())
            .reduce(|sum, joules| sum + joules)
            .map(|sum| self.rate(sum))
    }

    pub(super) fn drive(self, before: &DriveStatus, now: &DriveStatus) -> DriveRates {
        let rate = |counter| self.rate(now.totals.value(counter) - before.totals.value(counter));
        DriveRates {
            ios_per_s: rate(Counter::REQUESTS),
            mb_per_s: rate(Counter::BYTES) / 1e6,
            busy_share: rate(Counter::BUSY),
        }
    }
}
