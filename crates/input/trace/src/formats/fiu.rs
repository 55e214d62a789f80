//! Traces of Florida International University (SNIA IOTTA 390 and others): home folders, mail and
//! web servers, with a digest of each block's contents.
//!
//! The format is recognised by rows of at least eight words, with `R` or `W` in the sixth.

use super::spc1::letter;
use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::events::device_number;
use crate::fields::{LineFields, Parsed};
use crate::row::{LineParser, LineRows, TraceRow};

pub(super) const FORMAT: Format = Format {
    name: "fiu",
    summary: "Florida International University traces: Linux servers, times in ns",
    columns: "arrival (ns), process number, process name (ignored), first sector, sectors, operation (R or W), \
              major and minor (the device: major << 20 | minor); digests of the contents behind them are ignored",
    counted: PlaceUnit::Lines,
    detect,
    open: |_| Ok(Box::new(LineRows(Fiu))),
};

struct Fiu;

fn detect(head: &TraceHead<'_>) -> Confidence {
    head.understood_by(Fiu, Confidence::Likely)
}

impl LineParser for Fiu {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        let mut fields = LineFields::new(line);
        fields.spaces();
        let arrival = fields.integer("an arrival time in ns")?;
        fields.separator_of_spaces()?;
        let process = fields.small("a process number")?;
        fields.separator_of_spaces()?;
        fields.word();
        fields.separator_of_spaces()?;
        let start = fields.whole("a sector number")?;
        fields.separator_of_spaces()?;
        let sectors = fields.whole("a number of sectors")?;
        fields.separator_of_spaces()?;
        let operation = letter(&mut fields)?;
        fields.separator_of_spaces()?;
        let device = device(&mut fields)?;
        Ok(Some(TraceRow {
            device,
            process,
            ..TraceRow::new(arrival, operation, start, sectors)
        }))
    }
}

fn device(fields: &mut LineFields<'_>) -> Parsed<u32> {
    let before = fields.clone();
    let major = fields.integer("a device's major number")?;
    fields.separator_of_spaces()?;
    let minor = fields.integer("a device's minor number")?;
    if !fields.is_end() {
        fields.separator_of_spaces()?;
    }
    device_number(major, minor)
        .ok_or_else(|| before.mismatch("a major number below 4096 and a minor below 2^20"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Operation;

    #[test]
    fn addresses_are_sectors_of_the_device_that_major_and_minor_tell() {
        let line =
            b"89966445500000 4892 syslogd 904265560 8 W 6 1 531e779bde80b5d6ac4bc1b9a0a7d1ca";
        let row = Fiu.row(line).unwrap().unwrap();
        assert_eq!(
            (row.arrival, row.process, row.operation),
            (89_966_445_500_000, 4892, Operation::Write)
        );
        assert_eq!(
            (row.start, row.sectors, row.device),
            (904_265_560, 8, 6 << 20 | 1)
        );
        assert!(Fiu.row(b"0 1 nfsd 16 8 R 8 0").is_ok());
    }

    #[test]
    fn an_error_names_the_column() {
        for (line, column) in [
            (&b"-1 1 nfsd 16 8 R 8 0"[..], 0),
            (b"0 1 nfsd 16 8 Q 8 0", 14),
            (b"0 1 nfsd 16 8 R 4096 0", 16),
            (b"0 1 nfsd 16", 11),
            (b"0 1 nfsd 16 8 R 8 0x", 19),
        ] {
            let error = Fiu.row(line).unwrap_err();
            assert_eq!(error.column, column, "{}", line.escape_ascii());
        }
    }
}
