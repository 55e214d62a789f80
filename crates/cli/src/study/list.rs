//! `fullstroke study list`: lists the studies.

use super::Selection;
use crate::output::{CommandFailure, CommandOutput};
use clap::Args;
use fullstroke_measure::table;

/// List the studies.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// List the metrics for claims and figures instead of the studies.
    #[arg(long)]
    list_metrics: bool,

    #[command(flatten)]
    selection: Selection,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    if arguments.list_metrics {
        return crate::metrics::list(output);
    }
    let lines = arguments.selection.outlines()?;
    let mut table = table(
        ["study", "points", "seeds", "claims", "short", "title"],
        &[0, 4, 5],
    );
    for line in &lines {
        table.add_row([
            line.id.clone(),
            line.points.to_string(),
            line.replications.to_string(),
            line.claims.to_string(),
            (if line.short { "yes" } else { "" }).to_owned(),
            line.title.clone(),
        ]);
    }
    output.show(&lines, table.trim_fmt())
}
