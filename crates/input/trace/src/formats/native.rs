//! fullstroke's own format: a Parquet table with one row for each request.

use super::{Confidence, Counted, Format, Head};
use crate::Place;
use crate::fault::Fault;
use crate::input::Input;
use crate::row::{Parser, Row};
use fullstroke_contract::Operation;
use fullstroke_table::{Batch, ColumnType, Schema, TableReader};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek as _};
use std::path::Path;

pub(super) const FORMAT: Format = Format {
    name: "native",
    summary: "fullstroke's own: a Parquet table, one row a request, times in ns",
    columns: "arrival_ns, operation (read, write, flush, discard, standby or start), start_sector, sectors, device, process, \
              issued_ns and completed_ns (empty = unknown; not before arrival_ns, on the same clock)",
    counted: Counted::Rows,
    detect,
    open: |input| Ok(Box::new(Native::open(input)?)),
};

/// Key in the footer with the name of the schema.
const SCHEMA_KEY: &str = "schema";
const SCHEMA_NAME: &str = "fullstroke-trace";
/// Key in the footer with the version of the schema.
const VERSION_KEY: &str = "schema_version";
const VERSION: &str = "1";
/// First bytes of every Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";
/// Number of rows of the table that are in memory at a time.
const BATCH_ROWS: usize = 1024;

/// The table's columns, in the order of [`schema`].
#[allow(missing_docs)] // Their names are in the schema.
pub mod column {
    pub const ARRIVAL: usize = 0;
    pub const OPERATION: usize = 1;
    pub const START: usize = 2;
    pub const SECTORS: usize = 3;
    pub const DEVICE: usize = 4;
    pub const PROCESS: usize = 5;
    pub const ISSUED: usize = 6;
    pub const COMPLETED: usize = 7;
}

/// Returns the schema of the native format, as documented in `docs/traces.md`.
pub fn schema() -> Schema {
    Schema::new()
        .column("arrival_ns", ColumnType::U64)
        .column("operation", ColumnType::Text)
        .column("start_sector", ColumnType::U64)
        .column("sectors", ColumnType::U64)
        .optional("device", ColumnType::U32)
        .optional("process", ColumnType::U32)
        .optional("issued_ns", ColumnType::U64)
        .optional("completed_ns", ColumnType::U64)
        .metadata(SCHEMA_KEY, SCHEMA_NAME)
        .metadata(VERSION_KEY, VERSION)
}

fn detect(head: &Head<'_>) -> Confidence {
    if head.bytes.starts_with(PARQUET_MAGIC) {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

struct Native {
    table: TableReader,
    /// Rows read from the table but not requested yet.
    ready: VecDeque<Result<Row, Fault>>,
    rows_read: u64,
}

impl Native {
    fn open(input: &mut Input<'_>) -> Result<Native, Fault> {
        let table = open_table(input)?;
        if let (Some(SCHEMA_NAME), Some(version)) =
            (table.metadata(SCHEMA_KEY), table.metadata(VERSION_KEY))
            && version != VERSION
        {
            let found = format!("schema version `{version}` in the footer");
            return Err(Fault::broken(
                Place::Row(0),
                found,
                format!("version {VERSION}; use a newer fullstroke"),
            ));
        }
        Ok(Native {
            table,
            ready: VecDeque::new(),
            rows_read: 0,
        })
    }

    /// Reads more rows of the table. Returns `false` at its end.
    fn refill(&mut self) -> Result<bool, Fault> {
        let Some(batch) = self.table.next_batch(BATCH_ROWS).map_err(Fault::Table)? else {
            return Ok(false);
        };
        for index in 0..batch.rows() {
            self.ready
                .push_back(row(batch, index, self.rows_read + index as u64));
        }
        self.rows_read += batch.rows() as u64;
        Ok(true)
    }
}

impl Parser for Native {
    fn read(
        &mut self,
        _: &mut Input<'_>,
        rows: &mut Vec<Row>,
        limit: usize,
    ) -> Result<bool, Fault> {
        for _ in 0..limit {
            if self.ready.is_empty() && !self.refill()? {
                return Ok(false);
            }
            if let Some(row) = self.ready.pop_front() {
                rows.push(row?);
            }
        }
        Ok(true)
    }
}

/// Opens the table. A table is read from its end, so an input without seeks is copied first.
fn open_table(input: &mut Input<'_>) -> Result<TableReader, Fault> {
    let seekable = |path: &&Path| path.is_file();
    if let Some(path) = input.plain_path().filter(seekable) {
        return TableReader::open(path, &schema()).map_err(Fault::Table);
    }
    let name = input.path().unwrap_or(Path::new("trace")).to_owned();
    let copy = spooled(input).map_err(Fault::Read)?;
    TableReader::from_file(&name, copy, &schema()).map_err(Fault::Table)
}

/// Copies the rest of `input` to an unnamed file. The file disappears when it is closed.
fn spooled(input: &mut Input<'_>) -> io::Result<File> {
    let mut copy = tempfile::tempfile()?;
    io::copy(input, &mut copy)?;
    copy.rewind()?;
    Ok(copy)
}

fn row(batch: &Batch, index: usize, place: u64) -> Result<Row, Fault> {
    let damaged =
        |found: String, expected: &str| Err(Fault::row(Place::Row(place), found, expected));
    let name = batch.text(column::OPERATION, index);
    let Some(operation) = Operation::named(name) else {
        return damaged(
            format!("operation `{}`", name.escape_debug()),
            "read, write, flush or discard",
        );
    };
    let arrival = batch.u64(column::ARRIVAL, index);
    let issued = batch.optional_u64(column::ISSUED, index);
    let completed = batch.optional_u64(column::COMPLETED, index);
    let issue = issued.unwrap_or(arrival);
    if issue < arrival || completed.is_some_and(|completed| completed < issue) {
        let found = format!("arrival {arrival} ns, issue {issued:?} and completion {completed:?}");
        return damaged(
            found,
            "an issue not before the arrival and a completion not before either",
        );
    }
    Ok(Row {
        device: batch.u32(column::DEVICE, index),
        process: batch.u32(column::PROCESS, index),
        issued,
        completed,
        place,
        ..Row::new(
            arrival,
            operation,
            batch.u64(column::START, index),
            batch.u64(column::SECTORS, index),
        )
    })
}
