//! Measurements during a replay.

use crate::issued::Action;
use crate::report_parts::{GapSeconds, GapShare, OperationReport, ReplayDistribution};
use fullstroke_units::{Duration, Time};
use hdrhistogram::Histogram;

/// Longest span that the histograms distinguish: an hour. Longer spans count as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Counters of a whole replay. The memory grows by a few bytes per second of the replay.
#[derive(Clone, Debug)]
pub(crate) struct ReplayTally {
    pub(crate) issued: u64,
    issue_error: Histogram<u64>,
    submission: Histogram<u64>,
    responses: [Responses; 4],
    line: FittedLine,
    seconds: Seconds,
    gaps: Gaps,
    /// Gaps by the schedule, and as issued.
    lengths: [Histogram<u64>; 2],
    first: Option<Instants>,
    last: Option<Instants>,
}

/// Scheduled time and time of issue of a request.
#[derive(Clone, Copy, Debug)]
struct Instants {
    schedule: Time,
    issued: Time,
}

#[derive(Clone, Debug)]
struct Responses {
    histogram: Histogram<u64>,
    bytes: u64,
}

/// A straight line by least squares through (seconds, nanoseconds).
#[derive(Clone, Copy, Debug, Default)]
struct FittedLine {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

/// Requests in each second, by the schedule and as issued.
#[derive(Clone, Debug, Default)]
struct Seconds(Vec<[u32; 2]>);

/// Gaps between requests, gathered by the second of the schedule.
#[derive(Clone, Debug, Default)]
struct Gaps {
    second: u64,
    count: u64,
    /// Sum of issued less scheduled gaps in the present second, in ns.
    excess_ns: i64,
    /// Mean excess of the gaps in each second, in us.
    excesses_us: Vec<f64>,
    weighted_ns: f64,
    scheduled_ns: f64,
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are constants, and valid")
}

impl ReplayTally {
    pub(crate) fn new() -> ReplayTally {
        let responses = || Responses {
            histogram: histogram(),
            bytes: 0,
        };
        ReplayTally {
            issued: 0,
            issue_error: histogram(),
            submission: histogram(),
            responses: std::array::from_fn(|_| responses()),
            line: FittedLine::default(),
            seconds: Seconds::default(),
            gaps: Gaps::default(),
            lengths: [histogram(), histogram()],
            first: None,
            last: None,
        }
    }

    /// Records a request issued at `issued`. The request was due at `due`. `schedule` is its time
    /// by the trace.
    pub(crate) fn issued(&mut self, due: Time, schedule: Time, issued: Time) {
        let late_ns = issued.saturating_since(due).as_nanos();
        self.issued += 1;
        // Above an hour the histogram counts an hour.
        self.issue_error.saturating_record(late_ns);
        self.line.add(due.as_nanos() as f64 / 1e9, late_ns as f64);
        self.seconds.add(schedule, issued);
        let instants = Instants { schedule, issued };
        if let Some(last) = self.last {
            self.gaps.add(last, instants);
            let [by_schedule, issued] = &mut self.lengths;
            by_schedule.saturating_record(schedule.saturating_since(last.schedule).as_nanos());
            issued.saturating_record(instants.issued.saturating_since(last.issued).as_nanos());
        }
        self.first.get_or_insert(instants);
        self.last = Some(instants);
    }

    /// Records the duration of a call that submitted requests to the kernel.
    pub(crate) fn submitted(&mut self, took: Duration) {
        self.submission.saturating_record(took.as_nanos());
    }

    pub(crate) fn completed(&mut self, action: Action, bytes: u64, response: Duration) {
        let responses = &mut self.responses[action as usize];
        responses.histogram.saturating_record(response.as_nanos());
        responses.bytes += bytes;
    }

    /// Returns the delays of the issues.
    pub(crate) fn issue_error_us(&self) -> ReplayDistribution {
        ReplayDistribution::of(&self.issue_error, 1e3)
    }

    pub(crate) fn submission_us(&self) -> ReplayDistribution {
        ReplayDistribution::of(&self.submission, 1e3)
    }

    /// Returns the growth of the issue delay per second, in microseconds.
    pub(crate) fn drift_us_per_s(&self) -> f64 {
        self.line.slope() / 1e3
    }

    /// Returns the time from the first issue to the last.
    pub(crate) fn span(&self) -> Duration {
        self.first
            .zip(self.last)
            .map_or(Duration::ZERO, |(first, last)| {
                last.issued.since(first.issued)
            })
    }

