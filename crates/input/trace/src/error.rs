//! Errors of traces, with their places.

use crate::Unselected;
use crate::fault::{TraceFault, TracePlace};
use fullstroke_table::TableError;
use std::io;
use thiserror::Error;

/// Error while reading or writing a trace.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file could not be read.
    #[error("cannot read trace `{file}`: {source}")]
    Read {
        /// The file.
        file: String,
        /// Error of the system or the decompressor.
        source: io::Error,
    },
    /// The file could not be written.
    #[error("cannot write trace `{file}`: {source}; no partial file was kept")]
    Write {
        /// The file.
        file: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A compressed file ends before its data is complete.
    #[error(
        "trace `{file}` is truncated: its compressed data ends early; fetch or copy the file again, or read the complete part with --skip-bad 1"
    )]
    Truncated {
        /// The file.
        file: String,
    },
    /// The file is empty.
    #[error("trace `{file}` is empty; expected at least one request")]
    Empty {
        /// The file.
        file: String,
    },
    /// The options select no request.
    #[error("trace `{file}`: {selection} selects no request; read so far: {found}")]
    NothingSelected {
        /// The file.
        file: String,
        /// The options, as on the command line.
        selection: String,
        /// Content of the trace, as far as it was read.
        found: Unselected,
    },
    /// No format matches.
    #[error(
        "trace `{file}` is in no known format (it begins with `{found}`); known formats: {known}; name the format with --format, or the columns of a table with --columns time=1:us,op=2,offset=3:bytes,size=4:bytes"
    )]
    Unrecognised {
        /// The file.
        file: String,
        /// First bytes of the file, in printable form.
        found: String,
        /// Names of all formats.
        known: String,
    },
    /// The file is the output of a tool, and no trace.
    #[error("`{file}` is the output of {tool}, which has no requests: {remedy}")]
    OtherOutput {
        /// The file.
        file: String,
        /// Name of the tool.
        tool: &'static str,
        /// Command that reads the output.
        remedy: &'static str,
    },
    /// The file is in a form that has to be converted first.
    #[error("`{file}` is {form}, and no trace in a known format: {remedy}")]
    OtherForm {
        /// The file.
        file: String,
        /// Name of the form.
        form: &'static str,
        /// Command that converts the file.
        remedy: &'static str,
    },
    /// The text is almost in a format, but its first rows have a damage.
    #[error(
        "trace `{file}` is in no known format; it is nearest to {format}, but {place}: found {found}; expected {expected}; for a table of another form, name the columns, as in --columns time=1:us,op=2,offset=3:bytes,size=4:bytes"
    )]
    Nearly {
        /// The file.
        file: String,
        /// Name of the nearest format.
        format: &'static str,
        /// Place of the damage.
        place: TracePlace,
        /// Text found.
        found: String,
        /// Text expected.
        expected: String,
    },
    /// Several formats match equally well.
    #[error("trace `{file}` could be in more than one format; use {candidates}")]
    Ambiguous {
        /// The file.
        file: String,
        /// Names of the formats as text: `--format a or --format b`.
        candidates: String,
    },
    /// The named format does not exist.
    #[error("there is no trace format `{name}`{nearest}; known formats: {known}")]
    UnknownFormat {
        /// Requested name.
        name: String,
        /// ` (did you mean ...?)`, or empty.
        nearest: String,
        /// Names of all formats.
        known: String,
    },
    /// A row cannot be parsed.
    #[error(
        "trace `{file}`, {place}: found {found}; expected {expected}; mend or remove it, or tolerate such rows with --skip-bad"
    )]
    Damaged {
        /// The file.
        file: String,
        /// Place of the row.
        place: TracePlace,
        /// Text found.
        found: String,
        /// Text expected.
        expected: String,
    },
    /// The file cannot be read beyond this place.
    #[error("trace `{file}`, {place}: found {found}; expected {expected}")]
    Broken {
        /// The file.
        file: String,
        /// Place of the damage.
        place: TracePlace,
        /// Text found.
        found: String,
        /// Text expected.
        expected: String,
    },
    /// The trace has more damaged rows than the options tolerate.
    #[error("more than {tolerated} damaged rows; the last one: {last}")]
    TooManyDamaged {
        /// Number of damaged rows tolerated by the options.
        tolerated: u64,
        /// Error of the first row above this number.
        last: Box<TraceError>,
    },
    /// A request reaches beyond the volume.
    #[error(
        "trace `{file}`, {place}: {operation} of sectors {start} to {end} (end excluded) reaches beyond the volume of {capacity} sectors; choose a larger volume, or --beyond wrap or --beyond scale"
    )]
    BeyondVolume {
        /// The file.
        file: String,
        /// Place of the request.
        place: TracePlace,
        /// read, write or discard.
        operation: &'static str,
        /// First sector.
        start: u64,
        /// First sector behind the request.
        end: u64,
        /// Capacity of the volume in sectors.
        capacity: u64,
    },
    /// The devices of the trace do not fit into the volume side by side.
    #[error(
        "trace `{file}` has several devices, which need {total} sectors side by side, but the volume has {capacity}: {devices}; choose one with --device, choose a larger volume, or --beyond scale"
    )]
    DevicesBeyond {
        /// The file.
        file: String,
        /// Devices with their places.
        devices: String,
        /// Sectors of all devices.
        total: u64,
        /// Capacity of the volume in sectors.
        capacity: u64,
    },
    /// The trace has no addresses, but they are needed.
    #[error("trace `{file}` has no addresses of requests; {remedy}")]
    WithoutAddresses {
        /// The file.
        file: String,
        /// Way to obtain a trace with addresses.
        remedy: &'static str,
    },
    /// The file is fio's report of a run, which contains no requests.
    #[error(
        "`{file}` is a report of fio in JSON, which has totals and percentiles but no requests: `fullstroke trace info` shows it; for the requests, run fio with write_iolog=FILE, or with write_lat_log=FILE and log_offset=1"
    )]
    FioReport {
        /// The file.
        file: String,
    },
    /// An option contradicts itself or another.
    #[error("{0}")]
    Option(String),
    /// Error in a table of the native format.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl TraceError {
    /// Makes an error from a `fault` in `file`.
    pub(crate) fn from_fault(file: &str, fault: TraceFault) -> TraceError {
        let file = file.to_owned();
        match fault {
            TraceFault::Read(source) => TraceError::from_io(file, source),
            TraceFault::Row(problem) => TraceError::Damaged {
                file,
                place: problem.place,
                found: problem.found,
                expected: problem.expected,
            },
            TraceFault::Broken(problem) => TraceError::Broken {
                file,
                place: problem.place,
                found: problem.found,
                expected: problem.expected,
            },
            TraceFault::Table(error) => TraceError::Table(error),
            TraceFault::In(other, fault) => TraceError::from_fault(&other, *fault),
        }
    }

    /// Makes an error from a read error in `file`. Decompressors report data that ends early as an
    /// unexpected end.
    pub(crate) fn from_io(file: String, source: io::Error) -> TraceError {
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return TraceError::Truncated { file };
        }
        TraceError::Read { file, source }
    }
}
