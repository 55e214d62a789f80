//! Numbers of times by length, for percentiles.
//!
//! The bounds of the lengths are those of HdrHistogram: each power of two is divided evenly, so
//! that the relative error is the same everywhere. Adding, copying and clearing visit only groups
//! of lengths with recorded times, because a run merges its batches again and again, and a batch has
//! times of a few powers of two.

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

/// Number of lengths in one group.
const GROUP: usize = 32;

/// Mark of a group without a recorded time.
const NO_GROUP: u16 = u16::MAX;

/// Numbers of times by length. The counters of 32 neighbouring lengths form a group, and only
/// groups with recorded times have memory. A run has a few hundred sets of counters with a few
/// times each, and reports copy, add and search them: full tables took most of the time of a report.
#[derive(Clone, Debug)]
pub(crate) struct Tallies<T> {
    /// By group: number of the group in `counts`; [`NO_GROUP`] without a recorded time.
    places: Vec<u16>,
    /// Counters of the groups, in the order of their first times.
    counts: Vec<[T; GROUP]>,
    /// Indices between which all groups with recorded times lie.
    used: Range<usize>,
    total: u64,
    /// Each power of two above `2^(bits + 1)` has `2^bits` lengths.
    bits: u32,
}

impl<T: CounterLength> Tallies<T> {
    /// Creates empty counters with an error of at most `10^-digits`.
    pub(crate) fn new(digits: u32) -> Tallies<T> {
        // As HdrHistogram: lengths up to `2 * 10^digits` have counters of their own.
        let exact = 2 * 10_u64.pow(digits);
        let bits = exact.next_power_of_two().ilog2() - 1;
        let lengths = ((LONGEST_BITS - bits) as usize + 1) << bits;
        let groups = lengths.div_ceil(GROUP);
        assert!(
            groups < usize::from(NO_GROUP),
            "{digits} digits need {groups} groups of counters"
        );
        Tallies {
            places: vec![NO_GROUP; groups],
            counts: Vec::new(),
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
        let count = &mut self.group_mut(index / GROUP)[index % GROUP];
        *count = count.plus(T::ONE);
        self.total += 1;
    }

    /// Returns the counters of a group.
    #[inline]
    fn group_mut(&mut self, group: usize) -> &mut [T; GROUP] {
        let mut place = self.places[group];
        if place == NO_GROUP {
            place = self.begin_group(group);
        }
        &mut self.counts[usize::from(place)]
    }

    #[cold]
    fn begin_group(&mut self, group: usize) -> u16 {
        let place = self.counts.len() as u16;
        self.counts.push([T::default(); GROUP]);
        self.places[group] = place;
        self.used = if self.used.is_empty() {
            group..group + 1
        } else {
            self.used.start.min(group)..self.used.end.max(group + 1)
        };
        place
    }

    /// Returns the groups with recorded times: the index of the first length, and the counters.
    fn groups(&self) -> impl Iterator<Item = (usize, &[T; GROUP])> {
        let places = self.places[self.used.clone()].iter();
        let groups = (self.used.start..).zip(places);
        groups
            .filter(|&(_, &place)| place != NO_GROUP)
            .map(|(group, &place)| (group * GROUP, &self.counts[usize::from(place)]))
    }

    /// Adds the times of `other`, which has the same number of digits.
    pub(crate) fn add(&mut self, other: &Tallies<T>) {
        debug_assert_eq!(self.bits, other.bits, "lengths of different bounds");
        for (first, counts) in other.groups() {
            let own = self.group_mut(first / GROUP);
            for (own, &more) in own.iter_mut().zip(counts) {
                *own = own.plus(more);
            }
        }
        self.total += other.total;
    }

    /// Removes all times.
    pub(crate) fn clear(&mut self) {
        self.places[self.used.clone()].fill(NO_GROUP);
        self.counts.clear();
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
        let mut groups = self.groups();
        let Some((mut first, mut counts)) = groups.next() else {
            return quantiles.map(|_| 0.0);
        };
        // `at` is the length to look at next, and `passed` the number of times of all lengths
        // before.
        let (mut passed, mut at) = (0, 0);
        quantiles.map(|quantile| {
            // Rounded up: the smallest length with at least this share. Quantile 0 means the first
            // value.
            let wanted = ((quantile.min(1.0) * self.total as f64).ceil() as u64).max(1);
            while passed < wanted {
                if at == 0 {
                    let all: u64 = counts.iter().map(|count| count.number()).sum();
                    if passed + all < wanted {
                        // The group has no quantile.
                        passed += all;
                        at = GROUP;
                    }
                }
                if at == GROUP {
                    let Some(next) = groups.next() else {
                        return 0.0;
                    };
                    ((first, counts), at) = (next, 0);
                    continue;
                }
                passed += counts[at].number();
                at += 1;
            }
            let (lowest, width) = self.bounds_of(first + at - 1);
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
            prop_assert!(tallies.is_empty() && tallies.groups().next().is_none());
        }
    }
}
