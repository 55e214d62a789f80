//! Layout of the metadata written by `mke2fs`.

use crate::runs::DisjointRuns;
use std::ops::Range;

/// Blocks in a group: a bitmap of one block has this many bits.
pub(crate) const BLOCKS_PER_GROUP: u64 = 8 * 4096;
/// First unreserved inode (`EXT2_GOOD_OLD_FIRST_INO`).
pub(crate) const FIRST_INODE: u32 = 11;

/// Arguments of `mke2fs`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mke2fsOptions {
    /// Number of blocks of the device.
    pub(crate) blocks: u64,
    /// Bytes for each inode (`-i`).
    pub(crate) bytes_per_inode: u64,
    /// Size of an inode in bytes (`-I`).
    pub(crate) inode_bytes: u64,
    /// Number of groups whose bitmaps and tables lie together (`-G`); 1 keeps each group's own.
    pub(crate) flex: u32,
    /// Size of a group descriptor in bytes: 32, or 64 with the feature `64bit`.
    pub(crate) descriptor_bytes: u64,
}

/// Numbers computed from the arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLayout {
    pub(crate) blocks: u64,
    pub(crate) groups: u32,
    pub(crate) inodes_per_group: u32,
    pub(crate) inode_bytes: u64,
    pub(crate) flex: u32,
    descriptor_bytes: u64,
    /// Number of blocks of one group's inode table.
    table: u64,
    /// Number of blocks of all descriptors, and number of blocks reserved behind them for growth.
    descriptors: u64,
    reserved: u64,
}

/// Reason why `mke2fs` makes no file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MakeRefusal {
    /// The device does not hold the metadata and 50 more blocks.
    TooSmall { needed: u64 },
    /// The descriptors of all groups do not fit into one group.
    TooLarge { most: u64 },
}

impl GroupLayout {
    /// Returns an error if the device does not hold the metadata and 50 more blocks, or is too large.
    pub(crate) fn new(make: Mke2fsOptions) -> Result<GroupLayout, MakeRefusal> {
        let too_small = |needed| MakeRefusal::TooSmall { needed };
        // Below 2048 blocks, mke2fs makes a file system with blocks of 1 KiB, or a "floppy" file
        // system.
        if make.blocks < 2048 {
            return Err(too_small(2048));
        }
        let mut layout = GroupLayout::sized(make);
        // The model has no `meta_bg`, and mke2fs uses that feature only by word. Without the feature
        // the first group holds the descriptors of all groups: 2^21 groups with descriptors of 64
        // bytes, 256 TiB (Documentation/filesystems/ext4/blockgroup.rst of Linux 6.1).
        let first = layout.fixed(0) + u64::from(layout.flex) * (2 + layout.table);
        if first >= BLOCKS_PER_GROUP {
            let most = BLOCKS_PER_GROUP * 4096 / make.descriptor_bytes * BLOCKS_PER_GROUP;
            return Err(MakeRefusal::TooLarge { most });
        }
        // A last group that cannot hold its own metadata and 50 more blocks is left out
        // (`ext2fs_initialize`).
        let last = layout.blocks % BLOCKS_PER_GROUP;
        let own: u64 = layout.fixed(layout.groups - 1) + layout.table + 2 + 50;
        if last > 0 && last < own && layout.groups > 1 {
            layout = GroupLayout::sized(Mke2fsOptions {
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

    fn sized(make: Mke2fsOptions) -> GroupLayout {
        let groups = make.blocks.div_ceil(BLOCKS_PER_GROUP).max(1);
        // As in `ext2fs_initialize`: the inodes of the whole device are divided by groups, and
        // rounded up to full table blocks.
        let inodes =
            (make.blocks * 4096 / make.bytes_per_inode.max(1024)).min(u64::from(u32::MAX) - 16);
        let per_block = 4096 / make.inode_bytes;
        let by_group = inodes.div_ceil(groups).clamp(16, BLOCKS_PER_GROUP);
        let by_group = by_group.div_ceil(per_block) * per_block;
        let table = by_group / per_block;
        let descriptors = (groups * make.descriptor_bytes).div_ceil(4096);
        // Space for the descriptors of a file system of 1024 times the size, limited to the
        // addresses in one indirect block (`calc_reserved_gdt_blocks`).
        let most = (make.blocks.saturating_mul(1024)).min(u64::from(u32::MAX));
        let grown = (most.div_ceil(BLOCKS_PER_GROUP) * make.descriptor_bytes).div_ceil(4096);
        let reserved = grown.saturating_sub(descriptors).min(1024);
        // Here all tables of a flex group lie in its first group. mke2fs continues in the next
        // group if the inodes are many and large.
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

    /// Returns the number of blocks of a group.
    pub(crate) fn size(&self, group: u32) -> u64 {
        self.end_of_group(self.first_block(group)) - self.first_block(group)
    }

    /// Returns the group of `blocks`, and the numbers of these blocks within the group.
    pub(crate) fn within(&self, blocks: Range<u64>) -> (u32, Range<u64>) {
        let group = self.group_of(blocks.start);
        let first = self.first_block(group);
        (group, blocks.start - first..blocks.end - first)
    }

    pub(crate) fn group_of_inode(&self, number: u32) -> u32 {
        (number - 1) / self.inodes_per_group
    }

    /// Returns true if the group has a copy of superblock and descriptors (`sparse_super`: 0, 1,
    /// powers of 3, 5 and 7).
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

    /// Returns the number of blocks of superblock and descriptors in the group.
    fn fixed(&self, group: u32) -> u64 {
        if self.has_super(group) {
            1 + self.descriptors + self.reserved
        } else {
            0
        }
    }

    /// Returns the groups of the flex group of `group`.
    fn flex_of(&self, group: u32) -> Range<u32> {
        let first = group - group % self.flex;
        first..(first + self.flex).min(self.groups)
    }

    /// Returns the first block of the bitmaps of the flex group.
    fn packed(&self, group: u32) -> u64 {
        let first = self.flex_of(group).start;
        self.first_block(first) + self.fixed(first)
    }

    /// Returns the position of `group` in its flex group, and the number of groups in the flex
    /// group.
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

    /// Returns the block of the inode table that holds the inode.
    pub(crate) fn inode_block(&self, number: u32) -> u64 {
        let group = self.group_of_inode(number);
        let within = u64::from((number - 1) % self.inodes_per_group);
        self.inode_table(group) + within * self.inode_bytes / 4096
    }

    /// Returns the block with the group's descriptor, in the first copy of the descriptors.
    pub(crate) fn descriptor(&self, group: u32) -> u64 {
        1 + u64::from(group) * self.descriptor_bytes / 4096
    }

    /// Returns the blocks in `group` that hold metadata of this group or of its flex group.
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

    /// Returns the number of free blocks of the group in a new file system.
    pub(crate) fn free_blocks(&self, group: u32) -> u64 {
        let metadata = self.metadata(group).into_iter();
        let metadata: u64 = metadata.map(|range| range.end - range.start).sum();
        assert!(
            metadata <= self.size(group),
            "group {group} has {metadata} blocks of metadata, and {} in all",
            self.size(group)
        );
        self.size(group) - metadata
    }

    /// Returns the free blocks of a new file system, numbered within the group.
    pub(crate) fn free_runs(&self, group: u32) -> DisjointRuns {
        let start = self.first_block(group);
        let mut free = DisjointRuns::of(0..self.size(group));
        for range in self.metadata(group) {
            free.remove(range.start - start..range.end - start);
        }
        free
    }
}
