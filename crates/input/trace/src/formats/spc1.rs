//! SPC-1 ASCII, the Storage Performance Council's trace format (revision 1.0.1), as used for the
//! UMass financial and web-search traces.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::fields::{LineFields, Parsed};
use crate::row::{LineParser, LineRows, TraceRow, byte_range};
use fullstroke_contract::Operation;
use fullstroke_units::SECTOR_BYTES;

pub(super) const FORMAT: Format = Format {
    name: "spc1",
    summary: "SPC-1 ASCII: application storage units, times in seconds",
    columns: "ASU (the device), LBA (512-byte blocks within the ASU), size (bytes), opcode (R, r, W or w), \
              timestamp (s); further fields are ignored",
    counted: PlaceUnit::Lines,
    detect,
    open: |_| Ok(Box::new(LineRows(Spc1))),
};

struct Spc1;

fn detect(head: &TraceHead<'_>) -> Confidence {
    head.understood_by(Spc1, Confidence::Likely)
}

impl LineParser for Spc1 {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        let mut fields = LineFields::new(line);
        fields.spaces();
        let device = fields.small("an application storage unit")?;
        fields.separator(b',')?;
        let block = fields.whole("a block number")?;
        fields.separator(b',')?;
        let size = fields.whole("a size in bytes")?;
        fields.separator(b',')?;
        let operation = letter(&mut fields)?;
        fields.separator(b',')?;
        let arrival = fields.decimal(9, "a timestamp in seconds")?;
        fields.spaces();
        if !fields.is_end() {
            fields.byte(b',')?;
        }
        let offset = block
            // Blocks have 512 bytes in SPC-1, so a block number beyond 2^55 exceeds the bytes.
            .checked_mul(SECTOR_BYTES)
            .ok_or_else(|| fields.mismatch("a block below 2^55"))?;
        let (start, sectors) = byte_range(&fields, offset, size)?;
        Ok(Some(TraceRow {
            device,
            ..TraceRow::new(arrival, operation, start, sectors)
        }))
    }
}

/// Parses `R`, `r`, `W` or `w`.
#[inline]
pub(super) fn letter(fields: &mut LineFields<'_>) -> Parsed<Operation> {
    let operation = match fields.peek() {
        Some(b'R' | b'r') => Operation::Read,
        Some(b'W' | b'w') => Operation::Write,
        _ => return Err(fields.mismatch("`R` or `W`")),
    };
    fields.skip(1);
    Ok(operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_fields_are_tolerated() {
        let row = Spc1
            .row(b"0,20941264,8192,W,0.551706,extra,1")
            .unwrap()
            .unwrap();
        assert_eq!(
            (row.arrival, row.start, row.sectors),
            (551_706_000, 20_941_264, 16)
        );
        assert!(Spc1.row(b"0,20941264,8192,W,-0.5").is_err());
        assert!(Spc1.row(b"0,20941264,8192,X,0.5").is_err());
    }
}
