//! The player of a recording.

use super::recording::{FAILED, LanePlace, RecordedCall, RecordedStep, Recording};
use crate::call::{Call, CallAnswer, CallError, CallKind, Fd};
use crate::program::{InitialFile, Program, ProgramAction, ProgramReport, ProgramTurn};
use fullstroke_contract::SourceError;
use fullstroke_files::FileError;
use fullstroke_units::{Duration, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Progress of a lane.
#[derive(Clone, Debug, Default)]
struct Lane {
    at: usize,
    /// True if the own time before the next record has passed.
    computed: bool,
    /// Progress when waiting lanes were last asked again.
    told: usize,
    /// True if an open has succeeded here, but not in the recording. The file must be closed.
    closes: bool,
    open: BTreeSet<u32>,
}

/// A recording during its playback.
pub(super) struct RecordingPlayer {
    recording: Arc<Recording>,
    think: f64,
    lanes: Vec<Lane>,
    calls: u64,
    took: Duration,
    own: Duration,
    now: Time,
    /// Calls with a failure here but not in the recording, by kind: their number and the first
    /// message.
    failed: BTreeMap<CallKind, (u64, String)>,
    /// Number of calls with a failure in the recording but not here.
    succeeded: u64,
    /// Number of calls on files without a successful open here.
    lost: u64,
}

impl RecordingPlayer {
    pub fn new(recording: Arc<Recording>, think: f64) -> RecordingPlayer {
        RecordingPlayer {
            think,
            lanes: vec![Lane::default(); recording.lanes.len()],
            recording,
            calls: 0,
            took: Duration::ZERO,
            own: Duration::ZERO,
            now: Time::ZERO,
            failed: BTreeMap::new(),
            succeeded: 0,
            lost: 0,
        }
    }

    /// Records the result of a record's call.
    fn take_answer(&mut self, lane: usize, answer: &CallAnswer) -> Result<(), SourceError> {
        let one = &mut self.lanes[lane];
        if std::mem::take(&mut one.closes) {
            // The answer belongs to the close of a file that the recording did not open. It is no
            // record.
            return Ok(());
        }
        assert!(
            one.at < self.recording.lanes[lane].records.len(),
            "lane {lane} has an answer behind its last record, number {}",
            one.at
        );
        let record = self.recording.lanes[lane].records[one.at];
        one.at += 1;
        one.computed = false;
        self.calls += 1;
        // Lanes run in parallel, so that their sums may overflow.
        self.took = self.took.saturating_add(answer.took());
        match (&answer.result, record.fails) {
            (Err(error), _) if is_the_end(error) => {
                return Err(SourceError(format!(
                    "line {}: {} did not succeed: {error}",
                    record.line,
                    answer.kind.name()
                )));
            }
            (Err(error), false) => {
                let first = || (0, format!("line {}: {error}", record.line));
                self.failed.entry(answer.kind).or_insert_with(first).0 += 1;
            }
            (Ok(_), true) => {
                self.succeeded += 1;
                // The recorded program does not know of this file, so nobody else will close it.
                one.closes = matches!(record.step, RecordedStep::Open { .. });
            }
            (Ok(_), false) => opened_or_closed(&mut one.open, record.step),
            (Err(_), true) => {}
        }
        Ok(())
    }

    /// True if another lane has reached `place`.
    fn has_come(&self, place: LanePlace) -> bool {
        debug_assert!(
            place.records as usize <= self.recording.lanes[place.lane as usize].records.len(),
            "a record waits for record {} of lane {}, which has {}",
            place.records,
            place.lane,
            self.recording.lanes[place.lane as usize].records.len()
        );
        self.lanes[place.lane as usize].at >= place.records as usize
    }

    /// Returns the own time before a record, once.
    fn own(&mut self, lane: usize, record: &RecordedCall) -> Option<Duration> {
        // The own time passes once, even if the record behind it must wait and is asked for again.
        if std::mem::replace(&mut self.lanes[lane].computed, true) || record.own == 0 {
            return None;
        }
        let own = Duration::from_nanos((record.own as f64 * self.think).round() as u64);
        self.own = self.own.saturating_add(own);
        (own > Duration::ZERO).then_some(own)
    }

    /// Waits. Other lanes may wait for the progress of this lane. A wait does not cause the caller
    /// to ask them again. A lane with new progress therefore first returns a computation of zero
    /// length.
    fn wait(&mut self, lane: usize) -> ProgramAction<'static> {
        let lane = &mut self.lanes[lane];
        if std::mem::replace(&mut lane.told, lane.at) == lane.at {
            ProgramAction::Wait
        } else {
            ProgramAction::Compute(Duration::ZERO)
        }
    }

    fn go_on(&mut self, lane: usize) {
        debug_assert!(
            self.lanes[lane].at < self.recording.lanes[lane].records.len(),
            "lane {lane} goes on behind its last record"
        );
        self.lanes[lane].at += 1;
        self.lanes[lane].computed = false;
    }
}

/// True if the run cannot continue, because no later call would be as recorded.
fn is_the_end(error: &CallError) -> bool {
    use FileError::{NoInode, NoSpace, OneFile, TooLarge};
    matches!(
        error,
        CallError::Device
            | CallError::File(NoSpace { .. } | NoInode { .. } | TooLarge { .. } | OneFile(_))
    )
}

fn opened_or_closed(open: &mut BTreeSet<u32>, step: RecordedStep) {
    match step {
        RecordedStep::Open { fd, .. } => _ = open.insert(fd),
        RecordedStep::Close { fd } => _ = open.remove(&fd),
        _ => {}
    }
}

