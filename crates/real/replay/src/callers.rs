//! Threads that wait for their calls. Ordinary programs read and write in this way. A load
//! generator, in contrast, has any number of requests outstanding.
//!
//! A free thread takes the next request together with the schedule. No other thread looks at the
//! schedule until the request is due. Then the thread hands the schedule on, makes its call, and
//! returns after the call. If the instant of a request passes while all threads are in calls, the
//! request is issued late, and later requests may be late as well. *Pro-active storage systems*
//! (2012), section 6.7, figure 29 shows the effect on the gaps between requests.
//! Requests that are issued together ([`ReplayOptions::batch`]) share one call, which returns when
//! all are done.
//!
//! The thread that started the others counts the results, in the order of issue.

use crate::ahead::CommandsAhead;
use crate::calls::Calls;
use crate::clock::{ReplayClock, outside};
use crate::issued::{Action, IssuedCommand};
use crate::log::CompletionLog;
use crate::pace::{BATCH_MAX, LEAD, LOOK, PATIENCE, user};
use crate::piece_answer::PieceAnswer;
use crate::prepared::Commands;
use crate::report::ReplayReport;
use crate::ring::Ring;
use crate::tally::ReplayTally;
use crate::target::Target;
use crate::threads::STACK_BYTES;
use crate::{Calibration, IoMethod, Prepared, ReplayError, ReplayOptions, calibration, priority};
use fullstroke_units::{Duration, Time};
use fullstroke_workload::pace::{Dispatcher, IssueTurn, Rules, Traced};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

/// Replays by `threads` threads.
pub(crate) fn replay(
    options: &ReplayOptions,
    threads: u32,
    target: &Target,
    stop: &AtomicBool,
) -> Result<ReplayReport, ReplayError> {
    assert!(threads > 0, "a thread takes the requests");
    assert!(
        options.rules.pace.follows_times(),
        "threads that wait keep a trace's times or nothing"
    );
    let calls = Calls::new(&target.file)?;
    let (calibration, scheduling) = calibrated(&calls, target)?;
    let prepared = Prepared::read(options, target, calibration.issue_gap)?;
    let mut report =
        ReplayReport::begin(options, target, &prepared, IoMethod::Threads, calibration);
    report.conditions = vec![access(options, threads), scheduling];
    let rules = rules(options, calibration.issue_gap);
    std::thread::scope(|scope| {
        let mut schedule = Schedule {
            ahead: Some(CommandsAhead::start(
                scope,
                Commands::open(options, target)?,
            )?),
            next: None,
            dispatcher: Dispatcher::new(rules),
            clock: ReplayClock::beginning_in(LEAD),
            error: None,
            late: 0,
            together: 0,
        };
        schedule.offer()?;
        let log = options
            .log
            .as_deref()
            .map(|path| CompletionLog::start(scope, path))
            .transpose()?;
        let shared = Arc::new(CallerState {
            calls,
            spin: outside(calibration.spin),
            in_batches: rules.batch > Duration::ZERO,
            stop: AtomicBool::new(false),
            schedule: Mutex::new(schedule),
        });
        let mut accounts = Accounts {
            options,
            target,
            dispatcher: Dispatcher::new(rules).counting(),
            early: BTreeMap::new(),
            next: 1,
            outstanding: BTreeSet::new(),
            tally: ReplayTally::new(),
            log,
            errors: 0,
            failure: None,
        };
        let played = play(&shared, threads, &mut accounts, stop);
        let (ahead, error) = shared.finish();
        played?;
        if let Some(error) = error {
            return Err(error);
        }
        accounts.finish(&mut report)?;
        let waits = ahead.map_or(0, |ahead| ahead.waits);
        let notes = shared
            .schedule()
            .notes(threads, &report, rules.batch, waits);
        report.notes.extend(notes);
        Ok(())
    })?;
    report.interrupted = report.requests < prepared.requests;
    report.verdict = report.judge(options);
    Ok(report)
}

/// Returns the rules of the replay. A batch is as long as the time between two issues.
fn rules(options: &ReplayOptions, issue_gap: Duration) -> Rules {
    let batch = if options.batch {
        issue_gap
    } else {
        Duration::ZERO
    };
    Rules {
        batch,
        ..options.rules
    }
}

fn access(options: &ReplayOptions, threads: u32) -> String {
    let who = if threads == 1 {
        "one thread, which completes a call before it takes the next request".to_owned()
    } else {
        format!(
            "{threads} threads, each of which completes a call before it takes the next request"
        )
    };
    let how = if options.batch {
        "pread, pwrite; a ring for what goes together"
    } else {
        "pread, pwrite"
    };
    format!("{who} ({how}); {}", options.way())
}

