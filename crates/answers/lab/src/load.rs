//! The largest load that a stack carries.

use crate::{DEFAULT_BUDGET, LabError, Recipe, RunResult, Settled, Settling, run};
use fullstroke_counters::Counter;
use fullstroke_measure::{BEYOND_MIN, Metric, number, percentile, table};
use fullstroke_units::Duration;
use serde::Serialize;
use std::cell::Cell;
use std::fmt;

/// Largest relative difference between the final bounds of the load.
pub const PRECISION: f64 = 0.02;

/// Bounds of the tried loads, as multiples of the workload's load.
const LOAD_MAX: f64 = 1024.0;
const LOAD_MIN: f64 = 1.0 / 1024.0;

/// Usual number of runs of a search near a known load.
const NEXT_RUNS: u64 = 4;

/// Result of the search.
///
/// A load holds if the drives carry the load, so that the queue does not grow (see
/// [`fullstroke_measure`]). If there is a limit, the 99th percentile of response times must also
/// stay within the limit. The bisection assumes that a load above a failed load fails too.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundLoad {
    /// The candidate's name.
    pub name: String,
    /// Largest load that holds, as a multiple of the load of the stack's workload; 0 if no tried
    /// load holds.
    pub load: f64,
    /// Smallest load that fails; `null` if all tried loads hold.
    pub too_much: Option<f64>,
    /// Reads and writes per second at `load`.
    pub iops: f64,
    /// 99th percentile of response times at `load`, in ms.
    pub p99_ms: f64,
    /// Limit of the 99th percentile of response times, in ms; `None` if there is no limit.
    pub p99_ms_max: Option<f64>,
    /// Result of the same search with a load of half the length; `None` if the load has no other
    /// length.
    pub load_at_half_length: Option<f64>,
    /// Whether a longer load may change the result, and why the load is no longer.
    pub settled: Settled,
    /// Tried loads, in the order of the search.
    pub tried: Vec<TriedLoad>,
}

/// Result of one load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TriedLoad {
    /// Load as a multiple of the load of the stack's workload.
    pub load: f64,
    /// True if the load holds.
    pub held: bool,
    /// Carried share of the load, 0 to 1.
    pub carried_share: f64,
    /// Reads and writes per second.
    pub iops: f64,
    /// 99th percentile of response times, in ms.
    pub p99_ms: f64,
    /// Number of requests beyond the 99th percentile.
    pub p99_beyond: u64,
    /// Utilisation of the busiest drive, 0 to 1.
    pub utilisation_max: f64,
}

/// A search at one length of the load.
struct Search {
    load: f64,
    too_much: Option<f64>,
    tried: Vec<TriedLoad>,
    /// Number of requests of a run, and of all runs.
    requests: u64,
    simulated: u64,
}

impl Search {
    /// Returns the tried load of the result; `None` if no load holds.
    fn held(&self) -> Option<&TriedLoad> {
        let mut tried = self.tried.iter();
        tried.find(|tried| tried.held && tried.load == self.load)
    }
}

