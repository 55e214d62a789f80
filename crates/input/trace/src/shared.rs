//! Traces that are decoded once for several readers of one process.
//!
//! A comparison of stacks replays one trace many times. The first reader of a trace decodes the
//! file as a stream. From the second reader on, the records are decoded into memory once, and all
//! further readers take them from there. A trace is recognised by its files (name, length, time of
//! change) and by the options that select records. The volume is no part of these options, because
//! the addresses are moved into the volume when a reader takes a record.

use crate::options::{BeyondPolicy, FootprintPolicy, TraceOptions};
use crate::place::{DeviceSpans, PlaceFault, Placement};
use crate::{FileVersion, TraceError, TraceReader, TraceRecord, files_in};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest number of records of one decoded trace: about 150 MB.
const RECORDS_MAX: usize = 2_000_000;
/// Largest number of traces, decoded or only counted.
const TRACES_MAX: usize = 64;
/// Number of records decoded together.
const CHUNK_RECORDS: usize = 4096;

/// Identity of the records of a trace.
#[derive(Clone, Debug, PartialEq)]
struct SharedKey {
    files: Vec<(PathBuf, FileVersion)>,
    /// Options without the volume.
    options: TraceOptions,
}

impl SharedKey {
    /// Returns the key; `None` if a file is no plain file, or has changed just now.
    fn of(path: &Path, options: &TraceOptions) -> Option<SharedKey> {
        let mut files = Vec::new();
        for file in files_in(&options.files, path).ok()? {
            let version = options.files.version(&file)?;
            files.push((file, version));
        }
        let options = TraceOptions {
            capacity: None,
            beyond: BeyondPolicy::Reject,
            span: None,
            footprint: FootprintPolicy::Captured,
            seed: 0,
            ..options.clone()
        };
        Some(SharedKey { files, options })
    }
}

/// State of a reader behind a record.
#[derive(Clone, Debug, Default, PartialEq)]
struct ReaderStatus {
    skipped: u64,
    notes: Arc<Vec<String>>,
}

impl ReaderStatus {
    fn of(reader: &TraceReader) -> ReaderStatus {
        ReaderStatus {
            skipped: reader.skipped(),
            notes: Arc::new(reader.notes()),
        }
    }
}

/// Records that follow each other.
#[derive(Debug, Default)]
struct Chunk {
    records: Vec<TraceRecord>,
    /// Each new status with the index of the first record behind which it holds.
    statuses: Vec<(usize, ReaderStatus)>,
    /// State at the end of the trace, if the trace ends behind this chunk.
    end: Option<ReaderStatus>,
}

/// A trace that is decoded as far as a reader has come.
#[derive(Debug)]
struct Decoded {
    file: String,
    beginning: ReaderStatus,
    progress: Mutex<DecodeProgress>,
}

#[derive(Debug)]
struct DecodeProgress {
    chunks: Vec<Arc<Chunk>>,
    /// Reader of the rest; `None` at the end of the trace, or of the part that can be shared.
    rest: Option<TraceReader>,
    latest: ReaderStatus,
}

impl Decoded {
    fn open(path: &Path, options: &TraceOptions) -> Result<Decoded, TraceError> {
        let reader = TraceReader::open(path, options)?;
        let beginning = ReaderStatus::of(&reader);
        Ok(Decoded {
            file: reader.file().to_owned(),
            beginning: beginning.clone(),
            progress: Mutex::new(DecodeProgress {
                chunks: Vec::new(),
                rest: Some(reader),
                latest: beginning,
            }),
        })
    }

    fn progress(&self) -> MutexGuard<'_, DecodeProgress> {
        // A panic during `decode` leaves `rest` empty, so the trace counts as cut and is read from
        // its file.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the chunk `index`; `None` if the trace cannot be shared up to there.
    fn chunk(&self, index: usize) -> Option<Arc<Chunk>> {
        let mut progress = self.progress();
        while progress.chunks.len() <= index {
            match progress.decode() {
                Some(chunk) => progress.chunks.push(Arc::new(chunk)),
                None => {
                    // The records are of no more use, because later readers read the file.
                    progress.chunks = Vec::new();
                    return None;
                }
            }
        }
        progress.chunks.get(index).cloned()
    }

