//! `fullstroke study run`: runs the points without results.

use super::check::{check_all, check_targets, verdict, write_page};
use super::{LoadedStudies, Selection, Traces, dask};
use crate::bars::Bars;
use crate::options::jobs;
use crate::output::{CommandFailure, CommandOutput};
use crate::report::Reporting;
use clap::Args;
use fullstroke_study::{CheckedClaims, RunList, Store, VERSION, run_tasks};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::time::Instant;

/// Run the points of studies that have no results yet. Each result is stored at once, so an
/// interrupted command continues where it stopped.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,

    /// Number of runs at a time. Default: number of cores.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    /// Run on the workers of a Dask cluster, as in tcp://host:8786. The workers need this program
    /// and the stacks' files at the same paths. The results are stored here.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "jobs")]
    dask: Option<String>,

    /// Set a key in every stack, as in workload.duration=2s, for a quick look. The results are kept
    /// apart (may be repeated).
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    #[command(flatten)]
    traces: Traces,

    #[command(flatten)]
    reporting: Reporting,
}

/// Output of `study run --json`.
#[derive(Debug, Serialize)]
struct StudyRunOutput<'a> {
    studies: usize,
    runs: usize,
    runs_done_before: usize,
    results_of_other_builds: usize,
    wall_s: f64,
    version: &'static str,
    /// Verdict on the page. `None` if no page or figure was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checked: Option<Vec<CheckedClaims<'a>>>,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let began = Instant::now();
    let (studies, store) = (
        arguments.selection.find_with(&arguments.traces)?,
        arguments.selection.store(),
    );
    // Before the runs, which may take days.
    check_targets(&arguments.reporting, &studies, &arguments.traces)?;
    let jobs = jobs(arguments.jobs);
    let run_list = RunList::new(&studies, &arguments.set, jobs).map_err(CommandFailure::input)?;
    let crew = arguments
        .dask
        .as_deref()
        .map_or(RunExecutor::Threads(jobs), RunExecutor::Dask);
    let runs = run_missing(&run_list, &store, crew, output)?;
    let results = store
        .read(&run_list.keys())
        .map_err(CommandFailure::input)?;
    let loaded = LoadedStudies {
        studies,
        run_list,
        results,
    };
    let checked = arguments
        .reporting
        .wanted()
        .then(|| check_all(&loaded))
        .transpose()?;
    let done = StudyRunOutput {
        studies: loaded.studies.len(),
        runs,
        runs_done_before: loaded.run_list.tasks.len() - runs,
        results_of_other_builds: store.other_builds(),
        wall_s: began.elapsed().as_secs_f64(),
        version: VERSION,
        verdict: checked.as_deref().map(verdict),
        checked,
    };
    let others = match done.results_of_other_builds {
        0 => String::new(),
        1 => "; results of another build are kept as well".to_owned(),
        many => format!("; results of {many} other builds are kept as well"),
    };
    let text = format!(
        "{} runs in {:.1} s, {} existed already{others}",
        done.runs, done.wall_s, done.runs_done_before
    );
    // The page is written even if standard output has no reader any more, so this error is returned
    // last.
    let shown = output.show(&done, text);
    let Some((verdict, checked)) = done.verdict.as_deref().zip(done.checked.as_deref()) else {
        return shown;
    };
    let wall_s = Some(done.wall_s);
    write_page(
        &arguments.reporting,
        (verdict, checked),
        wall_s,
        &loaded.studies,
    )
    .and(shown)
}

/// Executor of the runs.
#[derive(Clone, Copy)]
pub(super) enum RunExecutor<'a> {
    /// This number of threads in this process.
    Threads(usize),
    /// Workers of the Dask scheduler at this address.
    Dask(&'a str),
}

/// Runs the tasks without results, with a progress bar. Returns the number of runs.
pub(super) fn run_missing(
    run_list: &RunList,
    store: &Store,
    crew: RunExecutor<'_>,
    output: &CommandOutput,
) -> Result<usize, CommandFailure> {
    let read = || store.read(&run_list.keys()).map_err(CommandFailure::input);
    let mut missing = run_list.missing(&read()?);
    if missing.is_empty() {
        return Ok(0);
    }
    let writer = store.writer().map_err(CommandFailure::input)?;
    // Another process may have added results before this one got the store's writer.
    missing = run_list.missing(&read()?);
    let bars = Bars::new(["runs"], output);
    let all = missing.len() as u64;
    bars.advance(0, 0, Some(all));
    let progress = |done: usize| bars.advance(0, done as u64, Some(all));
    let ran = match crew {
        RunExecutor::Threads(jobs) => run_tasks(&missing, jobs, writer, &progress),
        RunExecutor::Dask(scheduler) => dask::run_tasks(&missing, scheduler, writer, &progress),
    };
    bars.clear();
    ran.map_err(CommandFailure::input)?;
    Ok(missing.len())
}
