//! The most streams that play without an underrun.

use crate::{Candidate, Event, LabError, Ran, Varied, run_all};
use fullstroke_counters::Counter;
use fullstroke_measure::{number, table};
use fullstroke_stack::{Overrides, Stack, StackError};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// With which confidence the result is stated, above 0 and below 1.
    pub confidence: f64,
    /// Runs for each number of streams, each with a seed of its own; at least 1.
    pub replications: u32,
    /// Runs at a time.
    pub jobs: usize,
}

/// What was found.
///
/// A number of streams holds if all of them begin to play, and no client ever
/// waits for a byte, in every run. Each number is tried with the same seeds, so
/// that what is found is the least of what the seeds allow: by Wilks' tolerance
/// limit (Annals of Mathematical Statistics 12(1), 1941) a run with a seed of
/// its own has an underrun with a probability of at most
/// `1 - (1 - confidence)^(1 / replications)`, which for a confidence of 0.95 is
/// the rule of three, about `3 / replications`. As all bisection, this takes it
/// that a seed which has an underrun with some streams has one with more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// The stack's name.
    pub name: String,
    /// The most streams that hold; 0 if not even one does.
    pub streams: u32,
    /// The confidence of what is said of the probability.
    pub confidence: f64,
    /// With that confidence, the most probable that an underrun is in a run of
    /// so many streams; `None` where not even one stream plays.
    pub underrun_probability_max: Option<f64>,
    /// Runs for each number of streams.
    pub replications: u32,
    /// The seed of the first run; the others follow it one by one.
    pub first_seed: u64,
    /// The numbers of streams that were tried, in this order.
    pub tried: Vec<Tried>,
}

/// A number of streams that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// The number.
    pub streams: u32,
    /// Runs in which all streams played without an underrun.
    pub runs_that_held: usize,
    /// Why it was not run, if the stack does not allow so many.
    pub refused: Option<String>,
    /// Underruns in all runs.
    pub underruns: u64,
    /// Streams that were not started, or had not begun to play by the end, in
    /// all runs.
    pub silent: u64,
    /// The longest time that a client waited for a byte, in ms.
    pub longest_stall_ms: f64,
    /// The longest start-up latency, in ms.
    pub start_up_ms_max: f64,
    /// How busy the drives were, over all drives and runs.
    pub utilisation: f64,
}

