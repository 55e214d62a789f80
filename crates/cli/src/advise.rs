//! `fullstroke advise`: recommends a layout for given drives, load and wishes.

use crate::fail_unless::FailUnless;
use crate::memory::peak_rss_mb;
use crate::options::{Changes, above_zero, jobs, slow_factor};
use crate::output::{CommandFailure, CommandOutput};
use crate::outputs::{self, read_for};
use crate::report::Reporting;
use crate::slow::Lines;
use crate::tune::spinner;
use clap::{Args, Parser, Subcommand};
use fullstroke_advise::{
    Advice, AdviceRequest, ArrayOutcome, Assumptions, Choices, Costs, DriveCounts, Finalist,
    MissedWish, WishFile, Wishes, advise,
};
use fullstroke_lab::{DEFAULT_BUDGET, capacity};
use fullstroke_measure::{BEYOND_MIN, STAR, number, table};
use fullstroke_report::{AnswerBody, CommandAnswer as Reported};
use fullstroke_units::{Bytes, Duration};
use serde::Serialize;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) mod flash;
mod tails;

/// Recommend a layout for the given drives, load and wishes. The answer has reasons, the runner-up
/// and the conditions that would change the advice (docs/advise.md).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Wish file, or a stack file that gives the load by its workload and hosts.
    file: PathBuf,

    /// Number of drives, or a range such as 4..8.
    #[arg(long, value_name = "COUNT", help_heading = "Wishes")]
    drives: Option<DriveCounts>,

    /// Minimum usable capacity, such as 20TB.
    #[arg(long, value_name = "SIZE", help_heading = "Wishes")]
    usable: Option<Bytes>,

    /// Upper limit of the 99th percentile of response times, such as 50ms.
    #[arg(long, value_name = "TIME", help_heading = "Wishes")]
    p99: Option<Duration>,

    /// Minimum number of media streams without an underrun.
    #[arg(long, value_name = "NUMBER", help_heading = "Wishes")]
    streams: Option<u32>,

    /// Largest share of the streams that may pause with a failed or slow drive and during a
    /// rebuild. Default 0.01.
    #[arg(long, value_name = "SHARE", help_heading = "Wishes")]
    paused_share: Option<f64>,

    /// Minimum throughput of reads and writes together, in 10^6 bytes per second.
    #[arg(long, value_name = "NUMBER", help_heading = "Wishes")]
    mb_per_s: Option<f64>,

    /// Number of drives whose failure the array survives, for any choice of drives.
    #[arg(long, value_name = "NUMBER", help_heading = "Wishes")]
    failures: Option<u32>,

    /// Upper limit of the mean power of all drives, in watts.
    #[arg(long, value_name = "NUMBER", help_heading = "Wishes")]
    watts: Option<f64>,

    /// Upper limit of the price of all drives.
    #[arg(long, value_name = "NUMBER", help_heading = "Wishes")]
    price: Option<f64>,

    /// Currency of all prices. Default EUR.
    #[arg(long, value_name = "NAME", help_heading = "Wishes")]
    currency: Option<String>,

    /// Price of a kilowatt-hour, for the cost of a year.
    #[arg(long, value_name = "NUMBER", help_heading = "Wishes", value_parser = above_zero)]
    energy_price: Option<f64>,

    /// Price of one drive.
    #[arg(long, value_name = "NUMBER", help_heading = "Wishes")]
    drive_price: Option<f64>,

    /// Price of a flash device beside the disks: of a cache, a special vdev or a log.
    #[arg(long, value_name = "NUMBER", help_heading = "Wishes")]
    flash_price: Option<f64>,

    /// Mean time to failure of a drive, in hours. Default 1,000,000.
    #[arg(long, value_name = "HOURS", help_heading = "Assumptions", value_parser = above_zero)]
    mttf_hours: Option<f64>,

    /// Number of bits read for one unreadable bit. Default 1e15.
    #[arg(long, value_name = "BITS", help_heading = "Assumptions", value_parser = above_zero)]
    unreadable_bits: Option<f64>,

    /// Time until a failed drive is replaced, in hours. Default 24.
    #[arg(long, value_name = "HOURS", help_heading = "Assumptions", value_parser = above_zero)]
    replace_hours: Option<f64>,

    /// Some runs have one slow drive. This factor multiplies its times. Default 2.5.
    #[arg(long, value_name = "FACTOR", help_heading = "Assumptions", value_parser = slow_factor)]
    slow_factor: Option<f64>,

    /// Runs are extended until longer runs would not change the answer, or until this number of
    /// requests is simulated. Default 1,000,000. With --requests each run has the given length.
    #[arg(long, value_name = "REQUESTS")]
    budget: Option<u64>,

    #[command(flatten)]
    failing: FailUnless,

    /// Number of runs at a time. Default: number of cores.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    reporting: Reporting,

    #[command(flatten)]
    changes: Changes,
}

