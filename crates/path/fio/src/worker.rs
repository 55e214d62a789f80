//! One clone of a job: a state machine that issues I/O as fio's thread does.
//!
//! fio's thread runs one loop: check for the end, flush, think, wait for the rate, issue, and reap
//! if the queue is full. A [`Phase`] is a point of this loop where the thread waits.

use crate::job::{Direction, Engine, Job, ThinkAfter, Work};
use crate::offsets::Block;
use crate::pace::Pace;
use crate::places::{Ground, Places};
use crate::progress::Progress;
use crate::region::Misfit;
use crate::tally::Tally;
use crate::think::Thinking;
use fullstroke_contract::{Extent, Hints, Operation, Out, Request, RequestId, Slots, Status};
use fullstroke_units::{Duration, Random, SECTOR_BYTES, Seed, Time};
use std::sync::Arc;

/// State of a request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) worker: u32,
    /// Direction; `None` for a flush.
    direction: Option<Direction>,
    bytes: u64,
    pub(crate) submitted: Time,
}

/// Context of a worker: the output for requests, and the statistics.
pub(crate) struct Desk<'a> {
    pub(crate) out: &'a mut Out,
    pub(crate) slots: &'a mut Slots<InFlight>,
    pub(crate) tally: &'a mut Tally,
    /// Number of requests that all workers together may still issue.
    pub(crate) left: &'a mut u64,
}

/// Point where a worker waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for the end of other jobs.
    Waiting,
    /// Waits for its start time.
    Delayed(Time),
    /// Does not wait.
    Running,
    /// Waits until only this many requests are in flight.
    Reaping(u32),
    /// Waits until nothing is in flight, then continues with the given action.
    Draining(Next),
    /// Sleeps until this time.
    Asleep(Time),
    /// Waits for a flush, then continues with the given action.
    Flushing(Next),
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Run,
    Think,
    SleepUntil(Time),
    Iterate,
}

/// A worker: one clone of a job.
pub(crate) struct Worker {
    pub(crate) job: Arc<Job>,
    /// Number from 0, over all jobs.
    pub(crate) number: u32,
    seed: Seed,
    offsets: Places,
    /// Random stream for offsets, sizes and directions.
    choice: Random,
    /// Random stream for Poisson arrivals and start delays.
    timing: Random,
    pace: Pace,
    phase: Phase,
    terminated: bool,
    in_flight: u32,
    ramping: bool,
    ramp_end: Time,
    stop: Time,
    progress: Progress,
    thinking: Thinking,
    writes: u64,
    flush_due: bool,
    /// Direction chosen before the wait for the rate.
    held: Option<Direction>,
    /// Block that was trimmed and must be written next.
    trimmed: Option<Block>,
}

impl Worker {
    /// Makes worker `number` on its part of a volume, or on its files.
    ///
    /// # Errors
    /// Returns the option that does not fit the volume.
    pub(crate) fn new(
        job: &Arc<Job>,
        number: u32,
        ground: Ground,
        seed: Seed,
    ) -> Result<Worker, Misfit> {
        let seed = job.seed.map_or(seed, Seed);
        let mut choice = stream(seed, number, "choice");
        let progress = Progress::new(job, &ground.whole);
        let offsets = Places::new(
            job,
            ground,
            &mut stream(seed, number, "popular places"),
            &mut choice,
        )?;
        Ok(Worker {
            job: Arc::clone(job),
            number,
            seed,
            offsets,
            choice,
            timing: stream(seed, number, "timing"),
            pace: Pace::new(job),
            phase: Phase::Waiting,
            terminated: false,
            in_flight: 0,
            ramping: true,
            ramp_end: Time::ZERO,
            stop: Time::NEVER,
            progress,
            thinking: Thinking::new(job),
            writes: 0,
            flush_due: false,
            held: None,
            trimmed: None,
        })
    }

