//! Output of a format's parser: requests with the trace's own times.

use crate::fault::{Problem, TraceFault, TracePlace};
use crate::fields::{LineFields, Parsed};
use crate::input::Input;
use fullstroke_contract::Operation;
use fullstroke_units::SECTOR_BYTES;

/// One request as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRow {
    /// Arrival in nanoseconds, on the format's own clock.
    pub arrival: u64,
    /// Operation.
    pub operation: Operation,
    /// First 512-byte sector.
    pub start: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// Device number of the format.
    pub device: u32,
    /// Process number; 0 means unknown.
    pub process: u32,
    /// Issue time, on the same clock as `arrival`.
    pub issued: Option<u64>,
    /// Completion time, on the same clock as `arrival`.
    pub completed: Option<u64>,
    /// True if the trace has a completion that may belong to another request; `completed` is empty
    /// then.
    pub doubtful: bool,
    /// Line, byte or row of the request in the file; see [`Format::counted`](crate::Format).
    pub place: u64,
}

impl TraceRow {
    /// Makes a request without further data.
    #[inline]
    pub fn new(arrival: u64, operation: Operation, start: u64, sectors: u64) -> TraceRow {
        TraceRow {
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

/// Parser of the rows of one format.
pub trait Parser: Send {
    /// Appends about `limit` rows at most to `rows`, which may hold rows already. Returns `false`
    /// at the end. After a [`TraceFault::Row`] the parser stands behind the damaged row, and the
    /// rows before the damaged row have been appended.
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault>;

    /// Returns problems of the trace so far, invisible in the rows, one sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if requests are made of events. Such rows may come late by the time that a request may
    /// wait, and the parser itself finds times that begin anew.
    fn is_of_events(&self) -> bool {
        false
    }

    /// Returns a way to obtain the addresses of the requests, if the trace lacks them.
    fn lacks_addresses(&self) -> Option<&'static str> {
        None
    }
}

/// Parser of single lines of a text format.
pub trait LineParser: Send {
    /// Returns the request on `line`, or `None` if the line holds no request (a comment, a header).
    /// The caller fills in the line number.
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>>;

    /// Parses a line of the usual form at the beginning of `text`, which holds the line's end and
    /// further lines. Appends the request, with the line number `place`, to `rows`. Returns the
    /// number of bytes up to the next line. Returns `None` for every other line; [`row`](Self::row)
    /// parses such a line. Where this function finds a request, `row` returns the same request.
    #[inline]
    fn usual(&mut self, _text: &[u8], _place: u64, _rows: &mut Vec<TraceRow>) -> Option<usize> {
        None
    }
}

/// Makes a [`Parser`] from a [`LineParser`]. Empty lines are skipped.
pub struct LineRows<P>(pub P);

impl<P: LineParser> Parser for LineRows<P> {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        read_lines(&mut self.0, input, rows, limit)
    }
}

/// Appends the requests of the next `limit` lines to `rows`. Returns `false` at the end.
pub(crate) fn read_lines(
    parser: &mut impl LineParser,
    input: &mut Input<'_>,
    rows: &mut Vec<TraceRow>,
    limit: usize,
) -> Result<bool, TraceFault> {
    let mut left = limit;
    while left > 0 {
        left -= input.lines_at_once(left, |text, number| parser.usual(text, number, rows));
        if left == 0 {
            break;
        }
        left -= 1;
        let number = input.line_number() + 1;
        let Some(line) = input.line()? else {
            return Ok(false);
        };
        match parser.row(line) {
            Ok(Some(row)) => rows.push(TraceRow {
                place: number,
                ..row
            }),
            Ok(None) => {}
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(mismatch) => return Err(TraceFault::in_line(number, *mismatch)),
        }
    }
    Ok(true)
}

/// Returns the first sector and the number of sectors touched by a byte range. Returns `None` if
/// the range ends beyond 2^64 bytes.
#[inline]
pub fn sectors_of_bytes(offset: u64, length: u64) -> Option<(u64, u64)> {
    let end = offset.checked_add(length)?;
    let start = offset / SECTOR_BYTES;
    Some((start, end.div_ceil(SECTOR_BYTES) - start))
}

/// As [`sectors_of_bytes`], with an error at the fields just read.
#[inline]
pub(crate) fn byte_range(fields: &LineFields<'_>, offset: u64, length: u64) -> Parsed<(u64, u64)> {
    sectors_of_bytes(offset, length)
        .ok_or_else(|| fields.mismatch("a range of bytes that ends below 2^64"))
}

/// Number of sectors in 2^64 bytes.
const SECTORS_MAX: u64 = u64::MAX / SECTOR_BYTES;

/// Returns true if a parsed row has no damage; see [`check`].
#[inline]
pub(crate) fn is_sound(row: &TraceRow) -> bool {
    let empty = row.sectors == 0 && !row.operation.is_of_all();
    // Neither number is above the limit, so the sum does not wrap.
    let within = row.start <= SECTORS_MAX
        && row.sectors <= SECTORS_MAX
        && row.start + row.sectors <= SECTORS_MAX;
    within && !empty
}

/// Checks a parsed row. The problem has the found and the expected text.
#[inline]
pub(crate) fn check(row: &TraceRow) -> Result<(), Box<Problem>> {
    if is_sound(row) {
        return Ok(());
    }
    Err(damage(row))
}

#[cold]
fn damage(row: &TraceRow) -> Box<Problem> {
    let (found, expected) = if row.sectors == 0 && !row.operation.is_of_all() {
        ("a request of length 0".to_owned(), "a length above 0")
    } else {
        (
            format!("{} sectors from sector {}", row.sectors, row.start),
            "an extent that ends below 2^64 bytes",
        )
    };
    // The caller sets the place, because only the caller knows the unit of the format.
    Box::new(Problem {
        place: TracePlace::Row(row.place),
        found,
        expected: expected.to_owned(),
    })
}
