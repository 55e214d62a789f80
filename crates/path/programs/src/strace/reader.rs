//! Reads a recording line by line and finds the process and time of each line.

use super::line::{CompletedCall, LineClock, ProcessLine, TraceEvent, ended, line};
use super::recorder::{Begin, CallRecorder, CallTreatment, ProcessId, forks};
use super::recording::Recording;
use crate::program::ProgramError;
use fullstroke_contract::{Reason, reason};
use std::borrow::Cow;

/// Half a day. A time of day further back than this belongs to the next day.
const HALF_DAY: u64 = 43_200_000_000_000;

/// Options of the reader.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordingOptions {
    /// Working directory of the program at its beginning.
    pub directory: String,
    /// Only files under this directory are carried out.
    pub under: String,
    /// Directory at which the file system was mounted in the recording.
    pub mount: String,
    pub skip_unknown_lines: bool,
}

/// Reads a whole recording.
///
/// # Errors
/// Names the unreadable line.
pub(super) fn read(text: &str, options: RecordingOptions) -> Result<Recording, ProgramError> {
    let mut reader = RecordingReader {
        recorder: CallRecorder::new(&options.directory, &options.under, &options.mount),
        days: 0,
        untimed: None,
    };
    let mut broken: Option<String> = None;
    for (index, raw) in text.lines().enumerate() {
        // A recording with more lines than 2^32 keeps the last number.
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        reader.recorder.line = number;
        let Some(whole) = mended(raw, &mut broken) else {
            continue;
        };
        match line(&whole).and_then(|line| line.map_or(Ok(()), |line| reader.line(&line))) {
            Ok(()) => {}
            Err(_) if options.skip_unknown_lines => reader.recorder.counts.unread_lines += 1,
            Err(reason) => return Err(ProgramError::Line(u64::from(number), reason.into())),
        }
    }
    Ok(reader.recorder.finish())
}

/// Joins a call that `strace: Process 8026 attached` interrupts. This happens on a terminal; the
/// rest of the call is on the next line.
fn mended<'t>(raw: &'t str, broken: &mut Option<String>) -> Option<Cow<'t, str>> {
    match raw.find("strace: Process ") {
        Some(0) => return None,
        Some(at) if raw.trim_end().ends_with(" attached") => {
            *broken = Some(raw[..at].to_owned());
            return None;
        }
        _ => {}
    }
    Some(match broken.take() {
        Some(beginning) => Cow::Owned(beginning + raw),
        None => Cow::Borrowed(raw),
    })
}

/// State of a recording while it is read.
struct RecordingReader {
    recorder: CallRecorder,
    /// Sum of the midnights so far, in nanoseconds.
    days: u64,
    /// True if the lines have no times; `None` before the first line.
    untimed: Option<bool>,
}

impl RecordingReader {
    fn line(&mut self, line: &ProcessLine<'_>) -> Result<(), Reason> {
        let untimed = line.clock == LineClock::Missing;
        if *self.untimed.get_or_insert(untimed) != untimed {
            return Err(reason!(
                "found a line {} a time; expected a recording in which all lines have times, or none",
                if untimed { "without" } else { "with" }
            ));
        }
        self.recorder.counts.untimed = untimed;
        let at = self.time(line);
        let process = self.process(line.pid, at);
        self.measured(process, at);
        let begin = Begin {
            at,
            line: self.recorder.line,
        };
        match line.event {
            TraceEvent::Call(call) => {
                self.recorder.begin(process, at);
                if forks(call.name) {
                    self.recorder
                        .begin_call(process, call.name, call.arguments, begin);
                }
                self.finish_call(process, begin, &call);
            }
            TraceEvent::Unfinished { name, arguments } => {
                self.recorder.begin(process, at);
                self.recorder.begin_call(process, name, arguments, begin);
            }
            TraceEvent::Resumed { name, rest } => self.resumed(process, name, rest, at)?,
            TraceEvent::Exit => self.recorder.exit(process, at),
            TraceEvent::Child(pid) => self.recorder.child_ended(process, pid),
            TraceEvent::Nothing => {}
        }
        Ok(())
    }

    /// Returns the time of a line. A time of day continues after midnight.
    fn time(&mut self, line: &ProcessLine<'_>) -> u64 {
        let recorder = &mut self.recorder;
        let of_day = matches!(line.clock, LineClock::Day | LineClock::DaySeconds);
        let mut at = line.at.saturating_add(self.days);
        if line.clock == LineClock::LineBefore {
            at = recorder.last_at.saturating_add(line.at);
            recorder.counts.relative_times = true;
        }
        recorder.counts.whole_seconds |= line.clock == LineClock::DaySeconds;
        if of_day && at.saturating_add(HALF_DAY) < recorder.last_at {
            self.days += 2 * HALF_DAY;
            at += 2 * HALF_DAY;
        }
        recorder.first_at.get_or_insert(at);
        recorder.last_at = recorder.last_at.max(at);
        at
    }

