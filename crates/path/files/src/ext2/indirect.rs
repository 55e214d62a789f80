//! Indirect blocks: 12 block addresses in the inode, then one, two and three levels of blocks with
//! 1024 addresses each (`ext2_block_to_path`).

use crate::map::FileMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of block addresses in the inode.
const DIRECT: u64 = 12;
/// Number of addresses in an indirect block.
const FAN: u64 = 1024;
/// Number of the first leaf below the triple indirect block.
const TRIPLE: u64 = 1 + FAN;
/// Largest file in pages. `i_blocks` has 32 bits and counts 512-byte sectors, indirect blocks
/// included (`ext2_max_size`).
pub(super) const PAGES_MAX: u64 = (u32::MAX as u64) / 8 - (1 + (1 + FAN) + (1 + FAN + FAN * FAN));

/// Identifies an indirect block: its level, and its number among the blocks of this level in file
/// order. A block of level 1 holds addresses of data.
pub(super) type Key = (u8, u64);

/// The indirect blocks of one file.
#[derive(Debug, Default)]
pub(super) struct Indirect {
    blocks: BTreeMap<Key, u64>,
}

/// Returns the number of the leaf with the address of `page`; `None` for the direct pages.
fn leaf(page: u64) -> Option<u64> {
    page.checked_sub(DIRECT).map(|page| page / FAN)
}

/// Returns the indirect blocks on the path from the inode to `page`.
fn path(page: u64) -> Vec<Key> {
    match leaf(page) {
        None => vec![],
        Some(0) => vec![(1, 0)],
        Some(leaf) if leaf < TRIPLE => vec![(2, 0), (1, leaf)],
        Some(leaf) => vec![(3, 0), (2, 1 + (leaf - TRIPLE) / FAN), (1, leaf)],
    }
}

/// Returns the first page whose path contains `key`.
fn first_page((level, number): Key) -> u64 {
    let leaf = match (level, number) {
        (1, number) => number,
        (2, 0) => 1,
        (2, number) => TRIPLE + (number - 1) * FAN,
        _ => TRIPLE,
    };
    DIRECT + leaf * FAN
}

impl Indirect {
    /// Returns the existing blocks.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.blocks.values().copied()
    }

    /// Returns the missing blocks on the path to `page`, from the top.
    pub(super) fn missing(&self, page: u64) -> Vec<Key> {
        let mut path = path(page);
        path.retain(|key| !self.blocks.contains_key(key));
        path
    }

    /// Returns the deepest existing block on the path to `page`. This block gets the new address.
    pub(super) fn parent_of_missing(&self, page: u64) -> Option<u64> {
        path(page)
            .iter()
            .rev()
            .find_map(|key| self.blocks.get(key).copied())
    }

    pub(super) fn insert(&mut self, key: Key, block: u64) {
        self.blocks.insert(key, block);
    }

    /// Returns a block near which `page` should be placed, or near which the first missing block on
    /// its path should be placed. This is the last address before it in the same indirect block,
    /// else the indirect block itself (`ext2_find_near`).
    pub(super) fn near(&self, page: u64, map: &FileMap) -> Option<u64> {
        let path = path(page);
        let missing = path.iter().position(|key| !self.blocks.contains_key(key));
        match missing {
            None => {
                let first = path.last().map_or(0, |&key| first_page(key));
                let before = map
                    .before(page)
                    .filter(|(last, _)| *last >= first)
                    .map(|(_, block)| block);
                before.or_else(|| path.last().and_then(|key| self.blocks.get(key).copied()))
            }
            Some(0) => self.near_top(path[0].0, map),
            Some(at) => {
                let (level, number) = path[at];
                let parent = path[at - 1];
                let first = if level == 1 {
                    (first_page(parent) - DIRECT) / FAN
                } else {
                    1
                };
                let sibling = self
                    .blocks
                    .range((level, first)..(level, number))
                    .next_back();
                sibling
                    .map(|(_, &block)| block)
                    .or_else(|| self.blocks.get(&parent).copied())
            }
        }
    }

    /// Returns the last address in the inode before the top block of `level`.
    fn near_top(&self, level: u8, map: &FileMap) -> Option<u64> {
        let above = [(2, 0), (1, 0)]
            .into_iter()
            .filter(|&(other, _)| other < level);
        above
            .into_iter()
            .find_map(|key| self.blocks.get(&key).copied())
            .or_else(|| map.before(DIRECT).map(|(_, block)| block))
    }

    /// Removes and returns the blocks that lead only to pages from `page` on.
    pub(super) fn cut(&mut self, page: u64) -> Vec<u64> {
        let gone: Vec<Key> = self
            .blocks
            .keys()
            .copied()
            .filter(|&key| first_page(key) >= page)
            .collect();
        gone.iter()
            .filter_map(|key| self.blocks.remove(key))
            .collect()
    }

    /// Returns the leaf that loses only a part of its addresses when the file is truncated at
    /// `page`.
    pub(super) fn leaf_within(&self, page: u64) -> Option<u64> {
        let leaf = leaf(page)?;
        (first_page((1, leaf)) < page)
            .then(|| self.blocks.get(&(1, leaf)).copied())
            .flatten()
    }

    /// Returns the indirect blocks to read for the addresses of `pages`.
    pub(super) fn path_blocks(&self, pages: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let first = leaf(pages.start.max(DIRECT)).unwrap_or(0);
        let last = if pages.end > DIRECT {
            leaf(pages.end - 1).map_or(0, |leaf| leaf + 1)
        } else {
            0
        };
        // Only existing leaves are visited, so that a hole of terabytes costs no time.
        let leaves = self.blocks.range((1, first)..(1, last.max(first)));
        leaves
            .flat_map(|(&key, _)| path(first_page(key)))
            .filter_map(|key| self.blocks.get(&key).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_the_levels_that_ext2_has() {
        assert_eq!(path(11), []);
        assert_eq!(path(12), [(1, 0)]);
        assert_eq!(path(12 + 1023), [(1, 0)]);
        assert_eq!(path(12 + 1024), [(2, 0), (1, 1)]);
        let triple = 12 + 1024 + 1024 * 1024;
        assert_eq!(path(triple - 1), [(2, 0), (1, 1024)]);
        assert_eq!(path(triple), [(3, 0), (2, 1), (1, 1025)]);
        assert_eq!(path(triple + 1024 * 1024), [(3, 0), (2, 2), (1, 2049)]);
        for page in [12, 1036, triple, triple + 1024 * 1024] {
            assert!(path(page).into_iter().all(|key| first_page(key) <= page));
            assert_eq!(path(page).last().map(|&key| first_page(key)), Some(page));
        }
    }
}
