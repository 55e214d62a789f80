//! `fullstroke compare`: several stacks, ranked.

use crate::bars::Bars;
use crate::fail_unless::FailUnless;
use crate::memory::peak_rss_mb;
use crate::metrics;
use crate::options::{Changes, LoadSearchOptions, jobs, slow_factor};
use crate::output::{CommandFailure, CommandOutput, print_error, write_whole};
use crate::outputs::{self, OutputKind, Target, read_for};
use crate::perfetto::Perfetto;
use crate::power::{PowerAssumption, is_energy, say_assumed};
use crate::report::Reporting;
use crate::whole_load::LoadSearchOutput;
use clap::Args;
use fullstroke_advise::StackDevices;
use fullstroke_lab::{
    CandidateProgress, ComparedStack, Condition, LabError, MostRanking, Ranking, Recipe, RunResult,
    SearchGoal, Varied, Vary, WholeLoad, recipes, run_all, sample_long_work_of_each,
};
use fullstroke_measure::{Difference, Metric, Stop};
use fullstroke_report::{AnswerBody, CommandAnswer, plots};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

mod csv;
mod devices;

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
    /// response_ms.mean; programs.elapsed_s if programs run. May be repeated: the first metric
    /// decides the order of the main table, and each other metric has a table of its own.
    #[arg(long, value_name = "METRIC", value_parser = Metric::parse)]
    by: Vec<Metric>,

    /// Print the ranking as CSV, with all digits.
    #[arg(long, conflicts_with_all = ["json", "find"])]
    csv: bool,

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

    /// Also run every redundant stack with a first member that takes FACTOR times as long without
    /// failing. Default 2.5. Other kinds of slow members: keys of [[volume.slow]].
    #[arg(long, value_name = "FACTOR", num_args = 0..=1, require_equals = true, default_missing_value = "2.5", value_parser = slow_factor)]
    slow: Option<f64>,

    /// Draw the distance between the heads of each stack's drives over time, as SVG.
    #[arg(long, value_name = "FILE.svg", conflicts_with = "find")]
    plot_heads: Option<PathBuf>,

    #[command(flatten)]
    perfetto: Perfetto,

    #[command(flatten)]
    assuming: PowerAssumption,

    #[command(flatten)]
    prices: devices::Prices,

    #[command(flatten)]
    reporting: Reporting,

    #[command(flatten)]
    failing: FailUnless,

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
    /// Rankings by the further metrics, without the reports of the candidates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<BriefRanking<'a>>,
    /// Disks and flash devices of each stack. Absent without flash devices and prices.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    devices: &'a [StackDevices],
    /// Names of stacks without redundancy, if the command asked for other conditions.
    not_redundant: &'a [String],
    /// Source of the assumed power of the drives. Absent without an assumption.
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed: Option<&'static str>,
    wall_s: f64,
    peak_rss_mb: Option<f64>,
    version: &'static str,
}

/// A ranking by a further metric.
#[derive(Debug, Serialize)]
struct BriefRanking<'a> {
    by: &'a str,
    verdict: Option<&'a str>,
    candidates: Vec<BriefRanked<'a>>,
}

/// A candidate in a [`BriefRanking`].
#[derive(Debug, Serialize)]
struct BriefRanked<'a> {
    rank: usize,
    name: &'a str,
    varied: &'a Varied,
    value: f64,
    ci95_half_width: Option<f64>,
    difference_to_best: Option<Difference>,
}