    /// Returns true if a part of the trace cannot be shared.
    fn is_cut(&self) -> bool {
        let progress = self.progress();
        let whole = progress
            .chunks
            .last()
            .is_some_and(|last| last.end.is_some());
        progress.rest.is_none() && !whole
    }
}

impl DecodeProgress {
    /// Decodes the next chunk. Returns `None` behind an error or too many records; a reader of its
    /// own then finds the same error.
    fn decode(&mut self) -> Option<Chunk> {
        // Put back only after success, because an error or the end leaves nothing to share.
        let mut reader = self.rest.take()?;
        if self.chunks.len() * CHUNK_RECORDS >= RECORDS_MAX {
            return None;
        }
        let mut chunk = Chunk {
            records: Vec::with_capacity(CHUNK_RECORDS),
            ..Chunk::default()
        };
        let mut stamp = None;
        while chunk.records.len() < CHUNK_RECORDS {
            let record = reader.next().ok()?;
            // Notes are text. The stamp tells when the text may have changed.
            if stamp != Some(reader.stamp()) {
                stamp = Some(reader.stamp());
                let status = ReaderStatus::of(&reader);
                if status != self.latest && record.is_some() {
                    chunk.statuses.push((chunk.records.len(), status.clone()));
                    self.latest = status;
                }
            }
            let Some(record) = record else {
                chunk.end = Some(ReaderStatus::of(&reader));
                return Some(chunk);
            };
            chunk.records.push(record);
        }
        self.rest = Some(reader);
        Some(chunk)
    }
}

/// A trace that was opened before.
struct SharedTrace {
    key: SharedKey,
    decoded: Option<Arc<Decoded>>,
    /// Ends of the devices.
    spans: Option<Arc<DeviceSpans>>,
}

/// The traces of this process, the latest last.
static KNOWN: Mutex<Vec<SharedTrace>> = Mutex::new(Vec::new());

fn known() -> MutexGuard<'static, Vec<SharedTrace>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the decoded trace; `None` for the first reader of a trace, and for a trace that cannot
/// be shared.
fn decoded(key: &SharedKey, path: &Path) -> Result<Option<Arc<Decoded>>, TraceError> {
    // The lock order: the list before the progress of a trace.
    let mut known = known();
    let Some(place) = known.iter().position(|known| known.key == *key) else {
        if known.len() == TRACES_MAX {
            known.remove(0);
        }
        known.push(SharedTrace {
            key: key.clone(),
            decoded: None,
            spans: None,
        });
        return Ok(None);
    };
    // Pushed again below, because the list is in order of use. After an error the trace is unknown
    // again.
    let mut entry = known.remove(place);
    if entry.decoded.is_none() {
        make_room(&mut known);
        entry.decoded = Some(Arc::new(Decoded::open(path, &key.options)?));
    }
    let decoded = entry.decoded.clone();
    known.push(entry);
    Ok(decoded.filter(|decoded| !decoded.is_cut()))
}

/// Drops the decoded records of the oldest traces, so that one more trace fits into the memory.
fn make_room(known: &mut [SharedTrace]) {
    let mut records = 0;
    for entry in known.iter_mut().rev() {
        let Some(decoded) = &entry.decoded else {
            continue;
        };
        records += decoded.progress().chunks.len() * CHUNK_RECORDS;
        if records > RECORDS_MAX {
            entry.decoded = None;
        }
    }
}

/// Reader of a trace, as [`TraceReader`], for callers that read one trace several times.
pub struct SharedReader {
    path: PathBuf,
    options: TraceOptions,
    key: Option<SharedKey>,
    /// Places of records from memory; `None` without a volume.
    placement: Option<Placement>,
    from: RecordSource,
    /// Number of records taken.
    taken: u64,
}

enum RecordSource {
    File(Box<TraceReader>),
    Memory(DecodedPlace),
}

/// Place in a decoded trace.
struct DecodedPlace {
    decoded: Arc<Decoded>,
    chunk: Arc<Chunk>,
    /// Number of chunks so far.
    chunks: usize,
    /// Number of records taken from the chunk.
    at: usize,
    status: ReaderStatus,
}