    /// Returns the indices of the files that the current flush covers. As in fio, these are all
    /// files at the end of an iteration, else the file whose turn it is.
    pub(crate) fn flushed_files(&mut self) -> std::ops::Range<usize> {
        if self.phase == Phase::Flushing(Next::Iterate) {
            return 0..self.offsets.files();
        }
        let file = self.offsets.turn(&mut self.choice);
        file..file + 1
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Returns the wake time; never if the worker waits for completions.
    pub(crate) fn alarm(&self) -> Time {
        match self.phase {
            Phase::Delayed(until) | Phase::Asleep(until) => until,
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
        self.phase = Phase::Delayed(now.max(delay));
    }

    /// Ends the worker because another job has ended. It issues no more I/O.
    pub(crate) fn terminate(&mut self, now: Time) {
        self.terminated = true;
        match self.phase {
            Phase::Waiting | Phase::Delayed(_) => self.phase = Phase::Ended,
            Phase::Asleep(_) => self.phase = Phase::Asleep(now),
            _ => {}
        }
    }

    /// Handles the completion of a request.
    pub(crate) fn completed(
        &mut self,
        now: Time,
        request: &InFlight,
        status: Status,
        tally: &mut Tally,
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
                self.thinking.saw(ThinkAfter::Completed);
                tally.finished(direction, request.bytes, request.submitted, now, status);
            }
            None => {
                tally.flushed(request.submitted, now);
                match self.phase {
                    Phase::Flushing(Next::Run) => self.phase = Phase::Running,
                    Phase::Flushing(next) => self.phase = Phase::Draining(next),
                    _ => self.in_flight -= 1,
                }
            }
        }
    }

    /// Runs the state machine until the worker must wait.
    pub(crate) fn advance(&mut self, now: Time, desk: &mut Desk<'_>) {
        loop {
            match self.phase {
                Phase::Waiting | Phase::Flushing(_) | Phase::Ended => return,
                Phase::Delayed(until) | Phase::Asleep(until) if now < until => return,
                Phase::Delayed(_) => self.start(now, desk),
                Phase::Asleep(_) => self.phase = Phase::Running,
                Phase::Running => self.step(now, desk),
                Phase::Reaping(floor) if self.in_flight > floor => return,
                Phase::Reaping(_) => self.think_or_run(now),
                Phase::Draining(_) if self.in_flight > 0 => return,
                Phase::Draining(next) => self.drained(now, next, desk),
            }
        }
    }

    fn start(&mut self, now: Time, desk: &mut Desk<'_>) {
        self.ramp_end = now + self.job.ramp;
        self.stop = self
            .job
            .runtime
            .map_or(Time::NEVER, |runtime| self.ramp_end + runtime);
        self.thinking.start(now);
        self.pace.restart(now);
        self.phase = Phase::Draining(Next::Iterate);
        desk.tally.begin(self.ramp_end);
    }

