//! What programs' calls work on: names, open files, page cache, journal, and the
//! requests that are under way.

use crate::bill::Bill;
use crate::open::OpenFiles;
use crate::task::{Owner, Task, Threads, Waits};
use fullstroke_contract::{Hints, Object, Out, Slots, Status};
use fullstroke_files::{Caller, FileSystem, Mapped, SyncPlan, Touch, Touches};
use fullstroke_memory::{Answer, Cache, IoId, Out as CacheOut, PAGE_BYTES, Run, Ticket};
use fullstroke_programs::CallError;
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use std::collections::{BTreeMap, VecDeque};

/// Sectors of a page.
pub(crate) const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// What a host does by its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub barrier: bool,
    pub call_cost: Duration,
    pub copy_mb_per_s: f64,
}

impl Settings {
    /// Time of the processor for a call that copies so many bytes.
    pub fn cost(&self, copied: u64) -> Duration {
        self.call_cost + Duration::from_secs_f64(copied as f64 / (self.copy_mb_per_s * 1e6))
    }
}

/// A request under way, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flight {
    /// A piece of what the cache wants.
    Cache { io: IoId, run: Run, write: bool },
    /// A thread's own.
    Thread(u32),
}

/// What one process is to the layers below.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Identity {
    pub process: u32,
    pub workload: u16,
}

impl Identity {
    /// Hints for requests.
    pub fn hints(self) -> Hints {
        Hints { process: self.process, workload: self.workload, ..Hints::default() }
    }
}

/// Who writes to the log. One transaction at a time is written there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub busy: Option<u32>,
    pub waiting: VecDeque<u32>,
    /// The number of the running transaction.
    pub transaction: u64,
    /// Whether a thread of the journal's own is at work.
    pub committing: bool,
}

/// All of it.
pub(crate) struct Kernel {
    pub fs: Box<dyn FileSystem>,
    pub cache: Cache,
    pub capacity: Sectors,
    pub settings: Settings,
    pub files: OpenFiles,
    pub threads: Threads,
    /// Threads that go on, in order.
    pub ready: VecDeque<u32>,
    /// Processes whose calls are over.
    pub ended: VecDeque<u32>,
    /// By process.
    pub identities: Vec<Identity>,
    pub flights: Slots<Flight>,
    pub log: Log,
    pub bill: Bill,
    /// Pages of metadata that must not be written in place yet, and the transaction
    /// that they are in.
    pub held: BTreeMap<u64, u64>,
    /// Which workload has written to an object last.
    pub writers: BTreeMap<Object, u16>,
    /// The one name of a file system without names.
    pub only_name: Option<String>,
    pub todo: CacheOut,
    spare: CacheOut,
    pub touches: Touches,
    pub mapped: Vec<Mapped>,
    pub plan: SyncPlan,
}

/// Whether a thread goes on with its next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Wait,
}

impl Kernel {
    pub fn new(fs: Box<dyn FileSystem>, cache: Cache, capacity: Sectors, settings: Settings) -> Kernel {
        Kernel {
            fs,
            cache,
            capacity,
            settings,
            files: OpenFiles::default(),
            threads: Threads::default(),
            ready: VecDeque::new(),
            ended: VecDeque::new(),
            identities: Vec::new(),
            flights: Slots::default(),
            log: Log::default(),
            bill: Bill::default(),
            held: BTreeMap::new(),
            writers: BTreeMap::new(),
            only_name: None,
            todo: CacheOut::default(),
            spare: CacheOut::default(),
            touches: Touches::new(),
            mapped: Vec::new(),
            plan: SyncPlan::default(),
        }
    }

    /// One more process; its thread has its number.
    pub fn add_process(&mut self, identity: Identity) {
        let number = self.identities.len() as u32;
        self.identities.push(identity);
        let thread = self.threads.add(Owner::Process(number));
        debug_assert_eq!(thread, number, "processes come before all others");
    }

    /// Who a thread is to the file system.
    pub fn caller(&self, now: Time, thread: u32) -> Caller {
        Caller { now, process: self.identity(thread).process }
    }

    pub fn identity(&self, thread: u32) -> Identity {
        match self.threads[thread].owner {
            Owner::Process(number) => self.identities[number as usize],
            Owner::Cache | Owner::Journal => self.own(),
        }
    }

    /// What nobody asked for is no process's, and the first program's.
    pub fn own(&self) -> Identity {
        let workload = self.identities.first().map_or(0, |first| first.workload);
        Identity { process: 0, workload }
    }

    /// Hints for requests of a thread.
    pub fn hints(&self, thread: u32) -> Hints {
        self.identity(thread).hints()
    }

    /// What an operation did to metadata becomes steps of a thread.
    pub fn follow_touches(&mut self, thread: u32) {
        let holds = self.fs.holds_metadata();
        let kind = self.threads[thread].kind;
        for &touch in self.touches.list() {
            let tasks = &mut self.threads[thread].tasks;
            match touch {
                // What is held back has not left memory.
                Touch::Read(page) if self.held.contains_key(&page) => {}
                Touch::Read(page) => tasks.push_back(Task::ReadPage(page)),
                Touch::Dirty(page) | Touch::Fresh(page) => {
                    self.bill.dirty(page, kind);
                    if holds {
                        self.held.insert(page, self.log.transaction);
                    } else {
                        tasks.push_back(Task::DirtyPage(page));
                    }
                }
                Touch::Forget(page) => {
                    self.bill.forget(page);
                    self.held.remove(&page);
                    tasks.push_back(Task::ForgetPage(page));
                }
            }
        }
        self.touches.clear();
    }

