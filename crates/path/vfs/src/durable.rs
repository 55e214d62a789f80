//! fsync, sync and the journal: the necessary writes and their order.

use crate::kernel::VfsKernel;
use crate::log::TransactionState;
use crate::task::{Task, ThreadOwner, WaitReason};
use fullstroke_contract::{Extent, Object, Operation};
use fullstroke_files::{InodeChange, LogWrite};
use fullstroke_memory::OperationAnswer;
use fullstroke_units::Time;

impl VfsKernel {
    /// Makes a file or everything durable. The plan of the file system becomes steps of the thread.
    /// Only one thread at a time writes to the log. Other threads wait, and then find most of the
    /// work done. With a journal, a file is durable as soon as the transaction with its last change
    /// is in the log (`ext4_fsync_journal`, `xfs_log_force_seq`).
    pub fn make_durable(
        &mut self,
        now: Time,
        thread: u32,
        object: Option<(Object, InodeChange)>,
    ) -> OperationAnswer {
        let journals = self.fs.holds_metadata();
        if journals && let Some((object, kind)) = object {
            self.make_logged(thread, object, kind);
            return OperationAnswer::Done;
        }
        if journals && self.log.is_busy() {
            return self.wait_for_log(thread, Task::Commit);
        }
        self.answers.plan.clear();
        let caller = self.caller(now, thread);
        match object {
            None => self.fs.commit(now, &mut self.answers.plan),
            Some((object, _)) => {
                let planned = self.fs.fsync(
                    caller,
                    object,
                    &mut self.answers.plan,
                    &mut self.answers.touches,
                );
                if let Err(error) = planned {
                    self.threads[thread].result = Err(error.into());
                }
            }
        }
        self.carry_out_plan(thread, object.is_some());
        OperationAnswer::Done
    }

    /// Puts the steps of the plan before the other steps of a thread.
    fn carry_out_plan(&mut self, thread: u32, is_fsync: bool) {
        // The remaining steps assume that the plan is done.
        let rest = std::mem::take(&mut self.threads[thread].tasks);
        self.follow_touches(thread);
        self.follow_plan(thread, is_fsync);
        self.threads[thread].tasks.extend(rest);
    }

    /// Writes the open log buffer, with all pushed transactions (`xlog_force_and_check_iclog`).
    fn write_pushed(&mut self, thread: u32) {
        self.answers.plan.clear();
        self.fs.write_pushed(&mut self.answers.plan);
        self.carry_out_plan(thread, false);
    }

    /// Makes a thread wait for the free log, and then carry out `again`.
    fn wait_for_log(&mut self, thread: u32, again: Task) -> OperationAnswer {
        let waiting = &mut self.threads[thread];
        waiting.tasks.push_front(again);
        waiting.waits = WaitReason::Log;
        self.log.wait(thread);
        OperationAnswer::Waits
    }

    /// Adds the steps that bring the last change of a file into the log. The data of the file is on
    /// the device, possibly in its volatile cache: if no later log write flushes the device, the
    /// thread does (`needs_barrier` in `ext4_fsync_journal`).
    fn make_logged(&mut self, thread: u32, object: Object, kind: InodeChange) {
        let transaction = self.fs.last_change(object, kind);
        let others = self.fs.flushes_after_others();
        let (waits, flush) = match self.log.state(transaction) {
            TransactionState::Running | TransactionState::Pushed => (true, false),
            TransactionState::Committing => (true, others),
            TransactionState::Recording => (true, true),
            TransactionState::Committed => (false, true),
        };
        // Steps are pushed to the front, the last one first: the wait for the log precedes the
        // flush.
        if flush {
            self.flush_next(thread);
        }
        let tasks = &mut self.threads[thread].tasks;
        if let Some(transaction) = transaction.filter(|_| waits) {
            tasks.push_front(Task::Logged {
                transaction,
                flush: others && !flush,
            });
        }
    }

    /// Puts a flush of the device before the other steps of a thread.
    fn flush_next(&mut self, thread: u32) {
        if self.settings.barrier {
            let tasks = &mut self.threads[thread].tasks;
            tasks.push_front(Task::Settle);
            tasks.push_front(Task::Issue(Operation::Flush, Extent::default(), false));
        }
    }

    /// Waits until a transaction is in the log. The first thread that finds the log free writes the
    /// transaction. In XFS a thread first pushes the running transaction into the open log buffer.
    /// While another buffer is on its way, the open one collects further transactions
    /// (`xlog_force_lsn`).
    pub fn wait_for_transaction(
        &mut self,
        now: Time,
        thread: u32,
        transaction: u64,
        flush: bool,
    ) -> OperationAnswer {
        match self.log.state(Some(transaction)) {
            TransactionState::Committed => {
                if flush {
                    self.flush_next(thread);
                }
                OperationAnswer::Done
            }
            TransactionState::Running if self.fs.pushes() => {
                if self.fs.push() {
                    self.log.close_before(self.fs.transaction());
                }
                let again = Task::Logged { transaction, flush };
                self.threads[thread].tasks.push_front(again);
                OperationAnswer::Done
            }
            TransactionState::Running if !self.log.is_busy() => {
                self.make_durable(now, thread, None)
            }
            TransactionState::Pushed if !self.log.is_busy() => {
                self.write_pushed(thread);
                OperationAnswer::Done
            }
            _ => self.wait_for_log(thread, Task::Logged { transaction, flush }),
        }
    }

