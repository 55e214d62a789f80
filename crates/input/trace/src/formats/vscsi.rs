//! Binary files of VMware's vscsiStats, as in the CloudPhysics traces.
//!
//! Versions 1 (32 bytes a record) and 2 (40 bytes) exist, both little-endian. There is no magic
//! number. A file is recognised by the version and by SCSI commands in its first records.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::TracePlace;
use crate::fault::TraceFault;
use crate::input::Input;
use crate::row::{Parser, TraceRow};
use fullstroke_contract::Operation;
use fullstroke_units::SECTOR_BYTES;

pub(super) const FORMAT: Format = Format {
    name: "vscsi",
    summary: "VMware vscsiStats binary, versions 1 and 2: disks of virtual machines, times in us",
    columns: "version 1: serial, length (bytes), scatter-gather entries, command, version, first sector, time (us); \
              version 2: command, version, serial, length, scatter-gather entries, first sector, time (us), response \
              (us; 0 = unknown). Commands are those of SCSI; ones that move no data are left out, but for \
              SYNCHRONIZE CACHE, which is a flush",
    counted: PlaceUnit::Bytes,
    detect,
    open,
};

const MICROSECOND_NS: u64 = 1000;
/// Number of records examined to recognise the format.
const RECORDS_DETECTED: usize = 64;

/// Layout of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Used fields of a record.
struct RecordFields {
    command: u16,
    version: u16,
    length: u32,
    start: u64,
    time_us: u64,
    response_us: u64,
}

impl Version {
    fn record_bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    /// Returns the high byte of the version field.
    fn number(self) -> u16 {
        match self {
            Version::One => 1,
            Version::Two => 2,
        }
    }

    /// Returns the version of a file beginning with `bytes`.
    fn of(bytes: &[u8]) -> Option<Version> {
        [Version::One, Version::Two].into_iter().find(|version| {
            let first = bytes
                .get(..version.record_bytes())
                .map(|record| version.fields(record));
            first.is_some_and(|fields| version.fits(&fields))
        })
    }

    fn fits(self, fields: &RecordFields) -> bool {
        fields.version >> 8 == self.number() && is_command(fields.command)
    }

    /// Parses the fields of a whole record.
    fn fields(self, record: &[u8]) -> RecordFields {
        match self {
            Version::One => RecordFields {
                command: u16_at(record, 12),
                version: u16_at(record, 14),
                length: u32_at(record, 4),
                start: u64_at(record, 16),
                time_us: u64_at(record, 24),
                response_us: 0,
            },
            Version::Two => RecordFields {
                command: u16_at(record, 0),
                version: u16_at(record, 2),
                length: u32_at(record, 8),
                start: u64_at(record, 16),
                time_us: u64_at(record, 24),
                response_us: u64_at(record, 32),
            },
        }
    }
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from(u16_at(record, at)) | u32::from(u16_at(record, at + 2)) << 16
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from(u32_at(record, at)) | u64::from(u32_at(record, at + 4)) << 32
}

/// Returns true if `command` can be sent to a disk: an operation code of one byte.
fn is_command(command: u16) -> bool {
    command <= 0xff
}

/// Returns the operation of a SCSI command; `None` if the command neither moves data nor flushes.
pub(super) fn operation_of(command: u16) -> Option<Operation> {
    match command {
        // READ (6), (10), (12), (16).
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Operation::Read),
        // WRITE (6), (10), (12), (16); WRITE AND VERIFY (10), (12), (16).
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Some(Operation::Write),
        // SYNCHRONIZE CACHE (10), (16).
        0x35 | 0x91 => Some(Operation::Flush),
        _ => None,
    }
}

