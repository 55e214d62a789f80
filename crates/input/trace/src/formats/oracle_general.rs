//! libCacheSim's oracleGeneral: objects with the times of their uses and of their next uses.
//!
//! The format has neither operations nor addresses, only numbers of objects. Each request becomes a
//! read of the sectors from the object's number on. This is correct only if the trace was made from
//! block numbers. Even then the trace suits only studies of addresses.
//!
//! There is no magic number. A file may be in this format if its first records are in order of time
//! and each object's next use lies in the future. A name with `oracleGeneral` makes the format
//! likely.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::TracePlace;
use crate::fault::TraceFault;
use crate::input::Input;
use crate::row::{Parser, TraceRow};
use fullstroke_contract::Operation;
use fullstroke_units::SECTOR_BYTES;

pub(super) const FORMAT: Format = Format {
    name: "oracle-general",
    summary: "libCacheSim oracleGeneral binary: for studies of addresses only (all requests are reads)",
    columns: "time (s), object (taken as the first sector), size (bytes), next access (ignored): 24 bytes, \
              little-endian",
    counted: PlaceUnit::Bytes,
    detect,
    open: |_| Ok(Box::new(OracleGeneral)),
};

const RECORD_BYTES: usize = 24;
const SECOND_NS: u64 = 1_000_000_000;
/// Number of sectors in 2^64 bytes. A larger object number is a digest of a name, not an address.
const OBJECTS: u64 = 1 << 55;
/// Number of records examined to recognise the format.
const RECORDS_DETECTED: usize = 256;
/// Largest request in the formats converted to this one.
const SIZE_DETECTED_MAX: u32 = 1 << 30;

/// One use of an object.
struct ObjectUse {
    seconds: u32,
    object: u64,
    size: u32,
    next: i64,
}

impl ObjectUse {
    /// Parses a whole record.
    fn of(record: &[u8]) -> ObjectUse {
        let number = |at: usize, count: usize| {
            record[at..at + count]
                .iter()
                .rev()
                .fold(0u64, |value, &byte| value << 8 | u64::from(byte))
        };
        ObjectUse {
            seconds: number(0, 4) as u32,
            // The record is packed: the object begins at byte 4.
            object: number(4, 8),
            size: number(12, 4) as u32,
            next: number(16, 8).cast_signed(),
        }
    }
}

fn detect(head: &TraceHead<'_>) -> Confidence {
    if head.is_text() {
        return Confidence::No;
    }
    let mut last = 0;
    let mut count = 0;
    for record in head.bytes.chunks_exact(RECORD_BYTES).take(RECORDS_DETECTED) {
        let access = ObjectUse::of(record);
        let sized = (1..=SIZE_DETECTED_MAX).contains(&access.size);
        // -1 and -2 mean never.
        let ahead = access.next > count || (-2..0).contains(&access.next);
        if !sized || !ahead || access.seconds < last {
            return Confidence::No;
        }
        last = access.seconds;
        count += 1;
    }
    match (
        count,
        head.name.to_ascii_lowercase().contains("oraclegeneral"),
    ) {
        (0, _) => Confidence::No,
        (_, true) => Confidence::Likely,
        (_, false) => Confidence::Possible,
    }
}

struct OracleGeneral;

impl Parser for OracleGeneral {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        for _ in 0..limit {
            let place = input.offset();
            let Some(record) = input.bytes(RECORD_BYTES, "record")? else {
                return Ok(false);
            };
            let access = ObjectUse::of(record);
            if access.object >= OBJECTS {
                let found = format!("object {}", access.object);
                let expected = "a number below 2^55, which can be a sector (digests of names are no addresses)";
                return Err(TraceFault::row(TracePlace::Byte(place), found, expected));
            }
            let arrival = u64::from(access.seconds) * SECOND_NS;
            let sectors = u64::from(access.size).div_ceil(SECTOR_BYTES);
            rows.push(TraceRow {
                place,
                ..TraceRow::new(arrival, Operation::Read, access.object, sectors)
            });
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::blktrace::testing::rows_of;

    fn record(seconds: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
        let mut record = seconds.to_le_bytes().to_vec();
        record.extend(object.to_le_bytes());
        record.extend(size.to_le_bytes());
        record.extend(next.to_le_bytes());
        record
    }

    #[test]
    fn an_object_is_read_from_the_sector_of_its_number_on() {
        let bytes = [record(3, 1000, 4096, 2), record(4, 1000, 513, -2)].concat();
        let rows = rows_of(&FORMAT, &bytes).unwrap();
        let expected = [
            TraceRow::new(3_000_000_000, Operation::Read, 1000, 8),
            TraceRow {
                place: 24,
                ..TraceRow::new(4_000_000_000, Operation::Read, 1000, 2)
            },
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_name_makes_likely_what_the_contents_leave_open() {
        let bytes = [record(3, 1000, 4096, 2), record(4, 1000, 513, -2)].concat();
        let sure = |name, bytes: &[u8]| detect(&TraceHead { name, bytes });
        assert_eq!(sure("w1.bin", &bytes), Confidence::Possible);
        assert_eq!(sure("w1.oracleGeneral.zst", &bytes), Confidence::Likely);
        assert_eq!(
            sure(
                "w1.bin",
                &[record(5, 1, 1, -1), record(4, 1, 1, -1)].concat()
            ),
            Confidence::No
        );
        assert_eq!(sure("w1.bin", &record(5, 1, 0, -1)), Confidence::No);
        assert_eq!(sure("w1.bin", b"short"), Confidence::No);
    }

    #[test]
    fn digests_and_records_that_are_cut_off_are_faults_at_their_byte() {
        let bytes = [record(3, 1000, 4096, 2), record(4, u64::MAX, 512, -2)].concat();
        let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, &bytes) else {
            panic!("no fault")
        };
        assert_eq!(problem.place, TracePlace::Byte(24));
        let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, &bytes[..23]) else {
            panic!("no fault")
        };
        assert_eq!(problem.expected, "a whole record");
    }
}
