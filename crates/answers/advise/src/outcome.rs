//! Outcome of a run in comparison with the wishes.

use crate::Wishes;
use fullstroke_lab::RunResult;
use fullstroke_measure::{
    BEYOND_MIN, Metric, Report, StreamReport, StreamsReport, half_width_over_seeds, number,
};
use serde::{Deserialize, Deserializer, Serialize};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// Requests of a run with an interval of the 99th percentile: 10 beyond in each of 10 batches.
const REQUESTS_FOR_P99: f64 = 10_000.0;

/// Share of the streams that may pause with a failed or slow drive and during a rebuild, without a wish
/// for it.
const PAUSED_SHARE: f64 = 0.01;

/// Returns the number of streams with a pause.
fn paused(streams: &StreamsReport) -> u64 {
    let pauses = |one: &&StreamReport| one.underruns > 0 || one.start_up_ms.is_none();
    (streams.each.iter().filter(pauses).count() + streams.with_overruns) as u64
}

/// Outcome of an array in one condition.
///
/// An outcome may come from another worker of a page as JSON, so it can be read too. A number without
/// a measurement is NaN, `null` in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ArrayOutcome {
    /// Mean response time, in ms.
    #[serde(deserialize_with = "number_or_nan")]
    pub mean_ms: f64,
    /// 99th percentile of the response time, in ms.
    #[serde(deserialize_with = "number_or_nan")]
    pub p99_ms: f64,
    /// 99.9th percentile of the response time, in ms.
    pub p999_ms: f64,
    /// Bytes read and written, in 10^6 bytes per second.
    #[serde(deserialize_with = "number_or_nan")]
    pub mb_per_s: f64,
    /// Mean power of all drives, in watts; `None` without power figures.
    pub mean_w: Option<f64>,
    /// Carried share of the load, 0 to 1.
    #[serde(deserialize_with = "number_or_nan")]
    pub carried_share: f64,
    /// True if every request was served.
    pub complete: bool,
    /// Underruns of all runs; `None` unless the load consists of streams.
    pub underruns: Option<u64>,
    /// Streams of all runs with a pause: viewers who waited for a byte or never played, and
    /// recordings that lost data.
    #[serde(default)]
    pub paused_streams: Option<u64>,
    /// Streams of all runs, with the recordings.
    #[serde(default)]
    pub started_streams: Option<u64>,
    /// Hours until a new member is rebuilt while the load runs.
    pub rebuild_hours: Option<f64>,
    /// Half the width of the 95 % confidence interval of `rebuild_hours`.
    pub rebuild_hours_ci95_half_width: Option<f64>,
    /// Share of the member that was rebuilt in the simulation.
    pub rebuild_simulated_share: Option<f64>,
    /// Number of reads and writes of one run.
    pub requests: u64,
    /// Number of requests beyond `p99_ms`, over all runs.
    pub p99_beyond: u64,
    /// Number of requests beyond `p999_ms`, over all runs.
    pub p999_beyond: u64,
    /// Half the width of the 95 % confidence interval of `p99_ms`; `None` if the runs are too short.
    pub p99_ci95_half_width: Option<f64>,
    /// Half the width of the 95 % confidence interval of `mb_per_s`.
    pub mb_per_s_ci95_half_width: Option<f64>,
    /// True if response times grow with the length of the load.
    pub grows: bool,
}

/// Reads a number; `null` is NaN.
fn number_or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// A wish whose result may be chance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DoubtfulWish {
    /// Key of the wish.
    pub wish: &'static str,
    /// Condition of the array.
    pub condition: Condition,
    /// Reason of the doubt, in words.
    pub why: String,
    /// Factor by which the runs are too short.
    pub too_short_by: f64,
}

/// A missed wish.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissedWish {
    /// Key of the wish.
    pub wish: &'static str,
    /// Actual value, in words.
    pub why: String,
    /// Condition of the miss.
    pub condition: Condition,
}

/// The condition of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// All drives are there.
    Healthy,
    /// One drive has failed.
    Degraded,
    /// One drive is new, and a rebuild runs.
    Rebuilding,
    /// One drive is slow without failing.
    Slow,
}

impl Condition {
    /// Returns the begin of a sentence about this condition.
    fn when(self) -> &'static str {
        match self {
            Condition::Healthy => "",
            Condition::Degraded => "with a failed drive ",
            Condition::Rebuilding => "during a rebuild ",
            Condition::Slow => "with a slow drive ",
        }
    }
}

impl MissedWish {
    /// Returns the miss of an array without redundancy when a drive fails.
    pub(crate) fn lost() -> MissedWish {
        let why = "a failed drive loses data".to_owned();
        MissedWish {
            wish: "data",
            why,
            condition: Condition::Degraded,
        }
    }

