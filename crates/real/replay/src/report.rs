//! The report on a replay, with the verdict.

use crate::report_parts::{GapSeconds, GapShare, OperationReport, ReplayDistribution};
use crate::tally::ReplayTally;
use crate::{Calibration, FioReplay, IoMethod, Prepared, ReplayOptions};
use fullstroke_workload::pace::{Dispatcher, Outstanding, ReplayPace};
use serde::Serialize;
use std::fmt;

/// Number of outstanding requests at the issue of a request, without this request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OutstandingReport {
    /// Mean in the trace, over requests.
    pub trace_mean: f64,
    /// Mean in the replay, over requests.
    pub mean: f64,
    /// 90th percentile in the trace.
    pub trace_p90: u64,
    /// 90th percentile in the replay.
    pub p90: u64,
    /// Mean absolute difference of a request.
    pub error_mean: f64,
    /// Mean absolute difference as a share of the trace's mean; absent if the trace's mean is 0.
    pub error_share: Option<f64>,
    /// Largest difference of a request.
    pub error_max: u64,
    /// Mean signed difference; above 0 if the replay had more outstanding requests.
    pub bias: f64,
    /// Area between the two distributions.
    pub distance: f64,
}

impl From<Outstanding> for OutstandingReport {
    fn from(found: Outstanding) -> OutstandingReport {
        OutstandingReport {
            trace_mean: found.trace_mean,
            mean: found.mean,
            trace_p90: found.trace_p90,
            p90: found.p90,
            error_mean: found.error_mean,
            // A share of nothing has no value.
            error_share: (found.trace_mean > 0.0).then(|| found.error_share()),
            error_max: found.error_max,
            bias: found.bias,
            distance: found.distance,
        }
    }
}

/// Verdict: did the replay keep the property of its pace?
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PaceVerdict {
    /// True for a faithful replay; `None` if the pace promises nothing measurable.
    pub faithful: Option<bool>,
    /// Verdict in words.
    pub says: String,
}

/// Result of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayReport {
    /// Path of the trace.
    pub trace: String,
    /// Name of the target.
    pub target: String,
    /// Size of the target, in 10^9 bytes.
    pub target_gb: f64,
    /// Way of requests to the kernel.
    pub io: IoMethod,
    /// Number of threads that issue and wait for their calls; absent for other ways.
    pub threads: Option<u32>,
    /// Name of the pace.
    pub pace: String,
    /// Factor on the trace's times.
    pub time_scale: f64,
    /// Number of issued requests.
    pub requests: u64,
    /// Number of requests of the trace omitted by the options.
    pub left_out: u64,
    /// Number of requests widened beyond the trace's extent, because of the device's blocks.
    pub widened: u64,
    /// Number of tolerated failures.
    pub errors: u64,
    /// True if the replay ended before the end of the trace.
    pub interrupted: bool,
    /// Time from the first issue to the last, in s.
    pub duration_s: f64,
    /// Time from the first arrival to the last in the trace, scaled, in s.
    pub scheduled_s: f64,
    /// Time from the scheduled instant of a request to its issue to the kernel, in us.
    pub issue_error_us: ReplayDistribution,
    /// Growth of the issue error per second, in us.
    pub drift_us_per_s: f64,
    /// Error of the arrivals in each second, as a share of the trace's arrivals.
    pub rate_error_share: f64,
    /// Error of the mean gap between requests in each second, in us.
    pub gap_error_us: f64,
    /// Error of the mean gap as a share of the mean gap, averaged over requests.
    pub gap_error_share: f64,
    /// Signed error of the mean gap in each second; above 0 if gaps were longer in the replay.
    pub gap_seconds: GapSeconds,
    /// Distribution of gaps between consecutive requests.
    pub gaps: Vec<GapShare>,
    /// Number of outstanding requests; absent if the trace has no completions.
    pub outstanding: Option<OutstandingReport>,
    /// Time of a call that submits to the kernel or to threads, in us. One call may hold several
    /// requests. The value is 0 for threads that wait for their calls.
    pub submission_us: ReplayDistribution,
    /// Results by kind of request.
    pub operations: Vec<OperationReport>,
    /// Mean gap between requests issued one by one, by calibration, in us. For threads that wait,
    /// the time of a call for the first block.
    pub issue_gap_us: f64,
    /// Median time from handing a request to a thread until its issue to the kernel, by
    /// calibration, in us; 0 with io_uring, and for threads that take requests themselves.
    pub hand_over_us: f64,
    /// Number of requests closer to the one before than `issue_gap_us`.
    pub below_issue_gap: u64,
    /// Time before an instant at which the replay began to spin, in us.
    pub spin_us: f64,
    /// Verdict on the replay.
    pub verdict: PaceVerdict,
    /// Conditions of the replay.
    pub conditions: Vec<String>,
    /// Notes on flaws of the trace and on delays.
    pub notes: Vec<String>,
    /// Result of fio on the same requests, if requested.
    pub fio: Option<FioReplay>,
}

