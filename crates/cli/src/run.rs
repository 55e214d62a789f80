//! `fullstroke run`: measures one stack.

use crate::bars::Bars;
use crate::memory::peak_rss_mb;
use crate::metrics;
use crate::options::{Changes, LoadSearchOptions, jobs};
use crate::output::{CommandFailure, CommandOutput, print_error, write_whole};
use crate::outputs::{self, OutputKind, Target, read_for};
use crate::perfetto::Perfetto;
use crate::power::{PowerAssumption, say_assumed};
#[cfg(feature = "real")]
use crate::replay_decisions;
use crate::report::Reporting;
use crate::whole_load::LoadSearchOutput;
use clap::{Args, ValueEnum};
use fullstroke_fio::FioGroupResults;
use fullstroke_lab::{
    LargestLoad, MostRanking, Recipe, RunResult, SearchGoal, WholeLoad, candidates, recipes, run,
    sample_long_work,
};
use fullstroke_measure::{PerfettoFile, Stop};
use fullstroke_report::{AnswerBody, CommandAnswer, plots};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Run one stack and report response times, rates and the activity of each drive.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Stack file.
    #[arg(required_unless_present = "list_metrics")]
    stack: Option<PathBuf>,

    /// List all metrics with unit and meaning.
    #[arg(long)]
    list_metrics: bool,

    /// Number of seeds, which only `compare` takes: the error says so.
    #[arg(long, value_name = "NUMBER", hide = true)]
    seeds: Option<String>,

    /// Write every request with its breakdown and its drives to this file: CSV if the name ends in
    /// .csv or .csv.gz, else Parquet. docs/metrics.md describes the columns.
    #[arg(long, value_name = "FILE", conflicts_with = "find")]
    log: Option<PathBuf>,

    /// Draw the power of the drives over time, as SVG. --json has the numbers, too.
    #[arg(long, value_name = "FILE.svg", conflicts_with_all = ["find", "replay_decisions"])]
    plot_power: Option<PathBuf>,

    #[command(flatten)]
    perfetto: Perfetto,

    #[command(flatten)]
    assuming: PowerAssumption,

    /// Repeat the decisions of a run of `serve --record` under the virtual clock, and require the
    /// same decisions in the same order. Status 1 if they differ.
    #[arg(long, value_name = "FILE.parquet", conflicts_with_all = ["log", "trace", "requests", "find", "perfetto", "assume_power"])]
    replay_decisions: Option<PathBuf>,

    /// Format of the results of a job file. --json always prints fullstroke's own report.
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "normal",
        conflicts_with = "json"
    )]
    output_format: OutputFormat,

    #[command(flatten)]
    reporting: Reporting,

    #[command(flatten)]
    searching: LoadSearchOptions,

    /// Number of runs of --find at a time. Default: number of cores.
    #[arg(long, value_name = "NUMBER", requires = "find")]
    jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    changes: Changes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text for people.
    Normal,
    /// Output of `fio --output-format=json`.
    FioJson,
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let Some(stack) = arguments.stack.as_ref().filter(|_| !arguments.list_metrics) else {
        return metrics::list(output);
    };
    if let Some(seeds) = &arguments.seeds {
        let message = format!(
            "--seeds {seeds}: run has one seed, --seed; `fullstroke compare {} --seeds {seeds}` gives intervals over the seeds, for one stack also",
            stack.display()
        );
        return Err(CommandFailure::input(message));
    }
    let mut overrides = arguments.changes.overrides();
    let read = read_for(std::slice::from_ref(stack), &overrides, &[]);
    // Before the run, because a run may take hours, and a target that cannot be written would lose
    // the result.
    outputs::check(arguments.targets(), &read)?;
    if let Some(record) = &arguments.replay_decisions {
        #[cfg(feature = "real")]
        return replay_decisions::execute(stack, &overrides, record, output);
        #[cfg(not(feature = "real"))]
        return Err(crate::left_out::needs(
            &format!("run --replay-decisions {}", record.display()),
            "real",
        ));
    }
    let plots = arguments.plot_power.is_some();
    say_assumed(
        arguments
            .assuming
            .require_if(plots, &[stack], &mut overrides)?,
    );
    let jobs = jobs(arguments.jobs);
    let recipes = recipes(std::slice::from_ref(stack), &overrides, &[]);
    if let Some(most) = arguments.searching.search_goal(jobs, &arguments.changes) {
        return find(arguments, stack, &recipes, most, output);
    }
    let mut candidates =
        candidates(std::slice::from_ref(stack), &overrides, &[]).map_err(CommandFailure::input)?;
    for candidate in &mut candidates {
        candidate.timeline = arguments.reporting.wanted();
        candidate.watts = arguments.plot_power.is_some();
        candidate.perfetto = arguments.perfetto.window();
        if arguments.output_format == OutputFormat::FioJson && !candidate.stack.has_job_file() {
            let message = "--output-format=fio-json shows the jobs of a job file; give --fio FILE";
            return Err(CommandFailure::Input(message.to_owned()));
        }
        let bars = Bars::new([candidate.name.as_str()], output);
        let progress = |finished, expected| bars.advance(0, finished, expected);
        let ran = run(candidate, arguments.log.as_deref(), &progress);
        // Before an error is printed, because the message would otherwise stand behind the bar.
        bars.clear();
        let mut ran = ran.map_err(CommandFailure::input)?;
        ran.check_measured().map_err(CommandFailure::input)?;
        for recipe in &recipes {
            sample_long_work(recipe, &mut ran, jobs, &Stop::default())
                .map_err(CommandFailure::input)?;
        }
        ran.measured.report.cost.peak_rss_mb = peak_rss_mb();
        // The files are written even if standard output has no reader any more, so this error is
        // returned last.
        let shown = show(&ran, arguments.output_format, output);
        arguments.write(&ran, stack).and(shown)?;
    }
    Ok(())
}

