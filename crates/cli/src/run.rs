//! `fullstroke run`: one stack, measured.

use crate::bars::Bars;
use crate::memory::peak_rss_mb;
use crate::options::Changes;
use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_lab::{candidates, run};
use std::path::PathBuf;

/// Run one stack and report response times, rates and what each drive did.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The stack file.
    stack: PathBuf,

    /// Write every request with its breakdown and the drives it touched to this
    /// file: CSV if it ends in .csv or .csv.gz, else Parquet.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    #[command(flatten)]
    changes: Changes,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let files = std::slice::from_ref(&arguments.stack);
    let candidates = candidates(files, &arguments.changes.overrides(), &[]).map_err(Failure::input)?;
    for candidate in &candidates {
        let bars = Bars::new([candidate.name.as_str()], output);
        let progress = |finished, expected| bars.advance(0, finished, expected);
        let ran = run(candidate, arguments.log.as_deref(), &progress);
        bars.clear();
        let mut report = ran.map_err(Failure::input)?.measured.report;
        report.peak_rss_mb = peak_rss_mb();
        output.show(&report, &report)?;
    }
    Ok(())
}
