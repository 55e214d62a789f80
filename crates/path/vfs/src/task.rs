//! What is to be done for a call, step by step, and who does it.

use fullstroke_contract::{Extent, Object, Operation, Request};
use fullstroke_files::Mapped;
use fullstroke_memory::{Access, FileId, Io, Run};
use fullstroke_programs::{CallError, CallKind, Fd};
use fullstroke_units::Time;
use std::collections::VecDeque;

/// One step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// A page of metadata must be in memory.
    ReadPage(u64),
    /// A page of metadata is changed, and may be written when the cache likes.
    DirtyPage(u64),
    /// A page is no metadata any more.
    ForgetPage(u64),
    /// Pages of an object from one on are no longer wanted.
    Discard(Object, u64),
    /// Through the cache.
    Read(FileId, Access),
    /// Through the cache.
    Write(FileId, Access),
    /// What is dirty of an object goes to the device.
    SyncObject(Object),
    /// What is dirty goes to the device.
    SyncAll,
    /// A page of metadata goes to the device, if it is dirty.
    InPlace(u64),
    /// The file system says what makes a file durable.
    Durable(Object),
    /// The file system says what makes everything durable.
    Commit,
    /// A page that was held back until this transaction may be written.
    Release(u64, u64),
    /// The log is free for others.
    LeaveLog,
    /// What is cached of a run is on the device; with `drop` it is cached no more.
    PassCache { run: Run, drop: bool },
    /// Bytes of an object go past the cache.
    Direct {
        object: Object,
        offset: u64,
        bytes: u64,
        write: bool,
    },
    /// What was read of a run meanwhile may be old.
    Invalidate(Run),
    /// A request to the device; whether it must be on the medium.
    Issue(Operation, Extent, bool),
    /// All requests of this thread have ended.
    Settle,
    /// Whoever has this open is told that its write-back has failed, if nobody told him yet.
    Tell(Fd),
    /// What the cache wants, now that it is known where it lies.
    Transfer(Io, bool),
}

/// Whose work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A process, by its number here.
    Process(u32),
    /// A guest, whose disk is a file.
    Guest(Guest),
    /// The cache, which wants pages read or written.
    Cache,
    /// The journal.
    Journal,
}

/// A request of a guest's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guest {
    pub request: Request,
    /// When it came.
    pub submitted: Time,
}

/// What it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Nothing.
    No,
    /// The cache.
    Cache,
    /// Its requests.
    Device,
    /// The log.
    Log,
}

/// Somebody who carries out steps one after another.
#[derive(Debug)]
pub(crate) struct Thread {
    pub owner: Owner,
    pub tasks: VecDeque<Task>,
    pub waits: Waits,
    /// Requests under way.
    pub outstanding: u32,
    /// What its work is charged to.
    pub kind: CallKind,
    /// What the call gives, or why it failed.
    pub result: Result<u64, CallError>,
    /// Bytes that are copied between memory and the program.
    pub copied: u64,
    /// Where the pages of a transfer lie.
    pub mapped: Vec<Mapped>,
}

impl Thread {
    pub fn new(owner: Owner) -> Thread {
        Thread {
            owner,
            tasks: VecDeque::new(),
            waits: Waits::No,
            outstanding: 0,
            kind: CallKind::Write,
            result: Ok(0),
            copied: 0,
            mapped: Vec::new(),
        }
    }
}

/// All who carry out steps. The first are the processes; those that come and go for
/// the cache are used again.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    all: Vec<Thread>,
    free: Vec<u32>,
}

impl Threads {
    pub fn add(&mut self, owner: Owner) -> u32 {
        match self.free.pop() {
            Some(slot) => {
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

    /// It is over, and comes no more.
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
