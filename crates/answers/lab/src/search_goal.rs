//! Ranks candidates by their largest sustained number of streams or load.

use crate::{
    FoundLoad, LabError, LoadSearch, LoadSearchResult, Recipe, Settled, most_load, most_streams,
};
use fullstroke_measure::{number, table};
use fullstroke_units::Duration;
use serde::Serialize;
use std::fmt;

/// Goal of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchGoal {
    /// Number of media streams that play without an underrun.
    Streams(LoadSearch),
    /// Load.
    Load {
        /// Largest 99th percentile of response times; `None` for no limit.
        p99_max: Option<Duration>,
        /// Largest number of requests that the search simulates for a candidate; `None` for loads
        /// of the length of the stack.
        budget: Option<u64>,
    },
}

/// Largest number of streams or largest load of one candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LargestLoad {
    /// Media streams.
    Streams(LoadSearchResult),
    /// A load.
    Load(FoundLoad),
}

/// Candidates ranked by the largest number of streams or the largest load, the largest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MostRanking {
    /// `streams` or `load`.
    pub by: &'static str,
    /// The best candidate and its lead; `null` for a single candidate.
    pub verdict: Option<String>,
    /// The candidates.
    pub candidates: Vec<LargestLoad>,
}

impl MostRanking {
    /// Searches for each candidate. `progress` is called with the index of the candidate and the
    /// number of simulated requests.
    ///
    /// # Errors
    /// Errors of the searches.
    pub fn new(
        recipes: &[Recipe],
        most: SearchGoal,
        progress: &(dyn Fn(usize, u64) + Sync),
    ) -> Result<MostRanking, LabError> {
        let find = |(index, recipe): (usize, &Recipe)| match most {
            SearchGoal::Streams(search) => {
                let found = most_streams(&recipe.file, &recipe.overrides, search, &|simulated| {
                    progress(index, simulated)
                })?;
                Ok(LargestLoad::Streams(LoadSearchResult {
                    name: recipe.label(),
                    ..found
                }))
            }
            SearchGoal::Load { p99_max, budget } => {
                most_load(recipe, p99_max, budget, &|simulated| {
                    progress(index, simulated)
                })
                .map(LargestLoad::Load)
            }
        };
        let mut candidates = recipes
            .iter()
            .enumerate()
            .map(find)
            .collect::<Result<Vec<_>, LabError>>()?;
        // A stable sort keeps the order of the recipes among equal values.
        candidates.sort_by(|one, other| other.value().total_cmp(&one.value()));
        let by = if matches!(most, SearchGoal::Streams(_)) {
            "streams"
        } else {
            "load"
        };
        let mut ranking = MostRanking {
            by,
            verdict: None,
            candidates,
        };
        ranking.verdict = ranking
            .in_words()
            .map(|verdict| ranking.with_settling(verdict));
        Ok(ranking)
    }

    /// Returns the verdict, with a sentence on the candidates whose loads are too short.
    fn with_settling(&self, verdict: String) -> String {
        let unsettled: Vec<&LargestLoad> = self
            .candidates
            .iter()
            .filter(|one| !one.settled().is_settled())
            .collect();
        match unsettled.first() {
            Some(first) => {
                let names: Vec<&str> = unsettled.iter().map(|one| one.name()).collect();
                format!(
                    "{verdict} Not settled: {}. {}",
                    names.join(", "),
                    first.settled()
                )
            }
            None => format!("{verdict} Settled: loads of half the length give the same."),
        }
    }

    fn in_words(&self) -> Option<String> {
        let [best, next, ..] = self.candidates.as_slice() else {
            return None;
        };
        let limit = best.limit();
        if best.value() == 0.0 {
            return Some(format!(
                "No candidate passes at any tried value by {}{limit}.",
                self.by
            ));
        }
        if best.value() <= next.value() || best.may_be_no_more_than(next) {
            return Some(format!(
                "{} and {} do not differ by {}{limit}.",
                best.name(),
                next.name(),
                self.by
            ));
        }
        let head = format!(
            "{} is best by {}{limit}: {}",
            best.name(),
            self.by,
            best.shown()
        );
        Some(match next.value() {
            0.0 => format!(
                "{head}; the next, {}, fails at every tried value.",
                next.name()
            ),
            least => format!(
                "{head} against {} of {}, the next ({:.1} % more).",
                next.shown(),
                next.name(),
                100.0 * (best.value() / least - 1.0)
            ),
        })
    }
}

