//! fio's logs of latencies and rates, one row for each request: `write_lat_log`, `write_bw_log` and
//! `write_iops_log`.
//!
//! Only the name of a log (`job_clat.1.log`) tells which quantity it holds. Times are in whole ms
//! and are taken when the row is written: at completion, or at issue for submission latencies.
//! Offsets exist only with `log_offset=1`.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::TracePlace;
use crate::fault::TraceFault;
use crate::fields::{LineFields, Parsed, excerpt};
use crate::input::Input;
use crate::row::{LineParser, LineRows, Parser, TraceRow, byte_range};
use fullstroke_contract::Operation;

pub(super) const FORMAT: Format = Format {
    name: "fio-log",
    summary: "fio's lat, clat, slat, bw and iops logs, one row per request (log_offset=1 for addresses)",
    columns: "time (ms), value (latencies in ns, as fio 3 writes them), direction (0 read, 1 write, 2 trim), block size \
              (bytes), offset (bytes; with log_offset=1), priority. The file's name tells the value: _lat and _clat are \
              counted back from the time to the arrival, _slat to the arrival from the issue; of _bw and _iops the time \
              is taken for the arrival. Averages (log_avg_msec) are no requests",
    counted: PlaceUnit::Lines,
    detect,
    open,
};

const MILLISECOND_NS: u64 = 1_000_000;
/// Number of bytes examined to find the columns.
const HEAD_BYTES: usize = 64 * 1024;
const REMEDY: &str = "run fio with write_lat_log and log_offset=1, or with write_iolog";

/// Quantity in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoggedQuantity {
    Total,
    Completion,
    Submission,
    Rate,
}

impl LoggedQuantity {
    /// Returns the quantity, from the name of the log.
    fn of(name: &str) -> LoggedQuantity {
        let values = [
            ("_slat", LoggedQuantity::Submission),
            ("_clat", LoggedQuantity::Completion),
            ("_bw", LoggedQuantity::Rate),
            ("_iops", LoggedQuantity::Rate),
        ];
        values
            .into_iter()
            .find(|(part, _)| name.contains(part))
            // `_lat` is the latency from submission to completion. A renamed log is read as one,
            // too.
            .map_or(LoggedQuantity::Total, |(_, value)| value)
    }
}

/// One row.
struct FioLogRow {
    time_ns: u64,
    value: u64,
    operation: Operation,
    bytes: u64,
    /// Columns behind the block size.
    further: [Option<u64>; 2],
}

/// Parses `time, value, direction, block size` and the following columns.
fn sample(line: &[u8]) -> Parsed<FioLogRow> {
    let mut fields = LineFields::new(line);
    fields.spaces();
    let time = fields.integer("a time in ms")?;
    let time_ns = time
        .checked_mul(MILLISECOND_NS)
        .ok_or_else(|| fields.mismatch("a time within 584 years"))?;
    separator(&mut fields)?;
    let value = fields.integer("a latency in ns or a rate")?;
    separator(&mut fields)?;
    let operation = match fields.peek() {
        Some(b'0') => Operation::Read,
        Some(b'1') => Operation::Write,
        Some(b'2') => Operation::Discard,
        _ => return Err(fields.mismatch("a direction: 0 (read), 1 (write) or 2 (trim)")),
    };
    fields.skip(1);
    separator(&mut fields)?;
    let bytes = fields.integer("a block size in bytes")?;
    let mut further = [None; 2];
    for column in &mut further {
        fields.spaces();
        if fields.is_end() {
            break;
        }
        separator(&mut fields)?;
        *column = Some(number(&mut fields)?);
    }
    // Further columns are ignored: later versions append columns, such as the time of issue.
    Ok(FioLogRow {
        time_ns,
        value,
        operation,
        bytes,
        further,
    })
}

/// Skips a comma and a space. fio writes a space behind each comma, which tells its logs from
/// others.
fn separator(fields: &mut LineFields<'_>) -> Parsed<()> {
    fields.byte(b',')?;
    fields.separator_of_spaces()
}

/// Parses an offset or a priority. A hexadecimal priority is returned as 0.
fn number(fields: &mut LineFields<'_>) -> Parsed<u64> {
    if fields.rest().starts_with(b"0x") {
        fields.until(b',');
        // A priority must not look like an offset, which `open` sees in a number above 1.
        return Ok(0);
    }
    fields.integer("an offset in bytes or a priority")
}

fn detect(head: &TraceHead<'_>) -> Confidence {
    let sizes = FioLog {
        value: LoggedQuantity::Total,
        has_offsets: false,
        any_size: true,
    };
    head.understood_by(sizes, Confidence::Likely)
}

fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault> {
    let name = input
        .path()
        .and_then(|path| path.file_name())
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let value = LoggedQuantity::of(name);
    let head = TraceHead {
        name: "",
        bytes: input.peek(HEAD_BYTES)?,
    };
    let samples: Vec<FioLogRow> = head.lines().filter_map(|line| sample(line).ok()).collect();
    if let (Some(first), Some(line)) = (samples.first(), head.lines().next())
        && first.bytes == 0
    {
        let expected =
            "a row for each request; averages have block size 0: run fio without log_avg_msec";
        return Err(TraceFault::broken(
            TracePlace::Line { line: 1, column: 0 },
            excerpt(line),
            expected,
        ));
    }
    // Logs with six columns have an offset. With five columns, the last is an offset before fio
    // 3.20 or so, and a priority (at most 1 in those versions) since then.
    let has_offsets = samples.iter().any(|sample| {
        sample.further[1].is_some() || sample.further[0].is_some_and(|number| number > 1)
    });
    Ok(Box::new(FioLogRows {
        lines: LineRows(FioLog {
            value,
            has_offsets,
            any_size: false,
        }),
        value,
        has_offsets,
    }))
}