/// Returns the necessary open descriptor of a step.
fn needs(step: RecordedStep) -> Option<u32> {
    match step {
        RecordedStep::Close { fd }
        | RecordedStep::Read { fd, .. }
        | RecordedStep::Write { fd, .. }
        | RecordedStep::Append { fd, .. }
        | RecordedStep::Fsync { fd }
        | RecordedStep::Fdatasync { fd }
        | RecordedStep::Resize { fd, .. } => Some(fd),
        _ => None,
    }
}

impl Program for RecordingPlayer {
    fn processes(&self) -> u32 {
        self.lanes.len() as u32
    }

    fn laid_out(&self) -> Vec<InitialFile> {
        self.recording.laid.clone()
    }

    fn next(&mut self, turn: ProgramTurn<'_>) -> ProgramAction<'_> {
        let lane = turn.process as usize;
        self.now = self.now.max(turn.now);
        if let Some(answer) = turn.answer
            // An answer is taken before the next move, because it decides about the close.
            && let Err(message) = self.take_answer(lane, answer)
        {
            return ProgramAction::Fail(message);
        }
        if self.lanes[lane].closes {
            return ProgramAction::Call(Call::Close { fd: Fd(FAILED) });
        }
        let recording = self.recording.clone();
        if recording.lanes[lane]
            .after
            .is_some_and(|place| !self.has_come(place))
        {
            return self.wait(lane);
        }
        while let Some(record) = recording.lanes[lane].records.get(self.lanes[lane].at) {
            if let Some(own) = self.own(lane, record) {
                // A computation lets the caller ask the waiting lanes again, so they count as told.
                self.lanes[lane].told = self.lanes[lane].at;
                return ProgramAction::Compute(own);
            }
            match record.step {
                RecordedStep::Nothing => self.go_on(lane),
                RecordedStep::After(place) if self.has_come(place) => self.go_on(lane),
                RecordedStep::After(_) => return self.wait(lane),
                step if needs(step).is_some_and(|fd| !self.lanes[lane].open.contains(&fd)) => {
                    // The close of a file that was never opened here is no lost call.
                    self.lost += u64::from(!matches!(step, RecordedStep::Close { .. }));
                    self.go_on(lane);
                }
                step => {
                    self.lanes[lane].told = self.lanes[lane].at;
                    return ProgramAction::Call(call(&self.recording.paths, step));
                }
            }
        }
        ProgramAction::End
    }

    fn report(&self) -> ProgramReport {
        let recording = &self.recording;
        let seconds = |nanos: u64| Duration::from_nanos(nanos).as_secs_f64();
        let figures = vec![
            ("recorded_s", seconds(recording.recorded)),
            ("elapsed_s", self.now.since(Time::ZERO).as_secs_f64()),
            ("recorded_calls", recording.calls as f64),
            ("calls", self.calls as f64),
            ("recorded_calls_s", seconds(recording.calls_took)),
            ("calls_s", self.took.as_secs_f64()),
            ("own_s", self.own.as_secs_f64()),
            ("recorded_processes", recording.processes as f64),
        ];
        let mut notes = recording.notes.clone();
        for (kind, (count, first)) in &self.failed {
            notes.push(format!(
                "{count} `{}` succeeded in the recording and failed here: {first}",
                kind.name()
            ));
        }
        if self.succeeded > 0 {
            notes.push(format!(
                "{} calls failed in the recording and succeeded here",
                self.succeeded
            ));
        }
        if self.lost > 0 {
            notes.push(format!(
                "{} calls on files that could not be opened here are left out",
                self.lost
            ));
        }
        ProgramReport {
            figures,
            text: String::new(),
            notes,
        }
    }
}

fn call(paths: &[Arc<str>], step: RecordedStep) -> Call<'_> {
    let text = |path: u32| &*paths[path as usize];
    match step {
        RecordedStep::Open { path, fd, flags } => Call::Open {
            path: text(path),
            fd: Fd(fd),
            how: flags.how(),
        },
        RecordedStep::Close { fd } => Call::Close { fd: Fd(fd) },
        RecordedStep::Read { fd, at, bytes } => Call::Read {
            fd: Fd(fd),
            at: Some(at),
            bytes,
        },
        RecordedStep::Write { fd, at, bytes } => Call::Write {
            fd: Fd(fd),
            at: Some(at),
            bytes,
        },
        RecordedStep::Append { fd, bytes } => Call::Write {
            fd: Fd(fd),
            at: None,
            bytes,
        },
        RecordedStep::Fsync { fd } => Call::Fsync { fd: Fd(fd) },
        RecordedStep::Fdatasync { fd } => Call::Fdatasync { fd: Fd(fd) },
        RecordedStep::Truncate { path, bytes } => Call::Truncate {
            path: text(path),
            bytes,
        },
        RecordedStep::Resize { fd, bytes } => Call::Resize { fd: Fd(fd), bytes },
        RecordedStep::MakeDirectory { path } => Call::MakeDirectory { path: text(path) },
        RecordedStep::Remove { path } => Call::Remove { path: text(path) },
        RecordedStep::Rename { from, to } => Call::Rename {
            from: text(from),
            to: text(to),
        },
        RecordedStep::Stat { path } => Call::Stat { path: text(path) },
        RecordedStep::List { path } => Call::List { path: text(path) },
        RecordedStep::Sync | RecordedStep::Nothing | RecordedStep::After(_) => Call::Sync,
    }
}
