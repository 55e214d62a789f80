//! XFS of Linux 2.6.24 and of today (fs/xfs).
//!
//! | model | from |
//! |---|---|
//! | allocation groups; a log in the middle one | `mkfs.xfs` |
//! | directories to groups in turn, files to their directory's | `xfs_ialloc_ag_select`, `xfs_ialloc_next_ag` |
//! | inodes in chunks of 64, near the directory's | `xfs_dialloc`, `xfs_ialloc_ag_alloc` |
//! | delayed allocation; a whole delayed run gets its place at once | `xfs_iomap_write_allocate`, `xfs_bmapi_convert_delalloc` |
//! | room beyond the end of a growing file | `xfs_iomap_write_delay`, `xfs_iomap_prealloc_size` |
//! | data behind the file's last extent, else near its inode | `xfs_bmap_adjacent`, `xfs_bmap_btalloc` |
//! | the nearest run that is long enough | `xfs_alloc_ag_vextent_near`, `xfs_alloc_compute_diff` |
//! | `su`, `sw` | `mkfs.xfs -d`; `xfs_iomap_eof_align_last_fsb`, the alignment of `xfs_bmap_btalloc` |
//! | pages around a dirty one written with it | `xfs_cluster_write` |
//! | the log | `journal.rs` |
//!
//! Not modelled: the growth of the free-space and inode B-trees beyond one block each, and their
//! free list; `inode32` on devices beyond 1 TiB; real-time devices, quotas, reflinks, extended
//! attributes, hard links.

mod inodes;
mod space;

use crate::directory::Style;
use crate::extent_tree::{NodeCapacities, Nodes};
use crate::format::{DiskFormat, Inode, New, NewObject, WriteEnd};
use crate::journal::{Journal, JournalFormat};
use crate::map::MappedPages;
use crate::system::{AllocatorRegions, FileSystem, ObjectKind, Usage};
use crate::tree::FileTree;
use crate::{Caller, FileError, FileSystemSite, MetaAccesses};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Duration};
use inodes::Inodes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use space::{Space, Wish};
use std::ops::Range;

/// One-line summary for the registry.
pub(crate) const SUMMARY: &str = "XFS of Linux 2.6.24 or today: allocation groups, delayed allocation, preallocation beyond the end of files, a log";

/// Default of `allocsize` in pages (`XFS_WRITEIO_LOG_LARGE`: 64 KiB).
const AHEAD: u64 = 16;
/// Longest extent in blocks: 21 bits (`MAXEXTLEN`).
const EXTENT_MAX: u64 = (1 << 21) - 1;
/// Largest file in pages: 8 EiB.
const PAGES_MAX: u64 = 1 << 51;
/// Largest number of pages written together with a dirty page: a whole delayed run is written, in
/// requests of up to 1 MiB each.
const CLUSTER: u64 = 256;

/// The keys of XFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Kernel whose rules hold for preallocation, log and inodes. Default "today" in a host;
    /// "2.6.24" in a host that is `like = "linux-2.6.23"` or "ideal", and outside of hosts.
    pub kernel: Kernel,
    /// Number of allocation groups (`mkfs.xfs -d agcount`). Default 4, each of at most 1 TiB; on a
    /// striped device 8 to 32, by size.
    pub agcount: Option<u32>,
    /// Size of the log (`mkfs.xfs -l size`). Default 1/2048 of the size of the device, at least 10
    /// MiB (today 64 MiB), at most 128 MiB (today 2 GiB).
    pub log_size: Option<Bytes>,
    /// Stripe unit (`mkfs.xfs -d su`). Default: the stripe unit of the device, if the device is
    /// striped.
    pub su: Option<Bytes>,
    /// Number of stripe units in a whole stripe (`mkfs.xfs -d sw`). Default: the number of the
    /// device.
    pub sw: Option<u32>,
    /// Space allocated beyond the end of a growing file (mount option `allocsize`). Default 64 KiB
    /// in 2.6.24; today the size of the file.
    pub allocsize: Option<Bytes>,
}

