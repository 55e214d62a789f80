//! ext4 as of today (fs/ext4 of Linux 6.x): extents, delayed and multi-block allocation, flexible
//! block groups, a journal.
//!
//! | model | from |
//! |---|---|
//! | flex groups: bitmaps and inode tables of 16 groups together | `mke2fs -O flex_bg` |
//! | groups of directories and files | `find_group_orlov`, `find_group_other` |
//! | goal of data | `ext4_ext_find_goal`, `ext4_inode_to_goal_block` |
//! | delayed allocation; up to 2048 pages at a time | `ext4_da_write_begin`, `mpage_map_and_submit_extent` |
//! | multi-block allocation and the blocks it sets aside | `mballoc.rs` |
//! | a tree of extents, 4 in the inode, 340 in a block | `ext4_ext_insert_extent` |
//! | names by hash | `directory/htree.rs` |
//! | a transaction every 5 s, data first without `dioread_nolock` | `journal.rs`, `ext4_jbd2_inode_add_write` |
//! | new blocks unwritten until their data is there | `ext4_convert_unwritten_extents` |
//!
//! Not modelled: bigalloc, inline data, quotas, the 5 % reserved for root, hard links, extended
//! attributes, `fast_commit`.

use crate::directory::Style;
use crate::ext2::check_make;
use crate::extent_tree::{NodeCapacities, Nodes};
use crate::format::{DiskFormat, Inode, New, NewObject, WriteEnd, mpage};
use crate::groups::{BLOCKS_PER_GROUP, GroupLayout, Groups, InodeSearch, Mke2fsOptions, Scheme};
use crate::journal::{Journal, JournalFormat};
use crate::map::MappedPages;
use crate::mballoc::{BlockRequest, Mballoc};
use crate::system::{AllocatorRegions, FileSystem, ObjectKind, Usage};
use crate::tree::FileTree;
use crate::{Caller, FileError, FileSystemSite, MetaAccesses};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Duration, Random};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// One-line summary for the registry.
pub(crate) const SUMMARY: &str = "today's ext4: extents, delayed and multi-block allocation, flex groups, a journal with ordered data";

/// Largest number of pages that write-back maps at a time (`MAX_WRITEPAGES_EXTENT_LEN`).
const BATCH: u64 = 2048;
/// Largest file in pages: logical block numbers have 32 bits.
const PAGES_MAX: u64 = u32::MAX as u64;

/// The inode has 60 bytes and a block has 4096 bytes, less header and checksum; an extent takes 12
/// bytes. The longest extent is `EXT_INIT_MAX_LEN`.
const FAN: NodeCapacities = NodeCapacities {
    inode: 4,
    block: 340,
    longest: 32_768,
};

/// The keys of ext4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Bytes of the device for each inode (`mke2fs -i`). Default 16 KiB.
    pub bytes_per_inode: Bytes,
    /// Size of an inode on the device in bytes, a power of two from 128 to 4096 (`mke2fs -I`).
    /// Default 256.
    pub inode_size: Bytes,
    /// Number of groups whose bitmaps and inode tables lie together (`mke2fs -G`), a power of two
    /// up to 1024. Default 16.
    pub flex_groups: u32,
    /// Time for which a transaction collects changes before it is committed (mount option
    /// `commit`). Default 5s.
    pub commit: Duration,
    /// true chooses the place of data at write-back, false at the write (mount option `delalloc`).
    /// Default true.
    pub delalloc: bool,
    /// Order of data and metadata at a commit (mount option `data`). Default ordered. With
    /// `dioread_nolock` the transaction waits for no data in either mode.
    pub data: DataMode,
    /// true if new blocks of delayed data are unwritten until their data is on the device; the end
    /// of the write is then a change of metadata (mount option `dioread_nolock`, the default since
    /// Linux 5.6). No effect with `delalloc = false`. Default true; false in a host that is `like =
    /// "linux-2.6.23"` or "ideal".
    pub dioread_nolock: bool,
    /// true if `mke2fs` has left out the bitmaps of unused groups, and the kernel makes these
    /// bitmaps and the blocks of new inodes without a read (`mke2fs -O uninit_bg` or
    /// `metadata_csum`). Default true; false in a host that is `like = "linux-2.6.23"` or "ideal".
    pub uninit_bg: bool,
    /// true if the kernel reads all block bitmaps after the mount, in the background, so that they
    /// are in memory at the beginning of the run (mount option `prefetch_block_bitmaps`, the
    /// default since Linux 5.13). No effect with `uninit_bg = false`. Default true; false in a host
    /// that is `like = "linux-2.6.23"` or "ideal".
    pub prefetch_block_bitmaps: bool,
}

