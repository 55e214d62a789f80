//! The record of a live run: every request, with the decisions about it.
//!
//! A record is a trace in fullstroke's own format. So every command for traces reads a record, and
//! `trace convert` converts a record. A record has more columns:
//!
//! | column | type | contents |
//! |---|---|---|
//! | `process` | u32 | the client, by number of its connection, from 1 |
//! | `force_unit_access` | bool | the write had to be durable before the answer |
//! | `status` | text | `done`, `lost` |
//! | `members` | text | the drives that worked on it: `0 3 4` |
//! | `late_ns` | u64 | delay of the host's answer after `completed_ns` |
//! | `completion` | u64 | its number in the order of completion, from 0 |
//! | `decisions` | u64 | digest of all decisions up to its completion |
//!
//! Rows are in order of arrival. Orders to members are in the footer's note `orders`, as JSON.
//! [`replay`](crate::replay) runs a record again.

use crate::completed::CompletedRequest;
use fullstroke_contract::{LayerOrder, RebuildSpeed, Request, RequestStatus};
use fullstroke_table::{ColumnType, Schema, TableError, TableWriter};
use fullstroke_trace::native_schema;
use fullstroke_units::{Bytes, Sectors, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Columns, by position in [`schema`]; the first eight belong to the trace.
pub(crate) mod column {
    pub(crate) use fullstroke_trace::native_column::*;
    pub(crate) const FORCE_UNIT_ACCESS: usize = 8;
    pub(crate) const STATUS: usize = 9;
    pub(crate) const MEMBERS: usize = 10;
    pub(crate) const LATE: usize = 11;
    pub(crate) const COMPLETION: usize = 12;
    pub(crate) const DECISIONS: usize = 13;
}

/// Keys of the notes in the footer.
pub(crate) mod note {
    pub(crate) const DIGEST: &str = "config_digest";
    pub(crate) const SEED: &str = "seed";
    pub(crate) const STACK: &str = "stack";
    pub(crate) const VERSION: &str = "version";
    pub(crate) const ORDERS: &str = "orders";
}

/// Returns the table of a record.
pub(crate) fn schema() -> Schema {
    native_schema()
        .column("force_unit_access", ColumnType::Bool)
        .column("status", ColumnType::Text)
        .column("members", ColumnType::Text)
        .column("late_ns", ColumnType::U64)
        .column("completion", ColumnType::U64)
        .column("decisions", ColumnType::U64)
}

/// An order in the form of the note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedOrder {
    /// World's time of the order, in ns.
    pub(crate) at_ns: u64,
    /// Number of requests submitted before the order.
    pub(crate) after_requests: u64,
    /// Path of the volume.
    pub(crate) path: Vec<usize>,
    /// Number of the member.
    pub(crate) member: usize,
    /// `Some` for a restore, with its rate; `None` for any other order.
    pub(crate) restore: Option<Option<u64>>,
    /// For a restore: sector up to which the member was filled already.
    #[serde(default)]
    pub(crate) done_sectors: u64,
    /// For a restore: true if data may be lost.
    #[serde(default)]
    pub(crate) accept_data_loss: bool,
    /// True if the member came back with its data.
    #[serde(default)]
    pub(crate) re_add: bool,
    /// For a speed order: least and largest rate of rebuilds.
    #[serde(default)]
    pub(crate) speed: Option<(u64, Option<u64>)>,
    /// Factor of a slow drive in thousandths; `path` is then the drive's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slow: Option<u32>,
}

impl RecordedOrder {
    pub(crate) fn new(
        at: Time,
        after_requests: u64,
        path: &[usize],
        order: LayerOrder,
    ) -> RecordedOrder {
        let mut recorded = RecordedOrder {
            at_ns: at.as_nanos(),
            after_requests,
            path: path.to_vec(),
            ..RecordedOrder::default()
        };
        match order {
            LayerOrder::Fail { member } => recorded.member = member,
            LayerOrder::Restore {
                member,
                done,
                rate,
                accept_data_loss,
            } => {
                recorded.member = member;
                recorded.restore = Some(rate.map(|rate| rate.0));
                recorded.done_sectors = done.0;
                recorded.accept_data_loss = accept_data_loss;
            }
            LayerOrder::ReAdd { member } => {
                recorded.member = member;
                recorded.re_add = true;
            }
            LayerOrder::Speed(RebuildSpeed { least, most }) => {
                recorded.speed = Some((least.0, most.map(|most| most.0)));
            }
            LayerOrder::Slow { thousandths } => recorded.slow = Some(thousandths),
            LayerOrder::Rest => unreachable!("a server's volumes rebuild until it ends"),
        }
        recorded
    }