/// Measures calls and clock in a thread of the same priority as the replay's threads.
fn calibrated(calls: &Calls, target: &Target) -> Result<(Calibration, String), ReplayError> {
    let measure = || {
        let scheduling = priority::raise();
        let read = || calls.carry_out(Action::Read, 0, target.alignment_bytes);
        calibration::of_calls(read).map(|calibration| (calibration, scheduling))
    };
    let measured = std::thread::scope(|scope| scope.spawn(measure).join());
    measured
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        .map_err(|error| ReplayError::Target {
            device: target.name.clone(),
            reason: format!("its first block cannot be read: {error}"),
        })
}

/// State shared by all threads. The state lives as long as a thread is in the kernel.
struct CallerState {
    calls: Calls,
    /// Time before an instant in which a thread does not sleep.
    spin: std::time::Duration,
    in_batches: bool,
    stop: AtomicBool,
    schedule: Mutex<Schedule>,
}

/// The next request and its time.
struct Schedule {
    /// Source of commands; `None` when no thread may take more.
    ahead: Option<CommandsAhead>,
    /// Command offered to the dispatcher.
    next: Option<IssuedCommand>,
    dispatcher: Dispatcher,
    clock: ReplayClock,
    error: Option<ReplayError>,
    /// Number of requests whose instant had passed when a thread became free.
    late: u64,
    /// Number of requests issued in one call with an earlier request.
    together: u64,
}

/// A request issued to the kernel.
#[derive(Clone, Copy, Debug)]
struct Issued {
    number: u64,
    command: IssuedCommand,
    /// Scheduled time of issue.
    due: Time,
    at: Time,
}

/// A request whose call has returned.
#[derive(Clone, Copy, Debug)]
struct Finished {
    issued: Issued,
    at: Time,
    /// Error number; 0 for none.
    error: i32,
}

impl Schedule {
    /// Reads the next command and offers it to the dispatcher.
    fn offer(&mut self) -> Result<(), ReplayError> {
        self.next = match &mut self.ahead {
            Some(ahead) => ahead.next()?,
            None => None,
        };
        if let Some(IssuedCommand { record, .. }) = self.next {
            let traced = Traced {
                arrival: record.arrival,
                completed: record.completed,
            };
            let offered = self.dispatcher.offer(self.clock.now(), traced);
            assert!(
                offered.is_ok(),
                "a pace that heeds times needs no completions"
            );
        }
        Ok(())
    }

    /// Returns the time when the next request is due.
    fn due(&self) -> Option<Time> {
        match self.dispatcher.turn() {
            IssueTurn::At(due) => Some(due),
            IssueTurn::Nothing | IssueTurn::Waits => None,
        }
    }

    fn notes(
        &self,
        threads: u32,
        report: &ReplayReport,
        batch: Duration,
        waits: u64,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        if self.late > 0 {
            let share = 100.0 * self.late as f64 / report.requests.max(1) as f64;
            let who = if threads == 1 {
                "the thread was"
            } else {
                "all threads were"
            };
            notes.push(format!(
                "the instant of {} requests ({share:.1} %) had passed before they were taken: {who} still in calls, or \
                 woke too late",
                self.late
            ));
        }
        if self.together > 0 {
            notes.push(format!(
                "{} requests went in one call with an earlier one, which they followed within {:.1} us (as long as a \
                 read of the first block takes)",
                self.together,
                batch.as_nanos() as f64 / 1e3
            ));
        }
        if waits > 0 {
            notes.push(format!("the trace was not read in time {waits} times"));
        }
        notes
    }
}

impl CallerState {
    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops all threads. Returns the reader of the trace, which the caller thereby ends, and the
    /// first error.
    fn finish(&self) -> (Option<CommandsAhead>, Option<ReplayError>) {
        // Relaxed: the flag carries no data. The threads take the schedule by its lock.
        self.stop.store(true, Ordering::Relaxed);
        let mut schedule = self.schedule();
        (schedule.ahead.take(), schedule.error.take())
    }

    /// Runs one thread.
    fn serve(&self, ring: Option<Ring>, finished: &Sender<Finished>) {
        let (mut ring, mut group) = (ring, Vec::new());
        while let Some(clock) = self.take(&mut group) {
            match &mut ring {
                Some(ring) if group.len() > 1 => {
                    if let Err(error) = call_together(ring, clock, &group, finished) {
                        self.schedule().error = Some(error.into());
                        self.stop.store(true, Ordering::Relaxed);
                        return;
                    }
                }
                _ => group.iter().for_each(|issued| {
                    let error = self.call(&issued.command);
                    // After another request has failed, the receiver may be gone.
                    let _ = finished.send(Finished {
                        issued: *issued,
                        at: clock.now(),
                        error,
                    });
                }),
            }
        }
    }

