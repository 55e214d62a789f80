//! What a search found, run once on the whole load: for pages, which show where the time of the best went, and that
//! of its nearest rivals.

use crate::output::Failure;
use fullstroke_lab::{Borne, Candidate, LabError, Ran, Recipe, Tuned, Varied, run_all};
use fullstroke_measure::Report;
use serde::Serialize;

/// The best, and so many in all: more than these are no longer near.
const RUN: usize = 3;

/// One of a search, on the whole load.
#[derive(Debug, Serialize)]
pub(crate) struct WholeLoad {
    name: String,
    varied: Varied,
    /// How many times faster than the stack says requests arrived.
    load: f64,
    report: Report,
}

/// What a search found, and the runs of its best.
#[derive(Debug, Serialize)]
pub(crate) struct Searched<'a, T> {
    #[serde(flatten)]
    found: &'a T,
    /// Those that bear most on the whole load, where a page is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_load: Option<Vec<WholeLoad>>,
    version: &'static str,
}

impl<'a, T> Searched<'a, T> {
    pub(crate) fn new(found: &'a T, whole_load: Option<Vec<WholeLoad>>) -> Searched<'a, T> {
        Searched {
            found,
            whole_load,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// The best that `tune` found, and what comes next.
pub(crate) fn of_tuned(
    tuned: &Tuned,
    recipe: &Recipe,
    jobs: usize,
) -> Result<Vec<WholeLoad>, Failure> {
    let each = tuned
        .candidates
        .iter()
        .take(RUN)
        .map(|one| -> Result<Candidate, LabError> {
            let mut recipe = recipe.clone();
            recipe.overrides.set.extend(one.varied.assignments());
            let mut candidate = recipe.candidate()?;
            candidate.varied = one.varied.clone();
            Ok(candidate)
        });
    on_the_whole_load(
        each.collect::<Result<_, _>>().map_err(Failure::input)?,
        jobs,
    )
}

/// Those that bear most, each at the most that it bears; none of those that bear nothing.
pub(crate) fn of_found(
    found: &[Borne],
    recipes: &[Recipe],
    jobs: usize,
) -> Result<Vec<WholeLoad>, Failure> {
    let borne = found.iter().filter(|one| one.value() > 0.0);
    let each = borne.filter_map(|one| {
        Some((
            one,
            recipes.iter().find(|recipe| recipe.label() == one.name())?,
        ))
    });
    let each = each
        .take(RUN)
        .map(|(one, recipe)| -> Result<Candidate, LabError> {
            let mut recipe = recipe.clone();
            if let Borne::Streams(found) = one {
                recipe
                    .overrides
                    .set
                    .push(format!("workload.streams={}", found.streams));
            }
            let mut candidate = recipe.candidate()?;
            if let Borne::Load(found) = one {
                candidate.load = found.load;
            }
            Ok(candidate)
        });
    on_the_whole_load(
        each.collect::<Result<_, _>>().map_err(Failure::input)?,
        jobs,
    )
}

fn on_the_whole_load(
    mut candidates: Vec<Candidate>,
    jobs: usize,
) -> Result<Vec<WholeLoad>, Failure> {
    candidates
        .iter_mut()
        .for_each(|candidate| candidate.timeline = true);
    let ran = run_all(&candidates, jobs, &|_| {}).map_err(Failure::input)?;
    let one = |(candidate, ran): (&Candidate, Ran)| WholeLoad {
        name: candidate.name.clone(),
        varied: candidate.varied.clone(),
        load: candidate.load,
        report: ran.measured.report,
    };
    Ok(candidates.iter().zip(ran).map(one).collect())
}