const EXAMPLES: &str = "\
Examples:
  fullstroke advise wishes/sre.toml
  fullstroke advise stacks/demo/raid5.toml --drive wd-red-plus-8tb --drives 4..6 --usable 20TB --p99 80ms --failures 1";

/// Output of `advise --json`.
#[derive(Debug, Serialize)]
struct AdviceOutput<'a> {
    title: &'a str,
    #[serde(flatten)]
    advice: &'a Advice,
    wall_s: f64,
    peak_rss_mb: Option<f64>,
    version: &'static str,
}

/// Returns the advice for these arguments.
pub(crate) fn answer(
    arguments: &Arguments,
    output: &CommandOutput,
) -> Result<Advice, CommandFailure> {
    let wish_file = WishFile::read(&arguments.file).map_err(CommandFailure::input)?;
    advice_for(arguments, &arguments.request(wish_file)?, output)
}

fn advice_for(
    arguments: &Arguments,
    request: &AdviceRequest,
    output: &CommandOutput,
) -> Result<Advice, CommandFailure> {
    let mut read = read_for(
        std::slice::from_ref(&request.stack),
        &request.overrides,
        &[],
    );
    // The wish file and a drive file are inputs as well, and `--report` must not overwrite them.
    read.extend([arguments.file.clone(), PathBuf::from(&request.drive)]);
    outputs::check(arguments.reporting.targets(), &read)?;
    let bar = spinner(output);
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    let lines = Lines::new();
    let advice = advise(request, &|what| {
        bar.set_message(what.to_owned());
        // Without a terminal the bar is hidden, and a line at a time shows that the search goes on.
        if bar.is_hidden() && !output.json() {
            lines.say(|| what.to_owned());
        }
    });
    bar.finish_and_clear();
    advice.map_err(CommandFailure::input)
}

