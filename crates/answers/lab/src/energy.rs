//! Decides whether stopping the platters pays for a load.

use crate::{
    CandidateProgress, ComparedStack, LabError, PowerError, Recipe, RunResult, Varied,
    require_power, run, run_all,
};
use fullstroke_contract::MemberStatistics;
use fullstroke_contract::registry::keys_of;
use fullstroke_drive::PowerConfig;
use fullstroke_measure::{Report, Stop, WattsReport, factor_in_words, number, series_half_width};
use fullstroke_stack::{Overrides, SpinDownChoice, Stack};
use fullstroke_units::Duration;
use serde::Serialize;
use std::path::PathBuf;

mod text;

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
/// Joules of a kilowatt-hour.
const KWH_J: f64 = 3.6e6;

/// Least length of a load, as a multiple of an idle time to judge. In a shorter load even drives
/// without requests stop too seldom to show what a stop saves.
const LOAD_OF_IDLE_TIMES: f64 = 4.0;

/// The confidence of the intervals of savings.
const CONFIDENCE: f64 = 0.95;

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
    /// Price of a kilowatt-hour; `None` leaves out the cost.
    pub price: Option<EnergyPrice>,
}

/// Price of a kilowatt-hour.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EnergyPrice {
    /// Price of a kilowatt-hour.
    pub per_kwh: f64,
    /// Currency of the price, such as `EUR`.
    pub currency: String,
}

impl EnergyPrice {
    /// Returns the price of a year at a mean power of `watts`.
    #[must_use]
    pub fn of_a_year(&self, watts: f64) -> f64 {
        kwh_a_year(watts) * self.per_kwh
    }
}

/// Returns the energy of a year at a mean power of `watts`, in kilowatt-hours.
#[must_use]
pub fn kwh_a_year(watts: f64) -> f64 {
    watts * YEAR_S / KWH_J
}

/// Returns half the width of the 95 % confidence interval of the mean power of all drives, in watts.
/// `None` if the run did not record the power over time, or is too short for independent spans.
#[must_use]
pub fn mean_watts_half_width(report: &Report) -> Option<f64> {
    let watts = report.over_time.watts.as_ref()?;
    series_half_width(full_spans(watts), CONFIDENCE)
}

/// Returns the power of all drives in each span. The last span of a report may be shorter and is
/// left out.
fn full_spans(watts: &WattsReport) -> &[f64] {
    let full = (watts.end_s / watts.span_s) as usize;
    &watts.all_w[..full.min(watts.all_w.len())]
}