impl DecodedPlace {
    /// Returns the next record; `None` at the end of the trace.
    ///
    /// # Errors
    /// If the rest of the trace cannot be shared.
    fn next(&mut self) -> Result<Option<TraceRecord>, NotShared> {
        loop {
            if let Some(&record) = self.chunk.records.get(self.at) {
                let statuses = &self.chunk.statuses;
                if let Ok(new) = statuses.binary_search_by_key(&self.at, |status| status.0) {
                    self.status = statuses[new].1.clone();
                }
                self.at += 1;
                return Ok(Some(record));
            }
            if let Some(end) = &self.chunk.end {
                self.status = end.clone();
                return Ok(None);
            }
            self.chunk = self.decoded.chunk(self.chunks).ok_or(NotShared)?;
            self.chunks += 1;
            self.at = 0;
        }
    }
}

/// The rest of a trace is not in memory.
struct NotShared;

impl SharedReader {
    /// Opens the trace at `path`.
    ///
    /// # Errors
    /// As for [`TraceReader::open`].
    pub fn open(path: &Path, options: &TraceOptions) -> Result<SharedReader, TraceError> {
        options.check()?;
        let key = SharedKey::of(path, options);
        let shared = match &key {
            Some(key) => decoded(key, path)?,
            None => None,
        };
        let from = match shared {
            Some(decoded) => RecordSource::Memory(DecodedPlace {
                status: decoded.beginning.clone(),
                decoded,
                chunk: Arc::default(),
                chunks: 0,
                at: 0,
            }),
            None => RecordSource::File(Box::new(TraceReader::open(path, options)?)),
        };
        Ok(SharedReader {
            path: path.to_owned(),
            placement: Placement::of(options),
            options: options.clone(),
            key,
            from,
            taken: 0,
        })
    }

    /// Returns the name of the file, as in messages.
    pub fn file(&self) -> &str {
        match &self.from {
            RecordSource::File(reader) => reader.file(),
            RecordSource::Memory(memory) => &memory.decoded.file,
        }
    }

    /// Returns the number of damaged rows skipped so far.
    pub fn skipped(&self) -> u64 {
        match &self.from {
            RecordSource::File(reader) => reader.skipped(),
            RecordSource::Memory(memory) => memory.status.skipped,
        }
    }

    /// Returns problems of the trace so far; see [`TraceReader::notes`].
    pub fn notes(&self) -> Vec<String> {
        match &self.from {
            RecordSource::File(reader) => reader.notes(),
            RecordSource::Memory(memory) => {
                let mut notes = memory.status.notes.to_vec();
                notes.extend(self.placement.iter().flat_map(Placement::notes));
                notes
            }
        }
    }

    /// Returns the next record; `None` at the end of the trace or of the time window.
    ///
    /// # Errors
    /// As for [`TraceReader::next`].
    #[expect(
        clippy::should_implement_trait,
        reason = "an error ends the trace, so it stands outside the option"
    )]
    pub fn next(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        let outcome = match &mut self.from {
            RecordSource::File(reader) => return reader.next(),
            RecordSource::Memory(memory) => memory.next(),
        };
        let record = match outcome {
            Ok(None) => return Ok(None),
            Ok(Some(record)) => self.placed(record)?,
            Err(NotShared) => None,
        };
        match record {
            Some(record) => {
                self.taken += 1;
                Ok(Some(record))
            }
            // An error has the place in the file, which only a reader of the file knows.
            None => self.next_of_file(),
        }
    }

    /// Continues with a reader of the file.
    #[cold]
    fn next_of_file(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        let mut reader = Box::new(TraceReader::open(&self.path, &self.options)?);
        // Skips the records that were taken from memory.
        for _ in 0..self.taken {
            reader.next()?;
        }
        let next = reader.next();
        self.from = RecordSource::File(reader);
        next
    }
}

impl SharedReader {
    /// Returns `record` with its extent in the volume; `None` if the extent does not fit.
    fn placed(&mut self, record: TraceRecord) -> Result<Option<TraceRecord>, TraceError> {
        let Some(placement) = &mut self.placement else {
            return Ok(Some(record));
        };
        if record.operation.is_of_all() {
            return Ok(Some(record));
        }
        let mut placed = placement.place(record.device, record.extent);
        if placed == Err(PlaceFault::NeedsSpans) {
            let spans = shared_spans(self.key.as_ref(), &self.path, &self.options)?;
            placement.set_spans(spans);
            placed = placement.place(record.device, record.extent);
        }
        Ok(placed.ok().map(|extent| TraceRecord { extent, ..record }))
    }
}

