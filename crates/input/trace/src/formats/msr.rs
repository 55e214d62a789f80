//! MSR Cambridge CSV (SNIA IOTTA 388): one week of enterprise servers, 2007.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::fields::{LineFields, Parsed, digits_at};
use crate::input::USUAL_LINE_BYTES;
use crate::row::{LineParser, LineRows, TraceRow, byte_range, sectors_of_bytes};
use fullstroke_contract::Operation;

pub(super) const FORMAT: Format = Format {
    name: "msr",
    summary: "MSR Cambridge CSV: Windows servers, times in 100 ns since 1601",
    columns: "Timestamp (100 ns since 1601), Hostname (ignored), DiskNumber (the device), Type (Read or Write), \
              Offset (bytes), Size (bytes), ResponseTime (100 ns; 0 = unknown)",
    counted: PlaceUnit::Lines,
    detect,
    open: |_| Ok(Box::new(LineRows(Msr::default()))),
};

/// Nanoseconds in the unit of FILETIME.
const TICK_NS: u64 = 100;

/// Parser, with the host and the disk of the latest line of the usual form.
#[derive(Default)]
struct Msr {
    /// Text of the line from the comma before the host to the comma behind the disk.
    middle: Vec<u8>,
    device: u32,
}

fn detect(head: &TraceHead<'_>) -> Confidence {
    head.understood_by(Msr::default(), Confidence::Likely)
}

impl LineParser for Msr {
    #[inline]
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        if line.starts_with(b"Timestamp") {
            return Ok(None);
        }
        let mut fields = LineFields::new(line);
        let arrival = ticks(&mut fields, "a timestamp in 100 ns")?;
        fields.byte(b',')?;
        fields.until(b',');
        fields.byte(b',')?;
        let device = fields.small("a disk number")?;
        fields.byte(b',')?;
        let operation = operation(&mut fields)?;
        fields.byte(b',')?;
        let offset = fields.whole("an offset in bytes")?;
        fields.byte(b',')?;
        let size = fields.whole("a size in bytes")?;
        fields.byte(b',')?;
        let response = ticks(&mut fields, "a response time in 100 ns")?;
        fields.end()?;
        let (start, sectors) = byte_range(&fields, offset, size)?;
        // A response of 0 is unknown, not instantaneous.
        let completed = (response > 0).then(|| arrival.saturating_add(response));
        Ok(Some(TraceRow {
            device,
            completed,
            ..TraceRow::new(arrival, operation, start, sectors)
        }))
    }

    #[inline]
    fn usual(&mut self, text: &[u8], place: u64, rows: &mut Vec<TraceRow>) -> Option<usize> {
        let text = text.first_chunk::<USUAL_LINE_BYTES>()?;
        let mut at = 0;
        // The usual form gives up here, and the slow way reports the error.
        let arrival = number(text, &mut at)?.checked_mul(TICK_NS)?;
        // Most lines have the host and the disk of the line before.
        if text[at..].starts_with(&self.middle) && !self.middle.is_empty() {
            at += self.middle.len();
        } else {
            at += self.read_middle(&text[at..])?;
        }
        let word = u64::from_le_bytes(*text[at..].first_chunk()?) | CAPITAL;
        let operation = if word & LOWEST_FIVE == READ {
            at += 5;
            Operation::Read
        } else if word & LOWEST_SIX == WRITE {
            at += 6;
            Operation::Write
        } else {
            return None;
        };
        let offset = number(text, &mut at)?;
        comma(text, &mut at)?;
        let size = number(text, &mut at)?;
        comma(text, &mut at)?;
        let response = number(text, &mut at)?.checked_mul(TICK_NS)?;
        let length = match text[at..] {
            [b'\n', ..] => at + 1,
            [b'\r', b'\n', ..] => at + 2,
            _ => return None,
        };
        let (start, sectors) = sectors_of_bytes(offset, size)?;
        let completed = (response > 0).then(|| arrival.saturating_add(response));
        rows.push(TraceRow {
            device: self.device,
            completed,
            place,
            ..TraceRow::new(arrival, operation, start, sectors)
        });
        Some(length)
    }
}

/// `read,` and `write,` as words with the first byte lowest.
const READ: u64 = u64::from_le_bytes(*b"read,\0\0\0");
const WRITE: u64 = u64::from_le_bytes(*b"write,\0\0");
const LOWEST_FIVE: u64 = (1 << 40) - 1;
const LOWEST_SIX: u64 = (1 << 48) - 1;
/// Difference between the first letters of `Read` and `read`.
const CAPITAL: u64 = 0x20;