    pub(crate) fn order(&self) -> LayerOrder {
        let member = self.member;
        if let Some(thousandths) = self.slow {
            return LayerOrder::Slow { thousandths };
        }
        match (self.speed, self.restore) {
            (Some((least, most)), _) => LayerOrder::Speed(RebuildSpeed {
                least: Bytes(least),
                most: most.map(Bytes),
            }),
            (None, Some(rate)) => LayerOrder::Restore {
                member,
                done: Sectors(self.done_sectors),
                rate: rate.map(Bytes),
                accept_data_loss: self.accept_data_loss,
            },
            (None, None) if self.re_add => LayerOrder::ReAdd { member },
            (None, None) => LayerOrder::Fail { member },
        }
    }
}

/// An incomplete record.
#[derive(Debug, thiserror::Error)]
#[error("the record is not whole: {reason}; {}", kept_text(.kept.as_ref()))]
pub struct RecordError {
    /// Reason.
    reason: String,
    /// Number of kept rows from the beginning, and their file.
    kept: Option<(u64, PathBuf)>,
}

impl RecordError {
    fn new(source: TableError, kept: Option<(u64, PathBuf)>) -> RecordError {
        let reason = match source {
            TableError::Write { path, source } => {
                format!("cannot write `{}`: {source}", path.display())
            }
            other => other.to_string(),
        };
        RecordError { reason, kept }
    }
}

fn kept_text(kept: Option<&(u64, PathBuf)>) -> String {
    match kept {
        Some((rows, path)) => format!("kept its first {rows} requests in `{}`", path.display()),
        None => "no request of the record is kept".to_owned(),
    }
}

/// Identity of the recorded stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackIdentity {
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) seed: u64,
}

/// Writes a record. A request waits here until all earlier arrivals have finished. The file appears
/// with [`finish`](RequestRecorder::finish).
#[derive(Debug)]
pub(crate) struct RequestRecorder {
    table: TableWriter,
    /// Names of the drives, in the order of the tree.
    names: Vec<String>,
    /// Requests from number `first` on, in order of arrival.
    rows: VecDeque<RecordRow>,
    first: u64,
    /// Emptied lists of drives, for reuse.
    spare: Vec<Vec<u32>>,
    orders: Vec<RecordedOrder>,
    members: String,
    failed: Option<TableError>,
}

#[derive(Debug)]
struct RecordRow {
    arrived: Time,
    request: Request,
    issued: Option<Time>,
    drives: Vec<u32>,
    end: Option<RequestEnd>,
}

#[derive(Clone, Copy, Debug)]
struct RequestEnd {
    finished: Time,
    status: RequestStatus,
    late_ns: u64,
    completion: u64,
    decisions: u64,
}

impl RequestRecorder {
    pub(crate) fn create(
        path: &Path,
        names: &[String],
        identity: &StackIdentity,
    ) -> Result<RequestRecorder, TableError> {
        let schema = schema()
            .metadata(note::STACK, &identity.name)
            .metadata(note::DIGEST, &identity.digest)
            .metadata(note::SEED, &identity.seed.to_string())
            .metadata(note::VERSION, env!("CARGO_PKG_VERSION"));
        Ok(RequestRecorder {
            table: TableWriter::create(path, &schema)?,
            names: names.to_vec(),
            rows: VecDeque::new(),
            first: 0,
            spare: Vec::new(),
            orders: Vec::new(),
            members: String::new(),
            failed: None,
        })
    }

    pub(crate) fn arrived(&mut self, now: Time, request: &Request) {
        let drives = self.spare.pop().unwrap_or_default();
        self.rows.push_back(RecordRow {
            arrived: now,
            request: *request,
            issued: None,
            drives,
            end: None,
        });
    }

