//! Tests that results are true even if the events of a processor are missing.

use fullstroke_trace::{TraceOptions, TraceReader, TraceSummary};
use std::fs;
use std::path::{Path, PathBuf};

const QUEUE: u32 = 0x11_0001;
const ISSUE: u32 = 0x41_0007;
const COMPLETE: u32 = 0x81_0008;
const WRITE: u32 = 0x2_0000;
const PROCESSORS: u64 = 4;

/// A small random generator that gives the same numbers on every run (Knuth's MMIX).
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Files of a trace under construction, one for each processor.
#[derive(Default)]
struct ProcessorFiles {
    events: Vec<(u64, usize, u64, u32)>,
}

impl ProcessorFiles {
    fn event(&mut self, time: u64, processor: u64, sector: u64, action: u32) {
        self.events.push((time, processor as usize, sector, action));
    }

    /// Writes the files of the processors, without the `lost` ones.
    fn write(mut self, folder: &Path, lost: &[usize]) {
        self.events.sort_by_key(|event| event.0);
        let mut files = vec![Vec::new(); PROCESSORS as usize];
        let mut sequences = vec![0u32; PROCESSORS as usize];
        for (time, processor, sector, action) in self.events {
            sequences[processor] += 1;
            let file = &mut files[processor];
            file.extend_from_slice(&0x6561_7407u32.to_le_bytes());
            file.extend_from_slice(&sequences[processor].to_le_bytes());
            file.extend_from_slice(&time.to_le_bytes());
            file.extend_from_slice(&sector.to_le_bytes());
            for word in [4096, action, 77, 8 << 20, processor as u32, 0] {
                file.extend_from_slice(&u32::to_le_bytes(word));
            }
        }
        for (processor, bytes) in files
            .iter()
            .enumerate()
            .filter(|(processor, _)| !lost.contains(processor))
        {
            fs::write(folder.join(format!("sda.blktrace.{processor}")), bytes).unwrap();
        }
    }
}

/// Writes the trace of a disk under a file system. A request takes 3 ms on average. Every tenth
/// request goes to one of sixteen places of a journal, and no two requests are at one place at the
/// same time. A request is queued and issued on one processor, and another processor sees its
/// completion; processor 1 sees 56 % of the completions.
fn trace(folder: &Path, lost: &[usize]) {
    let (mut numbers, mut files) = (RandomNumbers(7), ProcessorFiles::default());
    let mut busy = [0u64; 16];
    for number in 0..20_000u64 {
        let arrival = number * 4_000_000 + numbers.below(2_000_000);
        let response = 1_000_000 + numbers.below(4_000_000);
        let journal = numbers.below(10) == 0;
        let place = numbers.below(16);
        let begin = if journal {
            arrival.max(busy[place as usize])
        } else {
            arrival
        };
        let sector = if journal {
            place * 8
        } else {
            1_000 + numbers.below(1 << 30) * 8
        };
        if journal {
            busy[place as usize] = begin + response + 1_000;
        }
        let from = if numbers.below(10) == 0 {
            1
        } else {
            numbers.below(2) * 2
        };
        let to = if numbers.below(100) < 56 {
            1
        } else {
            numbers.below(2) * 3
        };
        files.event(begin, from, sector, QUEUE | WRITE);
        files.event(begin + 10_000, from, sector, ISSUE | WRITE);
        files.event(begin + response, to, sector, COMPLETE | WRITE);
    }
    files.write(folder, lost);
}

fn summary(path: &Path, options: &TraceOptions) -> TraceSummary {
    let mut reader = TraceReader::open(path, options).unwrap();
    TraceSummary::of(&mut reader).unwrap()
}

#[test]
fn responses_of_a_trace_without_one_processors_file_are_those_of_the_whole_trace() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), &[]);
    let whole = summary(
        &folder.path().join("sda.blktrace.0"),
        &TraceOptions::default(),
    );
    assert_eq!((whole.requests, whole.completions.known), (20_000, 20_000));
    assert!(whole.notes.is_empty(), "{whole}");
    let truth = whole.response_ms.unwrap();

    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), &[1]);
    let part = summary(folder.path(), &TraceOptions::default());
    // With matching in order of the queue alone, the result was 416 ms on a trace of this kind.
    let response = part.response_ms.unwrap();
    assert!((response.mean / truth.mean - 1.0).abs() < 0.02, "{part}");
    assert!(response.max <= truth.max * 20.0, "{part}");
    let completions = part.completions;
    assert_eq!(
        completions.known + completions.unknown + completions.doubtful,
        part.requests
    );
    assert!(
        completions.unknown as f64 / part.requests as f64 > 0.5,
        "{part}"
    );
    assert!(
        completions.doubtful > 0 && completions.doubtful * 10 < completions.known,
        "{part}"
    );
    assert!(
        part.notes[0].contains("the file of processor 1 is missing"),
        "{part}"
    );
    assert!(part.to_string().contains("doubtful"), "{part}");
}

