//! `fullstroke energy`: does stopping the platters pay for this load?

use crate::bars::Bars;
use crate::options::{Edits, jobs};
use crate::output::{Failure, Output};
use crate::power::Assuming;
use clap::Args;
use fullstroke_contract::MemberStatistics;
use fullstroke_drive::PowerConfig;
use fullstroke_lab::{Candidate, Ran, Recipe, Varied, run_all};
use fullstroke_measure::{Report, number, table};
use fullstroke_stack::{Overrides, Stack, Stops};
use fullstroke_units::Duration;
use serde::Serialize;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The idle times that are tried unless others are asked for: those of the usual timers.
const AFTER: [Duration; 6] = [
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(300),
    Duration::from_secs(900),
    Duration::from_secs(1800),
    Duration::from_secs(3600),
];

const YEAR_S: f64 = 365.25 * 86_400.0;

/// Say whether stopping the platters pays for a load, behind which idle time, at what response
/// times, and how fast it uses up the rated starts and stops.
///
/// The load is run once with platters that always turn, as the stack has it if that stops them, once behind
/// each idle time, and with the policies `break-even` and `adaptive`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A trace in place of the stack's workload, or workloads; those of the kind `background`, a scrub or
    /// whoever polls, stay beside it.
    trace: Option<PathBuf>,

    /// The stack file.
    #[arg(long, value_name = "FILE")]
    stack: PathBuf,

    /// An idle time to try, such as 5min (may be repeated); 30 s to an hour unless said.
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    after: Vec<Duration>,

    #[command(flatten)]
    edits: Edits,

    #[command(flatten)]
    assuming: Assuming,

    /// Runs at a time; as many as there are cores unless said.
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZeroUsize>,
}

/// What each policy comes to.
#[derive(Debug, Serialize)]
struct Answer {
    /// Sources that are assumed for the class of the drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed: Option<&'static str>,
    /// The break-even time of the first drive.
    break_even_s: Option<f64>,
    /// Starts and stops for which the drives are rated, at least.
    rated_cycles: Option<u64>,
    policies: Vec<Policy>,
    /// What was asked for and is no policy of these drives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<Refused>,
}

#[derive(Debug, Serialize)]
struct Refused {
    name: String,
    why: String,
}

#[derive(Debug, Serialize)]
struct Policy {
    name: String,
    elapsed_s: f64,
    total_j: f64,
    mean_w: f64,
    /// Of the mean watts of platters that always turn: a run ends with its last completion, which
    /// platters that stood delay.
    saved_share: f64,
    response_ms_mean: f64,
    response_ms_p99: f64,
    response_ms_max: f64,
    /// Of the drive that stops most.
    stops_a_year: f64,
    /// Years until its rated starts and stops are used up.
    years: Option<f64>,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let mut overrides = Overrides {
        trace: arguments.trace.clone(),
        beside_background: true,
        ..arguments.edits.overrides()
    };
    let assumed = arguments
        .assuming
        .require_if(true, &[&arguments.stack], &mut overrides)?;
    let stack = Stack::load(&arguments.stack, &overrides).map_err(Failure::input)?;
    let powers: Vec<PowerConfig> = stack
        .drives()
        .into_iter()
        .filter_map(|model| model.config().power)
        .collect();
    let Candidates {
        all: candidates,
        refused,
    } = candidates(arguments, &overrides, &powers, &stack)?;
    let names: Vec<&str> = candidates
        .iter()
        .map(|candidate| candidate.name.as_str())
        .collect();
    let bars = Bars::new(names, output);
    let jobs = jobs(arguments.jobs);
    let ran = run_all(&candidates, jobs, &|event| {
        bars.advance(event.candidate, event.finished, event.expected)
    });
    bars.clear();
    let ran = ran.map_err(Failure::input)?;
    let rated_cycles = powers
        .iter()
        .filter_map(|power| power.start_stop_cycles)
        .min();
    let answer = Answer {
        assumed,
        break_even_s: powers
            .first()
            .and_then(|power| Some(power.break_even()?.as_secs_f64())),
        rated_cycles,
        policies: policies(&ran, rated_cycles),
        refused,
    };
    output.show(&answer, &answer)
}

