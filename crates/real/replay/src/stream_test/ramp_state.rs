//! State shared by the clients of a ramp.

use fullstroke_units::{Duration, Time};
use fullstroke_workload::StreamTally;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// State shared by all clients.
pub(crate) struct RampState {
    pub(crate) tallies: Vec<Mutex<StreamTally>>,
    pub(super) end_ns: AtomicU64,
    pub(super) late_ns_max: AtomicU64,
    pub(super) broken: AtomicBool,
}

impl RampState {
    /// Returns the end of the load. A byte needed after this time is not missed.
    pub(crate) fn end(&self) -> Time {
        // Relaxed: each client compares the end with its own clock, and needs no other data of the
        // ramp.
        Time::from_nanos(self.end_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn end_at(&self, end: Time) {
        self.end_ns.store(end.as_nanos(), Ordering::Relaxed);
    }

    /// Records that a client slept longer than intended.
    pub(crate) fn woke_late(&self, by: Duration) {
        self.late_ns_max.fetch_max(by.as_nanos(), Ordering::Relaxed);
    }

    /// Records that a client receives no more data.
    pub(crate) fn broke_off(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    pub(crate) fn seen(&self) -> Vec<StreamTally> {
        self.tallies
            .iter()
            .filter_map(|tally| tally.lock().ok().map(|tally| *tally))
            .collect()
    }
}

/// Returns the time of the streams' clock.
pub(crate) fn time_since(began: Instant) -> Time {
    Time::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX))
}
