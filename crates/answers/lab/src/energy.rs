//! Decides whether stopping the platters pays for a load.

use crate::{
    CandidateProgress, ComparedStack, LabError, PowerError, Recipe, RunResult, Varied,
    require_power, run_all,
};
use fullstroke_contract::MemberStatistics;
use fullstroke_drive::PowerConfig;
use fullstroke_measure::{Report, Stop, number, table};
use fullstroke_stack::{Overrides, SpinDownChoice, Stack};
use fullstroke_units::Duration;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Default idle times: those of common timers.
const AFTER: [Duration; 6] = [
    Duration::from_secs(30),
    Duration::from_secs(60),
    Duration::from_secs(300),
    Duration::from_secs(900),
    Duration::from_secs(1800),
    Duration::from_secs(3600),
];

const YEAR_S: f64 = 365.25 * 86_400.0;

/// A load and the spin-down policies to try.
///
/// The load is run once with platters that always turn. If the stack stops platters, the load is
/// also run with the policy of the stack. Then follow one run for each idle time, and the policies
/// `break-even` and `adaptive`.
#[derive(Clone, Debug)]
pub struct EnergyQuestion {
    /// The stack file.
    pub stack: PathBuf,
    /// Changes to the stack file. A trace replaces all workloads except those of kind `background`.
    pub overrides: Overrides,
    /// Idle times to try. If empty: the idle times of common timers, 30 s to 1 h.
    pub after: Vec<Duration>,
    /// True if drives without power figures get the assumed figures of their class.
    pub assume_power: bool,
}

/// Checked candidates for an [`EnergyQuestion`].
pub struct EnergyRuns {
    candidates: Vec<ComparedStack>,
    refused: Vec<RefusedPolicy>,
    powers: Vec<PowerConfig>,
    assumed: Option<&'static str>,
}

/// Result of each policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnergyAnswer {
    /// Source of the power figures assumed for the class of the drives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed: Option<&'static str>,
    /// Break-even time of the first drive, in seconds.
    pub break_even_s: Option<f64>,
    /// Rated number of start-stop cycles; the minimum over all drives.
    pub rated_cycles: Option<u64>,
    /// Result of each policy. Platters that always turn stand first.
    pub policies: Vec<StopPolicy>,
    /// Requested policies, refused for these drives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedPolicy>,
}

/// A requested idle time, refused.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RefusedPolicy {
    /// Name of the requested policy.
    pub name: String,
    /// Reason of the refusal.
    pub why: String,
}

/// Result of one spin-down policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StopPolicy {
    /// Name of the policy.
    pub name: String,
    /// Simulated time of the run, in seconds.
    pub elapsed_s: f64,
    /// Energy of all drives, in joules.
    pub total_j: f64,
    /// Mean power of all drives, in watts.
    pub mean_w: f64,
    /// Share of the mean power saved by the policy, compared with platters that always turn.
    /// Power is compared instead of energy because a run ends with its last completion, and stopped
    /// platters delay that completion.
    pub saved_share: f64,
    /// Mean response time.
    pub response_ms_mean: f64,
    /// 99th percentile of response times.
    pub response_ms_p99: f64,
    /// The longest response time.
    pub response_ms_max: f64,
    /// Stops per year of the drive with the most stops.
    pub stops_a_year: f64,
    /// Years until this drive has used up its rated start-stop cycles.
    pub years: Option<f64>,
}

impl EnergyQuestion {
    /// Builds the runs for the question.
    ///
    /// # Errors
    /// Errors of the stack, or missing power figures of a drive.
    pub fn runs(&self) -> Result<EnergyRuns, PowerError> {
        let mut overrides = Overrides {
            beside_background: true,
            ..self.overrides.clone()
        };
        let assumed = require_power(&[&self.stack], &mut overrides, self.assume_power)?;
        let stack = Stack::load(&self.stack, &overrides)?;
        let powers: Vec<PowerConfig> = stack
            .drives()
            .into_iter()
            .filter_map(|model| model.config().power)
            .collect();
        let (candidates, refused) = self.candidates(&overrides, &powers, &stack)?;
        Ok(EnergyRuns {
            candidates,
            refused,
            powers,
            assumed,
        })
    }

    /// Returns the candidates: platters that always turn, the stack as it is if it stops platters,
    /// each idle time, and the policies that choose an idle time. Also returns the idle times that
    /// cannot be tried.
    fn candidates(
        &self,
        overrides: &Overrides,
        powers: &[PowerConfig],
        stack: &Stack,
    ) -> Result<(Vec<ComparedStack>, Vec<RefusedPolicy>), LabError> {
        let shortest = powers
            .iter()
            .map(|power| power.spin_up_ms + power.spin_down_ms)
            // The slowest drive decides, because one idle time serves all drives.
            .fold(0.0, f64::max);
        let asked = &self.after;
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
        // The adaptive timer starts at twice the time of a stop and a start, within a second and an
        // hour.
        let start = (2.0 * shortest / 1000.0).clamp(1.0, 3600.0);
        let learned = [
            ("break-even".to_owned(), timer("break-even", None)),
            ("adaptive".to_owned(), timer("adaptive", Some(start))),
        ];
        // The name of the stack's own policy does not follow this pattern. An array with gears
        // still shifts while a timer stops platters, so the name says both.
        let gears = stack.has_gears();
        let timed = |(name, timer)| {
            let name = if gears {
                format!("gears and {name}")
            } else {
                name
            };
            (name, Some(SpinDownChoice::Timer(timer)))
        };
        let always = if gears {
            "always turning, high gear"
        } else {
            "always turning"
        };
        let always = (always.to_owned(), Some(SpinDownChoice::Nobody));
        let own = own(stack).map(|name| (name, None));
        let all = std::iter::once(always)
            .chain(own)
            .chain(fixed.chain(learned).map(timed));
        let all = all.map(|(name, stops)| self.candidate(name, stops, overrides));
        let too_short = if asked.is_empty() {
            Vec::new()
        } else {
            short
                .into_iter()
                .map(|after| refused(after, shortest))
                .collect()
        };
        Ok((all.collect::<Result<_, _>>()?, too_short))
    }

