//! Work that takes hours of simulated time: a rebuild, and a scrub of a pool.

use crate::rebuild::{RebuildEffort, sample_rebuild};
use crate::scrub::{SCRUB_WINDOWS, SCRUB_WINDOWS_OF_MANY, sample_scrub};
use crate::{LabError, Recipe, RunResult};
use fullstroke_measure::{Metric, Stop};

/// Replaces the hours of a rebuild or scrub in `ran`, the only run of an answer, by hours from windows
/// all over the drives, with an interval.
///
/// # Errors
/// Errors of the stack or of a run.
pub fn sample_long_work(
    recipe: &Recipe,
    ran: &mut RunResult,
    jobs: usize,
    stop: &Stop,
) -> Result<(), LabError> {
    sample_rebuild(recipe, ran, jobs, RebuildEffort::SINGLE, stop)?;
    sample_scrub(recipe, ran, jobs, SCRUB_WINDOWS, stop)
}

/// Does the same for each run of a comparison. `recipes` has the recipe of each run in the same
/// order. The windows of a run are fewer than for a single run, because the runs are many. Scrubs are
/// sampled only if `wanted` has the metric `scrub.hours`: two dozen runs of a pool take a minute.
///
/// # Errors
/// Errors of a stack or of a run.
pub fn sample_long_work_of_each<'a>(
    recipes: impl IntoIterator<Item = &'a Recipe>,
    ran: &mut [RunResult],
    wanted: impl IntoIterator<Item = Metric>,
    jobs: usize,
    stop: &Stop,
) -> Result<(), LabError> {
    let scrubs = wanted.into_iter().any(|metric| metric.is_of_scrub());
    for (recipe, ran) in recipes.into_iter().zip(ran) {
        sample_rebuild(recipe, ran, jobs, RebuildEffort::OF_MANY, stop)?;
        if scrubs {
            sample_scrub(recipe, ran, jobs, SCRUB_WINDOWS_OF_MANY, stop)?;
        }
    }
    Ok(())
}