/// Finds the largest load that the stack of `recipe` carries. If `p99_max` is given, the 99th
/// percentile of response times must not exceed `p99_max`. `progress` is called with the number of
/// simulated requests.
///
/// A short load hides a queue that grows slowly. The search is therefore repeated with half the
/// length. If both results differ, the load is doubled, until two lengths agree or `budget` requests
/// are simulated. Without a budget, the length stays.
///
/// # Errors
/// Errors of the stack or of a run; also arrivals that wait for completions.
pub fn most_load(
    recipe: &Recipe,
    p99_max: Option<Duration>,
    budget: Option<u64>,
    progress: &dyn Fn(u64),
) -> Result<FoundLoad, LabError> {
    if !recipe.candidate()?.can_be_hurried()? {
        return Err(LabError::NoArrivals {
            candidate: recipe.label(),
        });
    }
    let p99_ms_max = p99_max.map(Duration::as_millis_f64);
    let simulated = Cell::new(0);
    let at = |recipe: &Recipe, begin: SearchBegin| {
        let found = search(recipe, p99_ms_max, begin, &|finished| {
            progress(simulated.get() + finished)
        })?;
        simulated.set(simulated.get() + found.simulated);
        Ok::<Search, LabError>(found)
    };
    let mut long = at(recipe, SearchBegin::COLD)?;
    let mut short = match half_as_long(recipe, long.requests)? {
        Some(recipe) => Some(at(&recipe, SearchBegin::near(long.load))?),
        None => None,
    };
    let mut length = 1.0;
    let (settling, too_short_by) = loop {
        let too_short_by = short.as_ref().map_or(2.0, |short| {
            too_short_by(short, &long, p99_ms_max.is_some())
        });
        let settling = match budget {
            _ if too_short_by <= 1.0 => Some(Settling::Settled),
            None => Some(Settling::LengthChosen),
            Some(budget) if simulated.get() + NEXT_RUNS * 2 * long.requests > budget => {
                Some(Settling::BudgetSpent)
            }
            Some(_) => None,
        };
        if let Some(settling) = settling {
            break (settling, too_short_by);
        }
        length *= 2.0;
        let longer = match recipe.scaled(length)? {
            Some(longer) => Some(at(&longer, SearchBegin::near(long.load))?),
            None => None,
        };
        // A trace ends with its file, whatever the number of requests.
        match longer.filter(|longer| longer.requests > long.requests) {
            Some(longer) => short = Some(std::mem::replace(&mut long, longer)),
            None => break (Settling::LoadEnds, too_short_by),
        }
    };
    let held = long.held().copied();
    Ok(FoundLoad {
        name: recipe.label(),
        load: long.load,
        too_much: long.too_much,
        iops: held.map_or(0.0, |held| held.iops),
        p99_ms: held.map_or(f64::NAN, |held| held.p99_ms),
        p99_ms_max,
        load_at_half_length: short.map(|short| short.load),
        settled: Settled {
            settling,
            requests: long.requests,
            spent: simulated.get(),
            budget: budget.unwrap_or(DEFAULT_BUDGET),
            too_short_by,
        },
        tried: long.tried,
    })
}

/// Returns the factor by which the longer of two loads is too short: 1 if both results agree within
/// twice the precision of a search, and if enough requests lie beyond a limited percentile.
fn too_short_by(short: &Search, long: &Search, has_limit: bool) -> f64 {
    let larger = short.load.max(long.load);
    if larger == 0.0 {
        return 1.0;
    }
    let beyond = long.held().map_or(BEYOND_MIN, |held| held.p99_beyond);
    if has_limit && beyond < BEYOND_MIN {
        return BEYOND_MIN as f64 / beyond.max(1) as f64 + 1.0;
    }
    let change = (short.load - long.load).abs() / larger / (2.0 * PRECISION);
    // The change shrinks with the root of the length, as chance does.
    match change <= 1.0 {
        true => 1.0,
        false => change.powi(2).clamp(2.0, 1000.0),
    }
}

/// Returns the recipe with a load of half the length; `None` if the load has no other length.
fn half_as_long(recipe: &Recipe, requests: u64) -> Result<Option<Recipe>, LabError> {
    if let Some(half) = recipe.scaled(0.5)? {
        return Ok(Some(half));
    }
    let stack = recipe.candidate()?.stack;
    Ok(stack.trace_file().map(|_| {
        let mut half = recipe.clone();
        half.overrides.requests = Some((requests / 2).max(1));
        half
    }))
}

/// Begin of a search: the first load, and the first factor between two loads.
#[derive(Clone, Copy, Debug)]
struct SearchBegin {
    load: f64,
    factor: f64,
}

