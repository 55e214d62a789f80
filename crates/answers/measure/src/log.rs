//! Every request as a row of a table.

use fullstroke_contract::{Request, RequestStatus};
use fullstroke_engine::{Finished, Observer};
use fullstroke_table::{ColumnType, Schema, TableError, TableWriter};
use fullstroke_units::{Duration, Time};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

/// Writes one row per request, in order of completion, to Parquet or (if the name ends in `.csv` or
/// `.csv.gz`) CSV. Memory is bounded by one row group and the requests in flight. The file appears
/// with [`finish`](RequestLog::finish).
///
/// The columns are [`LOG_COLUMNS`].
///
/// The six parts from `queue_ns` to `transfer_ns` add up to `response_ns`. They belong to the
/// member I/O that finished last. `response_ms` is empty for a request that the report does not
/// count, so the mean of this column equals the report's mean.
#[derive(Debug)]
pub struct RequestLog {
    table: TableWriter,
    names: Vec<String>,
    touched: ReachedDrives,
    members: String,
    failed: Option<TableError>,
}

/// A column of the request log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogColumn {
    /// Name of the column; the unit comes last.
    pub name: &'static str,
    /// Type of the values.
    pub kind: ColumnType,
    /// Meaning of the column.
    pub meaning: &'static str,
}

const fn of(name: &'static str, kind: ColumnType, meaning: &'static str) -> LogColumn {
    LogColumn {
        name,
        kind,
        meaning,
    }
}

/// The columns of the request log, in order; the reference page derives from
/// this list.
#[rustfmt::skip]
pub const LOG_COLUMNS: [LogColumn; 18] = [
    of("request", ColumnType::U64, "number in order of arrival, from 0"),
    of("arrived_ns", ColumnType::U64, "arrival, since the beginning of the run"),
    of("finished_ns", ColumnType::U64, "completion, since the beginning of the run"),
    of("operation", ColumnType::Text, "`read`, `write`, `flush`, `discard`, `standby`, `start`"),
    of("lbn", ColumnType::U64, "first 512-byte sector on the volume"),
    of("sectors", ColumnType::U64, "length in 512-byte sectors"),
    of("process", ColumnType::U32, "process that issued the request; 0 = unknown"),
    of("response_ns", ColumnType::U64, "`finished_ns - arrived_ns`, of every request"),
    of("queue_ns", ColumnType::U64, "waiting for a busy resource"),
    of("parity_ns", ColumnType::U64, "waiting for old data and parity, or for the stripe"),
    of("overhead_ns", ColumnType::U64, "command overhead and bus"),
    of("seek_ns", ColumnType::U64, "arm movement, head switches, settling"),
    of("rotation_ns", ColumnType::U64, "rotational latency"),
    of("transfer_ns", ColumnType::U64, "sectors passing under the head"),
    of("seek_cylinders", ColumnType::U32, "distance of the first seek"),
    of("status", ColumnType::Text, "`done`, `lost`, `refused`, `out-of-range`, `differs`"),
    of("members", ColumnType::Text, "names of the drives that were given I/O, ascending: `0 3 4`"),
    of("response_ms", ColumnType::F64, "`response_ns` in ms for successful reads and writes after the warm-up, which the report's `response_ms` counts; empty for all other requests"),
];

/// The columns, by position in [`LOG_COLUMNS`].
mod column {
    pub(super) const REQUEST: usize = 0;
    pub(super) const ARRIVED: usize = 1;
    pub(super) const FINISHED: usize = 2;
    pub(super) const OPERATION: usize = 3;
    pub(super) const LBN: usize = 4;
    pub(super) const SECTORS: usize = 5;
    pub(super) const PROCESS: usize = 6;
    pub(super) const FIRST_TIME: usize = 7;
    pub(super) const SEEK_CYLINDERS: usize = 14;
    pub(super) const STATUS: usize = 15;
    pub(super) const MEMBERS: usize = 16;
    pub(super) const RESPONSE_MS: usize = 17;
}