    pub(crate) fn ordered(&mut self, order: RecordedOrder) {
        self.orders.push(order);
    }

    pub(crate) fn drive_io(&mut self, now: Time, drive: usize, request: &Request) {
        // I/O of a layer on its own account belongs to no request. I/O for a request that was
        // already answered comes too late for the record.
        let Some(row) = self.row(request.origin) else {
            return;
        };
        row.issued.get_or_insert(now);
        // Sorted and without duplicates, so that the text of the members does not depend on the
        // order of the I/O.
        if let Err(place) = row.drives.binary_search(&(drive as u32)) {
            row.drives.insert(place, drive as u32);
        }
    }

    /// Records that a request was answered, `late_ns` after its end.
    pub(crate) fn answered(&mut self, ended: &CompletedRequest, late_ns: u64) {
        let Some(row) = self.row(ended.finished.origin) else {
            return;
        };
        row.end = Some(RequestEnd {
            finished: ended.finished.completion.finished,
            status: ended.finished.completion.status,
            late_ns,
            completion: ended.completion,
            decisions: ended.decisions,
        });
        while let Some(RecordRow { end: Some(end), .. }) = self.rows.front() {
            let end = *end;
            let Some(mut row) = self.rows.pop_front() else {
                break;
            };
            self.first += 1;
            // After an error no further row is written: the kept rows must be the first ones,
            // without gaps.
            if self.failed.is_none() {
                self.failed = self.put(&row, end).err();
            }
            row.drives.clear();
            self.spare.push(row.drives);
        }
    }

    /// Returns the unwritten row of a request.
    fn row(&mut self, origin: u64) -> Option<&mut RecordRow> {
        self.rows.get_mut(origin.checked_sub(self.first)? as usize)
    }

    fn put(&mut self, row: &RecordRow, end: RequestEnd) -> Result<(), TableError> {
        self.members.clear();
        for &drive in &row.drives {
            let separator = if self.members.is_empty() { "" } else { " " };
            let name = &self.names[drive as usize];
            write!(self.members, "{separator}{name}").expect("writing to a string cannot fail");
        }
        let table = &mut self.table;
        table.u64(column::ARRIVAL, row.arrived.as_nanos());
        table.text(column::OPERATION, row.request.operation.name());
        table.u64(column::START, row.request.extent.start.0);
        table.u64(column::SECTORS, row.request.extent.sectors.0);
        table.u32(column::DEVICE, 0);
        table.u32(column::PROCESS, row.request.hints.process);
        match row.issued {
            Some(issued) => table.u64(column::ISSUED, issued.as_nanos()),
            None => table.null(column::ISSUED),
        }
        table.u64(column::COMPLETED, end.finished.as_nanos());
        table.bool(
            column::FORCE_UNIT_ACCESS,
            row.request.hints.force_unit_access,
        );
        table.text(
            column::STATUS,
            if end.status == RequestStatus::Done {
                "done"
            } else {
                "lost"
            },
        );
        table.text(column::MEMBERS, &self.members);
        table.u64(column::LATE, end.late_ns);
        table.u64(column::COMPLETION, end.completion);
        table.u64(column::DECISIONS, end.decisions);
        table.end_row()
    }

    /// Moves the file to its place and returns the number of rows. If that fails, the complete rows
    /// are kept.
    pub(crate) fn finish(mut self) -> Result<u64, RecordError> {
        let written = match self.failed.take() {
            Some(error) => Err(error),
            None => self.table.flush(),
        };
        let rows_kept = if written.is_ok() {
            self.table.rows()
        } else {
            self.table.rows_to_keep()
        };
        // Orders after the last kept row have no effect there.
        self.orders
            .retain(|order| order.after_requests <= rows_kept);
        let orders = serde_json::to_string(&self.orders).unwrap_or_else(|_| "[]".into());
        self.table.note(note::ORDERS, &orders);
        match written {
            Ok(()) => self
                .table
                .finish()
                .map_err(|source| RecordError::new(source, None)),
            Err(source) => Err(RecordError::new(
                source,
                self.table.keep_partial().map(|at| (rows_kept, at)),
            )),
        }
    }
}
