//! `fullstroke compare`: several stacks, ranked.

use crate::bars::Bars;
use crate::memory::peak_rss_mb;
use crate::options::Changes;
use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_lab::{Event, Ranking, Vary, candidates, run_all};
use fullstroke_measure::Metric;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Instant;

/// Run several stacks, rank them by one metric, and say how sure the order is.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The stack files.
    #[arg(required = true)]
    stacks: Vec<PathBuf>,

    /// The metric: a number of `run --json` by its dotted name, such as
    /// response_ms.p99, iops, reads.response_ms.mean or members.utilisation.
    #[arg(long, value_name = "METRIC", default_value = "response_ms.mean", value_parser = Metric::parse)]
    by: Metric,

    /// Run every stack at each of these values, as in
    /// volume.chunk=16KiB,64KiB,256KiB (may be repeated: all combinations).
    #[arg(long, value_name = "KEY=VALUE,...")]
    vary: Vec<Vary>,

    /// Runs at a time; as many as there are cores unless said.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    changes: Changes,
}

/// What `compare --json` prints.
#[derive(Debug, Serialize)]
struct Comparison<'a> {
    #[serde(flatten)]
    ranking: &'a Ranking,
    wall_s: f64,
    peak_rss_mb: Option<f64>,
    version: &'static str,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let began = Instant::now();
    let overrides = arguments.changes.overrides();
    let candidates = candidates(&arguments.stacks, &overrides, &arguments.vary).map_err(Failure::input)?;
    let jobs = arguments.jobs.or_else(|| available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let bars = Bars::new(candidates.iter().map(|candidate| candidate.name.as_str()), output);
    let ran = run_all(&candidates, jobs, &|event: Event| {
        bars.advance(event.candidate, event.finished, event.expected);
        if event.over {
            bars.finish(event.candidate);
        }
    });
    bars.clear();
    let ranking = Ranking::new(&ran.map_err(Failure::input)?, arguments.by);
    let comparison = Comparison {
        ranking: &ranking,
        wall_s: began.elapsed().as_secs_f64(),
        peak_rss_mb: peak_rss_mb(),
        version: env!("CARGO_PKG_VERSION"),
    };
    output.show(&comparison, &ranking)
}
