//! The loop: one thread that issues and reaps.

use crate::ahead::Ahead;
use crate::clock::{Clock, outside};
use crate::command::{Action, Command};
use crate::log::Log;
use crate::prepared::Commands;
use crate::report::Report;
use crate::ring::{OUTSTANDING_MAX, PIECE_BYTES, Ring};
use crate::tally::Tally;
use crate::target::Target;
use crate::{Calibration, Prepared, ReplayError, ReplayOptions, priority};
use fullstroke_contract::Slots;
use fullstroke_units::{Duration, SECTOR_BYTES, Time};
use fullstroke_workload::pace::{Dispatcher, Rules, Traced, Turn};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time;

/// Requests that are submitted together, at most: so late is the first of them.
const BATCH_MAX: usize = 256;
/// The clock begins so long after everything is ready.
const LEAD: time::Duration = time::Duration::from_millis(20);
/// A sleep without another end: the word to stop is looked for so often.
const LOOK: time::Duration = time::Duration::from_millis(100);
/// What is outstanding when a request has failed gets so long to complete.
const PATIENCE: Duration = Duration::from_secs(5);

/// Replays a trace; ends early once `stop` is true, and reports what there is. The calling thread
/// becomes and stays a real-time one, if that is permitted; those that it begins do not.
///
/// # Errors
/// What is wrong with trace or device, before anything is issued; later, what the system
/// refuses, or a request that failed.
pub fn replay(options: &ReplayOptions, stop: &AtomicBool) -> Result<Report, ReplayError> {
    let target = Target::open(&options.target, options.writes, options.buffered)?;
    let mut ring = Ring::new(&target.file)?;
    let fails = |error: io::Error| ReplayError::Target {
        device: target.name.clone(),
        reason: format!("its first block cannot be read: {error}"),
    };
    let scheduling = priority::raise();
    let calibration = Calibration::measure(&mut ring, &target).map_err(fails)?;
    let prepared = Prepared::read(options, &target, calibration.issue_gap)?;
    let mut report = Report::begin(options, &target, &prepared, calibration);
    std::thread::scope(|scope| {
        let ahead = Ahead::start(scope, Commands::open(options, &target)?)?;
        let log = options.log.as_deref().map(|path| Log::start(scope, path)).transpose()?;
        let rules = Rules {
            batch: if options.batch { calibration.issue_gap } else { options.rules.batch },
            ..options.rules
        };
        let mut player = Player {
            options,
            target: &target,
            dispatcher: Dispatcher::new(rules).counting(),
            spin: calibration.spin,
            clock: Clock::beginning_in(LEAD),
            ahead,
            next: None,
            flying: Slots::default(),
            batch: Vec::with_capacity(BATCH_MAX),
            reaped: Vec::new(),
            tally: Tally::new(),
            log,
            errors: 0,
            failure: None,
            held_back: 0,
            ring,
        };
        report.conditions = vec![player.access(), scheduling];
        player.play(stop)?;
        player.finish(&mut report)
    })?;
    report.interrupted = report.requests < prepared.requests;
    report.verdict = report.judge(options);
    Ok(report)
}

struct Player<'env, 'scope> {
    options: &'env ReplayOptions,
    target: &'env Target,
    dispatcher: Dispatcher,
    /// Closer to an instant than this, the thread does not sleep.
    spin: Duration,
    clock: Clock,
    ahead: Ahead,
    /// The command that was offered to the dispatcher.
    next: Option<Command>,
    flying: Slots<Flying>,
    /// What is submitted next: its place, and when it was to go.
    batch: Vec<(u32, Time)>,
    /// Reused for what the ring answers.
    reaped: Vec<(u64, i32)>,
    tally: Tally,
    log: Option<Log<'scope>>,
    errors: u64,
    failure: Option<Failure>,
    held_back: u64,
    ring: Ring,
}

/// A request that was issued.
#[derive(Clone, Copy, Debug)]
struct Flying {
    number: u64,
    command: Command,
    issued: Time,
    /// Pieces that have not completed.
    pieces: u32,
    /// The first error of a piece.
    error: i32,
}

/// A request that failed beyond what is tolerated.
#[derive(Debug)]
struct Failure {
    flying: Flying,
    at: Time,
}

