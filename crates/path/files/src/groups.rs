//! Block groups of ext2, ext3 and ext4: the layout that `mke2fs` makes, and the free blocks and
//! inodes of each group.
//!
//! A group takes a few bytes of memory until a block or inode in it is allocated. Only then the
//! free runs of the group are built.

mod free;
mod inodes;
mod layout;

pub(crate) use free::{FreeBlocks, ORDER_MAX, buddy_at};
pub(crate) use inodes::{InodeSearch, Scheme};
pub(crate) use layout::{BLOCKS_PER_GROUP, GroupLayout, MakeRefusal, Mke2fsOptions};

use crate::MetaAccesses;
use crate::runs::DisjointRuns;
use std::cell::Cell;
use std::ops::Range;

/// Counters of a group descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupCounts {
    pub(crate) blocks: u32,
    pub(crate) inodes: u32,
    pub(crate) directories: u32,
    /// Directories minus files made recently, kept within 0 to 255 (`s_debts`).
    debt: u8,
}

/// Free blocks and inodes of a group, numbered from the beginning of the group.
#[derive(Clone, Debug)]
struct GroupSpace {
    blocks: FreeBlocks,
    inodes: DisjointRuns,
    /// Upper bound of the free runs of blocks. The longest run may have become shorter since.
    longest: u64,
}

/// All groups of a file system.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) layout: GroupLayout,
    counts: Vec<GroupCounts>,
    /// Free space by group; `None` until something in the group was allocated.
    built: Vec<Option<Box<GroupSpace>>>,
    pub(crate) free_blocks: u64,
    free_inodes: u64,
    directories: u64,
    /// True if each change also writes the superblock's counters (ext2's `sb->s_dirt`). File
    /// systems with jbd2 add the counters up at the mount instead.
    writes_super: bool,
    /// Blocks that `mkfs` gave to hidden inodes.
    hidden: Vec<Range<u64>>,
    /// Bitmaps that are on the device, if `mkfs` has left the others out.
    made: Option<WrittenBitmaps>,
}

/// By group: true if the bitmap is on the device and not in memory. The kernel makes the other
/// bitmaps in memory, without a read (`EXT4_BG_BLOCK_UNINIT`, `EXT4_BG_INODE_UNINIT`).
#[derive(Clone, Debug)]
struct WrittenBitmaps {
    blocks: Vec<Cell<bool>>,
    inodes: Vec<Cell<bool>>,
}

impl Groups {
    pub(crate) fn new(layout: GroupLayout, writes_super: bool) -> Groups {
        let counts: Vec<GroupCounts> = (0..layout.groups)
            .map(|group| GroupCounts {
                blocks: layout.free_blocks(group) as u32,
                inodes: layout.inodes_per_group,
                directories: 0,
                debt: 0,
            })
            .collect();
        let free_blocks = counts.iter().map(|count| u64::from(count.blocks)).sum();
        let free_inodes = u64::from(layout.groups) * u64::from(layout.inodes_per_group);
        let built = (0..layout.groups).map(|_| None).collect();
        let hidden = Vec::new();
        Groups {
            layout,
            counts,
            built,
            free_blocks,
            free_inodes,
            directories: 0,
            writes_super,
            hidden,
            made: None,
        }
    }

    /// Leaves out the bitmaps of unused groups, as `mke2fs` does for ext4 (`uninit_bg`,
    /// `metadata_csum`). The first group has the root. The first group of each flex group has the
    /// metadata of the others, so `mke2fs` writes its bitmap. Descriptors stay in memory from the
    /// mount on. With `prefetched`, the block bitmaps are in memory, too, and need no read either
    /// (`ext4_mb_prefetch` in `ext4_run_li_request`).
    #[must_use]
    pub(crate) fn made_lazily(mut self, prefetched: bool) -> Groups {
        let flex = self.layout.flex.max(1);
        self.made = Some(WrittenBitmaps {
            blocks: (0..self.count())
                .map(|group| Cell::new(group % flex == 0 && !prefetched))
                .collect(),
            inodes: (0..self.count())
                .map(|group| Cell::new(group == 0))
                .collect(),
        });
        self
    }

