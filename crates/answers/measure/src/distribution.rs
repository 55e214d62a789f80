//! Distribution of one quantity, and the parts of a response time.

use serde::Serialize;

/// Distribution of one quantity, in the unit of the field's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Arithmetic mean, exact.
    pub mean: f64,
    /// Standard deviation of the sample, exact.
    pub stddev: f64,
    /// Median, to three significant digits; the other percentiles have the same precision.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Maximum, exact.
    pub max: f64,
    /// Half the width of the 95 % confidence interval of the mean; `None` if there are too few
    /// requests.
    pub ci95_half_width: Option<f64>,
    /// Number of values.
    pub count: u64,
}

/// Least number of requests beyond a percentile. With fewer, single requests decide the value: the
/// standard error of the number beyond is its root, a third of 10.
pub const BEYOND_MIN: u64 = 10;

/// Returns the number of `count` requests that lie beyond `quantile` (0 to 1).
pub fn requests_beyond(count: u64, quantile: f64) -> u64 {
    // Rounded, because 1 - 0.99 in floating point is slightly above 0.01.
    (count as f64 * (1.0 - quantile)).round() as u64
}

impl Distribution {
    /// Returns the number of values beyond `quantile` (0 to 1).
    pub fn beyond(&self, quantile: f64) -> u64 {
        requests_beyond(self.count, quantile)
    }
}

/// The parts of the mean response time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TimeParts {
    /// Waiting for a busy resource.
    pub queue: f64,
    /// Waiting for old data and parity to be read, or for the stripe.
    pub parity: f64,
    /// Command overhead and bus.
    pub overhead: f64,
    /// Arm movement, head switches and settling.
    pub seek: f64,
    /// Rotational latency.
    pub rotation: f64,
    /// Sectors passing under the head.
    pub transfer: f64,
}

impl TimeParts {
    pub(crate) fn new([queue, parity, overhead, seek, rotation, transfer]: [f64; 6]) -> TimeParts {
        TimeParts {
            queue,
            parity,
            overhead,
            seek,
            rotation,
            transfer,
        }
    }

    /// Returns the parts with their names, in the order of a request's life.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("queue", self.queue),
            ("parity", self.parity),
            ("overhead", self.overhead),
            ("seek", self.seek),
            ("rotation", self.rotation),
            ("transfer", self.transfer),
        ]
    }
}
