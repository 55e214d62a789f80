//! Outstanding requests, in the trace and in its replay.

use fullstroke_units::{Duration, Time};
use std::collections::BTreeMap;

/// Larger numbers of outstanding requests count as this number, so that memory is bounded.
const TOLD_APART: u64 = 65_535;

/// Outstanding requests of a replay at each request, beside those of the trace, and the duration of
/// both.
#[derive(Clone, Debug, Default)]
pub struct Conformity {
    requests: u64,
    /// Requests with both numbers known.
    compared: u64,
    error_sum: i64,
    error_abs_sum: u64,
    error_max: u64,
    in_trace: BTreeMap<u64, u64>,
    here: BTreeMap<u64, u64>,
    arrivals: Option<(Time, Time)>,
    issues: Option<(Time, Time)>,
}

/// Outstanding requests at the issue of a request, without the request itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outstanding {
    /// Mean of the trace.
    pub trace_mean: f64,
    /// Mean of the replay.
    pub mean: f64,
    /// 90th percentile of the trace.
    pub trace_p90: u64,
    /// 90th percentile of the replay.
    pub p90: u64,
    /// Mean absolute difference.
    pub error_mean: f64,
    /// Mean difference with sign; above 0 if the replay has more.
    pub bias: f64,
    /// Largest absolute difference.
    pub error_max: u64,
    /// Distance of the two distributions: the area between their cumulative curves (the mean
    /// distance by which one must move to become the other).
    pub distance: f64,
}

impl Outstanding {
    /// Mean absolute difference as a share of the trace's mean. Not a number if both are always 0.
    pub fn error_share(&self) -> f64 {
        self.error_mean / self.trace_mean
    }
}

impl Conformity {
    /// Adds a request with arrival `arrival` and `in_trace` outstanding requests in the trace, and
    /// with issue time `issue` and `here` outstanding requests in the replay.
    pub(super) fn add(&mut self, in_trace: Option<u64>, here: u64, arrival: Time, issue: Time) {
        self.requests += 1;
        extend(&mut self.arrivals, arrival);
        extend(&mut self.issues, issue);
        let Some(in_trace) = in_trace else { return };
        self.compared += 1;
        *self.in_trace.entry(in_trace.min(TOLD_APART)).or_default() += 1;
        *self.here.entry(here.min(TOLD_APART)).or_default() += 1;
        let error = here.abs_diff(in_trace);
        self.error_abs_sum += error;
        self.error_sum += if here >= in_trace {
            error as i64
        } else {
            -(error as i64)
        };
        self.error_max = self.error_max.max(error);
    }

    /// Issued requests.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Requests with a known completion in the trace.
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// Time from the first arrival of the trace to the last so far.
    pub fn trace_span(&self) -> Duration {
        span(self.arrivals)
    }

    /// Time from the first issue of the replay to the last so far.
    pub fn span(&self) -> Duration {
        span(self.issues)
    }

    /// The outstanding requests; `None` if the trace has no known completion.
    pub fn outstanding(&self) -> Option<Outstanding> {
        if self.compared == 0 {
            return None;
        }
        let count = self.compared as f64;
        let mean = |counts: &BTreeMap<u64, u64>| {
            counts
                .iter()
                .map(|(&value, &times)| value as f64 * times as f64)
                .sum::<f64>()
                / count
        };
        Some(Outstanding {
            trace_mean: mean(&self.in_trace),
            mean: mean(&self.here),
            trace_p90: quantile(&self.in_trace, self.compared, 0.9),
            p90: quantile(&self.here, self.compared, 0.9),
            error_mean: self.error_abs_sum as f64 / count,
            bias: self.error_sum as f64 / count,
            error_max: self.error_max,
            distance: self.distance(),
        })
    }

    /// The area between the two cumulative distributions.
    fn distance(&self) -> f64 {
        let mut values: Vec<u64> = self
            .in_trace
            .keys()
            .chain(self.here.keys())
            .copied()
            .collect();
        values.sort_unstable();
        values.dedup();
        // For distributions on a line, the area between the cumulative curves is the least total
        // distance of moving one to the other.
        let (mut ahead, mut area) = (0i64, 0.0);
        for pair in values.windows(2) {
            let times =
                |counts: &BTreeMap<u64, u64>| counts.get(&pair[0]).copied().unwrap_or(0) as i64;
            ahead += times(&self.in_trace) - times(&self.here);
            area += ahead.unsigned_abs() as f64 * (pair[1] - pair[0]) as f64;
        }
        area / self.compared as f64
    }
}

fn extend(range: &mut Option<(Time, Time)>, at: Time) {
    *range = Some(range.map_or((at, at), |(first, last)| (first, last.max(at))));
}

fn span(range: Option<(Time, Time)>) -> Duration {
    range.map_or(Duration::ZERO, |(first, last)| last.since(first))
}

/// The smallest value that at least `share` of all values do not exceed.
fn quantile(counts: &BTreeMap<u64, u64>, all: u64, share: f64) -> u64 {
    let needed = (all as f64 * share).ceil() as u64;
    let mut seen = 0;
    let reaches = |&(_, &times): &(&u64, &u64)| {
        seen += times;
        seen >= needed
    };
    counts.iter().find(reaches).map_or(0, |(&value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conformity(pairs: &[(u64, u64)]) -> Outstanding {
        let mut conformity = Conformity::default();
        pairs
            .iter()
            .for_each(|&(trace, here)| conformity.add(Some(trace), here, Time::ZERO, Time::ZERO));
        conformity.outstanding().unwrap()
    }

    #[test]
    fn errors_of_requests_and_of_the_distribution_are_told_apart() {
        // The same numbers at other requests: each request differs, the distribution does not.
        let swapped = conformity(&[(1, 3), (3, 1), (2, 2), (2, 2)]);
        assert_eq!(
            (swapped.error_mean, swapped.bias, swapped.distance),
            (1.0, 0.0, 0.0)
        );
        assert_eq!((swapped.error_max, swapped.error_share()), (2, 0.5));
        // Twice as many outstanding requests at each request.
        let twice = conformity(&[(1, 2), (2, 4), (3, 6)]);
        assert_eq!(
            (twice.trace_mean, twice.mean, twice.error_mean, twice.bias),
            (2.0, 4.0, 2.0, 2.0)
        );
        assert!((twice.distance - 2.0).abs() < 1e-12, "{twice:?}");
        assert_eq!((twice.trace_p90, twice.p90), (3, 6));
    }

    #[test]
    fn a_trace_without_completions_has_nothing_to_compare() {
        let mut conformity = Conformity::default();
        conformity.add(None, 7, Time::ZERO, Time::ZERO);
        assert_eq!((conformity.requests(), conformity.outstanding()), (1, None));
    }
}