    /// Builds the stack with the spin-down policy `stops`; `None` keeps the policy of the stack.
    fn candidate(
        &self,
        name: String,
        stops: Option<SpinDownChoice>,
        overrides: &Overrides,
    ) -> Result<ComparedStack, LabError> {
        let overrides = Overrides {
            stops,
            ..overrides.clone()
        };
        let recipe = Recipe {
            name,
            varied: Varied::default(),
            file: self.stack.clone(),
            overrides,
        };
        recipe.candidate()
    }
}

/// Refuses an idle time because the slowest drive needs `shortest` milliseconds to stop and start.
fn refused(after: Duration, shortest: f64) -> RefusedPolicy {
    RefusedPolicy {
        name: format!("{} s", after.as_secs_f64()),
        why: format!(
            "the drive needs {} s to spin down and up; give at least this idle time",
            number(shortest / 1000.0)
        ),
    }
}

impl EnergyRuns {
    /// Returns the names of the policies, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.candidates
            .iter()
            .map(|candidate| candidate.name.as_str())
    }

    /// Runs all candidates, `jobs` at a time, until `stop` is set.
    ///
    /// # Errors
    /// Errors of a run.
    pub fn run(
        mut self,
        jobs: usize,
        stop: &Stop,
        progress: &(dyn Fn(CandidateProgress) + Sync),
    ) -> Result<EnergyAnswer, LabError> {
        for candidate in &mut self.candidates {
            candidate.stop = stop.clone();
        }
        let ran = run_all(&self.candidates, jobs, progress)?;
        let rated_cycles = self
            .powers
            .iter()
            .filter_map(|power| power.start_stop_cycles)
            .min();
        Ok(EnergyAnswer {
            assumed: self.assumed,
            break_even_s: self
                .powers
                .first()
                .and_then(|power| Some(power.break_even()?.as_secs_f64())),
            rated_cycles,
            policies: policies(&ran, rated_cycles),
            refused: self.refused,
        })
    }
}

/// Returns a short description of the stack's own spin-down policy.
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

/// Returns the table `[spin_down]` for `policy`.
fn timer(policy: &str, after_s: Option<f64>) -> serde_json::Map<String, serde_json::Value> {
    let mut keys = serde_json::Map::from_iter([("policy".to_owned(), policy.into())]);
    keys.extend(after_s.map(|seconds| ("after".to_owned(), format!("{seconds}s").into())));
    keys
}

fn policies(ran: &[RunResult], rated: Option<u64>) -> Vec<StopPolicy> {
    let watts = |report: &Report| {
        report
            .array
            .energy
            .as_ref()
            .map_or(f64::NAN, |energy| energy.mean_w)
    };
    // Runs differ in length: a run ends with its last completion, which a spin-up may delay. Power
    // does not depend on the length, so power is compared.
    let turning = ran
        .first()
        .map_or(f64::NAN, |ran| watts(&ran.measured.report));
    let policy = |ran: &RunResult| {
        let report = &ran.measured.report;
        let stops_a_year = report
            .array
            .members
            .iter()
            .map(|member| stops_a_year(&member.statistics))
            // The drive with the most stops reaches its rated number first.
            .fold(0.0, f64::max);
        StopPolicy {
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
                // Without a stop, no number of years uses up the rated stops.
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
    // The residency adds up the times of all arms.
    let seconds = power.residency().total().as_secs_f64() / f64::from(power.arms().max(1));
    if seconds > 0.0 {
        power.spin_downs() as f64 * YEAR_S / seconds
    } else {
        0.0
    }
}

impl EnergyAnswer {
    /// Returns the policy with the largest saving; `None` if no policy saves energy.
    fn best(&self) -> Option<&StopPolicy> {
        let saves = self
            .policies
            .iter()
            // NaN, from a drive without power data, is no saving.
            .filter(|policy| policy.saved_share > 0.0);
        // Equal savings: the last policy of the list. total_cmp needs no case for NaN, which was
        // left out.
        saves.max_by(|one, other| one.saved_share.total_cmp(&other.saved_share))
    }

    fn verdict(&self) -> String {
        let Some(StopPolicy {
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
        let used_up = match (years, self.rated_cycles) {
            (Some(years), Some(rated)) => format!(
                ", which uses up the {rated} rated starts and stops (not the load cycles of the heads) in {} years",
                number(*years)
            ),
            _ => String::new(),
        };
        format!(
            "Stopping pays: `{name}` saves {} % at a p99 of {} ms, and stops the busiest drive {} times a year{used_up}.",
            number(100.0 * saved_share),
            number(*response_ms_p99),
            number(*stops_a_year),
        )
    }
}

impl fmt::Display for EnergyAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "idle time",
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
        for RefusedPolicy { name, why } in &self.refused {
            writeln!(f, "Idle time {name} was not tried: {why}.")?;
        }
        if let Some(seconds) = self.break_even_s {
            writeln!(
                f,
                "A spin-down saves energy if the standby lasts {} s or longer.",
                number(seconds)
            )?;
        }
        if let Some(source) = self.assumed {
            writeln!(f, "Source of the power figures: {source}.")?;
        }
        write!(f, "{}", self.verdict())
    }
}