/// Mount option `data`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Data")]
pub enum DataMode {
    /// Data with a new place is written before the transaction that records the place.
    #[default]
    Ordered,
    /// No order between data and metadata.
    Writeback,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            bytes_per_inode: Bytes(16_384),
            inode_size: Bytes(256),
            flex_groups: 16,
            commit: Duration::from_secs(5),
            delalloc: true,
            data: DataMode::default(),
            dioread_nolock: true,
            uninit_bg: true,
            prefetch_block_bitmaps: true,
        }
    }
}

pub(crate) fn build(
    keys: &Keys,
    site: &FileSystemSite,
) -> Result<Box<dyn FileSystem>, ConfigError> {
    let config: Config = read(keys)?;
    check_make(config.bytes_per_inode, config.inode_size)?;
    if !config.flex_groups.is_power_of_two() || config.flex_groups > 1024 {
        let message = format!("{} is not a power of two up to 1024", config.flex_groups);
        return Err(ConfigError::new("flex_groups", message));
    }
    let make = Mke2fsOptions {
        blocks: site.pages(),
        bytes_per_inode: config.bytes_per_inode.0,
        inode_bytes: config.inode_size.0,
        flex: config.flex_groups,
        descriptor_bytes: 64,
    };
    let layout = GroupLayout::new(make).map_err(|refusal| site.unmade(refusal))?;
    let mut groups = Groups::new(layout, false);
    if config.uninit_bg {
        groups = groups.made_lazily(config.prefetch_block_bitmaps);
    }
    groups.reserve_inodes();
    groups.keep_off(site.straddling());
    let format = Ext4 {
        groups,
        config,
        multiblock: Mballoc::default(),
        random: site.seed.stream("ext4"),
    };
    let mut tree = FileTree::new(format, Ext4Inode::new(0), None);
    tree.create_initial_files()
        .map_err(|error| site.too_small(&error))?;
    Ok(Box::new(tree))
}

/// State of an inode, specific to ext4.
#[derive(Debug)]
pub(crate) struct Ext4Inode {
    /// The group of the inode (`i_block_group`).
    group: u32,
    nodes: Nodes,
}

impl Ext4Inode {
    fn new(group: u32) -> Ext4Inode {
        Ext4Inode {
            group,
            nodes: Nodes::new(FAN),
        }
    }
}

#[derive(Debug)]
struct Ext4 {
    groups: Groups,
    config: Config,
    multiblock: Mballoc,
    random: Random,
}

/// Returns the size of the journal in blocks (`ext2fs_default_journal_size`).
fn journal_blocks(blocks: u64) -> u64 {
    const KIB: u64 = 1024;
    match blocks {
        0..32_768 => KIB,
        32_768..262_144 => 4 * KIB,
        262_144..524_288 => 8 * KIB,
        524_288..4_194_304 => 16 * KIB,
        4_194_304..8_388_608 => 32 * KIB,
        8_388_608..16_777_216 => 64 * KIB,
        16_777_216..33_554_432 => 128 * KIB,
        _ => 256 * KIB,
    }
}

impl FileTree<Ext4> {
    /// Makes the root, `lost+found`, the block of the hidden resize inode, and the journal near the
    /// middle of the device (`get_midpoint_journal_block`).
    fn create_initial_files(&mut self) -> Result<(), FileError> {
        self.make_root()?;
        self.make_at_once("lost+found", 4)?;
        let format = self.format_mut();
        let no_space = |needed| FileError::NoSpace { needed, free: 0 };
        format.groups.reserve_hidden(0, 1).ok_or(no_space(1))?;
        let wanted = journal_blocks(format.groups.layout.blocks);
        let area = format.journal_area(wanted).ok_or(no_space(wanted))?;
        let journal = Journal::new(area, JournalFormat::Pages, format.config.commit);
        self.set_journal(journal);
        Ok(())
    }
}

impl Ext4 {
    /// Takes the first free runs from about the middle of the device on.
    fn journal_area(&mut self, wanted: u64) -> Option<Vec<Range<u64>>> {
        let layout = self.groups.layout;
        let count = self.groups.count();
        let middle = layout.group_of(layout.blocks / 2);
        // Of the first two groups of the flex group, or of the three groups around the middle, the
        // group with the most free blocks. The lowest group wins a tie.
        let (least, most) = if layout.flex > 1 && middle > layout.flex {
            let first = middle - middle % layout.flex;
            (first, first + 1)
        } else {
            (middle.saturating_sub(1), middle + 1)
        };
        let near = least..=most.min(count - 1);
        let first = near
            .rev()
            .max_by_key(|&group| self.groups.counts(group).blocks)?;
        let mut area = Vec::new();
        let mut left = wanted;
        for step in 0..count {
            while left > 0
                && let Some(run) = self.groups.reserve_hidden((first + step) % count, left)
            {
                left -= run.end - run.start;
                area.push(run);
            }
        }
        (left == 0).then_some(area)
    }