pub(crate) fn execute(arguments: &Arguments, output: &CommandOutput) -> Result<(), CommandFailure> {
    let began = Instant::now();
    let wish_file = WishFile::read(&arguments.file).map_err(CommandFailure::input)?;
    let title = wish_file
        .as_ref()
        .map_or_else(String::new, |file| file.title.clone());
    let request = arguments.request(wish_file)?;
    let advice = advice_for(arguments, &request, output)?;
    let answer = AdviceOutput {
        title: &title,
        advice: &advice,
        wall_s: began.elapsed().as_secs_f64(),
        peak_rss_mb: peak_rss_mb(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let mut files: Vec<&Path> = vec![&arguments.file];
    // A stack file in place of a wish file is both, and the page must not print the file twice.
    files.extend(Some(request.stack.as_path()).filter(|stack| *stack != arguments.file));
    // The page is written even if standard output has no reader any more, so this error is returned
    // last.
    let shown = output.show(
        &answer,
        AdviceText {
            title: &title,
            advice: &advice,
        },
    );
    let reported = Reported {
        found: AnswerBody::Advice {
            title: &title,
            advice: &advice,
        },
        version: answer.version,
        wall_s: Some(answer.wall_s),
    };
    arguments.reporting.write(&reported, &files).and(shown)?;
    let recommended = advice
        .ranking
        .candidates
        .iter()
        .filter(|one| one.name == advice.recommended);
    // Before the wishes, because --fail-unless distinguishes a missed condition (status 1) from a
    // run that is too short to tell (status 3).
    arguments.failing.check(recommended)?;
    let met = advice
        .finalists
        .first()
        .is_some_and(|first| first.misses.is_empty());
    // A script must not take an array for good that misses its wishes.
    if met {
        Ok(())
    } else {
        Err(CommandFailure::Checks)
    }
}

/// Arguments without the name of the command.
#[derive(Debug, Parser)]
struct BareArguments {
    #[command(subcommand)]
    command: AloneCommand,
}

#[derive(Debug, Subcommand)]
enum AloneCommand {
    Advise(Box<Arguments>),
}

impl Arguments {
    /// Reads the words of a command line, beginning with `advise`.
    pub(crate) fn of(words: &[String]) -> Result<Arguments, CommandFailure> {
        let words = std::iter::once("fullstroke").chain(words.iter().map(String::as_str));
        let BareArguments {
            command: AloneCommand::Advise(arguments),
        } = BareArguments::try_parse_from(words).map_err(CommandFailure::input)?;
        Ok(*arguments)
    }

    /// Builds the request. An option of the command line overrides the key of the file.
    fn request(&self, file: Option<WishFile>) -> Result<AdviceRequest, CommandFailure> {
        // A stack file in place of a file of wishes: the options have all wishes.
        let file = file.unwrap_or_else(|| WishFile {
            stack: self.file.clone(),
            ..WishFile::default()
        });
        let mut overrides = self.changes.overrides();
        // A load in the wish file takes the place of the stack's workloads; options of the command
        // line stay above both.
        overrides.workloads = file.load;
        let needed = |what: &str| CommandFailure::Input(format!("{}: {what}", self.file.display()));
        let drive = overrides.drive.clone().or(file.drives.model).ok_or_else(|| {
            needed("the drive is missing; give --drive NAME, or model under [drives]; `fullstroke drive new` makes a file from a data sheet")
        })?;
        let counts = self.drives.or(file.drives.count);
        let counts = counts.ok_or_else(|| {
            needed("the number of drives is missing; give --drives 4..8, or count under [drives]")
        })?;
        let wishes = Wishes {
            usable: self.usable.or(file.wishes.usable),
            p99: self.p99.or(file.wishes.p99),
            streams: self.streams.or(file.wishes.streams),
            paused_share: self.paused_share.or(file.wishes.paused_share),
            mb_per_s: self.mb_per_s.or(file.wishes.mb_per_s),
            failures: self.failures.or(file.wishes.failures),
            watts: self.watts.or(file.wishes.watts),
            price: self.price.or(file.wishes.price),
        };
        let assumed: Assumptions = file.assumptions;
        // A relative path of a drive file starts at the working directory, not at the stack's
        // folder.
        let drive = match Path::new(&drive).is_file() {
            true => std::path::absolute(&drive)
                .map_err(CommandFailure::input)?
                .display()
                .to_string(),
            false => drive,
        };
        let choices: Choices = file.choices;
        Ok(AdviceRequest {
            stack: file.stack,
            overrides,
            drive,
            counts: counts.each(),
            drive_price: self.drive_price.or(file.drives.price),
            controller_price: file.drives.controller_price,
            flash_price: self.flash_price.or(file.drives.flash_price),
            wishes,
            choices,
            assumptions: Assumptions {
                mttf_hours: self.mttf_hours.unwrap_or(assumed.mttf_hours),
                unreadable_bits: self.unreadable_bits.unwrap_or(assumed.unreadable_bits),
                replace_hours: self.replace_hours.unwrap_or(assumed.replace_hours),
                slow_factor: self.slow_factor.unwrap_or(assumed.slow_factor),
            },
            jobs: jobs(self.jobs),
            timeline: self.reporting.page_wanted(),
            costs: Costs {
                currency: self.currency.clone().unwrap_or(file.costs.currency),
                energy_per_kwh: self.energy_price.or(file.costs.energy_per_kwh),
            },
            // A length that the user chose stays, unless a budget says otherwise.
            budget: self
                .budget
                .or(file.budget)
                .or((!self.changes.has_requests()).then_some(DEFAULT_BUDGET)),
        })
    }
}

/// Text of the advice for people.
struct AdviceText<'a> {
    title: &'a str,
    advice: &'a Advice,
}

impl fmt::Display for AdviceText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = self.advice;
        if !self.title.is_empty() {
            writeln!(f, "{}\n", self.title)?;
        }
        for sentence in &advice.recommendation {
            writeln!(f, "{sentence}")?;
        }
        writeln!(f, "\n{}\n", finalists(&advice.finalists, &advice.wishes))?;
        // Only runs with a slow drive make the table of tails wanted, so that an answer without
        // such runs stays short.
        if let Some(tails) = tails::table(&advice.finalists, advice.assumptions.slow_factor) {
            writeln!(f, "{tails}\n")?;
        }
        if let Some(flash) = flash::table(&advice.finalists) {
            writeln!(f, "{flash}\n")?;
        }
        if !advice.would_change.is_empty() {
            let as_far = match advice.settled.is_settled() {
                true => "",
                false => ", as far as runs of this length tell",
            };
            writeln!(f, "Conditions that would change the answer{as_far}:")?;
            advice
                .would_change
                .iter()
                .try_for_each(|sentence| writeln!(f, "  {sentence}"))?;
        }
        for note in advice.ranking.trace_notes() {
            writeln!(f, "The trace: {note}")?;
        }
        write!(
            f,
            "{}\nThe answer took {} runs.",
            advice.assumed, advice.runs
        )
    }
}

