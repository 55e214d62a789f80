//! The answer at multiples of the load.

use crate::advise::Chosen;
use crate::changes::AtLoad;
use crate::order::order;
use crate::outcome::Condition;
use crate::{AdviceRequest, AdviseError, ArrayOutcome, Finalist, Wishes};
use fullstroke_lab::{ComparedStack, Ranking, RunResult, run_all};
use fullstroke_units::order_by_key;

/// Further multiples of the load for the answer.
const LOADS: [f64; 2] = [1.5, 2.0];

impl AdviceRequest {
    /// Returns the recommended finalist at multiples of the load, with all drives. The recommended
    /// finalist stays the answer while it meets every wish, so that the others run only if it
    /// misses a wish. Empty if requests wait for completions, because such a load cannot be hurried.
    pub(crate) fn at_loads(
        &self,
        chosen: &[Chosen],
        finalists: &[Finalist],
        runs: &mut usize,
    ) -> Result<Vec<AtLoad>, AdviseError> {
        let mut at_loads = Vec::new();
        let Some(first) = finalists.first() else {
            return Ok(at_loads);
        };
        let (own, others): (Vec<&Chosen>, Vec<&Chosen>) = chosen
            .iter()
            .partition(|one| one.arrangement.name() == first.name);
        for load in LOADS {
            let wishes = Wishes {
                streams: self.wishes.streams.map(|count| more_of(count, load)),
                ..self.wishes
            };
            let Some(candidates) = self.hurried(&own, load, &wishes)? else {
                return Ok(at_loads);
            };
            let mut ran = run_all(&candidates, self.jobs, &|_| {})?;
            let mut there = self.finalists_there(&own, &ran, finalists, &wishes);
            if there.iter().any(|one| !one.misses.is_empty()) {
                let Some(candidates) = self.hurried(&others, load, &wishes)? else {
                    return Ok(at_loads);
                };
                let more = run_all(&candidates, self.jobs, &|_| {})?;
                there.extend(self.finalists_there(&others, &more, finalists, &wishes));
                ran.extend(more);
                // Ties fall in the order of the arrangements, as at the load itself.
                let place =
                    |name: &str| chosen.iter().position(|one| one.arrangement.name() == name);
                order_by_key(&mut there, |one| place(&one.name));
                order_by_key(&mut ran, |one| place(&one.measured.report.name));
            }
            *runs += ran.len();
            let ranking = Ranking::of_seeds(&ran, self.seeds(), self.metric());
            order(&mut there, &wishes, &ranking);
            at_loads.extend(AtLoad::new(load, &wishes, &there, finalists));
        }
        Ok(at_loads)
    }

    /// Returns the candidates at a multiple of the load, one for each seed of each chosen layout.
    /// `None` if requests wait for completions.
    fn hurried(
        &self,
        chosen: &[&Chosen],
        load: f64,
        wishes: &Wishes,
    ) -> Result<Option<Vec<ComparedStack>>, AdviseError> {
        let mut candidates = Vec::new();
        for one in chosen {
            let mut recipe = one.recipe.clone();
            recipe.overrides.set.extend(
                wishes
                    .streams
                    .map(|count| format!("workload.streams={count}")),
            );
            for recipe in recipe.with_seeds(self.seeds())? {
                let mut candidate = recipe.candidate()?;
                if wishes.streams.is_none() {
                    if !candidate.can_be_hurried()? {
                        return Ok(None);
                    }
                    candidate.load = load;
                }
                candidates.push(candidate);
            }
        }
        Ok(Some(candidates))
    }

    /// Returns the finalists with the outcomes of their runs at a multiple of the load.
    fn finalists_there(
        &self,
        chosen: &[&Chosen],
        ran: &[RunResult],
        finalists: &[Finalist],
        wishes: &Wishes,
    ) -> Vec<Finalist> {
        let mut there = Vec::new();
        for (one, own) in chosen.iter().zip(ran.chunks(self.seeds())) {
            let name = one.arrangement.name();
            let Some(finalist) = finalists.iter().find(|finalist| finalist.name == name) else {
                continue;
            };
            let healthy = ArrayOutcome::new(own);
            let misses = healthy.misses(wishes, Condition::Healthy);
            there.push(Finalist {
                healthy,
                degraded: None,
                rebuilding: None,
                slow: None,
                misses,
                misses_without_a_drive: Vec::new(),
                misses_with_a_slow_drive: Vec::new(),
                doubts: Vec::new(),
                ..finalist.clone()
            });
        }
        there
    }
}

/// Returns `count` times `load`, rounded up.
fn more_of(count: u32, load: f64) -> u32 {
    (f64::from(count) * load).ceil() as u32
}

#[cfg(test)]
mod tests {
    use crate::layouts::arrangements;
    use crate::layouts::tests::request;
    use fullstroke_units::Duration;

    #[test]
    fn other_arrangements_run_at_more_load_only_if_the_recommended_one_misses_a_wish() {
        let load = "workload.arrivals={process='poisson',rate_per_s=20}";
        // RAID 0 has no rebuild, so that the test is short.
        let mut request = request(&["raid0"], 4, &["workload.requests=200", load]);
        request.counts.push(5);
        request.choices.chunks.truncate(1);
        request.choices.elevators.truncate(1);
        request.choices.write_caches.truncate(1);
        let mut chosen = Vec::new();
        for arrangement in arrangements(&request).unwrap().0 {
            let (found, _) = request.choose(&arrangement, request.metric()).unwrap();
            chosen.push(found);
        }
        let (mut runs, mut rebuilds) = (0, Vec::new());
        let (finalists, ..) = request
            .finals(&mut chosen, &mut runs, &mut rebuilds)
            .unwrap();
        for (millis, expected) in [(60_000, 2), (1, 4)] {
            request.wishes.p99 = Some(Duration::from_millis(millis));
            let mut runs = 0;
            let answers = request.at_loads(&chosen, &finalists, &mut runs).unwrap();
            assert_eq!((runs, answers.len()), (expected, 2), "{millis} ms");
            assert_eq!(answers[0].meets, expected == 2, "{millis} ms");
        }
    }
}