struct FioLogRows {
    lines: LineRows<FioLog>,
    value: LoggedQuantity,
    has_offsets: bool,
}

impl Parser for FioLogRows {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        self.lines.read(input, rows, limit)
    }

    fn notes(&self) -> Vec<String> {
        let note = match self.value {
            LoggedQuantity::Rate => {
                "arrivals are the times of completion, because a log of rates has no other times"
            }
            LoggedQuantity::Completion => {
                "arrivals are the times of issue: the log has completion latencies only"
            }
            LoggedQuantity::Total | LoggedQuantity::Submission => return Vec::new(),
        };
        vec![note.to_owned()]
    }

    fn lacks_addresses(&self) -> Option<&'static str> {
        (!self.has_offsets).then_some(REMEDY)
    }
}

struct FioLog {
    value: LoggedQuantity,
    has_offsets: bool,
    /// True to accept rows of size 0, which is needed to recognise logs of averages.
    any_size: bool,
}

impl LineParser for FioLog {
    fn row(&mut self, line: &[u8]) -> Parsed<Option<TraceRow>> {
        let sample = sample(line)?;
        let offset = if self.has_offsets {
            sample.further[0].unwrap_or(0)
        } else {
            0
        };
        let end = LineFields::new(line);
        let bytes = sample.bytes.max(u64::from(self.any_size));
        let (start, sectors) = byte_range(&end, offset, bytes)?;
        let (now, value) = (sample.time_ns, sample.value);
        // The clock has whole ms, so the time may be less than the latency.
        let arrival = if self.value == LoggedQuantity::Rate {
            now
        } else {
            now.saturating_sub(value)
        };
        // The sum of a damaged row may exceed the range.
        let later = arrival.saturating_add(value);
        let (issued, completed) = match self.value {
            LoggedQuantity::Total => (None, Some(later)),
            LoggedQuantity::Completion => (Some(arrival), Some(later)),
            LoggedQuantity::Submission => (Some(later), None),
            LoggedQuantity::Rate => (None, None),
        };
        Ok(Some(TraceRow {
            issued,
            completed,
            ..TraceRow::new(arrival, sample.operation, start, sectors)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::blktrace::testing::{rows_in, rows_of};
    use crate::{input, source};

    #[test]
    fn a_latency_is_counted_back_from_its_completion() {
        let rows = rows_of(
            &FORMAT,
            b"7, 5519586, 0, 4096, 1011712, 0\n8, 192567, 1, 512, 512, 0x0000\n",
        )
        .unwrap();
        let first = TraceRow::new(1_480_414, Operation::Read, 1976, 8);
        let second = TraceRow::new(7_807_433, Operation::Write, 1, 1);
        let expected = [
            TraceRow {
                completed: Some(7_000_000),
                place: 1,
                ..first
            },
            TraceRow {
                completed: Some(8_000_000),
                place: 2,
                ..second
            },
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_name_of_a_log_tells_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        for (name, arrival, issued, completed) in [
            ("job_lat.1.log", 5_000_000, None, Some(7_000_000)),
            (
                "job_clat.1.log",
                5_000_000,
                Some(5_000_000),
                Some(7_000_000),
            ),
            ("job_slat.1.log", 5_000_000, Some(7_000_000), None),
            ("job_bw.1.log", 7_000_000, None, None),
            ("job_iops.1.log", 7_000_000, None, None),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, "7, 2000000, 2, 4096, 8192, 0\n").unwrap();
            let mut input = source::open(&path, input::BUFFER_BYTES).unwrap();
            let rows = rows_in(&FORMAT, &mut input).unwrap();
            let row = TraceRow {
                issued,
                completed,
                place: 1,
                ..TraceRow::new(arrival, Operation::Discard, 16, 8)
            };
            assert_eq!(rows, [row], "{name}");
        }
    }

    #[test]
    fn offsets_are_told_from_priorities() {
        for (text, offsets) in [
            (&b"7, 5, 0, 4096\n"[..], false),
            (b"7, 5, 0, 4096, 0\n8, 5, 0, 4096, 1\n", false),
            (b"7, 5, 0, 4096, 0x4000\n", false),
            (b"7, 5, 0, 4096, 0\n8, 5, 0, 4096, 8192\n", true),
            (b"7, 5, 0, 4096, 0, 0\r\n", true),
            (b"7, 5, 0, 4096, 0, 0, 123456\n", true),
        ] {
            assert_eq!(
                detect(&TraceHead {
                    name: "",
                    bytes: text
                }),
                Confidence::Likely,
                "{}",
                text.escape_ascii()
            );
            let mut input = source::unpack(text, None, input::BUFFER_BYTES).unwrap();
            assert_eq!(
                open(&mut input).unwrap().lacks_addresses().is_none(),
                offsets
            );
        }
    }

    #[test]
    fn averages_are_refused() {
        let text = b"1, 103037, 0, 0, 0\n2, 34119, 0, 0, 0\n";
        assert_eq!(
            detect(&TraceHead {
                name: "",
                bytes: text
            }),
            Confidence::Likely
        );
        let Err(TraceFault::Broken(problem)) = rows_of(&FORMAT, text) else {
            panic!("no fault")
        };
        assert!(problem.expected.contains("log_avg_msec"), "{problem:?}");
    }

    #[test]
    fn an_error_names_line_and_column() {
        for (text, column) in [
            (&b"7, 5, 3, 4096\n"[..], 7),
            (b"-7, 5, 0, 4096\n", 1),
            (b"7,5,0,4096\n", 3),
        ] {
            let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, text) else {
                panic!("no fault")
            };
            assert_eq!(problem.place, TracePlace::Line { line: 1, column });
        }
    }
}