    /// Returns the time from the first issue to the last by the schedule.
    pub(crate) fn scheduled_span(&self) -> Duration {
        self.first
            .zip(self.last)
            .map_or(Duration::ZERO, |(first, last)| {
                last.schedule.since(first.schedule)
            })
    }

    /// Returns the error of the arrivals in each second, as a share of the scheduled arrivals.
    pub(crate) fn rate_error_share(&self) -> f64 {
        self.seconds.error_share()
    }

    /// Returns the error of the mean gap of each second: averaged over seconds in microseconds, and
    /// averaged over requests as a share of the mean gap.
    pub(crate) fn gap_error(&self) -> (f64, f64) {
        self.gaps.closed().error()
    }

    /// Returns the excess of the mean gap of each second over the schedule's.
    pub(crate) fn gap_seconds(&self) -> GapSeconds {
        self.gaps.closed().seconds()
    }

    /// Returns both distributions of gaps, at each twentieth and near both ends.
    pub(crate) fn gaps(&self) -> Vec<GapShare> {
        let shares = [0.01]
            .into_iter()
            .chain((1..20).map(|twentieth| f64::from(twentieth) / 20.0))
            .chain([0.99]);
        let [by_schedule, issued] = &self.lengths;
        let us =
            |histogram: &Histogram<u64>, share| histogram.value_at_quantile(share) as f64 / 1e3;
        shares
            .map(|share| GapShare {
                share,
                trace_us: us(by_schedule, share),
                here_us: us(issued, share),
            })
            .collect()
    }

    pub(crate) fn operations(&self) -> Vec<OperationReport> {
        let report = |action: Action| {
            let Responses { histogram, bytes } = &self.responses[action as usize];
            OperationReport {
                operation: action.name().to_owned(),
                requests: histogram.len(),
                megabytes: *bytes as f64 / 1e6,
                response_ms: ReplayDistribution::of(histogram, 1e6),
            }
        };
        let actions = [Action::Read, Action::Write, Action::Flush, Action::Discard];
        actions
            .map(report)
            .into_iter()
            .filter(|report| report.requests > 0)
            .collect()
    }
}

impl FittedLine {
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    fn slope(&self) -> f64 {
        let spread = self.count * self.xx - self.x * self.x;
        // All requests at one time have no slope.
        if spread > 0.0 {
            (self.count * self.xy - self.x * self.y) / spread
        } else {
            0.0
        }
    }
}

impl Seconds {
    fn add(&mut self, schedule: Time, issued: Time) {
        for (column, at) in [schedule, issued].into_iter().enumerate() {
            let second = (at.as_nanos() / SECOND_NS) as usize;
            if self.0.len() <= second {
                self.0.resize(second + 1, [0; 2]);
            }
            self.0[second][column] += 1;
        }
    }

    fn error_share(&self) -> f64 {
        let scheduled: f64 = self.0.iter().map(|counts| f64::from(counts[0])).sum();
        let error: f64 = self
            .0
            .iter()
            .map(|counts| f64::from(counts[0].abs_diff(counts[1])))
            .sum();
        error / scheduled
    }
}

impl Gaps {
    fn add(&mut self, last: Instants, next: Instants) {
        let second = next.schedule.as_nanos() / SECOND_NS;
        if second != self.second {
            self.close();
            self.second = second;
        }
        let scheduled = next.schedule.since(last.schedule).as_nanos();
        self.excess_ns += next.issued.since(last.issued).as_nanos() as i64 - scheduled as i64;
        self.scheduled_ns += scheduled as f64;
        self.count += 1;
    }

    /// Adds the present second to the finished seconds.
    fn close(&mut self) {
        if self.count > 0 {
            self.excesses_us
                .push(self.excess_ns as f64 / self.count as f64 / 1e3);
            self.weighted_ns += self.excess_ns.unsigned_abs() as f64;
        }
        (self.count, self.excess_ns) = (0, 0);
    }

    fn closed(&self) -> Gaps {
        let mut closed = self.clone();
        closed.close();
        closed
    }

    fn error(&self) -> (f64, f64) {
        let share = if self.scheduled_ns > 0.0 {
            self.weighted_ns / self.scheduled_ns
        } else {
            0.0
        };
        let sum: f64 = self.excesses_us.iter().map(|excess| excess.abs()).sum();
        (sum / self.excesses_us.len().max(1) as f64, share)
    }

