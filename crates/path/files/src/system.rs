//! What every file system does.

use crate::{FileError, Touches};
use fullstroke_contract::Object;
use fullstroke_units::{Bytes, Lbn, Sectors, Time};
use serde::Serialize;
use std::ops::Range;

/// Bytes in a page: of the cache, of a file, and in a block of all file systems here
/// (`mke2fs` and `mkfs.xfs` choose 4 KiB unless told otherwise).
pub const PAGE_BYTES: u64 = 4096;
/// Sectors in a page.
pub const PAGE_SECTORS: u64 = 8;

/// Who asks, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Monotonic over all calls.
    pub now: Time,
    /// The process, by which ext2 spreads the files of one group
    /// (`ext2_find_near`).
    pub process: u32,
}

/// A file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Holds bytes.
    File,
    /// Holds names.
    Directory,
}

/// What a file system knows about an object, without touching anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// What it is.
    pub kind: Kind,
    /// Its length.
    pub bytes: Bytes,
    /// 4 KiB pages that it has on the device, without those of its mapping.
    pub pages: u64,
    /// Directories above it: 0 for the root.
    pub depth: u32,
}

/// Pages of an object that follow each other, and where they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The first page.
    pub page: u64,
    /// How many.
    pub pages: u64,
    /// Where.
    pub place: Place,
}

/// Where pages of an object are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the device, from this sector on.
    Device(Lbn),
    /// Written by a program, not yet given a place: only in memory.
    Delayed,
    /// Never written; reads as zeros.
    Hole,
}

/// What `statfs` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// 4 KiB pages of the whole device.
    pub pages: u64,
    /// Of these, neither used, nor metadata, nor set aside for a file.
    pub pages_free: u64,
    /// Promised to data whose allocation is delayed; a part of `pages_free`.
    pub pages_delayed: u64,
    /// Inodes that the file system was made with; for XFS, that it has made so far.
    pub inodes: u64,
    /// Of these, unused.
    pub inodes_free: u64,
}

/// The parts that an allocator thinks in: block groups, allocation groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Regions {
    /// 4 KiB pages in each but the last.
    pub pages: u64,
    /// How many.
    pub count: u64,
    /// What the file system calls one.
    #[serde(skip)]
    pub name: &'static str,
}

/// What has to be written, and in which order, for something to be durable. The
/// steps are those of the fields, each complete before the next begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncPlan {
    /// Data of these files: all that is dirty of them. `write_back` gives their
    /// places.
    pub data: Vec<Object>,
    /// Metadata to be written in place: pages of the device, if they are dirty.
    pub in_place: Vec<u64>,
    /// Writes to the log, in order.
    pub log: Vec<LogWrite>,
    /// Metadata that was held back and may be written in place from now on.
    pub released: Vec<u64>,
}

/// One write to a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogWrite {
    /// The first sector.
    pub start: Lbn,
    /// How many.
    pub sectors: Sectors,
    /// Whether what was written before must be on the medium first, and this too
    /// when it completes (a barrier; a flush and FUA).
    pub barrier: bool,
}

impl SyncPlan {
    /// For the next use.
    pub fn clear(&mut self) {
        self.data.clear();
        self.in_place.clear();
        self.log.clear();
        self.released.clear();
    }
}