impl ReplayReport {
    /// Creates the report with the values known beforehand.
    pub(crate) fn begin(
        options: &ReplayOptions,
        target: &crate::target::Target,
        prepared: &Prepared,
        io: IoMethod,
        calibration: Calibration,
    ) -> ReplayReport {
        ReplayReport {
            trace: options.trace.display().to_string(),
            target: target.name.clone(),
            target_gb: target.capacity.bytes().0 as f64 / 1e9,
            io,
            threads: options.threads,
            pace: options.rules.pace.name().to_owned(),
            time_scale: options.rules.scale,
            requests: 0,
            left_out: prepared.left_out,
            widened: prepared.widened,
            errors: 0,
            interrupted: false,
            duration_s: 0.0,
            scheduled_s: 0.0,
            issue_error_us: ReplayDistribution::default(),
            drift_us_per_s: 0.0,
            rate_error_share: 0.0,
            gap_error_us: 0.0,
            gap_error_share: 0.0,
            gap_seconds: GapSeconds::default(),
            gaps: Vec::new(),
            outstanding: None,
            submission_us: ReplayDistribution::default(),
            operations: Vec::new(),
            issue_gap_us: calibration.issue_gap.as_nanos() as f64 / 1e3,
            hand_over_us: calibration.hand_over.as_nanos() as f64 / 1e3,
            below_issue_gap: prepared.below_issue_gap,
            spin_us: calibration.spin.as_nanos() as f64 / 1e3,
            verdict: PaceVerdict {
                faithful: None,
                says: String::new(),
            },
            conditions: Vec::new(),
            notes: prepared.notes.clone(),
            fio: None,
        }
    }

    /// Adds the measured values.
    pub(crate) fn measured(&mut self, tally: &ReplayTally, dispatcher: &Dispatcher) {
        self.requests = tally.issued;
        self.duration_s = tally.span().as_secs_f64();
        self.scheduled_s = tally.scheduled_span().as_secs_f64();
        self.issue_error_us = tally.issue_error_us();
        self.submission_us = tally.submission_us();
        self.drift_us_per_s = tally.drift_us_per_s();
        self.rate_error_share = tally.rate_error_share();
        (self.gap_error_us, self.gap_error_share) = tally.gap_error();
        self.gap_seconds = tally.gap_seconds();
        self.gaps = tally.gaps();
        self.outstanding = dispatcher
            .conformity()
            .and_then(|found| found.outstanding())
            .map(Into::into);
        self.operations = tally.operations();
    }

    /// Returns the verdict: true if the replay kept the property of its pace.
    pub(crate) fn judge(&self, options: &ReplayOptions) -> PaceVerdict {
        let mut lacks = Vec::new();
        match options.rules.pace {
            ReplayPace::Timing => self.judge_timing(options, &mut lacks),
            ReplayPace::Load => self.judge_load(options, &mut lacks),
            // Flaws below would not matter either: there is no promise that they could break.
            ReplayPace::AsFast | ReplayPace::Closed => {
                let says =
                    "by order alone: the times and the load of the trace are not replayed, so response times belong to another load"
                        .to_owned();
                return PaceVerdict {
                    faithful: None,
                    says,
                };
            }
        }
        let flaws = [
            (
                options.buffered,
                "the page cache stood before the device".to_owned(),
            ),
            (
                self.interrupted,
                "the replay was ended before the end of the trace".to_owned(),
            ),
            (self.errors > 0, format!("{} requests failed", self.errors)),
        ];
        lacks.extend(
            flaws
                .into_iter()
                .filter_map(|(is_so, flaw)| is_so.then_some(flaw)),
        );
        let kept = self.kept(options);
        if lacks.is_empty() {
            return PaceVerdict {
                faithful: Some(true),
                says: format!("faithful in {kept}"),
            };
        }
        PaceVerdict {
            faithful: Some(false),
            says: format!("not faithful in {kept}: {}", lacks.join("; ")),
        }
    }

