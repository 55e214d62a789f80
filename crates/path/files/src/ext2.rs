//! ext2 of Linux 2.6.16 to 2.6.24 (fs/ext2).
//!
//! | model | from |
//! |---|---|
//! | groups, tables, reserved descriptors | `mke2fs` |
//! | groups of directories and files | `find_group_orlov`, `find_group_other` |
//! | goal of a block | `ext2_find_goal`, `ext2_find_near` |
//! | `allocation = "preallocation"`: 8 blocks at a time, up to 2.6.23 | `ext2_alloc_block`, `ext2_new_block`, `grab_block` |
//! | `allocation = "reservation"`: windows in memory, from 2.6.24 | `ext2_new_blocks`, `alloc_new_reservation` |
//! | `allocation = "multiblock"`: the ext4 driver that serves ext2 in today's distributions | `ext4_mb_new_blocks` |
//! | 12 direct blocks, then indirect, double and triple | `ext2_alloc_branch` |
//!
//! A block gets its place when a program writes the block. Not modelled: extended attributes,
//! quotas, the 5 % reserved for root, hard links.

mod indirect;
mod preallocation;
mod reservation;

use crate::directory::Style;
use crate::format::{DiskFormat, Inode, New, NewObject};
use crate::groups::{GroupLayout, Groups, InodeSearch, Mke2fsOptions, Scheme};
use crate::map::MappedPages;
use crate::mballoc::{BlockRequest, Mballoc};
use crate::system::{AllocatorRegions, FileSystem, ObjectKind, Usage};
use crate::tree::FileTree;
use crate::{Caller, FileError, FileSystemSite, MetaAccesses};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Bytes, Random};
use indirect::Indirect;
use preallocation::PreallocatedBlocks;
use reservation::{ReservationWindow, ReservationWindows};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// One-line summary for the registry.
pub(crate) const SUMMARY: &str =
    "ext2 of Linux 2.6: block groups, indirect blocks, each block is placed when it is written";

/// The keys of ext2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Bytes of the device for each inode (`mke2fs -i`). Default 16 KiB; 8 KiB with e2fsprogs
    /// before 1.40.5.
    pub bytes_per_inode: Bytes,
    /// Size of an inode on the device in bytes, a power of two from 128 to 4096 (`mke2fs -I`).
    /// Default 128, as with e2fsprogs before 1.40.5; today 256.
    pub inode_size: Bytes,
    /// Block allocator. Default preallocation.
    pub allocation: Allocation,
    /// true writes contiguous dirty pages in one request of up to 1 MiB (`mpage_writepages`, all
    /// kernels from 2.6.0 on). The pages must be contiguous in the file and on the device. false
    /// writes page by page, so that only the elevator merges. Default true.
    pub mpage: bool,
}

/// Block allocator of ext2, by kernel version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Allocation {
    /// Up to 2.6.23: seven blocks behind each new block are set aside on the device.
    #[default]
    Preallocation,
    /// From 2.6.24: each file has a reservation window in memory. Other files avoid the window.
    Reservation,
    /// Today, where the ext4 driver serves ext2 (CONFIG_EXT4_USE_FOR_EXT2): ext4's multi-block
    /// allocator, one block at a time.
    Multiblock,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            bytes_per_inode: Bytes(16_384),
            inode_size: Bytes(128),
            allocation: Allocation::default(),
            mpage: true,
        }
    }
}

pub(crate) fn build(
    keys: &Keys,
    site: &FileSystemSite,
) -> Result<Box<dyn FileSystem>, ConfigError> {
    let config: Config = read(keys)?;
    check_make(config.bytes_per_inode, config.inode_size)?;
    let make = Mke2fsOptions {
        blocks: site.pages(),
        bytes_per_inode: config.bytes_per_inode.0,
        inode_bytes: config.inode_size.0,
        flex: 1,
        descriptor_bytes: 32,
    };
    let layout = GroupLayout::new(make).map_err(|refusal| site.unmade(refusal))?;
    let mut groups = Groups::new(layout, true);
    groups.reserve_inodes();
    groups.keep_off(site.straddling());
    let format = Ext2 {
        groups,
        tracks: site.tracks.clone(),
        config,
        windows: ReservationWindows::default(),
        multiblock: Mballoc::default(),
        random: site.seed.stream("ext2"),
    };
    let mut tree = FileTree::new(format, Ext2Inode::new(0), None);
    tree.create_initial_files()
        .map_err(|error| site.too_small(&error))?;
    Ok(Box::new(tree))
}

/// Checks the arguments of `mke2fs`. Returns an error if a value is out of range.
pub(crate) fn check_make(bytes_per_inode: Bytes, inode_size: Bytes) -> Result<(), ConfigError> {
    if !(1024..=67_108_864).contains(&bytes_per_inode.0) {
        let message =
            format!("{bytes_per_inode} is not within 1KiB to 64MiB, as mke2fs -i wants it");
        return Err(ConfigError::new("bytes_per_inode", message));
    }
    if !(128..=4096).contains(&inode_size.0) || !inode_size.0.is_power_of_two() {
        let message = format!("{inode_size} is not a power of two from 128B to 4KiB");
        return Err(ConfigError::new("inode_size", message));
    }
    Ok(())
}

