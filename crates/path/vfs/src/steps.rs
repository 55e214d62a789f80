//! Execution of the steps of threads.

use crate::kernel::{PAGE_SECTORS, PendingPurpose, VfsKernel};
use crate::task::{Task, ThreadOwner, WaitReason};
use fullstroke_contract::{Effects, Extent, Hints, Object, Operation, RequestStatus};
use fullstroke_files::{Caller, FileSystem};
use fullstroke_memory::{IoId, OperationAnswer, PageRun, Ticket};
use fullstroke_programs::{CallError, Fd};
use fullstroke_units::Time;

impl VfsKernel {
    /// Carries out all possible steps at this time.
    pub fn carry_out(&mut self, now: Time, out: &mut Effects) {
        loop {
            // Taken, because the I/Os below may put further work on the list.
            let todo = self.todo.take();
            for io in &todo.reads {
                self.begin_io(now, *io, false, out);
            }
            for io in &todo.writes {
                self.begin_io(now, *io, true, out);
            }
            for woken in &todo.woken {
                self.cache_answered(woken.ticket.0 as u32, woken.status);
            }
            self.todo.give_back(todo);
            let Some(thread) = self.threads.next_ready() else {
                if self.todo.is_empty() {
                    return;
                }
                continue;
            };
            self.run(now, thread, out);
        }
    }

    /// Handles the answer of the cache to a waiting thread.
    fn cache_answered(&mut self, thread: u32, status: RequestStatus) {
        let waiting = &mut self.threads[thread];
        assert_eq!(
            waiting.waits,
            WaitReason::Cache,
            "the cache answers thread {thread}, which waits for something else"
        );
        waiting.waits = WaitReason::No;
        if status != RequestStatus::Done {
            waiting.result = Err(CallError::Device);
        }
        self.threads.make_ready(thread);
    }

    /// Carries out the steps of a thread until it waits or ends.
    fn run(&mut self, now: Time, thread: u32, out: &mut Effects) {
        debug_assert_eq!(
            self.threads[thread].waits,
            WaitReason::No,
            "thread {thread} goes on, and waits"
        );
        while let Some(task) = self.threads[thread].tasks.pop_front() {
            if self.step(now, thread, task, out) == OperationAnswer::Waits {
                return;
            }
        }
        // A call ends with its last request, even if none of its steps waits for that request.
        if self.threads[thread].outstanding > 0 {
            self.threads[thread].waits = WaitReason::Device;
            return;
        }
        match self.threads[thread].owner {
            ThreadOwner::Process(_) | ThreadOwner::Guest(_) => self.threads.end(thread),
            ThreadOwner::Cache => self.threads.remove(thread),
            ThreadOwner::Journal => {
                self.log.end_thread();
                self.threads.remove(thread);
            }
        }
    }

    fn step(&mut self, now: Time, thread: u32, task: Task, out: &mut Effects) -> OperationAnswer {
        let ticket = Ticket(u64::from(thread));
        let page_of_device = |page| PageRun::new(Object::DEVICE, page, 1);
        let todo = self.todo.list();
        let answer = match task {
            Task::ReadPage(_) | Task::DirtyPage(_) if self.above_pool => {
                return self.pool_step(thread, task, out);
            }
            Task::ReadPage(page) => {
                let run = unit_of(self.fs.as_ref(), page);
                self.cache.read_run(now, run, ticket, todo)
            }
            Task::DirtyPage(page) => self
                .cache
                .write_run(now, page_of_device(page), ticket, todo),
            Task::InPlace(page) => {
                self.cache
                    .direct(now, page_of_device(page), false, ticket, todo)
            }
            Task::Read(file, access) => self.cache.read(now, file, access, ticket, todo),
            Task::Write(file, access) => self.cache.write(now, file, access, false, ticket, todo),
            Task::SyncObject(object) => self.cache.fsync(now, object, ticket, todo),
            Task::SyncAll => self.cache.sync(now, ticket, todo),
            Task::PassCache { run, drop } => self.cache.direct(now, run, drop, ticket, todo),
            Task::ForgetPage(page) => {
                self.cache.discard_run(now, page_of_device(page), todo);
                OperationAnswer::Done
            }
            Task::Discard(object, from) => {
                self.cache.discard(now, object, from, todo);
                OperationAnswer::Done
            }
            Task::Invalidate(run) => {
                self.cache.invalidate(run);
                OperationAnswer::Done
            }
            Task::Written(io, run) => {
                self.cache.written(now, io, run, RequestStatus::Done, todo);
                OperationAnswer::Done
            }
            Task::Durable(..)
            | Task::Commit
            | Task::Logged { .. }
            | Task::Copy
            | Task::AwaitCopies
            | Task::Record
            | Task::Release(..)
            | Task::LeaveLog => {
                return self.log_step(now, thread, task);
            }
            _ => return self.device_step(now, thread, task, out),
        };
        if answer == OperationAnswer::Done {
            return OperationAnswer::Done;
        }
        self.threads[thread].waits = WaitReason::Cache;
        OperationAnswer::Waits
    }

