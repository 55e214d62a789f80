//! What a format's parser gives: requests with the trace's own times.

use crate::fault::{Fault, Place, Problem};
use crate::fields::{Fields, Parsed};
use crate::input::Input;
use fullstroke_contract::Operation;
use fullstroke_units::SECTOR_BYTES;

/// One request as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Nanoseconds on the format's own clock.
    pub arrival: u64,
    /// What was asked.
    pub operation: Operation,
    /// First 512-byte sector.
    pub start: u64,
    /// How many sectors.
    pub sectors: u64,
    /// As the format numbers them.
    pub device: u32,
    /// 0 = unknown.
    pub process: u32,
    /// On the same clock as `arrival`.
    pub issued: Option<u64>,
    /// On the same clock as `arrival`.
    pub completed: Option<u64>,
    /// A completion was seen that may be another request's; `completed` is
    /// empty.
    pub doubtful: bool,
    /// The line, byte or row where it stands; see [`Format::counted`](crate::Format).
    pub place: u64,
}

impl Row {
    /// A request of which nothing further is known.
    #[inline]
    pub fn new(arrival: u64, operation: Operation, start: u64, sectors: u64) -> Row {
        Row {
            arrival,
            operation,
            start,
            sectors,
            device: 0,
            process: 0,
            issued: None,
            completed: None,
            doubtful: false,
            place: 0,
        }
    }
}

/// Reads rows of one format.
pub trait Parser: Send {
    /// Appends at most about `limit` rows to `rows`; `false` at the end. After
    /// a [`Fault::Row`] the parser stands behind the damaged row, and the rows
    /// before it have been appended.
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<Row>,
        limit: usize,
    ) -> Result<bool, Fault>;

    /// What the rows read so far do not tell but whoever trusts them should
    /// know, a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What to do to have the addresses of the requests, if the trace lacks them.
    fn lacks_addresses(&self) -> Option<&'static str> {
        None
    }
}

/// Understands the lines of a text format, each on its own.
pub trait LineParser: Send {
    /// The request on `line`, or `None` if the line is none (a comment, a
    /// header). The line's number is filled in by the caller.
    fn row(&mut self, line: &[u8]) -> Parsed<Option<Row>>;
}

/// Makes a [`Parser`] of a [`LineParser`]. Empty lines are passed over.
pub struct Lines<P>(pub P);

impl<P: LineParser> Parser for Lines<P> {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<Row>,
        limit: usize,
    ) -> Result<bool, Fault> {
        for _ in 0..limit {
            let number = input.line_number() + 1;
            let Some(line) = input.line()? else {
                return Ok(false);
            };
            match self.0.row(line) {
                Ok(Some(row)) => rows.push(Row {
                    place: number,
                    ..row
                }),
                Ok(None) => {}
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(mismatch) => return Err(Fault::in_line(number, *mismatch)),
            }
        }
        Ok(true)
    }
}

/// The sectors that the byte range touches: the first one and how many. `None`
/// if the range ends beyond 2^64 bytes.
#[inline]
pub fn sectors_of_bytes(offset: u64, length: u64) -> Option<(u64, u64)> {
    let end = offset.checked_add(length)?;
    let start = offset / SECTOR_BYTES;
    Some((start, end.div_ceil(SECTOR_BYTES) - start))
}

/// Like [`sectors_of_bytes`], as an error at the fields just read.
#[inline]
pub(crate) fn byte_range(fields: &Fields<'_>, offset: u64, length: u64) -> Parsed<(u64, u64)> {
    sectors_of_bytes(offset, length)
        .ok_or_else(|| fields.mismatch("a range of bytes that ends below 2^64"))
}

/// What is wrong with a row that was parsed, if anything: `(found, expected)`.
#[inline]
pub(crate) fn check(row: &Row) -> Result<(), Box<Problem>> {
    /// Sectors in 2^64 bytes.
    const SECTORS_MAX: u64 = u64::MAX / SECTOR_BYTES;
    let empty = row.sectors == 0 && !row.operation.is_of_all();
    let ends = row
        .start
        .checked_add(row.sectors)
        .is_some_and(|end| end <= SECTORS_MAX);
    if ends && !empty {
        return Ok(());
    }
    let (found, expected) = if empty {
        ("a request of length 0".to_owned(), "a length above 0")
    } else {
        (
            format!("{} sectors from sector {}", row.sectors, row.start),
            "an extent that ends below 2^64 bytes",
        )
    };
    // The caller knows how the format counts places.
    Err(Box::new(Problem {
        place: Place::Row(row.place),
        found,
        expected: expected.to_owned(),
    }))
}
