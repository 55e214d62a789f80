//! What one format of file systems has of its own: where inodes and data go.
//! Names, lengths, delays and the log are the same for all and stand in `tree.rs`.

use crate::directory::{Directory, Style};
use crate::map::FileMap;
use crate::runs::Runs;
use crate::system::{Caller, Kind, Regions, Usage};
use crate::{FileError, Touches};
use std::ops::Range;

/// A file or a directory, with what the format keeps of each.
#[derive(Debug)]
pub(crate) struct Inode<X> {
    pub(crate) kind: Kind,
    /// Its length.
    pub(crate) bytes: u64,
    pub(crate) map: FileMap,
    /// Pages that were written by a program and have no place yet.
    pub(crate) delayed: Runs,
    pub(crate) directory: Option<Box<Directory>>,
    pub(crate) parent: u32,
    /// Whether a program may still write to it.
    pub(crate) open: bool,
    pub(crate) extra: X,
}

impl<X> Inode<X> {
    /// Its length in pages.
    pub(crate) fn pages(&self) -> u64 {
        self.bytes.div_ceil(crate::PAGE_BYTES)
    }
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }
}

/// A new inode's number and what the format keeps of it.
pub(crate) type New<X> = (u32, X);

/// Where a new object is to go.
pub(crate) struct Wanted<'a, X> {
    pub(crate) kind: Kind,
    pub(crate) parent: u32,
    pub(crate) parent_inode: &'a Inode<X>,
    pub(crate) name: &'a str,
}

/// One format. See the functions of [`crate::FileSystem`] for the words.
pub(crate) trait Format: Send {
    /// What it keeps of each inode.
    type Extra: Send + std::fmt::Debug;

    fn root(&self) -> u32;
    /// The most pages that a file can have.
    fn page_limit(&self) -> u64;
    fn style(&self) -> Style;
    fn usage(&self) -> Usage;
    /// Free pages, those that are promised included, and those that are set aside where
    /// others can have them.
    fn free_pages(&self) -> u64;
    fn regions(&self) -> Regions;
    /// Metadata that belong to no inode.
    fn metadata(&self) -> Vec<Range<u64>>;
    /// Metadata that say where the inode's pages lie.
    fn mapping(&self, inode: &Inode<Self::Extra>) -> Vec<u64>;
    /// The metadata that say which of these pages are free are read and changed.
    fn change_free(&self, pages: Range<u64>, touches: &mut Touches);
    /// Pages set aside that belong to no single inode.
    fn pooled(&self) -> u64 {
        0
    }
    /// Pages set aside for the inode.
    fn set_aside(&self, number: u32, inode: &Inode<Self::Extra>) -> u64;

    fn new_inode(
        &mut self,
        caller: Caller,
        wanted: &Wanted<'_, Self::Extra>,
        touches: &mut Touches,
    ) -> Result<New<Self::Extra>, FileError>;
    /// The inode's pages are given back already.
    fn free_inode(&mut self, number: u32, inode: &Inode<Self::Extra>, touches: &mut Touches);
    /// The page of the device that the inode is on.
    fn inode_page(&self, number: u32, inode: &Inode<Self::Extra>) -> u64;

    /// Gives places to all of `pages`, none of which has one. Where it fails, those
    /// that were given stay.
    fn place(
        &mut self,
        caller: Caller,
        number: u32,
        inode: &mut Inode<Self::Extra>,
        pages: Range<u64>,
        touches: &mut Touches,
    ) -> Result<(), FileError>;
    /// Takes the places of all pages from `page` on, and what is set aside.
    fn release(
        &mut self,
        number: u32,
        inode: &mut Inode<Self::Extra>,
        page: u64,
        touches: &mut Touches,
    );
    /// Reads what says where `pages` lie.
    fn walk(&self, inode: &Inode<Self::Extra>, pages: Range<u64>, touches: &mut Touches);
    /// The last close of a program that could write.
    fn close(&mut self, number: u32, inode: &mut Inode<Self::Extra>, touches: &mut Touches);

    /// Whether room behind the end stays when the file is closed.
    fn keeps_room(&self, _inode: &Inode<Self::Extra>) -> bool {
        false
    }
    /// Whether files get places only when they are written back.
    fn delays(&self) -> bool {
        false
    }
    /// Pages behind the end for which room is promised too, where a program writes
    /// `pages`, the first of which is new: the file is likely to go on.
    fn ahead(&self, _inode: &Inode<Self::Extra>, pages: &Range<u64>) -> Range<u64> {
        pages.end..pages.end
    }
    /// Which pages get places together, where `run` is delayed and `asked` of it is
    /// written back.
    fn batch(&self, _run: Range<u64>, asked: Range<u64>) -> Range<u64> {
        asked
    }
    /// See [`crate::FileSystem::cluster`].
    fn cluster(&self, _inode: &Inode<Self::Extra>, page: u64) -> Range<u64> {
        page..page + 1
    }
    /// Whether data whose place is new must be on the device before the transaction
    /// that says so.
    fn ordered(&self) -> bool {
        false
    }
}

/// Pages that `mpage_writepages` puts into one request with `page`: those behind it
/// that follow on the device, up to `BIO_MAX_PAGES`.
pub(crate) fn mpage(map: &FileMap, page: u64) -> Range<u64> {
    let piece = map
        .pieces()
        .get(map.index_from(page))
        .filter(|piece| piece.page <= page);
    page..piece.map_or(page + 1, |piece| piece.end().min(page + BIO_MAX_PAGES))
}

const BIO_MAX_PAGES: u64 = 256;