    /// Carries out a step that concerns the device or the results of a thread.
    fn device_step(
        &mut self,
        now: Time,
        thread: u32,
        task: Task,
        out: &mut Effects,
    ) -> OperationAnswer {
        match task {
            Task::Issue(operation, extent, force) => {
                let hints = Hints {
                    force_unit_access: force,
                    ..self.hints(thread)
                };
                self.issue_own(thread, operation, extent, hints, out);
            }
            Task::FlushBeforeRecord => {
                let hints = Hints {
                    before_forced_write: true,
                    ..self.hints(thread)
                };
                self.issue_own(thread, Operation::Flush, Extent::default(), hints, out);
            }
            Task::FlushFile(object) => {
                let hints = Hints {
                    stream: object.0,
                    ..self.hints(thread)
                };
                self.issue_own(thread, Operation::Flush, Extent::default(), hints, out);
            }
            Task::Transfer(io, write) => {
                self.transfer(now, thread, io, write, out);
            }
            Task::Settle => return self.settle(thread),
            Task::Convert(run) => {
                self.convert(now, thread, run);
            }
            Task::Tell(fd) => {
                self.tell(thread, fd);
            }
            Task::Direct {
                object,
                offset,
                bytes,
                write,
            } => {
                self.transfer_directly(now, thread, object, (offset, bytes), write);
            }
            _ => unreachable!("{task:?} is no step of the device"),
        }
        OperationAnswer::Done
    }

    /// Carries out a step that concerns metadata above a pool. The first access to a block asks the
    /// pool, which may have the block in memory (ARC). A change goes to the pool at once, block by
    /// block, and joins the open transaction group (`dmu_buf_will_dirty`).
    fn pool_step(&mut self, thread: u32, task: Task, out: &mut Effects) -> OperationAnswer {
        let (Task::ReadPage(page) | Task::DirtyPage(page)) = task else {
            unreachable!("{task:?} concerns no metadata")
        };
        let unit = self.fs.read_unit(page);
        let is_new = self.known_metadata.insert(unit.start);
        let pages = unit.end - unit.start;
        let extent = Extent::new(unit.start * PAGE_SECTORS, pages * PAGE_SECTORS);
        let hints = self.hints(thread);
        if let Task::DirtyPage(_) = task {
            self.accounts.write_metadata(unit.start, pages);
            self.issue_own(thread, Operation::Write, extent, hints, out);
            return OperationAnswer::Done;
        }
        if !is_new {
            return OperationAnswer::Done;
        }
        self.accounts.read_metadata(self.threads[thread].kind);
        self.issue_own(thread, Operation::Read, extent, hints, out);
        self.settle(thread)
    }

    /// Carries out a step that concerns the log.
    fn log_step(&mut self, now: Time, thread: u32, task: Task) -> OperationAnswer {
        match task {
            Task::Durable(object, kind) => self.make_durable(now, thread, Some((object, kind))),
            Task::Commit => self.make_durable(now, thread, None),
            Task::Logged { transaction, flush } => {
                self.wait_for_transaction(now, thread, transaction, flush)
            }
            Task::Copy => {
                self.log.begin_copies();
                OperationAnswer::Done
            }
            Task::AwaitCopies => self.wait_for_copies(thread),
            Task::Record => {
                self.record();
                OperationAnswer::Done
            }
            Task::LeaveLog => {
                self.leave_log();
                OperationAnswer::Done
            }
            Task::Release(page, transaction) => {
                self.release(thread, page, transaction);
                OperationAnswer::Done
            }
            _ => unreachable!("{task:?} does not concern the log"),
        }
    }