    /// Returns the wish and the condition of the miss as short text.
    pub fn in_short(&self) -> String {
        match self.condition {
            Condition::Healthy => self.wish.to_owned(),
            Condition::Degraded => format!("{} (one failed)", self.wish),
            Condition::Rebuilding => format!("{} (rebuilding)", self.wish),
            Condition::Slow => format!("{} (one slow)", self.wish),
        }
    }
}

impl ArrayOutcome {
    /// Creates the outcome of one candidate: means over its runs, one per seed, and the underruns
    /// of all runs.
    pub(crate) fn new(ran: &[RunResult]) -> ArrayOutcome {
        let reports = || ran.iter().map(|ran| &ran.measured.report);
        // With one seed the mean equals the value exactly, to the bit.
        let mean = |of: &dyn Fn(&Report) -> f64| reports().map(of).sum::<f64>() / ran.len() as f64;
        let all = |of: &dyn Fn(&Report) -> Option<f64>| {
            // A mean over a part of the seeds would compare candidates over different requests.
            let known: Option<Vec<f64>> = reports().map(of).collect();
            known.map(|known| known.iter().sum::<f64>() / known.len() as f64)
        };
        let streams = |of: &dyn Fn(&StreamsReport) -> u64| {
            let known = reports().map(|report| report.streams.as_ref().map(of));
            known.sum::<Option<u64>>()
        };
        ArrayOutcome {
            mean_ms: mean(&|report| report.times.response_ms.mean),
            p99_ms: mean(&|report| report.times.response_ms.p99),
            p999_ms: mean(&|report| report.times.response_ms.p999),
            mb_per_s: mean(&|report| report.rates.mb_per_s),
            mean_w: all(&|report| report.array.energy.as_ref().map(|energy| energy.mean_w)),
            carried_share: mean(&|report| {
                report
                    .arrived
                    .overload
                    .as_ref()
                    .map_or(1.0, |overload| overload.carried_share)
            }),
            complete: ran.iter().all(|ran| {
                ran.measured.report.arrived.completed == ran.measured.report.arrived.requests
            }),
            underruns: streams(&|streams| streams.underruns),
            paused_streams: streams(&paused),
            started_streams: streams(&|streams| (streams.started + streams.recordings) as u64),
            rebuild_hours: all(&|report| {
                report.array.rebuild.as_ref().map(|rebuild| rebuild.hours)
            }),
            rebuild_hours_ci95_half_width: all(&|report| {
                let rebuild = report.array.rebuild.as_ref()?;
                rebuild.hours_ci95_half_width
            }),
            rebuild_simulated_share: all(&|report| {
                let rebuild = report.array.rebuild.as_ref()?;
                Some(rebuild.simulated_share)
            }),
            requests: reports()
                // The smallest count of all seeds, because a doubt asks whether each run is long
                // enough.
                .map(|one| one.times.response_ms.count)
                .min()
                .unwrap_or(0),
            p99_beyond: reports()
                // The sum, because the mean over seeds rests on the requests beyond each
                // percentile.
                .map(|one| one.times.response_ms.beyond(0.99))
                .sum(),
            p999_beyond: reports()
                .map(|one| one.times.response_ms.beyond(0.999))
                .sum(),
            p99_ci95_half_width: half_width(ran, Metric::RESPONSE_P99),
            mb_per_s_ci95_half_width: half_width(ran, Metric::MB_PER_S),
            grows: reports().any(Report::grows),
        }
    }

    /// Returns the distance from the wishes about work: the sum of the missing amounts, each as a
    /// share of the wish. Streams count with the share that pauses. Zero if all wishes are met.
    pub(crate) fn shortfall(&self, wishes: &Wishes) -> f64 {
        // At least 0: an excess does not make up for another wish that is missed.
        let over = |is: f64, wished: f64| (is / wished - 1.0).max(0.0);
        let p99 = wishes
            .p99
            .map_or(0.0, |wished| over(self.p99_ms, wished.as_millis_f64()));
        let mb_per_s = wishes
            .mb_per_s
            .map_or(0.0, |wished| (1.0 - self.mb_per_s / wished).max(0.0));
        let watts = wishes
            .watts
            .zip(self.mean_w)
            .map_or(0.0, |(wished, watts)| over(watts, wished));
        let streams = wishes.streams.and(self.paused_share()).unwrap_or(0.0);
        p99 + mb_per_s + watts + streams + over(1.0, self.carried_share)
    }

    /// Returns the share of the streams with a pause; `None` unless the load consists of streams.
    pub fn paused_share(&self) -> Option<f64> {
        let (paused, started) = self.paused_streams.zip(self.started_streams)?;
        Some(paused as f64 / started.max(1) as f64)
    }