#[test]
fn a_blktrace_is_named_by_its_folder_or_without_a_number() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), &[]);
    let whole = summary(
        &folder.path().join("sda.blktrace.2"),
        &TraceOptions::default(),
    )
    .requests;
    for name in ["", "sda", "sda.blktrace"] {
        assert_eq!(
            summary(&folder.path().join(name), &TraceOptions::default()).requests,
            whole,
            "{name}"
        );
    }
    // The first processor's file is empty, or missing.
    fs::write(folder.path().join("sda.blktrace.0"), b"").unwrap();
    let named = summary(
        &folder.path().join("sda.blktrace.0"),
        &TraceOptions::default(),
    );
    assert_eq!(
        summary(folder.path(), &TraceOptions::default()).requests,
        named.requests
    );
    assert!(
        named
            .notes
            .iter()
            .all(|note| !note.contains("the file of processor")),
        "{named}"
    );
    fs::remove_file(folder.path().join("sda.blktrace.0")).unwrap();
    assert!(
        summary(&folder.path().join("sda"), &TraceOptions::default()).notes[0]
            .contains("the file of processor 0 is missing")
    );
    // The folder now has two traces, so its name is ambiguous.
    fs::copy(
        folder.path().join("sda.blktrace.1"),
        folder.path().join("sdb.blktrace.0"),
    )
    .unwrap();
    let error = TraceReader::open(folder.path(), &TraceOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("sda, ") && error.contains("sdb"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = TraceReader::open(empty.path(), &TraceOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("folder"), "{error}");
}

#[test]
fn a_file_that_is_cut_off_is_an_error_at_its_byte_or_a_row_to_skip() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path(), &[]);
    let path = folder.path().join("sda.blktrace.1");
    let bytes = fs::read(&path).unwrap();
    let kept = summary(&path, &TraceOptions::default());
    fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let mut reader = TraceReader::open(&path, &TraceOptions::default()).unwrap();
    let error = TraceSummary::of(&mut reader).unwrap_err().to_string();
    assert!(
        error.contains(&format!("byte {}", bytes.len() - 48)) && error.contains("--skip-bad"),
        "{error}"
    );
    let skipping = TraceOptions {
        skip_bad: 1,
        ..TraceOptions::default()
    };
    let part = summary(&path, &skipping);
    assert_eq!((part.requests, part.skipped_rows), (kept.requests, 1));
    // Fewer bytes than a magic number are left; and a packed file ends early.
    fs::write(&path, &bytes[..bytes.len() - 46]).unwrap();
    assert_eq!(summary(&path, &skipping).skipped_rows, 1);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, &bytes).unwrap();
    let packed = packer.finish().unwrap();
    let path = folder.path().join("cut.gz");
    fs::write(&path, &packed[..packed.len() * 3 / 4]).unwrap();
    let mut reader = TraceReader::open(&path, &TraceOptions::default()).unwrap();
    assert!(
        TraceSummary::of(&mut reader)
            .unwrap_err()
            .to_string()
            .contains("truncated")
    );
    let part = summary(&path, &skipping);
    assert_eq!(part.skipped_rows, 1);
    assert!(part.requests > 500, "{part}");
}

/// Returns the events of the shared sample.
fn shared_sample() -> Option<Vec<u8>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../../shared/traces/blktrace/sample.blktrace.0.gz");
    let Ok(packed) = fs::read(&path) else {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    };
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(
        &mut flate2::read::MultiGzDecoder::new(packed.as_slice()),
        &mut bytes,
    )
    .unwrap();
    Some(bytes)
}

#[test]
fn known_completions_of_the_shared_sample_stay_true_when_one_in_three_is_lost() {
    let Some(bytes) = shared_sample() else { return };
    let records = |bytes: Vec<u8>| {
        let source = Box::new(std::io::Cursor::new(bytes));
        let mut reader =
            TraceReader::open_read("sample", source, &TraceOptions::for_format("blktrace"))
                .unwrap();
        let mut records = Vec::new();
        reader.next_batch(&mut records, usize::MAX).unwrap();
        records
    };
    let truth = records(bytes.clone());
    let (mut kept, mut completions, mut rest) = (Vec::new(), 0, bytes.as_slice());
    while let Some(record) = rest.get(..48) {
        let length = 48 + usize::from(u16::from_le_bytes([record[46], record[47]]));
        let complete = record[28] == 8;
        completions += u32::from(complete);
        if !complete || completions % 3 != 0 {
            kept.extend_from_slice(&rest[..length]);
        }
        rest = &rest[length..];
    }
    let part = records(kept);
    assert_eq!(part.len(), truth.len());
    let known = part
        .iter()
        .zip(&truth)
        .filter(|(part, _)| part.completed.is_some());
    let wrong = known
        .clone()
        .filter(|(part, truth)| part.completed != truth.completed)
        .count();
    let known = known.count();
    assert!(known * 10 > part.len() * 5, "{known} of {}", part.len());
    assert_eq!(wrong, 0, "of {known} known");
}