/// State of an inode, specific to ext2.
#[derive(Debug)]
pub(crate) struct Ext2Inode {
    /// The group of the inode (`i_block_group`).
    group: u32,
    indirect: Indirect,
    /// The block placed last: page in the file and block on the device (`i_next_alloc_block`,
    /// `last_alloc_logical_block`).
    last: Option<(u64, u64)>,
    pool: PreallocatedBlocks,
    window: ReservationWindow,
}

impl Ext2Inode {
    fn new(group: u32) -> Ext2Inode {
        Ext2Inode {
            group,
            indirect: Indirect::default(),
            last: None,
            pool: PreallocatedBlocks::default(),
            window: ReservationWindow::default(),
        }
    }
}

#[derive(Debug)]
struct Ext2 {
    groups: Groups,
    /// Track boundaries. Blocks set aside for a file end at the end of a track.
    tracks: Option<Arc<Boundaries>>,
    config: Config,
    windows: ReservationWindows,
    multiblock: Mballoc,
    random: Random,
}

impl FileTree<Ext2> {
    /// Makes the root, `lost+found`, and the block of the hidden resize inode.
    fn create_initial_files(&mut self) -> Result<(), FileError> {
        self.make_root()?;
        self.make_at_once("lost+found", 4)?;
        self.format_mut()
            .groups
            .reserve_hidden(0, 1)
            .map(|_| ())
            .ok_or(FileError::NoSpace { needed: 1, free: 0 })
    }
}

impl Ext2 {
    /// Returns the preferred block for `page` (`ext2_find_goal`).
    fn goal(&self, caller: Caller, inode: &Inode<Ext2Inode>, page: u64) -> u64 {
        if let Some((last, block)) = inode.extra.last
            && last + 1 == page
        {
            return block + 1;
        }
        let near = inode.extra.indirect.near(page, &inode.map);
        near.unwrap_or_else(|| {
            let layout = &self.groups.layout;
            // The process number spreads the first blocks of different files over the group
            // (`ext2_find_near`). Otherwise concurrent writers in one group would compete for the
            // same blocks.
            let colour = u64::from(caller.process % 16) * (crate::groups::BLOCKS_PER_GROUP / 16);
            layout.first_block(inode.extra.group) + colour
        })
    }

    /// Allocates `count` blocks for a page and its missing indirect blocks.
    fn allocate(
        &mut self,
        number: u32,
        inode: &mut Inode<Ext2Inode>,
        (page, goal): (u64, u64),
        count: usize,
        touches: &mut MetaAccesses,
    ) -> Result<Vec<u64>, FileError> {
        let mut blocks = Vec::with_capacity(count);
        let mut goal = goal;
        let file = inode.kind == ObjectKind::File;
        while blocks.len() < count {
            let left = (count - blocks.len()) as u64;
            let got = match self.config.allocation {
                Allocation::Preallocation => {
                    let pool = file.then_some(&mut inode.extra.pool);
                    preallocation::block(
                        &mut self.groups,
                        goal,
                        pool,
                        self.tracks.as_deref(),
                        touches,
                    )
                }
                Allocation::Reservation => {
                    let window = file.then_some(&mut inode.extra.window);
                    let mut search = reservation::WindowSearch {
                        groups: &mut self.groups,
                        windows: &mut self.windows,
                    };
                    search.blocks(goal, left, window, touches)
                }
                Allocation::Multiblock => {
                    // An indirect block is metadata. The data page is the last of the blocks.
                    let request = BlockRequest {
                        inode: number,
                        data: file && left == 1,
                        open: inode.open,
                        page,
                        pages: 1,
                        length: inode.pages(),
                        goal,
                        left: None,
                        right: None,
                    };
                    self.multiblock
                        .allocate(&mut self.groups, &request, touches)
                }
            };
            match got {
                Ok(run) => {
                    goal = run.end - 1;
                    blocks.extend(run);
                }
                Err(error) => {
                    blocks
                        .iter()
                        // A part of a branch is of no use: without its indirect block the page has
                        // no address.
                        .for_each(|&block| self.groups.free_blocks(block..block + 1, touches));
                    return Err(error);
                }
            }
        }
        Ok(blocks)
    }

    /// Places one page, with the missing indirect blocks on its path (`ext2_alloc_branch`).
    fn place_page(
        &mut self,
        caller: Caller,
        number: u32,
        inode: &mut Inode<Ext2Inode>,
        page: u64,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let missing = inode.extra.indirect.missing(page);
        let goal = self.goal(caller, inode, page);
        let blocks = self.allocate(number, inode, (page, goal), missing.len() + 1, touches)?;
        if let Some(parent) = inode.extra.indirect.parent_of_missing(page) {
            touches.change(parent);
        }
        for (key, &block) in missing.into_iter().zip(&blocks) {
            inode.extra.indirect.insert(key, block);
            touches.fresh(block);
        }
        let Some(&block) = blocks.last() else {
            return Ok(());
        };
        inode.map.insert(MappedPages {
            page,
            block,
            pages: 1,
        });
        inode.extra.last = Some((page, block));
        Ok(())
    }

