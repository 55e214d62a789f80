//! What `mke2fs` puts where.

use crate::FileError;
use crate::runs::Runs;
use std::ops::Range;

/// Blocks in a group: as many as a bitmap of one block has bits.
pub(crate) const BLOCKS_PER_GROUP: u64 = 8 * 4096;
/// The first inode that is not reserved (`EXT2_GOOD_OLD_FIRST_INO`).
pub(crate) const FIRST_INODE: u32 = 11;

/// What `mke2fs` is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Make {
    /// Blocks of the device.
    pub(crate) blocks: u64,
    /// `-i`.
    pub(crate) bytes_per_inode: u64,
    /// `-I`.
    pub(crate) inode_bytes: u64,
    /// `-G`: groups whose bitmaps and tables lie together; 1 = each its own.
    pub(crate) flex: u32,
    /// Bytes of a group descriptor: 32, or 64 with the feature `64bit`.
    pub(crate) descriptor_bytes: u64,
}

/// The numbers that follow from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLayout {
    pub(crate) blocks: u64,
    pub(crate) groups: u32,
    pub(crate) inodes_per_group: u32,
    pub(crate) inode_bytes: u64,
    pub(crate) flex: u32,
    descriptor_bytes: u64,
    /// Blocks of one group's inode table.
    table: u64,
    /// Blocks of all descriptors, and those kept free behind them for growth.
    descriptors: u64,
    reserved: u64,
}

impl GroupLayout {
    /// Errors where the device does not hold the metadata and a little more.
    pub(crate) fn new(make: Make) -> Result<GroupLayout, FileError> {
        let too_small = |needed| FileError::NoSpace {
            needed,
            free: make.blocks,
        };
        // 2048 blocks: below, mke2fs makes a file system of 1 KiB blocks, or a
        // "floppy" one.
        if make.blocks < 2048 {
            return Err(too_small(2048));
        }
        let mut layout = GroupLayout::sized(make);
        // A last group that cannot hold its own metadata and 50 blocks is left out
        // (`ext2fs_initialize`).
        let last = layout.blocks % BLOCKS_PER_GROUP;
        let own: u64 = layout.fixed(layout.groups - 1) + layout.table + 2 + 50;
        if last > 0 && last < own && layout.groups > 1 {
            layout = GroupLayout::sized(Make {
                blocks: make.blocks - last,
                ..make
            });
        }
        let metadata: u64 = (0..layout.groups.min(2 * layout.flex))
            .flat_map(|group| layout.metadata(group))
            .map(|range| range.end - range.start)
            .sum();
        if metadata + 50 > layout.blocks {
            return Err(too_small(metadata + 50));
        }
        Ok(layout)
    }

    fn sized(make: Make) -> GroupLayout {
        let groups = make.blocks.div_ceil(BLOCKS_PER_GROUP).max(1);
        // As `ext2fs_initialize`: inodes of the whole, by group, to full table blocks.
        let inodes =
            (make.blocks * 4096 / make.bytes_per_inode.max(1024)).min(u64::from(u32::MAX) - 16);
        let per_block = 4096 / make.inode_bytes;
        let by_group = inodes.div_ceil(groups).clamp(16, BLOCKS_PER_GROUP);
        let by_group = by_group.div_ceil(per_block) * per_block;
        let table = by_group / per_block;
        let descriptors = (groups * make.descriptor_bytes).div_ceil(4096);
        // Descriptors for 1024 times the size, in what one indirect block names
        // (`calc_reserved_gdt_blocks`).
        let most = (make.blocks.saturating_mul(1024)).min(u64::from(u32::MAX));
        let grown = (most.div_ceil(BLOCKS_PER_GROUP) * make.descriptor_bytes).div_ceil(4096);
        let reserved = grown.saturating_sub(descriptors).min(1024);
        // All tables of a flex group lie in its first group here; mke2fs lets them
        // go on in the next where inodes are many and large.
        let room = BLOCKS_PER_GROUP - 1 - descriptors.min(BLOCKS_PER_GROUP / 2) - reserved;
        let flex = u64::from(make.flex).min(room / (2 + table)).max(1);
        GroupLayout {
            blocks: make.blocks,
            groups: groups as u32,
            inodes_per_group: by_group as u32,
            inode_bytes: make.inode_bytes,
            flex: flex as u32,
            descriptor_bytes: make.descriptor_bytes,
            table,
            descriptors,
            reserved,
        }
    }

