//! Binary files of blktrace: events of the Linux block layer, one file for each processor.
//!
//! The parser reads versions 7 (48 bytes before the payload) and 8 (64 bytes), of either byte
//! order. The magic number of each record tells version and byte order. Together with a file called
//! `name.blktrace.0`, the files of the other processors are read and merged by time (a packed file
//! ends in `.gz`, `.zst` or `.xz`). If some of these files are missing or empty, only their events
//! are missing, and a note says so. After a damaged record, reading continues at the next magic
//! number. A record cut off at the end of a file counts as damaged.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::events::processors::Processors;
use crate::events::{Action, KernelEvent, Matcher};
use crate::fault::TraceFault;
use crate::fields::excerpt;
use crate::input::{BUFFER_BYTES, Input, InputFile};
use crate::row::{Parser, TraceRow};
use crate::{FileSource, TraceError, TracePlace, processor_files, source};
use fullstroke_contract::Operation;
use fullstroke_units::SECTOR_BYTES;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

pub(super) const FORMAT: Format = Format {
    name: "blktrace",
    summary: "blktrace binary, versions 7 and 8: Linux block layer events, one file per processor",
    columns: "magic, sequence, time (ns), sector, bytes, action, process, device (major << 20 | minor), processor, \
              error, payload. A request arrives with its Q event (I or D where the trace has none), is issued with D \
              and complete with C; messages and pass-through commands are ignored. The files of the other \
              processors (name.blktrace.N) are merged in",
    counted: PlaceUnit::Bytes,
    detect,
    open,
};

/// Size of a record in bytes, without its payload.
// `struct blk_io_trace` of include/uapi/linux/blktrace_api.h: 48 bytes. Version 8 widens the action
// to 64 bits.
const RECORD_V7_BYTES: usize = 48;
const RECORD_V8_BYTES: usize = 64;
/// Buffer size for the file of each further processor.
const SIBLING_BUFFER_BYTES: usize = 64 * 1024;
/// Largest number of files to merge, which bounds the memory for buffers.
const PROCESSORS_MAX: usize = 512;
/// Largest processor number in a file's name. A larger number does not mean a processor, because
/// Linux's `NR_CPUS` is at most 8,192.
const PROCESSOR_MAX: u32 = 8192;

/// Layout of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordLayout {
    big_endian: bool,
    wide: bool,
}

impl RecordLayout {
    /// Returns the layout, from the record's first bytes.
    fn of(bytes: &[u8]) -> Option<RecordLayout> {
        let (big_endian, version) = match *bytes.get(..4)? {
            // `BLK_IO_TRACE_MAGIC` is 0x65617400, and the version is added to it.
            [version, 0x74, 0x61, 0x65] => (false, version),
            [0x65, 0x61, 0x74, version] => (true, version),
            _ => return None,
        };
        matches!(version, 7 | 8).then_some(RecordLayout {
            big_endian,
            wide: version == 8,
        })
    }

    fn record_bytes(self) -> usize {
        if self.wide {
            RECORD_V8_BYTES
        } else {
            RECORD_V7_BYTES
        }
    }

