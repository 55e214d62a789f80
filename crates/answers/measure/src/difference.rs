//! Differences between two runs of one workload, batch by batch.

use crate::interval::{Paired, paired_interval, sign_test};
use crate::student::{student_point, student_share};
use crate::{MeasuredRun, Metric};
use serde::{Serialize, Serializer};

/// Difference between two runs in one metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The first run's value less the second's, in the metric's unit.
    pub value: f64,
    /// Half the width of the confidence interval of `value`; `None` if there are too few requests,
    /// or if the metric has no interval.
    pub half_width: Option<f64>,
    /// Number of batches in which the first run's value is larger.
    pub batches_above: usize,
    /// Number of batches in which the second run's value is larger.
    pub batches_below: usize,
    /// Conclusion from value, interval and batches.
    pub significance: Significance,
}

/// Answer to the question if a difference is more than chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Significance {
    /// The interval does not contain zero.
    Significant,
    /// The interval contains zero, because few batches with bursts decide the mean. But the
    /// difference has the same sign in more batches than chance explains (two-sided sign test at
    /// the same confidence).
    Consistent,
    /// The interval contains zero.
    NotSignificant,
    /// There is no interval.
    Unknown,
}

impl Serialize for Significance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Significance {
    /// Returns the name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Significance::Significant => "significant",
            Significance::Consistent => "consistent",
            Significance::NotSignificant => "not-significant",
            Significance::Unknown => "unknown",
        }
    }
}

/// Returns `first` less `second` in `metric`, with an interval at this confidence (0 to below 1).
/// The interval comes from batches of the same requests. If one run has larger batches, the batches
/// of the other run are merged first.
pub fn paired_difference(
    first: &MeasuredRun,
    second: &MeasuredRun,
    metric: Metric,
    confidence: f64,
) -> Difference {
    let (one, other) = (metric.value(&first.report), metric.value(&second.report));
    let value = one - other;
    if first.report.grows() || second.report.grows() {
        let significance = Significance::Unknown;
        return Difference {
            value,
            half_width: None,
            batches_above: 0,
            batches_below: 0,
            significance,
        };
    }
    let paired = paired_interval(
        metric,
        (&first.batches, one),
        (&second.batches, other),
        confidence,
    );
    Difference {
        value,
        half_width: paired.map(|paired| paired.half_width),
        batches_above: paired.map_or(0, |paired| paired.above),
        batches_below: paired.map_or(0, |paired| paired.below),
        significance: paired.map_or(Significance::Unknown, |paired| {
            significance(value, &paired, 1.0 - confidence)
        }),
    }
}

/// Returns the difference of two candidates that ran with the same seeds: the mean of the
/// differences seed by seed, with Student's interval at this confidence. There is no interval for
/// fewer than two seeds. There is none either if all seeds give the same difference other than
/// zero, because a few equal differences do not prove the absence of variation.
pub fn difference_over_seeds(pairs: &[(f64, f64)], confidence: f64) -> Difference {
    let differences: Vec<f64> = pairs.iter().map(|(one, other)| one - other).collect();
    let value = differences.iter().sum::<f64>() / differences.len() as f64;
    let shown = differences
        .iter()
        .any(|difference| *difference != differences[0])
        // Equal differences have no spread, and an interval of width 0 would call the smallest of
        // them certain. Only a difference of 0 in all seeds is certain.
        || value == 0.0;
    let half_width = half_width_over_seeds(&differences, confidence).filter(|_| shown);
    let significance = match half_width {
        None => Significance::Unknown,
        Some(half_width) if value.abs() > half_width => Significance::Significant,
        Some(_) => Significance::NotSignificant,
    };
    Difference {
        value,
        half_width,
        batches_above: differences
            .iter()
            .filter(|difference| **difference > 0.0)
            .count(),
        batches_below: differences
            .iter()
            .filter(|difference| **difference < 0.0)
            .count(),
        significance,
    }
}

impl Difference {
    /// Returns the difference of two independent values with the half widths of their own
    /// intervals.
    pub fn of_independent(one: (f64, f64), other: (f64, f64)) -> Difference {
        let value = one.0 - other.0;
        let half_width = one.1.hypot(other.1);
        Difference {
            value,
            half_width: Some(half_width),
            batches_above: 0,
            batches_below: 0,
            significance: match value.abs() > half_width {
                true => Significance::Significant,
                false => Significance::NotSignificant,
            },
        }
    }

    /// Returns the factor by which both runs must be longer until the interval excludes zero, if
    /// the difference stays: the width of an interval shrinks with the root of the length. `None`
    /// without an interval, or if the interval excludes zero already.
    pub fn longer_to_tell(&self) -> Option<f64> {
        let half_width = self.half_width?;
        let undecided = self.significance == Significance::NotSignificant;
        (undecided && self.value != 0.0).then(|| (half_width / self.value).powi(2).max(1.0))
    }