/// A file system: asked where pages lie, it answers with extents. It does no I/O,
/// knows no cache, and no clock but [`Caller::now`].
///
/// - **Names**: [`look_up`](FileSystem::look_up), [`create`](FileSystem::create),
///   [`make_directory`](FileSystem::make_directory), [`remove`](FileSystem::remove),
///   [`rename`](FileSystem::rename).
/// - **Data, as a program has it**: [`write`](FileSystem::write),
///   [`truncate`](FileSystem::truncate), [`close`](FileSystem::close).
/// - **Data, as a cache has it**: [`read_map`](FileSystem::read_map),
///   [`cluster`](FileSystem::cluster), [`write_back`](FileSystem::write_back).
/// - **Durability**: [`fsync`](FileSystem::fsync), [`commit`](FileSystem::commit),
///   due at [`next_commit`](FileSystem::next_commit).
/// - **Getters**: the rest; they touch nothing.
///
/// Out-parameters are appended to and never cleared. Every operation appends to
/// `touches` what it did to metadata, in order; when it fails, what it had done by
/// then. A failed operation changes no name and no length.
///
/// Where [`holds_metadata`](FileSystem::holds_metadata), a page of metadata that was
/// touched as dirty or fresh must not be written in place before a [`SyncPlan`] has
/// released it.
///
/// An object is removed at once, even if it is open: whoever keeps files open calls
/// `remove` at the last close.
pub trait FileSystem: Send {
    /// The directory at the top; for `raw`, the one file.
    fn root(&self) -> Object;
    /// As `statfs`.
    fn usage(&self) -> Usage;
    /// The parts of the device that the allocator thinks in.
    fn regions(&self) -> Regions;
    /// What is known of an object.
    fn attributes(&self, object: Object) -> Result<Attributes, FileError>;
    /// The entries of a directory, by name.
    fn entries(&self, directory: Object) -> Result<Vec<(String, Object)>, FileError>;
    /// All objects, ascending.
    fn objects(&self) -> Vec<Object>;
    /// Where all pages of an object lie: ascending, delayed ones too, holes left
    /// out.
    fn extents(&self, object: Object, out: &mut Vec<Mapped>) -> Result<(), FileError>;
    /// The pages of an object from `page` on that lie behind each other on the device,
    /// and where; `None` if it has no place there.
    fn piece_at(&self, object: Object, page: u64) -> Option<Mapped>;
    /// Pages of the device that are metadata, in any order: fixed ones, and those of
    /// files' mappings. Pages of directories belong to the directory's extents.
    fn metadata(&self) -> Vec<Range<u64>>;
    /// Adds what changes beside the mapping when data of an object move from and to these
    /// pages of the device: its inode, and what says which pages are free.
    fn change_places(&self, object: Object, pages: &[Range<u64>], touches: &mut Touches);
    /// Pages of the device that are set aside for a file and not used yet.
    fn set_aside(&self) -> u64;

    /// The object called `name`.
    fn look_up(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut Touches,
    ) -> Result<Object, FileError>;
    /// A new, empty file.
    fn create(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut Touches,
    ) -> Result<Object, FileError>;
    /// A new, empty directory.
    fn make_directory(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut Touches,
    ) -> Result<Object, FileError>;
    /// Removes a file or an empty directory, and gives the number that it had.
    fn remove(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut Touches,
    ) -> Result<Object, FileError>;
    /// Moves `from` (directory and name) to `to`. A file, or an empty directory, that
    /// has that name is replaced.
    fn rename(
        &mut self,
        caller: Caller,
        from: (Object, &str),
        to: (Object, &str),
        touches: &mut Touches,
    ) -> Result<(), FileError>;

    /// A program writes `length` bytes from `offset` on into the cache. The pages get
    /// a place, or, where allocation is delayed, room is promised to them.
    fn write(
        &mut self,
        caller: Caller,
        file: Object,
        offset: Bytes,
        length: Bytes,
        touches: &mut Touches,
    ) -> Result<(), FileError>;
    /// Gives the file a length.
    fn truncate(
        &mut self,
        caller: Caller,
        file: Object,
        bytes: Bytes,
        touches: &mut Touches,
    ) -> Result<(), FileError>;
    /// The last program that had the file open for writing closes it: what was set
    /// aside for it is given back, where the kernel does so.
    fn close(
        &mut self,
        caller: Caller,
        file: Object,
        touches: &mut Touches,
    ) -> Result<(), FileError>;

    /// Where `pages` lie, for reading: all of them, holes and delayed ones too. Reads
    /// the metadata that says so.
    fn read_map(
        &mut self,
        caller: Caller,
        file: Object,
        pages: Range<u64>,
        out: &mut Vec<Mapped>,
        touches: &mut Touches,
    ) -> Result<(), FileError>;
    /// Pages around `page` that the file system writes together with it, in one
    /// request, if they are dirty too. Only `page` itself where it merges nothing.
    fn cluster(&self, file: Object, page: u64) -> Result<Range<u64>, FileError>;
    /// The cache writes `pages` back. Those without a place get one (and others with
    /// them, where the format gives places to whole runs); all are given in `out`.
    fn write_back(
        &mut self,
        caller: Caller,
        file: Object,
        pages: Range<u64>,
        out: &mut Vec<Mapped>,
        touches: &mut Touches,
    ) -> Result<(), FileError>;

    /// Whether metadata is held back until a commit.
    fn holds_metadata(&self) -> bool {
        false
    }
    /// What makes a file durable.
    fn fsync(
        &mut self,
        caller: Caller,
        file: Object,
        plan: &mut SyncPlan,
        touches: &mut Touches,
    ) -> Result<(), FileError>;
    /// When the running transaction should be committed; [`Time::NEVER`] if there is
    /// none, or nothing is ever committed.
    fn next_commit(&self) -> Time {
        Time::NEVER
    }
    /// What commits the running transaction.
    fn commit(&mut self, _now: Time, _plan: &mut SyncPlan) {}
}