    /// Reports that a bitmap is read and changed. A bitmap that is not on the device is new.
    fn change_bitmap(page: u64, made: Option<&Cell<bool>>, touches: &mut MetaAccesses) {
        match made {
            Some(made) if !made.replace(true) => touches.fresh(page),
            _ => touches.change(page),
        }
    }

    fn change_inode_bitmap(&self, group: u32, touches: &mut MetaAccesses) {
        let made = self.made.as_ref().map(|made| &made.inodes[group as usize]);
        Groups::change_bitmap(self.layout.inode_bitmap(group), made, touches);
    }

    /// Reports the block of the inode table with the new inode `number`. If all other inodes of the
    /// block are free, the kernel fills the block with zeros and does not read it
    /// (`__ext4_get_inode_loc`).
    pub(crate) fn touch_new_inode(&mut self, number: u32, touches: &mut MetaAccesses) {
        let per_block = 4096 / self.layout.inode_bytes;
        let within = u64::from((number - 1) % self.layout.inodes_per_group);
        let first = within - within % per_block;
        let group = self.layout.group_of_inode(number);
        let free = &self.build(group).inodes;
        let alone = (first..first + per_block).all(|inode| inode == within || free.contains(inode));
        if self.made.is_some() && alone {
            touches.fresh(self.layout.inode_block(number));
        }
    }

    /// Gives blocks to a hidden inode, such as the journal, as `mkfs` does. Takes up to `count`
    /// blocks of the group's first free run. Returns `None` if the group has no free block.
    pub(crate) fn reserve_hidden(&mut self, group: u32, count: u64) -> Option<Range<u64>> {
        let first = self.layout.first_block(group);
        let run = self.build(group).blocks.runs().iter().next()?;
        let blocks = first + run.start..first + run.end.min(run.start + count);
        self.reserve(blocks.clone());
        // `mkfs` writes the bitmap of a group with hidden blocks.
        if let Some(made) = &self.made {
            made.blocks[group as usize].set(true);
        }
        self.hidden.push(blocks.clone());
        Some(blocks)
    }