    /// Allows the write of a page held back until `transaction`. If the page has changed again
    /// since, it stays held back for the later transaction.
    fn release(&mut self, thread: u32, page: u64, transaction: u64) {
        if self.log.release(page, transaction) {
            self.threads[thread].tasks.push_front(Task::DirtyPage(page));
        }
    }

    /// Reports a failed write-back once to each opener of the file: the result of the call becomes
    /// an error.
    fn tell(&mut self, process: u32, fd: Fd) {
        let Ok(file) = self.files.get(process, fd) else {
            return;
        };
        let (object, told) = (file.object, file.told);
        let (failures, _) = self.cache.failures(object);
        if told < failures && self.threads[process].result.is_ok() {
            self.threads[process].result = Err(CallError::Device);
        }
        // Each descriptor hears of a failure once (`errseq_check_and_advance`, `lib/errseq.c`).
        self.files
            .get(process, fd)
            .into_iter()
            .for_each(|file| file.told = failures);
    }

    fn settle(&mut self, thread: u32) -> OperationAnswer {
        if self.threads[thread].outstanding == 0 {
            return OperationAnswer::Done;
        }
        self.threads[thread].waits = WaitReason::Device;
        OperationAnswer::Waits
    }

    /// Handles the completion of a request.
    pub fn completed(&mut self, now: Time, number: u32, status: RequestStatus) {
        match self.flights.take(number) {
            PendingPurpose::Cache {
                io,
                run,
                write: true,
            } => {
                self.end_write(now, (io, run), status);
            }
            PendingPurpose::Cache {
                io,
                run,
                write: false,
            } => {
                self.cache.read_done(now, io, run, status, self.todo.list());
            }
            PendingPurpose::Thread(thread) => {
                let waiting = &mut self.threads[thread];
                assert!(
                    waiting.outstanding > 0,
                    "a request of thread {thread} ends, and it has none under way"
                );
                waiting.outstanding -= 1;
                if status != RequestStatus::Done {
                    waiting.result = Err(CallError::Device);
                }
                if waiting.outstanding == 0 && waiting.waits == WaitReason::Device {
                    waiting.waits = WaitReason::No;
                    self.threads.make_ready(thread);
                }
            }
        }
    }
}

impl VfsKernel {
    /// Ends a write of the cache. If the end of the write changes metadata, the pages stay under
    /// write-back until the change is made (`ext4_end_io_end`, `xfs_end_ioend`).
    fn end_write(&mut self, now: Time, (io, run): (IoId, PageRun), status: RequestStatus) {
        // A failed write leaves the extent unwritten (`xfs_end_ioend` of `fs/xfs/xfs_aops.c`).
        // Pages of the device have no extents.
        if status == RequestStatus::Done && run.object != Object::DEVICE {
            self.answers.touches.clear();
            let caller = Caller {
                now,
                process: self.hints_without_process().process,
            };
            let touches = &mut self.answers.touches;
            if self
                .fs
                .written_back(caller, run.object, run.first..run.end(), touches)
            {
                let thread = self.threads.add(ThreadOwner::Cache);
                self.follow_touches(thread);
                self.threads[thread].tasks.push_back(Task::Written(io, run));
                self.threads.make_ready(thread);
                // The page counts as written only after the steps of this thread (`Task::Written`).
                return;
            }
        }
        self.cache.written(now, io, run, status, self.todo.list());
    }

    /// Changes metadata because a thread has written a run without the cache.
    fn convert(&mut self, now: Time, thread: u32, run: PageRun) {
        let caller = self.caller(now, thread);
        let touches = &mut self.answers.touches;
        self.fs
            .written_back(caller, run.object, run.first..run.end(), touches);
        let rest = std::mem::take(&mut self.threads[thread].tasks);
        self.follow_touches(thread);
        self.threads[thread].tasks.extend(rest);
    }
}

/// Returns the pages of the device that are read together with a page of metadata.
fn unit_of(fs: &dyn FileSystem, page: u64) -> PageRun {
    let unit = fs.read_unit(page);
    PageRun::new(Object::DEVICE, unit.start, unit.end - unit.start)
}
