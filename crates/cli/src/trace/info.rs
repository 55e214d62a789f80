//! `fullstroke trace info`: what a trace holds.

use crate::options::Selection;
use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_trace::{Summary, TraceReader};
use std::path::PathBuf;

/// Describe a trace: counts, mix, sizes, rates, footprint, sequential share,
/// inter-arrival times and queue depth.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The trace; plain, gzip, zstd or xz.
    trace: PathBuf,

    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let mut reader =
        TraceReader::open(&arguments.trace, &arguments.selection.options()).map_err(Failure::input)?;
    let summary = Summary::of(&mut reader).map_err(Failure::input)?;
    output.show(&summary, &summary)
}
