//! Errors of a validation.

use fullstroke_contract::ConfigError;
use fullstroke_disksim::ImportError;
use fullstroke_stack::StackError;
use fullstroke_table::TableError;
use fullstroke_trace::TraceError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a drive could not be compared with a measurement.
#[derive(Debug, Error)]
pub enum ValidateError {
    /// The trace cannot be read or understood.
    #[error(transparent)]
    Trace(TraceError),
    /// The drive's description cannot be used.
    #[error(transparent)]
    Drive(#[from] StackError),
    /// A parameter file of DiskSim cannot be read.
    #[error(transparent)]
    Import(Box<ImportError>),
    /// The drive's description is invalid.
    #[error("{drive}: {source}")]
    Model {
        /// The drive.
        drive: String,
        /// The invalid key.
        source: ConfigError,
    },
    /// A folder or file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A folder without traces.
    #[error(
        "`{}` holds no validation trace that a drive is known for; expected files named <drive>.trace (or .trace.gz, \
         .zst, .xz) with the drive's description beside them or in the library{notes}", folder.display()
    )]
    NoTraces {
        /// The folder.
        folder: PathBuf,
        /// Files of the folder, with the reasons why each was left out; empty if there were none.
        notes: String,
    },
    /// No drive is known for the trace.
    #[error(
        "no drive is known for trace `{trace}`: there is no {beside}, and no drive of the library has `{name}` in its \
         name; say which it is with --drive NAME or --drive FILE"
    )]
    NoDrive {
        /// The trace.
        trace: String,
        /// Names of the expected files.
        beside: String,
        /// The trace's own name.
        name: String,
    },
    /// The drive's model cannot be read with other rules.
    #[error(
        "trace `{trace}`: no .parv or .diskspecs file stands beside it; rules are for reading these"
    )]
    NoParameters {
        /// The trace.
        trace: String,
    },
    /// More than one drive could belong to the trace.
    #[error(
        "trace `{trace}` could belong to more than one drive of the library; say --drive {candidates}"
    )]
    AmbiguousDrive {
        /// The trace.
        trace: String,
        /// Candidates, joined for reading: `a or --drive b`.
        candidates: String,
    },
    /// A request does not fit the drive.
    #[error(
        "trace `{file}`, {place}: sectors {start} to {end} (end excluded) reach beyond the drive `{drive}` of \
         {capacity} sectors; choose the drive that was measured with --drive"
    )]
    BeyondDrive {
        /// Path of the trace.
        file: String,
        /// Line of the request.
        place: String,
        /// First sector.
        start: u64,
        /// First sector behind the request.
        end: u64,
        /// Name of the drive.
        drive: String,
        /// Capacity of the drive in sectors.
        capacity: u64,
    },
    /// The clock ends before the trace.
    #[error(
        "trace `{file}`: only {completed} of {requests} requests fit on the clock; its think times add up to more \
         than 584 years: check the last column, which counts microseconds"
    )]
    ClockEnded {
        /// The trace.
        file: String,
        /// Number of finished requests.
        completed: u64,
        /// Number of requests of the trace.
        requests: usize,
    },
    /// The log says too little about the disk to fit a model.
    #[error("log `{file}` cannot tell what its disk is like: {reason}")]
    CannotTell {
        /// The log.
        file: String,
        /// The reason, and the expected content.
        reason: String,
    },
    /// The log could not be written.
    #[error(transparent)]
    Log(#[from] TableError),
}

impl ValidateError {
    /// Converts `error`, which a trace for `drive` caused while it was read. The messages of other
    /// commands offer `--skip-bad` and `--beyond`. Here these are not offered, because a
    /// measurement with holes measures something else.
    pub(crate) fn from_trace(error: TraceError, drive: &str) -> ValidateError {
        match error {
            TraceError::Damaged {
                file,
                place,
                found,
                expected,
            } => ValidateError::Trace(TraceError::Broken {
                file,
                place,
                found,
                expected,
            }),
            TraceError::BeyondVolume {
                file,
                place,
                start,
                end,
                capacity,
                ..
            } => ValidateError::BeyondDrive {
                file,
                place: place.to_string(),
                start,
                end,
                drive: drive.to_owned(),
                capacity,
            },
            other => ValidateError::Trace(other),
        }
    }
}
