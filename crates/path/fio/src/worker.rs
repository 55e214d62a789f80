//! One clone of a job: a state machine that issues I/O as fio's thread does.
//!
//! fio's thread runs one loop: check for the end, flush, think, wait for the rate, issue, and reap
//! if the queue is full. A [`WaitPoint`] is a point of this loop where the thread waits.

use crate::history::WriteHistory;
use crate::job::{Engine, FioJob, IoDirection, JobDirections, PAGE_BYTES, ThinkAfter};
use crate::offsets::OffsetBlock;
use crate::pace::DirectionTimetables;
use crate::places::{BlockPlaces, WorkerRegions};
use crate::progress::WorkerProgress;
use crate::region::Misfit;
use crate::tally::WorkerTally;
use crate::think::PauseCounter;
use fullstroke_contract::{
    Effects, Extent, Hints, Operation, Request, RequestId, RequestStatus, Slots,
};
use fullstroke_units::{Duration, Random, SECTOR_BYTES, Seed, Time};
use std::sync::Arc;

/// State of a request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) worker: u32,
    /// Direction; `None` for a flush.
    direction: Option<IoDirection>,
    bytes: u64,
    pub(crate) submitted: Time,
}

/// Context of a worker: the output for requests, and the statistics.
pub(crate) struct WorkerContext<'a> {
    pub(crate) out: &'a mut Effects,
    pub(crate) slots: &'a mut Slots<InFlight>,
    pub(crate) tally: &'a mut WorkerTally,
    /// Number of requests that all workers together may still issue.
    pub(crate) left: &'a mut u64,
}

/// Point where a worker waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitPoint {
    /// Waits for the end of other jobs.
    Waiting,
    /// Waits for its start time.
    Delayed(Time),
    /// Does not wait.
    Running,
    /// Waits until only this many requests are in flight.
    Reaping(u32),
    /// Waits until nothing is in flight, then continues with the given action.
    Draining(WorkerAction),
    /// Sleeps until this time.
    Asleep(Time),
    /// Waits for a flush, then continues with the given action.
    Flushing(WorkerAction),
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerAction {
    Run,
    Think,
    SleepUntil(Time),
    Iterate,
}

/// A worker: one clone of a job.
pub(crate) struct JobWorker {
    pub(crate) job: Arc<FioJob>,
    /// Number from 0, over all jobs.
    pub(crate) number: u32,
    seed: Seed,
    offsets: BlockPlaces,
    /// Random stream for offsets, sizes and directions.
    choice: Random,
    /// Random stream for Poisson arrivals and start delays.
    timing: Random,
    pace: DirectionTimetables,
    phase: WaitPoint,
    terminated: bool,
    in_flight: u32,
    ramping: bool,
    ramp_end: Time,
    stop: Time,
    progress: WorkerProgress,
    thinking: PauseCounter,
    history: WriteHistory,
    /// True while the writes of an iteration are read back.
    verifying: bool,
    writes: u64,
    flush_due: bool,
    /// Direction chosen before the wait for the rate.
    held: Option<IoDirection>,
    /// Block that was trimmed and must be written next.
    trimmed: Option<OffsetBlock>,
}

impl JobWorker {
    /// Makes worker `number` on its part of a volume, or on its files.
    ///
    /// # Errors
    /// Returns the option that does not fit the volume.
    pub(crate) fn new(
        job: &Arc<FioJob>,
        number: u32,
        ground: WorkerRegions,
        seed: Seed,
    ) -> Result<JobWorker, Misfit> {
        let seed = job.seed.map_or(seed, Seed);
        let mut choice = stream(seed, number, "choice");
        let progress = WorkerProgress::new(job, &ground.whole);
        let offsets = BlockPlaces::new(
            job,
            ground,
            &mut stream(seed, number, "popular places"),
            &mut choice,
        )?;
        Ok(JobWorker {
            job: Arc::clone(job),
            number,
            seed,
            offsets,
            choice,
            timing: stream(seed, number, "timing"),
            pace: DirectionTimetables::new(job),
            phase: WaitPoint::Waiting,
            terminated: false,
            in_flight: 0,
            ramping: true,
            ramp_end: Time::ZERO,
            stop: Time::NEVER,
            progress,
            thinking: PauseCounter::new(job),
            history: WriteHistory::new(job),
            verifying: false,
            writes: 0,
            flush_due: false,
            held: None,
            trimmed: None,
        })
    }

