//! Closed replay of a validation trace on a drive.

use crate::validate::paced::{Paced, simulate};
use crate::validate::{FoundDrive, ValidateError};
use fullstroke_trace::{TraceOptions, TraceReader, ValidateReader, ValidateRow};
use fullstroke_units::{Duration, Sectors};
use std::path::Path;
use std::sync::Arc;

/// The requests of a trace with the times of the real disk and of the model.
#[derive(Clone, Debug)]
pub struct ReplayedTrace {
    rows: Vec<ValidateRow>,
    simulated_ms: Vec<f64>,
}

impl ReplayedTrace {
    /// Replays the trace at `path` on `drive` with one request outstanding. The next request is
    /// issued after the completion plus the think time of the row.
    ///
    /// # Errors
    /// Names file and line of a trace that is damaged, empty, or reaches beyond the drive.
    pub fn run(path: &Path, drive: &FoundDrive) -> Result<ReplayedTrace, ValidateError> {
        let model = &drive.model;
        let rows = read(path, model.config().capacity_sectors)
            .map_err(|error| ValidateError::from_trace(error, &drive.name))?;
        let (completed, simulated_ms) =
            simulate(model, &closed(&rows)).map_err(|source| ValidateError::Model {
                drive: drive.name.clone(),
                source,
            })?;
        if completed < rows.len() as u64 {
            let file = path.display().to_string();
            return Err(ValidateError::ClockEnded {
                file,
                completed,
                requests: rows.len(),
            });
        }
        Ok(ReplayedTrace { rows, simulated_ms })
    }

    /// Returns each request of the trace with the model's time in ms.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = (&ValidateRow, f64)> {
        self.rows.iter().zip(self.simulated_ms.iter().copied())
    }
}

/// Returns the rows of a trace, all within `capacity`.
pub(crate) fn read(
    path: &Path,
    capacity: Sectors,
) -> Result<Vec<ValidateRow>, fullstroke_trace::TraceError> {
    check(path, capacity)?;
    let mut reader = ValidateReader::open(path)?;
    let mut rows = Vec::new();
    while let Some(row) = reader.next_row()? {
        rows.push(row);
    }
    Ok(rows)
}

/// Reads the trace once with the general reader. This reader names the line of an empty or misfit
/// request, and refuses a trace without requests.
fn check(path: &Path, capacity: Sectors) -> Result<(), fullstroke_trace::TraceError> {
    let options = TraceOptions {
        capacity: Some(capacity),
        sort_window: 0,
        ..TraceOptions::for_format("disksim-validate")
    };
    let mut reader = TraceReader::open(path, &options)?;
    while reader.next()?.is_some() {}
    Ok(())
}

/// Returns the rows as a closed sequence: each row is issued after the completion and the think
/// time of the row before.
pub(crate) fn closed(rows: &[ValidateRow]) -> Arc<[Paced]> {
    let gaps = std::iter::once(Duration::ZERO).chain(rows.iter().map(|row| row.think));
    let paced = |(awaited, (row, gap)): (usize, (&ValidateRow, Duration))| Paced {
        operation: row.operation,
        extent: row.extent,
        awaited,
        gap,
    };
    rows.iter().zip(gaps).enumerate().map(paced).collect()
}