    pub(crate) fn first_block(&self, group: u32) -> u64 {
        u64::from(group) * BLOCKS_PER_GROUP
    }

    pub(crate) fn group_of(&self, block: u64) -> u32 {
        (block / BLOCKS_PER_GROUP) as u32
    }

    pub(crate) fn end_of_group(&self, block: u64) -> u64 {
        ((block / BLOCKS_PER_GROUP + 1) * BLOCKS_PER_GROUP).min(self.blocks)
    }

    /// Blocks of a group.
    pub(crate) fn size(&self, group: u32) -> u64 {
        self.end_of_group(self.first_block(group)) - self.first_block(group)
    }

    /// The group of `blocks`, and their numbers in it.
    pub(crate) fn within(&self, blocks: Range<u64>) -> (u32, Range<u64>) {
        let group = self.group_of(blocks.start);
        let first = self.first_block(group);
        (group, blocks.start - first..blocks.end - first)
    }

    pub(crate) fn group_of_inode(&self, number: u32) -> u32 {
        (number - 1) / self.inodes_per_group
    }

    /// Whether the group has a copy of superblock and descriptors (`sparse_super`: 0,
    /// 1, powers of 3, 5 and 7).
    fn has_super(&self, group: u32) -> bool {
        let power = |base: u32| {
            let mut power = base;
            while power < group {
                power = power.saturating_mul(base);
            }
            power == group
        };
        group <= 1 || power(3) || power(5) || power(7)
    }

    /// Blocks of superblock and descriptors in the group.
    fn fixed(&self, group: u32) -> u64 {
        if self.has_super(group) {
            1 + self.descriptors + self.reserved
        } else {
            0
        }
    }

    /// The groups whose bitmaps and tables lie together with this one's.
    fn flex_of(&self, group: u32) -> Range<u32> {
        let first = group - group % self.flex;
        first..(first + self.flex).min(self.groups)
    }

    /// Where the bitmaps of `group` and its fellows begin.
    fn packed(&self, group: u32) -> u64 {
        let first = self.flex_of(group).start;
        self.first_block(first) + self.fixed(first)
    }

    /// The group's place among its fellows, and how many they are.
    fn fellow(&self, group: u32) -> (u64, u64) {
        let flex = self.flex_of(group);
        (
            u64::from(group - flex.start),
            u64::from(flex.end - flex.start),
        )
    }

    pub(crate) fn block_bitmap(&self, group: u32) -> u64 {
        self.packed(group) + self.fellow(group).0
    }

    pub(crate) fn inode_bitmap(&self, group: u32) -> u64 {
        let (at, fellows) = self.fellow(group);
        self.packed(group) + fellows + at
    }

    fn inode_table(&self, group: u32) -> u64 {
        let (at, fellows) = self.fellow(group);
        self.packed(group) + 2 * fellows + at * self.table
    }

    /// The block of the inode table that has the inode.
    pub(crate) fn inode_block(&self, number: u32) -> u64 {
        let group = self.group_of_inode(number);
        let within = u64::from((number - 1) % self.inodes_per_group);
        self.inode_table(group) + within * self.inode_bytes / 4096
    }

    /// The block of the first copy of the descriptors that has the group's.
    pub(crate) fn descriptor(&self, group: u32) -> u64 {
        1 + u64::from(group) * self.descriptor_bytes / 4096
    }

    /// The blocks in `group` that are metadata of this or its fellow groups.
    pub(crate) fn metadata(&self, group: u32) -> Vec<Range<u64>> {
        let start = self.first_block(group);
        let fixed = start..start + self.fixed(group);
        let (at, fellows) = self.fellow(group);
        let packed = self.packed(group);
        let here = if at == 0 {
            packed..packed + fellows * (2 + self.table)
        } else {
            start..start
        };
        [fixed, here]
            .into_iter()
            .filter(|range| !range.is_empty())
            .collect()
    }

    /// Blocks of the group that are free in a new file system.
    pub(crate) fn free_blocks(&self, group: u32) -> u64 {
        let metadata = self.metadata(group);
        self.size(group)
            - metadata
                .iter()
                .map(|range| range.end - range.start)
                .sum::<u64>()
    }

    /// Those blocks, by their numbers in the group.
    pub(crate) fn free_runs(&self, group: u32) -> Runs {
        let start = self.first_block(group);
        let mut free = Runs::of(0..self.size(group));
        for range in self.metadata(group) {
            free.remove(range.start - start..range.end - start);
        }
        free
    }
}