impl Msr {
    /// Parses the host and the disk, with the commas around them. Returns their length.
    #[cold]
    fn read_middle(&mut self, text: &[u8]) -> Option<usize> {
        let mut at = 0;
        comma(text, &mut at)?;
        let host = memchr::memchr2(b',', b'\n', &text[at..])?;
        at += host;
        comma(text, &mut at)?;
        let device = u32::try_from(number(text, &mut at)?).ok()?;
        comma(text, &mut at)?;
        // Both change together: the next lines with this text take the device without reading it.
        self.device = device;
        self.middle.clear();
        self.middle.extend_from_slice(&text[..at]);
        Some(at)
    }
}

/// Parses a number that certainly fits into 64 bits.
#[inline]
fn number(text: &[u8], at: &mut usize) -> Option<u64> {
    let (value, count) = digits_at(text.get(*at..)?.first_chunk()?);
    *at += count;
    (count > 0).then_some(value)
}

#[inline]
fn comma(text: &[u8], at: &mut usize) -> Option<()> {
    let found = *text.get(*at)? == b',';
    *at += 1;
    found.then_some(())
}

#[inline]
fn ticks(fields: &mut LineFields<'_>, expected: &str) -> Parsed<u64> {
    let value = fields.whole(expected)?;
    value
        .checked_mul(TICK_NS)
        .ok_or_else(|| fields.mismatch("a time before the year 2185"))
}

#[inline]
fn operation(fields: &mut LineFields<'_>) -> Parsed<Operation> {
    let rest = fields.rest();
    let begins = |word: &[u8]| {
        rest.get(..word.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(word))
    };
    let (operation, length) = match () {
        () if begins(b"read") => (Operation::Read, 4),
        () if begins(b"write") => (Operation::Write, 5),
        () => return Err(fields.mismatch("`Read` or `Write`")),
    };
    fields.skip(length);
    Ok(operation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bytes_become_sectors_and_ticks_nanoseconds() {
        let row = Msr::default()
            .row(b"128166372003061629,src1,1,Read,7014609920,24576,41286")
            .unwrap()
            .unwrap();
        assert_eq!((row.start, row.sectors, row.device), (13_700_410, 48, 1));
        assert_eq!(row.arrival, 12_816_637_200_306_162_900);
        assert_eq!(row.completed, Some(12_816_637_200_306_162_900 + 4_128_600));
    }

    #[test]
    fn an_error_names_the_column() {
        let error = Msr::default()
            .row(b"128166372003061629,src1,1,Erase,0,512,1")
            .unwrap_err();
        assert_eq!(
            (error.column, error.expected.as_str()),
            (26, "`Read` or `Write`")
        );
        let error = Msr::default()
            .row(b"1,src1,1,Read,18446744073709551616,512,1")
            .unwrap_err();
        assert_eq!(error.column, 14);
        let error = Msr::default()
            .row(b"1,src1,1,Read,18446744073709551615,512,1")
            .unwrap_err();
        assert!(error.expected.contains("2^64"), "{error:?}");
    }

    proptest! {
        #[test]
        fn a_usual_line_is_parsed_as_every_line(
            lines in prop::collection::vec(line(), 1..12),
            damage in prop::option::of((0usize..2000, any::<u8>())),
        ) {
            let mut text = lines.concat().into_bytes();
            if let Some((place, byte)) = damage {
                let place = place % text.len();
                text[place] = byte;
            }
            let end = text.len();
            text.resize(end + USUAL_LINE_BYTES, b'\n');
            let (mut parser, mut at) = (Msr::default(), 0);
            while at < end {
                let line = memchr::memchr(b'\n', &text[at..]).unwrap();
                let whole = &text[at..at + line];
                let slow = Msr::default().row(whole.strip_suffix(b"\r").unwrap_or(whole));
                let mut rows = Vec::new();
                if let Some(length) = parser.usual(&text[at..], 0, &mut rows) {
                    prop_assert_eq!(length, line + 1);
                    prop_assert_eq!(slow, Ok(rows.pop()));
                } else {
                    // Only lines of an unusual form are left to the slower parser.
                    prop_assert!(damage.is_some() || slow.is_err() || whole.ends_with(b" "), "{:?}", slow);
                }
                at += line + 1;
            }
        }
    }

    fn line() -> impl Strategy<Value = String> {
        let number = prop_oneof![0u64..10, 0u64..1 << 50, Just(u64::MAX / TICK_NS)];
        (
            (
                number.clone(),
                "[a-z ]{0,3}",
                prop_oneof![0u64..3, 0u64..1 << 33],
            ),
            prop_oneof!["Read|read|Write|write", "[RW]?[a-z]{3,4}"],
            (number.clone(), number.clone(), number),
            "(\n|\r\n| \n)",
        )
            .prop_map(
                |((arrival, host, disk), operation, (offset, size, response), end)| {
                    format!("{arrival},{host},{disk},{operation},{offset},{size},{response}{end}")
                },
            )
    }
}
