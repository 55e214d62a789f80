//! fio's I/O logs, as written by `write_iolog` and replayed by `read_iolog`.
//!
//! The format is recognised by the first line, `fio version 2 iolog` or `fio version 3 iolog`.
//! Version 2 has times only in `wait` lines, so all requests between two `wait` lines arrive
//! together. In version 3 each line begins with a time, in us since fio 3.3x. Earlier versions
//! wrote ms, and the contents do not show the difference. Such logs are read with the format
//! `fio-ms`.

use super::{Confidence, Format, PlaceUnit, TraceHead, bad_header};
use crate::fault::TraceFault;
use crate::fields::{LineFields, Parsed, excerpt};
use crate::input::Input;
use crate::row::{LineParser, LineRows, Parser, TraceRow, byte_range};
use fullstroke_contract::Operation;
use std::collections::HashMap;

pub(super) const FORMAT: Format = Format {
    name: "fio",
    summary: "fio iolog, versions 2 (with waits) and 3 (times in us; use fio-ms for times in ms)",
    columns: "version 2: file, action, offset (bytes), length (bytes); `file wait us` puts the requests behind it \
              that much later than those before. Version 3: time (us), file, action, offset, length. Actions: add, \
              open, close (no requests), read, write, trim (a discard), sync, datasync, sync_file_range, syncfs (flushes). \
              The device is the file's number in order of appearance, from 0",
    counted: PlaceUnit::Lines,
    detect,
    open,
};

pub(super) const VERSION_2: &[u8] = b"fio version 2 iolog";
pub(super) const VERSION_3: &[u8] = b"fio version 3 iolog";
const MICROSECOND_NS: u64 = 1000;
/// Longest name of a file; fio reads 256 bytes.
const NAME_BYTES_MAX: usize = 256;
/// Largest number of files. Names are kept, and memory must be bounded.
const FILES_MAX: usize = 65_536;

fn detect(head: &TraceHead<'_>) -> Confidence {
    let first = head.lines().next().map(<[u8]>::trim_ascii_end);
    if first == Some(VERSION_2) || first == Some(VERSION_3) {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault> {
    let first = input.line()?.unwrap_or_default().trim_ascii_end();
    if first == VERSION_2 {
        return Ok(Box::new(LineRows(IoLog::new(TimeSource::Waits { now: 0 }))));
    }
    if first == VERSION_3 {
        return Ok(Box::new(LineRows(IoLog::new(TimeSource::Times {
            unit_ns: MICROSECOND_NS,
        }))));
    }
    Err(bad_header(
        first,
        "`fio version 2 iolog` or `fio version 3 iolog`",
    ))
}

/// Source of the times.
pub(super) enum TimeSource {
    /// `wait` lines; `now` is their sum so far in ns.
    Waits { now: u64 },
    /// First field of each line.
    Times { unit_ns: u64 },
}

/// Parser of the lines below the first line.
pub(super) struct IoLog {
    clock: TimeSource,
    /// Number of each file seen so far.
    files: HashMap<Box<[u8]>, u32>,
}

impl IoLog {
    pub(super) fn new(clock: TimeSource) -> IoLog {
        IoLog {
            clock,
            files: HashMap::new(),
        }
    }

    /// Returns the number of the file whose name comes next.
    fn file(&mut self, fields: &mut LineFields<'_>) -> Parsed<u32> {
        fields.spaces();
        let before = fields.clone();
        let name = fields.word();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(before.mismatch("a file's name of at most 256 bytes"));
        }
        if let Some(&number) = self.files.get(name) {
            return Ok(number);
        }
        // Cannot fail: there are at most `FILES_MAX` files.
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        if self.files.len() == FILES_MAX {
            return Err(before.mismatch("one of the first 65536 files"));
        }
        self.files.insert(name.into(), number);
        Ok(number)
    }

    /// Returns the time of the line; in version 2, of the last `wait`.
    fn time(&self, fields: &mut LineFields<'_>) -> Parsed<u64> {
        match self.clock {
            TimeSource::Waits { now } => Ok(now),
            TimeSource::Times { unit_ns } => {
                let before = fields.clone();
                let time = fields.integer("a time in whole units")?;
                fields.separator_of_spaces()?;
                // A time in the unit of the log may exceed 64 bits of nanoseconds.
                time.checked_mul(unit_ns)
                    .ok_or_else(|| before.mismatch("a time within 584 years"))
            }
        }
    }

    /// Delays the following requests.
    fn wait(&mut self, fields: &mut LineFields<'_>) -> Parsed<()> {
        let TimeSource::Waits { now } = &mut self.clock else {
            return Err(fields.mismatch("no `wait`, which version 3 does not have"));
        };
        fields.separator_of_spaces()?;
        let before = fields.clone();
        let wait = fields.integer("a wait in us")?.checked_mul(MICROSECOND_NS);
        *now = wait
            .and_then(|wait| now.checked_add(wait))
            .ok_or_else(|| before.mismatch("waits within 584 years"))?;
        Ok(())
    }
}

/// Action of a line.
enum Action {
    File,
    Wait,
    Request(Operation),
}

fn action(fields: &mut LineFields<'_>) -> Parsed<Action> {
    fields.spaces();
    let before = fields.clone();
    match fields.word() {
        b"read" => Ok(Action::Request(Operation::Read)),
        b"write" => Ok(Action::Request(Operation::Write)),
        b"trim" => Ok(Action::Request(Operation::Discard)),
        b"sync" | b"datasync" | b"sync_file_range" | b"syncfs" => {
            Ok(Action::Request(Operation::Flush))
        }
        b"wait" => Ok(Action::Wait),
        b"add" | b"open" | b"close" => Ok(Action::File),
        _ => Err(before
            .mismatch("an action: add, open, close, wait, read, write, trim, sync or datasync")),
    }
}

impl LineParser for IoLog {
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        // The header of the next log of a file of several logs.
        if matches!(self.clock, TimeSource::Times { .. }) && line.trim_ascii_end() == VERSION_3
            || matches!(self.clock, TimeSource::Waits { .. }) && line.trim_ascii_end() == VERSION_2
        {
            return Ok(None);
        }
        let mut fields = LineFields::new(line);
        fields.spaces();
        let arrival = self.time(&mut fields)?;
        let device = self.file(&mut fields)?;
        match action(&mut fields)? {
            Action::File => Ok(None),
            Action::Wait => self.wait(&mut fields).map(|()| None),
            // The offset and length of a flush, if present, have no meaning.
            Action::Request(Operation::Flush) => Ok(Some(TraceRow {
                device,
                ..TraceRow::new(arrival, Operation::Flush, 0, 0)
            })),
            Action::Request(operation) => {
                let (start, sectors) = extent(&mut fields)?;
                Ok(Some(TraceRow {
                    device,
                    ..TraceRow::new(arrival, operation, start, sectors)
                }))
            }
        }
    }
}

