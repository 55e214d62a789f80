//! The free entries of a table, to find the lowest index.

/// One bit for each entry, set for a free entry, and one bit for each word that has a free entry.
pub(super) struct FreeEntries {
    words: Vec<u64>,
    summary: Vec<u64>,
}

const BITS: usize = u64::BITS as usize;

impl FreeEntries {
    /// Creates `count` free entries.
    pub(super) fn new(count: usize) -> FreeEntries {
        let mut free = FreeEntries {
            words: vec![0; count.div_ceil(BITS)],
            summary: vec![0; count.div_ceil(BITS * BITS)],
        };
        (0..count).for_each(|index| free.add(index));
        free
    }

    pub(super) fn add(&mut self, index: usize) {
        let word = index / BITS;
        self.words[word] |= 1 << (index % BITS);
        self.summary[word / BITS] |= 1 << (word % BITS);
    }

    pub(super) fn remove(&mut self, index: usize) {
        let word = index / BITS;
        self.words[word] &= !(1 << (index % BITS));
        if self.words[word] == 0 {
            self.summary[word / BITS] &= !(1 << (word % BITS));
        }
    }

    /// Returns the lowest index of a free entry.
    pub(super) fn first(&self) -> Option<usize> {
        let of_summary = self.summary.iter().position(|&words| words != 0)?;
        let word = BITS * of_summary + self.summary[of_summary].trailing_zeros() as usize;
        Some(BITS * word + self.words[word].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_lowest_free_entry(
            count in 1usize..10_000,
            steps in prop::collection::vec((any::<usize>(), any::<bool>()), 0..300),
        ) {
            let mut free = FreeEntries::new(count);
            let mut plain = vec![true; count];
            for (index, adds) in steps {
                // Low indices are taken often, so that whole words are empty.
                let index = if adds { index % count } else { free.first().unwrap_or(0) };
                match adds {
                    true => free.add(index),
                    false => free.remove(index),
                }
                plain[index] = adds;
                prop_assert_eq!(free.first(), plain.iter().position(|&free| free));
            }
        }
    }
}
