//! `fullstroke run`: one stack, measured.

use crate::bars::Bars;
use crate::memory::peak_rss_mb;
use crate::options::Changes;
use crate::output::{Failure, Output};
use crate::replay;
use clap::{Args, ValueEnum};
use fullstroke_fio::FioReport;
use fullstroke_lab::{Ran, Search, candidates, most_streams, run};
use std::io::Write as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::thread::available_parallelism;

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

    /// Find the most of something that the stack bears, in place of one run.
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["log", "trace", "fio", "replay_decisions"])]
    find: Option<Find>,

    /// The confidence with which --find states its result.
    #[arg(long, value_name = "SHARE", default_value = "0.95", requires = "find", value_parser = confidence)]
    confidence: f64,

    /// Runs of --find at each step, each with a seed of its own.
    #[arg(long, value_name = "NUMBER", default_value = "10", requires = "find")]
    replications: NonZeroU32,

    /// Runs of --find at a time; as many as there are cores unless said.
    #[arg(long, value_name = "NUMBER", requires = "find")]
    jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    changes: Changes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Find {
    /// Media streams that play without an underrun.
    Streams,
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
    if let Some(Find::Streams) = arguments.find {
        return find_streams(arguments, output);
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

fn find_streams(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let jobs = arguments.jobs.or_else(|| available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let search =
        Search { confidence: arguments.confidence, replications: arguments.replications.get(), jobs };
    let name = arguments.stack.display().to_string();
    let bars = Bars::new([name.as_str()], output);
    let overrides = arguments.changes.overrides();
    let found = most_streams(&arguments.stack, &overrides, search, &|simulated| {
        bars.advance(0, simulated, None);
    });
    bars.clear();
    let found = found.map_err(Failure::input)?;
    output.show(&found, &found)
}

fn confidence(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "expected a share above 0 and below 1, such as 0.95".to_owned())
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
