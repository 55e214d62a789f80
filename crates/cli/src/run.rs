//! `fullstroke run`: one stack, measured.

use crate::bars::Bars;
use crate::memory::peak_rss_mb;
use crate::options::Changes;
use crate::output::{Failure, Output};
use crate::replay;
use clap::{Args, ValueEnum};
use fullstroke_fio::FioReport;
use fullstroke_lab::{Ran, candidates, run};
use std::io::Write as _;
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

    /// Replay the decisions of a run of `serve --record` under the virtual
    /// clock, and require the same in the same order (status 1 if they differ).
    #[arg(long, value_name = "FILE.parquet", conflicts_with_all = ["log", "trace", "requests"])]
    replay_decisions: Option<PathBuf>,

    /// How the results of a job file are printed; --json is fullstroke's own
    /// report in any case.
    #[arg(long, value_name = "FORMAT", default_value = "normal", conflicts_with = "json")]
    output_format: OutputFormat,

    #[command(flatten)]
    changes: Changes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// For people.
    Normal,
    /// As by `fio --output-format=json`.
    FioJson,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    if let Some(record) = &arguments.replay_decisions {
        return replay::execute(&arguments.stack, &arguments.changes.overrides(), record, output);
    }
    let files = std::slice::from_ref(&arguments.stack);
    let candidates = candidates(files, &arguments.changes.overrides(), &[]).map_err(Failure::input)?;
    for candidate in &candidates {
        if arguments.output_format == OutputFormat::FioJson && !candidate.stack.has_job_file() {
            let message = "--output-format=fio-json shows the jobs of a job file; give --fio FILE";
            return Err(Failure::Input(message.to_owned()));
        }
        let bars = Bars::new([candidate.name.as_str()], output);
        let progress = |finished, expected| bars.advance(0, finished, expected);
        let ran = run(candidate, arguments.log.as_deref(), &progress);
        bars.clear();
        let mut ran = ran.map_err(Failure::input)?;
        ran.measured.report.peak_rss_mb = peak_rss_mb();
        show(&ran, arguments.output_format, output)?;
    }
    Ok(())
}

fn show(ran: &Ran, format: OutputFormat, output: &Output) -> Result<(), Failure> {
    let report = &ran.measured.report;
    match (format, &ran.fio) {
        (_, None) => output.show(report, report),
        (OutputFormat::FioJson, Some(fio)) => {
            name_ignored(fio);
            output.show_json(&fio.json(env!("CARGO_PKG_VERSION")))
        }
        (OutputFormat::Normal, Some(fio)) => {
            if output.json() {
                name_ignored(fio);
            }
            output.show(report, format!("{report}\n\n{fio}"))
        }
    }
}

/// Where standard output is for programs, people still learn which options of
/// the job file change nothing.
fn name_ignored(fio: &FioReport) {
    let names: Vec<&str> = fio.ignored().iter().map(|option| option.name).collect();
    if !names.is_empty() {
        let note = format!("fullstroke: options that change nothing here: {}", names.join(", "));
        // If nobody reads it, nothing is lost.
        let _ = writeln!(std::io::stderr(), "{note}");
    }
}