    /// Keeps these blocks away from all files, as `mkfs` does with bad blocks. `blocks` is
    /// ascending. Metadata in such blocks stay in place.
    pub(crate) fn keep_off(&mut self, blocks: impl Iterator<Item = u64>) {
        let end = self.layout.blocks;
        for block in blocks.take_while(|&block| block < end) {
            let (group, within) = self.layout.within(block..block + 1);
            if self.build(group).blocks.runs().contains(within.start) {
                self.reserve(block..block + 1);
                self.hidden.push(block..block + 1);
            }
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.layout.groups
    }

    pub(crate) fn counts(&self, group: u32) -> GroupCounts {
        self.counts[group as usize]
    }

    pub(crate) fn free_inodes(&self) -> u64 {
        self.free_inodes
    }

    fn build(&mut self, group: u32) -> &mut GroupSpace {
        let layout = &self.layout;
        self.built[group as usize].get_or_insert_with(|| {
            Box::new(GroupSpace {
                blocks: layout.free_runs(group).into(),
                inodes: DisjointRuns::of(0..u64::from(layout.inodes_per_group)),
                longest: layout.size(group),
            })
        })
    }

    /// Returns the free blocks of a group, numbered within the group. Reads the group's bitmap.
    pub(crate) fn blocks(&mut self, group: u32, touches: &mut MetaAccesses) -> &FreeBlocks {
        let made = self.made.as_ref();
        if made.is_none_or(|made| made.blocks[group as usize].get()) {
            touches.read(self.layout.block_bitmap(group));
        }
        &self.build(group).blocks
    }

    /// Returns the free blocks of a group without a read, for data that the kernel keeps in memory
    /// (buddies).
    pub(crate) fn searched(&mut self, group: u32) -> &FreeBlocks {
        &self.build(group).blocks
    }

    /// Returns an upper bound of the group's free runs (`bb_largest_free_order`).
    pub(crate) fn longest(&mut self, group: u32) -> u64 {
        self.build(group).longest
    }

    /// Computes the bound of `longest` again, after a search in vain.
    pub(crate) fn measure_longest(&mut self, group: u32) {
        let free = self.build(group);
        free.longest = free
            .blocks
            .runs()
            .iter()
            .map(|run| run.end - run.start)
            .max()
            .unwrap_or(0);
    }

    /// Allocates free blocks, all in one group.
    pub(crate) fn take(&mut self, blocks: Range<u64>, touches: &mut MetaAccesses) {
        self.reserve(blocks.clone());
        self.mark(blocks, touches);
    }

    /// Reserves free blocks of one group in memory only.
    pub(crate) fn reserve(&mut self, blocks: Range<u64>) {
        let (group, within) = self.layout.within(blocks);
        let length = within.end - within.start;
        let free = &mut self.build(group).blocks;
        debug_assert!(
            free.runs()
                .run_at(within.start)
                .is_some_and(|run| run.end >= within.end)
        );
        free.remove(within);
        self.counts[group as usize].blocks -= length as u32;
        self.free_blocks -= length;
    }

    /// Records in `touches` that blocks of one group change on the device: reserved blocks become
    /// used, or used blocks become free.
    pub(crate) fn mark(&self, blocks: Range<u64>, touches: &mut MetaAccesses) {
        let group = self.layout.group_of(blocks.start);
        let made = self.made.as_ref().map(|made| &made.blocks[group as usize]);
        Groups::change_bitmap(self.layout.block_bitmap(group), made, touches);
        self.changed_counts(group, touches);
    }

    /// As `mark`, for blocks of several groups.
    pub(crate) fn mark_all(&self, blocks: Range<u64>, touches: &mut MetaAccesses) {
        self.by_group(blocks)
            .for_each(|part| self.mark(part, touches));
    }

    /// Frees blocks of any groups.
    pub(crate) fn free_blocks(&mut self, blocks: Range<u64>, touches: &mut MetaAccesses) {
        let parts: Vec<Range<u64>> = self.by_group(blocks).collect();
        for part in parts {
            self.unreserve(part.clone());
            self.mark(part, touches);
        }
    }

    /// Splits `blocks` at group boundaries.
    fn by_group(&self, blocks: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let mut at = blocks.start;
        std::iter::from_fn(move || {
            let end = blocks.end.min(self.layout.end_of_group(at));
            let part = at..end;
            at = end;
            (!part.is_empty()).then_some(part)
        })
    }

    /// Frees reserved blocks of one group.
    pub(crate) fn unreserve(&mut self, blocks: Range<u64>) {
        let (group, within) = self.layout.within(blocks);
        let length = within.end - within.start;
        let free = self.build(group);
        free.blocks.insert(within.clone());
        // The freed blocks may join free neighbours, so the joined run counts.
        let run = free
            .blocks
            .runs()
            .run_at(within.start)
            .map_or(0, |run| run.end - run.start);
        free.longest = free.longest.max(run);
        self.counts[group as usize].blocks += length as u32;
        self.free_blocks += length;
    }

    fn changed_counts(&self, group: u32, touches: &mut MetaAccesses) {
        let descriptor = self.layout.descriptor(group);
        // ext4 keeps the descriptors in memory from the mount on, so no read comes first.
        if self.made.is_some() {
            touches.change_resident(descriptor);
        } else {
            touches.change(descriptor);
        }
        if self.writes_super {
            touches.change(0);
        }
    }

    /// Returns the metadata that belong to no file.
    pub(crate) fn metadata(&self) -> Vec<Range<u64>> {
        let fixed = (0..self.count()).flat_map(|group| self.layout.metadata(group));
        fixed.chain(self.hidden.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests;
