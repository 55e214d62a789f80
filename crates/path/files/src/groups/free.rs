//! Free blocks of one group, with indices for fast searches.
//!
//! The runs hold the whole state. Two searches would have to visit many runs: ext2's search for a
//! wholly free byte of the bitmap, and mballoc's search for a buddy. Each has an index like the
//! kernel's (the bitmap itself; `mb_generate_buddy`). The first such search builds the index. A
//! third search visits a few hundred runs of many groups, again and again. Its result for a group
//! is remembered until the group changes.

use super::BLOCKS_PER_GROUP;
use crate::runs::DisjointRuns;
use std::cell::OnceCell;
use std::ops::Range;

/// Order of the largest buddy: `MB_NUM_ORDERS` − 1 for blocks of 4 KiB.
pub(crate) const ORDER_MAX: u32 = 13;

/// Returns the order of the largest buddy that begins at `at` and does not reach beyond `end`.
pub(crate) fn buddy_at(at: u64, end: u64) -> u32 {
    let aligned = if at == 0 {
        ORDER_MAX
    } else {
        at.trailing_zeros()
    };
    aligned.min((end - at).ilog2()).min(ORDER_MAX)
}

/// Free blocks, numbered within the group.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeBlocks {
    runs: DisjointRuns,
    bytes: OnceCell<Bits>,
    buddies: OnceCell<Vec<Bits>>,
    measured: OnceCell<(Question, Option<Range<u64>>)>,
}

/// Length of the wanted run, and true if shorter runs are left out.
type Question = (u64, bool);

impl From<DisjointRuns> for FreeBlocks {
    fn from(runs: DisjointRuns) -> FreeBlocks {
        FreeBlocks {
            runs,
            ..FreeBlocks::default()
        }
    }
}

impl FreeBlocks {
    pub(crate) fn runs(&self) -> &DisjointRuns {
        &self.runs
    }

    /// Returns the beginning of the run that contains the first wholly free byte of the bitmap from
    /// `from` on.
    pub(crate) fn run_with_byte(&self, from: u64) -> Option<u64> {
        let bytes = self.bytes.get_or_init(|| {
            let mut bytes = Bits::of(BLOCKS_PER_GROUP / 8);
            self.runs
                .iter()
                .for_each(|run| whole_bytes(&run).for_each(|byte| bytes.set(byte)));
            bytes
        });
        let byte = bytes.first_from(from.div_ceil(8))?;
        self.runs.run_at(8 * byte).map(|run| run.start)
    }

    /// Returns the first of the smallest buddies of at least 2^`order` blocks
    /// (`ext4_mb_simple_scan_group`).
    pub(crate) fn smallest_buddy(&self, order: u32) -> Option<u64> {
        let buddies = self.buddies.get_or_init(|| {
            let mut buddies: Vec<Bits> = (0..=ORDER_MAX)
                .map(|order| Bits::of(BLOCKS_PER_GROUP >> order))
                .collect();
            self.runs
                .iter()
                .for_each(|run| each_buddy(run, &mut buddies, Bits::set));
            buddies
        });
        (order..=ORDER_MAX).find_map(|order| {
            let buddy = buddies[order as usize].first_from(0)?;
            Some(buddy << order)
        })
    }

    /// Returns the result of `measure` for `question`. The first question after a change is
    /// remembered, so that the same question costs no second search.
    pub(crate) fn measured(
        &self,
        question: Question,
        measure: impl Fn(&DisjointRuns) -> Option<Range<u64>>,
    ) -> Option<Range<u64>> {
        let (of, found) = self
            .measured
            .get_or_init(|| (question, measure(&self.runs)));
        if *of == question {
            found.clone()
        } else {
            measure(&self.runs)
        }
    }

    /// Adds free blocks.
    pub(super) fn insert(&mut self, range: Range<u64>) {
        self.change(range, DisjointRuns::insert);
    }

    /// Removes blocks that are no longer free.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        self.change(range, DisjointRuns::remove);
    }

    /// Applies a change. The change alters the runs in and next to the range, so that their index
    /// entries are cleared before and set again after it.
    fn change(&mut self, range: Range<u64>, change: impl FnOnce(&mut DisjointRuns, Range<u64>)) {
        self.measured.take();
        self.each_beside(&range, Bits::clear);
        change(&mut self.runs, range.clone());
        self.each_beside(&range, Bits::set);
    }

    fn each_beside(&mut self, range: &Range<u64>, mark: fn(&mut Bits, u64)) {
        for run in self.runs.touching(range) {
            if let Some(buddies) = self.buddies.get_mut() {
                each_buddy(run.clone(), buddies, mark);
            }
            if let Some(bytes) = self.bytes.get_mut() {
                // Only the bytes of the changed range can change.
                let (whole, near) = (whole_bytes(&run), range.start / 8..range.end.div_ceil(8));
                (whole.start.max(near.start)..whole.end.min(near.end))
                    .for_each(|byte| mark(bytes, byte));
            }
        }
    }
}