fn detect(head: &TraceHead<'_>) -> Confidence {
    if head.is_text() {
        return Confidence::No;
    }
    let Some(version) = Version::of(head.bytes) else {
        return Confidence::No;
    };
    let records = head
        .bytes
        .chunks_exact(version.record_bytes())
        .take(RECORDS_DETECTED);
    let mut moving = false;
    for fields in records.map(|record| version.fields(record)) {
        if !version.fits(&fields) {
            return Confidence::No;
        }
        // Without a magic number, records that move no data are too weak a sign.
        moving |= operation_of(fields.command).is_some();
    }
    if moving {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault> {
    let first = input.peek(Version::Two.record_bytes())?;
    let Some(version) = Version::of(first) else {
        let found = crate::fields::excerpt(first);
        let expected = "a vscsi record of version 1 (32 bytes) or 2 (40 bytes) with a SCSI command";
        return Err(TraceFault::broken(TracePlace::Byte(0), found, expected));
    };
    Ok(Box::new(Vscsi { version }))
}

struct Vscsi {
    version: Version,
}

impl Parser for Vscsi {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        for _ in 0..limit {
            let place = input.offset();
            let Some(record) = input.bytes(self.version.record_bytes(), "record")? else {
                return Ok(false);
            };
            let fields = self.version.fields(record);
            rows.extend(self.row(&fields, place)?);
        }
        Ok(true)
    }
}

impl Vscsi {
    /// Returns the request of the record at `place`; `None` if the record is not a request.
    fn row(&self, fields: &RecordFields, place: u64) -> Result<Option<TraceRow>, TraceFault> {
        let damaged = |found: String, expected: &str| {
            Err(TraceFault::row(TracePlace::Byte(place), found, expected))
        };
        if !self.version.fits(fields) {
            let found = format!(
                "command {:#x} and version {:#x}",
                fields.command, fields.version
            );
            let expected = format!(
                "a SCSI command below 0x100 and version {:#x}",
                self.version.number() << 8
            );
            return damaged(found, &expected);
        }
        let Some(operation) = operation_of(fields.command) else {
            return Ok(None);
        };
        // The time is in microseconds since 1970, and a product beyond the range is damage.
        let Some(arrival) = fields.time_us.checked_mul(MICROSECOND_NS) else {
            return damaged(
                format!("a time of {} us", fields.time_us),
                "a time within 584 years",
            );
        };
        let (start, sectors) = match operation {
            Operation::Flush => (0, 0),
            _ => (
                fields.start,
                u64::from(fields.length).div_ceil(SECTOR_BYTES),
            ),
        };
        // A damaged response stays at the top instead of refusing the row.
        let response = fields.response_us.saturating_mul(MICROSECOND_NS);
        let completed = (response > 0).then(|| arrival.saturating_add(response));
        Ok(Some(TraceRow {
            completed,
            place,
            ..TraceRow::new(arrival, operation, start, sectors)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::blktrace::testing::{rows_of, rows_of_shared};

    fn first(command: u16, start: u64, time_us: u64) -> Vec<u8> {
        let mut record = [7u32, 4096, 1].map(u32::to_le_bytes).concat();
        record.extend([command, 0x0100].map(u16::to_le_bytes).concat());
        record.extend([start, time_us].map(u64::to_le_bytes).concat());
        record
    }

    fn second(command: u16, start: u64, time_us: u64, response_us: u64) -> Vec<u8> {
        let mut record = [command, 0x0200].map(u16::to_le_bytes).concat();
        record.extend([7u32, 513, 1].map(u32::to_le_bytes).concat());
        record.extend([start, time_us, response_us].map(u64::to_le_bytes).concat());
        record
    }

    #[test]
    fn records_of_version_1_are_32_bytes() {
        let bytes = [
            first(0x28, 64, 5),
            first(0x00, 0, 6),
            first(0x35, 9, 7),
            first(0x8a, 72, 8),
        ]
        .concat();
        assert_eq!(
            detect(&TraceHead {
                name: "",
                bytes: &bytes
            }),
            Confidence::Certain
        );
        let rows = rows_of(&FORMAT, &bytes).unwrap();
        let expected = [
            TraceRow {
                place: 0,
                ..TraceRow::new(5000, Operation::Read, 64, 8)
            },
            TraceRow {
                place: 64,
                ..TraceRow::new(7000, Operation::Flush, 0, 0)
            },
            TraceRow {
                place: 96,
                ..TraceRow::new(8000, Operation::Write, 72, 8)
            },
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn records_of_version_2_are_40_bytes_and_know_the_response() {
        let bytes = [second(0x2a, 64, 5, 0), second(0x08, 1, 6, 250)].concat();
        assert_eq!(
            detect(&TraceHead {
                name: "",
                bytes: &bytes
            }),
            Confidence::Certain
        );
        let rows = rows_of(&FORMAT, &bytes).unwrap();
        let expected = [
            TraceRow::new(5000, Operation::Write, 64, 2),
            TraceRow {
                place: 40,
                completed: Some(256_000),
                ..TraceRow::new(6000, Operation::Read, 1, 2)
            },
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_damaged_record_is_named_by_its_byte() {
        for (damaged, expected) in [
            (first(0x128, 0, 6), "0x100"),
            (first(0x28, 0, u64::MAX), "584 years"),
        ] {
            let Err(TraceFault::Row(problem)) =
                rows_of(&FORMAT, &[first(0x28, 0, 5), damaged].concat())
            else {
                panic!("no fault")
            };
            assert_eq!(problem.place, TracePlace::Byte(32));
            assert!(problem.expected.contains(expected), "{problem:?}");
        }
    }

    #[test]
    fn a_record_that_is_cut_off_is_a_fault() {
        let bytes = [first(0x28, 0, 5), first(0x28, 0, 6)].concat();
        assert!(matches!(
            rows_of(&FORMAT, &bytes[..50]),
            Err(TraceFault::Row(_))
        ));
        assert!(matches!(
            rows_of(&FORMAT, &bytes[..20]),
            Err(TraceFault::Broken(_))
        ));
        assert_eq!(
            detect(&TraceHead {
                name: "",
                bytes: &[0; 4096]
            }),
            Confidence::No
        );
    }

    #[test]
    fn the_shared_trace_has_its_documented_requests() {
        let Some(rows) = rows_of_shared(&FORMAT, "vscsi/cloudPhysicsIO.vscsi.gz") else {
            return;
        };
        assert_eq!(rows.len(), 113_872);
        let reads = rows
            .iter()
            .filter(|row| row.operation == Operation::Read)
            .count();
        assert_eq!(reads, 46_974);
    }
}