impl Arguments {
    /// Writes the requested files.
    fn write(&self, ran: &RunResult, stack: &Path) -> Result<(), CommandFailure> {
        self.reporting.write(
            &CommandAnswer::of_run(&ran.measured.report),
            &self.files(stack),
        )?;
        if let Some(traced) = &ran.perfetto {
            self.perfetto.write(&PerfettoFile::of(traced))?;
        }
        if let Some(path) = &self.plot_power {
            let svg = plots::watts(&ran.measured.report).map_err(CommandFailure::input)?;
            write_whole(path, &svg)?;
        }
        Ok(())
    }

    /// Returns the files to write.
    fn targets(&self) -> impl Iterator<Item = Option<Target<'_>>> {
        let own = [
            Target::of("--log", &self.log, OutputKind::Log),
            Target::of("--plot-power", &self.plot_power, OutputKind::Figure),
            self.perfetto.target(),
        ];
        self.reporting.targets().into_iter().chain(own)
    }

    /// Returns the input files that people wrote: the stack and the job file.
    fn files<'a>(&'a self, stack: &'a Path) -> Vec<&'a Path> {
        [stack].into_iter().chain(self.changes.job_file()).collect()
    }
}

fn find(
    arguments: &Arguments,
    stack: &Path,
    recipes: &[Recipe],
    most: SearchGoal,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let at_a_time = jobs(arguments.jobs);
    let bars = Bars::new(recipes.iter().map(|recipe| recipe.name.as_str()), output);
    let found = MostRanking::new(recipes, most, &|index, simulated| {
        bars.advance(index, simulated, None)
    });
    bars.clear();
    let found = found.map_err(CommandFailure::input)?.candidates;
    for load in &found {
        let whole_load = arguments.reporting.page_wanted();
        let whole_load = whole_load
            .then(|| WholeLoad::of_found(&found, recipes, at_a_time))
            .transpose()
            .map_err(CommandFailure::input)?;
        let searched = LoadSearchOutput::new(load, whole_load);
        let shown = match load {
            LargestLoad::Streams(found) => output.show(&searched, found),
            LargestLoad::Load(found) => output.show(&searched, found),
        };
        arguments
            .reporting
            .write(
                &searched.answer(AnswerBody::Sustained(load, searched.ran())),
                &arguments.files(stack),
            )
            .and(shown)?;
    }
    Ok(())
}

fn show(
    ran: &RunResult,
    format: OutputFormat,
    output: &CommandOutput,
) -> Result<(), CommandFailure> {
    let report = &ran.measured.report;
    match (format, &ran.fio) {
        // Only a stack with a job file has results of fio.
        (_, None) => output.show(report, report),
        // A job on files runs as a program, so the report already has its results.
        (OutputFormat::Normal, Some(_)) if !report.sources.hosts.is_empty() => {
            output.show(report, report)
        }
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

/// Prints the notes and the ignored options of the job file on standard error, because standard
/// output is for programs here.
fn name_ignored(fio: &FioGroupResults) {
    fio.notes().iter().for_each(|note| print_error(note));
    let names: Vec<&str> = fio.ignored().iter().map(|option| option.name).collect();
    if !names.is_empty() {
        print_error(&format!(
            "options without effect here: {}",
            names.join(", ")
        ));
    }
}