impl<'a> BriefRanking<'a> {
    fn of(ranking: &'a Ranking) -> BriefRanking<'a> {
        let candidates = ranking.candidates.iter().map(|one| BriefRanked {
            rank: one.rank,
            name: &one.name,
            varied: &one.varied,
            value: one.value,
            ci95_half_width: one.ci95_half_width,
            difference_to_best: one.difference_to_best,
        });
        BriefRanking {
            by: &ranking.by,
            verdict: ranking.verdict.as_deref(),
            candidates: candidates.collect(),
        }
    }
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    if arguments.list_metrics {
        return metrics::list(output);
    }
    let began = Instant::now();
    let mut overrides = arguments.changes.overrides();
    // Checked before the runs, which may take hours.
    outputs::check(
        arguments.targets(),
        &read_for(&arguments.stacks, &overrides, &arguments.vary),
    )?;
    let watts = arguments.by.iter().any(is_energy);
    let files: Vec<&Path> = arguments.stacks.iter().map(PathBuf::as_path).collect();
    let assumed = arguments
        .assuming
        .require_if(watts, &files, &mut overrides)?;
    Vary::check(&arguments.vary).map_err(CommandFailure::input)?;
    let recipes = recipes(&arguments.stacks, &overrides, &arguments.vary);
    let (recipes, left_out) = existing(recipes, &arguments.vary)?;
    // On standard error, because with --json or --csv standard output must hold the ranking alone.
    left_out.iter().for_each(|one| print_error(one));
    let (recipes, not_redundant) = in_conditions(recipes, &arguments.conditions())?;
    let jobs = jobs(arguments.jobs);
    if let Some(most) = arguments.searching.search_goal(jobs, &arguments.changes) {
        return rank_by_most(arguments, output, &recipes, most, assumed);
    }
    let seeds = arguments.seeds.get();
    // With one seed the intervals come from parts of the run, and the seed is that of the stack
    // file.
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
    let mut ran = ran.map_err(CommandFailure::input)?;
    // Before the ranking, because `--by rebuild.hours` ranks by the sampled hours.
    sample(arguments, &recipes, &mut ran, jobs)?;
    let mut metrics = arguments.by.iter().copied();
    let ranking = Ranking::by(&ran, seeds, metrics.next()).map_err(CommandFailure::input)?;
    let others = metrics.map(|by| Ranking::by(&ran, seeds, Some(by)));
    let others = others.collect::<Result<Vec<_>, _>>();
    let others = others.map_err(CommandFailure::input)?;
    let devices = arguments.prices.devices(&recipes, &ran, seeds);
    let comparison = ComparisonOutput {
        ranking: &ranking,
        also: others.iter().map(BriefRanking::of).collect(),
        devices: &devices,
        not_redundant: &not_redundant,
        assumed,
        wall_s: began.elapsed().as_secs_f64(),
        peak_rss_mb: peak_rss_mb(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let notes = scrubs(&ran) + &notes(&not_redundant, assumed);
    // The files are written even if standard output has no reader any more.
    let shown = match arguments.csv {
        true => output.print(&csv::ranking(&ranking, &others)),
        false => {
            let also: String = others
                .iter()
                .map(|other| format!("\n\n{}", other.in_brief()))
                .collect();
            let devices = devices::table(&devices);
            output.show(&comparison, format!("{ranking}{notes}{also}{devices}"))
        }
    };
    arguments.write(&ran, &comparison).and(shown)?;
    arguments.failing.check(ranking.candidates.iter())
}

/// Samples the rebuild of each candidate, and the scrub if its hours are asked for.
fn sample(
    arguments: &Arguments,
    recipes: &[Recipe],
    ran: &mut [RunResult],
    jobs: usize,
) -> Result<(), CommandFailure> {
    let wanted = arguments.by.iter().copied();
    let wanted = wanted.chain(arguments.failing.metrics());
    sample_long_work_of_each(recipes, ran, wanted, jobs, &Stop::default())
        .map_err(CommandFailure::input)
}

/// Returns a line for each run with a scrub: the hours with their interval.
fn scrubs(ran: &[RunResult]) -> String {
    let line = |ran: &RunResult| {
        let report = &ran.measured.report;
        let scrub = report.array.scrub.as_ref()?;
        let name = &report.name;
        Some(format!("\nscrub of {name}: {}", scrub.hours_in_words()))
    };
    ran.iter().filter_map(line).collect()
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
    let answer = searched.answer(AnswerBody::LoadRanking(&found, searched.ran()));
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
        // All traced candidates share one file, so each gets a part of the limit of events.
        let traced = window.map(|window| window.shared_by(candidates.len() / seeds));
        for (index, candidate) in candidates.iter_mut().enumerate() {
            candidate.timeline = self.reporting.page_wanted();
            // Only the first seed of a stack is drawn, because the others differ by chance alone.
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
            self.degraded.then_some(Condition::Degraded),
            self.rebuilding.then_some(Condition::Rebuilding),
            self.slow.map(Condition::Slow),
        ];
        asked.into_iter().flatten().collect()
    }
}

/// Returns the recipes whose combination of varied values exists, and a sentence about each other
/// combination: RAID 6 of three drives does not exist, but RAID 5 of three drives and RAID 6 of four
/// do. A value that exists in no combination is an error.
fn existing(
    recipes: Vec<Recipe>,
    varied: &[Vary],
) -> Result<(Vec<Recipe>, Vec<String>), CommandFailure> {
    // A single `--vary` names each value on purpose, so a setting that does not exist is an error.
    if varied.len() < 2 {
        return Ok((recipes, Vec::new()));
    }
    let (mut exist, mut left_out, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for recipe in recipes {
        match recipe.candidate() {
            Ok(_) => exist.push(recipe),
            Err(error) => {
                left_out.push(format!("left out, because it does not exist: {error}"));
                errors.push((recipe, error));
            }
        }
    }
    let assigns = |recipe: &Recipe, value: &String| recipe.overrides.set.contains(value);
    for (recipe, error) in errors {
        // A value that no combination accepts is a mistake of the user.
        let mut values = varied.iter().flat_map(|vary| {
            let value = |value: &String| format!("{}={value}", vary.key());
            vary.values().iter().map(value).collect::<Vec<String>>()
        });
        let nowhere = |value: &String| !exist.iter().any(|other| assigns(other, value));
        if values.any(|value| assigns(&recipe, &value) && nowhere(&value)) {
            return Err(CommandFailure::input(error));
        }
    }
    Ok((exist, left_out))
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
        // A stack without redundancy has no degraded state; the output says so once for each stack.
        if others.iter().any(Option::is_none) {
            not_redundant.push(recipe.name.clone());
        }
        all.push(recipe);
        all.extend(others.into_iter().flatten());
    }
    Ok((all, not_redundant))
}