impl Player<'_, '_> {
    /// How the device is reached.
    fn access(&self) -> String {
        let memory = match self.ring.is_registered() {
            true => "buffers are registered",
            false => {
                "buffers are not registered (the limit on locked memory, `ulimit -l`, is below 4096): each request \
                 maps its own"
            }
        };
        let cache = match self.options.buffered {
            true => "through the page cache: response times are its own",
            false => "past the page cache (O_DIRECT)",
        };
        format!("io_uring, one thread; {cache}; {memory}")
    }

    fn play(&mut self, stop: &AtomicBool) -> Result<(), ReplayError> {
        self.offer(Time::ZERO)?;
        self.wait_for_beginning()?;
        loop {
            self.reap()?;
            if stop.load(Ordering::Relaxed) || self.failure.is_some() {
                return self.drain();
            }
            let now = self.clock.now();
            match self.dispatcher.turn() {
                Turn::At(_) if self.dispatcher.outstanding() >= OUTSTANDING_MAX => {
                    self.held_back += 1;
                    self.ring.wait(LOOK)?;
                }
                Turn::At(due) if due <= now => self.issue(now)?,
                Turn::At(due) => self.wait_until(now, due)?,
                Turn::Nothing if self.dispatcher.outstanding() == 0 => return Ok(()),
                Turn::Nothing | Turn::Waits => self.ring.wait(LOOK)?,
            }
        }
    }

