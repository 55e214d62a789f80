//! The counters of a cache, in the form of reports.

use crate::{PAGE_BYTES, PageCache};
use fullstroke_contract::LayerReadings;

impl PageCache {
    /// Returns the readings for the report of a host.
    pub fn readings(&self) -> LayerReadings {
        let (counted, gauges) = (self.counters(), self.gauges());
        let share = |part: u64, whole: u64| {
            if whole == 0 {
                0.0
            } else {
                part as f64 / whole as f64
            }
        };
        let megabytes = |pages: u64| (pages * PAGE_BYTES) as f64 / 1e6;
        LayerReadings::new(
            "page cache",
            &[
                ("memory_hit_share", share(counted.hits, counted.read)),
                ("memory_read_ahead_mb", megabytes(counted.ahead)),
                (
                    "memory_read_ahead_used_share",
                    share(counted.ahead_used, counted.ahead),
                ),
                (
                    "memory_read_ahead_wasted_mb",
                    megabytes(counted.ahead_wasted),
                ),
                ("memory_dirtied_mb", megabytes(counted.dirtied)),
                (
                    "memory_written_background_mb",
                    megabytes(counted.back_background),
                ),
                (
                    "memory_written_periodic_mb",
                    megabytes(counted.back_periodic),
                ),
                (
                    "memory_written_throttled_mb",
                    megabytes(counted.back_throttled),
                ),
                ("memory_written_sync_mb", megabytes(counted.back_sync)),
                ("memory_written_reclaim_mb", megabytes(counted.back_reclaim)),
                ("memory_written_pulled_mb", megabytes(counted.back_pull)),
                ("memory_pull_asked_mb", megabytes(counted.pull_asked)),
                ("memory_pull_refused_mb", megabytes(counted.pull_refused)),
                ("memory_dirty_mb", megabytes(gauges.dirty)),
                ("memory_throttled_ms", counted.throttled.as_millis_f64()),
            ],
        )
    }

    /// Returns the readings under the name of a host; `None` for the only host.
    pub fn readings_of(&self, name: Option<&str>) -> LayerReadings {
        let readings = self.readings();
        match name {
            Some(name) => LayerReadings {
                layer: format!("{} of {name}", readings.layer),
                ..readings
            },
            None => readings,
        }
    }
}
