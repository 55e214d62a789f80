//! State behind programs' calls: names, open files, page cache, journal, and requests in flight.

use crate::call_costs::CallCosts;
use crate::open::OpenFiles;
use crate::task::{Guest, Owner, Task, Threads};
use fullstroke_contract::{Hints, Object, Request, Slots};
use fullstroke_files::{Caller, FileSystem, MetaAccess, MetaAccesses, PageMapping, SyncPlan};
use fullstroke_memory::{CacheOut, IoId, PAGE_BYTES, PageCache, PageRun};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Number of sectors in a page.
pub(crate) const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// Settings of a host from its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelSettings {
    pub barrier: bool,
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

/// Identity of a process for the layers below.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessIdentity {
    pub process: u32,
    pub workload: u16,
}

impl ProcessIdentity {
    /// Returns hints for requests.
    pub fn hints(self) -> Hints {
        Hints {
            process: self.process,
            workload: self.workload,
            ..Hints::default()
        }
    }
}

/// State of the log. Only one transaction at a time is written to the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct JournalState {
    pub busy: Option<u32>,
    pub waiting: VecDeque<u32>,
    /// Number of the running transaction.
    pub transaction: u64,
    /// True if a thread of the journal is running.
    pub committing: bool,
}

/// Number of requests to the device by purpose.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub data: u64,
    pub metadata_reads: u64,
    pub metadata_writes: u64,
    pub log_writes: u64,
    pub flushes: u64,
}

/// The whole state.
pub(crate) struct VfsKernel {
    pub fs: Box<dyn FileSystem>,
    pub cache: PageCache,
    pub capacity: Sectors,
    pub settings: KernelSettings,
    /// Tracks for the ends of read-ahead windows.
    pub tracks: Option<Arc<Boundaries>>,
    pub files: OpenFiles,
    pub threads: Threads,
    /// Runnable threads, in order.
    pub ready: VecDeque<u32>,
    /// Threads of processes and guests whose call or request has ended.
    pub ended: VecDeque<u32>,
    /// Identities by process.
    pub identities: Vec<ProcessIdentity>,
    pub flights: Slots<PendingPurpose>,
    pub log: JournalState,
    pub bill: CallCosts,
    pub traffic: Traffic,
    /// Metadata pages held back from their places, with the transaction of each.
    pub held: BTreeMap<u64, u64>,
    /// For each object, the workload of the last write.
    pub writers: BTreeMap<Object, u16>,
    /// The only name in a file system without names.
    pub only_name: Option<String>,
    pub todo: CacheOut,
    pub spare: CacheOut,
    pub touches: MetaAccesses,
    pub mapped: Vec<PageMapping>,
    pub plan: SyncPlan,
}

impl VfsKernel {
    pub fn new(
        fs: Box<dyn FileSystem>,
        cache: PageCache,
        capacity: Sectors,
        settings: KernelSettings,
    ) -> VfsKernel {
        VfsKernel {
            fs,
            cache,
            capacity,
            settings,
            tracks: None,
            files: OpenFiles::default(),
            threads: Threads::default(),
            ready: VecDeque::new(),
            ended: VecDeque::new(),
            identities: Vec::new(),
            flights: Slots::default(),
            log: JournalState::default(),
            bill: CallCosts::default(),
            traffic: Traffic::default(),
            held: BTreeMap::new(),
            writers: BTreeMap::new(),
            only_name: None,
            todo: CacheOut::default(),
            spare: CacheOut::default(),
            touches: MetaAccesses::new(),
            mapped: Vec::new(),
            plan: SyncPlan::default(),
        }
    }

    /// Adds a process. Its thread has the same number.
    pub fn add_process(&mut self, identity: ProcessIdentity) {
        let number = self.identities.len() as u32;
        self.identities.push(identity);
        let thread = self.threads.add(Owner::Process(number));
        assert_eq!(thread, number, "processes come before all others");
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
        let workload = self.identities.first().map_or(0, |first| first.workload);
        ProcessIdentity {
            process: 0,
            workload,
        }
        .hints()
    }

    /// Returns hints for requests of a thread.
    pub fn hints(&self, thread: u32) -> Hints {
        match self.threads[thread].owner {
            Owner::Process(number) => self.identities[number as usize].hints(),
            Owner::Guest(Guest { request, .. }) => Hints {
                direct: false,
                force_unit_access: false,
                ..request.hints
            },
            Owner::Cache | Owner::Journal => self.hints_without_process(),
        }
    }

    /// Returns the origin of a thread's requests: the request of the guest.
    pub fn origin(&self, thread: u32) -> u64 {
        match self.threads[thread].owner {
            Owner::Guest(Guest { request, .. }) => request.origin,
            // Requests of programs get their numbers when they leave the node.
            Owner::Process(_) | Owner::Cache | Owner::Journal => Request::BACKGROUND,
        }
    }

    /// Turns the metadata accesses of an operation into steps of a thread.
    pub fn follow_touches(&mut self, thread: u32) {
        let holds = self.fs.holds_metadata();
        let kind = self.threads[thread].kind;
        for &touch in self.touches.list() {
            let tasks = &mut self.threads[thread].tasks;
            match touch {
                // A page that is held back is still in memory.
                MetaAccess::Read(page) if self.held.contains_key(&page) => {}
                MetaAccess::Read(page) => tasks.push_back(Task::ReadPage(page)),
                MetaAccess::Dirty(page) | MetaAccess::Fresh(page) => {
                    self.bill.dirty(page, kind);
                    if holds {
                        self.held.insert(page, self.log.transaction);
                    } else {
                        tasks.push_back(Task::DirtyPage(page));
                    }
                }
                MetaAccess::Forget(page) => {
                    self.bill.forget(page);
                    self.held.remove(&page);
                    tasks.push_back(Task::ForgetPage(page));
                }
            }
        }
        self.touches.clear();
    }
}