/// Parses offset and length, to the end of the line.
fn extent(fields: &mut LineFields<'_>) -> Parsed<(u64, u64)> {
    fields.separator_of_spaces()?;
    let offset = fields.whole("an offset in bytes")?;
    fields.separator_of_spaces()?;
    let before = fields.clone();
    let length = fields.whole("a length in bytes")?;
    let extent = byte_range(&before, offset, length)?;
    fields.end()?;
    Ok(extent)
}

/// Reads the first line of a log of version 3. Any other first line is a fault.
pub(super) fn version_3(input: &mut Input<'_>) -> Result<(), TraceFault> {
    let first = input.line()?.unwrap_or_default().trim_ascii_end();
    if first == VERSION_3 {
        return Ok(());
    }
    let expected = format!("{}, which has times in ms", excerpt(VERSION_3));
    Err(bad_header(first, &expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TracePlace;
    use crate::formats::blktrace::testing::rows_of;

    #[test]
    fn waits_of_version_2_add_up() {
        let text = b"fio version 2 iolog\r\n/dev/sda add\n/dev/sda open\n/dev/sda read 4096 512\n\
            /dev/sda wait 250 0\n/dev/sdb write 100 1024\n/dev/sda wait 50\n/dev/sda trim 0 1024\n\
            /dev/sda datasync 0 0\n/dev/sda close\n";
        assert_eq!(
            detect(&TraceHead {
                name: "",
                bytes: text
            }),
            Confidence::Certain
        );
        let rows = rows_of(&FORMAT, text).unwrap();
        let expected = [
            TraceRow {
                place: 4,
                ..TraceRow::new(0, Operation::Read, 8, 1)
            },
            TraceRow {
                place: 6,
                device: 1,
                ..TraceRow::new(250_000, Operation::Write, 0, 3)
            },
            TraceRow {
                place: 8,
                ..TraceRow::new(300_000, Operation::Discard, 0, 2)
            },
            TraceRow {
                place: 9,
                ..TraceRow::new(300_000, Operation::Flush, 0, 0)
            },
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn times_of_version_3_are_microseconds() {
        let text = b"fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n1500 /dev/sda write 0 4096\n2000 /dev/sda sync\n";
        let rows = rows_of(&FORMAT, text).unwrap();
        let expected = [
            TraceRow {
                place: 4,
                ..TraceRow::new(1_500_000, Operation::Write, 0, 8)
            },
            TraceRow {
                place: 5,
                ..TraceRow::new(2_000_000, Operation::Flush, 0, 0)
            },
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn an_error_names_line_and_column() {
        for (text, column) in [
            (&b"fio version 3 iolog\n5 a wait 100 0\n"[..], 9),
            (b"fio version 3 iolog\n5 a read 100\n", 13),
            (b"fio version 3 iolog\n5 a erase 0 512\n", 5),
            (b"fio version 3 iolog\na read 0 512\n", 1),
            (
                b"fio version 3 iolog\n18446744073709551615 a read 0 512\n",
                1,
            ),
            (
                b"fio version 2 iolog\na read 18446744073709551615 512\n",
                29,
            ),
            (b"fio version 2 iolog\na wait -3\n", 8),
            (b"fio version 2 iolog\na\n", 2),
        ] {
            let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, text) else {
                panic!("no fault")
            };
            assert_eq!(
                problem.place,
                TracePlace::Line { line: 2, column },
                "{}",
                text.escape_ascii()
            );
        }
    }

    #[test]
    fn other_versions_are_refused() {
        for text in [&b"fio version 4 iolog\n"[..], b"read, 0, 512\n", b""] {
            assert!(matches!(rows_of(&FORMAT, text), Err(TraceFault::Broken(_))));
            assert_eq!(
                detect(&TraceHead {
                    name: "",
                    bytes: text
                }),
                Confidence::No
            );
        }
    }

    #[test]
    fn there_are_not_more_files_than_memory_has_room_for() {
        let mut text = b"fio version 2 iolog\n".to_vec();
        for file in 0..=FILES_MAX {
            text.extend(format!("{file} add\n").into_bytes());
        }
        let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, &text) else {
            panic!("no fault")
        };
        assert_eq!(
            problem.place,
            TracePlace::Line {
                line: FILES_MAX as u64 + 2,
                column: 1
            }
        );
    }
}
