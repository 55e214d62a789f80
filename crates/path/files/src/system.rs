//! Interface of every file system.

use crate::{FileError, MetaAccesses};
use fullstroke_contract::{DatasetObject, Object};
use fullstroke_units::{Bytes, Lbn, Sectors, Time};
use serde::Serialize;
use std::ops::Range;

/// Bytes in a page of the cache or of a file, and in a block of all file systems here (`mke2fs` and
/// `mkfs.xfs` choose 4 KiB by default).
pub const PAGE_BYTES: u64 = 4096;
/// Sectors in a page.
pub const PAGE_SECTORS: u64 = 8;

/// Process that calls, and time of the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Current time. It never decreases from call to call.
    pub now: Time,
    /// Process number. ext2 uses it to spread the files of one group (`ext2_find_near`).
    pub process: u32,
}

/// A file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// A file, which holds bytes.
    File,
    /// A directory, which holds names.
    Directory,
}

/// Attributes of an object. Reading them touches no metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// File or directory.
    pub kind: ObjectKind,
    /// Length.
    pub bytes: Bytes,
    /// Number of 4 KiB pages on the device, without the pages of the mapping.
    pub pages: u64,
    /// Number of directories above the object; 0 for the root.
    pub depth: u32,
}

/// Pages of an object that are contiguous, and their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMapping {
    /// First page in the object.
    pub page: u64,
    /// Number of pages.
    pub pages: u64,
    /// Place of the pages.
    pub place: PagePlace,
}

/// Place of an object's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlace {
    /// On the device, from this sector on.
    Device(Lbn),
    /// Only in memory: written by a program, but without a place yet.
    Delayed,
    /// Never written. Reads return zeros.
    Hole,
}

/// Usage of the file system, as from `statfs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Number of 4 KiB pages of the device.
    pub pages: u64,
    /// Number of pages that are neither used, nor metadata, nor set aside for a file.
    pub pages_free: u64,
    /// Number of pages promised to data with delayed allocation; a part of `pages_free`.
    pub pages_delayed: u64,
    /// Number of inodes. The number is fixed when the file system is made; XFS makes inodes later,
    /// and counts the existing ones.
    pub inodes: u64,
    /// Number of unused inodes.
    pub inodes_free: u64,
}

/// Regions of an allocator on the device: block groups, allocation groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AllocatorRegions {
    /// Number of 4 KiB pages in each region but the last.
    pub pages: u64,
    /// Number of regions.
    pub count: u64,
    /// Term of the file system for a region.
    #[serde(skip)]
    pub name: &'static str,
}

/// Kinds of changes of an inode. The larger kind includes the smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InodeChange {
    /// Changes that a program needs to find its data again: places, length, names. `fdatasync`
    /// waits for these (`i_datasync_tid` of ext4, `ili_datasync_seq` of XFS).
    Data,
    /// Any change, also of the times alone.
    Any,
}

/// The writes that make something durable, in order. The steps are the fields in order. Each step
/// must be complete before the next begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncPlan {
    /// Files whose dirty data must be written. `write_back` returns the places.
    pub data: Vec<Object>,
    /// Metadata pages of the device to write in place, if they are dirty.
    pub in_place: Vec<u64>,
    /// Writes to the log, in order.
    pub log: Vec<LogWrite>,
    /// Metadata pages held back, and may be written in place from now on.
    pub released: Vec<u64>,
}

/// One write to a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogWrite {
    /// First sector.
    pub start: Lbn,
    /// Number of sectors.
    pub sectors: Sectors,
    /// True for a barrier: earlier writes must be on the medium first, and this write must be on
    /// the medium when it completes (a flush and FUA).
    pub barrier: bool,
    /// True if a flush of the device goes before the write, and the write itself is not forced.
    pub flush_before: bool,
}

impl SyncPlan {
    /// Empties the plan for the next use.
    pub fn clear(&mut self) {
        self.data.clear();
        self.in_place.clear();
        self.log.clear();
        self.released.clear();
    }
}