/// Kernel whose rules hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kernel {
    /// Inodes of 256 bytes, 64 KiB allocated beyond the end of a file, each change logged anew.
    #[default]
    #[serde(rename = "2.6.24")]
    Old,
    /// Linux 6.x: inodes of 512 bytes, preallocation by the length of the file, delayed logging.
    #[serde(rename = "today")]
    Today,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            kernel: Kernel::Old,
            agcount: None,
            log_size: None,
            su: None,
            sw: None,
            allocsize: None,
        }
    }
}

impl Kernel {
    fn inode_bytes(self) -> u64 {
        if self == Kernel::Old { 256 } else { 512 }
    }

    /// Returns the number of fixed blocks at the beginning of a group: headers, roots of three
    /// B-trees (today five) and four blocks of the free list.
    fn fixed_blocks(self) -> u64 {
        if self == Kernel::Old { 8 } else { 10 }
    }

    /// Returns the bytes of an inode that hold extents or names: its size less the core
    /// (`XFS_LITINO`).
    fn literal_bytes(self) -> u64 {
        if self == Kernel::Old { 156 } else { 336 }
    }

    fn log_bytes(self, device: u64) -> u64 {
        let (least, most) = if self == Kernel::Old {
            (10 << 20, 128 << 20)
        } else {
            (64 << 20, 2 << 30)
        };
        (device / 2048).clamp(least, most)
    }
}

/// Stripe unit and stripe width in pages; 0 without striping.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Align {
    unit: u64,
    width: u64,
}

pub(crate) fn build(
    keys: &Keys,
    site: &FileSystemSite,
) -> Result<Box<dyn FileSystem>, ConfigError> {
    let config: Config = read(keys)?;
    site.refuse_tracks("xfs")?;
    let align = config.align(site)?;
    let pages = site.pages();
    // Smallest device: 16 MiB (`XFS_MIN_DATA_BLOCKS` and its log), 300 MiB with xfsprogs from 5.19
    // on.
    let least = if config.kernel == Kernel::Old {
        16 << 8
    } else {
        300 << 8
    };
    let no_space = |needed| {
        site.too_small(&FileError::NoSpace {
            needed,
            free: pages,
        })
    };
    if pages < least {
        return Err(no_space(least));
    }
    let count = config.groups(pages, align)?;
    let mut space = Space::new(pages, count, config.kernel.fixed_blocks());
    // The log lies within one group, so a usual log is no larger than that (`calculate_log_size` of
    // mkfs.xfs).
    let room = pages / u64::from(count) - config.kernel.fixed_blocks();
    let usual = (config.kernel.log_bytes(pages * 4096) / 4096).min(room);
    let log = config.log_size.map_or(usual, |size| size.0.div_ceil(4096));
    let area = space.reserve_hidden(count / 2, log).ok_or(no_space(log))?;
    let mut format = Xfs {
        space,
        inodes: Inodes::new(config.kernel.inode_bytes(), config.kernel == Kernel::Today),
        config,
        align,
    };
    let root = format.inodes.first(&mut format.space).ok_or(no_space(8))?;
    let layout = JournalFormat::Changes {
        // 32 KiB, the default of `logbsize`.
        record: 64,
        bytes: 256,
        each: config.kernel == Kernel::Old,
    };
    // 30 s is the default of `fs.xfs.xfssyncd_centisecs`.
    let journal = Journal::new(vec![area], layout, Duration::from_secs(30));
    let extra = format.extra(root);
    Ok(Box::new(FileTree::new(format, extra, Some(journal))))
}

impl Config {
    fn align(&self, site: &FileSystemSite) -> Result<Align, ConfigError> {
        let unit = self.su.map_or(
            site.stripe.map_or(0, |stripe| stripe.unit.bytes().0),
            |su| su.0,
        );
        let width = self
            .sw
            .or(site.stripe.map(|stripe| stripe.width))
            .unwrap_or(1);
        if self.su.is_some() && (unit == 0 || !unit.is_multiple_of(4096)) {
            return Err(ConfigError::new(
                "su",
                format!("found {}; expected a multiple of 4KiB", Bytes(unit)),
            ));
        }
        if width == 0 || width > 4096 {
            return Err(ConfigError::new(
                "sw",
                format!("{width} is not within 1 to 4096"),
            ));
        }
        let unit = if unit.is_multiple_of(4096) {
            unit / 4096
        } else {
            0
        };
        Ok(Align {
            unit,
            width: unit * u64::from(width),
        })
    }