    /// Waits until the next request is due. Takes this request and the requests that are issued
    /// together with it. Returns `None` at the end.
    fn take(&self, group: &mut Vec<Issued>) -> Option<ReplayClock> {
        group.clear();
        let mut schedule = self.schedule();
        let clock = schedule.clock;
        let due = schedule.due()?;
        let is_late = clock.until(due).is_zero();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return None;
            }
            let left = clock.until(due);
            if left.is_zero() {
                break;
            }
            if left > self.spin {
                std::thread::sleep((left - self.spin).min(LOOK));
            } else {
                std::hint::spin_loop();
            }
        }
        let at = clock.now();
        while let Some(command) = schedule.next
            && (group.is_empty() || self.in_batches && schedule.due() == Some(due))
            && group.len() < BATCH_MAX
        {
            let number = schedule.dispatcher.issued();
            group.push(Issued {
                number,
                command,
                due,
                at,
            });
            if let Err(error) = schedule.offer() {
                schedule.error = Some(error);
                self.stop.store(true, Ordering::Relaxed);
            }
        }
        schedule.late += if is_late { group.len() as u64 } else { 0 };
        schedule.together += group.len() as u64 - 1;
        Some(clock)
    }

    /// Carries out a request and waits for it. Returns the error number, or 0.
    fn call(&self, command: &IssuedCommand) -> i32 {
        let result = |(start, bytes)| {
            command.error_of(bytes, self.calls.carry_out(command.action, start, bytes))
        };
        command
            .pieces()
            .map(result)
            .find(|error| *error != 0)
            .unwrap_or(0)
    }
}

/// Issues several requests to the kernel, and waits for all.
fn call_together(
    ring: &mut Ring,
    clock: ReplayClock,
    group: &[Issued],
    finished: &Sender<Finished>,
) -> std::io::Result<()> {
    let mut left = vec![(0u32, 0i32); group.len()];
    for (slot, Issued { command, .. }) in group.iter().enumerate() {
        for (start, bytes) in command.pieces() {
            left[slot].0 += 1;
            while !ring.push(command.action, start, bytes, user(slot as u32, bytes)) {
                ring.submit()?;
            }
        }
    }
    let (mut answers, mut pieces) = (
        Vec::new(),
        left.iter().map(|(pieces, _)| pieces).sum::<u32>(),
    );
    while pieces > 0 {
        if !ring.is_submitted() {
            ring.submit()?;
        }
        ring.wait(LOOK)?;
        answers.clear();
        ring.reap(&mut answers);
        let at = clock.now();
        for answer in &answers {
            let PieceAnswer::Done { user, result } = *answer else {
                continue;
            };
            pieces -= 1;
            let slot = user as u32 as usize;
            let (left, error) = &mut left[slot];
            *left -= 1;
            // The first error of a request counts; later pieces may fail because of it.
            if *error == 0 {
                *error = group[slot].command.error_of(user >> 32, result);
            }
            if *left == 0 {
                let _ = finished.send(Finished {
                    issued: group[slot],
                    at,
                    error: *error,
                });
            }
        }
    }
    Ok(())
}

/// Starts the threads, and counts until all have ended. Returns early if a thread hangs after a
/// failure.
fn play(
    shared: &Arc<CallerState>,
    threads: u32,
    accounts: &mut Accounts<'_, '_>,
    stop: &AtomicBool,
) -> Result<(), ReplayError> {
    let (sender, finished) = channel();
    let (ready, begun) = channel();
    // The lock keeps threads from taking requests before all threads are ready.
    let mut schedule = shared.schedule();
    let begin = |_| -> std::io::Result<JoinHandle<()>> {
        let (shared, sender, ready) = (Arc::clone(shared), sender.clone(), ready.clone());
        Builder::new()
            .name("replay-call".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                priority::raise();
                let ring = shared
                    .in_batches
                    .then(|| Ring::new(shared.calls.file()))
                    .transpose();
                let (ring, is_ready) = match ring {
                    Ok(ring) => (ring, Ok(())),
                    Err(ReplayError::Ring { source }) => {
                        (None, Err(ReplayError::Together { source }))
                    }
                    Err(error) => (None, Err(error)),
                };
                let _ = ready.send(is_ready);
                // Dropped so that the starter's loop over the answers ends when all threads have
                // answered.
                drop(ready);
                shared.serve(ring, &sender);
            })
    };
    let begun_threads: std::io::Result<Vec<_>> = (0..threads).map(begin).collect();
    // The starter's own ends go, or the channels would stay open after the last thread.
    drop((sender, ready));
    let begun: Result<Vec<()>, ReplayError> = begun.iter().collect();
    let is_ready = begun_threads
        .map_err(ReplayError::from)
        .and_then(|handles| begun.map(|_| handles));
    let handles = match is_ready {
        Ok(handles) => handles,
        Err(error) => {
            shared.stop.store(true, Ordering::Relaxed);
            return Err(error);
        }
    };
    // The clock begins when all threads are ready, because starting threads takes milliseconds.
    schedule.clock = ReplayClock::beginning_in(LEAD);
    // The threads wait for this lock, and begin when it is free.
    drop(schedule);
    if accounts.listen(shared, &finished, stop) {
        for handle in handles {
            handle
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    }
    Ok(())
}

