//! `fullstroke study list`: lists the studies.

use super::Selection;
use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_measure::table;
use fullstroke_study::Study;
use serde::Serialize;

/// List the studies.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// List the metrics for claims and figures instead of the studies.
    #[arg(long)]
    list_metrics: bool,

    #[command(flatten)]
    selection: Selection,
}

/// Line of one study.
#[derive(Debug, Serialize)]
struct Line<'a> {
    id: &'a str,
    title: &'a str,
    source: &'a str,
    points: usize,
    replications: u32,
    claims: usize,
    short: bool,
}

impl<'a> Line<'a> {
    fn new(study: &'a Study) -> Line<'a> {
        Line {
            id: &study.id,
            title: &study.config.title,
            source: &study.config.source,
            points: study.matrix.points().len() * study.variations().len(),
            replications: study.config.replications,
            claims: study.claims.len(),
            short: study.config.short,
        }
    }
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    if arguments.list_metrics {
        return crate::metrics::list(output);
    }
    let studies = arguments.selection.find()?;
    let lines: Vec<Line<'_>> = studies.iter().map(Line::new).collect();
    let mut table = table(
        ["study", "points", "seeds", "claims", "short", "title"],
        &[0, 4, 5],
    );
    for line in &lines {
        table.add_row([
            line.id.to_owned(),
            line.points.to_string(),
            line.replications.to_string(),
            line.claims.to_string(),
            (if line.short { "yes" } else { "" }).to_owned(),
            line.title.to_owned(),
        ]);
    }
    output.show(&lines, table.trim_fmt())
}