    /// Returns the number of allocation groups (`calc_default_ag_geometry`).
    fn groups(&self, pages: u64, align: Align) -> Result<u32, ConfigError> {
        const GIB: u64 = 1 << 18;
        let least = pages.div_ceil(1024 * GIB).max(1);
        let most = (pages / 4096).max(1);
        let usual = match pages {
            _ if align.unit == 0 => 4,
            pages if pages > 512 * GIB => 32,
            pages if pages > 8 * GIB => 16,
            _ => 8,
        };
        let count = self
            .agcount
            .map_or(usual.clamp(least, most.max(least)), u64::from);
        if count < least || count > most {
            let message = format!(
                "{count} groups; expected {least} to {most}, because a group has 16 MiB to 1 TiB"
            );
            return Err(ConfigError::new("agcount", message));
        }
        Ok(count as u32)
    }
}

/// State of an inode, specific to XFS.
#[derive(Debug)]
pub(crate) struct XfsInode {
    /// Page that holds the inode.
    page: u64,
    nodes: Nodes,
    /// True if a close has freed the room behind the end before (`XFS_EOFBLOCKS_RELEASED`).
    trimmed: bool,
}

#[derive(Debug)]
struct Xfs {
    space: Space,
    inodes: Inodes,
    config: Config,
    align: Align,
}

impl Xfs {
    fn extra(&self, number: u32) -> XfsInode {
        // An extent takes 16 bytes. A block has a header of 24 bytes (72 today).
        let fan = NodeCapacities {
            inode: self.config.kernel.literal_bytes() / 16,
            block: 251,
            longest: EXTENT_MAX,
        };
        XfsInode {
            page: self.inodes.page(number),
            nodes: Nodes::new(fan),
            trimmed: false,
        }
    }

    /// Returns the preferred place of `pages`.
    fn wish(&self, inode: &Inode<XfsInode>, pages: &Range<u64>) -> Wish {
        let length = (pages.end - pages.start).min(EXTENT_MAX);
        let data = inode.kind == ObjectKind::File;
        // The target continues the pages before (`xfs_bmap_adjacent`). A hole in between is kept
        // free on the device only if the hole is short compared with the written length
        // (`XFS_ALLOC_GAP_UNITS`).
        let before = inode.map.before(pages.start);
        let target = match before {
            Some((last, block)) => {
                let hole = pages.start - last - 1;
                block + 1 + if hole <= 4 * length { hole } else { 0 }
            }
            None => inode.extra.page,
        };
        // If the data cannot continue the old end of the file, it begins at a stripe unit.
        let align = if data && length >= self.align.unit {
            self.align.unit
        } else {
            0
        };
        Wish {
            target,
            exact: before.is_some(),
            length,
            data,
            align,
        }
    }

    fn fit_nodes(
        &mut self,
        inode: &mut Inode<XfsInode>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        while let Some(missing) = inode.extra.nodes.missing(&inode.map) {
            let target = inode
                .map
                .before(u64::MAX)
                .map_or(inode.extra.page, |(_, block)| block);
            let wish = Wish {
                target,
                exact: false,
                length: 1,
                data: false,
                align: 0,
            };
            let block = self.space.allocate(&wish, touches)?.start;
            inode.extra.nodes.add(missing, block);
            touches.fresh(block);
        }
        self.drop_surplus(inode, touches);
        Ok(())
    }

    fn drop_surplus(&mut self, inode: &mut Inode<XfsInode>, touches: &mut MetaAccesses) {
        for block in inode.extra.nodes.surplus(&inode.map) {
            touches.forget(block);
            self.space.free_pages(block..block + 1, touches);
        }
    }