/// Results of the requests, in the order of issue.
struct Accounts<'env, 'scope> {
    options: &'env ReplayOptions,
    target: &'env Target,
    /// Dispatcher that is told of every issue and completion at its own time.
    dispatcher: Dispatcher,
    /// Finished requests that wait for an earlier request to return.
    early: BTreeMap<u64, Finished>,
    /// Number of the next request to count.
    next: u64,
    /// Completion times and numbers of counted requests that were outstanding at the last issue.
    outstanding: BTreeSet<(Time, u64)>,
    tally: ReplayTally,
    log: Option<CompletionLog<'scope>>,
    errors: u64,
    failure: Option<(Finished, Instant)>,
}

impl Accounts<'_, '_> {
    /// Counts the results. Returns true when all threads have ended.
    fn listen(
        &mut self,
        shared: &CallerState,
        finished: &Receiver<Finished>,
        stop: &AtomicBool,
    ) -> bool {
        loop {
            match finished.recv_timeout(LOOK) {
                Ok(finished) => self.add(finished),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
            }
            // Relaxed: a late look at the flag costs one interval of waiting.
            if stop.load(Ordering::Relaxed) || self.failure.is_some() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            // A thread that hangs in the kernel is left there.
            if self
                .failure
                .is_some_and(|(_, since)| since.elapsed() > outside(PATIENCE))
            {
                return false;
            }
        }
    }

    fn add(&mut self, finished: Finished) {
        if finished.error != 0 {
            self.errors += 1;
            if self.errors > self.options.tolerated_errors {
                // Of several requests that failed together, the error names the first in the trace.
                let (named, _) = self
                    .failure
                    .get_or_insert_with(|| (finished, Instant::now()));
                if finished.issued.number < named.issued.number {
                    *named = finished;
                }
            }
        }
        self.early.insert(finished.issued.number, finished);
        while let Some(finished) = self.early.remove(&self.next) {
            self.next += 1;
            self.count(finished);
        }
    }

    fn count(&mut self, Finished { issued, at, error }: Finished) {
        let Issued {
            number,
            command,
            due,
            at: issued,
        } = issued;
        while let Some(&(completed, earlier)) = self.outstanding.first()
            && completed <= issued
        {
            self.outstanding.pop_first();
            self.dispatcher
                .completed(completed, earlier, Duration::ZERO);
        }
        let traced = Traced {
            arrival: command.record.arrival,
            completed: command.record.completed,
        };
        let offered = self.dispatcher.offer(issued, traced);
        assert!(
            offered.is_ok(),
            "a pace that heeds times needs no completions"
        );
        self.dispatcher.issued();
        self.outstanding.insert((at, number));
        self.tally
            .issued(due, self.options.schedule(&command), issued);
        if error == 0 {
            self.tally
                .completed(command.action, command.bytes, at.saturating_since(issued));
            if let Some(log) = &mut self.log {
                log.add(number, &command, issued, at);
            }
        }
    }

    fn finish(mut self, report: &mut ReplayReport) -> Result<(), ReplayError> {
        // Requests that were issued after a request that hangs.
        for finished in std::mem::take(&mut self.early).into_values() {
            self.count(finished);
        }
        if let Some((Finished { issued, at, error }, _)) = self.failure {
            let Issued {
                number, command, ..
            } = issued;
            return Err(ReplayError::of_request(
                &self.target.name,
                number,
                &command,
                self.tally.issued,
                at,
                error,
            ));
        }
        report.errors = self.errors;
        report.measured(&self.tally, &self.dispatcher);
        self.log.map_or(Ok(()), CompletionLog::finish)
    }
}