    /// Frees the blocks set aside for the file.
    fn discard(&mut self, number: u32, inode: &mut Inode<Ext2Inode>, touches: &mut MetaAccesses) {
        self.multiblock.discard(&mut self.groups, number);
        inode.extra.pool.discard(&mut self.groups, touches);
        self.windows.remove(&mut inode.extra.window);
    }
}

impl DiskFormat for Ext2 {
    type Extra = Ext2Inode;

    fn root(&self) -> u32 {
        2
    }

    fn page_limit(&self) -> u64 {
        indirect::PAGES_MAX
    }

    fn style(&self) -> Style {
        Style::Linear
    }

    fn usage(&self) -> Usage {
        let layout = &self.groups.layout;
        Usage {
            pages: layout.blocks,
            pages_free: self.groups.free_blocks,
            pages_delayed: 0,
            inodes: u64::from(layout.groups) * u64::from(layout.inodes_per_group),
            inodes_free: self.groups.free_inodes(),
        }
    }

    fn free_pages(&self) -> u64 {
        self.groups.free_blocks + self.multiblock.aside()
    }

    fn regions(&self) -> AllocatorRegions {
        let count = u64::from(self.groups.count());
        AllocatorRegions {
            pages: crate::groups::BLOCKS_PER_GROUP,
            count,
            name: "block group",
        }
    }

    fn metadata(&self) -> Vec<Range<u64>> {
        self.groups.metadata()
    }

    fn mapping(&self, inode: &Inode<Ext2Inode>) -> Vec<u64> {
        inode.extra.indirect.blocks().collect()
    }

    fn change_free(&self, pages: Range<u64>, touches: &mut MetaAccesses) {
        self.groups.mark_all(pages, touches);
    }

    fn pooled(&self) -> u64 {
        self.multiblock.pooled()
    }

    fn set_aside(&self, number: u32, inode: &Inode<Ext2Inode>) -> u64 {
        inode.extra.pool.blocks() + self.multiblock.aside_for(number)
    }

    fn new_inode(
        &mut self,
        _caller: Caller,
        wanted: &NewObject<'_, Ext2Inode>,
        touches: &mut MetaAccesses,
    ) -> Result<New<Ext2Inode>, FileError> {
        let near = wanted.parent_inode.extra.group;
        let search = InodeSearch::new(wanted, near, self.root(), Scheme::Ext2);
        let number = self.groups.new_inode(&search, &mut self.random, touches)?;
        Ok((
            number,
            Ext2Inode::new(self.groups.layout.group_of_inode(number)),
        ))
    }

    fn free_inode(&mut self, number: u32, inode: &Inode<Ext2Inode>, touches: &mut MetaAccesses) {
        self.groups
            .free_inode(number, inode.is_directory(), touches);
    }

    fn inode_page(&self, number: u32, _inode: &Inode<Ext2Inode>) -> u64 {
        self.groups.layout.inode_block(number)
    }

    fn place(
        &mut self,
        caller: Caller,
        number: u32,
        inode: &mut Inode<Ext2Inode>,
        mut pages: Range<u64>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        pages.try_for_each(|page| self.place_page(caller, number, inode, page, touches))
    }

    fn release(
        &mut self,
        number: u32,
        inode: &mut Inode<Ext2Inode>,
        page: u64,
        touches: &mut MetaAccesses,
    ) {
        self.discard(number, inode, touches);
        for piece in inode.map.cut(page) {
            self.groups
                .free_blocks(piece.block..piece.block + piece.pages, touches);
        }
        for block in inode.extra.indirect.cut(page) {
            touches.forget(block);
            self.groups.free_blocks(block..block + 1, touches);
        }
        if let Some(leaf) = inode.extra.indirect.leaf_within(page) {
            touches.change(leaf);
        }
        // The next write must not continue at a block that was freed.
        inode.extra.last = None;
    }

    fn walk(&self, inode: &Inode<Ext2Inode>, pages: Range<u64>, touches: &mut MetaAccesses) {
        inode
            .extra
            .indirect
            .path_blocks(pages)
            .for_each(|block| touches.read(block));
    }

    fn close(&mut self, number: u32, inode: &mut Inode<Ext2Inode>, touches: &mut MetaAccesses) {
        self.discard(number, inode, touches);
    }

    fn cluster(&self, inode: &Inode<Ext2Inode>, page: u64) -> Range<u64> {
        if self.config.mpage {
            crate::format::mpage(&inode.map, page)
        } else {
            page..page + 1
        }
    }
}
