//! HP SRT: traces of HP-UX systems by Hewlett-Packard Laboratories (cello, snake, hplajw; 1992 to
//! 1999), as used by DiskSim.
//!
//! The file begins with a text header. The format is recognised by its first word, `$$TR_IOREC`.
//! The header ends with the byte 0x0c. Records of big-endian 32-bit words follow. Block numbers
//! count in sectors of the size that the header gives for each disk.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::TracePlace;
use crate::fault::TraceFault;
use crate::fields::excerpt;
use crate::input::Input;
use crate::row::{Parser, TraceRow, sectors_of_bytes};
use fullstroke_contract::Operation;
use std::collections::BTreeMap;

pub(super) const FORMAT: Format = Format {
    name: "hp-srt",
    summary: "HP SRT binary: HP-UX workstations and servers of the 1990s, with the disks' geometry in the header",
    columns: "size (bytes of the record), version << 16 | type (1 = a request; others are left out), arrival (s), \
              arrival (us), issue (us after arrival), completion (us after arrival), length (bytes), block number \
              (in the header's sector size), device (bits 8 to 15), driver type, cylinder, flags (bit 0 = read), \
              further information, [queue length]",
    counted: PlaceUnit::Bytes,
    detect,
    open,
};

const MAGIC: &[u8] = b"$$TR_IOREC";
/// Last byte of the header.
const HEADER_END: u8 = 0x0c;
/// Largest size of a header.
const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the words at the beginning of every record: size and type.
const BEGIN_BYTES: usize = 8;
/// Used bytes of a request's record.
const REQUEST_BYTES: usize = 48;
/// Largest size of a record.
const RECORD_BYTES_MAX: usize = 4096;
/// Type of a request's record.
const REQUEST: u32 = 1;
const SECOND_NS: u64 = 1_000_000_000;
const MICROSECOND_NS: u64 = 1000;

