//! Mean response times by windows of the arrivals, sorted. This profile compares a run with a model
//! that predicts only averages.
//!
//! Memory grows with the number of windows with arrivals, so windows are kept only on request.

use fullstroke_engine::Finished;
use fullstroke_units::Duration;
use serde::Serialize;
use std::collections::BTreeMap;

/// Collects response times by window.
#[derive(Clone, Debug)]
pub struct ResponseWindows {
    length: Duration,
    /// Number of arrivals and sum of their response times in nanoseconds, by the number of the
    /// window.
    busy: BTreeMap<u64, (u64, u64)>,
}

/// Windows of a run, or of a model of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WindowsReport {
    /// Length of a window, in ms.
    pub window_ms: f64,
    /// Number of windows from time 0 to the last window with arrivals.
    pub count: u64,
    /// Share of windows without arrivals.
    pub empty_share: f64,
    /// Distribution of the mean response times of the other windows.
    pub latency_ms: WindowLatencies,
}

/// Mean response times of busy windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowLatencies {
    /// Mean over windows.
    pub mean: f64,
    /// Value that one window in ten does not exceed.
    pub p10: f64,
    /// Value that one window in four does not exceed.
    pub p25: f64,
    /// Median.
    pub p50: f64,
    /// Value that three windows in four do not exceed.
    pub p75: f64,
    /// Value that nine windows in ten do not exceed.
    pub p90: f64,
    /// Value that 95 of 100 windows do not exceed.
    pub p95: f64,
    /// Value that 99 of 100 windows do not exceed.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

impl ResponseWindows {
    /// Creates windows of this length, at least a nanosecond.
    pub fn of(length: Duration) -> ResponseWindows {
        ResponseWindows {
            length: length.max(Duration::from_nanos(1)),
            busy: BTreeMap::new(),
        }
    }

    /// Records a finished read or write.
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

    /// Returns the windows of all finished requests.
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
    /// Returns the report of `count` windows whose busy windows have these mean response times in
    /// milliseconds.
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
        // Sorted, because percentiles are ranks.
        latencies.sort_by(f64::total_cmp);
        // Returns the smallest value that this share of windows does not exceed; NaN without
        // windows.
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
    /// Returns the values without any window.
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
        let mut windows = ResponseWindows::of(Duration::from_millis(100));
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
        let report = ResponseWindows::of(Duration::ZERO).report();
        assert!(
            report.count == 0 && report.latency_ms.p50.is_nan() && report.latency_ms.mean.is_nan()
        );
    }
}
