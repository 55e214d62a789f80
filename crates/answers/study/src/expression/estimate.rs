//! Numbers with their intervals.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Default confidence of intervals.
pub const CONFIDENCE: f64 = 0.95;

/// A number with one value for each seed, or with a single value.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    values: Vec<f64>,
    /// Half the width of the 95 % interval within the run, if there is only one run.
    within: Option<f64>,
    /// The confidence of the interval over seeds.
    confidence: f64,
}

impl Estimate {
    /// Creates an exact number.
    pub fn exact(value: f64) -> Estimate {
        Estimate {
            values: vec![value],
            within: Some(0.0),
            confidence: CONFIDENCE,
        }
    }

    /// Returns true if the number has values of several seeds.
    pub fn has_seeds(&self) -> bool {
        self.values.len() > 1
    }

    /// Creates a number of one run, with half the width of its 95 % interval, if there is one.
    pub fn of_run(value: f64, half_width: Option<f64>) -> Estimate {
        Estimate {
            values: vec![value],
            within: half_width,
            confidence: CONFIDENCE,
        }
    }

    /// Creates a number of several runs with different seeds. The interval has this `confidence`,
    /// from 0 to 1.
    pub fn of_seeds(values: Vec<f64>, confidence: f64) -> Estimate {
        assert!(
            confidence > 0.0 && confidence < 1.0,
            "a confidence of {confidence}"
        );
        Estimate {
            values,
            within: None,
            confidence,
        }
    }

    /// Returns the mean over the seeds.
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    /// Returns half the width of the interval: Student's t over the seeds, or the interval within
    /// the run if there is only one. `None` without an interval.
    pub fn half_width(&self) -> Option<f64> {
        let count = self.values.len() as f64;
        // One value has no deviation. Its width is that of the run itself, or none.
        if self.values.len() < 2 {
            return self.within.filter(|width| width.is_finite());
        }
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|value| (value - mean).powi(2)).sum();
        // The sample deviation: the mean was estimated from the same values.
        let deviation = (squares / (count - 1.0)).sqrt();
        let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
        // Two-sided, so half of the rest lies on either side.
        Some(student.inverse_cdf(0.5 + self.confidence / 2.0) * deviation / count.sqrt())
            // Equal infinite values have the deviation NaN, and no width.
            .filter(|width| width.is_finite())
    }

    /// Returns one value for each seed, or a single value.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Converts each value; the interval is multiplied by `slope`.
    pub(super) fn map(&self, convert: impl Fn(f64) -> f64, slope: Option<f64>) -> Estimate {
        let within = self
            .within
            .zip(slope)
            .map(|(width, slope)| (width * slope).abs());
        let values = self.values.iter().map(|&value| convert(value)).collect();
        Estimate {
            values,
            within,
            confidence: self.confidence,
        }
    }

    /// Combines two numbers seed by seed. `slopes` gives the derivatives by both numbers, which
    /// scale the intervals of single runs. Both intervals are treated as independent.
    fn combine(
        &self,
        other: &Estimate,
        operate: impl Fn(f64, f64) -> f64,
        slopes: impl Fn(f64, f64) -> (f64, f64),
    ) -> Estimate {
        let count = self.values.len().max(other.values.len());
        // A number without seeds has the same value for all seeds.
        let at = |values: &[f64], seed: usize| {
            values
                .get(seed)
                .or_else(|| values.last())
                .copied()
                .unwrap_or(f64::NAN)
        };
        let values = (0..count)
            .map(|seed| operate(at(&self.values, seed), at(&other.values, seed)))
            .collect();
        let (one, two) = slopes(at(&self.values, 0), at(&other.values, 0));
        // An interval of zero width stays zero, even at an infinite slope, where the product would
        // be NaN.
        let part = |width: f64, slope: f64| if width == 0.0 { 0.0 } else { width * slope };
        let within = self
            .within
            .zip(other.within)
            .map(|(a, b)| part(a, one).hypot(part(b, two)));
        // A number over several seeds has the confidence of the study.
        let varies = if self.values.len() > 1 { self } else { other };
        Estimate {
            values,
            within,
            confidence: varies.confidence,
        }
    }

    pub(super) fn add(&self, other: &Estimate) -> Estimate {
        // The derivatives after each operand carry the widths over (propagation of errors).
        self.combine(other, |a, b| a + b, |_, _| (1.0, 1.0))
    }

    /// Subtracts another number, seed by seed.
    pub fn subtract(&self, other: &Estimate) -> Estimate {
        self.combine(other, |a, b| a - b, |_, _| (1.0, 1.0))
    }

    pub(super) fn multiply(&self, other: &Estimate) -> Estimate {
        self.combine(other, |a, b| a * b, |a, b| (b, a))
    }

    pub(super) fn divide(&self, other: &Estimate) -> Estimate {
        self.combine(other, |a, b| a / b, |a, b| (1.0 / b, a / (b * b)))
    }

    pub(super) fn negate(&self) -> Estimate {
        self.map(|value| -value, Some(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!(
            (found - expected).abs() < 1e-4 * expected.abs().max(1e-9),
            "{found} {expected}"
        );
    }

    #[test]
    fn the_interval_over_seeds_is_students() {
        // Mean 3, standard deviation sqrt(2.5), t(0.975, 4) = 2.7764.
        let five = Estimate::of_seeds(vec![1.0, 2.0, 3.0, 4.0, 5.0], 0.95);
        close(five.mean(), 3.0);
        close(
            five.half_width().unwrap(),
            2.776_445 * 2.5f64.sqrt() / 5f64.sqrt(),
        );
        // t(0.95, 4) = 2.1318; an exact number beside it does not change the confidence.
        let nine_tenths = Estimate::of_seeds(vec![1.0, 2.0, 3.0, 4.0, 5.0], 0.9);
        let doubled = Estimate::exact(2.0).multiply(&nine_tenths);
        close(
            doubled.half_width().unwrap(),
            2.0 * 2.131_847 * 2.5f64.sqrt() / 5f64.sqrt(),
        );
    }

    #[test]
    fn what_two_points_of_one_seed_share_drops_out() {
        let one = Estimate::of_seeds(vec![10.0, 20.0, 30.0], 0.95);
        let other = Estimate::of_seeds(vec![11.0, 21.0, 31.0], 0.95);
        let difference = other.subtract(&one);
        assert_eq!(
            (difference.mean(), difference.half_width()),
            (1.0, Some(0.0))
        );
        assert!(one.half_width().unwrap() > 10.0);
    }

    #[test]
    fn intervals_of_single_runs_add_up_as_independent() {
        let (one, other) = (
            Estimate::of_run(6.0, Some(0.3)),
            Estimate::of_run(2.0, Some(0.4)),
        );
        close(one.subtract(&other).half_width().unwrap(), 0.5);
        close(
            one.divide(&other).half_width().unwrap(),
            3.0 * (0.05f64.hypot(0.2)),
        );
        close(
            one.multiply(&Estimate::exact(2.0)).half_width().unwrap(),
            0.6,
        );
        assert_eq!(one.add(&Estimate::of_run(1.0, None)).half_width(), None);
    }
}