    /// Returns how often streams pause, if the wish for streams is missed. With all drives no stream
    /// may pause. Without a drive one pause of one viewer says little about the array, so the share of
    /// the viewers decides.
    fn pauses_too_often(&self, wishes: &Wishes, condition: Condition) -> Option<String> {
        let paused = self.paused_streams.filter(|paused| *paused > 0)?;
        let started = self.started_streams.unwrap_or(0);
        let most = match condition {
            Condition::Healthy => 0.0,
            _ => wishes.paused_share.unwrap_or(PAUSED_SHARE),
        };
        let share = self.paused_share().filter(|share| *share > most)?;
        let what = match self.underruns {
            Some(0) | None => String::new(),
            Some(1) => "1 underrun: ".to_owned(),
            Some(underruns) => format!("{underruns} underruns: "),
        };
        let wished = match condition {
            Condition::Healthy => String::new(),
            _ => format!(
                " ({} %, wished {} %)",
                number(100.0 * share),
                number(100.0 * most)
            ),
        };
        Some(format!("{what}{paused} of {started} streams pause{wished}"))
    }

    /// Returns the missed wishes about work in a condition.
    pub(crate) fn misses(&self, wishes: &Wishes, condition: Condition) -> Vec<MissedWish> {
        let mut misses = Vec::new();
        let when = condition.when();
        let mut miss = |wish, why: String| {
            misses.push(MissedWish {
                wish,
                why: format!("{when}{why}"),
                condition,
            })
        };
        if !self.complete {
            miss("load", "some requests touch data that are lost".to_owned());
        }
        if self.carried_share < 1.0 {
            miss(
                "load",
                format!(
                    "it keeps up with only {} of the load",
                    number(self.carried_share)
                ),
            );
        }
        if let Some(wished) = wishes
            .p99
            .map(|p99| p99.as_millis_f64())
            .filter(|wished| self.p99_ms > *wished)
        {
            // With as many digits as distinguish both, so that no sentence says "250 ms, wished 250
            // ms".
            let [is, wished] = apart([self.p99_ms, wished]);
            miss(
                "p99",
                format!("the 99th percentile is {is} ms, wished {wished} ms"),
            );
        }
        if wishes.streams.is_some()
            && let Some(why) = self.pauses_too_often(wishes, condition)
        {
            miss("streams", why);
        }
        if let Some(wished) = wishes.mb_per_s.filter(|wished| self.mb_per_s < *wished) {
            let [is, wished] = apart([self.mb_per_s, wished]);
            miss("mb_per_s", format!("{is} MB/s, wished {wished} MB/s"));
        }
        if let (Some(wished), Some(watts)) = (wishes.watts, self.mean_w)
            && watts > wished
        {
            let [is, wished] = apart([watts, wished]);
            miss("watts", format!("its drives use {is} W, wished {wished} W"));
        }
        misses
    }
}

/// Returns half the width of the interval of a metric over the runs of one candidate: over seeds if
/// the seeds change the value, else within the run.
fn half_width(ran: &[RunResult], metric: Metric) -> Option<f64> {
    let values: Vec<f64> = ran
        .iter()
        .map(|ran| metric.value(&ran.measured.report))
        .collect();
    match values.iter().any(|value| *value != values[0]) {
        true => half_width_over_seeds(&values, CONFIDENCE),
        false => ran.first()?.measured.half_width(metric, CONFIDENCE),
    }
}

impl ArrayOutcome {
    /// Returns the wishes whose result in this condition may be chance: a value within its interval
    /// of the wish, or a run that is too short for an interval.
    pub(crate) fn doubts(&self, wishes: &Wishes, condition: Condition) -> Vec<DoubtfulWish> {
        let mut doubts = Vec::new();
        // A load beyond the drives misses its wishes whatever the length of the run.
        if self.grows || !self.complete || self.carried_share < 1.0 {
            return doubts;
        }
        let mut doubt = |wish, why: String, too_short_by: f64| {
            doubts.push(DoubtfulWish {
                wish,
                condition,
                why: format!("{}{why}", condition.when()),
                too_short_by,
            });
        };
        if let Some(wished) = wishes.p99.map(|p99| p99.as_millis_f64()) {
            let needed = REQUESTS_FOR_P99 / self.requests.max(1) as f64;
            let p99 = number(self.p99_ms);
            match self.p99_ci95_half_width {
                _ if self.p99_beyond < BEYOND_MIN => {
                    let lie = if self.p99_beyond == 1 {
                        "request lies"
                    } else {
                        "requests lie"
                    };
                    doubt(
                        "p99",
                        format!(
                            "only {} {lie} beyond the 99th percentile of {p99} ms",
                            self.p99_beyond
                        ),
                        needed,
                    );
                }
                Some(half_width) if (self.p99_ms - wished).abs() <= half_width => doubt(
                    "p99",
                    format!(
                        "the 99th percentile of {p99} ± {} ms does not tell whether {} ms are kept",
                        number(half_width),
                        number(wished)
                    ),
                    longer_to_tell(half_width, self.p99_ms - wished),
                ),
                None if needed > 1.0 => doubt(
                    "p99",
                    format!(
                        "{} requests beyond the 99th percentile of {p99} ms give no interval",
                        self.p99_beyond
                    ),
                    needed,
                ),
                _ => {}
            }
        }
        if let (Some(wished), Some(half_width)) = (wishes.mb_per_s, self.mb_per_s_ci95_half_width)
            && (self.mb_per_s - wished).abs() <= half_width
        {
            doubt(
                "mb_per_s",
                format!(
                    "the throughput of {} ± {} MB/s does not tell whether {} MB/s are reached",
                    number(self.mb_per_s),
                    number(half_width),
                    number(wished)
                ),
                longer_to_tell(half_width, self.mb_per_s - wished),
            );
        }
        doubts
    }
}