impl SearchBegin {
    /// Nothing is known.
    const COLD: SearchBegin = SearchBegin {
        load: 1.0,
        factor: 2.0,
    };

    /// A similar search gave this load.
    fn near(load: f64) -> SearchBegin {
        match load > 0.0 {
            true => SearchBegin {
                load,
                factor: 1.0 + PRECISION,
            },
            false => SearchBegin::COLD,
        }
    }
}

fn search(
    recipe: &Recipe,
    p99_ms_max: Option<f64>,
    begin: SearchBegin,
    progress: &dyn Fn(u64),
) -> Result<Search, LabError> {
    let mut candidate = recipe.candidate()?;
    let (mut tried, simulated, requests) = (Vec::new(), Cell::new(0), Cell::new(0));
    let (load, too_much) = bracket(begin, |load| {
        candidate.load = load;
        let ran = run(&candidate, None, &|finished, _| {
            progress(simulated.get() + finished)
        })?;
        requests.set(ran.measured.report.arrived.requests);
        simulated.set(simulated.get() + requests.get());
        let one = TriedLoad::new(load, &ran, p99_ms_max);
        tried.push(one);
        Ok::<TriedLoad, LabError>(one)
    })?;
    Ok(Search {
        load,
        too_much,
        tried,
        requests: requests.get(),
        simulated: simulated.get(),
    })
}

/// Returns the largest load that holds and the smallest load that fails, [`PRECISION`] apart. A
/// cold search starts at 1. The load doubles until one fails, or falls to the carried share until
/// one holds. Then the search bisects between both bounds. A search near a known load begins with
/// small steps, which grow.
fn bracket<E>(
    begin: SearchBegin,
    mut tried: impl FnMut(f64) -> Result<TriedLoad, E>,
) -> Result<(f64, Option<f64>), E> {
    let (mut held, mut failed): (f64, Option<f64>) = (0.0, None);
    let (mut next, mut factor) = (begin.load, begin.factor);
    let is_cold = factor >= 2.0;
    loop {
        let one = tried(next)?;
        if one.held {
            held = next
        } else {
            failed = Some(next)
        }
        next = match failed {
            None if held >= LOAD_MAX => return Ok((held, None)),
            None => held * factor,
            // The bisection takes the geometric mean because `PRECISION` is a ratio.
            Some(failed) if held > 0.0 => (held * failed).sqrt(),
            Some(failed) if !is_cold => failed / factor,
            // A load slightly below the carried share is likely to hold.
            Some(failed) if one.carried_share < 1.0 => failed * (0.95 * one.carried_share).max(0.1),
            Some(failed) => failed / 2.0,
        };
        // Steps grow up to a doubling.
        factor = (factor * factor).min(2.0);
        match failed {
            // `held` is above 0, so the ratio exists. The sum of two roundings may exceed the
            // precision.
            Some(failed) if held > 0.0 && failed / held <= (1.0 + PRECISION) * (1.0 + 1e-9) => {
                return Ok((held, Some(failed)));
            }
            // Even the smallest load fails; the search would halve for ever.
            Some(failed) if held == 0.0 && next < LOAD_MIN => return Ok((0.0, Some(failed))),
            _ => {}
        }
    }
}

impl TriedLoad {
    fn new(load: f64, ran: &RunResult, p99_ms_max: Option<f64>) -> TriedLoad {
        let report = &ran.measured.report;
        let within = p99_ms_max.is_none_or(|most| report.times.response_ms.p99 <= most);
        TriedLoad {
            load,
            held: report.arrived.overload.is_none()
                && within
                && report.arrived.completed == report.arrived.requests,
            carried_share: report
                .arrived
                .overload
                .as_ref()
                .map_or(1.0, |overload| overload.carried_share),
            iops: report.rates.iops,
            p99_ms: report.times.response_ms.p99,
            p99_beyond: report.times.response_ms.beyond(0.99),
            utilisation_max: report
                .array
                .members
                .iter()
                .map(|member| member.value(Counter::BUSY))
                .fold(f64::NAN, f64::max),
        }
    }
}

