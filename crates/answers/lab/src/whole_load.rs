//! Runs the best results of a search on the whole load. Pages show where the time of the best
//! candidate and of its nearest rivals went.

use crate::{ComparedStack, LabError, LargestLoad, Recipe, RunResult, Tuned, Varied, run_all};
use fullstroke_measure::Report;
use serde::Serialize;

/// Number of candidates for the run. Rivals of lower rank are no longer near.
const RUN: usize = 3;

/// A result of a search on the whole load.
#[derive(Clone, Debug, Serialize)]
pub struct WholeLoad {
    /// The stack's name.
    pub name: String,
    /// Values of the varied keys.
    pub varied: Varied,
    /// Factor by which requests arrived faster than in the stack file.
    pub load: f64,
    /// All measures.
    pub report: Report,
}

impl WholeLoad {
    /// Runs the best candidates of a race.
    ///
    /// # Errors
    /// Errors of a run.
    pub fn of_tuned(
        tuned: &Tuned,
        recipe: &Recipe,
        jobs: usize,
    ) -> Result<Vec<WholeLoad>, LabError> {
        let each =
            tuned
                .candidates
                .iter()
                .take(RUN)
                .map(|one| -> Result<ComparedStack, LabError> {
                    let mut recipe = recipe.clone();
                    recipe.overrides.set.extend(one.varied.assignments());
                    let mut candidate = recipe.candidate()?;
                    candidate.varied = one.varied.clone();
                    Ok(candidate)
                });
        on_the_whole_load(each.collect::<Result<_, _>>()?, jobs)
    }

    /// Runs the candidates with the largest loads or numbers of streams, each at its own limit. A
    /// candidate with the limit 0 is left out.
    ///
    /// # Errors
    /// Errors of a run.
    pub fn of_found(
        found: &[LargestLoad],
        recipes: &[Recipe],
        jobs: usize,
    ) -> Result<Vec<WholeLoad>, LabError> {
        let sustained = found.iter().filter(|one| one.value() > 0.0);
        let each = sustained.filter_map(|one| {
            Some((
                one,
                recipes.iter().find(|recipe| recipe.label() == one.name())?,
            ))
        });
        let each = each
            .take(RUN)
            .map(|(one, recipe)| -> Result<ComparedStack, LabError> {
                let mut recipe = recipe.clone();
                if let LargestLoad::Streams(found) = one {
                    recipe
                        .overrides
                        .set
                        .push(format!("workload.streams={}", found.streams));
                }
                let mut candidate = recipe.candidate()?;
                if let LargestLoad::Load(found) = one {
                    candidate.load = found.load;
                }
                Ok(candidate)
            });
        on_the_whole_load(each.collect::<Result<_, _>>()?, jobs)
    }
}

fn on_the_whole_load(
    mut candidates: Vec<ComparedStack>,
    jobs: usize,
) -> Result<Vec<WholeLoad>, LabError> {
    candidates
        .iter_mut()
        .for_each(|candidate| candidate.timeline = true);
    let ran = run_all(&candidates, jobs, &|_| {})?;
    let one = |(candidate, ran): (&ComparedStack, RunResult)| WholeLoad {
        name: candidate.name.clone(),
        varied: candidate.varied.clone(),
        load: candidate.load,
        report: ran.measured.report,
    };
    Ok(candidates.iter().zip(ran).map(one).collect())
}