    /// Returns true if the current flush is an `fdatasync`. The flush at the end of an iteration is
    /// an `fsync`.
    pub(crate) fn flushes_data_only(&self) -> bool {
        self.job.flush_data_only && self.phase != WaitPoint::Flushing(WorkerAction::Iterate)
    }

    /// Returns the indices of the files that the current flush covers. As in fio, these are all
    /// files at the end of an iteration, else the file whose turn it is.
    pub(crate) fn flushed_files(&mut self) -> std::ops::Range<usize> {
        if self.phase == WaitPoint::Flushing(WorkerAction::Iterate) {
            return 0..self.offsets.files();
        }
        let file = self.offsets.turn(&mut self.choice);
        file..file + 1
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.phase == WaitPoint::Waiting
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.phase == WaitPoint::Ended
    }

    /// Returns the wake time; never if the worker waits for completions.
    pub(crate) fn alarm(&self) -> Time {
        match self.phase {
            WaitPoint::Delayed(until) | WaitPoint::Asleep(until) => until,
            _ => Time::NEVER,
        }
    }

    /// Ends the wait for other jobs at `now`. As in fio, `startdelay` counts from the beginning of
    /// the run.
    pub(crate) fn release(&mut self, now: Time) {
        let (low, high) = self.job.start_delay;
        let spread = (high - low).as_nanos();
        let drawn = if spread == 0 {
            0
        } else {
            self.timing.below(spread + 1)
        };
        let delay = Time::from_nanos(low.as_nanos().saturating_add(drawn));
        // fio counts the delay from the beginning of the run, so a late stage does not wait again.
        self.phase = WaitPoint::Delayed(now.max(delay));
    }

    /// Ends the worker because another job has ended. It issues no more I/O.
    pub(crate) fn terminate(&mut self, now: Time) {
        self.terminated = true;
        match self.phase {
            WaitPoint::Waiting | WaitPoint::Delayed(_) => self.phase = WaitPoint::Ended,
            WaitPoint::Asleep(_) => self.phase = WaitPoint::Asleep(now),
            _ => {}
        }
    }

    /// Handles the completion of a request.
    pub(crate) fn completed(
        &mut self,
        now: Time,
        request: &InFlight,
        status: RequestStatus,
        tally: &mut WorkerTally,
    ) {
        match request.direction {
            Some(direction) => {
                assert!(
                    self.in_flight > 0 && request.submitted <= now,
                    "worker {}: an I/O of {:?} ends at {now:?}, and {} are in flight",
                    self.number,
                    request.submitted,
                    self.in_flight
                );
                self.in_flight -= 1;
                self.history.note_completed(direction == IoDirection::Read);
                self.thinking.note_block(ThinkAfter::Completed);
                tally.finished(direction, request.bytes, request.submitted, now, status);
            }
            None => {
                tally.flushed(request.submitted, now);
                match self.phase {
                    WaitPoint::Flushing(WorkerAction::Run) => self.phase = WaitPoint::Running,
                    WaitPoint::Flushing(next) => self.phase = WaitPoint::Draining(next),
                    _ => self.in_flight -= 1,
                }
            }
        }
    }

    /// Runs the state machine until the worker must wait.
    pub(crate) fn advance(&mut self, now: Time, context: &mut WorkerContext<'_>) {
        loop {
            match self.phase {
                WaitPoint::Waiting | WaitPoint::Flushing(_) | WaitPoint::Ended => return,
                WaitPoint::Delayed(until) | WaitPoint::Asleep(until) if now < until => return,
                WaitPoint::Delayed(_) => self.start(now, context),
                WaitPoint::Asleep(_) => self.phase = WaitPoint::Running,
                WaitPoint::Running => self.step(now, context),
                WaitPoint::Reaping(floor) if self.in_flight > floor => return,
                WaitPoint::Reaping(_) => self.think_or_run(now),
                WaitPoint::Draining(_) if self.in_flight > 0 => return,
                WaitPoint::Draining(next) => self.drained(now, next, context),
            }
        }
    }

