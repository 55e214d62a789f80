//! `fullstroke compare`: several stacks, ranked.

use crate::bars::Bars;
use crate::memory::peak_rss_mb;
use crate::metrics;
use crate::options::{Changes, LoadSearchOptions, jobs};
use crate::output::{CommandFailure, CommandOutput, write_whole};
use crate::outputs::{self, OutputKind, Target, read_for};
use crate::perfetto::Perfetto;
use crate::power::{PowerAssumption, is_energy, say_assumed};
use crate::report::Reporting;
use crate::whole_load::LoadSearchOutput;
use clap::Args;
use fullstroke_lab::{
    CandidateProgress, ComparedStack, Condition, LabError, MostRanking, Ranking, Recipe, RunResult,
    SearchGoal, Vary, WholeLoad, recipes, run_all,
};
use fullstroke_measure::Metric;
use fullstroke_report::{AnswerBody, CommandAnswer, plots};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Run several stacks, rank them by one metric, and state the certainty of the order.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The stack files.
    #[arg(required_unless_present = "list_metrics")]
    stacks: Vec<PathBuf>,

    /// List all metrics for --by, with unit and meaning.
    #[arg(long)]
    list_metrics: bool,

    /// Metric: a number of `run --json` by its dotted name, such as response_ms.p99, iops,
    /// reads.response_ms.mean, members.utilisation or operations.fsync.latency_ms.p99. Default
    /// response_ms.mean; programs.elapsed_s if programs run.
    #[arg(long, value_name = "METRIC", value_parser = Metric::parse)]
    by: Option<Metric>,

    /// Run every stack with each of these values, as in volume.chunk=16KiB,64KiB,256KiB. May be
    /// repeated; all combinations then run.
    #[arg(long, value_name = "KEY=VALUE,...")]
    vary: Vec<Vary>,

    /// Also run every redundant stack with one failed member. The degraded stack has its own rank.
    #[arg(long)]
    degraded: bool,

    /// Also run every redundant stack during the rebuild of one new member.
    #[arg(long)]
    rebuilding: bool,

    /// Also run every redundant stack with a first member that takes ten times as long without
    /// failing. Other kinds of slow members: --vary volume.slow.factor=2,10.
    #[arg(long)]
    slow: bool,

    /// Draw the distance between the heads of each stack's drives over time, as SVG.
    #[arg(long, value_name = "FILE.svg", conflicts_with = "find")]
    plot_heads: Option<PathBuf>,

    #[command(flatten)]
    perfetto: Perfetto,

    #[command(flatten)]
    assuming: PowerAssumption,

    #[command(flatten)]
    reporting: Reporting,

    #[command(flatten)]
    searching: LoadSearchOptions,

    /// Run every stack with this number of seeds, and rank by the means. The seeds are the stack's
    /// own and the next numbers. Confidence intervals are over seeds; metrics of programs have no
    /// other intervals.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value = "1",
        conflicts_with = "find"
    )]
    seeds: NonZeroUsize,

    /// Number of runs at a time. Default: number of cores.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    changes: Changes,
}

