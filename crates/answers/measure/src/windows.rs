//! Mean responses by windows of the arrivals, sorted: the profile by which a model that knows
//! averages alone is held against a run.
//!
//! Memory grows with the windows in which something arrives, so that they are kept only if asked for.

use fullstroke_engine::Finished;
use fullstroke_units::Duration;
use serde::Serialize;
use std::collections::BTreeMap;

/// Gathers responses by window.
#[derive(Clone, Debug)]
pub struct Windows {
    length: Duration,
    /// By the window's number: requests that arrived in it, and the sum of their responses in nanoseconds.
    busy: BTreeMap<u64, (u64, u64)>,
}

/// The windows of a run, or of a model of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WindowsReport {
    /// The length of a window.
    pub window_ms: f64,
    /// From time 0 to the last in which something arrived.
    pub count: u64,
    /// The share of them in which nothing arrived.
    pub empty_share: f64,
    /// Of the others, the mean response of the requests that arrived in each.
    pub latency_ms: WindowLatencies,
}

/// The mean latencies of busy windows, in order of length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowLatencies {
    /// The mean over windows.
    pub mean: f64,
    /// One window in ten has no longer one.
    pub p10: f64,
    /// One in four.
    pub p25: f64,
    /// Half of them.
    pub p50: f64,
    /// Three in four.
    pub p75: f64,
    /// Nine in ten.
    pub p90: f64,
    /// 95 of a hundred.
    pub p95: f64,
    /// 99 of a hundred.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Windows {
    /// Windows of such a length, of at least a nanosecond.
    pub fn of(length: Duration) -> Windows {
        Windows {
            length: length.max(Duration::from_nanos(1)),
            busy: BTreeMap::new(),
        }
    }

    /// A read or write has ended.
    pub fn finished(&mut self, finished: &Finished) {
        let response = finished
            .completion
            .finished
            .since(finished.arrived)
            .as_nanos();
        let window = finished.arrived.as_nanos() / self.length.as_nanos();
        let (requests, sum) = self.busy.entry(window).or_default();
        (*requests, *sum) = (*requests + 1, *sum + response);
    }

    /// All that ended.
    pub fn report(&self) -> WindowsReport {
        let count = self.busy.last_key_value().map_or(0, |(last, _)| last + 1);
        let means = self
            .busy
            .values()
            .map(|&(requests, sum)| sum as f64 / requests as f64 / 1e6);
        WindowsReport::new(self.length, count, means.collect())
    }
}

impl WindowsReport {
    /// `count` windows, of which those that are busy have these mean latencies in milliseconds.
    pub fn new(length: Duration, count: u64, latencies_ms: Vec<f64>) -> WindowsReport {
        let busy = latencies_ms.len() as f64;
        WindowsReport {
            window_ms: length.as_millis_f64(),
            count,
            empty_share: 1.0 - busy / count as f64,
            latency_ms: WindowLatencies::new(latencies_ms),
        }
    }
}

impl WindowLatencies {
    fn new(mut latencies: Vec<f64>) -> WindowLatencies {
        latencies.sort_by(f64::total_cmp);
        // The smallest that such a share of them does not exceed; none of none.
        let at = |share: f64| {
            let rank = (share * latencies.len() as f64).ceil() as usize;
            latencies
                .get(rank.saturating_sub(1))
                .copied()
                .unwrap_or(f64::NAN)
        };
        WindowLatencies {
            mean: latencies.iter().sum::<f64>() / latencies.len() as f64,
            p10: at(0.1),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            max: at(1.0),
        }
    }
}

impl Default for WindowLatencies {
    /// Those of no window.
    fn default() -> WindowLatencies {
        WindowLatencies::new(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Completion, Extent, Operation};
    use fullstroke_units::Time;

    fn finished(arrived_ms: u64, response_ms: u64) -> Finished {
        let arrived = Time::from_nanos(arrived_ms * 1_000_000);
        let completion = Completion {
            finished: arrived + Duration::from_millis(response_ms),
            ..Completion::default()
        };
        Finished {
            origin: 0,
            operation: Operation::Read,
            extent: Extent::new(0, 8),
            process: 0,
            workload: 0,
            arrived,
            completion,
        }
    }

    #[test]
    fn a_window_has_the_mean_of_what_arrived_in_it_whenever_that_ended() {
        let mut windows = Windows::of(Duration::from_millis(100));
        for (arrived, response) in [(950, 5), (0, 250), (99, 50), (100, 7), (420, 1)] {
            windows.finished(&finished(arrived, response));
        }
        let report = windows.report();
        assert_eq!((report.count, report.empty_share), (10, 0.6));
        let WindowLatencies {
            p10,
            p25,
            p50,
            p75,
            p95,
            max,
            mean,
            ..
        } = report.latency_ms;
        assert_eq!(
            [p10, p25, p50, p75, p95, max],
            [1.0, 1.0, 5.0, 7.0, 150.0, 150.0]
        );
        assert_eq!(mean, 40.75);
    }

    #[test]
    fn no_window_has_no_latency() {
        let report = Windows::of(Duration::ZERO).report();
        assert!(
            report.count == 0 && report.latency_ms.p50.is_nan() && report.latency_ms.mean.is_nan()
        );
    }
}