    fn start(&mut self, now: Time, context: &mut WorkerContext<'_>) {
        self.ramp_end = now + self.job.ramp;
        // `runtime` begins behind the ramp.
        self.stop = self
            .job
            .runtime
            .map_or(Time::NEVER, |runtime| self.ramp_end + runtime);
        self.thinking.start(now);
        self.pace.restart(now);
        // Nothing is in flight yet, so the drain ends at once. The first iteration thus begins as
        // every other does.
        self.phase = WaitPoint::Draining(WorkerAction::Iterate);
        context.tally.begin(self.ramp_end);
    }

    /// Executes one turn of fio's loop.
    fn step(&mut self, now: Time, context: &mut WorkerContext<'_>) {
        self.end_ramp(now);
        if self.verifying {
            return self.verify(now, context);
        }
        if self.is_over(now) || *context.left == 0 {
            self.phase = WaitPoint::Draining(WorkerAction::Iterate);
            return;
        }
        if self.flush_due {
            return self.flush(now, context, WorkerAction::Run);
        }
        if let Some(block) = self.history.take_of_backlog() {
            return self.read_back(now, block, context);
        }
        // A new draw after the wait would favour the direction whose time has come. fio's
        // `rate_ddir` (`io_u.c`) keeps its direction, too.
        let drawn = self.held.take().unwrap_or_else(|| self.draw_direction());
        match self.paced(now, drawn) {
            Ok(direction) => self.issue_next(now, direction, context),
            Err((due, direction)) => {
                self.held = Some(direction);
                // The job must not sleep beyond the end of its run time.
                let until = due.min(self.stop.max(now));
                // `rate_ddir` waits for the I/O in flight before it sleeps (`io_u_quiesce`), but
                // not with `io_submit_mode=offload`.
                let offload = self.job.offload;
                self.phase = if offload {
                    WaitPoint::Asleep(until)
                } else {
                    WaitPoint::Draining(WorkerAction::SleepUntil(until))
                };
            }
        }
    }

    /// Reads the next written block back, or ends the verification.
    fn verify(&mut self, now: Time, context: &mut WorkerContext<'_>) {
        let over = self.terminated || now >= self.stop || *context.left == 0;
        match self.history.take().filter(|_| !over) {
            Some(block) => self.read_back(now, block, context),
            None => {
                self.verifying = false;
                self.history.clear();
                self.phase = WaitPoint::Draining(WorkerAction::Iterate);
            }
        }
    }

    /// Issues a read of a written block. Such a read counts neither for the amount of the job nor
    /// for its rate (`do_verify` in fio's `backend.c`).
    fn read_back(&mut self, now: Time, block: OffsetBlock, context: &mut WorkerContext<'_>) {
        self.in_flight += 1;
        self.submit_block(now, IoDirection::Read, block, context);
        let depth = self.job.effective_depth();
        self.phase = if self.in_flight >= depth {
            WaitPoint::Reaping(self.floor(depth))
        } else {
            WaitPoint::Running
        };
    }

    /// Ends the ramp. As in fio, `number_ios` and rates count from here, but bytes do not.
    fn end_ramp(&mut self, now: Time) {
        if !self.ramping || now < self.ramp_end {
            return;
        }
        self.ramping = false;
        if self.job.ramp.as_nanos() > 0 {
            self.progress.end_ramp();
            self.pace.restart(now);
        }
    }

    /// Returns true if the iteration or the whole job is over.
    fn is_over(&self, now: Time) -> bool {
        self.terminated || now >= self.stop || self.progress.is_over(&self.job)
    }

    fn draw_direction(&mut self) -> IoDirection {
        match self.job.work {
            JobDirections::Only(direction) => direction,
            JobDirections::Mixed if self.choice.below(100) < self.job.read_percent => {
                IoDirection::Read
            }
            JobDirections::Mixed => IoDirection::Write,
            JobDirections::TrimThenWrite if self.trimmed.is_some() => IoDirection::Write,
            JobDirections::TrimThenWrite => IoDirection::Trim,
        }
    }