    /// Returns the preferred block for data (`ext4_ext_find_goal`, `ext4_inode_to_goal_block`).
    fn goal(&self, caller: Caller, inode: &Inode<Ext4Inode>, page: u64) -> u64 {
        // If the file has a nearby extent, the block at the same distance from this extent.
        if let Some((last, block)) = inode.map.before(page) {
            return block + (page - last);
        }
        if let Some(next) = inode.map.first_from(page)
            && let Some(block) = inode.map.block(next)
        {
            return block.saturating_sub(next - page);
        }
        let layout = &self.groups.layout;
        let mut group = inode.extra.group;
        // `EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME` (fs/ext4/ext4.h): smaller flex groups do not separate
        // directories from files.
        if layout.flex >= 4 {
            // The first group of a flex group is left to directories and small metadata.
            group -= group % layout.flex;
            if inode.kind == ObjectKind::File {
                group = (group + 1).min(layout.groups - 1);
            }
        }
        // Delayed allocation places whole runs, so concurrent writers do not interleave. Without
        // it, the process number spreads their goals over the group (`ext4_inode_to_goal_block`).
        let colour = if self.config.delalloc {
            0
        } else {
            u64::from(caller.process % 16) * (BLOCKS_PER_GROUP / 16)
        };
        layout.first_block(group) + colour
    }

    /// Allocates missing blocks of the extent tree, and frees surplus blocks.
    fn fit_nodes(
        &mut self,
        number: u32,
        inode: &mut Inode<Ext4Inode>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        while let Some(missing) = inode.extra.nodes.missing(&inode.map) {
            let goal = inode.map.before(u64::MAX).map_or(0, |(_, block)| block);
            let request = BlockRequest {
                inode: number,
                data: false,
                open: false,
                page: 0,
                pages: 1,
                length: 0,
                goal,
                left: None,
                right: None,
            };
            let block = self
                .multiblock
                .allocate(&mut self.groups, &request, touches)?
                .start;
            inode.extra.nodes.add(missing, block);
            touches.fresh(block);
        }
        for block in inode.extra.nodes.surplus(&inode.map) {
            touches.forget(block);
            self.groups.free_blocks(block..block + 1, touches);
        }
        Ok(())
    }
}

impl DiskFormat for Ext4 {
    type Extra = Ext4Inode;

    fn root(&self) -> u32 {
        2
    }

    fn page_limit(&self) -> u64 {
        PAGES_MAX
    }

    fn style(&self) -> Style {
        Style::Htree
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
        AllocatorRegions {
            pages: BLOCKS_PER_GROUP,
            count: u64::from(self.groups.count()),
            name: "block group",
        }
    }

    fn metadata(&self) -> Vec<Range<u64>> {
        self.groups.metadata()
    }

    fn mapping(&self, inode: &Inode<Ext4Inode>) -> Vec<u64> {
        inode.extra.nodes.blocks().collect()
    }

    fn change_free(&self, pages: Range<u64>, touches: &mut MetaAccesses) {
        self.groups.mark_all(pages, touches);
    }

    fn pooled(&self) -> u64 {
        self.multiblock.pooled()
    }

    fn set_aside(&self, number: u32, _inode: &Inode<Ext4Inode>) -> u64 {
        self.multiblock.aside_for(number)
    }

    fn new_inode(
        &mut self,
        _caller: Caller,
        wanted: &NewObject<'_, Ext4Inode>,
        touches: &mut MetaAccesses,
    ) -> Result<New<Ext4Inode>, FileError> {
        let near = wanted.parent_inode.extra.group;
        let search = InodeSearch::new(wanted, near, self.root(), Scheme::Ext4);
        let number = self.groups.new_inode(&search, &mut self.random, touches)?;
        self.groups.touch_new_inode(number, touches);
        Ok((
            number,
            Ext4Inode::new(self.groups.layout.group_of_inode(number)),
        ))
    }

    fn free_inode(&mut self, number: u32, inode: &Inode<Ext4Inode>, touches: &mut MetaAccesses) {
        self.groups
            .free_inode(number, inode.is_directory(), touches);
    }

    fn inode_page(&self, number: u32, _inode: &Inode<Ext4Inode>) -> u64 {
        self.groups.layout.inode_block(number)
    }

