//! Lines of `blkparse -f FORMAT`: the events of blkparse with other fields, or in another order.
//!
//! The reader finds the meaning of each field in the first lines. The action and the flags are letters, the time has a
//! decimal point, and the sector and the length are the numbers behind them, or around a `+`.

use crate::events::{Action, KernelEvent, device_number, operation_of_flags};
use crate::fields::{LineFields, Mismatch, Parsed, excerpt};
use crate::formats::TraceHead;

/// Number of lines that tell the places of the fields.
const LINES: usize = 256;
/// Actions of blkparse (`-f %a`): letters of the events in blktrace's `blktrace_api.h`.
const ACTIONS: &[&[u8]] = &[
    b"Q", b"I", b"D", b"R", b"C", b"G", b"S", b"M", b"F", b"P", b"U", b"UT", b"T", b"X", b"A",
    b"B", b"m",
];
const SECTOR: u64 = 512;

/// Places of the fields in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldPlaces {
    /// True if commas and semicolons divide fields, too.
    commas: bool,
    /// Number of fields.
    count: usize,
    action: usize,
    flags: usize,
    time: usize,
    start: usize,
    length: usize,
    /// Bytes in the unit of the length: `%n` counts sectors, `%N` bytes.
    unit: u64,
    device: Option<usize>,
}

/// Fields of a line, with their places. A `+` between sector and length is left out.
fn fields(line: &[u8], commas: bool) -> Vec<(usize, &[u8])> {
    let divides = |byte: &u8| byte.is_ascii_whitespace() || (commas && b",;|".contains(byte));
    let mut found = Vec::new();
    let mut from = 0;
    for part in line.split(divides) {
        let at = from;
        from += part.len() + 1;
        let kept = part.trim_ascii();
        let kept = match commas {
            true => kept,
            false => kept.trim_suffix_of(b",;"),
        };
        if !kept.is_empty() && kept != b"+" {
            found.push((at, kept));
        }
    }
    found
}

trait TrimSuffix {
    fn trim_suffix_of(&self, letters: &[u8]) -> &[u8];
}

impl TrimSuffix for [u8] {
    /// Returns the bytes without `letters` at the end.
    fn trim_suffix_of(&self, letters: &[u8]) -> &[u8] {
        let kept = self.iter().rposition(|byte| !letters.contains(byte));
        &self[..kept.map_or(0, |last| last + 1)]
    }
}

/// Returns true for a line without an event: empty, a comment, or a word about the input.
pub(super) fn is_note(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    // blkparse lists its input files in front of the events (blkparse.c, `add_file`).
    let words = [&b"#"[..], b"CPU", b"Input file ", b"Total"];
    line.is_empty() || words.iter().any(|word| line.starts_with(word))
}

fn is_flags(text: &[u8]) -> bool {
    text.iter().all(|byte| b"RWDFNSMABE".contains(byte))
        && text.iter().any(|byte| b"RWDFN".contains(byte))
}