/// Returns two tables with the best candidate of each layout, each of at most 80 columns: times
/// with and without all drives, then throughput, power, loss and missed wishes. For a wish for
/// streams, the streams with a pause replace the 99th percentile.
fn finalists(finalists: &[Finalist], wishes: &Wishes) -> String {
    let times = times_of(finalists, wishes.streams.is_some());
    let others = [
        "",
        "layout",
        "MB/s",
        "W",
        "kWh a year",
        "price a TB",
        "loss a year",
        "missed wishes",
    ];
    let mut table = table(others, &[1, 7]);
    for finalist in finalists {
        // A miss with a failed or slow drive is named after the misses with all drives, because the
        // order of finalists weighs them so.
        let misses = (finalist.misses.iter())
            .chain(&finalist.misses_without_a_drive)
            .chain(&finalist.misses_with_a_slow_drive);
        let misses: Vec<String> = misses.map(MissedWish::in_short).collect();
        table.add_row([
            finalist.place.to_string(),
            finalist.name.clone(),
            number(finalist.healthy.mb_per_s),
            finalist.healthy.mean_w.map_or_else(dash, number),
            finalist.kwh_a_year.map_or_else(dash, number),
            finalist.price_per_tb.map_or_else(dash, number),
            // The chances of layouts differ by powers of ten, so a fixed number of digits would
            // show zeros.
            format!("{:.1e}", finalist.loss.chance_a_year),
            misses.join(", "),
        ]);
    }
    let times_are = match wishes.streams.is_some() {
        true => "pauses (streams of all runs with a pause, of how many)",
        false => "p99 ms",
    };
    let star = match times.contains('*') {
        true => format!("{STAR}\n"),
        false => String::new(),
    };
    format!(
        "{times}\n{star}\n{}\n\n{times_are}: with all drives, with one failed drive, and during a rebuild of `rebuild h` hours. \
         survives: number of drives that may fail. MB/s, W, kWh a year: with all drives. price a TB: for each usable TB (10^12 bytes). loss a year: chance of data loss within a year.",
        table.trim_fmt()
    )
}

/// Returns the table of capacity, survived failures and times in the three conditions.
pub(crate) fn times_of(finalists: &[Finalist], of_streams: bool) -> String {
    let header = [
        "",
        "layout",
        "usable",
        "survives",
        if of_streams { "pauses" } else { "p99 ms" },
        "one failed",
        "rebuilding",
        "rebuild h",
    ];
    let mut table = table(header, &[1]);
    let paused = |outcome: &ArrayOutcome| {
        let pauses = outcome.paused_streams.zip(outcome.started_streams);
        pauses.filter(|_| of_streams)
    };
    let speed = |outcome: &ArrayOutcome| match paused(outcome) {
        Some((paused, started)) => format!("{paused} of {started}"),
        None => match outcome.p99_beyond < BEYOND_MIN {
            true => format!("{}*", number(outcome.p99_ms)),
            false => number(outcome.p99_ms),
        },
    };
    for finalist in finalists {
        let hours = finalist
            .rebuilding
            .as_ref()
            .map_or_else(dash, rebuild_hours);
        table.add_row([
            finalist.place.to_string(),
            finalist.name.clone(),
            capacity(finalist.volume.usable_bytes),
            finalist.volume.failures_survived.to_string(),
            speed(&finalist.healthy),
            finalist.degraded.as_ref().map_or_else(dash, speed),
            finalist.rebuilding.as_ref().map_or_else(dash, speed),
            hours,
        ]);
    }
    table.trim_fmt()
}

/// Returns the hours of a rebuild with their interval.
fn rebuild_hours(outcome: &ArrayOutcome) -> String {
    let Some(hours) = outcome.rebuild_hours else {
        return dash();
    };
    match outcome.rebuild_hours_ci95_half_width {
        Some(half_width) if half_width > 0.0 => {
            format!("{} ± {}", number(hours), number(half_width))
        }
        // All seeds have the same hours, or the whole rebuild was simulated: the width is 0, and "±
        // 0" would say nothing.
        Some(_) => number(hours),
        // Without an interval the hours are an extrapolation from the simulated part.
        None => format!("about {}", number(hours)),
    }
}

/// Returns the sign for a missing value.
pub(crate) fn dash() -> String {
    "-".to_owned()
}
