//! Set of numbers, stored as runs: free blocks of a group, free inodes, pages with delayed
//! allocation. Memory use is proportional to the number of runs.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint runs in ascending order. Adjacent runs are joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DisjointRuns {
    /// Start → end (exclusive).
    runs: BTreeMap<u64, u64>,
    total: u64,
}

impl DisjointRuns {
    pub(crate) fn of(range: Range<u64>) -> DisjointRuns {
        let mut runs = DisjointRuns::default();
        runs.insert(range);
        runs
    }

    /// Returns the number of elements.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of runs.
    pub(crate) fn count(&self) -> usize {
        self.runs.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.runs.iter().map(|(&start, &end)| start..end)
    }

    /// Returns the run that contains `number`.
    pub(crate) fn run_at(&self, number: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.runs.range(..=number).next_back()?;
        (number < end).then_some(start..end)
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.run_at(number).is_some()
    }

    /// Yields the runs from `from` on. A run that begins before `from` is cut there.
    pub(crate) fn iter_from(&self, from: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self.run_at(from).map_or(from, |run| run.start);
        self.runs
            .range(first..)
            .map(move |(&start, &end)| start.max(from)..end)
    }

    /// Returns the smallest element in `range`.
    pub(crate) fn first_in(&self, range: Range<u64>) -> Option<u64> {
        self.iter_from(range.start)
            .next()
            .map(|run| run.start)
            .filter(|&start| start < range.end)
    }

    /// Yields the runs that overlap `range` or are adjacent to it.
    pub(crate) fn touching(
        &self,
        range: &Range<u64>,
    ) -> impl Iterator<Item = Range<u64>> + use<'_> {
        let before = self.runs.range(..range.start).next_back();
        let first = before
            .filter(|&(_, &end)| end >= range.start)
            .map_or(range.start, |(&start, _)| start);
        self.runs
            .range(first..=range.end)
            .map(|(&start, &end)| start..end)
    }

    /// Returns the last run that begins before `before`.
    pub(crate) fn last_before(&self, before: u64) -> Option<Range<u64>> {
        self.runs
            .range(..before)
            .next_back()
            .map(|(&start, &end)| start..end)
    }

    /// Adds the numbers of `range`.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // A part that is in the set already must not count twice in the total.
        self.remove(range.clone());
        self.total += range.end - range.start;
        let mut merged = range;
        if let Some((&start, &end)) = self.runs.range(..merged.start).next_back()
            && end == merged.start
        {
            merged.start = start;
        }
        if let Some(end) = self.runs.remove(&merged.end) {
            merged.end = end;
        }
        assert!(
            self.total >= merged.end - merged.start,
            "the run {merged:?} is longer than the set of {} numbers",
            self.total
        );
        self.runs.insert(merged.start, merged.end);
    }

    /// Removes the numbers of `range`.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some(run) = self
            .run_at(range.start)
            .filter(|run| run.start < range.start)
        {
            // The part before `range` stays; the part behind `range` becomes a new run.
            self.runs.insert(run.start, range.start);
            let gone = run.end.min(range.end) - range.start;
            assert!(
                gone <= self.total,
                "{gone} numbers go, of a set of {}",
                self.total
            );
            self.total -= gone;
            if run.end > range.end {
                self.runs.insert(range.end, run.end);
                return;
            }
        }
        while let Some((&start, &end)) = self.runs.range(range.clone()).next() {
            self.runs.remove(&start);
            let gone = end.min(range.end) - start;
            assert!(
                gone <= self.total,
                "{gone} numbers go, of a set of {}",
                self.total
            );
            self.total -= gone;
            if end > range.end {
                self.runs.insert(range.end, end);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compares with a plain set of numbers.
        #[test]
        fn runs_are_a_set(steps in proptest::collection::vec((any::<bool>(), 0u64..200, 0u64..40), 0..80)) {
            let mut runs = DisjointRuns::default();
            let mut plain = BTreeSet::new();
            for (insert, start, length) in steps {
                if insert {
                    runs.insert(start..start + length);
                    plain.extend(start..start + length);
                } else {
                    runs.remove(start..start + length);
                    plain.retain(|number| !(start..start + length).contains(number));
                }
                prop_assert_eq!(runs.total(), plain.len() as u64);
                prop_assert!(runs.iter().flatten().eq(plain.iter().copied()));
                prop_assert_eq!(runs.first_in(start..250), plain.range(start..).next().copied());
                prop_assert_eq!(runs.contains(start), plain.contains(&start));
                // Neighbouring runs are never adjacent.
                let list: Vec<_> = runs.iter().collect();
                prop_assert!(list.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }
}