    fn place(
        &mut self,
        caller: Caller,
        number: u32,
        inode: &mut Inode<Ext4Inode>,
        pages: Range<u64>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let mut at = pages.start;
        while at < pages.end {
            let right = inode.map.first_from(at);
            let request = BlockRequest {
                inode: number,
                data: inode.kind == ObjectKind::File,
                open: inode.open,
                page: at,
                pages: (pages.end - at).min(BATCH),
                length: inode.pages(),
                goal: self.goal(caller, inode, at),
                left: inode.map.before(at),
                right: right.and_then(|page| inode.map.block(page).map(|block| (page, block))),
            };
            let run = self
                .multiblock
                .allocate(&mut self.groups, &request, touches)?;
            let piece = MappedPages {
                page: at,
                block: run.start,
                pages: run.end - run.start,
            };
            inode.map.insert(piece);
            at = piece.end();
            if let Err(error) = self.fit_nodes(number, inode, touches) {
                // No room for the tree: the last piece is freed, because the tree cannot record it.
                for piece in inode.map.cut(piece.page) {
                    self.groups
                        .free_blocks(piece.block..piece.block + piece.pages, touches);
                }
                // The tree may have grown for the piece before it ran out of room.
                self.fit_nodes(number, inode, touches)?;
                return Err(error);
            }
            if let Some(leaf) = inode.extra.nodes.leaf(&inode.map, piece.page) {
                touches.change(leaf);
            }
        }
        Ok(())
    }

    fn release(
        &mut self,
        number: u32,
        inode: &mut Inode<Ext4Inode>,
        page: u64,
        touches: &mut MetaAccesses,
    ) {
        self.multiblock.discard(&mut self.groups, number);
        for piece in inode.map.cut(page) {
            self.groups
                .free_blocks(piece.block..piece.block + piece.pages, touches);
        }
        for block in inode.extra.nodes.surplus(&inode.map) {
            touches.forget(block);
            self.groups.free_blocks(block..block + 1, touches);
        }
        if let Some(leaf) = inode.extra.nodes.leaf(&inode.map, page) {
            touches.change(leaf);
        }
    }

    fn walk(&self, inode: &Inode<Ext4Inode>, pages: Range<u64>, touches: &mut MetaAccesses) {
        inode.extra.nodes.walk(&inode.map, pages, touches);
    }

    fn close(&mut self, number: u32, inode: &mut Inode<Ext4Inode>, _touches: &mut MetaAccesses) {
        // The blocks stay set aside while data waits for a place (`ext4_release_file`).
        if inode.delayed.is_empty() {
            self.multiblock.discard(&mut self.groups, number);
        }
    }

    fn delays(&self) -> bool {
        self.config.delalloc
    }

    /// Returns a run of up to 2048 pages that write-back maps together.
    fn cluster(&self, inode: &Inode<Ext4Inode>, page: u64) -> Range<u64> {
        match inode.delayed.run_at(page) {
            Some(run) => page..run.end.min(page + BATCH),
            None => mpage(&inode.map, page),
        }
    }

    fn leaf(&self, inode: &Inode<Ext4Inode>, page: u64) -> Option<u64> {
        inode.extra.nodes.leaf(&inode.map, page)
    }

    /// `ext4_should_dioread_nolock`: only with delayed allocation. The end of a write changes the
    /// extent (`ext4_convert_unwritten_extents`).
    fn write_end(&self) -> WriteEnd {
        if self.config.dioread_nolock && self.config.delalloc {
            WriteEnd::Extents
        } else {
            WriteEnd::Nothing
        }
    }

    /// The journal waits for data only if the new blocks are not unwritten
    /// (`ext4_jbd2_inode_add_write` in `ext4_map_blocks`).
    fn ordered(&self) -> bool {
        self.config.data == DataMode::Ordered && self.write_end() == WriteEnd::Nothing
    }
}

#[cfg(test)]
mod tests {
    use crate::{Caller, FileSystemSite, MetaAccesses, SyncPlan, make};
    use fullstroke_contract::registry::Keys;
    use fullstroke_units::{Lbn, Sectors, Seed};

    /// Linux 6.18, `mkfs.ext4` 1.47 on a Deskstar 34GXP: the journal begins with group 113, because
    /// the first group of the middle flex group, 112, has the inode tables.
    #[test]
    fn the_journal_begins_in_the_emptier_of_two_groups_in_the_middle() {
        let site = FileSystemSite {
            capacity: Sectors(66_835_440),
            seed: Seed(1),
            stripe: None,
            tracks: None,
        };
        let mut system = make("ext4", &Keys::new(), &site).unwrap();
        let (root, mut touches) = (system.root(), MetaAccesses::new());
        let caller = Caller::default();
        system.create(caller, root, "a", &mut touches).unwrap();
        let mut plan = SyncPlan::default();
        system.commit(caller.now, &mut plan);
        assert_eq!(plan.log[0].start, Lbn(113 * 32_768 * 8));
    }
}
