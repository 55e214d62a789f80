//! A made-up format: `seconds R|W sector sectors`, separated by spaces.
//!
//! Rows of that shape identify the format.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::fields::{LineFields, Parsed};
use crate::row::{LineParser, LineRows, TraceRow};
use fullstroke_contract::Operation;

pub(super) const FORMAT: Format = Format {
    name: "plain",
    summary: "one request a line, for the example of CONTRIBUTING.md",
    columns: "time (s), operation (R or W), sector (512 bytes), sectors (512 bytes)",
    counted: PlaceUnit::Lines,
    detect,
    open: |_| Ok(Box::new(LineRows(Plain))),
};

struct Plain;

fn detect(head: &TraceHead<'_>) -> Confidence {
    head.understood_by(Plain, Confidence::Likely)
}

impl LineParser for Plain {
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        let mut fields = LineFields::new(line);
        let arrival = fields.decimal(9, "a time in seconds")?;
        fields.spaces();
        let before = fields.clone();
        let operation = match fields.word() {
            b"R" => Operation::Read,
            b"W" => Operation::Write,
            _ => return Err(before.mismatch("R or W")),
        };
        fields.spaces();
        let start = fields.integer("a sector")?;
        fields.spaces();
        let sectors = fields.integer("a number of sectors")?;
        fields.end()?;
        Ok(Some(TraceRow::new(arrival, operation, start, sectors)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_request() {
        let row = Plain.row(b"0.5 W 64 8").unwrap().unwrap();
        assert_eq!(
            (row.arrival, row.operation, row.start, row.sectors),
            (500_000_000, Operation::Write, 64, 8)
        );
        assert_eq!(FORMAT.columns.split(", ").count(), 4);
    }

    #[test]
    fn an_error_names_the_column() {
        assert_eq!(Plain.row(b"0.5 X 64 8").unwrap_err().column, 4);
        assert!(Plain.row(b"0.5 R 64").is_err());
    }
}