    /// Returns the difference with the interval of `other` if that interval is wider.
    pub fn with_wider_interval(self, other: &Difference) -> Difference {
        match (self.half_width, other.half_width) {
            (Some(own), Some(wider)) if wider > own => {
                let significance = match self.value.abs() > wider {
                    true => Significance::Significant,
                    false => Significance::NotSignificant,
                };
                Difference {
                    half_width: Some(wider),
                    significance,
                    ..self
                }
            }
            _ => self,
        }
    }
}

/// Returns the chance that the true mean of the differences of `pairs` is below zero, by Student's
/// t about the measured mean. Returns 0.5 for fewer than two pairs.
pub fn chance_below_zero(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    if pairs.len() < 2 {
        return 0.5;
    }
    let mean = pairs.iter().map(|(one, other)| one - other).sum::<f64>() / count;
    let squares: f64 = pairs
        .iter()
        .map(|(one, other)| (one - other - mean).powi(2))
        .sum();
    // The sample deviation over the root of the count: the standard error of the mean.
    let error = (squares / (count - 1.0) / count).sqrt();
    match error > 0.0 {
        true => student_share(-mean / error, count - 1.0),
        // Without spread, the sign of the mean decides, and no difference is a toss.
        false if mean == 0.0 => 0.5,
        false => f64::from(u8::from(mean < 0.0)),
    }
}

/// Returns half the width of Student's interval of a mean over runs with different seeds. `None`
/// for fewer than two runs, or if a run measured nothing.
pub fn half_width_over_seeds(values: &[f64], confidence: f64) -> Option<f64> {
    let count = values.len() as f64;
    if values.len() < 2 || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    // Two-sided: half of the rest lies above.
    Some(student_point(0.5 + confidence / 2.0, count - 1.0) * error)
}

