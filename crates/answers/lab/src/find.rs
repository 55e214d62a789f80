//! Finds the largest number of streams that play without an underrun.

use crate::{
    CandidateProgress, ComparedStack, DEFAULT_BUDGET, LabError, RunResult, Settled, Settling,
    Varied, run_all,
};
use fullstroke_counters::Counter;
use fullstroke_measure::{number, table};
use fullstroke_stack::{Overrides, Stack, StackError};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parameters of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadSearch {
    /// Confidence of the result, above 0 and below 1.
    pub confidence: f64,
    /// Number of runs for each number of streams, each with its own seed; at least 1.
    pub replications: u32,
    /// Number of runs at the same time.
    pub jobs: usize,
    /// Largest number of requests that the search simulates while it extends the runs; `None` for
    /// runs of the length of the stack.
    pub budget: Option<u64>,
}

/// Largest difference between the results at two lengths that counts as none, as a share. Below 50
/// streams the results must be the same.
const SAME: f64 = 0.02;

/// Result of the search.
///
/// A number of streams holds if all streams begin to play, and no client ever waits for a byte, in
/// every run. Each number is tried with the same seeds. The result is therefore the minimum over
/// the seeds. By Wilks' tolerance limit (Annals of Mathematical Statistics 12(1), 1941), a run with
/// a new seed has an underrun with a probability of at most `1 - (1 - confidence)^(1 /
/// replications)`. For a confidence of 0.95 this is the rule of three, about `3 / replications`.
/// The bisection assumes that a seed with an underrun at some number of streams also has one at any
/// larger number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadSearchResult {
    /// The stack's name.
    pub name: String,
    /// Largest number of streams that holds; 0 if not even one stream holds.
    pub streams: u32,
    /// Confidence of `underrun_probability_max`.
    pub confidence: f64,
    /// Upper bound of the probability that a run with `streams` streams has an underrun. `None` if
    /// not even one stream plays.
    pub underrun_probability_max: Option<f64>,
    /// Number of runs for each number of streams.
    pub replications: u32,
    /// Seed of the first run; the other runs have consecutive seeds.
    pub first_seed: u64,
    /// Result with runs of half the length; `None` if only one length was run.
    pub streams_at_half_length: Option<u32>,
    /// State of the answer. Longer runs find underruns that short runs miss.
    pub settled: Settled,
    /// Tried numbers of streams, in the order of the search. Numbers of the longest runs come last.
    pub tried: Vec<TriedStreams>,
}

/// Result of one number of streams.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriedStreams {
    /// Number of streams.
    pub streams: u32,
    /// Length of the runs, as a multiple of the length of the stack.
    pub length: f64,
    /// Largest number of requests of a run.
    pub requests: u64,
    /// Number of runs without an underrun and with all streams playing.
    pub runs_that_held: usize,
    /// Error of the stack if the stack does not allow this number of streams. Then nothing was run.
    pub refused: Option<String>,
    /// Number of underruns in all runs.
    pub underruns: u64,
    /// Number of streams, in all runs, that were not started or had not begun to play by the end.
    pub silent: u64,
    /// Longest time that a client waited for a byte, in ms.
    pub longest_stall_ms: f64,
    /// Longest start-up latency, in ms.
    pub start_up_ms_max: f64,
    /// Mean utilisation of the drives over all drives and runs, 0 to 1.
    pub utilisation: f64,
}

/// Finds the largest number of streams that the stack file plays. The search starts at the stack's
/// own number, doubles until a number fails, and then bisects. With a budget, runs are then twice
/// as long, until two lengths give the same number. `progress` is called with the number of
/// simulated requests.
///
/// # Errors
/// Errors of the stack or of a run; also a stack without streams.
pub fn most_streams(
    file: &Path,
    overrides: &Overrides,
    search: LoadSearch,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<LoadSearchResult, LabError> {
    let stack = Stack::load(file, overrides)?;
    let name = stack.name().to_owned();
    let first = stack.streams().ok_or_else(|| LabError::NoStreams {
        candidate: name.clone(),
    })?;
    let first_seed = stack.seed().0;
    let simulated = AtomicU64::new(0);
    let mut tried: Vec<TriedStreams> = Vec::new();
    let mut at = |length: f64, known: Option<u32>| {
        let mut longer = overrides.clone();
        if length > 1.0 {
            let lengths = stack.load_lengths();
            longer
                .set
                .extend(lengths.iter().map(|one| one.scaled(length)));
        }
        let holds = |streams: u32| {
            let one = try_out(file, &longer, (streams, first_seed), search, &|event| {
                if event.over {
                    progress(
                        simulated.fetch_add(event.finished, Ordering::Relaxed) + event.finished,
                    );
                }
            })?;
            let holds = one.holds(search.replications);
            tried.push(TriedStreams { length, ..one });
            Ok::<bool, LabError>(holds)
        };
        match known {
            Some(known) => bisect_near(known, holds),
            None => bisect(first, holds),
        }
    };
    let (mut length, mut spent) = (1.0, 0);
    let mut streams = at(length, None)?;
    let mut before = None;
    let settling = loop {
        let now_spent = simulated.load(Ordering::Relaxed);
        // The next length needs about twice the requests of this one.
        let next = 2 * (now_spent - spent);
        spent = now_spent;
        let same = before.is_some_and(|before: u32| {
            f64::from(before.abs_diff(streams)) <= SAME * f64::from(streams)
        });
        match search.budget {
            _ if same => break Settling::Settled,
            None => break Settling::LengthChosen,
            Some(budget) if spent + next > budget => break Settling::BudgetSpent,
            Some(_) => {}
        }
        length *= 2.0;
        before = Some(std::mem::replace(&mut streams, 0));
        streams = at(length, before)?;
    };
    let settled = settled(search, &tried, settling, spent);
    // If a share p of runs had an underrun, n runs without one would have the probability (1 -
    // p)^n. The bound is the p at which this is 1 - confidence.
    let most = 1.0 - (1.0 - search.confidence).powf(1.0 / f64::from(search.replications));
    Ok(LoadSearchResult {
        name,
        streams,
        confidence: search.confidence,
        underrun_probability_max: (streams > 0).then_some(most),
        replications: search.replications,
        first_seed,
        streams_at_half_length: before,
        settled,
        tried,
    })
}

/// Returns the state of the answer at the end of a search.
fn settled(search: LoadSearch, tried: &[TriedStreams], settling: Settling, spent: u64) -> Settled {
    // The longest runs come last.
    let length = tried.last().map_or(1.0, |last| last.length);
    let requests = tried.iter().filter(|one| one.length >= length);
    Settled {
        settling,
        requests: requests.map(|one| one.requests).max().unwrap_or(0),
        spent,
        budget: search.budget.unwrap_or(DEFAULT_BUDGET),
        too_short_by: match settling {
            Settling::Settled => 1.0,
            _ => 2.0,
        },
    }
}

/// Returns the largest number that holds, on the assumption that all smaller numbers hold; 0 if
/// none holds. The search tries `first` first.
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
            // No number of streams has failed yet, so the number doubles up to the range.
            held.saturating_mul(2).min(failed - 1)
        } else {
            held + (failed - held) / 2
        };
    }
    Ok(held)
}

