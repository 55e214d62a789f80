//! What stopped the reading of rows, and where.

use crate::fields::Mismatch;
use fullstroke_table::TableError;
use std::fmt;
use std::io;

/// A place in a trace, counted as its format is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line and, where it is known, a column, both from 1.
    Line {
        /// From 1.
        line: u64,
        /// The byte within the line, from 1; 0 = the whole line.
        column: usize,
    },
    /// The offset of a byte in the (decompressed) file, from 0.
    Byte(u64),
    /// A row of a table, from 0.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Place::Line { line, column: 0 } => write!(f, "line {line}"),
            Place::Line { line, column } => write!(f, "line {line}, column {column}"),
            Place::Byte(offset) => write!(f, "byte {offset}"),
            Place::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// What is wrong at one place of a trace.
#[derive(Debug)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What stands there.
    pub found: String,
    /// What should.
    pub expected: String,
}

/// Why reading rows stopped.
#[derive(Debug)]
pub enum Fault {
    /// The system or the decompressor failed.
    Read(io::Error),
    /// One row is damaged; the parser can go on behind it.
    Row(Box<Problem>),
    /// The file is damaged such that the parser cannot go on.
    Broken(Box<Problem>),
    /// The native format's table.
    Table(TableError),
    /// A fault in another file that belongs to the trace.
    In(String, Box<Fault>),
}

impl Fault {
    /// Whether only one row is damaged, here or in a file that belongs to the
    /// trace, and reading can go on behind it.
    pub(crate) fn is_one_row(&self) -> bool {
        match self {
            Fault::Row(_) => true,
            Fault::In(_, fault) => fault.is_one_row(),
            // Packed data that ends early: what follows is the end.
            Fault::Read(error) => error.kind() == io::ErrorKind::UnexpectedEof,
            Fault::Broken(_) | Fault::Table(_) => false,
        }
    }

    /// A damaged row of a text format.
    #[cold]
    pub fn in_line(line: u64, mismatch: Mismatch) -> Fault {
        let place = Place::Line {
            line,
            column: mismatch.column + 1,
        };
        Fault::Row(Box::new(Problem {
            place,
            found: mismatch.found,
            expected: mismatch.expected,
        }))
    }

    /// A place beyond which the file cannot be read.
    #[cold]
    pub fn broken(place: Place, found: impl Into<String>, expected: impl Into<String>) -> Fault {
        Fault::Broken(Box::new(Problem {
            place,
            found: found.into(),
            expected: expected.into(),
        }))
    }

    /// A damaged row of a binary format.
    #[cold]
    pub fn row(place: Place, found: impl Into<String>, expected: impl Into<String>) -> Fault {
        Fault::Row(Box::new(Problem {
            place,
            found: found.into(),
            expected: expected.into(),
        }))
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::Read(error)
    }
}
