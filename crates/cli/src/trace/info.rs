//! `fullstroke trace info`: describes a trace.

use crate::options::Selection;
use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_trace::{FioReport, Options, Summary, TraceError, TraceReader};
use std::path::PathBuf;

/// Describe a trace: counts, mix, sizes, rates, footprint, sequential share, inter-arrival times
/// and queue depth. For a JSON report of fio, the results of the report.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Trace: plain, gzip, zstd or xz. Name a blktrace by its folder, or by the file without the
    /// processor's number.
    trace: PathBuf,

    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    // A trace without addresses still has counts, sizes and times.
    let options = Options {
        needs_addresses: false,
        ..arguments.selection.options()
    };
    let mut reader = match TraceReader::open(&arguments.trace, &options) {
        Ok(reader) => reader,
        Err(TraceError::FioReport { .. }) => {
            let report = FioReport::read(&arguments.trace).map_err(Failure::input)?;
            return output.show(&report, &report);
        }
        Err(error) => return Err(Failure::input(error)),
    };
    let summary = Summary::of(&mut reader).map_err(Failure::input)?;
    output.show(&summary, &summary)
}
