//! `--fail-unless`: conditions on an answer, and the exit status.

use crate::output::{CommandFailure, print_error};
use clap::Args;
use fullstroke_contract::{Reason, reason};
use fullstroke_lab::Ranked;
use fullstroke_measure::{BEYOND_MIN, Metric, number};
use fullstroke_units::Duration;
use std::str::FromStr;

/// Option with conditions on an answer.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FailUnless {
    /// Exit with status 1 unless this holds, as in 'p99<=50ms' or 'energy.mean_w<45' (may be
    /// repeated). `compare` requires the condition of every candidate, `advise` of the recommended
    /// array with all drives. Status 3 if the run is too short to tell.
    #[arg(long, value_name = "CONDITION")]
    fail_unless: Vec<Requirement>,
}

/// A metric with a limit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Requirement {
    text: String,
    metric: Metric,
    relation: Relation,
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// Result of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Holds,
    /// The interval of the value contains the limit, or the value has too few requests beyond.
    Unsure,
    Fails,
}

/// Relations by their signs. A sign stands before the signs that begin alike.
const RELATIONS: [(&str, Relation); 4] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Below),
    (">", Relation::Above),
];

/// Short names of response times over reads and writes.
const SHORT: [&str; 7] = ["mean", "p50", "p90", "p95", "p99", "p999", "max"];

/// Factors of the units of a limit, for metrics in that unit. Times are read by their own units.
const UNITS: [(&str, f64); 6] = [
    ("%", 0.01),
    ("W", 1.0),
    ("J", 1.0),
    ("MB/s", 1.0),
    ("KiB", 1.0),
    ("h", 1.0),
];

impl FailUnless {
    /// Returns the metrics of the conditions.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = Metric> + '_ {
        self.fail_unless
            .iter()
            .map(|requirement| requirement.metric)
    }

    /// Checks all conditions for all candidates. The results stand on standard error, because
    /// standard output is for the answer.
    ///
    /// # Errors
    /// A condition fails, or cannot be told.
    pub(crate) fn check<'a>(
        &self,
        ranked: impl Iterator<Item = &'a Ranked> + Clone,
    ) -> Result<(), CommandFailure> {
        let mut worst = Verdict::Holds;
        for requirement in &self.fail_unless {
            let mut checked = false;
            for one in ranked.clone() {
                checked = true;
                let (verdict, why) = requirement.of(one);
                if verdict != Verdict::Holds {
                    let how = if verdict == Verdict::Fails {
                        "fails"
                    } else {
                        "cannot be told"
                    };
                    print_error(&format!(
                        "--fail-unless {}: {how} for {}: {why}",
                        requirement.text,
                        one.label()
                    ));
                }
                worst = match (worst, verdict) {
                    (Verdict::Fails, _) | (_, Verdict::Fails) => Verdict::Fails,
                    (Verdict::Unsure, _) | (_, Verdict::Unsure) => Verdict::Unsure,
                    _ => Verdict::Holds,
                };
            }
            // Without a candidate nothing is shown to hold.
            if !checked {
                worst = Verdict::Fails;
            }
        }
        match worst {
            Verdict::Holds => Ok(()),
            Verdict::Fails => Err(CommandFailure::Checks),
            Verdict::Unsure => Err(CommandFailure::Undecided),
        }
    }
}

impl Requirement {
    /// Returns the verdict on a candidate, and the reason.
    fn of(&self, ranked: &Ranked) -> (Verdict, String) {
        let value = self.metric.value(&ranked.report);
        let unit = match self.metric.unit() {
            "1" | "0 to 1" => "",
            unit => unit,
        };
        if value.is_nan() {
            return (Verdict::Fails, "no value was measured".to_owned());
        }
        // The response times of an overloaded array grow with the length of the run, so a value
        // within the limit means nothing.
        if !ranked.complete || !ranked.carries {
            let why = "the array does not serve the whole load".to_owned();
            return (Verdict::Fails, why);
        }
        let shown = format!("{} {unit}", number(value)).trim_end().to_owned();
        let holds = match self.relation {
            Relation::Below => value < self.limit,
            Relation::AtMost => value <= self.limit,
            Relation::Above => value > self.limit,
            Relation::AtLeast => value >= self.limit,
        };
        // Before the interval: a percentile with few requests beyond may have a narrow interval by
        // chance.
        if let Some(beyond) = self
            .metric
            .beyond(&ranked.report)
            .filter(|one| *one < BEYOND_MIN)
        {
            let why = format!("{shown}, and only {beyond} requests lie beyond");
            return (Verdict::Unsure, why);
        }
        match self.half_width(ranked) {
            Some(half_width) if (value - self.limit).abs() <= half_width => {
                (Verdict::Unsure, format!("{shown} ± {}", number(half_width)))
            }
            _ if holds => (Verdict::Holds, shown),
            _ => (Verdict::Fails, shown),
        }
    }