/// Rows to run, and those that cannot be.
struct Candidates {
    all: Vec<Candidate>,
    refused: Vec<Refused>,
}

/// Always turning, the stack as it is if it stops platters, each idle time, and the policies that find one.
fn candidates(
    arguments: &Arguments,
    overrides: &Overrides,
    powers: &[PowerConfig],
    stack: &Stack,
) -> Result<Candidates, Failure> {
    let shortest = powers
        .iter()
        .map(|power| power.spin_up_ms + power.spin_down_ms)
        .fold(0.0, f64::max);
    let asked = &arguments.after;
    let after = if asked.is_empty() {
        AFTER.to_vec()
    } else {
        asked.clone()
    };
    let (usable, short): (Vec<_>, Vec<_>) = after
        .into_iter()
        .partition(|after| after.as_millis_f64() >= shortest);
    let fixed = usable.into_iter().map(|after| {
        let seconds = after.as_secs_f64();
        (format!("{seconds} s"), timer("fixed", Some(seconds)))
    });
    let start = (2.0 * shortest / 1000.0).clamp(1.0, 3600.0);
    let learned = [
        ("break-even".to_owned(), timer("break-even", None)),
        ("adaptive".to_owned(), timer("adaptive", Some(start))),
    ];
    // What the stack says stands below its own name; gears go on shifting below timers.
    let gears = stack.has_gears();
    let timed = |(name, timer)| {
        (
            if gears {
                format!("gears and {name}")
            } else {
                name
            },
            Some(Stops::Timer(timer)),
        )
    };
    let always = (
        if gears {
            "always turning, high gear"
        } else {
            "always turning"
        }
        .to_owned(),
        Some(Stops::Nobody),
    );
    let own = own(stack).map(|name| (name, None));
    let all = std::iter::once(always)
        .chain(own)
        .chain(fixed.chain(learned).map(timed));
    let all = all.map(|(name, stops)| {
        let overrides = Overrides {
            stops,
            ..overrides.clone()
        };
        let recipe = Recipe {
            name,
            varied: Varied::default(),
            file: arguments.stack.clone(),
            overrides,
        };
        recipe.candidate().map_err(Failure::input)
    });
    let refuse = |after: Duration| Refused {
        name: format!("{} s", after.as_secs_f64()),
        why: format!(
            "the drive needs {} s to stop and to start, and would do little else; ask for that at least",
            number(shortest / 1000.0)
        ),
    };
    let refused = if asked.is_empty() {
        Vec::new()
    } else {
        short.into_iter().map(refuse).collect()
    };
    Ok(Candidates {
        all: all.collect::<Result<_, _>>()?,
        refused,
    })
}

/// What a stack that stops platters does, in a few words.
fn own(stack: &Stack) -> Option<String> {
    let timers = stack
        .drives()
        .into_iter()
        .filter_map(|model| model.config().spin_down.as_ref());
    let mut names: Vec<String> = timers
        .map(
            |timer| match timer.keys.get("after").and_then(serde_json::Value::as_str) {
                Some(after) => format!("{} {after}", timer.policy),
                None => timer.policy.clone(),
            },
        )
        .collect();
    names.dedup();
    match (names.is_empty(), stack.has_gears()) {
        (true, false) => None,
        (true, true) => Some("the stack's: gears alone".to_owned()),
        (false, false) => Some(format!("the stack's: {}", names.join(", "))),
        (false, true) => Some(format!("the stack's: gears and {}", names.join(", "))),
    }
}

/// The table `[spin_down]` of a policy.
fn timer(policy: &str, after_s: Option<f64>) -> serde_json::Map<String, serde_json::Value> {
    let mut keys = serde_json::Map::from_iter([("policy".to_owned(), policy.into())]);
    keys.extend(after_s.map(|seconds| ("after".to_owned(), format!("{seconds}s").into())));
    keys
}

