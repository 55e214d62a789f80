//! Map of used blocks: fio's random map.
//!
//! The lowest level has one bit for each block. Each higher level has one bit for each full word of
//! the level below. So the next free block is found in a few steps, even if the map is almost full.
//! Only words with a used block are kept: a run uses a small part of a large disk.

use std::collections::BTreeMap;

const WORD: u64 = 64;

/// Map of used blocks. Bits behind the last block count as used.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    blocks: u64,
    /// Levels from the blocks upwards.
    levels: Vec<Level>,
}

/// Bits of one level. A set bit means used, or full.
#[derive(Clone, Debug)]
struct Level {
    /// Number of words.
    words: u64,
    /// Words with a set bit. The last word is among them if the level ends inside of it.
    set: BTreeMap<u64, u64>,
}

impl Level {
    /// Makes a level of `bits` free bits. Bits behind the last one count as used, so that a search
    /// never finds them.
    fn new(bits: u64) -> Level {
        let mut level = Level {
            words: bits.div_ceil(WORD),
            set: BTreeMap::new(),
        };
        if !bits.is_multiple_of(WORD) {
            level.set.insert(level.words - 1, u64::MAX << (bits % WORD));
        }
        level
    }

    /// Returns a word that is in the level.
    fn word(&self, index: u64) -> u64 {
        self.set.get(&index).copied().unwrap_or(0)
    }
}

impl Coverage {
    /// Makes a map of `blocks` free blocks, at least one.
    pub(crate) fn new(blocks: u64) -> Coverage {
        let mut levels = Vec::new();
        let mut bits = blocks.max(1);
        loop {
            levels.push(Level::new(bits));
            bits = bits.div_ceil(WORD);
            if bits == 1 {
                break;
            }
        }
        Coverage { blocks, levels }
    }

    /// Marks all blocks as free.
    pub(crate) fn clear(&mut self) {
        *self = Coverage::new(self.blocks);
    }

    /// Returns the first free block from `block` on, else the first free block of the map; `None`
    /// if no block is free.
    pub(crate) fn next_free(&self, block: u64) -> Option<u64> {
        self.free_from(block).or_else(|| self.free_from(0))
    }

    fn free_from(&self, block: u64) -> Option<u64> {
        let mut from = block;
        for (height, level) in self.levels.iter().enumerate() {
            if from / WORD >= level.words {
                return None;
            }
            let free = !level.word(from / WORD) & (u64::MAX << (from % WORD));
            if free != 0 {
                let found = from / WORD * WORD + u64::from(free.trailing_zeros());
                return Some(self.descend(height, found));
            }
            // The rest of the word is taken, so the search goes on one level up, in the next word.
            from = from / WORD + 1;
        }
        None
    }

    /// Returns the first free block below bit `found` of level `height`.
    fn descend(&self, height: usize, found: u64) -> u64 {
        self.levels[..height]
            .iter()
            .rev()
            .fold(found, |index, level| {
                index * WORD + u64::from((!level.word(index)).trailing_zeros())
            })
    }

    /// Marks up to `count` free blocks from `block` on as used, and stops at the first used block.
    /// `block` must be free. Returns the number of blocks marked.
    pub(crate) fn take(&mut self, block: u64, count: u64) -> u64 {
        debug_assert!(
            block < self.blocks && count > 0,
            "{count} blocks at {block} of a map of {}",
            self.blocks
        );
        let free = |block: &u64| self.levels[0].word(block / WORD) >> (block % WORD) & 1 == 0;
        let end = block.saturating_add(count).min(self.blocks);
        let taken = (block..end).take_while(free).count() as u64;
        (block..block + taken).for_each(|block| self.mark(block));
        taken
    }

    fn mark(&mut self, block: u64) {
        let mut index = block;
        for level in &mut self.levels {
            let word = level.set.entry(index / WORD).or_default();
            debug_assert!(
                *word >> (index % WORD) & 1 == 0,
                "bit {index} of the map is set twice, for block {block}"
            );
            *word |= 1 << (index % WORD);
            // Only a full word is marked on the level above.
            if *word != u64::MAX {
                break;
            }
            index /= WORD;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_block_is_taken_once(blocks in 1u64..20_000, step in 1u64..5000, count in 1u64..9) {
            let mut coverage = Coverage::new(blocks);
            for _ in 0..2 {
                let mut seen = vec![false; blocks as usize];
                let mut from = 0;
                while let Some(block) = coverage.next_free(from) {
                    let taken = coverage.take(block, count);
                    prop_assert!((1..=count).contains(&taken));
                    for block in block..block + taken {
                        prop_assert!(!std::mem::replace(&mut seen[block as usize], true));
                    }
                    from = (from + step) % blocks;
                }
                prop_assert!(seen.into_iter().all(|seen| seen));
                coverage.clear();
            }
        }
    }
}