fn significance(value: f64, paired: &Paired, error: f64) -> Significance {
    // A majority of batches for the other run contradicts the mean, so the sign test does not
    // support it.
    let majority_agrees = (paired.above > paired.below) == (value > 0.0);
    if value.abs() > paired.half_width {
        Significance::Significant
    // 0 has no direction that batches could support.
    } else if value != 0.0 && majority_agrees && sign_test(paired.above, paired.below) <= error {
        Significance::Consistent
    } else {
        Significance::NotSignificant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_give_students_interval() {
        // The values 1, 2, 3 have the standard deviation 1; t(0.975, 2) = 4.303, divided by the
        // root of 3.
        let half_width = half_width_over_seeds(&[1.0, 2.0, 3.0], 0.95).unwrap();
        assert!(
            (half_width - 4.3027 / 3f64.sqrt()).abs() < 1e-3,
            "{half_width}"
        );
        assert_eq!(half_width_over_seeds(&[1.0], 0.95), None);
        assert_eq!(half_width_over_seeds(&[1.0, f64::NAN], 0.95), None);
        let pairs = [(5.0, 1.0), (6.1, 2.0), (6.9, 3.0)];
        let found = difference_over_seeds(&pairs, 0.95);
        assert!(
            (found.value - 4.0).abs() < 1e-9 && found.significance == Significance::Significant
        );
        assert_eq!((found.batches_above, found.batches_below), (3, 0));
        // The mean 4 divided by its error 0.058 is t = 69 with two degrees of freedom.
        let chance = chance_below_zero(&pairs);
        assert!((1e-5..1e-3).contains(&chance), "{chance}");
        assert_eq!(
            (
                chance_below_zero(&[(1.0, 2.0), (2.0, 1.0)]),
                chance_below_zero(&[])
            ),
            (0.5, 0.5)
        );
        assert_eq!(chance_below_zero(&[(1.0, 2.0), (3.0, 4.0)]), 1.0);
        let alike = difference_over_seeds(&[(1.0, 2.0), (2.0, 1.0)], 0.95);
        assert_eq!(
            (alike.value, alike.significance),
            (0.0, Significance::NotSignificant)
        );
        assert_eq!(
            difference_over_seeds(&pairs[..1], 0.95).significance,
            Significance::Unknown
        );
    }

    #[test]
    fn equal_differences_of_a_few_seeds_are_no_certainty() {
        let constant = difference_over_seeds(&[(3.0, 1.0); 3], 0.95);
        assert_eq!((constant.value, constant.half_width), (2.0, None));
        assert_eq!(constant.significance, Significance::Unknown);
        let equal = difference_over_seeds(&[(3.0, 3.0); 3], 0.95);
        assert_eq!(
            (equal.half_width, equal.significance),
            (Some(0.0), Significance::NotSignificant)
        );
        let seeds = difference_over_seeds(&[(5.0, 1.0), (6.1, 2.0), (6.9, 3.0)], 0.95);
        let within = Difference {
            half_width: Some(9.0),
            significance: Significance::NotSignificant,
            ..seeds
        };
        assert_eq!(seeds.with_wider_interval(&within), within);
        assert_eq!(within.with_wider_interval(&seeds), within);
    }

    use crate::{Measurement, RunIdentity};
    use fullstroke_contract::{Breakdown, Completion, Extent, Operation};
    use fullstroke_engine::{Finished, Observer as _, RunOutcome};
    use fullstroke_units::{Duration, Random, Seed, Time};

    /// Returns a run whose response times contain bursts drawn from `shared` and noise of their
    /// own.
    fn run(requests: u64, extra_us: u64, own: &mut Random) -> MeasuredRun {
        let mut shared = Seed(3).stream("shared");
        let mut measurement = Measurement::default();
        let mut end = Time::ZERO;
        let mut burst = 0;
        for origin in 0..requests {
            if shared.chance(0.02) {
                burst = shared.below(50_000);
            }
            let response = Duration::from_micros(burst + extra_us + own.below(1_000));
            let arrived = Time::from_nanos(origin * 1_000_000);
            let breakdown = Breakdown {
                queue: response,
                ..Breakdown::default()
            };
            let finished = arrived + response;
            end = end.max(finished);
            measurement.finished(&Finished {
                origin,
                operation: Operation::Read,
                extent: Extent::new(0, 8),
                process: 0,
                workload: 0,
                arrived,
                completion: Completion {
                    submitted: arrived,
                    finished,
                    breakdown,
                    ..Completion::default()
                },
            });
        }
        let outcome = RunOutcome {
            requests,
            completed: requests,
            end,
            ..RunOutcome::default()
        };
        measurement.finish(&outcome, &[], RunIdentity::default())
    }

    #[test]
    fn pairing_sees_a_difference_that_the_intervals_alone_would_hide() {
        let mut own = Seed(4).stream("own");
        let slow = run(20_000, 100, &mut own);
        let fast = run(20_000, 0, &mut own);
        let difference = paired_difference(&slow, &fast, Metric::RESPONSE_MEAN, 0.95);
        assert_eq!(difference.significance, Significance::Significant);
        assert!((difference.value - 0.1).abs() < 0.02, "{difference:?}");
        // The interval of a single run is many times wider.
        assert!(
            slow.report.times.response_ms.ci95_half_width.unwrap()
                > 5.0 * difference.half_width.unwrap()
        );
    }

    #[test]
    fn equal_candidates_are_rarely_called_different() {
        let mut own = Seed(4).stream("own");
        let wrong = (0..60)
            .filter(|_| {
                let (one, other) = (run(3_000, 0, &mut own), run(3_000, 0, &mut own));
                let difference = paired_difference(&one, &other, Metric::RESPONSE_MEAN, 0.95);
                difference.significance != Significance::NotSignificant
            })
            .count();
        assert!(wrong <= 8, "{wrong} of 60");
    }

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let one = run(3_000, 0, &mut Seed(4).stream("own"));
        for metric in [
            "response_ms.mean",
            "response_ms.p50",
            "iops",
            "mb_per_s",
            "queue_ms.mean",
        ] {
            let difference = paired_difference(&one, &one, Metric::parse(metric).unwrap(), 0.95);
            assert_eq!(
                difference.significance,
                Significance::NotSignificant,
                "{metric}"
            );
            assert_eq!(
                (difference.value, difference.half_width),
                (0.0, Some(0.0)),
                "{metric}"
            );
        }
    }

    #[test]
    fn a_difference_of_one_sign_in_every_batch_is_consistent_though_bursts_decide_the_mean() {
        let mut noise = Paired {
            half_width: 3.0,
            above: 16,
            below: 0,
        };
        assert_eq!(significance(2.0, &noise, 0.05), Significance::Consistent);
        assert_eq!(significance(4.0, &noise, 0.05), Significance::Significant);
        assert_eq!(
            significance(-2.0, &noise, 0.05),
            Significance::NotSignificant
        );
        noise = Paired {
            above: 10,
            below: 6,
            ..noise
        };
        assert_eq!(
            significance(2.0, &noise, 0.05),
            Significance::NotSignificant
        );
    }

    #[test]
    fn runs_of_different_length_are_aligned() {
        let mut own = Seed(4).stream("own");
        let difference = paired_difference(
            &run(9_000, 100, &mut own),
            &run(3_000, 0, &mut own),
            Metric::RESPONSE_MEAN,
            0.95,
        );
        // 3,000 requests make only 12 batches of 256, too few for an interval.
        assert_eq!(difference.significance, Significance::Unknown);
    }
}
