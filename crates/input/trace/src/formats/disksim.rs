//! DiskSim's ASCII format.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::fields::{LineFields, Parsed};
use crate::row::{LineParser, LineRows, TraceRow};
use fullstroke_contract::Operation;

pub(super) const FORMAT: Format = Format {
    name: "disksim",
    summary: "DiskSim ASCII: times in ms (if all numbers are whole, give --format, because mqsim has the same columns)",
    columns: "arrival (ms), device, first sector, sectors, flags (hexadecimal; bit 0 = read)",
    counted: PlaceUnit::Lines,
    detect,
    open: |_| Ok(Box::new(LineRows(DiskSim))),
};

struct DiskSim;

/// DiskSim and MQSim have the same five columns. Only a time with a decimal point tells them apart,
/// because MQSim's times are whole nanoseconds.
fn detect(head: &TraceHead<'_>) -> Confidence {
    let fractional = head
        .lines()
        // A few lines decide; times in whole milliseconds for all of them are unlikely.
        .take(32)
        .any(|line| LineFields::new(line).word().contains(&b'.'));
    let sure = if fractional {
        Confidence::Likely
    } else {
        Confidence::Possible
    };
    head.understood_by(DiskSim, sure)
}

impl LineParser for DiskSim {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        let mut fields = LineFields::new(line);
        fields.spaces();
        let arrival = fields.decimal(6, "an arrival time in ms")?;
        let (device, start, sectors) = place(&mut fields)?;
        let flags = hexadecimal(&mut fields)?;
        fields.end()?;
        let operation = if flags & 1 == 1 {
            Operation::Read
        } else {
            Operation::Write
        };
        Ok(Some(TraceRow {
            device,
            ..TraceRow::new(arrival, operation, start, sectors)
        }))
    }
}

/// Parses device, first sector and length, with spaces around.
#[inline]
pub(super) fn place(fields: &mut LineFields<'_>) -> Parsed<(u32, u64, u64)> {
    fields.separator_of_spaces()?;
    let device = fields.small("a device number")?;
    fields.separator_of_spaces()?;
    let start = fields.whole("a sector number")?;
    fields.separator_of_spaces()?;
    let sectors = fields.whole("a number of sectors")?;
    fields.separator_of_spaces()?;
    Ok((device, start, sectors))
}

fn hexadecimal(fields: &mut LineFields<'_>) -> Parsed<u64> {
    let before = fields.clone();
    let word = fields.word();
    let digits = word.strip_prefix(b"0x").unwrap_or(word);
    // `from_str_radix` would accept a sign.
    std::str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| before.mismatch("hexadecimal flags"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_0_of_the_flags_is_a_read() {
        let row = DiskSim.row(b"  10.250000 3  1024 8 1").unwrap().unwrap();
        assert_eq!(
            (row.arrival, row.operation, row.device),
            (10_250_000, Operation::Read, 3)
        );
        let row = DiskSim.row(b"10.25 3 1024 8 a").unwrap().unwrap();
        assert_eq!(row.operation, Operation::Write);
        assert!(DiskSim.row(b"10.25 3 1024 8 +1").is_err());
        assert!(DiskSim.row(b"10.25 3 1024 8").is_err());
    }
}
