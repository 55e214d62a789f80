//! The choice of chunks, elevators and caches of an arrangement.
//!
//! The settings race on parts of the load. The race ends when few settings are left, because these
//! run on the whole load anyway; a race on further parts would cost as much as the runs it saves.

use crate::advise::Chosen;
use crate::layouts::{Arrangement, has_parity};
use crate::outcome::Condition as State;
use crate::{AdviceRequest, AdviseError, ArrayOutcome};
use fullstroke_lab::{KeptRuns, Ranking, RunResult, SearchEnd, TuneSearch, TunedCandidate, Vary};
use fullstroke_measure::Metric;

/// Number of parts of the load in a race.
const PARTS: usize = 16;
/// Number of parts that all candidates see, and largest number of parts that a candidate sees.
const FIRST_PARTS: usize = 4;
const PARTS_SEEN: usize = 8;
/// Probability that the best candidate does not drop out of a race.
const CONFIDENCE: f64 = 0.95;
/// Largest number of settings that run on the whole load. A race leaves settings that it cannot
/// tell apart, and the first of these on the parts are as good a choice as all of them.
const WHOLE_MAX: usize = 3;

impl AdviceRequest {
    /// Returns the best chunk, elevator and caches of an arrangement, and the number of runs.
    pub(crate) fn choose(
        &self,
        arrangement: &Arrangement,
        by: Metric,
    ) -> Result<(Chosen, usize), AdviseError> {
        let keys = self.values(&arrangement.layout);
        let set_by_user = |key: &str| {
            let own =
                |assignment: &&String| assignment.split('=').next().map(str::trim) == Some(key);
            self.overrides.set.iter().rfind(own)
        };
        // Layouts without parity refuse the key.
        let fits = |key: &str| key != "volume.stripe_cache" || has_parity(&arrangement.layout);
        let set: Vec<String> = keys
            .iter()
            .filter(|(key, _)| fits(key))
            .filter_map(|(key, _)| set_by_user(key).map(|own| own.replace('"', "")))
            .collect();
        let mut varied = Vec::new();
        for (key, values) in keys
            .iter()
            .filter(|(key, values)| set_by_user(key).is_none() && !values.is_empty())
        {
            varied.push(format!("{key}={}", values.join(",")).parse::<Vary>()?);
        }
        let search = TuneSearch {
            by,
            sample: usize::MAX,
            batches: PARTS,
            first: FIRST_PARTS,
            confidence: CONFIDENCE,
            jobs: self.jobs,
            end: SearchEnd {
                parts: PARTS_SEEN,
                left: WHOLE_MAX,
            },
        };
        // Runs with a timeline are others than those of the race.
        let mut kept = KeptRuns::of_seeds(if self.timeline { 0 } else { self.seeds() });
        let tuned = search.run_keeping(&arrangement.recipe, &varied, &mut kept)?;
        // Settings equal to the best need no run of their own.
        let may_be_best = |one: &&TunedCandidate| one.may_be_best && !one.equal_to_best;
        let alike = tuned.candidates.iter().skip(1).filter(may_be_best).count();
        let mut able: Vec<Chosen> = Vec::new();
        for one in to_run(&tuned.candidates) {
            let settings = one.varied.assignments();
            let mut recipe = arrangement.recipe.clone();
            recipe.overrides.set.extend(settings.iter().cloned());
            let settings = set.iter().cloned().chain(settings).collect();
            able.push(Chosen {
                arrangement: arrangement.clone(),
                settings,
                recipe,
                settings_alike: alike,
                healthy: None,
            });
        }
        assert!(
            !able.is_empty(),
            "the first of a search may be the best of {}",
            tuned.candidates.len()
        );
        let (best, made) = self.best_on_all(&able, by, &mut kept)?;
        Ok((best, tuned.runs + made))
    }