fn detect(head: &TraceHead<'_>) -> Confidence {
    if head.bytes.starts_with(MAGIC) {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault> {
    let bytes = input.peek(HEADER_BYTES_MAX)?;
    if !bytes.starts_with(MAGIC) {
        let found = excerpt(bytes);
        return Err(TraceFault::broken(
            TracePlace::Byte(0),
            found,
            "a header that begins with `$$TR_IOREC`",
        ));
    }
    let Some(length) = memchr::memchr(HEADER_END, bytes) else {
        let found = format!("no byte 0x0c among the first {} bytes", bytes.len());
        return Err(TraceFault::broken(
            TracePlace::Byte(bytes.len() as u64),
            found,
            "a header that ends with it",
        ));
    };
    let sector_bytes = sector_sizes(&bytes[..length]);
    if sector_bytes.is_empty() {
        let place = TracePlace::Byte(length as u64);
        return Err(TraceFault::broken(
            place,
            "a header without sector sizes",
            "`sectorsize = ...` for each disk",
        ));
    }
    input.consume(length + 1);
    Ok(Box::new(HpSrt { sector_bytes }))
}

/// Returns the sector size in bytes of each disk in the header, by number. A disk is `number -> {
/// ... }` within `disks = { ... }`.
fn sector_sizes(header: &[u8]) -> BTreeMap<u32, u64> {
    let mut sizes = BTreeMap::new();
    let (mut depth, mut disk) = (0i32, None);
    for line in header.split(|&byte| byte == b'\n') {
        let line = unquoted(line);
        let mut words = line
            .split(|byte| !byte.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let opens = line.iter().filter(|&&byte| byte == b'{').count();
        let closes = line.iter().filter(|&&byte| byte == b'}').count();
        if depth == 1 && opens > closes {
            // Depth 1 is inside `disks = {`; deeper braces belong to the description of one disk.
            disk = number(first);
        }
        if first == b"sectorsize"
            && let (Some(disk), Some(size)) =
                (disk, words.next().and_then(number).filter(|&size| size > 0))
        {
            sizes.insert(disk, u64::from(size));
        }
        depth += opens as i32 - closes as i32;
    }
    sizes
}

/// Returns `line` up to its first quotation mark, because quoted texts may contain braces.
fn unquoted(line: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'"', line).unwrap_or(line.len());
    &line[..end]
}

fn number(word: &[u8]) -> Option<u32> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

struct HpSrt {
    /// Sector size in bytes, by disk.
    sector_bytes: BTreeMap<u32, u64>,
}

impl Parser for HpSrt {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        for _ in 0..limit {
            let place = input.offset();
            let begin = input.peek(BEGIN_BYTES)?;
            let length = match begin.len() {
                0 => return Ok(false),
                BEGIN_BYTES => record_bytes(begin, place)?,
                // Fewer bytes than a record begins with: `bytes` then reports the cut record.
                _ => BEGIN_BYTES,
            };
            let Some(record) = input.bytes(length, "record")? else {
                return Ok(false);
            };
            // The upper 16 bits are the version of the record.
            if word(record, 1) & 0xffff == REQUEST {
                rows.push(self.row(record, place)?);
            }
        }
        Ok(true)
    }
}

/// Returns the length in bytes of the record that begins with `begin`. An impossible size is a
/// fault that ends the reading, because the beginning of the next record is unknown.
fn record_bytes(begin: &[u8], place: u64) -> Result<usize, TraceFault> {
    let length = word(begin, 0) as usize;
    let least = if word(begin, 1) & 0xffff == REQUEST {
        REQUEST_BYTES
    } else {
        BEGIN_BYTES
    };
    if (least..=RECORD_BYTES_MAX).contains(&length) {
        return Ok(length);
    }
    let expected = format!("a size from {least} to {RECORD_BYTES_MAX} bytes");
    Err(TraceFault::broken(
        TracePlace::Byte(place),
        format!("a record of {length} bytes"),
        expected,
    ))
}

fn word(record: &[u8], index: usize) -> u32 {
    let at = index * 4;
    u32::from_be_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

impl HpSrt {
    /// Parses the request of a whole record.
    fn row(&self, record: &[u8], place: u64) -> Result<TraceRow, TraceFault> {
        let damaged = |found: String, expected: &str| {
            TraceFault::row(TracePlace::Byte(place), found, expected)
        };
        let time = |index| u64::from(word(record, index)) * MICROSECOND_NS;
        let arrival = u64::from(word(record, 2)) * SECOND_NS + time(3);
        let device = word(record, 8) >> 8 & 0xff;
        let Some(sector_bytes) = self.sector_bytes.get(&device) else {
            return Err(damaged(
                format!("a request to disk {device}"),
                "a disk that the header describes",
            ));
        };
        let block = u64::from(word(record, 7));
        let extent = block
            // Blocks have the header's sector size, and a product beyond 2^64 bytes is damage.
            .checked_mul(*sector_bytes)
            .and_then(|at| sectors_of_bytes(at, word(record, 6).into()));
        let (start, sectors) = extent.ok_or_else(|| {
            damaged(
                format!("block {block}"),
                "a block that ends below 2^64 bytes",
            )
        })?;
        let operation = if word(record, 11) & 1 == 1 {
            Operation::Read
        } else {
            Operation::Write
        };
        Ok(TraceRow {
            device,
            issued: Some(arrival + time(4)),
            completed: Some(arrival + time(5)),
            place,
            ..TraceRow::new(arrival, operation, start, sectors)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::blktrace::testing::{rows_of, rows_of_shared};

    const HEADER: &[u8] = b"$$TR_IOREC-1.3 (made up)\0\nversion = 1.3;\ntitle = \"{\";\ndisks = {\n\
        0 -> {\n adaptor = 1 -> { scsi , 1.2 },\n sectorsize = 256,\n sections = {\n 8 -> {\n\"/\",\n}\n}\n},\n\
        1 -> {\n sectorsize = 512\n}\n};\n\x0c";

    fn record(kind: u32, device: u32, block: u32, flags: u32) -> Vec<u8> {
        let words = [
            56,
            4 << 16 | kind,
            2,
            30,
            10,
            400,
            1024,
            block,
            device << 8 | 7,
            4,
            0,
            flags,
            0,
            1,
        ];
        words.map(u32::to_be_bytes).concat()
    }

    #[test]
    fn blocks_are_counted_in_the_sector_size_of_their_disk() {
        let bytes = [
            HEADER,
            &record(1, 0, 3, 1),
            &record(9, 0, 3, 1),
            &record(1, 1, 3, 0),
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
        let times = |row: TraceRow| TraceRow {
            issued: Some(2_000_040_000),
            completed: Some(2_000_430_000),
            ..row
        };
        let (arrival, begin) = (2_000_030_000, HEADER.len() as u64);
        let expected = [
            TraceRow {
                place: begin,
                ..times(TraceRow::new(arrival, Operation::Read, 1, 3))
            },
            TraceRow {
                place: begin + 112,
                device: 1,
                ..times(TraceRow::new(arrival, Operation::Write, 3, 2))
            },
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_damaged_record_is_named_by_its_byte() {
        let bytes = [HEADER, &record(1, 0, 3, 1), &record(1, 5, 3, 1)].concat();
        let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, &bytes) else {
            panic!("no fault")
        };
        assert_eq!(problem.place, TracePlace::Byte(HEADER.len() as u64 + 56));
        let mut bytes = [HEADER, &record(1, 0, 3, 1)].concat();
        bytes[HEADER.len() + 3] = 40;
        let Err(TraceFault::Broken(problem)) = rows_of(&FORMAT, &bytes) else {
            panic!("no fault")
        };
        assert_eq!(problem.found, "a record of 40 bytes");
    }

    #[test]
    fn a_header_or_record_that_is_cut_off_is_a_fault() {
        let bytes = [HEADER, &record(1, 0, 3, 1)].concat();
        for end in [20, HEADER.len() - 1] {
            assert!(
                matches!(rows_of(&FORMAT, &bytes[..end]), Err(TraceFault::Broken(_))),
                "{end}"
            );
        }
        for end in [HEADER.len() + 4, bytes.len() - 1] {
            assert!(
                matches!(rows_of(&FORMAT, &bytes[..end]), Err(TraceFault::Row(_))),
                "{end}"
            );
        }
        assert!(matches!(
            rows_of(&FORMAT, b"$$TR_IOREC\n\x0c"),
            Err(TraceFault::Broken(_))
        ));
        assert!(matches!(
            rows_of(&FORMAT, b"no header"),
            Err(TraceFault::Broken(_))
        ));
    }

    #[test]
    fn the_shared_trace_has_its_documented_requests_within_the_disk() {
        let Some(rows) = rows_of_shared(&FORMAT, "hpl/ajw.1week.srt.gz") else {
            return;
        };
        assert_eq!(rows.len(), 44_519);
        // 1449 cylinders of 8 tracks of 113 sectors of 256 bytes.
        assert!(
            rows.iter()
                .all(|row| row.start + row.sectors <= 1449 * 8 * 113 / 2)
        );
    }
}
