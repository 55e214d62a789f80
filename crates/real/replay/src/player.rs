//! The loop: one thread that issues and reaps.

use crate::ahead::CommandsAhead;
use crate::clock::{ReplayClock, outside};
use crate::issued::IssuedCommand;
use crate::issuer::Issuer;
use crate::log::CompletionLog;
use crate::pace::{BATCH_MAX, LEAD, LOOK, PATIENCE, user};
use crate::piece_answer::PieceAnswer;
use crate::prepared::Commands;
use crate::report::ReplayReport;
use crate::tally::ReplayTally;
use crate::target::Target;
use crate::{Calibration, IoMethod, Prepared, ReplayError, ReplayOptions, callers, priority};
use fullstroke_contract::Slots;
use fullstroke_units::{Duration, Time};
use fullstroke_workload::pace::{Dispatcher, IssueTurn, Rules, Traced};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Replays a trace. Ends early once `stop` is true, and reports the results so far. The calling
/// thread becomes a real-time thread and stays one, if that is permitted. Further
/// threads do not.
///
/// # Errors
/// Before the first issue: an error of the trace or the device. Later: an error of the system, or a
/// request that failed.
pub fn replay(options: &ReplayOptions, stop: &AtomicBool) -> Result<ReplayReport, ReplayError> {
    let target = Target::open(&options.target, options.writes, options.buffered)?;
    target.refuse_trace(&options.trace, options.writes)?;
    if let Some(threads) = options.threads {
        return callers::replay(options, threads, &target, stop);
    }
    let mut issuer = Issuer::new(&target.file, options.io)?;
    let fails = |error: io::Error| ReplayError::Target {
        device: target.name.clone(),
        reason: format!("its first block cannot be read: {error}"),
    };
    // Raised before the calibration, so that the calibration runs at the replay's priority.
    let scheduling = priority::raise();
    let calibration = Calibration::measure(&mut issuer, &target).map_err(fails)?;
    let prepared = Prepared::read(options, &target, calibration.issue_gap)?;
    let mut report = ReplayReport::begin(options, &target, &prepared, issuer.io(), calibration);
    std::thread::scope(|scope| {
        let ahead = CommandsAhead::start(scope, Commands::open(options, &target)?)?;
        let log = options
            .log
            .as_deref()
            .map(|path| CompletionLog::start(scope, path))
            .transpose()?;
        let rules = Rules {
            batch: if options.batch {
                calibration.issue_gap
            } else {
                options.rules.batch
            },
            ..options.rules
        };
        let mut player = ReplayPlayer {
            options,
            target: &target,
            dispatcher: Dispatcher::new(rules).counting(),
            spin: calibration.spin,
            clock: ReplayClock::beginning_in(LEAD),
            ahead,
            next: None,
            flying: Slots::default(),
            batch: Vec::with_capacity(BATCH_MAX),
            reaped: Vec::new(),
            tally: ReplayTally::new(),
            log,
            failures: Failures::new(options.tolerated_errors),
            held_back: 0,
            issuer,
        };
        report.conditions = vec![player.access(calibration), scheduling];
        player.play(stop)?;
        player.finish(&mut report)
    })?;
    report.interrupted = report.requests < prepared.requests;
    report.verdict = report.judge(options);
    Ok(report)
}

struct ReplayPlayer<'env, 'scope> {
    options: &'env ReplayOptions,
    target: &'env Target,
    dispatcher: Dispatcher,
    /// Time before an instant in which the thread does not sleep.
    spin: Duration,
    clock: ReplayClock,
    ahead: CommandsAhead,
    /// Command offered to the dispatcher.
    next: Option<IssuedCommand>,
    flying: Slots<Flying>,
    /// Slots of the next submission.
    batch: Vec<u32>,
    /// Buffer for answers, reused.
    reaped: Vec<PieceAnswer>,
    tally: ReplayTally,
    log: Option<CompletionLog<'scope>>,
    failures: Failures,
    held_back: u64,
    issuer: Issuer,
}

/// An issued request.
#[derive(Clone, Copy, Debug)]
struct Flying {
    number: u64,
    command: IssuedCommand,
    /// Scheduled time of issue.
    due: Time,
    /// Time of issue by the trace's times.
    schedule: Time,
    /// Time when the kernel received the request, if it did.
    issued: Option<Time>,
    /// Number of incomplete pieces.
    pieces: u32,
    /// First error of a piece.
    error: i32,
}

/// Failed requests.
#[derive(Debug)]
struct Failures {
    tolerated: u64,
    count: u64,
    /// Of the requests beyond the tolerated number, the first in the trace.
    first: Option<FailedRequest>,
}