    /// Returns the promised property with its bounds.
    fn kept(&self, options: &ReplayOptions) -> String {
        let percent = options.error_share_max * 100.0;
        let of = if self.left_out > 0 {
            " of the requests that were not left out"
        } else {
            ""
        };
        match options.rules.pace {
            ReplayPace::Load => format!("load{of} (outstanding within {percent} % of the trace's)"),
            _ => format!(
                "time{of} (99 of 100 issued within {} of their time, rates and gaps of each second within {percent} %)",
                options.issue_error_max
            ),
        }
    }

    fn judge_timing(&self, options: &ReplayOptions, lacks: &mut Vec<String>) {
        let bound_us = options.issue_error_max.as_nanos() as f64 / 1e3;
        let most = options.error_share_max;
        let drift_us = self.drift_us_per_s * self.duration_s;
        let flaws = [
            (
                self.issue_error_us.p99 > bound_us,
                format!("99 of 100 within {:.1} us", self.issue_error_us.p99),
            ),
            (
                // The drift over the whole replay, because a small growth a second adds up to
                // minutes in a trace of days.
                drift_us.abs() > bound_us,
                format!("drift of {drift_us:.0} us"),
            ),
            (
                self.rate_error_share > most,
                format!("rates are off by {:.1} %", self.rate_error_share * 100.0),
            ),
            (
                self.gap_error_share > most,
                format!("gaps are off by {:.1} %", self.gap_error_share * 100.0),
            ),
        ];
        lacks.extend(
            flaws
                .into_iter()
                .filter_map(|(is_so, flaw)| is_so.then_some(flaw)),
        );
    }

    fn judge_load(&self, options: &ReplayOptions, lacks: &mut Vec<String>) {
        let Some(outstanding) = &self.outstanding else {
            // A trace without completions has no load to keep; `prepared.rs` refuses this pace for
            // such a trace.
            return;
        };
        if outstanding.error_mean > options.error_share_max * outstanding.trace_mean {
            lacks.push(format!(
                "outstanding is off by {:.3} on average, the trace has {:.3}",
                outstanding.error_mean, outstanding.trace_mean
            ));
        }
    }
}

