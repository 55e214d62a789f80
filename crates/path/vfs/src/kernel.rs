//! State behind programs' calls: names, open files, page cache, journal, and requests in flight.

use crate::access_times::{AccessTimeRule, AccessTimes};
use crate::accounts::RequestAccounts;
use crate::log::MetadataLog;
use crate::open::OpenFiles;
use crate::task::{GuestRequest, ProcessIdentity, Task, ThreadOwner, Threads};
use fullstroke_contract::{Hints, Object, Request, Slots};
use fullstroke_files::{
    Caller, FileSystem, FileSystemSite, MetaAccess, MetaAccesses, PageMapping, SyncPlan,
};
use fullstroke_memory::{CacheOut, IoId, PAGE_BYTES, PageCache, PageRun};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Random, SECTOR_BYTES, Sectors, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Number of sectors in a page.
pub(crate) const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// Settings of a host from its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelSettings {
    pub barrier: bool,
    pub atime: AccessTimeRule,
    pub call_cost: Duration,
    pub copy_mb_per_s: f64,
}

impl KernelSettings {
    /// Returns the processor time of a call with `copied` bytes.
    pub fn cost(&self, copied: u64) -> Duration {
        self.call_cost + Duration::from_secs_f64(copied as f64 / (self.copy_mb_per_s * 1e6))
    }
}

/// Purpose of a request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PendingPurpose {
    /// A piece of an I/O of the cache.
    Cache { io: IoId, run: PageRun, write: bool },
    /// A request of a thread.
    Thread(u32),
}

/// I/O that the cache asks for. Two lists alternate: the steps fill the new list while the old list
/// is processed.
#[derive(Debug, Default)]
pub(crate) struct CacheWork {
    new: CacheOut,
    spare: CacheOut,
}

impl CacheWork {
    /// Returns the list to fill.
    pub fn list(&mut self) -> &mut CacheOut {
        &mut self.new
    }

    /// Takes the list to process.
    pub fn take(&mut self) -> CacheOut {
        std::mem::replace(&mut self.new, std::mem::take(&mut self.spare))
    }

    /// Returns the memory of a processed list.
    pub fn give_back(&mut self, mut list: CacheOut) {
        list.clear();
        self.spare = list;
    }

    /// True if there is nothing to process.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty()
    }
}

/// Memory for the answers of the file system, used again for each.
#[derive(Default)]
pub(crate) struct FileSystemAnswers {
    pub touches: MetaAccesses,
    pub mapped: Vec<PageMapping>,
    pub plan: SyncPlan,
    /// Threads that the end of a log write wakes.
    pub woken: Vec<u32>,
}

/// The whole state.
pub(crate) struct VfsKernel {
    pub fs: Box<dyn FileSystem>,
    pub cache: PageCache,
    pub capacity: Sectors,
    pub settings: KernelSettings,
    /// True above a pool, which caches data and metadata itself. No page is in the page cache.
    pub above_pool: bool,
    /// Blocks of metadata above a pool that a call has needed before: their inodes and names lie in
    /// the kernel's caches (`inode_hashtable`, `dentry_hashtable`), and no further call asks the pool.
    pub known_metadata: BTreeSet<u64>,
    /// Tracks for the ends of read-ahead windows.
    pub tracks: Option<Arc<Boundaries>>,
    pub files: OpenFiles,
    pub threads: Threads,
    pub flights: Slots<PendingPurpose>,
    pub log: MetadataLog,
    /// Order in which threads wake.
    pub random: Random,
    pub accounts: RequestAccounts,
    /// For each object, the workload of the last write.
    pub writers: BTreeMap<Object, u16>,
    pub access_times: AccessTimes,
    /// The only name in a file system without names.
    pub only_name: Option<String>,
    pub todo: CacheWork,
    pub answers: FileSystemAnswers,
}

impl VfsKernel {
    pub fn new(
        fs: Box<dyn FileSystem>,
        cache: PageCache,
        site: &FileSystemSite,
        settings: KernelSettings,
    ) -> VfsKernel {
        let log = MetadataLog::beginning_with(fs.transaction());
        VfsKernel {
            above_pool: fs.in_dataset(fs.root()).is_some(),
            known_metadata: BTreeSet::new(),
            fs,
            cache,
            capacity: site.capacity,
            settings,
            tracks: None,
            files: OpenFiles::default(),
            threads: Threads::default(),
            flights: Slots::default(),
            log,
            random: site.seed.stream("vfs"),
            accounts: RequestAccounts::default(),
            writers: BTreeMap::new(),
            access_times: AccessTimes::new(settings.atime),
            only_name: None,
            todo: CacheWork::default(),
            answers: FileSystemAnswers::default(),
        }
    }

    /// Returns the identity of a thread for the file system.
    pub fn caller(&self, now: Time, thread: u32) -> Caller {
        Caller {
            now,
            process: self.hints(thread).process,
        }
    }

    /// Returns hints for requests without a process. They have no process and the workload of the
    /// first program.
    pub fn hints_without_process(&self) -> Hints {
        let first = self.threads.first_identity();
        let workload = first.map_or(0, |first| first.workload);
        ProcessIdentity {
            process: 0,
            workload,
        }
        .hints()
    }

    /// Returns hints for requests of a thread.
    pub fn hints(&self, thread: u32) -> Hints {
        match self.threads[thread].owner {
            ThreadOwner::Process(number) => self.threads.identity(number).hints(),
            // These flags concern the request of the guest. The requests on the file decide about
            // their own.
            ThreadOwner::Guest(GuestRequest { request, .. }) => Hints {
                direct: false,
                force_unit_access: false,
                before_forced_write: false,
                ..request.hints
            },
            ThreadOwner::Cache | ThreadOwner::Journal => self.hints_without_process(),
        }
    }

    /// Returns the origin of a thread's requests: the request of the guest.
    pub fn origin(&self, thread: u32) -> u64 {
        match self.threads[thread].owner {
            ThreadOwner::Guest(GuestRequest { request, .. }) => request.origin,
            // Requests of programs get their numbers when they leave the node.
            ThreadOwner::Process(_) | ThreadOwner::Cache | ThreadOwner::Journal => {
                Request::BACKGROUND
            }
        }
    }

    /// Turns the metadata accesses of an operation into steps of a thread.
    pub fn follow_touches(&mut self, thread: u32) {
        let holds = self.fs.holds_metadata();
        let kind = self.threads[thread].kind;
        let mut copied = false;
        for &touch in self.answers.touches.list() {
            let tasks = &mut self.threads[thread].tasks;
            match touch {
                // A page that is held back is still in memory.
                MetaAccess::Read(page) if self.log.holds(page) => {}
                MetaAccess::Read(page) => tasks.push_back(Task::ReadPage(page)),
                MetaAccess::Dirty(page) | MetaAccess::Fresh(page) => {
                    self.accounts.dirty(page, kind);
                    if holds {
                        self.log.hold(page);
                        // One wait is enough for all pages of a call.
                        if self.log.shadows(page) && !std::mem::replace(&mut copied, true) {
                            tasks.push_back(Task::AwaitCopies);
                        }
                    } else {
                        tasks.push_back(Task::DirtyPage(page));
                    }
                }
                MetaAccess::Forget(page) => {
                    self.accounts.forget(page);
                    self.log.forget(page);
                    tasks.push_back(Task::ForgetPage(page));
                }
            }
        }
        self.answers.touches.clear();
    }
}
