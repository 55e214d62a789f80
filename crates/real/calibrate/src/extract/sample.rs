//! Times that were measured.

use serde::Serialize;

/// What a number of times come to, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_ms: f64,
    /// Their standard deviation.
    pub deviation_ms: f64,
    /// The shortest.
    pub least_ms: f64,
    /// The longest.
    pub most_ms: f64,
}

impl Sample {
    /// Of times in ns.
    pub fn of(times_ns: &[u64]) -> Sample {
        let count = times_ns.len() as f64;
        let ms = |ns: u64| ns as f64 / 1e6;
        let mean_ms = times_ns.iter().map(|&ns| ms(ns)).sum::<f64>() / count.max(1.0);
        let squares: f64 = times_ns.iter().map(|&ns| (ms(ns) - mean_ms).powi(2)).sum();
        Sample {
            count: times_ns.len() as u64,
            mean_ms,
            deviation_ms: (squares / count.max(1.0)).sqrt(),
            least_ms: ms(times_ns.iter().copied().min().unwrap_or(0)),
            most_ms: ms(times_ns.iter().copied().max().unwrap_or(0)),
        }
    }

    /// The standard error of the mean.
    pub fn error_ms(&self) -> f64 {
        self.deviation_ms / (self.count.max(1) as f64).sqrt()
    }
}