    fn u16(self, record: &[u8], at: usize) -> u16 {
        let bytes = [record[at], record[at + 1]];
        if self.big_endian {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    fn u32(self, record: &[u8], at: usize) -> u32 {
        let (first, second) = (self.u16(record, at).into(), self.u16(record, at + 2).into());
        let (high, low): (u32, u32) = if self.big_endian {
            (first, second)
        } else {
            (second, first)
        };
        high << 16 | low
    }

    fn u64(self, record: &[u8], at: usize) -> u64 {
        let (first, second) = (self.u32(record, at).into(), self.u32(record, at + 4).into());
        let (high, low): (u64, u64) = if self.big_endian {
            (first, second)
        } else {
            (second, first)
        };
        high << 32 | low
    }

    /// Returns the number of bytes behind the record.
    fn payload_bytes(self, record: &[u8]) -> usize {
        // `pdu_len`, the last field of either version.
        self.u16(record, if self.wide { 50 } else { 46 }).into()
    }

    /// Returns device, processor and sequence number of a whole record. Returns `None` for a
    /// notice, which the kernel does not number (`trace_note`).
    fn source(self, record: &[u8]) -> Option<(u32, u32, u64)> {
        // `BLK_TC_NOTIFY`, shifted by `BLK_TC_SHIFT`.
        const NOTIFY: u32 = 0x400 << 16;
        let (action, device, processor) = if self.wide {
            (self.u64(record, 32) as u32, 40, 44)
        } else {
            (self.u32(record, 28), 36, 40)
        };
        let sequence = u64::from(self.u32(record, 4));
        (action & NOTIFY == 0).then(|| {
            (
                self.u32(record, device),
                self.u32(record, processor),
                sequence,
            )
        })
    }

    /// Returns the event of a whole record; `None` if it does not concern requests.
    fn event(self, record: &[u8]) -> Option<KernelEvent> {
        let (action, process, device) = if self.wide {
            (
                self.u64(record, 32),
                self.u32(record, 28),
                self.u32(record, 40),
            )
        } else {
            (
                self.u32(record, 28).into(),
                self.u32(record, 32),
                self.u32(record, 36),
            )
        };
        // Lengths are in bytes; a request with a part of a sector takes the whole sector.
        let sectors = u64::from(self.u32(record, 24)).div_ceil(SECTOR_BYTES);
        Some(KernelEvent {
            action: action_of(action)?,
            time: self.u64(record, 8),
            device,
            process,
            operation: operation_of(action >> 16, sectors)?,
            start: self.u64(record, 16),
            sectors,
            place: 0,
        })
    }
}

/// Returns the kind of an event; `None` if it does not concern requests.
fn action_of(action: u64) -> Option<Action> {
    // Bit 8 tells that the payload begins with a control group.
    match action & 0xff {
        1 => Some(Action::Queue),
        6 => Some(Action::Requeue),
        7 => Some(Action::Issue),
        8 => Some(Action::Complete),
        12 => Some(Action::Insert),
        _ => None,
    }
}

/// Returns the operation for an event's categories.
fn operation_of(categories: u64, sectors: u64) -> Option<Operation> {
    // `BLK_TC_WRITE` and the other categories of blktrace_api.h.
    const WRITE: u64 = 0x2;
    const FLUSH: u64 = 0x4;
    const PASS_THROUGH: u64 = 0x200;
    const NOTIFY: u64 = 0x400;
    const DISCARD: u64 = 0x2000;
    let has = |category| categories & category != 0;
    if has(PASS_THROUGH | NOTIFY) {
        return None;
    }
    if sectors == 0 {
        return has(FLUSH).then_some(Operation::Flush);
    }
    // A discard is marked as a write too, so discards are tested first.
    Some(if has(DISCARD) {
        Operation::Discard
    } else if has(WRITE) {
        Operation::Write
    } else {
        Operation::Read
    })
}

fn detect(head: &TraceHead<'_>) -> Confidence {
    if RecordLayout::of(head.bytes).is_some() {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

fn open(input: &mut Input<'_>) -> Result<Box<dyn Parser>, TraceFault> {
    let first = input.peek(4)?;
    // An empty file is fine, because the first processor may have seen no event.
    if !first.is_empty() && RecordLayout::of(first).is_none() {
        let found = excerpt(first);
        return Err(TraceFault::broken(TracePlace::Byte(0), found, EXPECTED));
    }
    let (siblings, missing) = match input.file() {
        Some(path) => siblings(path)?,
        None => (Vec::new(), None),
    };
    let files = siblings.len() + 1;
    // In reverse, because `catch_up` takes the last entry first: file 0 is read first.
    let behind = (0..files).rev().collect();
    let mut matcher = Matcher::default();
    if missing
        .as_ref()
        .is_some_and(|missing: &Vec<u32>| !missing.is_empty())
    {
        matcher.expect_losses();
    }
    Ok(Box::new(BlkTrace {
        siblings,
        missing,
        matcher,
        ahead: vec![None; files],
        behind,
        ..BlkTrace::default()
    }))
}

const EXPECTED: &str =
    "a blktrace record of version 7 or 8 (magic number 0x65617407 or 0x65617408)";

/// File of a further processor.
struct ProcessorFile {
    file: String,
    input: Input<'static>,
}

/// Returns the files of the other processors beside the file at `place`, and the processors below
/// the last one that have no file. Returns `None` if the file's name has no processor number.
fn siblings(place: &InputFile) -> Result<(Vec<ProcessorFile>, Option<Vec<u32>>), TraceFault> {
    let mut files = processor_files::files_of_same_trace(&place.files, &place.path)?;
    let Some(&last) = files.keys().next_back() else {
        return Ok((Vec::new(), None));
    };
    if files.len() > PROCESSORS_MAX || last > PROCESSOR_MAX {
        let found = format!(
            "the files of {} processors up to number {last}",
            files.len()
        );
        let expected = format!("at most {PROCESSORS_MAX}, and no number above {PROCESSOR_MAX}");
        return Err(TraceFault::broken(TracePlace::Byte(0), found, expected));
    }
    let missing = (0..last)
        .filter(|processor| !files.contains_key(processor))
        .collect();
    // After the search for gaps, because the opened file counts there.
    files.retain(|_, file| *file != place.path);
    let siblings: Result<_, TraceFault> = files
        .into_values()
        .map(|path| open_sibling(&place.files, &path))
        .collect();
    Ok((siblings?, Some(missing)))
}

fn open_sibling(files: &FileSource, path: &Path) -> Result<ProcessorFile, TraceFault> {
    let file = path.display().to_string();
    match source::open_in(files, path, SIBLING_BUFFER_BYTES) {
        Ok(input) => Ok(ProcessorFile { file, input }),
        Err(TraceError::Read { source, .. }) => {
            Err(TraceFault::In(file, Box::new(TraceFault::Read(source))))
        }
        Err(other) => Err(TraceFault::In(
            file,
            Box::new(TraceFault::Read(std::io::Error::other(other))),
        )),
    }
}

/// Merges the events of all processors by time.
#[derive(Default)]
struct BlkTrace {
    siblings: Vec<ProcessorFile>,
    /// Processors whose file is missing; `None` if the trace is a single file.
    missing: Option<Vec<u32>>,
    processors: Processors,
    matcher: Matcher,
    /// Files with an event in `ahead`, by the time of this event.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    /// Next event of each file.
    ahead: Vec<Option<KernelEvent>>,
    /// Files whose next event must still be read. 0 is the opened file, 1 the first sibling.
    behind: Vec<usize>,
    finished: bool,
}

impl Parser for BlkTrace {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        // `rows` may hold rows already.
        let end = rows.len().saturating_add(limit);
        while rows.len() < end {
            self.catch_up(input)?;
            let Some(event) = self.next() else {
                if !self.finished {
                    self.matcher.finish(rows);
                    self.finished = true;
                }
                return Ok(false);
            };
            self.matcher.push(event, rows);
        }
        Ok(true)
    }

    fn is_of_events(&self) -> bool {
        true
    }

    fn notes(&self) -> Vec<String> {
        self.processors
            .notes(self.missing.as_deref(), &self.matcher)
    }
}

impl BlkTrace {
    /// Reads one event ahead from each file. After a fault in one file, the function can be called
    /// again and continues there.
    fn catch_up(&mut self, input: &mut Input<'_>) -> Result<(), TraceFault> {
        while let Some(&file) = self.behind.last() {
            let event = match file
                // File 0 is the first input, the siblings follow from 1.
                .checked_sub(1)
                .and_then(|sibling| self.siblings.get_mut(sibling))
            {
                Some(sibling) => next_event(&mut sibling.input, &mut self.processors)
                    .map_err(|fault| TraceFault::In(sibling.file.clone(), Box::new(fault)))?,
                None => next_event(input, &mut self.processors)?,
            };
            // Only after the event was read: after a fault the file is still behind, and the next
            // call goes on there.
            self.behind.pop();
            if let Some(event) = event {
                self.order.push(Reverse((event.time, file)));
                self.ahead[file] = Some(event);
            }
        }
        Ok(())
    }

    /// Returns the earliest event of all files.
    fn next(&mut self) -> Option<KernelEvent> {
        let Reverse((_, file)) = self.order.pop()?;
        self.behind.push(file);
        self.ahead[file].take()
    }
}

/// Returns the next event about requests.
fn next_event(
    input: &mut Input<'_>,
    processors: &mut Processors,
) -> Result<Option<KernelEvent>, TraceFault> {
    loop {
        let place = input.offset();
        let first = input.peek(4)?;
        if first.is_empty() {
            return Ok(None);
        }
        let Some(layout) = RecordLayout::of(first) else {
            if first.len() < 4 {
                // Reports the record that is cut off.
                input.bytes(RECORD_V7_BYTES, "record")?;
                continue;
            }
            let found = excerpt(first);
            resume(input)?;
            return Err(TraceFault::row(TracePlace::Byte(place), found, EXPECTED));
        };
        let Some(record) = input.bytes(layout.record_bytes(), "record")? else {
            return Ok(None);
        };
        let event = layout.event(record);
        if let Some((device, processor, sequence)) = layout.source(record) {
            processors.record_event(device, processor, sequence);
        }
        let payload = layout.payload_bytes(record);
        input.skip(payload, "payload of a record")?;
        if let Some(event) = event {
            return Ok(Some(KernelEvent { place, ..event }));
        }
    }
}

/// Skips to the next magic number, or to the end.
fn resume(input: &mut Input<'_>) -> Result<(), TraceFault> {
    input.consume(1);
    loop {
        let bytes = input.peek(BUFFER_BYTES)?;
        if let Some(found) = bytes
            .windows(4)
            .position(|window| RecordLayout::of(window).is_some())
        {
            input.consume(found);
            return Ok(());
        }
        // The last three bytes may be the beginning of a magic number.
        if bytes.len() < 4 {
            let left = bytes.len();
            input.consume(left);
            return Ok(());
        }
        let passed = bytes.len() - 3;
        input.consume(passed);
    }
}

/// Helpers for the tests of several formats.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use std::io::Cursor;

    /// Returns all rows of `bytes`, or the first fault.
    pub(in crate::formats) fn rows_of(
        format: &Format,
        bytes: &[u8],
    ) -> Result<Vec<TraceRow>, TraceFault> {
        let source = Cursor::new(bytes.to_vec());
        rows_in(format, &mut source::unpack(source, None, BUFFER_BYTES)?)
    }

    /// Returns all rows of `input`, or the first fault.
    pub(in crate::formats) fn rows_in(
        format: &Format,
        input: &mut Input<'_>,
    ) -> Result<Vec<TraceRow>, TraceFault> {
        let mut parser = (format.open)(input)?;
        let (mut rows, mut batch) = (Vec::new(), Vec::new());
        loop {
            let more = parser.read(input, &mut batch, 100)?;
            rows.append(&mut batch);
            if !more {
                return Ok(rows);
            }
        }
    }

    /// Returns the rows of a trace that lies beside the project. Returns `None` with a message if
    /// the trace is not there.
    pub(in crate::formats) fn rows_of_shared(format: &Format, file: &str) -> Option<Vec<TraceRow>> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../../../shared/traces")
            .join(file);
        if !path.exists() {
            eprintln!("skipped: {file} is not there");
            return None;
        }
        let mut input = source::open(&path, BUFFER_BYTES).unwrap();
        let bytes = input.peek(64 * 1024).unwrap();
        let certain = (format.detect)(&TraceHead { name: file, bytes });
        assert!(certain >= Confidence::Possible, "{file} is not recognised");
        Some(rows_in(format, &mut input).unwrap())
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{rows_in, rows_of, rows_of_shared};
    use super::*;

    const QUEUE: u64 = 0x11_0001;
    const ISSUE: u64 = 0x41_0007;
    const COMPLETE: u64 = 0x81_0008;
    const WRITE: u64 = 0x2_0000;

    const LAYOUTS: [RecordLayout; 4] = [
        RecordLayout {
            big_endian: false,
            wide: false,
        },
        RecordLayout {
            big_endian: true,
            wide: false,
        },
        RecordLayout {
            big_endian: false,
            wide: true,
        },
        RecordLayout {
            big_endian: true,
            wide: true,
        },
    ];

    /// Returns the bytes of numbers, given as value and width.
    fn encode(layout: RecordLayout, numbers: &[(u64, usize)]) -> Vec<u8> {
        let bytes = |&(value, width): &(u64, usize)| {
            let (big, little) = (value.to_be_bytes(), value.to_le_bytes());
            if layout.big_endian {
                big[8 - width..].to_vec()
            } else {
                little[..width].to_vec()
            }
        };
        numbers.iter().flat_map(bytes).collect()
    }

    fn record(
        layout: RecordLayout,
        time: u64,
        sector: u64,
        bytes: u64,
        action: u64,
        payload: &[u8],
    ) -> Vec<u8> {
        let length = (payload.len() as u64, 2);
        let begin = |version: u64| {
            [
                (0x6561_7400 | version, 4),
                (1, 4),
                (time, 8),
                (sector, 8),
                (bytes, 4),
            ]
        };
        let (process, device) = ((77, 4), (8 << 20, 4));
        let mut record = if layout.wide {
            let numbers = [
                &begin(8)[..],
                &[process, (action, 8), device, (0, 4), (0, 2), length],
            ]
            .concat();
            [encode(layout, &numbers), vec![0; 12]].concat()
        } else {
            let numbers = [
                &begin(7)[..],
                &[(action, 4), process, device, (0, 4), (0, 2), length],
            ]
            .concat();
            encode(layout, &numbers)
        };
        record.extend_from_slice(payload);
        record
    }

    fn request(layout: RecordLayout, sector: u64) -> Vec<u8> {
        [
            record(layout, 100 + sector, sector, 4096, QUEUE, b"a payload"),
            record(layout, 200 + sector, sector, 4096, ISSUE, b""),
            record(layout, 300 + sector, sector, 4096, COMPLETE, b""),
        ]
        .concat()
    }

    #[test]
    fn both_versions_and_byte_orders_tell_the_same_request() {
        for layout in LAYOUTS {
            let bytes = request(layout, 64);
            assert_eq!(
                detect(&TraceHead {
                    name: "",
                    bytes: &bytes
                }),
                Confidence::Certain
            );
            let rows = rows_of(&FORMAT, &bytes).unwrap();
            let expected = TraceRow {
                device: 8 << 20,
                process: 77,
                issued: Some(264),
                completed: Some(364),
                ..TraceRow::new(164, Operation::Read, 64, 8)
            };
            assert_eq!(rows, [expected], "{layout:?}");
        }
    }

    #[test]
    fn categories_tell_the_operation() {
        for (categories, sectors, operation) in [
            (0x1, 8, Some(Operation::Read)),
            (0x2, 8, Some(Operation::Write)),
            (0x2006, 8, Some(Operation::Discard)),
            (0x6, 8, Some(Operation::Write)),
            (0x4, 0, Some(Operation::Flush)),
            (0x1, 0, None),
            (0x401, 8, None),
            (0x201, 8, None),
        ] {
            assert_eq!(
                operation_of(categories, sectors),
                operation,
                "{categories:#x}"
            );
        }
        assert_eq!(action_of(QUEUE | 0x100), Some(Action::Queue));
    }

    #[test]
    fn a_record_that_is_cut_off_is_a_fault_at_its_byte() {
        let layout = LAYOUTS[0];
        let bytes = request(layout, 64);
        for end in [RECORD_V7_BYTES + 4, bytes.len() - 1] {
            let Err(TraceFault::Row(problem)) = rows_of(&FORMAT, &bytes[..end]) else {
                panic!("no fault")
            };
            assert!(problem.expected.contains("whole"), "{problem:?}");
        }
    }

    #[test]
    fn after_a_damaged_record_reading_goes_on_at_the_next_one() {
        let layout = LAYOUTS[0];
        let bytes = [
            request(layout, 0),
            b"rubbish".to_vec(),
            request(layout, 800),
        ]
        .concat();
        let mut input = source::unpack(std::io::Cursor::new(bytes), None, BUFFER_BYTES).unwrap();
        let (mut parser, mut rows) = (open(&mut input).unwrap(), Vec::new());
        let Err(TraceFault::Row(problem)) = parser.read(&mut input, &mut rows, 100) else {
            panic!("no fault")
        };
        assert_eq!(
            problem.place,
            TracePlace::Byte(request(layout, 0).len() as u64)
        );
        assert!(!parser.read(&mut input, &mut rows, 100).unwrap());
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn another_file_is_refused_at_once() {
        assert!(matches!(
            rows_of(&FORMAT, b"not a trace"),
            Err(TraceFault::Broken(_))
        ));
        assert_eq!(
            detect(&TraceHead {
                name: "",
                bytes: b"\x06tae"
            }),
            Confidence::No
        );
    }

    #[test]
    fn the_files_of_all_processors_are_merged_and_missing_ones_are_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let layout = LAYOUTS[0];
        let file = |name: &str| folder.path().join(name);
        // The completion was seen by another processor than the other events.
        let bytes = request(layout, 0);
        let split = bytes.len() - RECORD_V7_BYTES;
        std::fs::write(file("sda.blktrace.0"), &bytes[..split]).unwrap();
        std::fs::write(file("sda.blktrace.3"), &bytes[split..]).unwrap();
        std::fs::write(file("sda.blktrace.4"), b"").unwrap();
        std::fs::write(file("sdb.blktrace.1"), request(layout, 8)).unwrap();
        std::fs::write(file("sda.blktrace.txt"), b"no trace").unwrap();
        for opened in ["sda.blktrace.0", "sda.blktrace.3", "sda.blktrace.4"] {
            let mut input = source::open(&file(opened), BUFFER_BYTES).unwrap();
            let rows = rows_in(&FORMAT, &mut input).unwrap();
            let times: Vec<_> = rows
                .iter()
                .map(|row| (row.arrival, row.completed))
                .collect();
            assert_eq!(times, [(100, Some(300))], "{opened}");
        }
    }

    #[test]
    fn a_write_that_is_not_whole_sectors_is_widened() {
        let bytes = record(LAYOUTS[0], 1, 8, 513, WRITE | 1, b"");
        let rows = rows_of(&FORMAT, &bytes).unwrap();
        assert_eq!((rows[0].operation, rows[0].sectors), (Operation::Write, 2));
    }

    #[test]
    fn the_shared_trace_has_its_documented_requests() {
        let Some(rows) = rows_of_shared(&FORMAT, "blktrace/sample.blktrace.0.gz") else {
            return;
        };
        assert_eq!(rows.len(), 963);
        let complete = rows
            .iter()
            .filter(|row| row.issued.is_some() && row.completed.is_some());
        assert_eq!(complete.count(), 963);
    }
}
