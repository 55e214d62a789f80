//! MSR Cambridge CSV (SNIA IOTTA 388): one week of enterprise servers, 2007.

use super::{Confidence, Counted, Format, Head};
use crate::fields::{Fields, Parsed};
use crate::row::{LineParser, Lines, Row, byte_range};
use fullstroke_contract::Operation;

pub(super) const FORMAT: Format = Format {
    name: "msr",
    summary: "MSR Cambridge CSV: Windows servers, times in 100 ns since 1601",
    columns: "Timestamp (100 ns since 1601), Hostname (ignored), DiskNumber (the device), Type (Read or Write), \
              Offset (bytes), Size (bytes), ResponseTime (100 ns; 0 = unknown)",
    counted: Counted::Lines,
    detect,
    open: |_| Ok(Box::new(Lines(Msr))),
};

/// Nanoseconds in the unit of FILETIME.
const TICK_NS: u64 = 100;

struct Msr;

fn detect(head: &Head<'_>) -> Confidence {
    head.understood_by(Msr, Confidence::Likely)
}

impl LineParser for Msr {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<Row>> {
        if line.starts_with(b"Timestamp") {
            return Ok(None);
        }
        let mut fields = Fields::new(line);
        let arrival = ticks(&mut fields, "a timestamp in 100 ns")?;
        fields.byte(b',')?;
        fields.until(b',');
        fields.byte(b',')?;
        let device = fields.small("a disk number")?;
        fields.byte(b',')?;
        let operation = operation(&mut fields)?;
        fields.byte(b',')?;
        let offset = fields.integer("an offset in bytes")?;
        fields.byte(b',')?;
        let size = fields.integer("a size in bytes")?;
        fields.byte(b',')?;
        let response = ticks(&mut fields, "a response time in 100 ns")?;
        fields.end()?;
        let (start, sectors) = byte_range(&fields, offset, size)?;
        let completed = (response > 0).then(|| arrival.saturating_add(response));
        Ok(Some(Row {
            device,
            completed,
            ..Row::new(arrival, operation, start, sectors)
        }))
    }
}

#[inline]
fn ticks(fields: &mut Fields<'_>, expected: &str) -> Parsed<u64> {
    let value = fields.integer(expected)?;
    value
        .checked_mul(TICK_NS)
        .ok_or_else(|| fields.mismatch("a time before the year 2185"))
}

#[inline]
fn operation(fields: &mut Fields<'_>) -> Parsed<Operation> {
    let rest = fields.rest();
    let (operation, length) = match rest {
        [b'R' | b'r', b'e', b'a', b'd', ..] => (Operation::Read, 4),
        [b'W' | b'w', b'r', b'i', b't', b'e', ..] => (Operation::Write, 5),
        _ => return Err(fields.mismatch("`Read` or `Write`")),
    };
    fields.skip(length);
    Ok(operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_sectors_and_ticks_nanoseconds() {
        let row = Msr
            .row(b"128166372003061629,src1,1,Read,7014609920,24576,41286")
            .unwrap()
            .unwrap();
        assert_eq!((row.start, row.sectors, row.device), (13_700_410, 48, 1));
        assert_eq!(row.arrival, 12_816_637_200_306_162_900);
        assert_eq!(row.completed, Some(12_816_637_200_306_162_900 + 4_128_600));
    }

    #[test]
    fn an_error_names_the_column() {
        let error = Msr
            .row(b"128166372003061629,src1,1,Erase,0,512,1")
            .unwrap_err();
        assert_eq!(
            (error.column, error.expected.as_str()),
            (26, "`Read` or `Write`")
        );
        let error = Msr
            .row(b"1,src1,1,Read,18446744073709551616,512,1")
            .unwrap_err();
        assert_eq!(error.column, 14);
        let error = Msr
            .row(b"1,src1,1,Read,18446744073709551615,512,1")
            .unwrap_err();
        assert!(error.expected.contains("2^64"), "{error:?}");
    }
}