    fn wait_for_beginning(&mut self) -> io::Result<()> {
        self.clock = Clock::beginning_in(LEAD);
        self.ring.wait(LEAD.saturating_sub(outside(self.spin)))?;
        while !self.clock.until_beginning().is_zero() {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Sleeps if there is time for that; a completion ends it.
    fn wait_until(&mut self, now: Time, due: Time) -> io::Result<()> {
        let left = due.since(now);
        if left > self.spin {
            return self.ring.wait(outside(left.saturating_sub(self.spin)).min(LOOK));
        }
        std::hint::spin_loop();
        Ok(())
    }

    /// Reads the next command.
    fn offer(&mut self, now: Time) -> Result<(), ReplayError> {
        self.next = self.ahead.next()?;
        let Some(Command { record, .. }) = self.next else { return Ok(()) };
        let traced = Traced { arrival: record.arrival, completed: record.completed };
        self.dispatcher.offer(now, traced).map_err(|source| ReplayError::Completions {
            file: self.options.trace.display().to_string(),
            source,
        })
    }

    /// Issues what may go by `now`.
    fn issue(&mut self, now: Time) -> Result<(), ReplayError> {
        self.batch.clear();
        let mut schedules = [Time::ZERO; BATCH_MAX];
        while let Turn::At(due) = self.dispatcher.turn()
            && due <= now
            && let Some(command) = self.next
            && self.batch.len() < BATCH_MAX
            && self.dispatcher.outstanding() < OUTSTANDING_MAX
        {
            schedules[self.batch.len()] = self.schedule(&command);
            let number = self.dispatcher.issued();
            let slot = self.push(number, command)?;
            self.batch.push((slot, due));
            self.offer(now)?;
        }
        let stamp = self.clock.now();
        for (&(slot, due), schedule) in self.batch.iter().zip(schedules) {
            self.flying[slot].issued = stamp;
            self.tally.issued(due, schedule, stamp);
        }
        self.submit()?;
        self.tally.submitted(self.clock.now().since(stamp));
        Ok(())
    }

    /// When a request would go by the trace's times.
    fn schedule(&self, command: &Command) -> Time {
        let Rules { pace, .. } = self.options.rules;
        let arrival = command.record.arrival;
        if pace.heeds_times() { self.options.rules.scaled(arrival) } else { arrival }
    }

    /// Gives the pieces of a command to the ring.
    fn push(&mut self, number: u64, command: Command) -> Result<u32, ReplayError> {
        let in_pieces = matches!(command.action, Action::Read | Action::Write);
        let pieces = if in_pieces { command.bytes.div_ceil(PIECE_BYTES).max(1) } else { 1 };
        let flying = Flying { number, command, issued: Time::ZERO, pieces: pieces as u32, error: 0 };
        let slot = self.flying.keep(flying);
        for piece in 0..pieces {
            let skip = piece * PIECE_BYTES;
            let bytes = if in_pieces { (command.bytes - skip).min(PIECE_BYTES) } else { command.bytes };
            // Room for all answers was made when the ring was; for questions, a submission makes it.
            while !self.ring.push(command.action, command.start + skip, bytes, user(slot, bytes)) {
                self.ring.submit()?;
            }
        }
        Ok(slot)
    }

    fn submit(&mut self) -> Result<(), ReplayError> {
        self.ring.submit()?;
        while !self.ring.is_submitted() {
            self.reap()?;
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Takes what has completed.
    fn reap(&mut self) -> Result<(), ReplayError> {
        self.reaped.clear();
        self.ring.reap(&mut self.reaped);
        if self.reaped.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        for index in 0..self.reaped.len() {
            let (user, result) = self.reaped[index];
            self.piece_completed(now, user, result);
        }
        Ok(())
    }

    fn piece_completed(&mut self, now: Time, user: u64, result: i32) {
        let slot = user as u32;
        let flying = &mut self.flying[slot];
        flying.pieces -= 1;
        let moves = matches!(flying.command.action, Action::Read | Action::Write);
        if result < 0 {
            flying.error = -result;
        } else if moves && u64::from(result as u32) < user >> 32 && flying.error == 0 {
            // Fewer bytes than asked for: the device has become smaller.
            flying.error = libc::ENODATA;
        }
        if flying.pieces == 0 {
            let flying = self.flying.take(slot);
            self.completed(now, flying);
        }
    }

    fn completed(&mut self, now: Time, flying: Flying) {
        let Flying { number, command, issued, error, .. } = flying;
        let response = now.saturating_since(issued);
        self.dispatcher.completed(now, number, response);
        if error == 0 {
            self.tally.completed(command.action, command.bytes, response);
            if let Some(log) = &mut self.log {
                log.add(number, &command, issued, now);
            }
            return;
        }
        self.errors += 1;
        if self.errors > self.options.tolerated_errors && self.failure.is_none() {
            self.failure = Some(Failure { flying, at: now });
        }
    }

    /// Waits for what is outstanding, and issues nothing more.
    fn drain(&mut self) -> Result<(), ReplayError> {
        let until = self.clock.now() + PATIENCE;
        while self.dispatcher.outstanding() > 0 && (self.failure.is_none() || self.clock.now() < until) {
            self.ring.wait(LOOK)?;
            self.reap()?;
        }
        match self.failure.take() {
            Some(failure) => Err(self.failed(&failure)),
            None => Ok(()),
        }
    }

    fn failed(&self, failure: &Failure) -> ReplayError {
        let Flying { number, command, error, .. } = failure.flying;
        let gone = match error {
            libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN | libc::ENOTCONN => "; the device is gone",
            libc::ENODATA => "; it ends before the end of the request",
            libc::ENOSPC => "; what it stands on is full",
            _ => "",
        };
        ReplayError::Failed {
            device: self.target.name.clone(),
            number,
            operation: command.action.name(),
            sector: command.start / SECTOR_BYTES,
            bytes: command.bytes,
            issued: self.tally.issued,
            seconds: failure.at.since(Time::ZERO).as_secs_f64(),
            source: io::Error::from_raw_os_error(error),
            gone,
        }
    }

    fn finish(self, report: &mut Report) -> Result<(), ReplayError> {
        let Player { tally, dispatcher, .. } = &self;
        report.requests = tally.issued;
        report.errors = self.errors;
        report.duration_s = tally.span().as_secs_f64();
        report.scheduled_s = tally.scheduled_span().as_secs_f64();
        report.issue_error_us = tally.issue_error_us();
        report.submission_us = tally.submission_us();
        report.drift_us_per_s = tally.drift_us_per_s();
        report.rate_error_share = tally.rate_error_share();
        (report.gap_error_us, report.gap_error_share) = tally.gap_error();
        report.outstanding = dispatcher.conformity().and_then(|found| found.outstanding()).map(Into::into);
        report.operations = tally.operations();
        if self.held_back > 0 {
            report.notes.push(format!("requests were held back: {OUTSTANDING_MAX} were outstanding"));
        }
        if self.ahead.waits > 0 {
            report.notes.push(format!("the trace was not read in time {} times", self.ahead.waits));
        }
        self.log.map_or(Ok(()), Log::finish)
    }
}

/// What the ring gives back with a piece: whose it is, and how many bytes it should have moved.
fn user(slot: u32, bytes: u64) -> u64 {
    bytes << 32 | u64::from(slot)
}
