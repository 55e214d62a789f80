//! Distribution of one quantity, in memory of bounded size.

use super::numbers::SummaryDistribution;

/// Number of values processed together. In a loop over several values, the divisions do not wait
/// for each other.
const BATCH: usize = 64;
/// Largest value in percentiles (36 years in ns); larger values count as this.
const VALUE_MAX: u64 = 1 << 60;
/// Number of bits of a value kept by its bucket. Each power of two has 1,024 buckets, which gives
/// three correct digits.
const KEPT_BITS: u32 = 11;
/// Number of buckets in each power of two above the buckets of a single value.
const HALF: u64 = 1 << (KEPT_BITS - 1);
/// Values below 2^52 are exact as floats, and the sum of a batch of such values fits into 64 bits.
const FLOAT_EXACT: u64 = 1 << 52;

/// Values of one quantity.
#[derive(Clone)]
pub(super) struct QuantityDistribution {
    pending: [u64; BATCH],
    pending_count: usize,
    /// Number of values by [`bucket`].
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    /// Sum of squared differences from the mean.
    squares: f64,
    min: u64,
    max: u64,
}

impl Default for QuantityDistribution {
    fn default() -> QuantityDistribution {
        QuantityDistribution {
            pending: [0; BATCH],
            pending_count: 0,
            counts: Vec::new(),
            count: 0,
            sum: 0,
            squares: 0.0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl QuantityDistribution {
    #[inline]
    pub(super) fn add(&mut self, value: u64) {
        self.pending[self.pending_count] = value;
        self.pending_count += 1;
        if self.pending_count == BATCH {
            self.take_in();
        }
    }

    /// Processes the pending values.
    fn take_in(&mut self) {
        let number = std::mem::take(&mut self.pending_count);
        if number == 0 {
            return;
        }
        let pending = self.pending;
        let values = &pending[..number];
        let all = values.iter().fold(0, |all, &value| all | value);
        // No value is above the union of all bits.
        let last = bucket(all);
        if self.counts.len() <= last {
            self.counts.resize(last + 1, 0);
        }
        if all < FLOAT_EXACT {
            self.take_in_small(values);
        } else {
            self.take_in_large(values);
        }
    }

    /// Processes values that are exact as floats. Their sum fits into 64 bits.
    fn take_in_small(&mut self, values: &[u64]) {
        let sum: u64 = values.iter().sum();
        let mean = sum as f64 / values.len() as f64;
        let (mut least, mut largest, mut squares) = (self.min, self.max, 0.0);
        let counts = self.counts.as_mut_slice();
        for &value in values {
            let apart = exact_float(value) - mean;
            squares += apart * apart;
            counts[bucket_below_max(value)] += 1;
            least = least.min(value);
            largest = largest.max(value);
        }
        (self.min, self.max) = (least, largest);
        self.widen(values.len() as u64, u128::from(sum), squares);
    }

    #[cold]
    fn take_in_large(&mut self, values: &[u64]) {
        let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
        let mean = sum as f64 / values.len() as f64;
        let squares: f64 = values
            .iter()
            .map(|&value| (value as f64 - mean).powi(2))
            .sum();
        self.widen(values.len() as u64, sum, squares);
        for &value in values {
            self.counts[bucket(value)] += 1;
            self.min = self.min.min(value);
            self.max = self.max.max(value);
        }
    }

    /// Adds the values of `other`.
    pub(super) fn join(&mut self, other: &mut QuantityDistribution) {
        self.take_in();
        other.take_in();
        if other.count == 0 {
            return;
        }
        self.widen(other.count, other.sum, other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.counts
            .resize(self.counts.len().max(other.counts.len()), 0);
        self.counts
            .iter_mut()
            .zip(&other.counts)
            .for_each(|(count, more)| *count += more);
    }

    /// Adds the moments of further values. The squares of two sets are combined as in T. Chan, G.
    /// Golub and R. LeVeque (COMPSTAT 1982, formula 2.1).
    fn widen(&mut self, count: u64, sum: u128, squares: f64) {
        let (before, number) = (self.count as f64, count as f64);
        let apart = sum as f64 / number - self.mean();
        self.squares += squares + apart * apart * before * number / (before + number);
        self.sum = self.sum.saturating_add(sum);
        self.count += count;
    }

    fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// Returns all figures times `unit`; `None` without values.
    pub(super) fn distribution(&mut self, unit: f64) -> Option<SummaryDistribution> {
        self.take_in();
        if self.count == 0 {
            return None;
        }
        let quantile = |share: f64| self.quantile(share).clamp(self.min, self.max) as f64 * unit;
        Some(SummaryDistribution {
            count: self.count,
            mean: self.mean() * unit,
            stddev: (self.squares / self.count as f64).sqrt() * unit,
            min: self.min as f64 * unit,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            max: self.max as f64 * unit,
        })
    }

    /// Returns the greatest value of the bucket at which the cumulative share reaches `share`.
    fn quantile(&self, share: f64) -> u64 {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map_or(VALUE_MAX, greatest)
    }
}

/// Returns the bucket of a value. Values below 2,048 have a bucket each. Larger values with the
/// same highest 11 bits share a bucket (as in G. Tene's HdrHistogram with three significant
/// digits).
#[inline]
fn bucket(value: u64) -> usize {
    bucket_below_max(value.min(VALUE_MAX))
}

/// As [`bucket`], for a value of at most [`VALUE_MAX`].
#[inline]
fn bucket_below_max(value: u64) -> usize {
    // The kept bits are set, so that small values have a shift of 0.
    let width = u64::BITS - (value | (2 * HALF - 1)).leading_zeros();
    let shift = u64::from(width - KEPT_BITS);
    (shift * HALF + (value >> shift)) as usize
}

/// Returns a value below [`FLOAT_EXACT`] as a float, faster than by the processor's conversion: the
/// bits of the value are the lowest digits of a float between 2^52 and 2^53.
#[inline]
fn exact_float(value: u64) -> f64 {
    const BASE: f64 = FLOAT_EXACT as f64;
    f64::from_bits(value | BASE.to_bits()) - BASE
}

/// Returns the greatest value of a bucket.
fn greatest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / HALF).saturating_sub(1);
    ((bucket - shift * HALF + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_to_three_digits(value in 0u64..=VALUE_MAX, shift in 0u32..60) {
            let value = value >> shift;
            let greatest = greatest(bucket(value));
            prop_assert!(greatest >= value && greatest - value <= value / 1024, "{} {}", value, greatest);
            prop_assert_eq!(bucket(greatest), bucket(value));
            prop_assert_eq!(bucket(greatest + 1), bucket(value) + 1);
        }

        #[test]
        fn a_spread_agrees_with_a_sorted_list(values in prop::collection::vec(0u64..1 << 40, 1..300)) {
            let (mut spread, mut rest) = (QuantityDistribution::default(), QuantityDistribution::default());
            for (index, &value) in values.iter().enumerate() {
                if index % 3 == 0 { rest.add(value) } else { spread.add(value) }
            }
            spread.join(&mut rest);
            let found = spread.distribution(1.0).unwrap();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let number = values.len() as f64;
            let mean = values.iter().map(|&value| value as f64).sum::<f64>() / number;
            let squares: f64 = values.iter().map(|&value| (value as f64 - mean).powi(2)).sum();
            let close = |found: f64, expected: f64| (found - expected).abs() <= 1e-9 * expected.abs() + 1e-3;
            prop_assert!(close(found.mean, mean) && close(found.stddev, (squares / number).sqrt()), "{:?}", found);
            prop_assert_eq!((found.min, found.max), (sorted[0] as f64, sorted[sorted.len() - 1] as f64));
            for (share, found) in [(0.5, found.p50), (0.9, found.p90), (0.99, found.p99)] {
                let exact = sorted[(number * share).ceil() as usize - 1] as f64;
                prop_assert!(found >= exact && found <= exact * 1.001, "{} {} {}", share, found, exact);
            }
        }
    }
}
