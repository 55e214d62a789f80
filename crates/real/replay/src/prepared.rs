//! The trace, read once before it is replayed.

use crate::command::{ReplayTreatment, treatment};
use crate::issued::IssuedCommand;
use crate::target::Target;
use crate::{ReplayError, ReplayOptions, WriteTreatment};
use fullstroke_contract::Operation;
use fullstroke_trace::{TraceError, TraceOptions, TraceReader};
use fullstroke_units::{Duration, Time};
use fullstroke_workload::pace::{NoCompletion, ReplayPace};

/// Reads the requests of a trace as commands for a target.
pub(crate) struct Commands<'a> {
    reader: TraceReader,
    options: &'a ReplayOptions,
    target: &'a Target,
    left: u64,
    seen: u64,
    pub(crate) left_out: u64,
}

impl<'a> Commands<'a> {
    pub(crate) fn open(
        options: &'a ReplayOptions,
        target: &'a Target,
    ) -> Result<Commands<'a>, ReplayError> {
        let selection = TraceOptions {
            capacity: Some(target.capacity),
            beyond: options.beyond,
            time_scale: 1.0,
            operations: selected(options, true),
            ..options.selection.clone()
        };
        let reader = TraceReader::open(&options.trace, &selection)?;
        let left = options.requests.unwrap_or(u64::MAX);
        Ok(Commands {
            reader,
            options,
            target,
            left,
            seen: 0,
            left_out: 0,
        })
    }

    /// The next command; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<IssuedCommand>, ReplayError> {
        while self.left > 0 {
            let record = match self.reader.next() {
                // If a trace has only writes and all are left out, the selection is empty.
                Err(TraceError::NothingSelected { .. })
                    if self.options.writes == WriteTreatment::Skip =>
                {
                    return Ok(None);
                }
                record => record?,
            };
            let Some(record) = record else {
                return Ok(None);
            };
            self.seen += 1;
            match treatment(record, self.options.writes, self.target) {
                ReplayTreatment::Issue(command) => {
                    self.left -= 1;
                    return Ok(Some(command));
                }
                ReplayTreatment::LeaveOut => self.left_out += 1,
                ReplayTreatment::Forbid => {
                    return Err(ReplayError::Writes {
                        file: self.reader.file().to_owned(),
                        number: self.seen,
                        operation: record.operation,
                    });
                }
            }
        }
        Ok(None)
    }
}

/// Operations omitted by [`Writes::Skip`].
const SKIPPED: [Operation; 5] = [
    Operation::Write,
    Operation::Discard,
    Operation::Flush,
    Operation::Standby,
    Operation::Start,
];

/// Returns the operations to read from the trace: the issued ones, or the omitted ones. Operations
/// omitted by [`Writes::Skip`] must not be mapped to the device. An address beyond the device is no
/// error for them.
fn selected(options: &ReplayOptions, issued: bool) -> Vec<Operation> {
    let given = &options.selection.operations;
    if options.writes != WriteTreatment::Skip {
        return given.clone();
    }
    let wanted = |operation: &Operation| given.is_empty() || given.contains(operation);
    let read = [Operation::Read];
    let among: &[Operation] = if issued && wanted(&Operation::Read) {
        &read
    } else {
        &SKIPPED
    };
    among.iter().copied().filter(wanted).collect()
}

/// Returns the number of requests omitted by [`Writes::Skip`], up to the instant `last` if given.
fn skipped(options: &ReplayOptions, last: Option<Time>) -> Result<u64, ReplayError> {
    let operations = selected(options, false);
    if options.writes != WriteTreatment::Skip || operations.is_empty() {
        return Ok(0);
    }
    let selection = TraceOptions {
        capacity: None,
        time_scale: 1.0,
        operations,
        ..options.selection.clone()
    };
    let mut reader = TraceReader::open(&options.trace, &selection)?;
    let mut count = 0;
    loop {
        match reader.next() {
            Ok(Some(record)) if last.is_none_or(|last| record.arrival <= last) => count += 1,
            Ok(_) | Err(TraceError::NothingSelected { .. }) => return Ok(count),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Facts about a trace before the replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prepared {
    /// Number of requests to issue.
    pub requests: u64,
    /// Number of requests omitted by the options.
    pub left_out: u64,
    /// Number of requests widened beyond the trace's extent, because the device's blocks are larger
    /// than the trace's sectors.
    pub widened: u64,
    /// Number of requests closer to the one before than the issue gap.
    pub below_issue_gap: u64,
    /// Time from the first arrival to the last, unscaled.
    pub span: Duration,
    /// Notes on flaws of the trace.
    pub notes: Vec<String>,
}

impl Prepared {
    /// Reads the whole trace. Any error that would stop the replay is reported here.
    pub(crate) fn read(
        options: &ReplayOptions,
        target: &Target,
        issue_gap: Duration,
    ) -> Result<Prepared, ReplayError> {
        let mut commands = Commands::open(options, target)?;
        let mut prepared = Prepared::default();
        let (mut first, mut last) = (None::<Time>, Time::ZERO);
        while let Some(command) = commands.next()? {
            prepared.requests += 1;
            if options.rules.pace == ReplayPace::Load && command.record.completed.is_none() {
                let source = NoCompletion {
                    number: commands.seen,
                    pace: ReplayPace::Load,
                };
                return Err(ReplayError::Completions {
                    file: commands.reader.file().to_owned(),
                    source,
                });
            }
            prepared.widened += u64::from(command.is_widened());
            let arrival = command.record.arrival;
            let follows = first.is_some() && arrival.since(last) < issue_gap;
            prepared.below_issue_gap += u64::from(follows);
            prepared.span = arrival.since(*first.get_or_insert(arrival));
            last = arrival;
        }
        let last = options.requests.map(|_| last);
        prepared.left_out = commands.left_out + skipped(options, last)?;
        prepared.notes = commands.reader.notes();
        if prepared.requests == 0 {
            let file = commands.reader.file().to_owned();
            return Err(ReplayError::Nothing {
                file,
                skipped: prepared.left_out,
            });
        }
        Ok(prepared)
    }
}
