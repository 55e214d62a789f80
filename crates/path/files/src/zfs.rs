//! ZFS: names and lengths above a pool (`module/zfs/zfs_znode.c`, `zap.c`, OpenZFS 2.2).
//!
//! The pool places records, so the format gives no places on a device. Each file is an object of the
//! dataset, and page `p` of the file is page `p` of the object ([`DatasetObject`]). The pool knows
//! records, their sizes, and what is in memory. The page cache of the host stays empty.
//!
//! | metadata | model |
//! |---|---|
//! | inodes | 512 bytes each (`DNODE_MIN_SIZE`), in blocks of 16 KiB of object 0 (`DNODE_BLOCK_SHIFT`) |
//! | directories | blocks of 16 KiB (`fzap_default_block_shift` 14); the hash of a name gives the block |
//! | pointers to records, lists of free space | the pool counts these blocks |
//!
//! Not modelled: small directories in one block (microzap), extended attributes, quotas of users,
//! deduplication, clones of blocks. A directory fills leaves of 4 KiB by hash, four to a block.

use crate::directory::Style;
use crate::format::{DiskFormat, Inode, New, NewObject};
use crate::map::MappedPages;
use crate::system::{AllocatorRegions, Caller, FileSystem, ObjectKind, PAGE_SECTORS, Usage};
use crate::tree::FileTree;
use crate::{FileError, FileSystemSite, MetaAccesses};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, DatasetObject};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Range;

/// One-line summary for the registry.
pub(crate) const SUMMARY: &str =
    "ZFS above a pool: files of records that the pool caches, copies on write and logs";

/// The root directory. Object 0 is the table of all objects.
const ROOT: u32 = 1;

/// Inodes in a page of the table of objects: `DNODE_MIN_SIZE` is 512 bytes.
const INODES_IN_PAGE: u64 = 8;

/// Pages of a block of metadata, 16 KiB.
const UNIT: u64 = 4;

/// The keys of ZFS; there are none. The properties of the dataset are keys of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

pub(crate) fn build(
    keys: &Keys,
    site: &FileSystemSite,
) -> Result<Box<dyn FileSystem>, ConfigError> {
    let Config {} = read(keys)?;
    site.refuse_tracks("zfs")?;
    let format = Zfs {
        pages: site.pages(),
        used: 0,
        next: ROOT + 1,
        freed: BTreeSet::new(),
        inodes: 1,
    };
    let mut tree = FileTree::new(format, (), None);
    tree.make_root().map_err(|error| site.too_small(&error))?;
    Ok(Box::new(tree))
}

#[derive(Debug)]
struct Zfs {
    /// Quota of the dataset, in pages.
    pages: u64,
    used: u64,
    /// Smallest number that no object has had.
    next: u32,
    /// Numbers of removed objects.
    freed: BTreeSet<u32>,
    inodes: u64,
}

/// Returns the page of an object's first page.
fn first_page(number: u32, is_directory: bool) -> u64 {
    let object = DatasetObject {
        number,
        is_metadata: is_directory,
    };
    object.start().0 / PAGE_SECTORS
}

impl DiskFormat for Zfs {
    type Extra = ();

    fn root(&self) -> u32 {
        ROOT
    }

    fn page_limit(&self) -> u64 {
        DatasetObject::SECTORS / PAGE_SECTORS
    }

    fn style(&self) -> Style {
        Style::Htree
    }

    fn usage(&self) -> Usage {
        let inodes = u64::from(DatasetObject::NUMBER_MAX);
        Usage {
            pages: self.pages,
            pages_free: self.free_pages(),
            pages_delayed: 0,
            inodes,
            inodes_free: inodes - self.inodes,
        }
    }

    fn free_pages(&self) -> u64 {
        self.pages.saturating_sub(self.used)
    }

    fn regions(&self) -> AllocatorRegions {
        AllocatorRegions {
            pages: self.pages,
            count: 1,
            name: "dataset",
        }
    }

    fn metadata(&self) -> Vec<Range<u64>> {
        let first = DatasetObject::TABLE.start().0 / PAGE_SECTORS;
        let pages = u64::from(self.next).div_ceil(INODES_IN_PAGE);
        std::iter::once(first..first + pages.next_multiple_of(UNIT)).collect()
    }

    fn mapping(&self, _inode: &Inode<()>) -> Vec<u64> {
        Vec::new()
    }

    fn change_free(&self, _pages: Range<u64>, _touches: &mut MetaAccesses) {}

    fn set_aside(&self, _number: u32, _inode: &Inode<()>) -> u64 {
        0
    }

    fn new_inode(
        &mut self,
        _caller: Caller,
        _wanted: &NewObject<'_, ()>,
        _touches: &mut MetaAccesses,
    ) -> Result<New<()>, FileError> {
        // `dmu_object_alloc` goes on behind the last object, and comes back to freed numbers when a
        // block of the table is full. Here freed numbers come first at the end of the table only.
        let number = if self.next <= DatasetObject::NUMBER_MAX {
            self.next += 1;
            self.next - 1
        } else {
            self.freed.pop_first().ok_or(FileError::NoInode {
                inodes: DatasetObject::NUMBER_MAX.into(),
            })?
        };
        self.inodes += 1;
        Ok((number, ()))
    }

