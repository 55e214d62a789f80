//! `fullstroke tune`: finds the best of many combinations of values.

use crate::memory::peak_rss_mb;
use crate::options::{Changes, confidence, jobs};
use crate::output::{CommandFailure, CommandOutput};
use crate::outputs::{self, read_for};
use crate::report::Reporting;
use crate::slow::Lines;
use clap::Args;
use fullstroke_lab::{Recipe, SearchEnd, TuneSearch, Tuned, Vary, WholeLoad, recipes};
use fullstroke_measure::{Metric, Stop};
use fullstroke_report::{AnswerBody, CommandAnswer as Reported};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::{IsTerminal as _, stderr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

/// Search the best combination of values of a stack's keys, by a race on the same requests.
///
/// The workload is cut into parts. All combinations, or a sample of them, run the first parts. A
/// combination that is significantly worse than the leader drops out. Neighbours of the leader
/// join, and the rest run further parts (docs/tune.md).
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The stack file.
    stack: PathBuf,

    /// Values of a key to search, as in volume.chunk=16KiB,64KiB,256KiB. May be repeated; all
    /// combinations are then searched.
    #[arg(long, value_name = "KEY=VALUE,...", required = true)]
    vary: Vec<Vary>,

    /// Metric: a number of `run --json` by its dotted name.
    #[arg(long, value_name = "METRIC", value_parser = Metric::parse, default_value = "response_ms.mean")]
    by: Metric,

    /// Number of combinations at the start, chosen as a Latin hypercube: each value of each key
    /// occurs about equally often. If fewer combinations exist, all start.
    #[arg(long, value_name = "NUMBER", default_value = "64")]
    sample: NonZeroUsize,

    /// Number of parts of the workload. A trace is cut into parts of equal numbers of requests; any
    /// other workload runs with a seed per part.
    #[arg(long, value_name = "NUMBER", default_value = "64", value_parser = clap::value_parser!(u32).range(4..=4096))]
    batches: u32,

    /// Number of parts that all combinations run. Default 8, or a quarter of the parts if there are
    /// fewer than 32.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..=4096))]
    first: Option<u32>,

    /// Probability that the best of the tried combinations does not drop out.
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = confidence)]
    confidence: f64,

    /// Number of runs at a time. Default: number of cores.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    reporting: Reporting,

    #[command(flatten)]
    changes: Changes,
}

/// Output of `tune --json`.
#[derive(Debug, Serialize)]
struct TuneOutput<'a> {
    #[serde(flatten)]
    tuned: &'a Tuned,
    wall_s: f64,
    peak_rss_mb: Option<f64>,
    version: &'static str,
    /// Runs of the best combinations on the whole workload. `None` if no page was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_load: Option<Vec<WholeLoad>>,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let began = Instant::now();
    let overrides = arguments.changes.overrides();
    let stack = std::slice::from_ref(&arguments.stack);
    // Before the race, because a race may take hours, and a target that cannot be written would
    // lose the result.
    outputs::check(
        arguments.reporting.targets(),
        &read_for(stack, &overrides, &arguments.vary),
    )?;
    Vary::check(&arguments.vary).map_err(CommandFailure::input)?;
    let recipe: Recipe = recipes(stack, &overrides, &[]).remove(0);
    let search = TuneSearch {
        by: arguments.by,
        sample: arguments.sample.get(),
        batches: arguments.batches as usize,
        first: arguments
            .first
            // At least 2: the difference of a single part has no interval.
            .unwrap_or_else(|| (arguments.batches / 4).clamp(2, 8)) as usize,
        confidence: arguments.confidence,
        jobs: jobs(arguments.jobs),
        end: SearchEnd::default(),
    };
    let bar = spinner(output);
    let lines = Lines::new();
    let tuned = search.run_with_whole_load(
        &Stop::default(),
        &recipe,
        &arguments.vary,
        &|runs, running| {
            let what = || format!("{runs} runs made, {running} combinations left");
            bar.set_message(what());
            if bar.is_hidden() && !output.json() {
                lines.say(what);
            }
        },
    );
    // Before an error is printed, because the message would otherwise stand behind the spinner.
    bar.finish_and_clear();
    let tuned = tuned.map_err(CommandFailure::input)?;
    let whole_load = arguments.reporting.page_wanted();
    let whole_load = whole_load
        .then(|| WholeLoad::of_tuned(&tuned, &recipe, search.jobs))
        .transpose()
        .map_err(CommandFailure::input)?;
    let answer = TuneOutput {
        tuned: &tuned,
        wall_s: began.elapsed().as_secs_f64(),
        peak_rss_mb: peak_rss_mb(),
        version: env!("CARGO_PKG_VERSION"),
        whole_load,
    };
    let files: Vec<_> = [arguments.stack.as_path()]
        .into_iter()
        .chain(arguments.changes.job_file())
        .collect();
    let shown = output.show(&answer, format!("{tuned}\nSeed {}.", tuned.seed));
    let reported = Reported {
        found: AnswerBody::Tuned(&tuned, answer.whole_load.as_deref().unwrap_or_default()),
        version: answer.version,
        wall_s: Some(answer.wall_s),
    };
    arguments.reporting.write(&reported, &files).and(shown)
}

/// Creates a spinner on a terminal, for the current step.
pub(crate) fn spinner(output: &CommandOutput) -> ProgressBar {
    if output.json() || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
    ProgressBar::new_spinner()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}