    /// Returns the direction that may be issued now, else the earliest time and its direction. If
    /// the drawn direction of a mix is ahead of its rate, the mix takes the other direction.
    fn paced(&self, now: Time, drawn: IoDirection) -> Result<IoDirection, (Time, IoDirection)> {
        let due = self.pace.due(drawn);
        if due <= now {
            return Ok(drawn);
        }
        let (other, share) = match drawn {
            IoDirection::Read => (IoDirection::Write, 100 - self.job.read_percent),
            _ => (IoDirection::Read, self.job.read_percent),
        };
        // A direction with a share of 0 % stays without I/O (`rwmix` in `rate_ddir`).
        if self.job.work != JobDirections::Mixed || share == 0 {
            return Err((due, drawn));
        }
        let other_due = self.pace.due(other);
        match other_due {
            _ if other_due <= now => Ok(other),
            _ if other_due < due => Err((other_due, other)),
            _ => Err((due, drawn)),
        }
    }

    fn issue_next(&mut self, now: Time, direction: IoDirection, context: &mut WorkerContext<'_>) {
        let block = match (self.job.work, direction) {
            (JobDirections::TrimThenWrite, IoDirection::Write) => self.trimmed.take(),
            _ => self.offsets.next(direction, &mut self.choice),
        };
        let Some(block) = block else {
            self.phase = WaitPoint::Draining(WorkerAction::Iterate);
            return;
        };
        if direction == IoDirection::Trim && self.job.work == JobDirections::TrimThenWrite {
            self.trimmed = Some(block);
        }
        self.issue(now, direction, block, context);
        let depth = self.job.effective_depth();
        if self.in_flight >= depth {
            self.phase = WaitPoint::Reaping(self.floor(depth));
        } else {
            self.think_or_run(now);
        }
    }

    /// Returns the number in flight at which reaping ends. A full queue is reaped `reap_least` at a
    /// time, down to `iodepth_low`.
    fn floor(&self, depth: u32) -> u32 {
        let least = self.job.reap_least.max(1);
        let low = self.job.depth_low.unwrap_or(depth).min(depth);
        let times = (depth - low).div_ceil(least).max(1);
        depth.saturating_sub(times.saturating_mul(least))
    }

    fn issue(
        &mut self,
        now: Time,
        direction: IoDirection,
        block: OffsetBlock,
        context: &mut WorkerContext<'_>,
    ) {
        let bytes = block.bytes;
        self.progress.issued(bytes);
        self.thinking.note_block(ThinkAfter::Issued);
        self.in_flight += 1;
        if direction == IoDirection::Write {
            self.writes += 1;
            self.history.add(block);
            self.flush_due =
                self.job.flush_every > 0 && self.writes.is_multiple_of(self.job.flush_every);
        }
        self.pace.issued(direction, bytes, &mut self.timing);
        self.submit_block(now, direction, block, context);
    }

    fn submit_block(
        &mut self,
        now: Time,
        direction: IoDirection,
        block: OffsetBlock,
        context: &mut WorkerContext<'_>,
    ) {
        let OffsetBlock { start, bytes } = block;
        let whole = start.is_multiple_of(SECTOR_BYTES) && bytes.is_multiple_of(SECTOR_BYTES);
        assert!(
            bytes > 0 && (whole || !self.job.direct),
            "worker {}: {bytes} bytes at {start} are no sectors",
            self.number
        );
        context.tally.issued(now, self.in_flight);
        // Buffered I/O of other sizes reaches the volume in pages.
        let unit = if whole { SECTOR_BYTES } else { PAGE_BYTES };
        let (first, end) = (start / unit * unit, (start + bytes).next_multiple_of(unit));
        let extent = Extent::new(first / SECTOR_BYTES, (end - first) / SECTOR_BYTES);
        let flight = InFlight {
            worker: self.number,
            direction: Some(direction),
            bytes,
            submitted: now,
        };
        self.submit(flight, direction.operation(), extent, context);
    }