    /// Turns the plan into steps.
    fn follow_plan(&mut self, thread: u32, is_fsync: bool) {
        let plan = std::mem::take(&mut self.answers.plan);
        let running = self.fs.transaction();
        if !plan.released.is_empty() || !plan.log.is_empty() {
            self.log.enter(thread, running);
            self.accounts.close_transaction(self.threads[thread].kind);
        }
        let steps = &mut self.threads[thread].tasks;
        // Data reach their place before the log names them (`journal_submit_data_buffers` of
        // `fs/jbd2/commit.c`, mode `data=ordered`).
        steps.extend(plan.data.iter().map(|&object| Task::SyncObject(object)));
        steps.extend(plan.in_place.iter().map(|&page| Task::InPlace(page)));
        if self.fs.copies_pages() && self.log.is_written_by(thread) {
            self.log.copy(&plan.released);
            steps.push_back(Task::Copy);
        }
        for write in &plan.log {
            self.write_log(thread, write);
        }
        let flushed = plan.log.last().is_some_and(|last| last.barrier);
        let steps = &mut self.threads[thread].tasks;
        steps.push_back(Task::Settle);
        // A last log write with a barrier has flushed the device's cache already.
        if is_fsync && self.settings.barrier && !flushed {
            steps.extend([
                Task::Issue(Operation::Flush, Extent::default(), false),
                Task::Settle,
            ]);
        }
        if self.log.is_written_by(thread) {
            steps.push_back(Task::LeaveLog);
            // Metadata goes to its place only after the log is complete. A crash then finds the old
            // page or the whole transaction.
        }
        steps.extend(
            plan.released
                .iter()
                .map(|&page| Task::Release(page, running - 1)),
        );
        self.answers.plan = plan;
    }

    fn write_log(&mut self, thread: u32, write: &LogWrite) {
        self.accounts.write_log();
        let steps = &mut self.threads[thread].tasks;
        let extent = Extent {
            start: write.start,
            sectors: write.sectors,
        };
        if !write.barrier {
            if write.flush_before && self.settings.barrier {
                steps.extend([
                    Task::Issue(Operation::Flush, Extent::default(), false),
                    Task::Settle,
                ]);
            }
            steps.push_back(Task::Issue(Operation::Write, extent, false));
            return;
            // The commit record must follow all other parts of the log on the medium. Otherwise a
            // crash could leave a valid commit record for an incomplete transaction.
        }
        steps.extend([Task::Settle, Task::Record]);
        if self.settings.barrier {
            steps.extend([Task::FlushBeforeRecord, Task::Settle]);
        }
        steps.extend([
            Task::Issue(Operation::Write, extent, self.settings.barrier),
            Task::Settle,
        ]);
    }

    /// Frees the log and wakes all waiting threads.
    pub fn leave_log(&mut self) {
        self.log.leave();
        let mut woken = std::mem::take(&mut self.answers.woken);
        woken.extend(self.log.all_waiting());
        let pushed = woken.iter().filter(|&&one| self.has_pushed(one)).count();
        // XFS wakes two groups: threads with pushed transactions (`ic_write_wait` in
        // `xlog_state_done_syncing`) and threads of the written ones (`ic_force_wait`). Either may
        // run first: under Linux 6.18 with two processors the former did in 68 of 127 cases.
        if pushed > 0 && pushed < woken.len() {
            let pushed_first = self.random.chance(0.5);
            woken.sort_by_key(|&one| self.has_pushed(one) != pushed_first);
        }
        for waiting in woken.drain(..) {
            debug_assert_eq!(
                self.threads[waiting].waits,
                WaitReason::Log,
                "thread {waiting} stands before the log, and waits for something else"
            );
            self.threads[waiting].waits = WaitReason::No;
            self.threads.make_ready(waiting);
        }
        self.answers.woken = woken;
    }

    /// True if a thread waits for a transaction in the open log buffer.
    fn has_pushed(&self, thread: u32) -> bool {
        let next = self.threads[thread].tasks.front();
        matches!(next, Some(&Task::Logged { transaction, .. })
            if self.log.state(Some(transaction)) == TransactionState::Pushed)
    }

    /// Notes that the log has copies of the pages, and that the commit record is next. Wakes all
    /// threads that wait to change these pages.
    pub fn record(&mut self) {
        self.log.record();
        self.log.end_copies();
        while let Some(waiting) = self.log.next_with_copies() {
            self.threads[waiting].waits = WaitReason::No;
            self.threads.make_ready(waiting);
        }
    }

    /// Lets a thread wait while pages that it changes are on their way into the log
    /// (`do_get_write_access` waits for `BH_Shadow`).
    pub fn wait_for_copies(&mut self, thread: u32) -> OperationAnswer {
        if self.log.wait_for_copies(thread) {
            self.threads[thread].waits = WaitReason::Log;
            return OperationAnswer::Waits;
        }
        OperationAnswer::Done
    }

    /// Returns the time of the journal's next write of its running transaction.
    pub fn next_commit(&self) -> Time {
        match self.log.may_commit() {
            true => self.fs.next_commit(),
            false => Time::NEVER,
        }
    }

    /// Begins to write the running transaction of the journal, if it is due.
    pub fn commit_if_due(&mut self, now: Time) {
        if self.next_commit() <= now {
            let thread = self.threads.add(ThreadOwner::Journal);
            self.threads[thread].tasks.push_back(Task::Commit);
            self.log.begin_thread();
            self.threads.make_ready(thread);
        }
    }
}
