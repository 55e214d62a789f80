//! The SYSTOR '17 traces (SNIA IOTTA 4964): a virtual desktop infrastructure.
//!
//! The format is recognised by rows of six comma-separated fields, with `R` or `W` in the third.
//! The second field, a response time, may be empty.

use super::spc1::letter;
use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::fields::{LineFields, Parsed};
use crate::row::{LineParser, LineRows, TraceRow, byte_range};

pub(super) const FORMAT: Format = Format {
    name: "systor",
    summary: "SYSTOR '17 CSV: virtual desktops, times in seconds",
    columns: "timestamp (s), response (s; empty = unknown), operation (R or W), LUN (the device), offset (bytes), \
              size (bytes)",
    counted: PlaceUnit::Lines,
    detect,
    open: |_| Ok(Box::new(LineRows(Systor))),
};

struct Systor;

fn detect(head: &TraceHead<'_>) -> Confidence {
    head.understood_by(Systor, Confidence::Likely)
}

impl LineParser for Systor {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        if matches!(line, [b'T' | b't', b'i', b'm', b'e', ..]) {
            return Ok(None);
        }
        let mut fields = LineFields::new(line);
        fields.spaces();
        let arrival = fields.decimal(9, "a timestamp in seconds")?;
        fields.separator(b',')?;
        let response = match fields.peek() {
            Some(b',') => None,
            _ => Some(fields.decimal(9, "a response time in seconds, or nothing")?),
        };
        fields.separator(b',')?;
        let operation = letter(&mut fields)?;
        fields.separator(b',')?;
        let device = fields.small("a logical unit number")?;
        fields.separator(b',')?;
        let offset = fields.whole("an offset in bytes")?;
        fields.separator(b',')?;
        let size = fields.whole("a size in bytes")?;
        let (start, sectors) = byte_range(&fields, offset, size)?;
        fields.end()?;
        let completed = response.map(|response| arrival.saturating_add(response));
        Ok(Some(TraceRow {
            device,
            completed,
            ..TraceRow::new(arrival, operation, start, sectors)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Operation;

    #[test]
    fn the_response_time_may_be_empty() {
        let row = Systor
            .row(b"1455592181.027841000,0.000512,R,3,44060672,4096")
            .unwrap()
            .unwrap();
        assert_eq!((row.device, row.operation), (3, Operation::Read));
        assert_eq!(
            (row.start, row.sectors, row.arrival),
            (86_056, 8, 1_455_592_181_027_841_000)
        );
        assert_eq!(row.completed, Some(1_455_592_181_028_353_000));
        let row = Systor
            .row(b"1455592181.027841000,,W,3,44060672,4096")
            .unwrap()
            .unwrap();
        assert_eq!((row.operation, row.completed), (Operation::Write, None));
        assert_eq!(
            Systor.row(b"Timestamp,Response,IOType,LUN,Offset,Size"),
            Ok(None)
        );
    }

    #[test]
    fn an_error_names_the_column() {
        for (line, column) in [
            (&b"1.5,-0.1,R,3,0,512"[..], 4),
            (b"1.5,0.1,,3,0,512", 8),
            (b"1.5,0.1,R,x,0,512", 10),
            (b"1.5,0.1,R,3,0", 13),
        ] {
            let error = Systor.row(line).unwrap_err();
            assert_eq!(error.column, column, "{}", line.escape_ascii());
        }
    }
}