/// A failed request beyond the tolerated number.
#[derive(Debug)]
struct FailedRequest {
    flying: Flying,
    at: Time,
}

impl Failures {
    fn new(tolerated: u64) -> Failures {
        Failures {
            tolerated,
            count: 0,
            first: None,
        }
    }

    /// Notes a failed request.
    fn note(&mut self, flying: Flying, at: Time) {
        assert!(
            flying.error != 0,
            "request {} counts as failed, and has no error",
            flying.number
        );
        self.count += 1;
        if self.count <= self.tolerated {
            return;
        }
        // Of several requests that failed together, the error names the first in the trace.
        let named = self.first.get_or_insert(FailedRequest { flying, at });
        if flying.number < named.flying.number {
            *named = FailedRequest { flying, at };
        }
    }

    /// True if more requests have failed than are tolerated.
    fn are_too_many(&self) -> bool {
        self.first.is_some()
    }
}

impl ReplayPlayer<'_, '_> {
    /// Returns a description of the way to the device, with its cost.
    fn access(&self, calibration: Calibration) -> String {
        let cache = self.options.way();
        match &self.issuer {
            Issuer::Ring(ring) if ring.is_registered() => {
                format!("io_uring, one thread; {cache}; buffers are registered")
            }
            Issuer::Ring(_) => format!(
                "io_uring, one thread; {cache}; buffers are not registered (the limit on locked memory, \
                 `ulimit -l`, is below 4096): each request maps its own"
            ),
            Issuer::Threads { instead, .. } => {
                let why = instead
                    .as_ref()
                    .map(|why| format!(" (io_uring cannot be used here: {why})"));
                format!(
                    "{} threads with pread and pwrite{}; {cache}; a thread begins {:.1} us (median) after it is \
                     given a request, which counts as issue error; no more than {0} are outstanding",
                    self.issuer.outstanding_max(),
                    why.unwrap_or_default(),
                    calibration.hand_over.as_nanos() as f64 / 1e3
                )
            }
        }
    }

    fn play(&mut self, stop: &AtomicBool) -> Result<(), ReplayError> {
        self.offer(Time::ZERO)?;
        self.wait_for_beginning()?;
        loop {
            self.reap()?;
            // Relaxed: the flag carries no data, and the loop looks at it again at once.
            if stop.load(Ordering::Relaxed) || self.failures.are_too_many() {
                return self.drain();
            }
            let now = self.clock.now();
            match self.dispatcher.turn() {
                // The next request waits for a completion. The report mentions such delays.
                IssueTurn::At(_)
                    if self.dispatcher.outstanding() >= self.issuer.outstanding_max() =>
                {
                    self.held_back += 1;
                    self.issuer.wait(LOOK)?;
                }
                IssueTurn::At(due) if due <= now => self.issue(now)?,
                IssueTurn::At(due) => self.wait_until(now, due)?,
                IssueTurn::Nothing if self.dispatcher.outstanding() == 0 => return Ok(()),
                IssueTurn::Nothing | IssueTurn::Waits => self.issuer.wait(LOOK)?,
            }
        }
    }

