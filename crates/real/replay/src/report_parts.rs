//! Parts of a report on a replay: distributions, operations, and gaps.

use hdrhistogram::Histogram;
use serde::Serialize;

/// A distribution, in the unit of its field's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReplayDistribution {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest value.
    pub max: f64,
}

impl ReplayDistribution {
    /// Summarises a histogram in nanoseconds. `unit_ns` is the unit of the result in nanoseconds.
    pub(crate) fn of(histogram: &Histogram<u64>, unit_ns: f64) -> ReplayDistribution {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / unit_ns;
        ReplayDistribution {
            mean: histogram.mean() / unit_ns,
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: histogram.max() as f64 / unit_ns,
        }
    }
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationReport {
    /// Name of the operation.
    pub operation: String,
    /// Number of requests.
    pub requests: u64,
    /// Moved data, in 10^6 bytes.
    pub megabytes: f64,
    /// Time from issue to completion, in ms.
    pub response_ms: ReplayDistribution,
}

/// Excess of the mean gap over the trace's mean gap in each second with requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GapSeconds {
    /// Number of seconds with requests.
    pub seconds: u64,
    /// Least excess of a second, in us.
    pub least_us: f64,
    /// Median excess, in us.
    pub p50_us: f64,
    /// Median of the absolute excess, in us.
    pub error_p50_us: f64,
    /// 90th percentile of the absolute excess, in us.
    pub error_p90_us: f64,
    /// Largest excess of a second, in us.
    pub most_us: f64,
}

/// A point of two distributions of gaps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GapShare {
    /// Share of the gaps that are no longer than the two values.
    pub share: f64,
    /// Gap in the trace, in us.
    pub trace_us: f64,
    /// Gap as issued, in us.
    pub here_us: f64,
}
