//! `fullstroke trace head`: shows the first requests of a trace.

use crate::options::Selection;
use crate::output::{CommandFailure, CommandOutput};
use crate::standard_input;
use clap::Args;
use fullstroke_trace::{TraceOptions, TraceReader, head, render_head};
use std::path::PathBuf;

/// Show the first requests of a trace. With --json, one object per line.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Trace: plain, gzip, zstd or xz.
    #[arg(value_parser = standard_input::file)]
    trace: PathBuf,

    /// Number of requests.
    #[arg(short, long, value_name = "NUMBER", default_value_t = 10)]
    number: usize,

    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    // A trace without addresses still has requests to show.
    let options = TraceOptions {
        needs_addresses: false,
        ..arguments.selection.options()
    };
    let mut reader =
        TraceReader::open(&arguments.trace, &options).map_err(CommandFailure::input)?;
    let records = head(&mut reader, arguments.number).map_err(CommandFailure::input)?;
    if !output.json() {
        return output.print(&format!("{}\n", render_head(&records)));
    }
    let lines: Result<Vec<String>, _> = records.iter().map(serde_json::to_string).collect();
    let text: String = lines
        .map_err(CommandFailure::input)?
        .into_iter()
        .map(|line| line + "\n")
        .collect();
    output.print(&text)
}