/// The time columns, from `column::FIRST_TIME` on.
const TIMES: usize = 7;

/// Drives that received I/O for each request in flight.
#[derive(Debug, Default)]
struct ReachedDrives {
    by_origin: HashMap<u64, Vec<usize>>,
    /// Empty lists for reuse.
    spare: Vec<Vec<usize>>,
}

fn schema() -> Schema {
    let schema = Schema::new()
        .metadata("schema", "fullstroke request log")
        .metadata("schema_version", "2");
    LOG_COLUMNS
        .iter()
        .enumerate()
        .fold(schema, |schema, (index, column)| match index {
            column::RESPONSE_MS => schema.optional(column.name, column.kind),
            _ => schema.column(column.name, column.kind),
        })
}

impl RequestLog {
    /// Begins a log that is to stand at `path`. `drives` are the drives' names in the order of the
    /// tree; `notes` go into the footer of the file.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(
        path: &Path,
        drives: &[String],
        notes: &[(&str, &str)],
    ) -> Result<RequestLog, TableError> {
        let schema = notes
            .iter()
            .fold(schema(), |schema, (key, value)| schema.metadata(key, value));
        Ok(RequestLog {
            table: TableWriter::create(path, &schema)?,
            names: drives.to_vec(),
            touched: ReachedDrives::default(),
            members: String::new(),
            failed: None,
        })
    }

    /// Moves the file to its place and returns the number of rows.
    ///
    /// # Errors
    /// The first error, also one during the run. After an error no file is left behind.
    pub fn finish(self) -> Result<u64, TableError> {
        match self.failed {
            Some(error) => Err(error),
            None => self.table.finish(),
        }
    }

    /// Writes a finished request. `counted` is true if the report's times include the request.
    pub fn write(&mut self, finished: &Finished, counted: bool) {
        if self.failed.is_some() {
            return;
        }
        self.touched
            .take(finished.origin, &self.names, &mut self.members);
        self.failed = self.put(finished, counted).err();
    }

    fn put(&mut self, finished: &Finished, counted: bool) -> Result<(), TableError> {
        let completion = &finished.completion;
        let parts = &completion.breakdown;
        let response = completion.finished.since(finished.arrived);
        let times: [Duration; TIMES] = [
            response,
            parts.queue,
            parts.parity,
            parts.overhead,
            parts.seek,
            parts.rotation,
            parts.transfer,
        ];
        let table = &mut self.table;
        table.u64(column::REQUEST, finished.origin);
        table.u64(column::ARRIVED, finished.arrived.as_nanos());
        table.u64(column::FINISHED, completion.finished.as_nanos());
        table.text(column::OPERATION, finished.operation.name());
        table.u64(column::LBN, finished.extent.start.0);
        table.u64(column::SECTORS, finished.extent.sectors.0);
        table.u32(column::PROCESS, finished.process);
        for (index, time) in times.iter().enumerate() {
            table.u64(column::FIRST_TIME + index, time.as_nanos());
        }
        table.u32(column::SEEK_CYLINDERS, parts.seek_cylinders);
        table.text(column::STATUS, status_name(completion.status));
        table.text(column::MEMBERS, &self.members);
        table.optional_f64(
            column::RESPONSE_MS,
            counted.then(|| response.as_millis_f64()),
        );
        table.end_row()
    }
}

impl Observer for RequestLog {
    fn drive_io(&mut self, _now: Time, drive: usize, request: &Request) {
        // Background I/O of a layer belongs to no request, so no row would ever remove its entry.
        if self.failed.is_none() && request.origin != Request::BACKGROUND {
            self.touched.add(request.origin, drive);
        }
    }
}

impl ReachedDrives {
    fn add(&mut self, origin: u64, drive: usize) {
        let drives = self
            .by_origin
            .entry(origin)
            .or_insert_with(|| self.spare.pop().unwrap_or_default());
        // Ascending and each once, as the column `members` says.
        if let Err(place) = drives.binary_search(&drive) {
            drives.insert(place, drive);
        }
    }