/// Returns the factor by which a run must be longer until an interval excludes a limit at this
/// distance: the width shrinks with the root of the length.
fn longer_to_tell(half_width: f64, distance: f64) -> f64 {
    (half_width / distance).powi(2).clamp(1.0, 1e6)
}

/// Returns two different numbers with enough digits to show the difference.
fn apart(numbers: [f64; 2]) -> [String; 2] {
    let shown: [fn(f64) -> String; 3] = [
        number,
        |value| format!("{value:.3}"),
        |value| value.to_string(),
    ];
    let pairs = shown.map(|digits| numbers.map(digits));
    let different = pairs.iter().find(|[one, other]| one != other);
    different.unwrap_or(&pairs[0]).clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Duration;

    fn outcome(requests: u64, p99_ms: f64, half_width: Option<f64>) -> ArrayOutcome {
        ArrayOutcome {
            p99_ms,
            carried_share: 1.0,
            complete: true,
            requests,
            p99_beyond: requests / 100,
            p99_ci95_half_width: half_width,
            ..ArrayOutcome::default()
        }
    }

    fn doubts(outcome: &ArrayOutcome) -> Vec<DoubtfulWish> {
        let wishes = Wishes {
            p99: Some(Duration::from_millis_f64(50.0)),
            ..Wishes::default()
        };
        outcome.doubts(&wishes, Condition::Healthy)
    }

    #[test]
    fn one_viewer_of_many_may_pause_without_a_drive_and_none_with_all_drives() {
        let streams = |paused: u64| ArrayOutcome {
            underruns: Some(3 * paused),
            paused_streams: Some(paused),
            started_streams: Some(500),
            ..outcome(10_000, 5.0, None)
        };
        let missed = |paused: u64, share: Option<f64>, condition: Condition| {
            let wishes = Wishes {
                streams: Some(100),
                paused_share: share,
                ..Wishes::default()
            };
            let misses = streams(paused).misses(&wishes, condition);
            misses.first().map(|miss| miss.why.clone())
        };
        assert_eq!(missed(0, None, Condition::Healthy), None);
        let healthy = missed(1, None, Condition::Healthy).unwrap();
        assert_eq!(healthy, "3 underruns: 1 of 500 streams pause");
        assert_eq!(missed(5, None, Condition::Degraded), None);
        let degraded = missed(6, None, Condition::Degraded).unwrap();
        assert!(
            degraded.contains("6 of 500 streams pause (1.20 %, wished 1.00 %)"),
            "{degraded}"
        );
        assert_eq!(missed(6, Some(0.02), Condition::Rebuilding), None);
        assert!(missed(1, Some(0.0), Condition::Rebuilding).is_some());
    }

    #[test]
    fn three_requests_beyond_a_percentile_prove_no_wish() {
        let found = doubts(&outcome(320, 26.7, None));
        assert!(
            found[0].why.contains("only 3 requests lie beyond") && found[0].too_short_by > 30.0,
            "{found:?}"
        );
        // Enough requests for a value, but not for an interval.
        assert_eq!(doubts(&outcome(5_000, 26.7, None))[0].too_short_by, 2.0);
        assert!(doubts(&outcome(100_000, 26.7, Some(1.0))).is_empty());
    }

    #[test]
    fn a_value_near_the_wish_is_in_doubt_on_both_sides() {
        for p99_ms in [48.0, 52.0] {
            let found = doubts(&outcome(100_000, p99_ms, Some(4.0)));
            assert!((found[0].too_short_by - 4.0).abs() < 1e-9, "{found:?}");
        }
        // An overloaded array misses the wish whatever the length of the run.
        let grows = ArrayOutcome {
            grows: true,
            ..outcome(320, 900.0, None)
        };
        assert!(doubts(&grows).is_empty());
    }
}