    /// Returns half the width of the interval of the value, as far as the ranking has one.
    fn half_width(&self, ranked: &Ranked) -> Option<f64> {
        let times = &ranked.report.times;
        match self.metric {
            // The report has the intervals of these two from parts of the run, and the hours of rebuild and
            // scrub have their own. No other metric of a single run has an interval here.
            Metric::RESPONSE_P99 => times.response_p99_ci95_half_width,
            Metric::RESPONSE_MEAN => times.response_ms.ci95_half_width,
            metric => metric.own_half_width(&ranked.report),
        }
    }
}

impl FromStr for Requirement {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Requirement, Reason> {
        // The list has `<=` before `<`, because the first sign that occurs divides the text.
        let found = RELATIONS.iter().find_map(|(sign, relation)| {
            let (metric, limit) = text.split_once(sign)?;
            Some((metric.trim(), *relation, limit.trim()))
        });
        let (metric, relation, limit) = found.ok_or_else(|| {
            reason!("found `{text}`; expected a metric, one of <= < >= >, and a limit, as in 'p99<=50ms'")
        })?;
        let name = match SHORT.contains(&metric) {
            true => format!("response_ms.{metric}"),
            false => metric.to_owned(),
        };
        let metric = Metric::parse(&name).map_err(|error| reason!("{error}"))?;
        Ok(Requirement {
            text: text.to_owned(),
            metric,
            relation,
            limit: limit_of(&metric, limit)?,
        })
    }
}

/// Reads a limit in the unit of the metric, or in a unit of its own.
fn limit_of(metric: &Metric, text: &str) -> Result<f64, Reason> {
    let unit = metric.unit();
    let finite = |number: f64| number.is_finite().then_some(number);
    // `inf` and `nan` parse as numbers, and a limit of either would hold or fail for every run.
    if let Some(number) = text.parse().ok().and_then(finite) {
        return Ok(number);
    }
    let time = || text.parse::<Duration>().ok().map(Duration::as_millis_f64);
    let in_time = match unit {
        "ms" => time(),
        "s" => time().map(|ms| ms / 1e3),
        "h" => time().map(|ms| ms / 3.6e6),
        _ => None,
    };
    let fits = |name: &str| match name {
        "%" => unit == "0 to 1",
        // The metrics name the unit with the power of ten; people write MB/s.
        "MB/s" => unit == "10^6 B/s",
        name => unit == name,
    };
    let in_unit = || {
        UNITS
            .iter()
            .filter(|(name, _)| fits(name))
            .find_map(|(name, factor)| {
                let number: f64 = text.strip_suffix(name)?.trim().parse().ok()?;
                finite(number * factor)
            })
    };
    in_time.or_else(in_unit).ok_or_else(|| {
        reason!(
            "found the limit `{text}`; expected a number in the unit of {}, which is {unit}",
            metric.name()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_a_metric_a_relation_and_a_limit_with_its_unit() {
        let read = |text: &str| text.parse::<Requirement>();
        let limit = |text: &str| read(text).unwrap().limit;
        assert_eq!(limit("p99<=50ms"), 50.0);
        assert_eq!(limit("response_ms.mean < 0.1s"), 100.0);
        assert_eq!(limit("p99<=50"), 50.0);
        assert_eq!(limit("rebuild.hours<=90min"), 1.5);
        assert_eq!(limit("members.utilisation<60%"), 0.6);
        assert_eq!(limit("energy.mean_w<45W"), 45.0);
        assert_eq!(limit("mb_per_s>=200MB/s"), 200.0);
        assert_eq!(read("iops>100").unwrap().relation, Relation::Above);
        for (text, part) in [
            ("p99", "as in 'p99<=50ms'"),
            ("p98<=50ms", "p98"),
            ("p99<=50W", "unit of response_ms.p99, which is ms"),
            ("p99<=", "found the limit ``"),
            ("iops>=NaN", "NaN"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