    fn wait_for_beginning(&mut self) -> io::Result<()> {
        self.clock = ReplayClock::beginning_in(LEAD);
        // The rest of the lead is spent spinning, as before each request, so that the first request
        // is on time.
        self.issuer.wait(LEAD.saturating_sub(outside(self.spin)))?;
        while !self.clock.until_beginning().is_zero() {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Sleeps if there is time for a sleep. A completion ends the sleep.
    fn wait_until(&mut self, now: Time, due: Time) -> io::Result<()> {
        let left = due.since(now);
        if left > self.spin {
            // A sleep ends late by up to `spin`, so it must end that much earlier.
            return self
                .issuer
                .wait(outside(left.saturating_sub(self.spin)).min(LOOK));
        }
        std::hint::spin_loop();
        Ok(())
    }

    /// Reads the next command and offers it to the dispatcher.
    fn offer(&mut self, now: Time) -> Result<(), ReplayError> {
        self.next = self.ahead.next()?;
        let Some(IssuedCommand { record, .. }) = self.next else {
            return Ok(());
        };
        let traced = Traced {
            arrival: record.arrival,
            completed: record.completed,
        };
        self.dispatcher
            .offer(now, traced)
            .map_err(|source| ReplayError::Completions {
                file: self.options.trace.display().to_string(),
                source,
            })
    }

    /// Issues the requests due at `now`.
    fn issue(&mut self, now: Time) -> Result<(), ReplayError> {
        self.batch.clear();
        while let IssueTurn::At(due) = self.dispatcher.turn()
            && due <= now
            && let Some(command) = self.next
            && self.batch.len() < BATCH_MAX
            && self.dispatcher.outstanding() < self.issuer.outstanding_max()
        {
            let slot = self.push(due, command)?;
            self.batch.push(slot);
            self.offer(now)?;
        }
        let stamp = self.clock.now();
        if self.issuer.io() == IoMethod::IoUring {
            for index in 0..self.batch.len() {
                self.begun(self.batch[index], stamp);
            }
        }
        self.submit()?;
        self.tally.submitted(self.clock.now().since(stamp));
        Ok(())
    }

    /// Records the issue of a piece. The first piece counts as the issue of the request.
    fn begun(&mut self, slot: u32, at: Time) {
        let flying = &mut self.flying[slot];
        if flying.issued.is_none() {
            flying.issued = Some(at);
            self.tally.issued(flying.due, flying.schedule, at);
        }
    }

    /// Adds the pieces of a command to the next submission.
    fn push(&mut self, due: Time, command: IssuedCommand) -> Result<u32, ReplayError> {
        let flying = Flying {
            number: self.dispatcher.issued(),
            command,
            due,
            schedule: self.options.schedule(&command),
            issued: None,
            pieces: command.pieces().count() as u32,
            error: 0,
        };
        let slot = self.flying.keep(flying);
        for (start, bytes) in command.pieces() {
            // The ring was created with room for all answers. A submission makes room for more
            // entries.
            while !self
                .issuer
                .push(command.action, start, bytes, user(slot, bytes))
            {
                self.issuer.submit()?;
            }
        }
        Ok(slot)
    }

    fn submit(&mut self) -> Result<(), ReplayError> {
        self.issuer.submit()?;
        while !self.issuer.is_submitted() {
            self.reap()?;
            self.issuer.submit()?;
        }
        Ok(())
    }

    /// Takes completed pieces.
    fn reap(&mut self) -> Result<(), ReplayError> {
        self.reaped.clear();
        self.issuer.reap(&mut self.reaped);
        if self.reaped.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        for index in 0..self.reaped.len() {
            match self.reaped[index] {
                PieceAnswer::Begun { user, at } => self.begun(user as u32, self.clock.at(at)),
                PieceAnswer::Done { user, result } => self.piece_completed(now, user, result),
            }
        }
        Ok(())
    }

    fn piece_completed(&mut self, now: Time, user: u64, result: i32) {
        let slot = user as u32;
        let flying = &mut self.flying[slot];
        assert!(
            flying.pieces > 0,
            "request {} has an answer for each piece",
            flying.number
        );
        flying.pieces -= 1;
        if flying.error == 0 {
            // The first error of a request counts.
            flying.error = flying.command.error_of(user >> 32, result);
        }
        if flying.pieces == 0 {
            let flying = self.flying.take(slot);
            self.completed(now, flying);
        }
    }

    fn completed(&mut self, now: Time, flying: Flying) {
        let Flying {
            number,
            command,
            issued,
            error,
            ..
        } = flying;
        let issued = issued.unwrap_or(now);
        let response = now.saturating_since(issued);
        self.dispatcher.completed(now, number, response);
        if error == 0 {
            self.tally
                .completed(command.action, command.bytes, response);
            if let Some(log) = &mut self.log {
                log.add(number, &command, issued, now);
            }
            return;
        }
        self.failures.note(flying, now);
    }

    /// Waits for outstanding requests, and issues nothing more.
    fn drain(&mut self) -> Result<(), ReplayError> {
        let until = self.clock.now() + PATIENCE;
        while self.dispatcher.outstanding() > 0
            && (!self.failures.are_too_many() || self.clock.now() < until)
        {
            self.issuer.wait(LOOK)?;
            self.reap()?;
        }
        match self.failures.first.take() {
            Some(failure) => Err(self.failed(&failure)),
            None => Ok(()),
        }
    }

    fn failed(&self, failure: &FailedRequest) -> ReplayError {
        let Flying {
            number,
            command,
            error,
            ..
        } = failure.flying;
        ReplayError::of_request(
            &self.target.name,
            number,
            &command,
            self.tally.issued,
            failure.at,
            error,
        )
    }

    fn finish(self, report: &mut ReplayReport) -> Result<(), ReplayError> {
        let ReplayPlayer {
            tally, dispatcher, ..
        } = &self;
        report.errors = self.failures.count;
        report.measured(tally, dispatcher);
        if self.held_back > 0 {
            report.notes.push(format!(
                "requests were held back: {} were outstanding",
                self.issuer.outstanding_max()
            ));
        }
        if self.ahead.waits > 0 {
            report.notes.push(format!(
                "the trace was not read in time {} times",
                self.ahead.waits
            ));
        }
        self.log.map_or(Ok(()), CompletionLog::finish)
    }
}
