//! Both times of every request, as a table.

use crate::validate::validation::{operation_letter, outcome_name};
use crate::validate::{ReplayedTrace, ValidateError};
use fullstroke_table::{ColumnType, Schema, TableWriter};
use std::path::Path;

/// Writes one row per request, in the order of the traces. The format is CSV if `path` ends in
/// `.csv` or `.csv.gz`, else Parquet. Columns: `drive`, `operation` (R or W), `outcome`, `lbn`,
/// `sectors`, `measured_ms`, `simulated_ms`, `think_ms`.
///
/// # Errors
/// If the file cannot be written; no partial file is left behind.
pub fn write_log<'a>(
    path: &Path,
    replays: impl IntoIterator<Item = (&'a str, &'a ReplayedTrace)>,
) -> Result<(), ValidateError> {
    let mut table = TableWriter::create(path, &schema())?;
    for (drive, replay) in replays {
        for (row, simulated_ms) in replay.requests() {
            table.text(0, drive);
            table.text(1, operation_letter(row.operation));
            table.text(2, outcome_name(row.outcome));
            table.u64(3, row.extent.start.0);
            table.u64(4, row.extent.sectors.0);
            table.f64(5, row.service.as_millis_f64());
            table.f64(6, simulated_ms);
            table.f64(7, row.think.as_millis_f64());
            table.end_row()?;
        }
    }
    table.finish()?;
    Ok(())
}

fn schema() -> Schema {
    Schema::new()
        .column("drive", ColumnType::Text)
        .column("operation", ColumnType::Text)
        .column("outcome", ColumnType::Text)
        .column("lbn", ColumnType::U64)
        .column("sectors", ColumnType::U64)
        .column("measured_ms", ColumnType::F64)
        .column("simulated_ms", ColumnType::F64)
        .column("think_ms", ColumnType::F64)
        .metadata("schema", "fullstroke-validation")
}