/// A file system: it returns the places of files' pages as extents. It does no I/O, has no cache,
/// and uses no clock but [`Caller::now`].
///
/// - **Names**: [`look_up`](FileSystem::look_up), [`create`](FileSystem::create),
///   [`make_directory`](FileSystem::make_directory), [`remove`](FileSystem::remove),
///   [`rename`](FileSystem::rename).
/// - **Data, from the side of a program**: [`write`](FileSystem::write),
///   [`truncate`](FileSystem::truncate), [`close`](FileSystem::close).
/// - **Data, from the side of a cache**: [`read_map`](FileSystem::read_map),
///   [`cluster`](FileSystem::cluster), [`write_back`](FileSystem::write_back).
/// - **Durability**: [`fsync`](FileSystem::fsync), [`commit`](FileSystem::commit), due at
///   [`next_commit`](FileSystem::next_commit).
/// - **Getters**: the other functions; they touch no metadata.
///
/// Operations append to out-parameters and never clear them. Every operation appends its accesses
/// to metadata to `touches`, in order. A failed operation appends the accesses until the failure. A
/// failed operation changes no name and no length.
///
/// If [`holds_metadata`](FileSystem::holds_metadata) is true, a dirty or fresh page of metadata
/// must not be written in place before a [`SyncPlan`] has released it.
///
/// An object is removed at once, even if it is open. A caller that keeps files open must call
/// `remove` only at the last close.
pub trait FileSystem: Send {
    /// Returns the top directory; for `raw`, the only file.
    fn root(&self) -> Object;
    /// Returns the usage, as `statfs` does.
    fn usage(&self) -> Usage;
    /// Returns the regions of the allocator on the device.
    fn regions(&self) -> AllocatorRegions;
    /// Returns the attributes of an object.
    fn attributes(&self, object: Object) -> Result<Attributes, FileError>;
    /// Returns the entries of a directory, by name.
    fn entries(&self, directory: Object) -> Result<Vec<(String, Object)>, FileError>;
    /// Returns all objects, ascending.
    fn objects(&self) -> Vec<Object>;
    /// Appends the places of all pages of an object, ascending. Delayed pages are included, holes
    /// are left out.
    fn extents(&self, object: Object, out: &mut Vec<PageMapping>) -> Result<(), FileError>;
    /// Returns the pages of an object from `page` on that are contiguous on the device, and their
    /// place. Returns `None` if `page` has no place.
    fn piece_at(&self, object: Object, page: u64) -> Option<PageMapping>;
    /// Returns the metadata pages of the device, in any order: fixed metadata, and the mappings of
    /// files. Pages of directories belong to the extents of the directory.
    fn metadata(&self) -> Vec<Range<u64>>;
    /// Reports the metadata that change, besides the mapping, when data of an object move from or
    /// to these pages of the device: the inode, and the free-space metadata.
    fn change_places(&self, object: Object, pages: &[Range<u64>], touches: &mut MetaAccesses);
    /// Returns the number of pages of the device set aside for a file and not used yet.
    fn set_aside(&self) -> u64;