fn policies(ran: &[Ran], rated: Option<u64>) -> Vec<Policy> {
    let watts = |report: &Report| {
        report
            .array
            .energy
            .as_ref()
            .map_or(f64::NAN, |energy| energy.mean_w)
    };
    // Runs end with their last completion, a start later where platters stood: power compares them.
    let turning = ran
        .first()
        .map_or(f64::NAN, |ran| watts(&ran.measured.report));
    let policy = |ran: &Ran| {
        let report = &ran.measured.report;
        let stops_a_year = report
            .array
            .members
            .iter()
            .map(|member| stops_a_year(&member.statistics))
            .fold(0.0, f64::max);
        Policy {
            name: report.name.clone(),
            elapsed_s: report.rates.simulated_s,
            total_j: report
                .array
                .energy
                .as_ref()
                .map_or(f64::NAN, |energy| energy.total_j),
            mean_w: watts(report),
            saved_share: 1.0 - watts(report) / turning,
            response_ms_mean: report.times.response_ms.mean,
            response_ms_p99: report.times.response_ms.p99,
            response_ms_max: report.times.response_ms.max,
            stops_a_year,
            years: rated
                .filter(|_| stops_a_year > 0.0)
                .map(|rated| rated as f64 / stops_a_year),
        }
    };
    ran.iter().map(policy).collect()
}

fn stops_a_year(statistics: &MemberStatistics) -> f64 {
    let Some(power) = &statistics.power else {
        return 0.0;
    };
    let seconds = power.residency().total().as_secs_f64() / f64::from(power.arms().max(1));
    if seconds > 0.0 {
        power.spin_downs() as f64 * YEAR_S / seconds
    } else {
        0.0
    }
}

impl Answer {
    /// The policy that saves most, if any saves.
    fn best(&self) -> Option<&Policy> {
        let saves = self
            .policies
            .iter()
            .filter(|policy| policy.saved_share > 0.0);
        saves.max_by(|one, other| one.saved_share.total_cmp(&other.saved_share))
    }

    fn verdict(&self) -> String {
        let Some(Policy {
            name,
            saved_share,
            response_ms_p99,
            stops_a_year,
            years,
            ..
        }) = self.best()
        else {
            return "Stopping the platters does not pay for this load.".to_owned();
        };
        let used_up = match years {
            Some(years) => format!(
                ", which uses up the rated cycles in {} years",
                number(*years)
            ),
            None => String::new(),
        };
        format!(
            "Stopping pays: `{name}` saves {} % at a p99 of {} ms, and stops the busiest drive {} times a year{used_up}.",
            number(100.0 * saved_share),
            number(*response_ms_p99),
            number(*stops_a_year),
        )
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "stops behind",
            "W",
            "saved",
            "mean ms",
            "p99 ms",
            "max ms",
            "stops a year",
            "rating lasts, years",
        ];
        let mut table = table(header, &[0]);
        for policy in &self.policies {
            table.add_row([
                policy.name.clone(),
                number(policy.mean_w),
                format!("{:.1} %", 100.0 * policy.saved_share),
                number(policy.response_ms_mean),
                number(policy.response_ms_p99),
                number(policy.response_ms_max),
                number(policy.stops_a_year),
                policy.years.map_or_else(|| "-".to_owned(), number),
            ]);
        }
        writeln!(f, "{}\n", table.trim_fmt())?;
        for Refused { name, why } in &self.refused {
            writeln!(f, "Behind {name} nothing was run: {why}.")?;
        }
        if let Some(seconds) = self.break_even_s {
            writeln!(f, "A stop pays that lasts {} s or longer.", number(seconds))?;
        }
        if let Some(source) = self.assumed {
            writeln!(f, "What the drives draw is {source}.")?;
        }
        write!(f, "{}", self.verdict())
    }
}
