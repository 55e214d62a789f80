//! First requests of a trace.

use crate::{TraceError, TraceReader, TraceRecord};
use comfy_table::{CellAlignment, Table, presets};
use fullstroke_units::Duration;

/// Returns the next records of `reader`, at most `count`. Each record serialises to the columns of
/// the native format.
///
/// # Errors
/// Fails if the trace cannot be read or parsed.
pub fn head(reader: &mut TraceReader, count: usize) -> Result<Vec<TraceRecord>, TraceError> {
    let mut records = Vec::new();
    reader.next_batch(&mut records, count)?;
    Ok(records)
}

/// Returns `records` as a table of text. Response (arrival to completion) and service (issue to
/// completion) are empty if they are unknown.
pub fn render_head(records: &[TraceRecord]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header([
        "arrival ms",
        "operation",
        "sector",
        "sectors",
        "device",
        "process",
        "response ms",
        "service ms",
    ]);
    for record in records {
        table.add_row([
            format!("{:.6}", record.arrival.as_millis_f64()),
            record.operation.name().to_owned(),
            record.extent.start.0.to_string(),
            record.extent.sectors.0.to_string(),
            record.device.to_string(),
            record.process.to_string(),
            milliseconds(record.response()),
            milliseconds(record.service()),
        ]);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if index == 1 {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        });
    }
    table.trim_fmt()
}

fn milliseconds(span: Option<Duration>) -> String {
    span.map(|span| format!("{:.6}", span.as_millis_f64()))
        .unwrap_or_default()
}
