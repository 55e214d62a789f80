//! Statistics of measured times.

use serde::Serialize;

/// Summary of a number of times, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeSummary {
    /// Number of times.
    pub count: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Standard deviation.
    pub deviation_ms: f64,
    /// Shortest time.
    pub least_ms: f64,
    /// Longest time.
    pub most_ms: f64,
}

impl TimeSummary {
    /// Summarises times in ns.
    pub fn of(times_ns: &[u64]) -> TimeSummary {
        let count = times_ns.len() as f64;
        let ms = |ns: u64| ns as f64 / 1e6;
        let mean_ms = times_ns.iter().map(|&ns| ms(ns)).sum::<f64>() / count.max(1.0);
        let squares: f64 = times_ns.iter().map(|&ns| (ms(ns) - mean_ms).powi(2)).sum();
        TimeSummary {
            count: times_ns.len() as u64,
            mean_ms,
            deviation_ms: (squares / count.max(1.0)).sqrt(),
            least_ms: ms(times_ns.iter().copied().min().unwrap_or(0)),
            most_ms: ms(times_ns.iter().copied().max().unwrap_or(0)),
        }
    }

    /// Returns the standard error of the mean, in ms.
    pub fn error_ms(&self) -> f64 {
        self.deviation_ms / (self.count.max(1) as f64).sqrt()
    }
}