fn is_time(text: &[u8]) -> bool {
    text.contains(&b'.')
        && text
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Returns the device of `major,minor`.
fn device_of(text: &[u8]) -> Option<u32> {
    let (major, minor) = std::str::from_utf8(text).ok()?.split_once(',')?;
    device_number(major.parse().ok()?, minor.parse().ok()?)
}

impl FieldPlaces {
    /// Returns the places of the fields in the first lines; `None` if the lines are no such events.
    pub(super) fn of(head: &TraceHead<'_>) -> Option<FieldPlaces> {
        // Without commas first, because a comma stands in `major,minor`.
        [false, true]
            .into_iter()
            .find_map(|commas| FieldPlaces::divided(head, commas))
    }

    fn divided(head: &TraceHead<'_>, commas: bool) -> Option<FieldPlaces> {
        let lines: Vec<Vec<(usize, &[u8])>> = head
            .lines()
            .take(LINES)
            .filter(|line| !is_note(line))
            .map(|line| fields(line, commas))
            .collect();
        let count = lines.first()?.len();
        let rows: Vec<&Vec<(usize, &[u8])>> =
            lines.iter().filter(|line| line.len() == count).collect();
        if rows.len() * 2 <= lines.len() {
            return None;
        }
        let all =
            |index: usize, is: &dyn Fn(&[u8]) -> bool| rows.iter().all(|row| is(row[index].1));
        let some =
            |index: usize, is: &dyn Fn(&[u8]) -> bool| rows.iter().any(|row| is(row[index].1));
        // `R`, `W` and `D` are actions and flags. Only Q, I and C are surely actions.
        let action = (0..count).find(|&index| {
            all(index, &|text| ACTIONS.contains(&text))
                && some(index, &|text| matches!(text, b"Q" | b"I" | b"C"))
        })?;
        let flags = (0..count).find(|&index| {
            index != action
                && all(index, &is_flags)
                && some(index, &|text| matches!(text[0], b'R' | b'W'))
        })?;
        let time = (0..count).find(|&index| all(index, &is_time))?;
        let device = (0..count).find(|&index| all(index, &|text| device_of(text).is_some()));
        let numbers: Vec<usize> = (0..count)
            .filter(|&index| all(index, &|text| number(text).is_some()))
            .collect();
        let behind = action.max(flags);
        let after: Vec<usize> = numbers
            .iter()
            .copied()
            .filter(|&index| index > behind)
            .collect();
        let (start, length) = match (&after[..], &numbers[..]) {
            // Behind the action and the flags, or the last two numbers of a format that ends with
            // the action.
            ([start, length, ..], _) | ([], [.., start, length]) => (*start, *length),
            _ => return None,
        };
        let lengths = || rows.iter().filter_map(|row| number(row[length].1));
        let in_bytes = lengths().any(|length| length > 0)
            // Lengths in sectors are hardly all multiples of 512, which is 256 KiB.
            && lengths().all(|length| length.is_multiple_of(SECTOR));
        Some(FieldPlaces {
            commas,
            count,
            action,
            flags,
            time,
            start,
            length,
            unit: if in_bytes { 1 } else { SECTOR },
            device,
        })
    }

    /// Says which fields were taken.
    pub(super) fn note(&self) -> String {
        let unit = if self.unit == 1 { "bytes" } else { "sectors" };
        format!(
            "lines of blkparse -f: field {} is taken as the action, {} as the flags, {} as the time in s, {} as the sector, {} as the length in {unit}",
            self.action + 1,
            self.flags + 1,
            self.time + 1,
            self.start + 1,
            self.length + 1,
        )
    }

    /// Parses a line; `None` if the event does not concern requests.
    pub(super) fn event(&self, line: &[u8]) -> Parsed<Option<KernelEvent>> {
        let fields = fields(line, self.commas);
        if fields.len() != self.count {
            return Err(Box::new(Mismatch {
                column: 0,
                found: format!("{} fields", fields.len()),
                expected: format!("{} fields, as the first lines have", self.count),
            }));
        }
        let action = match fields[self.action].1 {
            b"Q" => Action::Queue,
            b"I" => Action::Insert,
            b"D" => Action::Issue,
            b"R" => Action::Requeue,
            b"C" => Action::Complete,
            _ => return Ok(None),
        };
        let mismatch = |index: usize, expected: &str| {
            let (column, text) = fields[index];
            Box::new(Mismatch {
                column,
                found: excerpt(text),
                expected: expected.to_owned(),
            })
        };
        let whole = |index: usize, expected: &str| {
            number(fields[index].1).ok_or_else(|| mismatch(index, expected))
        };
        let start = whole(self.start, "a sector number")?;
        let length = whole(self.length, "a number of sectors or bytes")?;
        let sectors = length.div_ceil(SECTOR / self.unit);
        let mut time = LineFields::new(fields[self.time].1);
        let time = time
            // The error is made anew below, with the place in the whole line.
            .decimal(9, "")
            .map_err(|_| mismatch(self.time, "a time in seconds"))?;
        let device = match self.device {
            Some(index) => device_of(fields[index].1)
                .ok_or_else(|| mismatch(index, "a device's `major,minor`"))?,
            None => 0,
        };
        Ok(
            operation_of_flags(fields[self.flags].1, sectors).map(|operation| KernelEvent {
                action,
                time,
                device,
                process: 0,
                operation,
                start,
                sectors,
                place: 0,
            }),
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::formats::blkparse::FORMAT;
    use crate::formats::blktrace::testing::rows_of;

    /// Returns arrival, start, sectors and completion of each request.
    fn told(text: &str) -> Vec<(u64, u64, u64, Option<u64>)> {
        let rows = rows_of(&FORMAT, text.as_bytes()).unwrap();
        rows.iter()
            .map(|row| (row.arrival, row.start, row.sectors, row.completed))
            .collect()
    }

    #[test]
    fn fields_in_another_order_are_told_apart() {
        let expected = [
            (1000, 64, 8, Some(5_001_000)),
            (2000, 800, 16, Some(9_000_000)),
        ];
        for text in [
            // -f "%T.%t %c %a %d %S %n\n"
            "0.000001000 3 Q W 64 8\n0.000002000 3 Q R 800 16\n0.005001000 0 C W 64 8\n0.009000000 0 C R 800 16\n",
            // -f "%D %a %T.%t %d %S + %N [%C]\n"
            "8,0 Q 0.000001000 W 64 + 4096 [dd]\n8,0 Q 0.000002000 R 800 + 8192 [dd]\n\
             8,0 C 0.005001000 W 64 + 4096 [0]\n8,0 C 0.009000000 R 800 + 8192 [0]\n",
            // -f "%T.%t,%p,%a,%d,%S,%n\n"
            "0.000001000,99,Q,W,64,8\n0.000002000,99,Q,R,800,16\n0.005001000,0,C,W,64,8\n0.009000000,0,C,R,800,16\n",
            // -f "%S %n %d %a %T.%t\n"
            "64 8 W Q 0.000001000\n800 16 R Q 0.000002000\n64 8 W C 0.005001000\n800 16 R C 0.009000000\n",
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    #[test]
    fn a_damaged_line_is_named() {
        let text = "0.1 Q W 64 8\n0.2 C W 64 8\n0.3 Q W x 8\n0.4 C W 64 8\n0.5 Q W 64 8\n";
        assert!(rows_of(&FORMAT, text.as_bytes()).is_err());
    }
}