/// Checked candidates for an [`EnergyQuestion`].
pub struct EnergyRuns {
    candidates: Vec<ComparedStack>,
    /// Idle time of each candidate that stops after a constant time.
    idle_times: Vec<Option<Duration>>,
    /// True if the user chose the idle times.
    asked: bool,
    price: Option<EnergyPrice>,
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
    /// Length of the load in seconds: the run with platters that always turn.
    pub load_s: f64,
    /// Price of a kilowatt-hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<EnergyPrice>,
    /// Policies without a run: refused for these drives, or for the length of the load.
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
    /// Factor by which the load is too short for this idle time; `None` if the drives are the
    /// reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_short_by: Option<f64>,
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
    /// Half the width of the 95 % confidence interval of `saved_share`; `None` if the load is too
    /// short for an interval.
    pub saved_share_ci95_half_width: Option<f64>,
    /// Factor by which the load is too short for the idle time of this policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_short_by: Option<f64>,
    /// Energy of a year at `mean_w`, in kilowatt-hours.
    pub kwh_a_year: f64,
    /// Half the width of the 95 % confidence interval of `kwh_a_year`; `None` if the load is too
    /// short for an interval.
    pub kwh_a_year_ci95_half_width: Option<f64>,
    /// Price of this energy; `None` without a price of a kilowatt-hour.
    pub cost_a_year: Option<f64>,
    /// Half the width of the 95 % confidence interval of `cost_a_year`.
    pub cost_a_year_ci95_half_width: Option<f64>,
    /// Number of reads and writes behind the response times.
    pub requests: u64,
    /// Mean response time.
    pub response_ms_mean: f64,
    /// 99th percentile of response times. 0 if memory answers 99 % of the requests at once.
    pub response_ms_p99: f64,
    /// 99.9th percentile of response times.
    pub response_ms_p999: f64,
    /// The longest response time.
    pub response_ms_max: f64,
    /// Number of stops in the run, of the drive with the most stops.
    pub stops: u64,
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
        let (candidates, idle_times) = candidates.into_iter().unzip();
        Ok(EnergyRuns {
            candidates,
            idle_times,
            asked: !self.after.is_empty(),
            price: self.price.clone(),
            refused,
            powers,
            assumed,
        })
    }

    /// Returns the candidates: platters that always turn, the stack as it is if it stops platters,
    /// each idle time, and the policies that choose an idle time. Each stands with its constant idle
    /// time, if it has one. Also returns the idle times that cannot be tried.
    fn candidates(
        &self,
        overrides: &Overrides,
        powers: &[PowerConfig],
        stack: &Stack,
    ) -> Result<(Vec<TimedCandidate>, Vec<RefusedPolicy>), LabError> {
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
            let name = format!("{seconds} s");
            (name, timer("fixed", Some(seconds)), Some(after))
        });
        // The adaptive timer starts at twice the time of a stop and a start, within a second and an
        // hour.
        let start = (2.0 * shortest / 1000.0).clamp(1.0, 3600.0);
        let learned = [
            ("break-even".to_owned(), timer("break-even", None), None),
            ("adaptive".to_owned(), timer("adaptive", Some(start)), None),
        ];
        // The name of the stack's own policy does not follow this pattern. An array with gears
        // still shifts while a timer stops platters, so the name says both.
        let gears = stack.has_gears();
        let timed = |(name, timer, after)| {
            let name = if gears {
                format!("gears and {name}")
            } else {
                name
            };
            (name, Some(SpinDownChoice::Timer(timer)), after)
        };
        let always = if gears {
            "always turning, high gear"
        } else {
            "always turning"
        };
        let always = (always.to_owned(), Some(SpinDownChoice::Nobody), None);
        let own = own(stack).map(|name| (name, None, None));
        let all = std::iter::once(always)
            .chain(own)
            .chain(fixed.chain(learned).map(timed));
        let all = all.map(|(name, stops, after)| {
            self.candidate(name, stops, overrides)
                .map(|candidate| (candidate, after))
        });
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

/// A candidate with its constant idle time, if it has one.
type TimedCandidate = (ComparedStack, Option<Duration>);

/// Refuses an idle time because the load of `load_s` seconds is too short to judge it.
fn too_short(after: Duration, load_s: f64) -> RefusedPolicy {
    let needed_s = LOAD_OF_IDLE_TIMES * after.as_secs_f64();
    let factor = needed_s / load_s.max(f64::MIN_POSITIVE);
    RefusedPolicy {
        name: format!("{} s", after.as_secs_f64()),
        why: format!(
            "the load lasts {} s, too short by a factor of {}; a verdict needs {LOAD_OF_IDLE_TIMES} times the idle time",
            number(load_s),
            factor_in_words(factor)
        ),
        too_short_by: Some(factor),
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
        too_short_by: None,
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
            candidate.watts = true;
        }
        // The length of the load is known after the first run.
        let always = run(&self.candidates[0], None, &|finished, expected| {
            progress(CandidateProgress {
                candidate: 0,
                finished,
                expected,
                over: false,
            });
        })?;
        let load_s = always.measured.report.rates.simulated_s;
        let mut others = Vec::new();
        for (place, candidate) in self.candidates.into_iter().enumerate().skip(1) {
            let after = self.idle_times[place];
            // An idle time that the user chose is tried in any case.
            let untried = after
                .filter(|after| after.as_secs_f64() * LOAD_OF_IDLE_TIMES > load_s && !self.asked);
            match untried {
                Some(after) => self.refused.push(too_short(after, load_s)),
                None => others.push((place, candidate)),
            }
        }
        let (places, others): (Vec<usize>, Vec<ComparedStack>) = others.into_iter().unzip();
        let ran = run_all(&others, jobs, &|event| {
            progress(CandidateProgress {
                candidate: places[event.candidate],
                ..event
            });
        })?;
        let ran: Vec<RunResult> = std::iter::once(always).chain(ran).collect();
        let idle_times =
            std::iter::once(None).chain(places.iter().map(|place| self.idle_times[*place]));
        let price = self.price;
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
            policies: policies(&ran, idle_times, load_s, rated_cycles, price.as_ref()),
            load_s,
            price,
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
    let mut keys = keys_of([("policy".to_owned(), policy.into())]);
    keys.extend(after_s.map(|seconds| ("after".to_owned(), format!("{seconds}s").into())));
    keys
}

