//! Tree of a file's extents: a few extents in the inode, then leaves, then one level of index
//! blocks (`ext4_ext_map_blocks`, `xfs_bmapi`).
//!
//! Leaves are filled one after the other, as `ext4_ext_insert_extent` does for a file that grows at
//! its end. Splits in the middle of a leaf are not modelled.

use crate::MetaAccesses;
use crate::map::FileMap;
use std::ops::Range;

/// Capacities of a format's inode and blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeCapacities {
    /// Largest number of extents, or of addresses of lower blocks, in the inode.
    pub(crate) inode: u64,
    /// Largest number of extents or addresses in a block.
    pub(crate) block: u64,
    /// Longest extent in blocks.
    pub(crate) longest: u64,
}

/// The blocks of one file's tree.
#[derive(Debug)]
pub(crate) struct Nodes {
    fan: NodeCapacities,
    leaves: Vec<u64>,
    /// Index blocks above the leaves. They exist only if the inode cannot address all leaves.
    index: Vec<u64>,
}

/// Kind of the missing block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MissingBlock {
    Leaf,
    Index,
}

impl NodeCapacities {
    /// Returns the number of extents on the device. A piece longer than the longest extent counts
    /// as several.
    fn extents(self, map: &FileMap) -> u64 {
        // With this many pieces, only few are longer than an extent. An exact sum would cost more
        // time than the small difference is worth.
        let pieces = map.pieces().len() as u64;
        if pieces > self.block {
            return pieces;
        }
        map.pieces()
            .iter()
            .map(|piece| piece.pages.div_ceil(self.longest))
            .sum()
    }

    /// Returns the numbers of leaves and index blocks for `extents` extents.
    fn needed(self, extents: u64) -> (usize, usize) {
        if extents <= self.inode {
            return (0, 0);
        }
        let leaves = extents.div_ceil(self.block);
        let index = if leaves <= self.inode {
            0
        } else {
            leaves.div_ceil(self.block)
        };
        (leaves as usize, index as usize)
    }
}

impl Nodes {
    pub(crate) fn new(fan: NodeCapacities) -> Nodes {
        Nodes {
            fan,
            leaves: Vec::new(),
            index: Vec::new(),
        }
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.leaves.iter().chain(&self.index).copied()
    }

    pub(crate) fn missing(&self, map: &FileMap) -> Option<MissingBlock> {
        let (leaves, index) = self.fan.needed(self.fan.extents(map));
        if self.leaves.len() < leaves {
            Some(MissingBlock::Leaf)
        } else {
            (self.index.len() < index).then_some(MissingBlock::Index)
        }
    }

    pub(crate) fn add(&mut self, missing: MissingBlock, block: u64) {
        match missing {
            MissingBlock::Leaf => self.leaves.push(block),
            MissingBlock::Index => self.index.push(block),
        }
    }

    /// Removes and returns the blocks that the tree no longer needs.
    pub(crate) fn surplus(&mut self, map: &FileMap) -> Vec<u64> {
        let (leaves, index) = self.fan.needed(self.fan.extents(map));
        let mut surplus = self.leaves.split_off(leaves.min(self.leaves.len()));
        surplus.extend(self.index.split_off(index.min(self.index.len())));
        surplus
    }

    /// Returns the leaf that has, or would have, the extent of `page`.
    pub(crate) fn leaf(&self, map: &FileMap, page: u64) -> Option<u64> {
        let at = map.index_from(page) as u64 / self.fan.block;
        self.leaves.get(at as usize).or(self.leaves.last()).copied()
    }

    /// Reads the index blocks and leaves on the paths to `pages`.
    pub(crate) fn walk(&self, map: &FileMap, pages: Range<u64>, touches: &mut MetaAccesses) {
        if self.leaves.is_empty() || pages.is_empty() {
            return;
        }
        let leaf =
            |page| (map.index_from(page) / self.fan.block as usize).min(self.leaves.len() - 1);
        let (first, last) = (leaf(pages.start), leaf(pages.end - 1));
        for at in first..=last {
            if let Some(&index) = self.index.get(at / self.fan.block as usize) {
                touches.read(index);
            }
            touches.read(self.leaves[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_grows_by_leaves_of_340() {
        let needed = |extents| {
            NodeCapacities {
                inode: 4,
                block: 340,
                longest: 32_768,
            }
            .needed(extents)
        };
        assert_eq!(needed(4), (0, 0));
        assert_eq!(needed(5), (1, 0));
        assert_eq!(needed(340), (1, 0));
        assert_eq!(needed(341), (2, 0));
        assert_eq!(needed(4 * 340 + 1), (5, 1));
        assert_eq!(needed(340 * 340 + 1), (341, 2));
    }
}