impl LargestLoad {
    /// The candidate's name.
    pub fn name(&self) -> &str {
        match self {
            LargestLoad::Streams(found) => &found.name,
            LargestLoad::Load(found) => &found.name,
        }
    }

    /// Returns the number of streams or the load.
    pub fn value(&self) -> f64 {
        match self {
            LargestLoad::Streams(found) => f64::from(found.streams),
            LargestLoad::Load(found) => found.load,
        }
    }

    /// Returns the state of the answer.
    fn settled(&self) -> &Settled {
        match self {
            LargestLoad::Streams(found) => &found.settled,
            LargestLoad::Load(found) => &found.settled,
        }
    }

    fn p99_ms_max(&self) -> Option<f64> {
        match self {
            LargestLoad::Streams(_) => None,
            LargestLoad::Load(found) => found.p99_ms_max,
        }
    }

    /// Returns the limit of the response time as text, as in ` with a response_ms.p99 of at most 40
    /// ms`.
    fn limit(&self) -> String {
        match self {
            LargestLoad::Streams(_) => String::new(),
            LargestLoad::Load(found) => found.limit(),
        }
    }

    /// Returns true if the upper bound of `other` lies above the proven value of this candidate.
    fn may_be_no_more_than(&self, other: &LargestLoad) -> bool {
        match other {
            LargestLoad::Streams(_) => false,
            // The result at another length is as likely as the result.
            LargestLoad::Load(other) => {
                let half = other.load_at_half_length.unwrap_or(0.0);
                other
                    .too_much
                    .is_none_or(|too_much| self.least() < too_much.max(half))
            }
        }
    }

    /// Returns the smaller of the results at both lengths of the load.
    fn least(&self) -> f64 {
        match self {
            LargestLoad::Streams(_) => self.value(),
            LargestLoad::Load(found) => found
                .load_at_half_length
                .map_or(found.load, |half| half.min(found.load)),
        }
    }

    fn shown(&self) -> String {
        match self {
            LargestLoad::Streams(found) => found.streams.to_string(),
            LargestLoad::Load(found) => format!("{} times this load", number(found.load)),
        }
    }
}

impl fmt::Display for MostRanking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.candidates.iter().find_map(LargestLoad::p99_ms_max);
        let limit = most.map_or_else(String::new, |most| format!(", p99 ≤ {} ms", number(most)));
        let sustained = format!("{}{limit}", self.by);
        let mut table = table(
            ["", "candidate", &sustained, "too much", "IOPS", "p99 ms"],
            &[1],
        );
        for (place, largest) in self.candidates.iter().enumerate() {
            let [value, too_much, iops, p99_ms] = match largest {
                LargestLoad::Streams(found) => {
                    let failed = found
                        .tried
                        .iter()
                        .filter(|tried| tried.streams > found.streams);
                    let failed = failed.map(|tried| tried.streams).min();
                    let failed = failed.map_or_else(|| "-".to_owned(), |failed| failed.to_string());
                    [
                        found.streams.to_string(),
                        failed,
                        "-".to_owned(),
                        "-".to_owned(),
                    ]
                }
                LargestLoad::Load(found) => {
                    let failed = found.too_much.map_or_else(|| "-".to_owned(), number);
                    match found.load {
                        0.0 => [
                            "none tried".to_owned(),
                            failed,
                            "-".to_owned(),
                            "-".to_owned(),
                        ],
                        load => [
                            number(load),
                            failed,
                            number(found.iops),
                            number(found.p99_ms),
                        ],
                    }
                }
            };
            table.add_row([
                (place + 1).to_string(),
                largest.name().to_owned(),
                value,
                too_much,
                iops,
                p99_ms,
            ]);
        }
        write!(f, "{}", table.trim_fmt())?;
        match &self.verdict {
            Some(verdict) => write!(f, "\n\n{verdict}"),
            None => Ok(()),
        }
    }
}