/// Like [`bisect`], with a search that goes away from `known` in growing steps.
fn bisect_near<E>(known: u32, mut holds: impl FnMut(u32) -> Result<bool, E>) -> Result<u32, E> {
    let (mut held, mut failed) = (0, u32::MAX);
    let (mut next, mut step) = (known.max(1), 1u32);
    while failed - held > 1 {
        if holds(next)? {
            held = next
        } else {
            failed = next
        }
        next = match (held, failed) {
            (_, u32::MAX) => held.saturating_add(step).min(failed - 1),
            (0, _) => failed.saturating_sub(step).max(1),
            _ => held + (failed - held) / 2,
        };
        step = step.saturating_mul(2);
    }
    Ok(held)
}

fn try_out(
    file: &Path,
    overrides: &Overrides,
    (streams, first_seed): (u32, u64),
    search: LoadSearch,
    progress: &(dyn Fn(CandidateProgress) + Sync),
) -> Result<TriedStreams, LabError> {
    let candidate = |replication: u32| {
        let mut overrides = overrides.clone();
        let seed = first_seed.wrapping_add(u64::from(replication));
        overrides.set.extend([
            format!("workload.streams={streams}"),
            format!("seed={seed}"),
        ]);
        let stack = Stack::load(file, &overrides)?;
        Ok::<_, StackError>(ComparedStack::new(
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
            return Ok(TriedStreams {
                refused: Some(error.to_string()),
                ..TriedStreams::new(streams, &[])
            });
        }
    };
    Ok(TriedStreams::new(
        streams,
        &run_all(&candidates, search.jobs, progress)?,
    ))
}

impl TriedStreams {
    fn new(streams: u32, ran: &[RunResult]) -> TriedStreams {
        let reports = || {
            ran.iter()
                .filter_map(|ran| ran.measured.report.streams.as_ref())
        };
        let members = || {
            ran.iter()
                .flat_map(|ran| &ran.measured.report.array.members)
        };
        TriedStreams {
            streams,
            length: 1.0,
            requests: ran
                .iter()
                .map(|ran| ran.measured.report.arrived.requests)
                .max()
                .unwrap_or(0),
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

impl fmt::Display for LoadSearchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = [
            "streams",
            "length",
            "held",
            "underruns",
            "never played",
            "stall ms",
            "start-up ms",
            "busy",
        ];
        let mut table = table(header, &[]);
        let runs = self.replications;
        for tried in self.tried.iter().filter(|tried| tried.refused.is_none()) {
            table.add_row([
                tried.streams.to_string(),
                number(tried.length),
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
            writeln!(f, "the stack does not allow {streams} streams: {refused}")?;
        }
        let Some(probability) = self.underrun_probability_max else {
            return write!(
                f,
                "{}: not even one stream plays without an underrun.",
                self.name
            );
        };
        let settled = match (self.streams_at_half_length, self.settled.is_settled()) {
            (Some(half), true) => {
                format!(" Settled: runs of half the length give {half}.")
            }
            _ => format!(" {}", self.settled),
        };
        let last_seed = self.first_seed.wrapping_add(u64::from(runs) - 1);
        write!(
            f,
            "{}: {} streams play without an underrun in {runs} of {runs} runs (seeds {} to {last_seed}).\n\
             With {} % confidence at most {:.1} % of such runs have an underrun.{settled}",
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

    #[test]
    fn a_search_near_a_known_number_needs_few_tries() {
        for limit in [0, 1, 2, 35, 36, 37, 1000, 1 << 20] {
            for known in [0u32, 1, 36, 1000, 5000] {
                let mut tries = 0;
                let found = bisect_near(known, |streams| {
                    tries += 1;
                    Ok::<bool, ()>(streams <= limit)
                });
                assert_eq!(found, Ok(limit));
                let apart = known.abs_diff(limit).max(1).ilog2();
                assert!(
                    tries <= 2 * apart + 4,
                    "{tries} to find {limit} from {known}"
                );
            }
        }
    }
}
