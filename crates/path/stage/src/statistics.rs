//! Counters of the stage.

use fullstroke_contract::LayerReadings;
use fullstroke_units::{Duration, Time};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StageStatistics {
    requests: u64,
    waited: Duration,
    waited_max: Duration,
    busy: Duration,
}

impl StageStatistics {
    /// Counts an issued request with the waiting time and the cost.
    pub(crate) fn passed(&mut self, waited: Duration, cost: Duration) {
        self.requests += 1;
        // Many requests wait at a time, so the sum of the waits may exceed the range of the
        // counter.
        self.waited = self.waited.saturating_add(waited);
        self.waited_max = self.waited_max.max(waited);
        self.busy += cost;
    }

    pub(crate) fn readings(&self, now: Time, of_cost: &[(&'static str, f64)]) -> LayerReadings {
        let whole = now.since(Time::ZERO).as_secs_f64();
        let mean = self.waited.as_millis_f64() / self.requests.max(1) as f64;
        let own = [
            ("stage_requests", self.requests as f64),
            ("stage_wait_ms_mean", mean),
            ("stage_wait_ms_max", self.waited_max.as_millis_f64()),
            (
                "stage_utilisation",
                if whole > 0.0 {
                    self.busy.as_secs_f64() / whole
                } else {
                    0.0
                },
            ),
        ];
        LayerReadings::new("shared stage", &[&own, of_cost].concat())
    }
}