    /// Returns the number of contiguous pages in front of `page`, delayed or placed. The
    /// preallocated part grows with this number (`xfs_iomap_prealloc_size`).
    fn before(&self, inode: &Inode<XfsInode>, page: u64) -> u64 {
        let Some(last) = page.checked_sub(1) else {
            return 0;
        };
        if let Some(run) = inode.delayed.run_at(last) {
            return run.end.min(page) - run.start;
        }
        let piece = inode.map.pieces().get(inode.map.index_from(last));
        piece
            .filter(|piece| piece.page <= last)
            .map_or(0, |piece| page - piece.page)
    }
}

impl DiskFormat for Xfs {
    type Extra = XfsInode;

    fn root(&self) -> u32 {
        1
    }

    fn page_limit(&self) -> u64 {
        PAGES_MAX
    }

    fn style(&self) -> Style {
        Style::Xfs {
            inline: self.config.kernel.literal_bytes() as u32,
        }
    }

    fn usage(&self) -> Usage {
        let (inodes, inodes_free) = self.inodes.counts();
        let (pages, pages_free) = (self.space.pages(), self.space.free());
        Usage {
            pages,
            pages_free,
            pages_delayed: 0,
            inodes,
            inodes_free,
        }
    }

    fn free_pages(&self) -> u64 {
        self.space.free()
    }

    fn regions(&self) -> AllocatorRegions {
        AllocatorRegions {
            pages: self.space.group_pages(),
            count: u64::from(self.space.count()),
            name: "allocation group",
        }
    }

    fn metadata(&self) -> Vec<Range<u64>> {
        let mut metadata = self.space.metadata();
        metadata.extend(self.inodes.chunks());
        metadata
    }

    fn mapping(&self, inode: &Inode<XfsInode>) -> Vec<u64> {
        inode.extra.nodes.blocks().collect()
    }

    /// Returns 0, because placed pages behind a file's end belong to its extents.
    fn set_aside(&self, _number: u32, _inode: &Inode<XfsInode>) -> u64 {
        0
    }

    fn new_inode(
        &mut self,
        _caller: Caller,
        wanted: &NewObject<'_, XfsInode>,
        touches: &mut MetaAccesses,
    ) -> Result<New<XfsInode>, FileError> {
        let near = wanted.parent_inode.extra.page;
        let number = self.inodes.take(
            &mut self.space,
            near,
            wanted.kind == ObjectKind::Directory,
            touches,
        )?;
        Ok((number, self.extra(number)))
    }

    fn free_inode(&mut self, number: u32, _inode: &Inode<XfsInode>, touches: &mut MetaAccesses) {
        self.inodes.free_inode(&mut self.space, number, touches);
    }

    fn change_free(&self, pages: Range<u64>, touches: &mut MetaAccesses) {
        self.space.change_free(pages, touches);
    }

    fn inode_page(&self, _number: u32, inode: &Inode<XfsInode>) -> u64 {
        inode.extra.page
    }

    /// Reads inodes in clusters. (Linux 2.6.24 reads clusters of 8 KiB. Here it reads pages, so
    /// that results of studies stay as recorded.)
    fn read_unit(&self, page: u64) -> Range<u64> {
        match self.config.kernel {
            Kernel::Old => page..page + 1,
            Kernel::Today => self.inodes.cluster(page),
        }
    }

