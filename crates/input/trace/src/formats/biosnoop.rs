//! Output of biosnoop, a tool of bcc, of bcc's libbpf-tools and of bpftrace.
//!
//! The header names the columns: `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] [P] LAT(ms)`. The
//! time is the time of completion, the latency begins with the issue to the device, and the queue time
//! (option `-Q`) ends there (bcc `tools/biosnoop.py`, `trace_req_completion`). The name of a program
//! may have spaces inside. `biosnoop.bt` of bpftrace prints neither addresses nor sizes.

use super::csv::CsvRows;
use super::{Confidence, Format, PlaceUnit, TraceHead, bad_header};
use crate::columns::ColumnMap;
use crate::fault::TraceFault;
use crate::input::Input;
use crate::row::Parser;

pub(super) const FORMAT: Format = Format {
    name: "biosnoop",
    summary: "biosnoop of bcc and libbpf-tools: one line a completed request",
    columns: "TIME(s) (the completion), COMM (ignored), PID, DISK (the device), T (R, W, ...), SECTOR (512 bytes), \
              BYTES, LAT(ms) (from issue to completion); where they are there: QUE(ms) (from arrival to issue), \
              PATTERN (ignored)",
    counted: PlaceUnit::Lines,
    detect,
    open,
};

/// Columns of bpftrace's script, which is recognised and refused.
const OF_BPFTRACE: &str = "bcc's columns TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms): bpftrace's biosnoop.bt prints \
                           neither addresses nor sizes; record with bcc's biosnoop-bpfcc, or with blktrace";

/// Returns true if the line is the header of biosnoop.
pub(super) fn is_header(line: &[u8]) -> bool {
    let names: Vec<&[u8]> = words(line).collect();
    let has = |name: &[u8]| names.contains(&name);
    names
        .first()
        .is_some_and(|first| first.starts_with(b"TIME"))
        && has(b"COMM")
        && has(b"PID")
        && names.iter().any(|name| name.starts_with(b"LAT("))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|word| !word.is_empty())
}

/// Returns true if the header has addresses.
fn has_addresses(line: &[u8]) -> bool {
    let has = |name: &[u8]| words(line).any(|word| word == name);
    has(b"SECTOR") && has(b"BYTES") && has(b"T")
}

/// Lines in front of the header, such as `Tracing block I/O... Hit Ctrl-C to end.`
const LINES_BEFORE_MAX: usize = 8;

fn detect(head: &TraceHead<'_>) -> Confidence {
    if head.lines().take(LINES_BEFORE_MAX).any(is_header) {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault> {
    let head = TraceHead {
        name: "",
        bytes: input.peek(64 * 1024)?,
    };
    let mut before = 0;
    let mut lines = head
        .bytes
        .split(|&byte| byte == b'\n')
        .take(2 * LINES_BEFORE_MAX);
    let header = loop {
        match lines.next() {
            Some(line) if is_header(line) => break line,
            Some(_) => before += 1,
            None => {
                let first = head.lines().next().unwrap_or_default();
                return Err(bad_header(first, OF_BPFTRACE));
            }
        }
    };
    if !has_addresses(header) {
        return Err(bad_header(header.trim_ascii(), OF_BPFTRACE));
    }
    for _ in 0..before {
        input.line()?;
    }
    Ok(Box::new(CsvRows::open(input, &ColumnMap::default())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::blktrace::testing::rows_of;
    use fullstroke_contract::Operation;

    #[test]
    fn the_arrival_lies_before_the_completion() {
        let text = b"Tracing block device I/O... Hit Ctrl-C to end.\n\
            TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   QUE(ms) LAT(ms)\n\
            0.000004    Web Content    1950    sda       W 13092560   4096      0.10    0.74\n\
            0.100178    kworker/u8:1-e 77      sdb       RA 13092432  8192      0.00    5.61\n";
        let rows = rows_of(&FORMAT, text).unwrap();
        let base = 86_400_000_000_000;
        assert_eq!(rows[0].completed, Some(base + 4000));
        assert_eq!(rows[0].arrival, base + 4000 - 840_000);
        assert_eq!(rows[0].issued, Some(base + 4000 - 740_000));
        assert_eq!(
            (rows[0].start, rows[0].sectors, rows[0].process),
            (13_092_560, 8, 1950)
        );
        assert_eq!((rows[1].operation, rows[1].device), (Operation::Read, 1));
    }

    #[test]
    fn rows_without_a_disk_and_the_end_of_a_terminal_are_left_out() {
        let text = b"TIME(s)        COMM           PID    DISK    T  SECTOR    BYTES   LAT(ms)\n\
            0.000000       ?              0              R  -1        8         0.23\n\
            2.016202       ?              0              R  18446744073709551615 8         0.24\n\
            3.016202       x              5      sda     W  77        8192      0.24\n\
            4.016202       x              5      sda     FF 18446744073709551615 0 0.24\n^C\n";
        let rows = rows_of(&FORMAT, text).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].start, rows[0].sectors), (77, 16));
        assert_eq!(rows[1].operation, Operation::Flush);
    }

    #[test]
    fn every_set_of_columns_is_read() {
        for (header, row) in [
            (
                "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)",
                "0.1 app 7 sda W 8 4096 0.7",
            ),
            (
                "TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)",
                "0.1 app 7 sda W 8 4096 0.0 0.7",
            ),
            (
                "TIME(s) COMM PID DISK T SECTOR BYTES P LAT(ms)",
                "0.1 app 7 sda W 8 4096 R 0.7",
            ),
            (
                "TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) P LAT(ms)",
                "0.1 app 7 sda W 8 4096 0.0 S 0.7",
            ),
            (
                "TIME(s) COMM PID DISK T SECTOR BYTES PATTERN LAT(ms)",
                "0.1 app 7 sda W 8 4096 RAND 0.7",
            ),
        ] {
            let text = format!("{header}\n{row}\n");
            let rows = rows_of(&FORMAT, text.as_bytes()).unwrap();
            assert_eq!(rows.len(), 1, "{header}");
            let response = rows[0].completed.unwrap() - rows[0].arrival;
            assert_eq!(
                (rows[0].start, rows[0].sectors, response),
                (8, 8, 700_000),
                "{header}"
            );
        }
    }

    #[test]
    fn columns_of_bpftrace_are_refused_with_a_word() {
        let text = b"Attaching 4 probes...\nTIME(ms)     DISK    COMM           PID    LAT(ms)\n611 nvme0n1 bash 4179 10\n";
        let Err(TraceFault::Broken(problem)) = rows_of(&FORMAT, text) else {
            panic!("it has no addresses")
        };
        assert!(
            problem.expected.contains("neither addresses nor sizes"),
            "{problem:?}"
        );
    }
}