    /// Executes one turn of fio's loop.
    fn step(&mut self, now: Time, desk: &mut Desk<'_>) {
        self.end_ramp(now);
        if self.is_over(now) || *desk.left == 0 {
            self.phase = Phase::Draining(Next::Iterate);
            return;
        }
        if self.flush_due {
            return self.flush(now, desk, Next::Run);
        }
        let drawn = self.held.take().unwrap_or_else(|| self.draw_direction());
        match self.paced(now, drawn) {
            Ok(direction) => self.issue_next(now, direction, desk),
            Err((due, direction)) => {
                self.held = Some(direction);
                // The job must not sleep beyond the end of its run time.
                let until = due.min(self.stop.max(now));
                let offload = self.job.offload;
                self.phase = if offload {
                    Phase::Asleep(until)
                } else {
                    Phase::Draining(Next::SleepUntil(until))
                };
            }
        }
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

    fn draw_direction(&mut self) -> Direction {
        match self.job.work {
            Work::Only(direction) => direction,
            Work::Mixed if self.choice.below(100) < self.job.read_percent => Direction::Read,
            Work::Mixed => Direction::Write,
            Work::TrimThenWrite if self.trimmed.is_some() => Direction::Write,
            Work::TrimThenWrite => Direction::Trim,
        }
    }

    /// Returns the direction that may be issued now, else the earliest time and its direction. If
    /// the drawn direction of a mix is ahead of its rate, the mix takes the other direction.
    fn paced(&self, now: Time, drawn: Direction) -> Result<Direction, (Time, Direction)> {
        let due = self.pace.due(drawn);
        if due <= now {
            return Ok(drawn);
        }
        let (other, share) = match drawn {
            Direction::Read => (Direction::Write, 100 - self.job.read_percent),
            _ => (Direction::Read, self.job.read_percent),
        };
        if self.job.work != Work::Mixed || share == 0 {
            return Err((due, drawn));
        }
        let other_due = self.pace.due(other);
        match other_due {
            _ if other_due <= now => Ok(other),
            _ if other_due < due => Err((other_due, other)),
            _ => Err((due, drawn)),
        }
    }

    fn issue_next(&mut self, now: Time, direction: Direction, desk: &mut Desk<'_>) {
        let block = match (self.job.work, direction) {
            (Work::TrimThenWrite, Direction::Write) => self.trimmed.take(),
            _ => self.offsets.next(direction, &mut self.choice),
        };
        let Some(block) = block else {
            self.phase = Phase::Draining(Next::Iterate);
            return;
        };
        if direction == Direction::Trim && self.job.work == Work::TrimThenWrite {
            self.trimmed = Some(block);
        }
        self.issue(now, direction, block, desk);
        let depth = self.job.effective_depth();
        if self.in_flight >= depth {
            self.phase = Phase::Reaping(self.floor(depth));
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

    fn issue(&mut self, now: Time, direction: Direction, block: Block, desk: &mut Desk<'_>) {
        let Block { start, bytes } = block;
        assert!(
            bytes > 0 && start.is_multiple_of(SECTOR_BYTES) && bytes.is_multiple_of(SECTOR_BYTES),
            "worker {}: {bytes} bytes at {start} are no sectors",
            self.number
        );
        self.progress.issued(bytes);
        self.thinking.saw(ThinkAfter::Issued);
        self.in_flight += 1;
        if direction == Direction::Write {
            self.writes += 1;
            self.flush_due =
                self.job.flush_every > 0 && self.writes.is_multiple_of(self.job.flush_every);
        }
        self.pace.issued(direction, bytes, &mut self.timing);
        desk.tally.issued(now, self.in_flight);
        let extent = Extent::new(start / SECTOR_BYTES, bytes / SECTOR_BYTES);
        let flight = InFlight {
            worker: self.number,
            direction: Some(direction),
            bytes,
            submitted: now,
        };
        self.submit(flight, direction.operation(), extent, desk);
    }

    fn submit(&self, flight: InFlight, operation: Operation, extent: Extent, desk: &mut Desk<'_>) {
        *desk.left = desk.left.saturating_sub(1);
        let hints = Hints {
            process: self.number + 1,
            class: self.job.class,
            level: self.job.level,
            direct: self.job.direct,
            force_unit_access: self.job.durable_writes && operation == Operation::Write,
            ..Hints::default()
        };
        let id = RequestId(u64::from(desk.slots.keep(flight)));
        desk.out.issue(
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
    fn flush(&mut self, now: Time, desk: &mut Desk<'_>, next: Next) {
        self.flush_due = false;
        let queued = self.job.engine == Engine::QueuedFlush && next == Next::Run;
        if queued {
            self.in_flight += 1;
            let depth = self.job.depth;
            let full = self.in_flight >= depth;
            self.phase = if full {
                Phase::Reaping(self.floor(depth))
            } else {
                Phase::Running
            };
        } else {
            self.phase = Phase::Flushing(next);
        }
        let flight = InFlight {
            worker: self.number,
            direction: None,
            bytes: 0,
            submitted: now,
        };
        self.submit(flight, Operation::Flush, Extent::default(), desk);
    }

    /// Ends a turn of the loop, with a pause if one is due.
    fn think_or_run(&mut self, now: Time) {
        self.phase = if self.thinking.is_due(now) {
            Phase::Draining(Next::Think)
        } else {
            Phase::Running
        };
    }

    fn drained(&mut self, now: Time, next: Next, desk: &mut Desk<'_>) {
        match next {
            _ if self.terminated => self.iterate(now, desk),
            Next::Run => self.phase = Phase::Running,
            Next::SleepUntil(until) => self.phase = Phase::Asleep(until),
            Next::Think => {
                self.pace.paused(self.job.think);
                self.phase = Phase::Asleep(self.thinking.pause(now));
            }
            Next::Iterate => self.iterate(now, desk),
        }
    }

    /// Ends an iteration when nothing is in flight: flushes, begins the next iteration, or ends the
    /// job.
    fn iterate(&mut self, now: Time, desk: &mut Desk<'_>) {
        let may_issue = *desk.left > 0;
        if self.job.flush_at_end && self.writes > 0 && may_issue {
            self.writes = 0;
            return self.flush(now, desk, Next::Iterate);
        }
        let over = self.terminated || now >= self.stop || !may_issue;
        match if over {
            None
        } else {
            self.progress.begin_iteration(&self.job)
        } {
            Some(first) => {
                self.begin_iteration(first);
                self.phase = Phase::Running;
            }
            None => {
                // A job with pauses may be late because of the pauses, so its delay says nothing
                // about the volume.
                let thinks = self.job.think > Duration::ZERO;
                desk.tally.lag = self.pace.behind(now).filter(|_| !thinks);
                desk.tally.end(now);
                self.phase = Phase::Ended;
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
    }
}

fn stream(seed: Seed, number: u32, what: &str) -> Random {
    seed.stream(&format!("fio job {number} {what}"))
}