/// Output of `compare --json`.
#[derive(Debug, Serialize)]
struct ComparisonOutput<'a> {
    #[serde(flatten)]
    ranking: &'a Ranking,
    /// Names of stacks without redundancy, if the command asked for other conditions.
    not_redundant: &'a [String],
    /// Source of the assumed power of the drives. Absent without an assumption.
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed: Option<&'static str>,
    wall_s: f64,
    peak_rss_mb: Option<f64>,
    version: &'static str,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    if arguments.list_metrics {
        return metrics::list(output);
    }
    let began = Instant::now();
    let mut overrides = arguments.changes.overrides();
    outputs::check(
        arguments.targets(),
        &read_for(&arguments.stacks, &overrides, &arguments.vary),
    )?;
    let watts = arguments.by.as_ref().is_some_and(is_energy);
    let files: Vec<&Path> = arguments.stacks.iter().map(PathBuf::as_path).collect();
    let assumed = arguments
        .assuming
        .require_if(watts, &files, &mut overrides)?;
    let recipes = recipes(&arguments.stacks, &overrides, &arguments.vary);
    let (recipes, not_redundant) = in_conditions(recipes, &arguments.conditions())?;
    let jobs = jobs(arguments.jobs);
    if let Some(most) = arguments.searching.search_goal(jobs) {
        return rank_by_most(arguments, output, &recipes, most, assumed);
    }
    let seeds = arguments.seeds.get();
    let recipes = if seeds == 1 {
        recipes
    } else {
        with_seeds(&recipes, seeds).map_err(CommandFailure::input)?
    };
    let candidates = arguments.candidates(&recipes, seeds)?;
    let bars = bars_of(&recipes, output);
    let ran = run_all(&candidates, jobs, &|event: CandidateProgress| {
        bars.advance(event.candidate, event.finished, event.expected);
        if event.over {
            bars.finish(event.candidate);
        }
    });
    bars.clear();
    let ran = ran.map_err(CommandFailure::input)?;
    let ranking = Ranking::by(&ran, seeds, arguments.by).map_err(CommandFailure::input)?;
    let comparison = ComparisonOutput {
        ranking: &ranking,
        not_redundant: &not_redundant,
        assumed,
        wall_s: began.elapsed().as_secs_f64(),
        peak_rss_mb: peak_rss_mb(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let notes = notes(&not_redundant, assumed);
    // The files are written even if standard output has no reader any more.
    let shown = output.show(&comparison, format!("{ranking}{notes}"));
    arguments.write(&ran, &comparison).and(shown)
}

/// Ranks the candidates by the highest load that each carries.
fn rank_by_most(
    arguments: &Arguments,
    output: &CommandOutput,
    recipes: &[Recipe],
    most: SearchGoal,
    assumed: Option<&'static str>,
) -> Result<(), CommandFailure> {
    let jobs = jobs(arguments.jobs);
    let bars = bars_of(recipes, output);
    let found = MostRanking::new(recipes, most, &|index, simulated| {
        bars.advance(index, simulated, None)
    });
    bars.clear();
    let found = found.map_err(CommandFailure::input)?;
    let whole_load = arguments.reporting.page_wanted();
    let whole_load = whole_load
        .then(|| WholeLoad::of_found(&found.candidates, recipes, jobs))
        .transpose()
        .map_err(CommandFailure::input)?;
    let searched = LoadSearchOutput::new(&found, whole_load);
    say_assumed(assumed);
    // As in `execute`: the files are written even without a reader of standard output.
    let shown = output.show(&searched, &found);
    let answer = searched.answer(AnswerBody::Most(&found, searched.ran()));
    arguments
        .reporting
        .write(&answer, &arguments.files())
        .and(shown)
}

/// Returns the notes below the ranking.
fn notes(not_redundant: &[String], assumed: Option<&'static str>) -> String {
    let mut notes = match not_redundant {
        [] => String::new(),
        names => format!(
            "\nWithout redundancy, and so run in one condition only: {}.",
            names.join(", ")
        ),
    };
    if let Some(source) = assumed {
        notes += &format!("\nSource of the power figures: {source}.");
    }
    notes
}

fn bars_of(recipes: &[Recipe], output: &CommandOutput) -> Bars {
    let labels: Vec<String> = recipes.iter().map(Recipe::label).collect();
    Bars::new(labels.iter().map(String::as_str), output)
}

/// Returns each recipe once per seed. Runs of one recipe are adjacent.
fn with_seeds(recipes: &[Recipe], seeds: usize) -> Result<Vec<Recipe>, LabError> {
    let each = recipes
        .iter()
        .map(|recipe| recipe.with_seeds(seeds))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(each.concat())
}

impl Arguments {
    /// Builds a candidate for each recipe. With several seeds, only the first run of each recipe is
    /// traced.
    fn candidates(
        &self,
        recipes: &[Recipe],
        seeds: usize,
    ) -> Result<Vec<ComparedStack>, CommandFailure> {
        let candidates = recipes.iter().map(Recipe::candidate);
        let candidates = candidates.collect::<Result<Vec<_>, _>>();
        let mut candidates = candidates.map_err(CommandFailure::input)?;
        let window = self.perfetto.window();
        let traced = window.map(|window| window.shared_by(candidates.len() / seeds));
        for (index, candidate) in candidates.iter_mut().enumerate() {
            candidate.timeline = self.reporting.page_wanted();
            candidate.perfetto = traced.filter(|_| index % seeds == 0);
        }
        Ok(candidates)
    }

    /// Returns the files to write.
    fn targets(&self) -> impl Iterator<Item = Option<Target<'_>>> {
        let own = [
            Target::of("--plot-heads", &self.plot_heads, OutputKind::Figure),
            self.perfetto.target(),
        ];
        self.reporting.targets().into_iter().chain(own)
    }

    /// Writes the requested files.
    fn write(
        &self,
        ran: &[RunResult],
        comparison: &ComparisonOutput<'_>,
    ) -> Result<(), CommandFailure> {
        self.perfetto.write_all(ran)?;
        let answer = CommandAnswer {
            found: AnswerBody::Ranking(comparison.ranking),
            version: comparison.version,
            wall_s: Some(comparison.wall_s),
        };
        self.reporting.write(&answer, &self.files())?;
        match &self.plot_heads {
            Some(path) => write_whole(
                path,
                plots::heads(comparison.ranking).map_err(CommandFailure::input)?,
            ),
            None => Ok(()),
        }
    }

    /// Returns the input files that people wrote: stacks and the job file.
    fn files(&self) -> Vec<&Path> {
        self.stacks
            .iter()
            .map(PathBuf::as_path)
            .chain(self.changes.job_file())
            .collect()
    }

    /// Returns the conditions in which stacks run besides the healthy state.
    fn conditions(&self) -> Vec<Condition> {
        let asked = [
            (self.degraded, Condition::Degraded),
            (self.rebuilding, Condition::Rebuilding),
            (self.slow, Condition::Slow),
        ];
        asked
            .into_iter()
            .filter_map(|(asked, condition)| asked.then_some(condition))
            .collect()
    }
}

/// Returns each recipe followed by its variants in all `conditions`, and the names of recipes
/// without redundancy.
fn in_conditions(
    recipes: Vec<Recipe>,
    conditions: &[Condition],
) -> Result<(Vec<Recipe>, Vec<String>), CommandFailure> {
    let (mut all, mut not_redundant) = (Vec::new(), Vec::new());
    for recipe in recipes {
        let others = conditions
            .iter()
            .map(|&condition| recipe.in_condition(condition));
        let others = others
            .collect::<Result<Vec<_>, _>>()
            .map_err(CommandFailure::input)?;
        if others.iter().any(Option::is_none) {
            not_redundant.push(recipe.name.clone());
        }
        all.push(recipe);
        all.extend(others.into_iter().flatten());
    }
    Ok((all, not_redundant))
}