    fn place(
        &mut self,
        _caller: Caller,
        _number: u32,
        inode: &mut Inode<XfsInode>,
        pages: Range<u64>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let mut at = pages.start;
        while at < pages.end {
            let wish = self.wish(inode, &(at..pages.end));
            let run = self.space.allocate(&wish, touches)?;
            let piece = MappedPages {
                page: at,
                block: run.start,
                pages: run.end - run.start,
            };
            inode.map.insert(piece);
            at = piece.end();
            if let Err(error) = self.fit_nodes(inode, touches) {
                inode.map.cut(piece.page).into_iter().for_each(|piece| {
                    self.space
                        .free_pages(piece.block..piece.block + piece.pages, touches);
                });
                self.drop_surplus(inode, touches);
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
        _number: u32,
        inode: &mut Inode<XfsInode>,
        page: u64,
        touches: &mut MetaAccesses,
    ) {
        for piece in inode.map.cut(page) {
            self.space
                .free_pages(piece.block..piece.block + piece.pages, touches);
        }
        self.drop_surplus(inode, touches);
        if let Some(leaf) = inode.extra.nodes.leaf(&inode.map, page) {
            touches.change(leaf);
        }
    }

    fn walk(&self, inode: &Inode<XfsInode>, pages: Range<u64>, touches: &mut MetaAccesses) {
        inode.extra.nodes.walk(&inode.map, pages, touches);
    }

    /// Frees the room behind the end (`xfs_free_eofblocks`). 2.6.24 frees it at each last close.
    /// Today only the first close frees it, so that a file opened again and again for appends keeps
    /// its room (`xfs_file_release` of 6.12).
    fn close(&mut self, number: u32, inode: &mut Inode<XfsInode>, touches: &mut MetaAccesses) {
        inode.extra.trimmed = self.config.kernel == Kernel::Today;
        if inode.map.end() > inode.pages() {
            self.release(number, inode, inode.pages(), touches);
        }
    }

    fn keeps_room(&self, inode: &Inode<XfsInode>) -> bool {
        let ahead = inode
            .map
            .end()
            .max(inode.delayed.iter().last().map_or(0, |run| run.end));
        inode.extra.trimmed || ahead <= inode.pages()
    }

    fn leaf(&self, inode: &Inode<XfsInode>, page: u64) -> Option<u64> {
        inode.extra.nodes.leaf(&inode.map, page)
    }

    /// Today delayed blocks become unwritten extents, and the end of the write changes extents and
    /// length (`xfs_end_ioend`: `xfs_iomap_write_unwritten`, `xfs_setfilesize`). 2.6.24 changes the
    /// length without a transaction.
    fn write_end(&self) -> WriteEnd {
        match self.config.kernel {
            Kernel::Old => WriteEnd::Nothing,
            Kernel::Today => WriteEnd::ExtentsAndLength,
        }
    }

    fn delays(&self) -> bool {
        true
    }

    fn ahead(&self, inode: &Inode<XfsInode>, pages: &Range<u64>) -> Range<u64> {
        if pages.end <= inode.pages() {
            return pages.end..pages.end;
        }
        let fixed = self
            .config
            .allocsize
            .map(|size| size.0.div_ceil(4096).max(1));
        let last = pages.end - 1;
        let end = match (self.config.kernel, fixed) {
            (Kernel::Old, fixed) => {
                let unit = fixed.unwrap_or(AHEAD);
                last - last % unit + unit
            }
            (Kernel::Today, Some(fixed)) => last - last % fixed + fixed,
            // Files below `allocsize` get no preallocation, because this is probably their only
            // write (`xfs_iomap_prealloc_size`).
            (Kernel::Today, None) if inode.pages() < AHEAD => pages.end,
            (Kernel::Today, None) => {
                // Twice the preceding extent, rounded down to a power of two
                // (`xfs_iomap_prealloc_size`). The limit is 2^20 blocks, because `EXTENT_MAX` is
                // just below 2^21.
                let doubled = 2 * self.before(inode, pages.start);
                let room = if doubled == 0 {
                    AHEAD
                } else {
                    1 << doubled.ilog2().min(20)
                };
                last - last % AHEAD + room.max(AHEAD)
            }
        };
        let stripe = if end >= self.align.width {
            self.align.width
        } else {
            self.align.unit
        };
        let end = if stripe > 0 {
            end.next_multiple_of(stripe)
        } else {
            end
        };
        pages.end..end.clamp(pages.end, PAGES_MAX)
    }

    /// Returns the whole delayed run.
    fn batch(&self, run: Range<u64>, _asked: Range<u64>) -> Range<u64> {
        run
    }

    /// Returns `page` and the pages behind it up to the end of the extent, delayed or placed
    /// (`xfs_cluster_write`).
    fn cluster(&self, inode: &Inode<XfsInode>, page: u64) -> Range<u64> {
        match inode.delayed.run_at(page) {
            Some(run) => page..run.end.min(page + CLUSTER),
            None => crate::format::mpage(&inode.map, page),
        }
    }
}
