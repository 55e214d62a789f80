//! The steps of a call, and the threads that carry them out.

use fullstroke_contract::{Extent, Hints, Object, Operation, Request};
use fullstroke_files::{InodeChange, PageMapping};
use fullstroke_memory::{FileAccess, FileId, IoId, PageIo, PageRun};
use fullstroke_programs::{CallError, CallKind, Fd};
use fullstroke_units::Time;
use std::collections::VecDeque;

/// One task of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// Brings a metadata page into memory.
    ReadPage(u64),
    /// Changes a metadata page; the cache may write the page at any later time.
    DirtyPage(u64),
    /// Drops a page that is no longer metadata.
    ForgetPage(u64),
    /// Drops the pages of an object from one page on.
    Discard(Object, u64),
    /// Reads through the cache.
    Read(FileId, FileAccess),
    /// Writes through the cache.
    Write(FileId, FileAccess),
    /// Writes the dirty pages of an object to the device.
    SyncObject(Object),
    /// Writes all dirty pages to the device.
    SyncAll,
    /// Writes a metadata page to the device, if the page is dirty.
    InPlace(u64),
    /// Makes a file durable by the plan of the file system. With [`InodeChange::Data`] changes of
    /// times need not be durable.
    Durable(Object, InodeChange),
    /// Waits until a transaction is in the log, or writes the transaction. With `flush`, the device
    /// is flushed afterwards if another thread has written the transaction.
    Logged { transaction: u64, flush: bool },
    /// Notes that the pages of the transaction are on their way into the log.
    Copy,
    /// Waits until changed pages have their copies in the log.
    AwaitCopies,
    /// Notes that the commit record is about to be written.
    Record,
    /// Makes everything durable by the plan of the file system.
    Commit,
    /// Allows the write of a page held back until this transaction. The fields are page and
    /// transaction.
    Release(u64, u64),
    /// Frees the log for other threads.
    LeaveLog,
    /// Writes the dirty pages of a run to the device; with `drop` also removes the run from the
    /// cache.
    PassCache { run: PageRun, drop: bool },
    /// Transfers bytes of an object without the cache.
    Direct {
        object: Object,
        offset: u64,
        bytes: u64,
        write: bool,
    },
    /// Invalidates pages of a run, because a read meanwhile may have brought old data.
    Invalidate(PageRun),
    /// Issues a request to the device. The last field is true for FUA.
    Issue(Operation, Extent, bool),
    /// Flushes the device before the forced write of a commit record.
    FlushBeforeRecord,
    /// Flushes the writes of one file, for a file system above a pool.
    FlushFile(Object),
    /// Waits until all requests of this thread have completed.
    Settle,
    /// Reports a failed write-back to the opener of this file, once.
    Tell(Fd),
    /// Changes metadata because the data of a run is on the device.
    Convert(PageRun),
    /// Ends a write of the cache, after the changes of metadata at its end.
    Written(IoId, PageRun),
    /// Issues an I/O of the cache after its place has been looked up. The last field is true for a
    /// write.
    Transfer(PageIo, bool),
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

/// Owner of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadOwner {
    /// A process, by its number in the node.
    Process(u32),
    /// A guest with a disk in a file.
    Guest(GuestRequest),
    /// The cache, for I/O of pages.
    Cache,
    /// The journal.
    Journal,
}

/// A request of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GuestRequest {
    pub request: Request,
    /// Time when the request arrived.
    pub submitted: Time,
}

/// Reason for the wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitReason {
    /// The thread does not wait.
    No,
    /// The cache.
    Cache,
    /// The requests of the thread.
    Device,
    /// The log.
    Log,
}

/// A thread that carries out tasks one after another.
#[derive(Debug)]
pub(crate) struct Thread {
    pub owner: ThreadOwner,
    pub tasks: VecDeque<Task>,
    pub waits: WaitReason,
    /// Number of requests in flight.
    pub outstanding: u32,
    /// Kind of call charged for the work.
    pub kind: CallKind,
    /// Result of the call.
    pub result: Result<u64, CallError>,
    /// Number of bytes copied between memory and the program.
    pub copied: u64,
    /// Places of the pages of a transfer.
    pub mapped: Vec<PageMapping>,
}

impl Thread {
    pub fn new(owner: ThreadOwner) -> Thread {
        Thread {
            owner,
            tasks: VecDeque::new(),
            waits: WaitReason::No,
            outstanding: 0,
            kind: CallKind::Write,
            result: Ok(0),
            copied: 0,
            mapped: Vec::new(),
        }
    }
}

/// All threads. The first are the processes. Threads of the cache come and go, and their slots are
/// used again.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    all: Vec<Thread>,
    free: Vec<u32>,
    /// Runnable threads, in order.
    ready: VecDeque<u32>,
    /// Threads of processes and guests whose call or request has ended.
    ended: VecDeque<u32>,
    /// Identities by process.
    identities: Vec<ProcessIdentity>,
}

impl Threads {
    /// Adds a process. Its thread has the same number.
    pub fn add_process(&mut self, identity: ProcessIdentity) {
        let number = self.identities.len() as u32;
        self.identities.push(identity);
        let thread = self.add(ThreadOwner::Process(number));
        assert_eq!(thread, number, "processes come before all others");
    }

    /// Returns the identity of a process.
    pub fn identity(&self, process: u32) -> ProcessIdentity {
        self.identities[process as usize]
    }

    /// Returns the identity of the first process, if there are processes.
    pub fn first_identity(&self) -> Option<ProcessIdentity> {
        self.identities.first().copied()
    }

    /// Puts a thread that does not wait behind all runnable threads.
    pub fn make_ready(&mut self, slot: u32) {
        debug_assert_eq!(
            self[slot].waits,
            WaitReason::No,
            "thread {slot} is made ready, and waits"
        );
        self.ready.push_back(slot);
    }

    /// Returns the next runnable thread.
    pub fn next_ready(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }

    /// Notes the end of a call or a request.
    pub fn end(&mut self, slot: u32) {
        debug_assert!(
            self[slot].tasks.is_empty() && self[slot].outstanding == 0,
            "the call of thread {slot} ends before its steps"
        );
        self.ended.push_back(slot);
    }

    /// Returns the next thread whose call or request has ended.
    pub fn next_ended(&mut self) -> Option<u32> {
        self.ended.pop_front()
    }

    pub fn add(&mut self, owner: ThreadOwner) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                // Lists of an ended thread keep their memory for the next one.
                let thread = &mut self.all[slot as usize];
                let (tasks, mapped) = (
                    std::mem::take(&mut thread.tasks),
                    std::mem::take(&mut thread.mapped),
                );
                *thread = Thread {
                    tasks,
                    mapped,
                    ..Thread::new(owner)
                };
                slot
            }
            None => {
                self.all.push(Thread::new(owner));
                self.all.len() as u32 - 1
            }
        }
    }

    /// Removes a thread that has ended.
    pub fn remove(&mut self, slot: u32) {
        let thread = &mut self.all[slot as usize];
        assert!(
            thread.tasks.is_empty() && thread.outstanding == 0,
            "thread {slot} is over, with {} steps and {} requests left",
            thread.tasks.len(),
            thread.outstanding
        );
        thread.mapped.clear();
        self.free.push(slot);
    }
}

impl std::ops::Index<u32> for Threads {
    type Output = Thread;
    fn index(&self, slot: u32) -> &Thread {
        &self.all[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Threads {
    fn index_mut(&mut self, slot: u32) -> &mut Thread {
        &mut self.all[slot as usize]
    }
}