    /// Moves the names of the drives of `origin` into `text`.
    fn take(&mut self, origin: u64, names: &[String], text: &mut String) {
        text.clear();
        let Some(mut drives) = self.by_origin.remove(&origin) else {
            return;
        };
        for drive in drives.drain(..) {
            let separator = if text.is_empty() { "" } else { " " };
            let written = match names.get(drive) {
                Some(name) => write!(text, "{separator}{name}"),
                None => write!(text, "{separator}{drive}"),
            };
            written.expect("writing to a string cannot fail");
        }
        self.spare.push(drives);
    }
}

fn status_name(status: RequestStatus) -> &'static str {
    match status {
        RequestStatus::Done => "done",
        RequestStatus::Differs => "differs",
        RequestStatus::Lost => "lost",
        RequestStatus::Refused => "refused",
        RequestStatus::OutOfRange => "out-of-range",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::{Breakdown, Completion, Extent, Operation};
    use fullstroke_table::TableReader;
    use fullstroke_units::Time;

    fn finished(origin: u64) -> Finished {
        let breakdown = Breakdown {
            queue: Duration::from_nanos(30),
            seek: Duration::from_nanos(12),
            seek_cylinders: 9,
            ..Breakdown::default()
        };
        let completion = Completion {
            finished: Time::from_nanos(142),
            breakdown,
            ..Completion::default()
        };
        Finished {
            origin,
            operation: Operation::Write,
            extent: Extent::new(64, 8),
            process: 7,
            workload: 0,
            arrived: Time::from_nanos(100),
            completion,
        }
    }

    fn names() -> Vec<String> {
        ["0.0", "0.1", "1.0"].map(str::to_owned).into()
    }

    fn fill(log: &mut RequestLog) {
        for (origin, drive) in [(0, 2), (1, 1), (0, 0), (0, 2)] {
            log.drive_io(
                Time::ZERO,
                drive,
                &Request {
                    origin,
                    ..Request::default()
                },
            );
        }
        for origin in [1, 0, 2] {
            log.write(&finished(origin), origin != 2);
        }
    }

    #[test]
    fn a_log_names_the_members_that_each_request_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.csv");
        let mut log = RequestLog::create(&path, &names(), &[]).unwrap();
        fill(&mut log);
        assert_eq!(log.finish().unwrap(), 3);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(
            lines[0].starts_with("request,arrived_ns,finished_ns,operation,lbn"),
            "{}",
            lines[0]
        );
        assert_eq!(
            lines[1],
            "1,100,142,write,64,8,7,42,30,0,0,12,0,0,9,done,0.1,0.000042"
        );
        assert!(lines[2].ends_with(",done,0.0 1.0,0.000042"), "{}", lines[2]);
        assert!(lines[3].ends_with(",done,,"), "{}", lines[3]);
    }

    #[test]
    fn a_parquet_log_reads_back_with_its_notes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.parquet");
        let mut log = RequestLog::create(&path, &names(), &[("seed", "17")]).unwrap();
        fill(&mut log);
        log.finish().unwrap();
        let mut reader = TableReader::open(&path, &schema()).unwrap();
        let batch = reader.next_batch(10).unwrap().unwrap();
        assert_eq!(batch.rows(), 3);
        assert_eq!(batch.u64(column::FIRST_TIME, 1), 42);
        assert_eq!(batch.text(column::MEMBERS, 1), "0.0 1.0");
    }

    #[test]
    fn a_log_that_is_given_up_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut log =
            RequestLog::create(&folder.path().join("log.parquet"), &names(), &[]).unwrap();
        fill(&mut log);
        drop(log);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_at_the_end() {
        let mut log = RequestLog::create(Path::new("/dev/full"), &names(), &[]).unwrap();
        (0..200_000).for_each(|origin| log.write(&finished(origin), true));
        let error = log.finish().unwrap_err();
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }
}