    /// Returns the object called `name`.
    fn look_up(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError>;
    /// Makes an empty file.
    fn create(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError>;
    /// Makes an empty directory.
    fn make_directory(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError>;
    /// Removes a file or an empty directory. Returns the number of the removed object.
    fn remove(
        &mut self,
        caller: Caller,
        directory: Object,
        name: &str,
        touches: &mut MetaAccesses,
    ) -> Result<Object, FileError>;
    /// Moves `from` (directory and name) to `to`. If `to` is an existing file or empty directory,
    /// it is replaced.
    fn rename(
        &mut self,
        caller: Caller,
        from: (Object, &str),
        to: (Object, &str),
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError>;

    /// Handles a write of `length` bytes at `offset` into the cache. The pages get a place, or a
    /// promise of room if allocation is delayed.
    fn write(
        &mut self,
        caller: Caller,
        file: Object,
        offset: Bytes,
        length: Bytes,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError>;
    /// Handles a read that changes the access time of an object.
    fn accessed(&mut self, _caller: Caller, _object: Object, _touches: &mut MetaAccesses) {}
    /// Sets the length of the file.
    fn truncate(
        &mut self,
        caller: Caller,
        file: Object,
        bytes: Bytes,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError>;
    /// Handles the close by the last program that had the file open for writing. The blocks set
    /// aside for the file become free, if the kernel frees them at this point.
    fn close(
        &mut self,
        caller: Caller,
        file: Object,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError>;

    /// Appends the places of `pages` for a read, including holes and delayed pages. Reads the
    /// mapping metadata.
    fn read_map(
        &mut self,
        caller: Caller,
        file: Object,
        pages: Range<u64>,
        out: &mut Vec<PageMapping>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError>;
    /// Returns the pages around `page` that the file system writes in one request with `page` if
    /// they are dirty too. Returns only `page` if the file system merges nothing.
    fn cluster(&self, file: Object, page: u64) -> Result<Range<u64>, FileError>;
    /// Handles the write-back of `pages` by the cache. Pages without a place get one. Other pages
    /// may get a place too, if the format places whole runs. Appends the places of `pages` to
    /// `out`.
    fn write_back(
        &mut self,
        caller: Caller,
        file: Object,
        pages: Range<u64>,
        out: &mut Vec<PageMapping>,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError>;

    /// Handles the end of the write of `pages`: their data is on the device. Returns true if that
    /// changes metadata, because new blocks count as unwritten until then, or because the length in
    /// the inode grows only then. The pages stay under write-back until the change is made.
    fn written_back(
        &mut self,
        _caller: Caller,
        _file: Object,
        _pages: Range<u64>,
        _touches: &mut MetaAccesses,
    ) -> bool {
        false
    }
    /// Marks all placed pages of a file as unwritten, as `fallocate` leaves them. No effect if the
    /// file system has no unwritten extents.
    fn make_unwritten(&mut self, _file: Object) {}

    /// Returns the object of a dataset that holds the pages of `object`, for a file system above a
    /// pool like ZFS. Such a pool caches data and metadata itself, and no page stays in the page
    /// cache. An unknown object counts as a removed file. `None` if the file system places pages on
    /// a device.
    fn in_dataset(&self, _object: Object) -> Option<DatasetObject> {
        None
    }

    /// Returns true if metadata is held back until a commit.
    fn holds_metadata(&self) -> bool {
        false
    }

    /// Returns the pages that are read together with a page of metadata, this page included.
    fn read_unit(&self, page: u64) -> Range<u64> {
        page..page + 1
    }

    /// Returns true if metadata lies in the page cache of the device, so that `sync` writes the
    /// metadata in place after the commit (`sync_bdevs` in `ksys_sync` of `fs/sync.c`). XFS has
    /// buffers of its own and writes metadata in place later (`xfsaild`).
    fn syncs_in_place(&self) -> bool {
        true
    }
    /// Returns the number of the running transaction; 0 without a journal.
    fn transaction(&self) -> u64 {
        0
    }

    /// Returns the number of the transaction with the last change of the object. `None` if
    /// the log has contained the change for long, or without a journal. With
    /// [`InodeChange::Data`], changes of times do not count, as for `fdatasync`.
    fn last_change(&self, _object: Object, _kind: InodeChange) -> Option<u64> {
        None
    }

    /// Returns true if the log has copies of whole pages, and a page must not change while its copy
    /// is on the way into the log (`BH_Shadow` of jbd2).
    fn copies_pages(&self) -> bool {
        false
    }

    /// Closes the running transaction. Its changes go to the open log buffer, which
    /// [`write_pushed`](FileSystem::write_pushed) writes. Returns false if the transaction is
    /// empty. Does nothing in a journal that writes each transaction by itself (jbd2).
    fn push(&mut self) -> bool {
        false
    }
    /// Adds to `plan` the writes of the open log buffer.
    fn write_pushed(&mut self, _plan: &mut SyncPlan) {}
    /// Returns true if an fsync pushes the running transaction (`xlog_cil_force_seq`).
    fn pushes(&self) -> bool {
        false
    }

    /// Returns true if an fsync that finds its changes in the transaction of another process
    /// flushes the device after that transaction (`xfs_file_fsync`: only the process that writes
    /// the log knows that the log write flushes). ext4 relies on the flush of the commit record
    /// (`jbd2_trans_will_send_data_barrier`).
    fn flushes_after_others(&self) -> bool {
        false
    }

    /// Adds to `plan` the writes that make a file durable.
    fn fsync(
        &mut self,
        caller: Caller,
        file: Object,
        plan: &mut SyncPlan,
        touches: &mut MetaAccesses,
    ) -> Result<(), FileError>;
    /// Returns the time when the running transaction should be committed; [`Time::NEVER`] if there
    /// is none, or if the file system has no journal.
    fn next_commit(&self) -> Time {
        Time::NEVER
    }
    /// Adds to `plan` the writes that commit the running transaction.
    fn commit(&mut self, _now: Time, _plan: &mut SyncPlan) {}
}
