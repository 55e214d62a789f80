//! The order of finalists.

use crate::outcome::Condition;
use crate::{ArrayOutcome, Finalist, MissedWish, Wishes};
use fullstroke_lab::{Ranked, Ranking};
use fullstroke_units::order_by;
use std::cmp::Ordering;

/// Returns the wishes that are missed with all drives. Also returns the wishes that are met with
/// all drives, but missed with a failed drive or during a rebuild. An array that survives no
/// failure has a miss without a drive, unless the wish is 0 failures.
pub(crate) fn misses(
    wishes: &Wishes,
    healthy: &ArrayOutcome,
    [degraded, rebuilding]: [Option<&ArrayOutcome>; 2],
    survived: u32,
) -> (Vec<MissedWish>, Vec<MissedWish>) {
    let misses = healthy.misses(wishes, Condition::Healthy);
    let mut without: Vec<MissedWish> = Vec::new();
    for (outcome, state) in [
        (degraded, Condition::Degraded),
        (rebuilding, Condition::Rebuilding),
    ] {
        let own = outcome
            .iter()
            .flat_map(|outcome| outcome.misses(wishes, state));
        without.extend(own.filter(|miss| misses.iter().all(|other| other.wish != miss.wish)));
    }
    if survived == 0 && wishes.failures != Some(0) {
        without.push(MissedWish::lost());
    }
    (misses, without)
}

/// Distance of an array from the wishes with a failed drive and during a rebuild: loss of data,
/// number of missed wishes in either condition, and excess in both. Fields are compared in this
/// order, and less is better.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct FailedDistance {
    pub(crate) is_lost: bool,
    pub(crate) missed: usize,
    shortfall: f64,
}

impl FailedDistance {
    pub(crate) fn new(one: &Finalist, wishes: &Wishes) -> FailedDistance {
        let mut missed: Vec<&str> = one
            .misses_without_a_drive
            .iter()
            .map(|miss| miss.wish)
            .collect();
        // A wish that is missed with a failed drive and during the rebuild counts once. `dedup`
        // finds neighbours only.
        missed.sort_unstable();
        missed.dedup();
        let runs = [&one.degraded, &one.rebuilding].into_iter().flatten();
        let shortfall = if missed.is_empty() {
            0.0
        } else {
            runs.map(|run| run.shortfall(wishes)).sum()
        };
        let is_lost = one.misses_without_a_drive.contains(&MissedWish::lost());
        FailedDistance {
            is_lost,
            missed: missed.len(),
            shortfall,
        }
    }
}

/// Orders finalists by the number of wishes met with all drives. If all wishes are met, the smaller
/// distance without a drive comes first, then fewer drives, then no controller, then no cache. If
/// speed is wished, the smaller chance of data loss follows. If wishes are missed with all drives,
/// the smaller excess comes first. Remaining ties are ordered by the ranking.
pub(crate) fn order(finalists: &mut [Finalist], wishes: &Wishes, ranking: &Ranking) {
    let rank =
        |finalist: &Finalist| ranked(ranking, finalist).map_or(usize::MAX, |ranked| ranked.rank);
    // Fewer drives count only if the wishes are met.
    let cost = |one: &Finalist| {
        let (controller, cache) = (one.controller.0.is_some(), one.cache.0.is_some());
        (one.volume.drives, controller, cache)
    };
    order_by(finalists, |one, other| {
        let fewer = one.misses.len().cmp(&other.misses.len());
        let fine = || match one.misses.is_empty() {
            true => {
                let without = FailedDistance::new(one, wishes)
                    .partial_cmp(&FailedDistance::new(other, wishes));
                let safer = one.loss.chance_a_year.total_cmp(&other.loss.chance_a_year);
                let safer = if wishes.of_speed() {
                    safer
                } else {
                    Ordering::Equal
                };
                without
                    .unwrap_or(Ordering::Equal)
                    .then(cost(one).cmp(&cost(other)))
                    .then(safer)
            }
            false => one
                .healthy
                .shortfall(wishes)
                .total_cmp(&other.healthy.shortfall(wishes)),
        };
        fewer.then_with(fine).then(rank(one).cmp(&rank(other)))
    });
    for (index, finalist) in finalists.iter_mut().enumerate() {
        finalist.place = index + 1;
    }
}

/// Returns the run with all drives of a finalist in the ranking.
pub(crate) fn ranked<'a>(ranking: &'a Ranking, finalist: &Finalist) -> Option<&'a Ranked> {
    ranking
        .candidates
        .iter()
        .find(|ranked| ranked.name == finalist.name)
}