    fn submit(
        &self,
        flight: InFlight,
        operation: Operation,
        extent: Extent,
        context: &mut WorkerContext<'_>,
    ) {
        *context.left = context.left.saturating_sub(1);
        let hints = Hints {
            process: self.number + 1,
            class: self.job.class,
            level: self.job.level,
            direct: self.job.direct,
            force_unit_access: self.job.durable_writes && operation == Operation::Write,
            ..Hints::default()
        };
        let id = RequestId(u64::from(context.slots.keep(flight)));
        context.out.issue(
            0,
            Request {
                id,
                operation,
                extent,
                hints,
                ..Request::default()
            },
        );
    }

    /// Issues a flush. A flush for which the job waits does not count as in flight.
    fn flush(&mut self, now: Time, context: &mut WorkerContext<'_>, next: WorkerAction) {
        self.flush_due = false;
        // At the end of an iteration nothing else is in flight, and the next iteration must see the
        // flush done. So every engine waits there.
        let queued = self.job.engine == Engine::QueuedFlush && next == WorkerAction::Run;
        if queued {
            self.in_flight += 1;
            let depth = self.job.depth;
            let full = self.in_flight >= depth;
            self.phase = if full {
                WaitPoint::Reaping(self.floor(depth))
            } else {
                WaitPoint::Running
            };
        } else {
            self.phase = WaitPoint::Flushing(next);
        }
        let flight = InFlight {
            worker: self.number,
            direction: None,
            bytes: 0,
            submitted: now,
        };
        self.submit(flight, Operation::Flush, Extent::default(), context);
    }

    /// Ends a turn of the loop, with a pause if one is due.
    fn think_or_run(&mut self, now: Time) {
        self.phase = if !self.verifying && self.thinking.is_due(now) {
            WaitPoint::Draining(WorkerAction::Think)
        } else {
            WaitPoint::Running
        };
    }

    fn drained(&mut self, now: Time, next: WorkerAction, context: &mut WorkerContext<'_>) {
        match next {
            _ if self.terminated => self.iterate(now, context),
            WorkerAction::Run => self.phase = WaitPoint::Running,
            WorkerAction::SleepUntil(until) => self.phase = WaitPoint::Asleep(until),
            WorkerAction::Think => {
                self.pace.paused(self.job.think);
                self.phase = WaitPoint::Asleep(self.thinking.pause(now));
            }
            WorkerAction::Iterate => self.iterate(now, context),
        }
    }

    /// Ends an iteration when nothing is in flight: flushes, begins the next iteration, or ends the
    /// job.
    fn iterate(&mut self, now: Time, context: &mut WorkerContext<'_>) {
        let may_issue = *context.left > 0;
        // The flush leads back to this function. Without the reset it would be issued again for
        // ever.
        if self.job.flush_at_end && self.writes > 0 && may_issue {
            self.writes = 0;
            return self.flush(now, context, WorkerAction::Iterate);
        }
        let over = self.terminated || now >= self.stop || !may_issue;
        if self.history.is_due_at_end() && !over {
            self.verifying = true;
            self.phase = WaitPoint::Running;
            return;
        }
        match if over {
            None
        } else {
            self.progress.begin_iteration(&self.job)
        } {
            Some(first) => {
                self.begin_iteration(first);
                self.phase = WaitPoint::Running;
            }
            None => {
                // A job with pauses may be late because of the pauses, so its delay says nothing
                // about the volume.
                let thinks = self.job.think > Duration::ZERO;
                context.tally.lag = self.pace.behind(now).filter(|_| !thinks);
                context.tally.end(now);
                self.phase = WaitPoint::Ended;
            }
        }
    }

    fn begin_iteration(&mut self, first: bool) {
        if !first {
            if self.job.repeat {
                self.choice = stream(self.seed, self.number, "choice");
            }
            self.offsets.restart(&mut self.choice);
        }
        (self.trimmed, self.held) = (None, None);
        self.history.clear();
    }
}

fn stream(seed: Seed, number: u32, what: &str) -> Random {
    seed.stream(&format!("fio job {number} {what}"))
}