    /// Everything that can go on at this instant does.
    pub fn carry_out(&mut self, now: Time, out: &mut Out) {
        loop {
            let mut todo = std::mem::replace(&mut self.todo, std::mem::take(&mut self.spare));
            for io in &todo.reads {
                self.begin_io(now, *io, false, out);
            }
            for io in &todo.writes {
                self.begin_io(now, *io, true, out);
            }
            for woken in &todo.woken {
                self.cache_answered(woken.ticket.0 as u32, woken.status);
            }
            todo.clear();
            self.spare = todo;
            let Some(thread) = self.ready.pop_front() else {
                if self.todo.reads.is_empty() && self.todo.writes.is_empty() && self.todo.woken.is_empty() {
                    return;
                }
                continue;
            };
            self.run(now, thread, out);
        }
    }

    /// The cache has done what a thread waited for.
    fn cache_answered(&mut self, thread: u32, status: Status) {
        let waiting = &mut self.threads[thread];
        debug_assert_eq!(waiting.waits, Waits::Cache);
        waiting.waits = Waits::No;
        if status != Status::Done {
            waiting.result = Err(CallError::Device);
        }
        self.ready.push_back(thread);
    }

    /// The steps of a thread, until it waits or is over.
    fn run(&mut self, now: Time, thread: u32, out: &mut Out) {
        while let Some(task) = self.threads[thread].tasks.pop_front() {
            if self.step(now, thread, task, out) == Flow::Wait {
                return;
            }
        }
        if self.threads[thread].outstanding > 0 {
            self.threads[thread].waits = Waits::Device;
            return;
        }
        match self.threads[thread].owner {
            Owner::Process(number) => self.ended.push_back(number),
            Owner::Cache => self.threads.remove(thread),
            Owner::Journal => {
                self.log.committing = false;
                self.threads.remove(thread);
            }
        }
    }

    fn step(&mut self, now: Time, thread: u32, task: Task, out: &mut Out) -> Flow {
        let ticket = Ticket(u64::from(thread));
        let page_of_device = |page| Run::new(Object::DEVICE, page, 1);
        let todo = &mut self.todo;
        let answer = match task {
            Task::ReadPage(page) => self.cache.read_run(now, page_of_device(page), ticket, todo),
            Task::DirtyPage(page) => self.cache.write_run(now, page_of_device(page), ticket, todo),
            Task::InPlace(page) => self.cache.direct(now, page_of_device(page), false, ticket, todo),
            Task::Read(file, access) => self.cache.read(now, file, access, ticket, todo),
            Task::Write(file, access) => self.cache.write(now, file, access, false, ticket, todo),
            Task::SyncObject(object) => self.cache.fsync(now, object, ticket, todo),
            Task::SyncAll => self.cache.sync(now, ticket, todo),
            Task::PassCache { run, drop } => self.cache.direct(now, run, drop, ticket, todo),
            Task::ForgetPage(page) => {
                self.cache.discard_run(now, page_of_device(page), todo);
                Answer::Done
            }
            Task::Discard(object, from) => {
                self.cache.discard(now, object, from, todo);
                Answer::Done
            }
            Task::Invalidate(run) => {
                self.cache.invalidate(run);
                Answer::Done
            }
            Task::Release(page, transaction) => {
                // What has changed again since goes with a later one.
                if self.held.get(&page).is_some_and(|&held| held <= transaction) {
                    self.held.remove(&page);
                    self.threads[thread].tasks.push_front(Task::DirtyPage(page));
                }
                Answer::Done
            }
            Task::Issue(operation, extent, force) => {
                self.issue_own(thread, operation, extent, force, out);
                Answer::Done
            }
            Task::Transfer(io, write) => {
                self.transfer(now, thread, io, write, out);
                Answer::Done
            }
            Task::Settle => return self.settle(thread),
            Task::Durable(object) => return self.make_durable(now, thread, Some(object)),
            Task::Commit => return self.make_durable(now, thread, None),
            Task::LeaveLog => {
                self.leave_log();
                Answer::Done
            }
            Task::Direct { object, offset, bytes, write } => {
                self.transfer_directly(now, thread, object, (offset, bytes), write);
                Answer::Done
            }
        };
        if answer == Answer::Done {
            return Flow::Next;
        }
        self.threads[thread].waits = Waits::Cache;
        Flow::Wait
    }

    fn settle(&mut self, thread: u32) -> Flow {
        if self.threads[thread].outstanding == 0 {
            return Flow::Next;
        }
        self.threads[thread].waits = Waits::Device;
        Flow::Wait
    }

    /// A request has ended.
    pub fn completed(&mut self, now: Time, number: u32, status: Status) {
        match self.flights.take(number) {
            Flight::Cache { io, run, write: true } => {
                self.cache.written(now, io, run, status, &mut self.todo);
            }
            Flight::Cache { io, run, write: false } => {
                self.cache.read_done(now, io, run, status, &mut self.todo);
            }
            Flight::Thread(thread) => {
                let waiting = &mut self.threads[thread];
                waiting.outstanding -= 1;
                if status != Status::Done {
                    waiting.result = Err(CallError::Device);
                }
                if waiting.outstanding == 0 && waiting.waits == Waits::Device {
                    waiting.waits = Waits::No;
                    self.ready.push_back(thread);
                }
            }
        }
    }
}
