//! Outcome of a run in comparison with the wishes.

use crate::Wishes;
use fullstroke_lab::RunResult;
use fullstroke_measure::{Report, number, three_digits};
use serde::Serialize;

/// Outcome of an array in one condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ArrayOutcome {
    /// Mean response time, in ms.
    pub mean_ms: f64,
    /// 99th percentile of the response time, in ms.
    pub p99_ms: f64,
    /// Bytes read and written, in 10^6 bytes per second.
    pub mb_per_s: f64,
    /// Mean power of all drives, in watts; `None` without power figures.
    pub mean_w: Option<f64>,
    /// Carried share of the load, 0 to 1.
    pub carried_share: f64,
    /// True if every request was served.
    pub complete: bool,
    /// Underruns of all runs; `None` unless the load consists of streams.
    pub underruns: Option<u64>,
    /// Hours until a new member is rebuilt while the load runs.
    pub rebuild_hours: Option<f64>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// All drives are there.
    Healthy,
    /// One drive has failed.
    Degraded,
    /// One drive is new, and a rebuild runs.
    Rebuilding,
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
            let known: Option<Vec<f64>> = reports().map(of).collect();
            known.map(|known| known.iter().sum::<f64>() / known.len() as f64)
        };
        let underruns = |ran: &RunResult| {
            ran.measured
                .report
                .streams
                .as_ref()
                .map(|streams| streams.underruns)
        };
        ArrayOutcome {
            mean_ms: mean(&|report| report.times.response_ms.mean),
            p99_ms: mean(&|report| report.times.response_ms.p99),
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
            underruns: ran.iter().map(underruns).sum(),
            rebuild_hours: all(&|report| {
                report.array.rebuild.as_ref().map(|rebuild| rebuild.hours)
            }),
        }
    }

    /// Returns the distance from the wishes about work: the sum of the missing amounts, each as a
    /// share of the wish. Streams count with the underruns per stream. Zero if all wishes are met.
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
        let streams = wishes.streams.zip(self.underruns);
        let streams = streams.map_or(0.0, |(count, underruns)| {
            // The wish may be 0 streams.
            underruns as f64 / f64::from(count.max(1))
        });
        p99 + mb_per_s + watts + streams + over(1.0, self.carried_share)
    }

    /// Returns the missed wishes about work in a condition.
    pub(crate) fn misses(&self, wishes: &Wishes, condition: Condition) -> Vec<MissedWish> {
        let mut misses = Vec::new();
        let when = match condition {
            Condition::Healthy => "",
            Condition::Degraded => "with a failed drive ",
            Condition::Rebuilding => "during a rebuild ",
        };
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
                    three_digits(self.carried_share)
                ),
            );
        }
        if let Some(wished) = wishes
            .p99
            .map(|p99| p99.as_millis_f64())
            .filter(|wished| self.p99_ms > *wished)
        {
            let [is, wished] = apart([self.p99_ms, wished]);
            miss(
                "p99",
                format!("the 99th percentile is {is} ms, wished {wished} ms"),
            );
        }
        if let (Some(streams), Some(underruns)) =
            (wishes.streams, self.underruns.filter(|count| *count > 0))
        {
            miss(
                "streams",
                format!("{underruns} underruns with {streams} streams"),
            );
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

/// Returns two different numbers with enough digits to show the difference.
fn apart(numbers: [f64; 2]) -> [String; 2] {
    let shown: [fn(f64) -> String; 3] = [three_digits, number, |value| value.to_string()];
    let pairs = shown.map(|digits| numbers.map(digits));
    let different = pairs.iter().find(|[one, other]| one != other);
    different.unwrap_or(&pairs[0]).clone()
}
