//! What can go wrong with a trace, and where.

use crate::Unselected;
use crate::fault::{Fault, Place};
use fullstroke_table::TableError;
use std::io;
use thiserror::Error;

/// Why a trace could not be read or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file could not be read.
    #[error("cannot read trace `{file}`: {source}")]
    Read {
        /// The file.
        file: String,
        /// What the system or the decompressor said.
        source: io::Error,
    },
    /// The file could not be written.
    #[error("cannot write trace `{file}`: {source}; no partial file was kept")]
    Write {
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// A compressed file ends before its data does.
    #[error(
        "trace `{file}` is truncated: its compressed data ends early; fetch or copy the file again, or read what is there with --skip-bad 1"
    )]
    Truncated {
        /// The file.
        file: String,
    },
    /// There is nothing in the file.
    #[error("trace `{file}` is empty; expected at least one request")]
    Empty {
        /// The file.
        file: String,
    },
    /// The options leave every request out.
    #[error("trace `{file}`: no request is selected by {selection}; what was read has {found}")]
    NothingSelected {
        /// The file.
        file: String,
        /// The options, as on the command line.
        selection: String,
        /// What is there, as far as it was read.
        found: Unselected,
    },
    /// No format fits.
    #[error(
        "trace `{file}` is in no known format (it begins with `{found}`); known formats: {known}; say which it is with --format"
    )]
    Unrecognised {
        /// The file.
        file: String,
        /// Its first bytes, printable.
        found: String,
        /// The names of all formats.
        known: String,
    },
    /// Several formats fit equally well.
    #[error("trace `{file}` could be in more than one format; say {candidates}")]
    Ambiguous {
        /// The file.
        file: String,
        /// Joined for reading: `--format a or --format b`.
        candidates: String,
    },
    /// There is no such format.
    #[error("there is no trace format `{name}`{nearest}; known formats: {known}")]
    UnknownFormat {
        /// What was asked for.
        name: String,
        /// ` (did you mean ...?)`, or nothing.
        nearest: String,
        /// The names of all formats.
        known: String,
    },
    /// A row cannot be understood.
    #[error(
        "trace `{file}`, {place}: found {found}; expected {expected}; mend or remove it, or tolerate such rows with --skip-bad"
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where.
        place: Place,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// The file cannot be read beyond this place.
    #[error("trace `{file}`, {place}: found {found}; expected {expected}")]
    Broken {
        /// The file.
        file: String,
        /// Where.
        place: Place,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// More damaged rows than were to be tolerated.
    #[error("more than {tolerated} damaged rows; the last one: {last}")]
    TooManyDamaged {
        /// How many were allowed.
        tolerated: u64,
        /// The one that was too many.
        last: Box<TraceError>,
    },
    /// A request reaches beyond the volume.
    #[error(
        "trace `{file}`, {place}: {operation} of sectors {start} to {end} (end excluded) reaches beyond the volume of {capacity} sectors; choose a larger volume, or --beyond wrap or --beyond scale"
    )]
    BeyondVolume {
        /// The file.
        file: String,
        /// Where.
        place: Place,
        /// read, write or discard.
        operation: &'static str,
        /// First sector.
        start: u64,
        /// First sector behind it.
        end: u64,
        /// Sectors of the volume.
        capacity: u64,
    },
    /// The trace has no addresses, and they are needed.
    #[error("trace `{file}` does not tell the addresses of its requests; {remedy}")]
    WithoutAddresses {
        /// The file.
        file: String,
        /// How to get a trace that has them.
        remedy: &'static str,
    },
    /// It is fio's report of a run, not its requests.
    #[error(
        "`{file}` is a report of fio in JSON, which holds totals and percentiles but no requests: `fullstroke trace info` shows it; to have the requests, run fio with write_iolog=FILE, or with write_lat_log=FILE and log_offset=1"
    )]
    FioReport {
        /// The file.
        file: String,
    },
    /// An option contradicts itself or another.
    #[error("{0}")]
    Option(String),
    /// The native format's table.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl TraceError {
    /// `fault`, met in `file`.
    pub(crate) fn from_fault(file: &str, fault: Fault) -> TraceError {
        let file = file.to_owned();
        match fault {
            Fault::Read(source) => TraceError::from_io(file, source),
            Fault::Row(problem) => TraceError::Damaged {
                file,
                place: problem.place,
                found: problem.found,
                expected: problem.expected,
            },
            Fault::Broken(problem) => TraceError::Broken {
                file,
                place: problem.place,
                found: problem.found,
                expected: problem.expected,
            },
            Fault::Table(error) => TraceError::Table(error),
            Fault::In(other, fault) => TraceError::from_fault(&other, *fault),
        }
    }

    /// `source`, met while reading `file`. Decompressors mark data that ends
    /// early as an unexpected end.
    pub(crate) fn from_io(file: String, source: io::Error) -> TraceError {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return TraceError::Truncated { file };
        }
        TraceError::Read { file, source }
    }
}
