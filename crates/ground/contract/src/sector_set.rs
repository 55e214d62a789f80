//! A set of sectors, such as the sectors read by a scan.

use crate::Extent;
use fullstroke_units::Sectors;
use std::collections::BTreeMap;

/// A set of sectors as disjoint runs. Runs that touch are joined. The memory grows with the number
/// of runs.
#[derive(Clone, Debug, Default)]
pub struct SectorSet {
    /// Maps the first sector of each run to the sector behind its last.
    runs: BTreeMap<u64, u64>,
    sectors: u64,
}

impl SectorSet {
    /// Returns the number of sectors in the set.
    pub fn sectors(&self) -> Sectors {
        Sectors(self.sectors)
    }

    /// Adds the sectors of `extent`.
    pub fn add(&mut self, extent: Extent) {
        let (mut start, mut end) = (extent.start.0, extent.end().0);
        // `..=end` and `>= start` also find runs that only touch the extent, so these are joined as
        // well.
        while let Some((&first, &behind)) = self
            .runs
            .range(..=end)
            .next_back()
            .filter(|(_, behind)| **behind >= start)
        {
            self.runs.remove(&first);
            assert!(
                behind > first && behind - first <= self.sectors,
                "the run {first}..{behind} is not among the {} sectors of the set",
                self.sectors
            );
            self.sectors -= behind - first;
            (start, end) = (start.min(first), end.max(behind));
        }
        if start < end {
            let other = self.runs.insert(start, end);
            assert!(other.is_none(), "two runs of a set begin at sector {start}");
            self.sectors += end - start;
        }
    }

    /// Returns the first sector at or after `from` outside the set.
    pub fn first_missing(&self, from: u64) -> u64 {
        let run = self.runs.range(..=from).next_back();
        run.map_or(from, |(_, &behind)| behind.max(from))
    }

    /// Calls `tell` for each run of missing sectors in `from..to`, with the first sector and the
    /// sector behind the last.
    pub fn missing(&self, from: u64, to: u64, mut tell: impl FnMut(u64, u64)) {
        let mut at = self.first_missing(from);
        while at < to {
            let next = self.runs.range(at..to).next();
            tell(at, next.map_or(to, |(&start, _)| start));
            at = next.map_or(to, |(_, &behind)| behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_missing_is_what_was_not_added(
            runs in prop::collection::vec((0u64..100, 0u64..9), 0..40), from in 0u64..110, sectors in 0u64..40,
        ) {
            let (mut set, mut model) = (SectorSet::default(), [false; 200]);
            for (start, sectors) in runs {
                set.add(Extent::new(start, sectors));
                (start..start + sectors).for_each(|at| model[at as usize] = true);
            }
            let mut missing = [false; 200];
            set.missing(from, from + sectors, |start, end| missing[start as usize..end as usize].fill(true));
            for at in 0..200 {
                let asked = (from..from + sectors).contains(&(at as u64));
                prop_assert_eq!(missing[at], asked && !model[at], "{}", at);
            }
            let first = (from..).find(|&at| model.get(at as usize) != Some(&true)).unwrap();
            prop_assert_eq!(set.first_missing(from), first);
            prop_assert_eq!(set.sectors().0, model.iter().filter(|&&there| there).count() as u64);
        }
    }
}