    /// Returns the process of a line. A line without a pid belongs to the only process, or to the
    /// only process from before strace began to write pids.
    fn process(&mut self, pid: Option<u32>, at: u64) -> ProcessId {
        let recorder = &mut self.recorder;
        let Some(pid) = pid else {
            // The only living process comes first: strace drops the pid when one process is left.
            let found = recorder.alone().or(recorder.unnamed);
            return found.unwrap_or_else(|| recorder.born(None, None, at));
        };
        if let Some(&process) = recorder.by_pid.get(&pid) {
            return process;
        }
        let parent = recorder.expecting();
        // The first pid of a recording belongs to the process that had no pid so far.
        if let (Some(process), None) = (recorder.unnamed, parent) {
            recorder.unnamed = None;
            recorder.processes[process].pid = Some(pid);
            recorder.by_pid.insert(pid, process);
            return process;
        }
        recorder.born(parent, Some(pid), at)
    }

    /// Ends the latest call of `process`, if the recording has no durations: the call lasted until this
    /// line of the process at the latest.
    fn measured(&mut self, process: ProcessId, at: u64) {
        let recorder = &mut self.recorder;
        let one = &mut recorder.processes[process];
        let Some(begin) = one.unmeasured.take() else {
            return;
        };
        one.last_end = at.max(one.last_end);
        recorder.calls_took = recorder.calls_took.saturating_add(at.saturating_sub(begin));
    }

    fn resumed(
        &mut self,
        process: ProcessId,
        name: &str,
        rest: &str,
        at: u64,
    ) -> Result<(), Reason> {
        // A recording may begin within a call.
        let Some(pending) = self.recorder.pending(process) else {
            return Ok(());
        };
        if pending.name != name {
            let reason = reason!(
                "found the end of `{name}`; expected the end of `{}`, which had begun",
                pending.name
            );
            self.recorder.forget_call(process);
            // A later line may continue with another call, so the begun call is given up.
            return Err(reason);
        }
        let (begin, whole) = (pending.begin, format!("{}{rest}", pending.arguments));
        match ended(name, &whole) {
            Ok(call) => {
                // The line tells the end of the call where the recording has no durations.
                let took = call.took.or(Some(at.saturating_sub(begin.at)));
                self.finish_call(process, begin, &CompletedCall { took, ..call });
            }
            Err(reason) => {
                self.recorder.forget_call(process);
                return Err(reason);
            }
        }
        Ok(())
    }

    fn finish_call(&mut self, process: ProcessId, begin: Begin, call: &CompletedCall<'_>) {
        let outcome = if forks(call.name) {
            self.recorder.forked(process, call)
        } else {
            self.recorder.carry_out(process, begin, call)
        };
        // Settled before the counts, because the next line may begin another call of the process.
        self.recorder.forget_call(process);
        let interrupted = call
            .error
            .is_some_and(|error| error.starts_with("ERESTART") || error == "EINTR");
        let recorder = &mut self.recorder;
        if outcome == CallTreatment::Skipped {
            *recorder
                .counts
                .skipped
                .entry(skipped_name(call, interrupted))
                .or_default() += 1;
        }
        let took = call.took.unwrap_or(0);
        recorder.counts.unmeasured += u64::from(call.took.is_none());
        // Only calls that the model repeats are compared with the model's times.
        if outcome == CallTreatment::Played {
            recorder.calls += 1;
            recorder.calls_took = recorder.calls_took.saturating_add(took);
        }
        let one = &mut recorder.processes[process];
        // The time until the next line belongs to a call that the model repeats. Of other calls this time
        // is the process's own.
        one.unmeasured =
            (call.took.is_none() && outcome == CallTreatment::Played).then_some(begin.at);
        // A call may end after the next line's time if its process was stopped in between.
        one.last_end = begin.at.saturating_add(took).max(one.last_end);
        if matches!(outcome, CallTreatment::Noted | CallTreatment::Skipped) {
            one.own = one.own.saturating_add(took);
            one.interrupted = if interrupted { took } else { 0 };
        }
    }
}

/// Returns the name in notes: `ioctl`, or `read` (EAGAIN).
fn skipped_name(call: &CompletedCall<'_>, interrupted: bool) -> String {
    match call.error.filter(|_| !interrupted) {
        Some(error) => format!("`{}` ({error})", call.name),
        None => format!("`{}`", call.name),
    }
}
