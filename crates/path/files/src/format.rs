//! Interface of one format of file systems: the placement of inodes and data. Names, lengths,
//! delayed allocation and the log are the same for all formats; see `tree.rs`.

use crate::directory::{Directory, Style};
use crate::map::FileMap;
use crate::runs::DisjointRuns;
use crate::system::{AllocatorRegions, Caller, ObjectKind, Usage};
use crate::{FileError, MetaAccesses};
use fullstroke_contract::DatasetObject;
use std::ops::Range;

/// A file or a directory, with the format's own state of the inode.
#[derive(Debug)]
pub(crate) struct Inode<X> {
    pub(crate) kind: ObjectKind,
    /// Length in bytes.
    pub(crate) bytes: u64,
    pub(crate) map: FileMap,
    /// Pages that a program has written and that have no place yet.
    pub(crate) delayed: DisjointRuns,
    /// Pages with a place whose data is not on the device yet (unwritten extents).
    pub(crate) unwritten: DisjointRuns,
    /// Length in bytes in the inode on the device, for formats that change it at the end of a
    /// write.
    pub(crate) bytes_on_device: u64,
    pub(crate) directory: Option<Box<Directory>>,
    pub(crate) parent: u32,
    /// True while a program may still write to the file.
    pub(crate) open: bool,
    pub(crate) extra: X,
}

impl<X> Inode<X> {
    /// Returns the length in pages.
    pub(crate) fn pages(&self) -> u64 {
        self.bytes.div_ceil(crate::PAGE_BYTES)
    }
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == ObjectKind::Directory
    }
}

/// Number of a new inode, and the format's own state of the inode.
pub(crate) type New<X> = (u32, X);

/// Description of a new object, for the choice of its inode.
pub(crate) struct NewObject<'a, X> {
    pub(crate) kind: ObjectKind,
    pub(crate) parent: u32,
    pub(crate) parent_inode: &'a Inode<X>,
    pub(crate) name: &'a str,
}

/// The changes of metadata at the end of a data write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    /// None.
    Nothing,
    /// New blocks are unwritten until their data is on the device. Then their extents change.
    Extents,
    /// As `Extents`; the length in the inode grows at the end of the write too.
    ExtentsAndLength,
}

/// One format. The terms are those of [`crate::FileSystem`].
pub(crate) trait DiskFormat: Send {
    /// The format's own state of an inode.
    type Extra: Send + std::fmt::Debug;

    fn root(&self) -> u32;
    /// Returns the largest length of a file in pages.
    fn page_limit(&self) -> u64;
    fn style(&self) -> Style;
    fn usage(&self) -> Usage;
    /// Returns the number of free pages. The number includes pages promised to delayed data, and
    /// pages set aside if other files may take them.
    fn free_pages(&self) -> u64;
    fn regions(&self) -> AllocatorRegions;
    /// Returns the metadata that belong to no inode.
    fn metadata(&self) -> Vec<Range<u64>>;
    /// Returns the metadata that map the inode's pages to the device.
    fn mapping(&self, inode: &Inode<Self::Extra>) -> Vec<u64>;
    /// Reports that the free-space metadata of these pages are read and changed.
    fn change_free(&self, pages: Range<u64>, touches: &mut MetaAccesses);
    /// Returns the number of pages set aside for no single inode.
    fn pooled(&self) -> u64 {
        0
    }
    /// Returns the number of pages set aside for the inode.
    fn set_aside(&self, number: u32, inode: &Inode<Self::Extra>) -> u64;

    fn new_inode(
        &mut self,
        caller: Caller,
        wanted: &NewObject<'_, Self::Extra>,
        touches: &mut MetaAccesses,
    ) -> Result<New<Self::Extra>, FileError>;
    /// Frees the inode. The caller has freed the inode's pages already.
    fn free_inode(&mut self, number: u32, inode: &Inode<Self::Extra>, touches: &mut MetaAccesses);
    /// Returns the page of the device that holds the inode.
    fn inode_page(&self, number: u32, inode: &Inode<Self::Extra>) -> u64;

    /// Returns the pages that are read together with a page of metadata, this page included.
    fn read_unit(&self, page: u64) -> Range<u64> {
        page..page + 1
    }

    /// Gives places to all of `pages`, none of which has a place. On an error, the pages placed so
    /// far keep their places.
    fn place(
        &mut self,
        caller: Caller,
        number: u32,
        inode: &mut Inode<Self::Extra>,
        pages: Range<u64>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError>;
    /// Frees the places of all pages from `page` on, and the pages set aside for the inode.
    fn release(
        &mut self,
        number: u32,
        inode: &mut Inode<Self::Extra>,
        page: u64,
        touches: &mut MetaAccesses,
    );
    /// Reads the metadata that map `pages`.
    fn walk(&self, inode: &Inode<Self::Extra>, pages: Range<u64>, touches: &mut MetaAccesses);
    /// Returns the block of the inode's mapping with the extent of `page`. `None` if the inode
    /// itself has the extent.
    fn leaf(&self, _inode: &Inode<Self::Extra>, _page: u64) -> Option<u64> {
        None
    }
    /// Handles the last close by a program that could write.
    fn close(&mut self, number: u32, inode: &mut Inode<Self::Extra>, touches: &mut MetaAccesses);

    /// Returns true if the room behind the end of the file stays when the file is closed.
    fn keeps_room(&self, _inode: &Inode<Self::Extra>) -> bool {
        false
    }
    /// Returns true if files get places only at write-back.
    fn delays(&self) -> bool {
        false
    }
    /// Returns the pages behind the end of the file for which room is promised in advance, because
    /// the file is likely to grow. A program writes `pages`, and the first of them is new.
    fn ahead(&self, _inode: &Inode<Self::Extra>, pages: &Range<u64>) -> Range<u64> {
        pages.end..pages.end
    }
    /// Returns the pages that get places together: `run` is delayed, and `asked` is the part of
    /// `run` that is written back.
    fn batch(&self, _run: Range<u64>, asked: Range<u64>) -> Range<u64> {
        asked
    }
    /// See [`crate::FileSystem::cluster`].
    fn cluster(&self, _inode: &Inode<Self::Extra>, page: u64) -> Range<u64> {
        page..page + 1
    }
    /// Returns the changes of metadata at the end of a data write.
    fn write_end(&self) -> WriteEnd {
        WriteEnd::Nothing
    }
    /// Returns the object of the dataset that holds an inode's pages. `None` if the format places
    /// pages on a device.
    fn in_dataset(&self, _number: u32, _kind: ObjectKind) -> Option<DatasetObject> {
        None
    }
    /// Returns true if data with a new place must be on the device before the transaction that
    /// records the place.
    fn ordered(&self) -> bool {
        false
    }
}

/// Returns the pages that `mpage_writepages` puts into one request with `page`: `page` and the
/// following pages that are contiguous on the device, up to `BIO_MAX_PAGES`.
pub(crate) fn mpage(map: &FileMap, page: u64) -> Range<u64> {
    let piece = map
        .pieces()
        .get(map.index_from(page))
        .filter(|piece| piece.page <= page);
    page..piece.map_or(page + 1, |piece| piece.end().min(page + BIO_MAX_PAGES))
}

const BIO_MAX_PAGES: u64 = 256;
