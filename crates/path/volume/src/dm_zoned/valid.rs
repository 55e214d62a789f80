//! The set of valid blocks of a zone.

/// Bits of a word.
const BITS: u32 = u64::BITS;

/// Set of valid blocks. A set that begins at the first block without a gap needs no bits.
#[derive(Clone, Debug, Default)]
pub(super) struct ValidBlocks {
    /// Number of valid blocks.
    weight: u32,
    /// One bit for each block. `None`: the first `weight` blocks are valid.
    bits: Option<Box<[u64]>>,
}

impl ValidBlocks {
    /// Returns the set of the first `blocks` blocks.
    pub(super) fn first(blocks: u32) -> ValidBlocks {
        ValidBlocks {
            weight: blocks,
            bits: None,
        }
    }

    /// Number of valid blocks.
    pub(super) fn weight(&self) -> u32 {
        self.weight
    }

    /// Adds the blocks `start..end` of a zone of `all` blocks.
    pub(super) fn add(&mut self, start: u32, end: u32, all: u32) {
        if self.bits.is_none() && start <= self.weight {
            self.weight = self.weight.max(end);
            return;
        }
        self.change(start, end, all, true);
    }

    /// Removes the blocks `start..end` of a zone of `all` blocks.
    pub(super) fn remove(&mut self, start: u32, end: u32, all: u32) {
        if self.bits.is_none() && end >= self.weight {
            self.weight = self.weight.min(start);
            return;
        }
        self.change(start, end, all, false);
        if self.weight == 0 {
            self.bits = None;
        }
    }

    fn change(&mut self, start: u32, end: u32, all: u32, add: bool) {
        let weight = self.weight;
        let bits = self.bits.get_or_insert_with(|| {
            let mut bits = vec![0; all.div_ceil(BITS) as usize].into_boxed_slice();
            for_words(0, weight, |word, mask| bits[word] |= mask);
            bits
        });
        for_words(start, end, |word, mask| {
            let before = bits[word];
            bits[word] = match add {
                true => before | mask,
                false => before & !mask,
            };
            let (old, new) = (before.count_ones(), bits[word].count_ones());
            self.weight = self.weight + new - old;
        });
    }

    /// Returns the state of block `at`, and the first block after `at`, at most `end`, with another
    /// state.
    pub(super) fn run(&self, at: u32, end: u32) -> (bool, u32) {
        let Some(bits) = &self.bits else {
            return match at < self.weight {
                true => (true, self.weight.min(end)),
                false => (false, end),
            };
        };
        let valid = bits[(at / BITS) as usize] >> (at % BITS) & 1 == 1;
        let mut next = at;
        while next < end {
            let word = bits[(next / BITS) as usize];
            let other = match valid {
                true => !word,
                false => word,
            };
            let other = other >> (next % BITS);
            if other != 0 {
                return (valid, (next + other.trailing_zeros()).min(end));
            }
            next += BITS - next % BITS;
        }
        (valid, end)
    }

    /// Returns the first run of valid blocks in `at..end`.
    pub(super) fn next_run(&self, at: u32, end: u32) -> Option<(u32, u32)> {
        if at >= end {
            return None;
        }
        let (valid, next) = self.run(at, end);
        match valid {
            true => Some((at, next)),
            false if next < end => Some((next, self.run(next, end).1)),
            false => None,
        }
    }
}

/// Calls `each` with the words of `start..end` and the mask of the bits in the word.
fn for_words(start: u32, end: u32, mut each: impl FnMut(usize, u64)) {
    let mut at = start;
    while at < end {
        let stop = end.min(at - at % BITS + BITS);
        let count = stop - at;
        let mask = match count {
            BITS => u64::MAX,
            count => ((1 << count) - 1) << (at % BITS),
        };
        each((at / BITS) as usize, mask);
        at = stop;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_set_equals_a_list_of_flags(
            changes in prop::collection::vec((0u32..200, 1u32..90, any::<bool>()), 1..20),
            first in 0u32..200,
        ) {
            let mut set = ValidBlocks::first(first);
            let mut flags: Vec<bool> = (0..200).map(|block| block < first).collect();
            for (start, count, add) in changes {
                let end = (start + count).min(200);
                match add {
                    true => set.add(start, end, 200),
                    false => set.remove(start, end, 200),
                }
                flags[start as usize..end as usize].fill(add);
                prop_assert_eq!(set.weight() as usize, flags.iter().filter(|flag| **flag).count());
                let mut at = 0;
                let mut seen = vec![false; 200];
                while let Some((start, end)) = set.next_run(at, 200) {
                    seen[start as usize..end as usize].fill(true);
                    at = end;
                }
                prop_assert_eq!(&seen, &flags);
            }
        }
    }
}