/// Returns the ends of the trace's devices. Reads the trace once for each process.
fn shared_spans(
    key: Option<&SharedKey>,
    path: &Path,
    options: &TraceOptions,
) -> Result<Arc<DeviceSpans>, TraceError> {
    let find = |known: &SharedTrace| Some(&known.key) == key;
    if let Some(spans) = known()
        .iter()
        .find(|known| find(known))
        .and_then(|found| found.spans.clone())
    {
        return Ok(spans);
    }
    // The list is not locked meanwhile, because reading a trace may take minutes.
    let spans = Arc::new(DeviceSpans::read(path, options)?);
    if let Some(found) = known().iter_mut().find(|known| find(known)) {
        found.spans = Some(Arc::clone(&spans));
    }
    Ok(spans)
}

impl fmt::Debug for SharedReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReader")
            .field("file", &self.file())
            .field("taken", &self.taken)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_units::Sectors;
    use std::fs::File;
    use std::io::Write as _;
    use std::time::{Duration, SystemTime};

    /// A trace with a damaged row, a gap of ten days, and more than one chunk of records.
    fn trace(file: &Path, rows: u64) {
        let mut text = String::new();
        for row in 0..rows {
            let jump = if row > rows / 2 { 864_000_000.0 } else { 0.0 };
            let start = row * 7919 % 100_000;
            text += &format!("{} 0 {start} 8 {}\n", jump + row as f64, row % 2);
            if row % 1500 == 700 {
                text += "damaged\n";
            }
        }
        let mut file = File::create(file).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        // A file that has changed just now is not shared.
        let past = SystemTime::now() - Duration::from_secs(60);
        file.set_modified(past).unwrap();
    }

    type Seen = (Result<Option<TraceRecord>, String>, u64, Vec<String>);

    fn own(file: &Path, options: &TraceOptions) -> Vec<Seen> {
        let mut reader = TraceReader::open(file, options).unwrap();
        let mut seen = Vec::new();
        loop {
            let next = reader.next().map_err(|error| error.to_string());
            let last = !matches!(next, Ok(Some(_)));
            seen.push((next, reader.skipped(), reader.notes()));
            if last {
                return seen;
            }
        }
    }

    fn shared(file: &Path, options: &TraceOptions) -> (Vec<Seen>, bool) {
        let mut reader = SharedReader::open(file, options).unwrap();
        let from_memory = matches!(reader.from, RecordSource::Memory(_));
        let mut seen = Vec::new();
        loop {
            let next = reader.next().map_err(|error| error.to_string());
            let last = !matches!(next, Ok(Some(_)));
            seen.push((next, reader.skipped(), reader.notes()));
            if last {
                return (seen, from_memory);
            }
        }
    }

    #[test]
    fn a_shared_trace_is_read_as_a_trace_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.disksim");
        trace(&file, 10_000);
        let named = |skip_bad, capacity, beyond| TraceOptions {
            format: Some("disksim".to_owned()),
            skip_bad,
            capacity,
            beyond,
            ..TraceOptions::default()
        };
        let small = Some(Sectors(60_000));
        for (options, whole) in [
            (named(10, None, BeyondPolicy::Reject), true),
            (named(10, small, BeyondPolicy::Wrap), true),
            (named(10, small, BeyondPolicy::Scale), true),
            // A request beyond the volume, and more damage than is tolerated.
            (named(10, small, BeyondPolicy::Reject), true),
            (named(3, None, BeyondPolicy::Reject), false),
        ] {
            let expected = own(&file, &options);
            let memory: Vec<bool> = (0..4)
                .map(|_| {
                    let (seen, from_memory) = shared(&file, &options);
                    assert!(seen == expected, "{options:?}");
                    from_memory
                })
                .collect();
            // A trace that ends in an error is shared once, before the error is known.
            assert_eq!(memory.last(), Some(&whole), "{options:?}");
        }
    }

    #[test]
    fn a_changed_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace.disksim");
        let options = TraceOptions::for_format("disksim");
        for rows in [100, 200] {
            trace(&file, rows);
            for _ in 0..3 {
                assert_eq!(shared(&file, &options).0.len() as u64, rows + 1);
            }
        }
    }
}
