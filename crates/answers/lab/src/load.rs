//! The largest load that a stack carries.

use crate::hurried::AcceleratedSource;
use crate::{LabError, Recipe, RunResult, run};
use fullstroke_contract::Source;
use fullstroke_counters::Counter;
use fullstroke_measure::{Metric, number, table};
use fullstroke_units::Duration;
use serde::Serialize;
use std::cell::Cell;
use std::fmt;

/// Largest relative difference between the final bounds of the load.
pub const PRECISION: f64 = 0.02;

/// Bounds of the tried loads, as multiples of the workload's load.
const LOAD_MAX: f64 = 1024.0;
const LOAD_MIN: f64 = 1.0 / 1024.0;

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
    /// Utilisation of the busiest drive, 0 to 1.
    pub utilisation_max: f64,
}

/// Finds the largest load that the stack of `recipe` carries. If `p99_max` is given, the 99th
/// percentile of response times must not exceed `p99_max`. `progress` is called with the number of
/// simulated requests.
///
/// # Errors
/// Errors of the stack or of a run; also arrivals that wait for completions.
pub fn most_load(
    recipe: &Recipe,
    p99_max: Option<Duration>,
    progress: &dyn Fn(u64),
) -> Result<FoundLoad, LabError> {
    let mut candidate = recipe.candidate()?;
    if !candidate.can_be_hurried()? {
        return Err(LabError::NoArrivals {
            candidate: recipe.label(),
        });
    }
    let p99_ms_max = p99_max.map(Duration::as_millis_f64);
    let (mut tried, simulated) = (Vec::new(), Cell::new(0));
    let (load, too_much) = bracket(|load| {
        candidate.load = load;
        let ran = run(&candidate, None, &|finished, _| {
            progress(simulated.get() + finished)
        })?;
        simulated.set(simulated.get() + ran.measured.report.arrived.requests);
        let one = TriedLoad::new(load, &ran, p99_ms_max);
        tried.push(one);
        Ok::<TriedLoad, LabError>(one)
    })?;
    let held = tried.iter().find(|tried| tried.held && tried.load == load);
    Ok(FoundLoad {
        name: recipe.label(),
        load,
        too_much,
        iops: held.map_or(0.0, |held| held.iops),
        p99_ms: held.map_or(f64::NAN, |held| held.p99_ms),
        p99_ms_max,
        tried,
    })
}

/// Returns the source of a candidate's run at `load`.
pub(crate) fn at_load(source: Box<dyn Source>, load: f64) -> Box<dyn Source> {
    if load == 1.0 {
        source
    } else {
        Box::new(AcceleratedSource::new(source, load))
    }
}

/// Returns the largest load that holds and the smallest load that fails, [`PRECISION`] apart. The
/// search starts at 1. The load doubles until one fails, or falls to the carried share until one
/// holds. Then the search bisects between both bounds.
fn bracket<E>(mut tried: impl FnMut(f64) -> Result<TriedLoad, E>) -> Result<(f64, Option<f64>), E> {
    let (mut held, mut failed): (f64, Option<f64>) = (0.0, None);
    let mut next = 1.0;
    loop {
        let one = tried(next)?;
        if one.held {
            held = next
        } else {
            failed = Some(next)
        }
        next = match failed {
            None if held >= LOAD_MAX => return Ok((held, None)),
            None => held * 2.0,
            // The bisection takes the geometric mean because `PRECISION` is a ratio.
            Some(failed) if held > 0.0 => (held * failed).sqrt(),
            // A load slightly below the carried share is likely to hold.
            Some(failed) if one.carried_share < 1.0 => failed * (0.95 * one.carried_share).max(0.1),
            Some(failed) => failed / 2.0,
        };
        match failed {
            // `held` is above 0, so the ratio exists.
            Some(failed) if held > 0.0 && failed / held <= 1.0 + PRECISION => {
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
                number(tried.p99_ms),
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
            ),
            Some(_) => write!(
                f,
                "{}: no load that was tried is carried{limit}.",
                self.name
            ),
            None => write!(
                f,
                "{}: {} times this load is carried{limit} ({} IOPS); more was not tried.",
                self.name,
                number(self.load),
                number(self.iops)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(limit: f64) -> (f64, Option<f64>, u32) {
        let mut tries = 0;
        let (held, failed) = bracket(|load| {
            tries += 1;
            let carried_share = (limit / load).min(1.0);
            let held = load <= limit;
            Ok::<_, ()>(TriedLoad {
                load,
                held,
                carried_share,
                iops: 0.0,
                p99_ms: 0.0,
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
        assert_eq!(found(1e9).1, None);
        assert_eq!(found(0.0).0, 0.0);
    }
}