/// Returns the power of both runs over equal spans, for the time that both have.
fn side_by_side(one: &WattsReport, other: &WattsReport) -> Vec<(f64, f64)> {
    // Spans are 100 ms times a power of two, so one span is a multiple of the other.
    let span_s = one.span_s.max(other.span_s);
    let wide = |watts: &WattsReport| -> Vec<f64> {
        let size = (span_s / watts.span_s).round().max(1.0) as usize;
        full_spans(watts)
            .chunks_exact(size)
            .map(|span| span.iter().sum::<f64>() / size as f64)
            .collect()
    };
    wide(one).into_iter().zip(wide(other)).collect()
}

/// Returns half the width of the interval of the share that `run` saves. `None` if the load of
/// `load_s` seconds is too short for the policy or for independent spans.
fn saved_half_width(
    turning: &Report,
    run: &Report,
    after: Option<Duration>,
    load_s: f64,
) -> Option<f64> {
    if after.is_some_and(|after| after.as_secs_f64() * LOAD_OF_IDLE_TIMES > load_s) {
        return None;
    }
    let [always, own] = [turning, run].map(|report| report.over_time.watts.as_ref());
    let pairs = side_by_side(always?, own?);
    let mean = pairs.iter().map(|(always, _)| always).sum::<f64>() / pairs.len() as f64;
    let saved: Vec<f64> = pairs
        .iter()
        .map(|(always, own)| (always - own) / mean)
        .collect();
    series_half_width(&saved, CONFIDENCE)
}

fn policies(
    ran: &[RunResult],
    idle_times: impl Iterator<Item = Option<Duration>>,
    load_s: f64,
    rated: Option<u64>,
    price: Option<&EnergyPrice>,
) -> Vec<StopPolicy> {
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
    let first = ran.first().map(|ran| &ran.measured.report);
    let policy = |(ran, after): (&RunResult, Option<Duration>)| {
        let report = &ran.measured.report;
        let too_short_by = after
            .map(|after| LOAD_OF_IDLE_TIMES * after.as_secs_f64() / load_s)
            .filter(|factor| *factor > 1.0);
        let half_width_w = match too_short_by {
            None => mean_watts_half_width(report),
            Some(_) => None,
        };
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
            saved_share_ci95_half_width: first
                .and_then(|first| saved_half_width(first, report, after, load_s)),
            too_short_by,
            kwh_a_year: kwh_a_year(watts(report)),
            kwh_a_year_ci95_half_width: half_width_w.map(kwh_a_year),
            cost_a_year: price.map(|price| price.of_a_year(watts(report))),
            cost_a_year_ci95_half_width: price
                .zip(half_width_w)
                .map(|(price, watts)| price.of_a_year(watts)),
            requests: report.times.response_ms.count,
            response_ms_mean: report.times.response_ms.mean,
            response_ms_p99: report.times.response_ms.p99,
            response_ms_p999: report.times.response_ms.p999,
            response_ms_max: report.times.response_ms.max,
            stops: report
                .array
                .members
                .iter()
                .map(|member| stops(&member.statistics))
                .max()
                .unwrap_or(0),
            stops_a_year,
            years: rated
                // Without a stop, no number of years uses up the rated stops.
                .filter(|_| stops_a_year > 0.0)
                .map(|rated| rated as f64 / stops_a_year),
        }
    };
    ran.iter().zip(idle_times).map(policy).collect()
}

/// Returns the number of stops of a drive.
fn stops(statistics: &MemberStatistics) -> u64 {
    let power = statistics.power.as_ref();
    power.map_or(0, |power| power.spin_downs())
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