/// Returns the bytes of the bitmap whose bits all belong to the run.
fn whole_bytes(run: &Range<u64>) -> Range<u64> {
    run.start.div_ceil(8)..run.end / 8
}

/// Cuts a run into the largest buddies that are aligned to their length, and marks each.
fn each_buddy(run: Range<u64>, buddies: &mut [Bits], mark: fn(&mut Bits, u64)) {
    let mut at = run.start;
    while at < run.end {
        let order = buddy_at(at, run.end);
        mark(&mut buddies[order as usize], at >> order);
        at += 1 << order;
    }
}

/// A set of small numbers.
#[derive(Clone, Debug, Default)]
struct Bits {
    words: Vec<u64>,
    /// Number of elements.
    count: u64,
}

impl Bits {
    /// Makes an empty set for numbers below `end`.
    fn of(end: u64) -> Bits {
        Bits {
            words: vec![0; end.div_ceil(64) as usize],
            count: 0,
        }
    }

    fn set(&mut self, number: u64) {
        let (word, bit) = (&mut self.words[(number / 64) as usize], 1 << (number % 64));
        self.count += u64::from(*word & bit == 0);
        *word |= bit;
    }

    fn clear(&mut self, number: u64) {
        let (word, bit) = (&mut self.words[(number / 64) as usize], 1 << (number % 64));
        self.count -= u64::from(*word & bit != 0);
        *word &= !bit;
    }

    /// Returns the smallest element from `from` on.
    fn first_from(&self, from: u64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let (first, behind) = ((from / 64) as usize, !0 << (from % 64));
        let words = self.words.get(first..)?.iter().enumerate();
        let masked = words.map(|(at, &word)| (at, if at == 0 { word & behind } else { word }));
        let (at, word) = masked.into_iter().find(|&(_, word)| word != 0)?;
        Some((first + at) as u64 * 64 + u64::from(word.trailing_zeros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference for `FreeBlocks::run_with_byte`: visits the runs.
    fn run_with_byte(runs: &DisjointRuns, from: u64) -> Option<u64> {
        let byte = runs.iter_from(from).find_map(|run| {
            let byte = (run.start + 7) & !7;
            (byte + 8 <= run.end).then_some(byte)
        })?;
        runs.run_at(byte).map(|run| run.start)
    }

    fn smallest_buddy(runs: &DisjointRuns, order: u32) -> Option<u64> {
        let mut best: Option<(u32, u64)> = None;
        for run in runs.iter() {
            let mut at = run.start;
            while at < run.end {
                let buddy = buddy_at(at, run.end);
                if buddy >= order && best.is_none_or(|(smallest, _)| buddy < smallest) {
                    best = Some((buddy, at));
                }
                at += 1 << buddy;
            }
        }
        best.map(|(_, at)| at)
    }

    proptest! {
        #[test]
        fn the_indexes_find_what_going_through_the_runs_does(
            steps in proptest::collection::vec((any::<bool>(), 0u64..600, 1u64..90), 1..60),
            early in any::<bool>(),
        ) {
            let mut free = FreeBlocks::from(DisjointRuns::of(0..512));
            if early {
                free.smallest_buddy(0);
                free.run_with_byte(0);
            }
            for (insert, start, length) in steps {
                if insert { free.insert(start..start + length) } else { free.remove(start..start + length) }
                for order in 0..=ORDER_MAX {
                    prop_assert_eq!(free.smallest_buddy(order), smallest_buddy(free.runs(), order));
                }
                for from in [0, start, start + length, 8 * (start / 8)] {
                    prop_assert_eq!(free.run_with_byte(from), run_with_byte(free.runs(), from));
                }
            }
        }
    }

    #[test]
    fn a_power_of_two_goes_to_the_smallest_buddy_that_holds_it() {
        // Group 1 of an ext4 of 3 GiB: free from block 385 on.
        let free = FreeBlocks::from(DisjointRuns::of(385..32_768));
        assert_eq!(free.smallest_buddy(9), Some(512));
        assert_eq!(free.smallest_buddy(4), Some(400));
        assert_eq!(
            free.smallest_buddy(7),
            Some(512),
            "there are none of 2^7 and 2^8"
        );
        assert_eq!(
            FreeBlocks::from(DisjointRuns::of(1..4)).smallest_buddy(2),
            None
        );
    }
}