/// The most streams that the stack file plays: its own number is doubled until
/// it does not hold, and what lies between is bisected. `progress` is told how
/// many requests have been simulated.
///
/// # Errors
/// The stack's, that it has no streams, or those of a run.
pub fn most_streams(
    file: &Path,
    overrides: &Overrides,
    search: Search,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Found, LabError> {
    let stack = Stack::load(file, overrides)?;
    let name = stack.name().to_owned();
    let first = stack.streams().ok_or_else(|| LabError::NoStreams {
        candidate: name.clone(),
    })?;
    let first_seed = stack.seed().0;
    let simulated = AtomicU64::new(0);
    let mut tried = Vec::new();
    let streams = bisect(first, |streams| {
        let one = try_out(file, overrides, (streams, first_seed), search, &|event| {
            if event.over {
                progress(simulated.fetch_add(event.finished, Ordering::Relaxed) + event.finished);
            }
        })?;
        let holds = one.holds(search.replications);
        tried.push(one);
        Ok::<bool, LabError>(holds)
    })?;
    let most = 1.0 - (1.0 - search.confidence).powf(1.0 / f64::from(search.replications));
    Ok(Found {
        name,
        streams,
        confidence: search.confidence,
        underrun_probability_max: (streams > 0).then_some(most),
        replications: search.replications,
        first_seed,
        tried,
    })
}

/// The largest number that holds, if all below it do; 0 if none does. `first` is
/// tried first.
fn bisect<E>(first: u32, mut holds: impl FnMut(u32) -> Result<bool, E>) -> Result<u32, E> {
    let (mut held, mut failed) = (0, u32::MAX);
    let mut next = first.max(1);
    while failed - held > 1 {
        if holds(next)? {
            held = next
        } else {
            failed = next
        }
        next = if failed == u32::MAX {
            held.saturating_mul(2).min(failed - 1)
        } else {
            held + (failed - held) / 2
        };
    }
    Ok(held)
}

fn try_out(
    file: &Path,
    overrides: &Overrides,
    (streams, first_seed): (u32, u64),
    search: Search,
    progress: &(dyn Fn(Event) + Sync),
) -> Result<Tried, LabError> {
    let candidate = |replication: u32| {
        let mut overrides = overrides.clone();
        let seed = first_seed.wrapping_add(u64::from(replication));
        overrides.set.extend([
            format!("workload.streams={streams}"),
            format!("seed={seed}"),
        ]);
        let stack = Stack::load(file, &overrides)?;
        Ok::<_, StackError>(Candidate::new(
            stack.name().to_owned(),
            Varied::default(),
            stack,
        ))
    };
    let candidates = match (0..search.replications)
        .map(candidate)
        .collect::<Result<Vec<_>, _>>()
    {
        Ok(candidates) => candidates,
        Err(error) => {
            return Ok(Tried {
                refused: Some(error.to_string()),
                ..Tried::new(streams, &[])
            });
        }
    };
    Ok(Tried::new(
        streams,
        &run_all(&candidates, search.jobs, progress)?,
    ))
}

impl Tried {
    fn new(streams: u32, ran: &[Ran]) -> Tried {
        let reports = || {
            ran.iter()
                .filter_map(|ran| ran.measured.report.streams.as_ref())
        };
        let members = || {
            ran.iter()
                .flat_map(|ran| &ran.measured.report.array.members)
        };
        Tried {
            streams,
            runs_that_held: reports()
                .filter(|report| report.all_played(streams))
                .count(),
            refused: None,
            underruns: reports().map(|report| report.underruns).sum(),
            silent: reports()
                .map(|report| u64::from(streams) - report.playing as u64)
                .sum(),
            longest_stall_ms: reports()
                .map(|report| report.longest_stall_ms)
                .fold(0.0, f64::max),
            start_up_ms_max: reports()
                .map(|report| report.start_up_ms.max)
                .fold(f64::NAN, f64::max),
            utilisation: members()
                .map(|member| member.value(Counter::BUSY))
                .sum::<f64>()
                / members().count() as f64,
        }
    }

    fn holds(&self, replications: u32) -> bool {
        self.runs_that_held == replications as usize
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "streams",
            "runs that held",
            "underruns",
            "never played",
            "longest stall ms",
            "start-up max ms",
            "drives busy",
        ];
        let mut table = table(header, &[]);
        let runs = self.replications;
        for tried in self.tried.iter().filter(|tried| tried.refused.is_none()) {
            table.add_row([
                tried.streams.to_string(),
                format!("{} of {runs}", tried.runs_that_held),
                tried.underruns.to_string(),
                tried.silent.to_string(),
                number(tried.longest_stall_ms),
                number(tried.start_up_ms_max),
                format!("{:.1} %", 100.0 * tried.utilisation),
            ]);
        }
        writeln!(f, "{}\n", table.trim_fmt())?;
        for (streams, refused) in self
            .tried
            .iter()
            .filter_map(|tried| Some((tried.streams, tried.refused.as_ref()?)))
        {
            writeln!(f, "{streams} streams cannot be: {refused}")?;
        }
        let Some(probability) = self.underrun_probability_max else {
            return write!(
                f,
                "{}: not even one stream plays without an underrun.",
                self.name
            );
        };
        let last_seed = self.first_seed.wrapping_add(u64::from(runs) - 1);
        write!(
            f,
            "{}: {} streams play without an underrun in {runs} of {runs} runs (seeds {} to {last_seed}).\n\
             With {} % confidence at most {:.1} % of such runs have one.",
            self.name,
            self.streams,
            self.first_seed,
            100.0 * self.confidence,
            100.0 * probability,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_that_holds_is_found_from_wherever_it_begins() {
        for limit in [0, 1, 2, 35, 36, 37, 1000, 1 << 20] {
            for first in [1, 36, 5000] {
                let mut tries = 0;
                let found = bisect(first, |streams| {
                    tries += 1;
                    Ok::<bool, ()>(streams <= limit)
                });
                assert_eq!(found, Ok(limit));
                assert!(tries <= 42, "{tries} to find {limit} from {first}");
            }
        }
    }
}
