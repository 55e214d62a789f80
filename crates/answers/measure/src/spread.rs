//! Exact moments and percentiles of one quantity.

use crate::Distribution;
use crate::moments::TimeMoments;
use crate::tallies::Tallies;

/// Significant digits of the percentiles of a whole run.
const DIGITS: u32 = 3;

/// Distribution of a quantity in nanoseconds. Mean, deviation and maximum are exact for any order
/// of the values. Percentiles are exact to three significant digits. Memory does not grow with the
/// number of values.
#[derive(Clone, Debug)]
pub(crate) struct TimeDistribution {
    moments: TimeMoments,
    tallies: Tallies<u64>,
}

impl TimeDistribution {
    pub(crate) fn new() -> TimeDistribution {
        TimeDistribution {
            moments: TimeMoments::default(),
            tallies: Tallies::new(DIGITS),
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        self.moments.record(value);
        self.tallies.record(value);
    }

    pub(crate) fn add(&mut self, other: &TimeDistribution) {
        self.moments.add(&other.moments);
        self.tallies.add(&other.tallies);
    }

    pub(crate) fn count(&self) -> u64 {
        self.moments.count()
    }

    /// Returns the mean in nanoseconds; NaN without a value.
    pub(crate) fn mean(&self) -> f64 {
        self.moments.mean()
    }

    /// Returns the standard deviation in nanoseconds, see [`TimeMoments::deviation`].
    pub(crate) fn deviation(&self) -> f64 {
        self.moments.deviation()
    }

    /// Returns the smallest value that is not exceeded by at least the share `quantile` of all
    /// values, in nanoseconds.
    pub(crate) fn quantile(&self, quantile: f64) -> f64 {
        if self.count() == 0 {
            return f64::NAN;
        }
        // The middle of the last length may lie above the maximum.
        self.tallies
            .middle_at_quantile(quantile)
            // The middle of a length may lie above the largest value.
            .min(self.moments.max())
    }

    pub(crate) fn distribution(&self) -> Distribution {
        let quantiles = [0.50, 0.90, 0.95, 0.99, 0.999];
        let [p50, p90, p95, p99, p999] = if self.count() == 0 {
            [f64::NAN; 5]
        } else {
            let most = self.moments.max();
            let middles = self.tallies.middles_at_quantiles(quantiles);
            middles.map(|middle| middle.min(most) / 1e6)
        };
        Distribution {
            mean: self.mean() / 1e6,
            stddev: self.deviation() / 1e6,
            p50,
            p90,
            p95,
            p99,
            p999,
            max: self.moments.max() / 1e6,
            ci95_half_width: None,
            count: self.count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spread(values: &[u64]) -> TimeDistribution {
        let mut spread = TimeDistribution::new();
        values.iter().for_each(|&value| spread.record(value));
        spread
    }

    #[test]
    fn the_deviation_survives_a_large_mean() {
        let spread = spread(&[1_000_000_000_001, 1_000_000_000_002, 1_000_000_000_003]);
        assert_eq!(spread.mean(), 1_000_000_000_002.0);
        assert_eq!(spread.deviation(), 1.0);
    }

    #[test]
    fn nothing_measured_is_not_a_number() {
        let distribution = spread(&[]).distribution();
        assert!(
            distribution.mean.is_nan() && distribution.p99.is_nan() && distribution.max.is_nan()
        );
        assert_eq!(spread(&[7]).deviation(), 0.0);
    }

    proptest! {
        #[test]
        fn percentiles_are_right_to_three_digits(mut values in prop::collection::vec(1u64..1 << 45, 1..300)) {
            let spread = spread(&values);
            values.sort_unstable();
            for quantile in [0.5, 0.9, 0.95, 0.99, 0.999] {
                let rank = ((quantile * values.len() as f64).ceil() as usize).clamp(1, values.len());
                let exact = values[rank - 1] as f64;
                prop_assert!((spread.quantile(quantile) / exact - 1.0).abs() < 1e-3);
            }
        }

        #[test]
        fn mean_and_deviation_are_those_of_the_textbook(values in prop::collection::vec(0u64..1 << 40, 2..300)) {
            let spread = spread(&values);
            let mean = values.iter().map(|&value| value as f64).sum::<f64>() / values.len() as f64;
            let squares: f64 = values.iter().map(|&value| (value as f64 - mean).powi(2)).sum();
            let deviation = (squares / (values.len() - 1) as f64).sqrt();
            prop_assert!((spread.mean() - mean).abs() <= 1e-9 * mean);
            prop_assert!((spread.deviation() - deviation).abs() <= 1e-6 * deviation + 1e-3);
        }
    }
}
