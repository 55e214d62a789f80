//! fullstroke's own format: a Parquet table with one row for each request.

use super::{Confidence, Format, PlaceUnit, TraceHead};
use crate::TracePlace;
use crate::fault::TraceFault;
use crate::input::Input;
use crate::row::{Parser, TraceRow};
use fullstroke_contract::Operation;
use fullstroke_table::{ColumnType, RowBatch, Schema, TableReader};
use std::fs::File;
use std::io::{self, Seek as _};
use std::path::Path;

pub(super) const FORMAT: Format = Format {
    name: "native",
    summary: "fullstroke's own format: a Parquet table, one row per request, times in ns",
    columns: "arrival_ns, operation (read, write, flush, discard, standby or start), start_sector, sectors, device, process, \
              issued_ns and completed_ns (empty = unknown; not before arrival_ns, on the same clock)",
    counted: PlaceUnit::Rows,
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

fn detect(head: &TraceHead<'_>) -> Confidence {
    if head.bytes.starts_with(PARQUET_MAGIC) {
        Confidence::Certain
    } else {
        Confidence::No
    }
}

struct Native {
    table: TableReader,
    /// Number of rows of the table's batch that were handed out or refused.
    taken: usize,
    /// Number of rows before the batch.
    before: u64,
}

impl Native {
    fn open(input: &mut Input<'_>) -> Result<Native, TraceFault> {
        let table = open_table(input)?;
        // Tables of other programs lack these keys, and their columns decide.
        if let (Some(SCHEMA_NAME), Some(version)) =
            (table.metadata(SCHEMA_KEY), table.metadata(VERSION_KEY))
            && version != VERSION
        {
            let found = format!("schema version `{version}` in the footer");
            return Err(TraceFault::broken(
                TracePlace::Row(0),
                found,
                format!("version {VERSION}; use a newer fullstroke"),
            ));
        }
        Ok(Native {
            table,
            taken: 0,
            before: 0,
        })
    }

    /// Appends the rest of the batch to `rows`. Ends behind a damaged row.
    fn hand_out(&mut self, rows: &mut Vec<TraceRow>) -> Result<(), TraceFault> {
        let columns = Columns::of(self.table.batch());
        let (first, end) = (self.taken, columns.arrivals.len());
        rows.reserve(end - first);
        for index in first..end {
            match columns.row(index, self.before + index as u64) {
                Ok(row) => rows.push(row),
                Err(fault) => {
                    self.taken = index + 1;
                    return Err(fault);
                }
            }
        }
        self.taken = end;
        Ok(())
    }
}

impl Parser for Native {
    fn read(
        &mut self,
        _: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        // After a damaged row the rest of the batch comes first.
        if self.taken == self.table.batch().rows() {
            self.before += self.taken as u64;
            self.taken = 0;
            if self
                .table
                .next_batch(limit)
                .map_err(TraceFault::Table)?
                .is_none()
            {
                return Ok(false);
            }
        }
        self.hand_out(rows)?;
        Ok(true)
    }
}

/// Opens the table. A table is read from its end, so an input without seeks is copied first.
fn open_table(input: &mut Input<'_>) -> Result<TableReader, TraceFault> {
    if let Some(path) = input.plain_path() {
        return TableReader::open(path, &schema()).map_err(TraceFault::Table);
    }
    let name = input.path().unwrap_or(Path::new("trace")).to_owned();
    // Files that are not on disk are in memory already.
    if input.file().is_some_and(|file| !file.files.are_on_disk()) {
        let mut bytes = Vec::new();
        io::Read::read_to_end(input, &mut bytes).map_err(TraceFault::Read)?;
        return TableReader::from_bytes(&name, bytes, &schema()).map_err(TraceFault::Table);
    }
    let copy = spooled(input).map_err(TraceFault::Read)?;
    TableReader::from_file(&name, copy, &schema()).map_err(TraceFault::Table)
}

/// Copies the rest of `input` to an unnamed file. The file disappears when it is closed.
fn spooled(input: &mut Input<'_>) -> io::Result<File> {
    let mut copy = tempfile::tempfile()?;
    io::copy(input, &mut copy)?;
    copy.rewind()?;
    Ok(copy)
}

/// Columns of a batch.
struct Columns<'b> {
    arrivals: &'b [u64],
    /// Operation of each text of the batch; `None` for a text without meaning.
    operations: Vec<Option<Operation>>,
    /// Text of each row.
    texts: (&'b [u32], &'b [String]),
    starts: &'b [u64],
    sectors: &'b [u64],
    devices: &'b [u64],
    processes: &'b [u64],
    issued: TimeColumn<'b>,
    completed: TimeColumn<'b>,
}

/// A column of times, some of which are unknown.
struct TimeColumn<'b> {
    values: &'b [u64],
    known: Option<&'b [bool]>,
}

impl TimeColumn<'_> {
    #[inline]
    fn get(&self, index: usize) -> Option<u64> {
        let known = self.known.is_none_or(|known| known[index]);
        known.then(|| self.values[index])
    }
}

impl<'b> Columns<'b> {
    fn of(batch: &'b RowBatch) -> Columns<'b> {
        // Slices of one length, so that one check of an index serves all columns.
        let count = batch.rows();
        let numbers = |column| &batch.u64s(column)[..count];
        let times = |column| TimeColumn {
            values: numbers(column),
            known: batch.filled(column).map(|known| &known[..count]),
        };
        let texts = batch.texts(column::OPERATION);
        Columns {
            arrivals: numbers(column::ARRIVAL),
            operations: texts.1.iter().map(|text| Operation::named(text)).collect(),
            texts,
            starts: numbers(column::START),
            sectors: numbers(column::SECTORS),
            devices: numbers(column::DEVICE),
            processes: numbers(column::PROCESS),
            issued: times(column::ISSUED),
            completed: times(column::COMPLETED),
        }
    }

    /// Returns the row `index` of the batch, which is the row `place` of the table.
    #[inline]
    fn row(&self, index: usize, place: u64) -> Result<TraceRow, TraceFault> {
        let Some(operation) = self.operations[self.texts.0[index] as usize] else {
            return Err(self.no_operation(index, place));
        };
        let arrival = self.arrivals[index];
        let (issued, completed) = (self.issued.get(index), self.completed.get(index));
        let issue = issued.unwrap_or(arrival);
        if issue < arrival || completed.is_some_and(|completed| completed < issue) {
            return Err(out_of_order(place, arrival, issued, completed));
        }
        Ok(TraceRow {
            // The table's reader has checked that both numbers have 32 bits.
            device: self.devices[index] as u32,
            process: self.processes[index] as u32,
            issued,
            completed,
            place,
            ..TraceRow::new(arrival, operation, self.starts[index], self.sectors[index])
        })
    }

    #[cold]
    fn no_operation(&self, index: usize, place: u64) -> TraceFault {
        let name = &self.texts.1[self.texts.0[index] as usize];
        TraceFault::row(
            TracePlace::Row(place),
            format!("operation `{}`", name.escape_debug()),
            "read, write, flush or discard",
        )
    }
}

#[cold]
fn out_of_order(
    place: u64,
    arrival: u64,
    issued: Option<u64>,
    completed: Option<u64>,
) -> TraceFault {
    TraceFault::row(
        TracePlace::Row(place),
        format!("arrival {arrival} ns, issue {issued:?} and completion {completed:?}"),
        "an issue not before the arrival and a completion not before either",
    )
}