    /// Runs several settings on the whole load, without the runs that the race has kept. Returns
    /// the setting nearest to the wishes, or the best by the metric, with its runs, and the number
    /// of further runs. A mean over parts differs from the value on the whole load: the tail of a
    /// short part is its longest request.
    fn best_on_all(
        &self,
        able: &[Chosen],
        by: Metric,
        kept: &mut KeptRuns,
    ) -> Result<(Chosen, usize), AdviseError> {
        let seeds = self.seeds();
        let name = |one: &Chosen| one.settings.join(" ");
        let (mut recipes, mut known) = (Vec::new(), Vec::new());
        for one in able {
            for mut recipe in one.recipe.with_seeds(seeds)? {
                known.push(kept.take(&recipe.candidate()?.stack));
                recipe.name = name(one);
                recipes.push(recipe);
            }
        }
        if let [only] = able
            && known.iter().any(Option::is_none)
        {
            return Ok((only.clone(), 0));
        }
        let (mut ran, made) = self.runs_of(&recipes, known)?;
        let ranking = Ranking::of_seeds(&ran, seeds, by);
        let rank = |one: &Chosen| {
            let name = name(one);
            ranking
                .candidates
                .iter()
                .position(|ranked| ranked.name == name)
        };
        let far = |index: usize| {
            let outcome = ArrayOutcome::new(&ran[index * seeds..(index + 1) * seeds]);
            (
                outcome.misses(&self.wishes, State::Healthy).len(),
                outcome.shortfall(&self.wishes),
            )
        };
        // First the number of missed wishes, then their distance, then the rank of the race: of two
        // equal misses the faster one.
        let nearest = (0..able.len()).min_by(|&one, &other| {
            let (fewer, nearer) = (
                far(one).0.cmp(&far(other).0),
                far(one).1.total_cmp(&far(other).1),
            );
            fewer
                .then(nearer)
                .then(rank(&able[one]).cmp(&rank(&able[other])))
        });
        let nearest = nearest.unwrap_or(0);
        let mut best = able[nearest].clone();
        let mut healthy: Vec<RunResult> =
            ran.drain(nearest * seeds..(nearest + 1) * seeds).collect();
        for run in &mut healthy {
            run.measured.report.name.clone_from(&best.recipe.name);
        }
        best.healthy = Some(healthy);
        Ok((best, made))
    }
}

/// Returns the settings that run on the whole load: the first settings of the race, without those
/// whose runs would be equal to the run of a setting before. Two settings with the same mean over
/// the same parts, to the bit, are equal.
fn to_run(candidates: &[TunedCandidate]) -> Vec<&TunedCandidate> {
    let mut able: Vec<&TunedCandidate> = Vec::new();
    for one in candidates {
        let is_equal = able
            .iter()
            .any(|other| (one.value, one.batches) == (other.value, other.batches));
        let may_be_best = one.rank == 1 || one.may_be_best && !one.equal_to_best;
        if may_be_best && !is_equal && able.len() < WHOLE_MAX {
            able.push(one);
        }
    }
    able
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts::arrangements;
    use crate::layouts::tests::request;
    use serde_json::Value;

    fn candidate(rank: usize, value: f64, may_be_best: bool) -> TunedCandidate {
        TunedCandidate {
            rank,
            value,
            may_be_best,
            batches: 4,
            ..TunedCandidate::default()
        }
    }

    #[test]
    fn of_settings_that_are_alike_the_first_ones_run_on_the_whole_load_and_equals_run_once() {
        let candidates = [
            candidate(1, 1.0, true),
            candidate(2, 1.1, true),
            candidate(3, 1.1, true),
            candidate(4, 1.2, false),
            candidate(5, 1.3, true),
            candidate(6, 1.4, true),
        ];
        let ranks: Vec<usize> = to_run(&candidates).iter().map(|one| one.rank).collect();
        assert_eq!(ranks, [1, 2, 5]);
    }

    #[test]
    fn runs_of_the_race_serve_as_runs_of_the_whole_load_and_are_equal_to_them() {
        let mut request = request(&["raid5"], 4, &["workload.requests=200"]);
        request.choices.chunks.truncate(2);
        request.choices.elevators.truncate(1);
        request.choices.stripe_caches.truncate(1);
        let arrangement = &arrangements(&request).unwrap().0[0];
        let (with, few) = request.choose(arrangement, Metric::RESPONSE_MEAN).unwrap();
        // A run with a timeline is no run of the race.
        request.timeline = true;
        let (without, more) = request.choose(arrangement, Metric::RESPONSE_MEAN).unwrap();
        assert!(few < more, "{few} runs, and {more} without kept runs");
        assert_eq!(with.settings, without.settings);
        let report = |chosen: &Chosen| -> Value {
            let report = &chosen.healthy.as_ref().unwrap()[0].measured.report;
            let mut report = serde_json::to_value(report).unwrap();
            // Only runs on the whole load keep the power over time.
            for key in ["wall_s", "requests_per_wall_s", "timeline", "watts"] {
                report.as_object_mut().unwrap().remove(key);
            }
            report
        };
        assert_eq!(report(&with), report(&without));
        assert_eq!(report(&with)["name"], "raid5 of 4");
    }
}
