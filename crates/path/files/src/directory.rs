//! Directories: names, and the pages that hold their entries.
//!
//! | style | from | model |
//! |---|---|---|
//! | linear | `ext2_find_entry`, `ext2_add_link` (fs/ext2/dir.c, namei.c) | a scan from the page of the last hit; a new name goes to the first page with room |
//! | htree | `dx_probe`, `do_split`, `make_indexed_dir` (fs/ext4/namei.c) | leaves by hash, split in the middle; a second level of index |
//! | xfs | fs/xfs/xfs_dir2*.c | names in the inode, then one block, then data pages with leaves by hash |
//!
//! The model knows only the number of free bytes of a page, not their positions. A page takes a
//! name if its free bytes suffice in total.

mod htree;
mod linear;
mod xfs;

use fullstroke_contract::Object;
use fullstroke_units::order_by;
use std::collections::BTreeMap;

/// Bytes in a page.
const PAGE: u32 = 4096;

/// Format of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Linear,
    Htree,
    /// Number of bytes for names inside the inode.
    Xfs {
        inline: u32,
    },
}

/// One touched page of a directory. The number counts pages from the beginning of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageTouch {
    Read(u64),
    /// The page is read and changed.
    Change(u64),
    /// The page is new, and is written without a read.
    Fresh(u64),
}

/// Location of a name's entry.
#[derive(Clone, Copy, Debug)]
struct EntryLocation {
    object: Object,
    /// Page of the entry. Not used by htree, where the hash gives the page.
    page: u32,
}

/// The names of one directory.
#[derive(Debug)]
pub(crate) struct Directory {
    style: Style,
    /// Entries, keyed by hash and name.
    entries: BTreeMap<(u32, Box<str>), EntryLocation>,
    /// Used bytes of each data page.
    used: Vec<u32>,
    /// Maps the lowest hash of each leaf to the page of the leaf.
    leaves: BTreeMap<u32, u64>,
    /// XFS only: maps the lowest hash of each leaf to its number of names.
    leaf_names: BTreeMap<u32, usize>,
    /// Maps the lowest hash of each second-level index page to the page.
    nodes: BTreeMap<u32, u64>,
    /// Page where the last look-up ended (`i_dir_start_lookup`).
    start: u32,
    /// Bytes of all names in the inode format.
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

    /// Returns the entries, sorted by name.
    pub(crate) fn list(&self) -> Vec<(String, Object)> {
        let named = self
            .entries
            .iter()
            .map(|((_, name), slot)| (name.to_string(), slot.object));
        let mut list: Vec<_> = named.collect();
        order_by(&mut list, Ord::cmp);
        list
    }

    /// Returns the object called `name`. Appends the pages read to `touched`.
    pub(crate) fn look_up(&mut self, name: &str, touched: &mut Vec<PageTouch>) -> Option<Object> {
        let slot = self.entries.get(&key(name)).copied();
        match self.style {
            Style::Linear => self.scan(slot, touched),
            Style::Htree => self.probe(name, touched),
            Style::Xfs { .. } => self.search(name, slot, touched),
        }
        slot.map(|slot| slot.object)
    }

    /// Returns the object called `name` without reporting the pages read.
    pub(crate) fn look_up_unread(&mut self, name: &str) -> Option<Object> {
        let slot = self.entries.get(&key(name)).copied()?;
        // A scan would end here, and the next one begins where the last has ended.
        if self.style == Style::Linear {
            self.start = slot.page;
        }
        Some(slot.object)
    }

    /// Returns the missing pages that the directory needs before `name` can be inserted.
    pub(crate) fn growth(&self, name: &str) -> Vec<u64> {
        match self.style {
            Style::Linear => self.linear_growth(name),
            Style::Htree => self.htree_growth(name),
            Style::Xfs { inline } => self.xfs_growth(name, inline),
        }
    }

    /// Adds `name`, which must not exist yet.
    pub(crate) fn insert(&mut self, name: &str, object: Object, touched: &mut Vec<PageTouch>) {
        let page = match self.style {
            Style::Linear => self.linear_insert(name, touched),
            Style::Htree => self.htree_insert(name, touched),
            Style::Xfs { inline } => self.xfs_insert(name, inline, touched),
        };
        self.entries
            .insert(key(name), EntryLocation { object, page });
    }

    /// Makes `name` refer to another object.
    pub(crate) fn replace(&mut self, name: &str, object: Object, touched: &mut Vec<PageTouch>) {
        let Some(slot) = self.entries.get_mut(&key(name)) else {
            return;
        };
        slot.object = object;
        let slot = *slot;
        touched.extend(self.page_of(name, slot).map(PageTouch::Change));
    }

    /// Removes `name`.
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

    /// Returns the data page of an entry; `None` if the entry is in the inode.
    fn page_of(&self, name: &str, slot: EntryLocation) -> Option<u64> {
        match self.style {
            Style::Linear => Some(u64::from(slot.page)),
            Style::Htree => Some(self.leaf_of(name)),
            Style::Xfs { .. } => (!self.used.is_empty()).then_some(u64::from(slot.page)),
        }
    }
}

/// Returns the key of `entries`: hash and name.
fn key(name: &str) -> (u32, Box<str>) {
    (hash(name), name.into())
}

/// Returns a hash that spreads names evenly. It need not be the kernel's hash (half MD4 with a
/// secret of each file system, `ext4fs_dirhash`; `xfs_da_hashname`), because ext4's hash also
/// differs from one file system to the next.
pub(crate) fn hash(name: &str) -> u32 {
    let mut hash = name.bytes().fold(0x811c_9dc5u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    // Finaliser of MurmurHash3: with FNV alone, similar names would have similar high bits.
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests;