impl ReplayReport {
    /// Writes the two distributions of gaps at some points.
    fn show_gaps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |point: &&GapShare| {
            SHOWN_SHARES
                .iter()
                // The shares are decimal fractions, which binary numbers do not hold exactly.
                .any(|share| (share - point.share).abs() < 1e-9)
        };
        let points: Vec<&GapShare> = self.gaps.iter().filter(shown).collect();
        let row =
            |f: &mut fmt::Formatter<'_>, name: &str, of: fn(&GapShare) -> f64, digits: usize| {
                write!(f, "{name:27}")?;
                points
                    .iter()
                    .try_for_each(|point| write!(f, "{:>9.digits$}", of(point)))?;
                writeln!(f)
            };
        writeln!(f)?;
        row(f, " gaps: of 100, so many", |point| point.share * 100.0, 0)?;
        row(f, "   up to (us), the trace", |point| point.trace_us, 1)?;
        row(f, "   as issued", |point| point.here_us, 1)
    }

    /// Writes the duration beside the trace's duration, and the numbers of changed requests.
    fn show_duration(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stretch = (self.duration_s / self.scheduled_s - 1.0) * 100.0;
        write!(
            f,
            " duration     {:.3} s; the trace {:.3} s",
            self.duration_s, self.scheduled_s
        )?;
        if self.scheduled_s > 0.0 {
            write!(f, " ({stretch:+.3} %)")?;
        }
        if self.time_scale != 1.0 {
            write!(f, ", scaled by {}", self.time_scale)?;
        }
        writeln!(f)?;
        for (count, what) in [
            (self.left_out, "requests were left out"),
            (self.widened, "requests were extended to whole blocks"),
            (self.errors, "requests failed, and were tolerated"),
        ] {
            if count > 0 {
                writeln!(f, "              {count} {what}")?;
            }
        }
        Ok(())
    }

    /// Writes the times of issue and of response, one line each.
    fn show_times(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:27}      mean       p50       p99     p99.9       max",
            ""
        )?;
        let spread = |f: &mut fmt::Formatter<'_>, name: &str, spread: &ReplayDistribution| {
            let ReplayDistribution {
                mean,
                p50,
                p99,
                p999,
                max,
            } = spread;
            writeln!(
                f,
                " {name:26}{mean:>10.3}{p50:>10.3}{p99:>10.3}{p999:>10.3}{max:>10.3}"
            )
        };
        spread(f, "issue error us", &self.issue_error_us)?;
        // Threads that wait have no submission apart from the call itself.
        if self.threads.is_none() {
            spread(f, "submission us", &self.submission_us)?;
        }
        for operation in &self.operations {
            spread(
                f,
                &format!("{} ms ({})", operation.operation, operation.requests),
                &operation.response_ms,
            )?;
        }
        Ok(())
    }
}

/// Points of the distributions of gaps in the text form; JSON has more points.
const SHOWN_SHARES: [f64; 8] = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99];

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReplayReport {
            trace,
            target,
            pace,
            requests,
            ..
        } = self;
        writeln!(
            f,
            "{trace} on {target} ({:.1} GB), by {pace}: {requests} requests\n",
            self.target_gb
        )?;
        self.show_duration(f)?;
        writeln!(f, " drift        {:+.3} us a second", self.drift_us_per_s)?;
        writeln!(
            f,
            " rate         off by {:.2} % in each second; gaps by {:.1} us, {:.2} %",
            self.rate_error_share * 100.0,
            self.gap_error_us,
            self.gap_error_share * 100.0
        )?;
        match &self.outstanding {
            None => writeln!(
                f,
                " outstanding  not known of the trace, which has no completions"
            )?,
            Some(found) => writeln!(f, " outstanding  {found}")?,
        }
        self.show_gaps(f)?;
        self.show_times(f)?;
        writeln!(f)?;
        for condition in &self.conditions {
            writeln!(f, " {condition}")?;
        }
        for note in &self.notes {
            writeln!(f, " note: {note}")?;
        }
        write!(f, "\n{}", self.verdict.says)?;
        self.fio
            .as_ref()
            .map_or(Ok(()), |fio| write!(f, "\n\n{fio}"))
    }
}

impl fmt::Display for OutstandingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutstandingReport {
            mean,
            p90,
            trace_mean,
            trace_p90,
            error_mean,
            error_max,
            ..
        } = self;
        write!(
            f,
            "{mean:.3} (nine in ten up to {p90}); the trace {trace_mean:.3} ({trace_p90}): off by "
        )?;
        write!(f, "{error_mean:.3} a request")?;
        if let Some(share) = self.error_share {
            write!(f, ", {:.1} %", share * 100.0)?;
        }
        write!(f, ", at most {error_max}")
    }
}

impl fmt::Display for FioReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FioReplay {
            version,
            requests,
            duration_s,
            scheduled_s,
            issue_error_us: error,
            ..
        } = self;
        write!(
            f,
            "{version} on the same requests, of which its log has {requests}: {duration_s:.3} s"
        )?;
        // Requests that all arrive at once have no scheduled span.
        if *scheduled_s > 0.0 {
            write!(f, " ({:+.3} %)", (duration_s / scheduled_s - 1.0) * 100.0)?;
        }
        write!(
            f,
            ", drift {:+.0} us a second; \
             late, to a millisecond, by {:.1} ms (median), {:.1} (99 in 100), {:.1} (most)",
            self.drift_us_per_s,
            error.p50 / 1e3,
            error.p99 / 1e3,
            error.max / 1e3
        )
    }
}
