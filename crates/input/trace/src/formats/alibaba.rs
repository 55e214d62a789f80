//! Block traces of Alibaba Cloud (2020): virtual disks of a cloud block storage service.
//!
//! The format is recognised by rows of five comma-separated fields, with `R` or `W` in the second.

use super::spc1::letter;
use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::fields::{LineFields, Parsed};
use crate::row::{LineParser, LineRows, TraceRow, byte_range};

pub(super) const FORMAT: Format = Format {
    name: "alibaba",
    summary: "Alibaba Cloud block traces CSV: virtual disks, times in us",
    columns: "device_id (the device), opcode (R or W), offset (bytes), length (bytes), timestamp (us)",
    counted: PlaceUnit::Lines,
    detect,
    open: |_| Ok(Box::new(LineRows(Alibaba))),
};

struct Alibaba;

fn detect(head: &TraceHead<'_>) -> Confidence {
    head.understood_by(Alibaba, Confidence::Likely)
}

impl LineParser for Alibaba {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        if line.starts_with(b"device") {
            return Ok(None);
        }
        let mut fields = LineFields::new(line);
        fields.spaces();
        let device = fields.small("a device number")?;
        fields.separator(b',')?;
        let operation = letter(&mut fields)?;
        fields.separator(b',')?;
        let offset = fields.whole("an offset in bytes")?;
        fields.separator(b',')?;
        let length = fields.whole("a length in bytes")?;
        let (start, sectors) = byte_range(&fields, offset, length)?;
        fields.separator(b',')?;
        let arrival = fields.decimal(3, "a timestamp in us")?;
        fields.end()?;
        Ok(Some(TraceRow {
            device,
            ..TraceRow::new(arrival, operation, start, sectors)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Operation;

    #[test]
    fn times_are_microseconds_and_addresses_bytes() {
        let row = Alibaba
            .row(b"419,W,8792731648,16384,1577808144360767")
            .unwrap()
            .unwrap();
        assert_eq!((row.device, row.operation), (419, Operation::Write));
        assert_eq!(
            (row.start, row.sectors, row.arrival),
            (17_173_304, 32, 1_577_808_144_360_767_000)
        );
        assert_eq!(
            Alibaba.row(b"device_id,opcode,offset,length,timestamp"),
            Ok(None)
        );
    }

    #[test]
    fn an_error_names_the_column() {
        for (line, column) in [
            (&b"419,X,0,512,1"[..], 4),
            (b"419,R,-8,512,1", 6),
            (b"419,R,18446744073709551615,512,1", 30),
            (b"419,R,0,512", 11),
            (b"4294967296,R,0,512,1", 0),
            (b"419,R,0,512,1,1", 13),
        ] {
            let error = Alibaba.row(line).unwrap_err();
            assert_eq!(error.column, column, "{}", line.escape_ascii());
        }
    }
}
