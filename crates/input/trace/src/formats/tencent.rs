//! Block traces of Tencent Cloud Block Storage (2018, SNIA IOTTA 27917).
//!
//! The format is recognised by rows of five comma-separated whole numbers, of which the fourth is 0
//! or 1.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::fields::{LineFields, Parsed};
use crate::row::{LineParser, LineRows, TraceRow};
use fullstroke_contract::Operation;

pub(super) const FORMAT: Format = Format {
    name: "tencent",
    summary: "Tencent Cloud Block Storage CSV: virtual disks, times in whole seconds",
    columns: "timestamp (s), offset (512-byte sectors), size (512-byte sectors), operation (0 = read, 1 = write), \
              volume (the device)",
    counted: PlaceUnit::Lines,
    detect,
    open: |_| Ok(Box::new(LineRows(Tencent))),
};

struct Tencent;

fn detect(head: &TraceHead<'_>) -> Confidence {
    head.understood_by(Tencent, Confidence::Likely)
}

impl LineParser for Tencent {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        if matches!(line, [b'T' | b't', b'i', b'm', b'e', ..]) {
            return Ok(None);
        }
        let mut fields = LineFields::new(line);
        fields.spaces();
        let arrival = fields.decimal(9, "a timestamp in seconds")?;
        fields.separator(b',')?;
        let start = fields.whole("an offset in sectors")?;
        fields.separator(b',')?;
        let sectors = fields.whole("a size in sectors")?;
        fields.separator(b',')?;
        let operation = match fields.peek() {
            Some(b'0') => Operation::Read,
            Some(b'1') => Operation::Write,
            _ => return Err(fields.mismatch("0 (read) or 1 (write)")),
        };
        fields.skip(1);
        fields.separator(b',')?;
        let device = fields.small("a volume number")?;
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

    #[test]
    fn times_are_seconds_and_addresses_sectors() {
        let row = Tencent
            .row(b"1538323200,12910952,128,0,1063")
            .unwrap()
            .unwrap();
        assert_eq!((row.device, row.operation), (1063, Operation::Read));
        assert_eq!(
            (row.start, row.sectors, row.arrival),
            (12_910_952, 128, 1_538_323_200_000_000_000)
        );
        assert_eq!(
            Tencent.row(b"Timestamp,Offset,Size,IOType,VolumeID"),
            Ok(None)
        );
    }

    #[test]
    fn an_error_names_the_column() {
        for (line, column) in [
            (&b"1538323200,8,8,2,1"[..], 15),
            (b"1538323200,8,8,10,1", 16),
            (b"-5,8,8,1,1", 0),
            (b"99999999999,8,8,1,1", 0),
            (b"5,8,8,1", 7),
        ] {
            let error = Tencent.row(line).unwrap_err();
            assert_eq!(error.column, column, "{}", line.escape_ascii());
        }
    }
}
