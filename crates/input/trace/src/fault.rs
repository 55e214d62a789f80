//! Faults that stop the reading of rows, with their places.

use crate::fields::Mismatch;
use fullstroke_table::TableError;
use std::fmt;
use std::io;

/// A place in a trace, in the unit of its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePlace {
    /// A line and, if known, a column; both count from 1.
    Line {
        /// Line number, from 1.
        line: u64,
        /// Byte within the line, from 1; 0 means the whole line.
        column: usize,
    },
    /// Offset of a byte in the decompressed file, from 0.
    Byte(u64),
    /// Row of a table, from 0.
    Row(u64),
}

impl fmt::Display for TracePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TracePlace::Line { line, column: 0 } => write!(f, "line {line}"),
            TracePlace::Line { line, column } => write!(f, "line {line}, column {column}"),
            TracePlace::Byte(offset) => write!(f, "byte {offset}"),
            TracePlace::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// A problem at one place of a trace.
#[derive(Debug)]
pub struct Problem {
    /// Place of the problem.
    pub place: TracePlace,
    /// Text found.
    pub found: String,
    /// Text expected.
    pub expected: String,
}

/// Reason why the reading of rows stopped.
#[derive(Debug)]
pub enum TraceFault {
    /// Error of the system or the decompressor.
    Read(io::Error),
    /// One row is damaged. The parser can continue behind it.
    Row(Box<Problem>),
    /// The file is damaged, and the parser cannot continue.
    Broken(Box<Problem>),
    /// Error in a table of the native format.
    Table(TableError),
    /// A fault in another file of the same trace.
    In(String, Box<TraceFault>),
}

impl TraceFault {
    /// Returns true if only one row is damaged, here or in another file of the trace, so that
    /// reading can continue.
    pub(crate) fn is_one_row(&self) -> bool {
        match self {
            TraceFault::Row(_) => true,
            TraceFault::In(_, fault) => fault.is_one_row(),
            // Packed data ends early: the reader continues and finds the end of the trace.
            TraceFault::Read(error) => error.kind() == io::ErrorKind::UnexpectedEof,
            TraceFault::Broken(_) | TraceFault::Table(_) => false,
        }
    }

    /// Makes a fault for a damaged row of a text format.
    #[cold]
    pub fn in_line(line: u64, mismatch: Mismatch) -> TraceFault {
        let place = TracePlace::Line {
            line,
            column: mismatch.column + 1,
        };
        TraceFault::Row(Box::new(Problem {
            place,
            found: mismatch.found,
            expected: mismatch.expected,
        }))
    }

    /// Makes a fault for a place behind which the file cannot be read.
    #[cold]
    pub fn broken(
        place: TracePlace,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> TraceFault {
        TraceFault::Broken(Box::new(Problem {
            place,
            found: found.into(),
            expected: expected.into(),
        }))
    }

    /// Makes a fault for a damaged row of a binary format.
    #[cold]
    pub fn row(
        place: TracePlace,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> TraceFault {
        TraceFault::Row(Box::new(Problem {
            place,
            found: found.into(),
            expected: expected.into(),
        }))
    }
}

impl From<io::Error> for TraceFault {
    fn from(error: io::Error) -> TraceFault {
        TraceFault::Read(error)
    }
}
