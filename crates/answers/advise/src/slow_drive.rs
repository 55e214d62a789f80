//! Finalists with a slow drive.
//!
//! The fourth state beside healthy, degraded and rebuilding: one drive takes
//! [`slow_factor`](crate::Assumptions::slow_factor) times as long without failing. The runs have the
//! length of the last healthy runs, and follow once, after the answer is settled: one run a
//! finalist beside the three of each round, so that they add less than a third to the time of
//! `advise`.
//!
//! The outcome does not change the order of the finalists.

use crate::advise::Finals;
use crate::outcome::Condition as State;
use crate::{AdviceRequest, AdviseError, ArrayOutcome, Finalist, Wishes};
use fullstroke_lab::{Condition, LabError, Recipe, run_all};

/// Key of slow members in a volume.
const SLOW_KEY: &str = "slow";

impl AdviceRequest {
    /// Returns the condition of the runs with a slow drive.
    pub(crate) fn slow_condition(&self) -> Condition {
        Condition::Slow(self.assumptions.slow_factor)
    }

    /// Runs each finalist with a slow drive, and adds the outcomes.
    pub(crate) fn add_slow(
        &self,
        finals: &mut Finals,
        runs: &mut usize,
    ) -> Result<(), AdviseError> {
        let seeds = self.seeds();
        let (mut candidates, mut names) = (Vec::new(), Vec::new());
        for one in &finals.chosen {
            if let Some(recipe) = with_a_slow_drive(&one.recipe, self.slow_condition())? {
                for recipe in recipe.with_seeds(seeds)? {
                    candidates.push(recipe.candidate()?);
                }
                names.push(one.arrangement.name());
            }
        }
        let ran = run_all(&candidates, self.jobs, &|_| {})?;
        *runs += ran.len();
        for (name, ran) in names.iter().zip(ran.chunks(seeds)) {
            let finalist = finals.finalists.iter_mut().find(|one| one.name == *name);
            if let Some(finalist) = finalist {
                finalist.set_slow(&self.wishes, ArrayOutcome::new(ran));
            }
        }
        Ok(())
    }
}

impl Finalist {
    /// Sets the outcome with a slow drive, and the wishes that only the slow drive makes the array
    /// miss.
    pub(crate) fn set_slow(&mut self, wishes: &Wishes, outcome: ArrayOutcome) {
        let mut misses = outcome.misses(wishes, State::Slow);
        misses.retain(|miss| self.misses.iter().all(|other| other.wish != miss.wish));
        self.misses_with_a_slow_drive = misses;
        self.slow = Some(outcome);
    }
}

/// Returns the recipe with a slow drive. `None` if the volume has no redundancy, or if its layout
/// cannot have a slow drive (the disks of an `xor` array are one node).
pub(crate) fn with_a_slow_drive(
    recipe: &Recipe,
    condition: Condition,
) -> Result<Option<Recipe>, AdviseError> {
    let Some(slow) = recipe.in_condition(condition)? else {
        return Ok(None);
    };
    match slow.candidate() {
        Ok(_) => Ok(Some(slow)),
        Err(LabError::Stack(error)) if error.key.rsplit('.').next() == Some(SLOW_KEY) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(p99_ms: f64) -> ArrayOutcome {
        ArrayOutcome {
            p99_ms,
            carried_share: 1.0,
            complete: true,
            ..ArrayOutcome::default()
        }
    }

    #[test]
    fn only_wishes_that_the_healthy_array_meets_count_as_missed_by_the_slow_drive() {
        let wishes = Wishes {
            p99: Some(fullstroke_units::Duration::from_millis_f64(50.0)),
            ..Wishes::default()
        };
        let missed = |healthy_ms: f64| {
            let mut one = Finalist {
                misses: outcome(healthy_ms).misses(&wishes, State::Healthy),
                ..Finalist::default()
            };
            one.set_slow(&wishes, outcome(80.0));
            one.misses_with_a_slow_drive
        };
        let misses = missed(20.0);
        assert_eq!(misses.len(), 1);
        assert_eq!(misses[0].in_short(), "p99 (one slow)");
        assert!(misses[0].why.starts_with("with a slow drive"), "{misses:?}");
        assert!(missed(60.0).is_empty());
    }
}
