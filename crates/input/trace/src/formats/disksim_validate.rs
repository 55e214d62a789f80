//! DiskSim's validation traces: requests measured on a real disk and replayed one at a time.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::fault::TraceFault;
use crate::fields::{LineFields, Parsed};
use crate::input::{BUFFER_BYTES, Input};
use crate::row::{LineParser, LineRows, TraceRow};
use crate::{TraceError, source};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::Duration;
use std::path::Path;

pub(super) const FORMAT: Format = Format {
    name: "disksim-validate",
    summary: "DiskSim validation: measured on a real disk, one request at a time",
    columns: "R or W, outcome (Hit, Miss, Doub or Trip), first sector, sectors, measured service (us), think time (us): \
              each request is issued a think time after its predecessor completed",
    counted: PlaceUnit::Lines,
    detect: |head| detect(head),
    open: |_| Ok(Box::new(LineRows(ReplayParser::default()))),
};

/// Result of a request in the cache of the measured drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    /// Served from the buffer, or accepted into the buffer.
    Hit,
    /// Served by the medium.
    Miss,
    /// Mark of the validation suite for a write that hits two segments' worth of work.
    Double,
    /// Mark of the validation suite for a write that hits three segments' worth of work.
    Triple,
}

/// One line of a validation trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateRow {
    /// Read or write.
    pub operation: Operation,
    /// Cache result as recorded in the trace.
    pub outcome: CacheOutcome,
    /// Address and length.
    pub extent: Extent,
    /// Service time of the real drive.
    pub service: Duration,
    /// Time from the completion of this request to the issue of the next.
    pub think: Duration,
}

/// Reader of a validation trace, line by line, for closed replay.
#[derive(Debug)]
pub struct ValidateReader {
    file: String,
    input: Input<'static>,
}

impl ValidateReader {
    /// Opens the file at `path`, packed or not.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn open(path: &Path) -> Result<ValidateReader, TraceError> {
        let input = source::open(path, BUFFER_BYTES)?;
        Ok(ValidateReader {
            file: path.display().to_string(),
            input,
        })
    }

    /// Returns the next line; `None` at the end.
    ///
    /// # Errors
    /// Fails if the line cannot be read or parsed.
    pub fn next_row(&mut self) -> Result<Option<ValidateRow>, TraceError> {
        self.advance()
            .map_err(|fault| TraceError::from_fault(&self.file, fault))
    }

    fn advance(&mut self) -> Result<Option<ValidateRow>, TraceFault> {
        loop {
            let number = self.input.line_number() + 1;
            let Some(line) = self.input.line()? else {
                return Ok(None);
            };
            if !line.trim_ascii().is_empty() {
                return parse(line)
                    .map(Some)
                    .map_err(|mismatch| TraceFault::in_line(number, *mismatch));
            }
        }
    }
}

/// Converts the closed trace to an open trace: arrivals are the sums of service and think times.
#[derive(Default)]
struct ReplayParser {
    next_arrival: u64,
}

fn detect(head: &TraceHead<'_>) -> Confidence {
    head.understood_by(ReplayParser::default(), Confidence::Likely)
}

impl LineParser for ReplayParser {
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        let row = parse(line)?;
        let arrival = self.next_arrival;
        let completed = arrival.saturating_add(row.service.as_nanos());
        // The disk was asked one request at a time: the next one follows the completion and a think
        // time.
        self.next_arrival = completed.saturating_add(row.think.as_nanos());
        Ok(Some(TraceRow {
            issued: Some(arrival),
            completed: Some(completed),
            ..TraceRow::new(
                arrival,
                row.operation,
                row.extent.start.0,
                row.extent.sectors.0,
            )
        }))
    }
}

fn parse(line: &[u8]) -> Parsed<ValidateRow> {
    let mut fields = LineFields::new(line);
    fields.spaces();
    let operation = super::spc1::letter(&mut fields)?;
    fields.separator_of_spaces()?;
    let before = fields.clone();
    let outcome = match fields.word() {
        b"Hit" => CacheOutcome::Hit,
        b"Miss" => CacheOutcome::Miss,
        b"Doub" => CacheOutcome::Double,
        b"Trip" => CacheOutcome::Triple,
        _ => return Err(before.mismatch("Hit, Miss, Doub or Trip")),
    };
    fields.separator_of_spaces()?;
    let start = fields.integer("a sector number")?;
    fields.separator_of_spaces()?;
    let sectors = fields.integer("a number of sectors")?;
    fields.separator_of_spaces()?;
    let service = Duration::from_nanos(fields.decimal(3, "a service time in us")?);
    fields.separator_of_spaces()?;
    let think = Duration::from_nanos(fields.decimal(3, "a think time in us")?);
    fields.end()?;
    Ok(ValidateRow {
        operation,
        outcome,
        extent: Extent::new(start, sectors),
        service,
        think,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_request_arrives_a_think_time_after_the_last_completed() {
        let mut replay = ReplayParser::default();
        let first = replay
            .row(b"R Miss  564347     2     14095.370     13876.270")
            .unwrap()
            .unwrap();
        let second = replay
            .row(b"W Doub 1569163     3     10671.040     19196.570")
            .unwrap()
            .unwrap();
        assert_eq!((first.arrival, first.completed), (0, Some(14_095_370)));
        assert_eq!(second.arrival, 14_095_370 + 13_876_270);
        assert!(replay.row(b"R Hot 564347 2 14095.370 13876.270").is_err());
    }
}