    fn seconds(&self) -> GapSeconds {
        let mut signed = self.excesses_us.clone();
        let mut errors: Vec<f64> = signed.iter().map(|excess| excess.abs()).collect();
        // total_cmp orders all values, so the percentiles are the same in each run.
        signed.sort_unstable_by(f64::total_cmp);
        errors.sort_unstable_by(f64::total_cmp);
        let at = |sorted: &[f64], share: f64| {
            sorted
                // The smallest value with at least this share of values up to it; at least the
                // first.
                .get(((sorted.len() as f64 * share).ceil() as usize).max(1) - 1)
                .copied()
                .unwrap_or_default()
        };
        GapSeconds {
            seconds: signed.len() as u64,
            least_us: at(&signed, 0.0),
            p50_us: at(&signed, 0.5),
            error_p50_us: at(&errors, 0.5),
            error_p90_us: at(&errors, 0.9),
            most_us: at(&signed, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// Returns the tally of 10,000 requests, 1 ms apart, of which request `i` is late by
    /// `late_us(i)`.
    fn tally(late_us: impl Fn(u64) -> u64) -> ReplayTally {
        let mut tally = ReplayTally::new();
        (0..10_000)
            .for_each(|i| tally.issued(at(i * 1000), at(i * 1000), at(i * 1000 + late_us(i))));
        tally
    }

    #[test]
    fn what_is_late_by_a_constant_does_not_drift() {
        let tally = tally(|_| 7);
        assert!(
            tally.drift_us_per_s().abs() < 1e-6,
            "{}",
            tally.drift_us_per_s()
        );
        assert_eq!(
            (tally.gap_error(), tally.rate_error_share()),
            ((0.0, 0.0), 0.0)
        );
        assert!((tally.issue_error_us().p50 - 7.0).abs() < 0.01);
        assert_eq!(tally.span(), tally.scheduled_span());
    }

    #[test]
    fn what_is_ever_later_drifts() {
        // 5 % slower: 50 us later with each ms.
        let tally = tally(|i| i * 50);
        assert!(
            (tally.drift_us_per_s() - 50_000.0).abs() < 1.0,
            "{}",
            tally.drift_us_per_s()
        );
        let (error_us, share) = tally.gap_error();
        assert!(
            (error_us - 50.0).abs() < 0.1 && (share - 0.05).abs() < 1e-6,
            "{error_us} {share}"
        );
        assert!(
            (0.04..0.10).contains(&tally.rate_error_share()),
            "{}",
            tally.rate_error_share()
        );
        let seconds = tally.gap_seconds();
        assert_eq!(seconds.seconds, 10);
        for us in [
            seconds.least_us,
            seconds.p50_us,
            seconds.error_p90_us,
            seconds.most_us,
        ] {
            assert!((us - 50.0).abs() < 0.1, "{seconds:?}");
        }
        let stretch = tally.span().as_secs_f64() / tally.scheduled_span().as_secs_f64();
        assert!((stretch - 1.05).abs() < 1e-6, "{stretch}");
    }

    #[test]
    fn the_gaps_of_both_are_told_by_their_shares_and_those_of_seconds_with_their_signs() {
        // Of two requests, the second is late by the whole gap to the next request. The seconds are
        // not affected.
        let pairs = tally(|i| i % 2 * 1000);
        let halves = |share: f64| {
            *pairs
                .gaps()
                .iter()
                .find(|point| (point.share - share).abs() < 1e-9)
                .unwrap()
        };
        assert!((halves(0.25).trace_us - 1000.0).abs() < 1.0 && halves(0.25).here_us < 1.0);
        assert!(
            (halves(0.75).trace_us - 1000.0).abs() < 1.0
                && (halves(0.75).here_us - 2000.0).abs() < 2.0
        );
        assert!(pairs.gap_seconds().most_us < 1.1);
        // The delay grows in the first five seconds, and shrinks in the last five.
        let bent = tally(|i| if i < 5000 { i * 10 } else { (10_000 - i) * 10 }).gap_seconds();
        assert!(
            (bent.least_us + 10.0).abs() < 0.1 && (bent.most_us - 10.0).abs() < 0.1,
            "{bent:?}"
        );
        assert!((bent.error_p50_us - 10.0).abs() < 0.1, "{bent:?}");
    }

    #[test]
    fn requests_that_go_in_another_second_are_told() {
        // Every other second, the requests wait and are all issued at the end of the second.
        let tally = tally(|i| {
            if i / 1000 % 2 == 0 {
                1_000_000 - i % 1000 * 1000
            } else {
                0
            }
        });
        assert!(
            tally.rate_error_share() > 0.9,
            "{}",
            tally.rate_error_share()
        );
    }
}
