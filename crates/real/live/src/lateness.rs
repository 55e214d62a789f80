//! Lateness of the host's answers compared with the model.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Largest lateness distinguished by the histogram: a minute.
const LONGEST_NS: u64 = 60_000_000_000;

/// Histogram of lateness, in nanoseconds of real time.
#[derive(Clone, Debug)]
pub(crate) struct Lateness(Histogram<u64>);

/// A distribution of lateness, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, serde::Deserialize)]
pub struct LatenessSummary {
    /// Number of answers.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Largest value.
    pub max_us: f64,
}

impl Lateness {
    pub(crate) fn new() -> Lateness {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3);
        Lateness(histogram.expect("the bounds are constants, and valid"))
    }

    #[inline]
    pub(crate) fn add(&mut self, nanoseconds: u64) {
        // A lateness above a minute counts as a minute, in the percentiles as in the maximum.
        self.0.saturating_record(nanoseconds);
    }

    pub(crate) fn summary(&self) -> LatenessSummary {
        let at = |quantile: f64| self.0.value_at_quantile(quantile) as f64 / 1000.0;
        LatenessSummary {
            count: self.0.len(),
            mean_us: self.0.mean() / 1000.0,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.0.max() as f64 / 1000.0,
        }
    }
}