    fn free_inode(&mut self, number: u32, _inode: &Inode<()>, _touches: &mut MetaAccesses) {
        self.inodes -= 1;
        self.freed.insert(number);
    }

    fn inode_page(&self, number: u32, _inode: &Inode<()>) -> u64 {
        DatasetObject::TABLE.start().0 / PAGE_SECTORS + u64::from(number) / INODES_IN_PAGE
    }

    fn read_unit(&self, page: u64) -> Range<u64> {
        let first = page / UNIT * UNIT;
        first..first + UNIT
    }

    fn place(
        &mut self,
        _caller: Caller,
        number: u32,
        inode: &mut Inode<()>,
        pages: Range<u64>,
        _touches: &mut MetaAccesses,
    ) -> Result<(), FileError> {
        let (needed, free) = (pages.end - pages.start, self.free_pages());
        if needed > free {
            return Err(FileError::NoSpace { needed, free });
        }
        self.used += needed;
        inode.map.insert(MappedPages {
            page: pages.start,
            block: first_page(number, inode.is_directory()) + pages.start,
            pages: needed,
        });
        Ok(())
    }

    fn release(
        &mut self,
        _number: u32,
        inode: &mut Inode<()>,
        page: u64,
        _touches: &mut MetaAccesses,
    ) {
        let cut = inode.map.cut(page);
        self.used -= cut.iter().map(|piece| piece.pages).sum::<u64>();
    }

    fn walk(&self, _inode: &Inode<()>, _pages: Range<u64>, _touches: &mut MetaAccesses) {}

    fn close(&mut self, _number: u32, _inode: &mut Inode<()>, _touches: &mut MetaAccesses) {}

    fn in_dataset(&self, number: u32, kind: ObjectKind) -> Option<DatasetObject> {
        Some(DatasetObject {
            number,
            is_metadata: kind == ObjectKind::Directory,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PagePlace;
    use fullstroke_units::{Bytes, Sectors, Seed};

    fn made(pages: u64) -> Box<dyn FileSystem> {
        let site = FileSystemSite {
            capacity: Sectors(pages * PAGE_SECTORS),
            seed: Seed(1),
            stripe: None,
            tracks: None,
        };
        build(&Keys::new(), &site).unwrap()
    }

    #[test]
    fn a_page_of_a_file_is_a_page_of_its_object() {
        let mut zfs = made(1000);
        let (caller, mut touches) = (Caller::default(), MetaAccesses::new());
        let root = zfs.root();
        zfs.create(caller, root, "first", &mut touches).unwrap();
        let file = zfs.create(caller, root, "second", &mut touches).unwrap();
        zfs.write(caller, file, Bytes(40_960), Bytes(100), &mut touches)
            .unwrap();
        let piece = zfs.piece_at(file, 10).unwrap();
        let PagePlace::Device(place) = piece.place else {
            panic!("{piece:?}")
        };
        let object = zfs.in_dataset(file).unwrap();
        assert_eq!(DatasetObject::at(place), (object, 80));
        assert!(!object.is_metadata);
        assert!(zfs.in_dataset(root).unwrap().is_metadata);
        assert_eq!(zfs.piece_at(file, 9), None, "a hole");
    }

    #[test]
    fn metadata_lie_in_blocks_of_16_kib() {
        let mut zfs = made(1000);
        let (caller, mut touches) = (Caller::default(), MetaAccesses::new());
        let root = zfs.root();
        for number in 0..100 {
            touches.clear();
            zfs.create(caller, root, &format!("f{number}"), &mut touches)
                .unwrap();
            let changed = touches.list().iter();
            for page in changed.map(|access| access.page()) {
                let (object, _) = DatasetObject::at(fullstroke_units::Lbn(page * PAGE_SECTORS));
                assert!(object.is_metadata);
                let unit = zfs.read_unit(page);
                assert!(unit.contains(&page));
                assert_eq!((unit.start % UNIT, unit.end - unit.start), (0, UNIT));
            }
        }
    }

    #[test]
    fn a_full_dataset_takes_no_further_page_until_a_file_is_cut() {
        let mut zfs = made(20);
        let (caller, mut touches) = (Caller::default(), MetaAccesses::new());
        let root = zfs.root();
        let file = zfs.create(caller, root, "file", &mut touches).unwrap();
        let free = zfs.usage().pages_free;
        let all = Bytes(free * 4096);
        zfs.write(caller, file, Bytes(0), all, &mut touches)
            .unwrap();
        let more = zfs.write(caller, file, all, Bytes(1), &mut touches);
        assert!(matches!(more, Err(FileError::NoSpace { .. })), "{more:?}");
        zfs.truncate(caller, file, Bytes(4096), &mut touches)
            .unwrap();
        assert_eq!(zfs.usage().pages_free, free - 1);
    }
}