impl FoundLoad {
    /// Returns the limit of the response time as text; empty without a limit.
    pub(crate) fn limit(&self) -> String {
        self.p99_ms_max.map_or_else(String::new, |most| {
            format!(
                " with a {} of at most {} ms",
                Metric::RESPONSE_P99.name(),
                number(most)
            )
        })
    }
}

impl fmt::Display for FoundLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "load",
            "holds",
            "carried",
            "IOPS",
            "p99 ms",
            "busiest drive",
        ];
        let mut table = table(header, &[]);
        for tried in &self.tried {
            table.add_row([
                number(tried.load),
                (if tried.held { "yes" } else { "no" }).to_owned(),
                format!("{:.2}", tried.carried_share),
                number(tried.iops),
                percentile(tried.p99_ms, 100 * tried.p99_beyond, 0.99),
                format!("{:.1} %", 100.0 * tried.utilisation_max),
            ]);
        }
        writeln!(f, "{}\n", table.trim_fmt())?;
        let limit = self.limit();
        match self.too_much {
            Some(too_much) if self.load > 0.0 => write!(
                f,
                "{}: {} times this load is carried{limit} ({} IOPS); {} times is not.",
                self.name,
                number(self.load),
                number(self.iops),
                number(too_much)
            )?,
            Some(_) => write!(
                f,
                "{}: no load that was tried is carried{limit}.",
                self.name
            )?,
            None => write!(
                f,
                "{}: {} times this load is carried{limit} ({} IOPS); more was not tried.",
                self.name,
                number(self.load),
                number(self.iops)
            )?,
        }
        if let Some(half) = self.load_at_half_length {
            write!(f, " With half the length: {} times.", number(half))?;
        }
        write!(f, " {}", self.settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(limit: f64) -> (f64, Option<f64>, u32) {
        found_from(SearchBegin::COLD, limit)
    }

    fn found_from(begin: SearchBegin, limit: f64) -> (f64, Option<f64>, u32) {
        let mut tries = 0;
        let (held, failed) = bracket(begin, |load| {
            tries += 1;
            let carried_share = (limit / load).min(1.0);
            let held = load <= limit;
            Ok::<_, ()>(TriedLoad {
                load,
                held,
                carried_share,
                iops: 0.0,
                p99_ms: 0.0,
                p99_beyond: 1000,
                utilisation_max: 0.0,
            })
        })
        .unwrap();
        (held, failed, tries)
    }

    #[test]
    fn the_largest_load_that_holds_is_bracketed_from_wherever_it_begins() {
        for limit in [0.002, 0.05, 0.24, 0.97, 1.0, 1.01, 3.7, 900.0] {
            let (held, failed, tries) = found(limit);
            assert!(
                held <= limit && failed.unwrap() > limit,
                "{limit}: {held}, {failed:?}"
            );
            assert!(
                failed.unwrap() / held <= 1.0 + PRECISION,
                "{limit}: {held}, {failed:?}"
            );
            assert!(tries <= 20, "{tries} to find {limit}");
        }
        // Near a known load two runs are enough, and a wrong guess costs a few more.
        for (guess, tries_max) in [(3.69, 2), (3.5, 8), (4.2, 8), (0.5, 20)] {
            let (held, failed, tries) = found_from(SearchBegin::near(guess), 3.7);
            assert!(
                held <= 3.7 && failed.unwrap() > 3.7,
                "{guess}: {held}, {failed:?}"
            );
            assert!(
                failed.unwrap() / held <= 1.0201,
                "{guess}: {held}, {failed:?}"
            );
            assert!(tries <= tries_max, "{guess}: {tries} tries");
        }
        assert_eq!(found(1e9).1, None);
        assert_eq!(found(0.0).0, 0.0);
    }
}
