//! `fullstroke trace info`: describes a trace.

use crate::options::Selection;
use crate::output::{CommandFailure, CommandOutput};
use crate::standard_input;
use clap::Args;
use fullstroke_trace::{FioReport, TraceError, TraceOptions, TraceReader, TraceSummary};
use std::path::PathBuf;

/// Describe a trace: counts, mix, sizes, rates, footprint, sequential share, inter-arrival times
/// and queue depth. For a JSON report of fio, the results of the report.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Trace: plain, gzip, zstd or xz. Name a blktrace by its folder, or by the file without the
    /// processor's number.
    #[arg(value_parser = standard_input::file)]
    trace: PathBuf,

    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    // A trace without addresses still has counts, sizes and times.
    let options = TraceOptions {
        needs_addresses: false,
        ..arguments.selection.options()
    };
    let mut reader = match TraceReader::open(&arguments.trace, &options) {
        Ok(reader) => reader,
        Err(TraceError::FioReport { .. }) => {
            let report = FioReport::read(&arguments.trace).map_err(CommandFailure::input)?;
            return output.show(&report, &report);
        }
        Err(error) => return Err(CommandFailure::input(error)),
    };
    let summary = TraceSummary::of(&mut reader).map_err(CommandFailure::input)?;
    output.show(&summary, &summary)
}
