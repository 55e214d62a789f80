//! Numbers of times by length, for percentiles.
//!
//! The bounds of the lengths are those of HdrHistogram: each power of two is divided evenly, so
//! that the relative error is the same everywhere. Adding and clearing visit only the lengths
//! between the least and the greatest recorded time, because a run merges its batches again and
//! again, and a batch has times of a few powers of two.

use std::ops::Range;

/// A counter of one length.
pub(crate) trait CounterLength: Copy + Default {
    /// Returns the sum, at most the greatest value of the type.
    fn plus(self, more: Self) -> Self;
    /// Returns the number.
    fn number(self) -> u64;
    /// One time.
    const ONE: Self;
}

impl CounterLength for u32 {
    const ONE: u32 = 1;
    #[inline]
    fn plus(self, more: u32) -> u32 {
        self.saturating_add(more)
    }
    #[inline]
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl CounterLength for u64 {
    const ONE: u64 = 1;
    #[inline]
    fn plus(self, more: u64) -> u64 {
        self.saturating_add(more)
    }
    #[inline]
    fn number(self) -> u64 {
        self
    }
}

/// Bits of the longest time, in nanoseconds: 73 years.
const LONGEST_BITS: u32 = 61;

/// Numbers of times by length. The bounds are fixed, so that recording allocates nothing. Memory
/// pages without recorded times are never touched.
#[derive(Debug)]
pub(crate) struct Tallies<T> {
    counts: Vec<T>,
    /// Indices between which all counts other than 0 lie.
    used: Range<usize>,
    total: u64,
    /// Each power of two above `2^(bits + 1)` has `2^bits` lengths.
    bits: u32,
}

impl<T: CounterLength> Clone for Tallies<T> {
    /// Copies the counts up to the greatest time only, because a report of many workloads copies
    /// many counters. A copy grows if it records longer times.
    fn clone(&self) -> Tallies<T> {
        Tallies {
            counts: self.counts[..self.used.end].to_vec(),
            used: self.used.clone(),
            ..*self
        }
    }
}

impl<T: CounterLength> Tallies<T> {
    /// Creates empty counters with an error of at most `10^-digits`.
    pub(crate) fn new(digits: u32) -> Tallies<T> {
        // As HdrHistogram: lengths up to `2 * 10^digits` have counters of their own.
        let exact = 2 * 10_u64.pow(digits);
        let bits = exact.next_power_of_two().ilog2() - 1;
        let lengths = ((LONGEST_BITS - bits) as usize + 1) << bits;
        Tallies {
            counts: vec![T::default(); lengths],
            used: 0..0,
            total: 0,
            bits,
        }
    }

    /// Returns the number of recorded times.
    #[cfg(test)]
    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Records a time. A time beyond the longest counts as the longest.
    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        let index = self.index_of(value);
        if index >= self.counts.len() {
            self.grow(index + 1);
        }
        self.counts[index] = self.counts[index].plus(T::ONE);
        self.total += 1;
        self.used = if self.used.is_empty() {
            index..index + 1
        } else {
            self.used.start.min(index)..self.used.end.max(index + 1)
        };
    }

    /// Adds the times of `other`, which has the same number of digits.
    pub(crate) fn add(&mut self, other: &Tallies<T>) {
        debug_assert_eq!(self.bits, other.bits, "lengths of different bounds");
        if other.used.is_empty() {
            return;
        }
        let used = other.used.clone();
        if used.end > self.counts.len() {
            self.grow(used.end);
        }
        let counts = &mut self.counts[used.clone()];
        for (own, &more) in counts.iter_mut().zip(&other.counts[used.clone()]) {
            *own = own.plus(more);
        }
        self.total += other.total;
        self.used = if self.used.is_empty() {
            used
        } else {
            self.used.start.min(used.start)..self.used.end.max(used.end)
        };
    }

    #[cold]
    fn grow(&mut self, lengths: usize) {
        self.counts.resize(lengths, T::default());
    }

    /// Removes all times.
    pub(crate) fn clear(&mut self) {
        self.counts[self.used.clone()].fill(T::default());
        (self.used, self.total) = (0..0, 0);
    }

    /// Returns the middle of the length that contains the quantile (0 to 1); 0 without a time.
    pub(crate) fn middle_at_quantile(&self, quantile: f64) -> f64 {
        let [middle] = self.middles_at_quantiles([quantile]);
        middle
    }

    /// Does the same as [`middle_at_quantile`](Tallies::middle_at_quantile) for ascending
    /// quantiles, in one pass over the lengths.
    pub(crate) fn middles_at_quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [f64; N] {
        let mut counts = self.counts[self.used.clone()].iter();
        let (mut passed, mut index) = (0, self.used.start);
        quantiles.map(|quantile| {
            // Rounded up: the smallest length with at least this share. Quantile 0 means the first
            // value.
            let wanted = ((quantile.min(1.0) * self.total as f64).ceil() as u64).max(1);
            while passed < wanted {
                let Some(count) = counts.next() else {
                    return 0.0;
                };
                passed += count.number();
                index += 1;
            }
            let (lowest, width) = self.bounds_of(index - 1);
            lowest as f64 + (width - 1) as f64 / 2.0
        })
    }

    #[inline]
    fn index_of(&self, value: u64) -> usize {
        // Longer times share the last length.
        let value = value.min((1 << LONGEST_BITS) - 1);
        // Values below 2^bits have lengths of their own, so the shift is 0 for them.
        let shift = (u64::BITS - (value >> self.bits).leading_zeros()).saturating_sub(1);
        ((shift as usize) << self.bits) + (value >> shift) as usize
    }

    /// Returns the least time of a length, and the number of times in ns that share the length.
    fn bounds_of(&self, index: usize) -> (u64, u64) {
        let shift = (index >> self.bits).saturating_sub(1);
        let lowest = (index - (shift << self.bits)) as u64;
        (lowest << shift, 1 << shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    fn middle(histogram: &Histogram<u64>, quantile: f64) -> f64 {
        let highest = histogram.value_at_quantile(quantile);
        let lowest = histogram.lowest_equivalent(highest);
        lowest as f64 + (highest - lowest) as f64 / 2.0
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_hdr_histogram(
            digits in 1u8..4,
            values in prop::collection::vec((0u64..u64::MAX, 0u32..64), 0..200),
            more in prop::collection::vec(0u64..5_000, 0..50),
        ) {
            let mut histogram = Histogram::<u64>::new_with_bounds(1, 1 << (LONGEST_BITS - 1), digits).unwrap();
            let (mut tallies, mut others) = (Tallies::<u64>::new(digits.into()), Tallies::new(digits.into()));
            for value in values.iter().map(|(value, shift)| value >> shift) {
                tallies.record(value);
                // HdrHistogram counts a time beyond its bounds as `2^60`, less than the longest.
                histogram.saturating_record(value.min((1 << LONGEST_BITS) - 1));
            }
            for &value in &more {
                others.record(value);
                histogram.saturating_record(value);
            }
            let mut sum = others.clone();
            sum.add(&tallies);
            tallies.add(&others);
            prop_assert_eq!(sum.middle_at_quantile(0.7), tallies.middle_at_quantile(0.7));
            prop_assert_eq!(tallies.len(), histogram.len());
            for quantile in [0.001, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
                prop_assert_eq!(tallies.middle_at_quantile(quantile), middle(&histogram, quantile));
            }
            tallies.clear();
            prop_assert!(tallies.is_empty() && tallies.counts.iter().all(|&count| count == 0));
        }
    }
}
