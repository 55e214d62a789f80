//! Names, and the pages of a directory that hold them.
//!
//! | style | from | what is modelled |
//! |---|---|---|
//! | linear | `ext2_find_entry`, `ext2_add_link` (fs/ext2/dir.c, namei.c) | scanned from the page of the last hit; a new name goes to the first page with room |
//! | htree | `dx_probe`, `do_split`, `make_indexed_dir` (fs/ext4/namei.c) | leaves by hash, split in the middle; a second level of index |
//! | xfs | fs/xfs/xfs_dir2*.c | names in the inode, then one block, then data pages with leaves by hash |
//!
//! Within a page only the sum of free bytes is known, not where they are: a page
//! whose holes together hold a name takes it.

mod htree;
mod linear;
mod xfs;

use fullstroke_contract::Object;
use std::collections::BTreeMap;

/// Bytes in a page.
const PAGE: u32 = 4096;

/// How a file system keeps names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Linear,
    Htree,
    /// Bytes of names that the inode itself holds.
    Xfs {
        inline: u32,
    },
}

/// One page of a directory, by its number in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageTouch {
    Read(u64),
    /// Read and changed.
    Change(u64),
    /// New, and written.
    Fresh(u64),
}

/// Where a name's entry is.
#[derive(Clone, Copy, Debug)]
struct Slot {
    object: Object,
    /// The page of its entry; not used by htree, where the hash says it.
    page: u32,
}

/// The names of one directory.
#[derive(Debug)]
pub(crate) struct Directory {
    style: Style,
    /// By hash, then name.
    entries: BTreeMap<(u32, Box<str>), Slot>,
    /// Bytes used in each data page.
    used: Vec<u32>,
    /// The lowest hash of each leaf → its page.
    leaves: BTreeMap<u32, u64>,
    /// XFS: the lowest hash of each leaf → its names.
    leaf_names: BTreeMap<u32, usize>,
    /// The lowest hash of each second-level index page → its page.
    nodes: BTreeMap<u32, u64>,
    /// Where the last look-up ended (`i_dir_start_lookup`).
    start: u32,
    /// Bytes of all names, as kept in an inode.
    inline: u32,
}

impl Directory {
    pub(crate) fn new(style: Style) -> Directory {
        let used = match style {
            Style::Linear | Style::Htree => vec![linear::DOTS],
            Style::Xfs { .. } => Vec::new(),
        };
        Directory {
            style,
            entries: BTreeMap::new(),
            used,
            leaves: BTreeMap::new(),
            leaf_names: BTreeMap::new(),
            nodes: BTreeMap::new(),
            start: 0,
            inline: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// In order of names.
    pub(crate) fn list(&self) -> Vec<(String, Object)> {
        let named = self
            .entries
            .iter()
            .map(|((_, name), slot)| (name.to_string(), slot.object));
        let mut list: Vec<_> = named.collect();
        list.sort();
        list
    }

    /// The object called `name`; `touched` has the pages that were read to tell.
    pub(crate) fn look_up(&mut self, name: &str, touched: &mut Vec<PageTouch>) -> Option<Object> {
        let slot = self.entries.get(&key(name)).copied();
        match self.style {
            Style::Linear => self.scan(slot, touched),
            Style::Htree => self.probe(name, touched),
            Style::Xfs { .. } => self.search(name, slot, touched),
        }
        slot.map(|slot| slot.object)
    }

    /// The same where nobody wants to know which pages were read.
    pub(crate) fn look_up_unread(&mut self, name: &str) -> Option<Object> {
        let slot = self.entries.get(&key(name)).copied()?;
        if self.style == Style::Linear {
            self.start = slot.page;
        }
        Some(slot.object)
    }

    /// The pages that must be there before `name` can be inserted, and are not yet.
    pub(crate) fn growth(&self, name: &str) -> Vec<u64> {
        match self.style {
            Style::Linear => self.linear_growth(name),
            Style::Htree => self.htree_growth(name),
            Style::Xfs { inline } => self.xfs_growth(name, inline),
        }
    }

    /// Adds `name`, which is not there yet.
    pub(crate) fn insert(&mut self, name: &str, object: Object, touched: &mut Vec<PageTouch>) {
        let page = match self.style {
            Style::Linear => self.linear_insert(name, touched),
            Style::Htree => self.htree_insert(name, touched),
            Style::Xfs { inline } => self.xfs_insert(name, inline, touched),
        };
        self.entries.insert(key(name), Slot { object, page });
    }

    /// Lets `name` mean another object.
    pub(crate) fn replace(&mut self, name: &str, object: Object, touched: &mut Vec<PageTouch>) {
        let Some(slot) = self.entries.get_mut(&key(name)) else {
            return;
        };
        slot.object = object;
        let slot = *slot;
        touched.extend(self.page_of(name, slot).map(PageTouch::Change));
    }

    /// Takes `name` away.
    pub(crate) fn remove(&mut self, name: &str, touched: &mut Vec<PageTouch>) -> Option<Object> {
        let slot = self.entries.remove(&key(name))?;
        let page = self.page_of(name, slot);
        touched.extend(page.map(PageTouch::Change));
        match self.style {
            Style::Linear | Style::Htree => {
                if let Some(used) = page.and_then(|page| self.used.get_mut(page as usize)) {
                    *used = used.saturating_sub(linear::entry_bytes(name));
                }
            }
            Style::Xfs { .. } => self.xfs_removed(name, slot, touched),
        }
        Some(slot.object)
    }

    /// The data page of an entry; none if it is in the inode.
    fn page_of(&self, name: &str, slot: Slot) -> Option<u64> {
        match self.style {
            Style::Linear => Some(u64::from(slot.page)),
            Style::Htree => Some(self.leaf_of(name)),
            Style::Xfs { .. } => (!self.used.is_empty()).then_some(u64::from(slot.page)),
        }
    }
}

/// Hash and name.
fn key(name: &str) -> (u32, Box<str>) {
    (hash(name), name.into())
}

/// Any hash that spreads names evenly: the kernels' (half MD4 with a secret of the
/// file system's own, `ext4fs_dirhash`; `xfs_da_hashname`) differ from one file
/// system to the next, too.
pub(crate) fn hash(name: &str) -> u32 {
    let mut hash = name.bytes().fold(0x811c_9dc5u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    // The finish of MurmurHash3: FNV alone leaves the high bits of like names alike.
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests;
