//! `fullstroke trace formats`: lists the readable formats.

use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_measure::table;
use fullstroke_trace::FORMATS;
use serde::Serialize;

/// List the readable trace formats.
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

#[derive(Debug, Serialize)]
struct FormatEntry {
    name: &'static str,
    summary: &'static str,
    columns: &'static str,
}

pub(crate) fn execute(_: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let listed: Vec<FormatEntry> = FORMATS
        .iter()
        .map(|format| FormatEntry {
            name: format.name,
            summary: format.summary,
            columns: format.columns,
        })
        .collect();
    let mut table = table(["name", "description"], &[0, 1]);
    for format in &listed {
        table.add_row([format.name, format.summary]);
    }
    output.show(&listed, table.trim_fmt())
}
