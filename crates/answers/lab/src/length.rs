//! Loads of another length, and the end of a search for a settled answer.

use crate::{LabError, Recipe};
use fullstroke_measure::factor_in_words;
use fullstroke_stack::Stack;
use serde::Serialize;
use std::fmt;

/// Default budget of requests for the extension of runs. A million requests take 5 to 20 s on one
/// core.
pub const DEFAULT_BUDGET: u64 = 1_000_000;

/// Why a search for a settled answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Settling {
    /// A longer run is not expected to change the answer.
    Settled,
    /// The budget of requests is spent.
    BudgetSpent,
    /// The load ends: a trace, a job file or a program.
    LoadEnds,
    /// The user chose the number of requests.
    LengthChosen,
}

/// State of an answer at the end of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settled {
    /// Reason of the end.
    pub settling: Settling,
    /// Number of requests of each run at the end.
    pub requests: u64,
    /// Number of requests that all extensions simulated.
    pub spent: u64,
    /// Budget of `spent`.
    pub budget: u64,
    /// Factor by which each run is still too short; 1 for a settled answer.
    pub too_short_by: f64,
}

impl Default for Settled {
    fn default() -> Settled {
        Settled {
            settling: Settling::Settled,
            requests: 0,
            spent: 0,
            budget: DEFAULT_BUDGET,
            too_short_by: 1.0,
        }
    }
}

impl Settled {
    /// Returns true if a longer run is not expected to change the answer.
    pub fn is_settled(&self) -> bool {
        self.settling == Settling::Settled
    }
}

impl fmt::Display for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.requests;
        let factor = factor_in_words(self.too_short_by);
        match self.settling {
            Settling::Settled => write!(
                f,
                "The answer is settled: runs of {requests} requests are long enough, and longer runs would hardly change the choice."
            ),
            Settling::BudgetSpent => write!(
                f,
                "The answer is not settled: the budget of {} requests is spent, and runs of {requests} requests are too short by a factor of about {factor}. A larger --budget extends the runs.",
                self.budget
            ),
            Settling::LoadEnds => write!(
                f,
                "The answer is not settled: the load ends after {requests} requests, too short by a factor of about {factor}. Capture a longer trace (fullstroke record), or describe the load by a [workload] with more requests."
            ),
            Settling::LengthChosen => write!(
                f,
                "The answer is not settled: --requests ends the load after {requests} requests, too short by a factor of about {factor}. Without --requests, or with --budget, runs are extended."
            ),
        }
    }
}

/// Returns a factor for the next extension: as much as is needed, at least 2 and at most 8, because
/// the estimate of the needed length is rough.
pub fn next_factor(too_short_by: f64) -> f64 {
    match too_short_by {
        factor if factor.is_finite() => factor.clamp(2.0, 8.0),
        _ => 8.0,
    }
}

impl Recipe {
    /// Returns the recipe with a load `factor` times as long. `None` if only the end of a trace, of
    /// a job file or of a program ends the load. A trace with `requests` ends no later than its
    /// file, whatever the factor.
    ///
    /// # Errors
    /// Errors of the stack.
    pub fn scaled(&self, factor: f64) -> Result<Option<Recipe>, LabError> {
        let stack = Stack::load(&self.file, &self.overrides)
            .map_err(|source| self.varied.refused(source))?;
        let lengths = stack.load_lengths();
        if lengths.is_empty() {
            return Ok(None);
        }
        let mut recipe = self.clone();
        let longer = lengths.iter().map(|length| length.scaled(factor));
        recipe.overrides.set.extend(longer);
        Ok(Some(recipe))
    }
}
