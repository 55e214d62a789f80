//! A race of many candidates over batches of requests that all of them see.
//!
//! Whoever is worse than the leader beyond chance drops out, so that most of the batches are
//! simulated for few. The race does no I/O: it says which batches of which candidates are due, is told
//! their values, and judges.
//!
//! - **Rungs.** All that run have seen the first `first` batches, then twice as many, and so on. Batch
//!   `i` is the same requests for all, so that differences are taken batch by batch.
//! - **Dropping.** A candidate drops out if the paired Student interval of its difference to the leader
//!   leaves zero out on the wrong side. The error that is allowed for the whole race is divided by the
//!   number of rungs and of rivals (Bonferroni): the best one drops out only if at some rung some rival looks
//!   better beyond its share, and these are all such events, whoever leads when. Holm's steps would be
//!   a little shorter, but hold for a leader that is known before.
//! - **The last rung.** The batches that are left are given where they decide most: in proportion to
//!   (deviation / difference)^2 of each difference to the leader, who sees as many as the one with the most.
//!   (Chen, Lin, Yücesan and Chick, "Simulation budget allocation for further enhancing the efficiency of
//!   ordinal optimization", Discrete Event Dynamic Systems 10, 2000, equation 12; theirs is for independent
//!   runs, here deviations are those of the paired differences, and with them the leader's own share goes.)
//! - **How sure.** The chance that another one is the best is at most the sum over all others of the chance that
//!   its difference has the other sign (their lower bound APCS-B, with Student's t). One whose value is the
//!   leader's in every batch, to the last digit, is equal to it, and no rival: it adds nothing to that sum.

use fullstroke_measure::{Difference, chance_below_zero, difference_over_seeds};
use std::ops::Range;

/// The least that the last rung gives a candidate a share by.
const NOISE_MIN: f64 = 1e-6;

/// How a race goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RaceRules {
    /// Batches that there are.
    pub batches: usize,
    /// Those of the first rung, at least two.
    pub first: usize,
    /// How sure it is that the best one does not drop out, 0 to 1.
    pub confidence: f64,
    /// Whether a larger value is the better one.
    pub more_is_better: bool,
    /// The most candidates that may join.
    pub candidates: usize,
}

/// A race under way.
#[derive(Clone, Debug)]
pub struct Race {
    rules: RaceRules,
    /// How many batches those that run see by the end of each rung.
    rungs: Vec<usize>,
    rung: usize,
    runners: Vec<Runner>,
    told: usize,
}

#[derive(Clone, Debug, Default)]
struct Runner {
    /// By batch, the less the better; not a number where nothing was measured.
    values: Vec<f64>,
    dropped: bool,
    /// What it sees in the last rung, if that is not all.
    share: Option<usize>,
}

/// Where a candidate stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Its number, in the order of joining.
    pub candidate: usize,
    /// Batches that it has seen.
    pub batches: usize,
    /// Whether it dropped out.
    pub dropped: bool,
    /// The mean of its values.
    pub value: f64,
    /// The same of the leader over the same batches.
    pub leader_value: f64,
    /// Its value less the leader's, with an interval that holds together with all others' at the race's
    /// confidence; `None` for the leader.
    pub difference: Option<Difference>,
    /// The chance that it is better than the leader all the same; none for one that is equal.
    pub chance_better: f64,
    /// Whether its value is the leader's in each batch that both have seen, two or more; not so for the leader.
    pub equal: bool,
}

impl Race {
    /// A race that nobody has joined yet.
    ///
    /// # Panics
    /// If the first rung has fewer than two batches, or more than there are.
    pub fn new(rules: RaceRules) -> Race {
        assert!(
            (2..=rules.batches).contains(&rules.first),
            "a first rung of {} batches",
            rules.first
        );
        let rungs = std::iter::successors(Some(rules.first), |&batches| Some(2 * batches));
        let mut rungs: Vec<usize> = rungs
            .take_while(|&batches| batches < rules.batches)
            .collect();
        rungs.push(rules.batches);
        assert!(
            rungs.is_sorted_by(|one, next| one < next),
            "each rung has more batches than the one before: {rungs:?}"
        );
        Race {
            rules,
            rungs,
            rung: 0,
            runners: Vec::new(),
            told: 0,
        }
    }

    /// One more joins; its number.
    pub fn join(&mut self) -> usize {
        self.runners.push(Runner::default());
        self.runners.len() - 1
    }

    /// Which batches of which candidates are to be told next. Whoever joined late sees as many as
    /// a rung has at a time, so that it may drop out before it has caught up.
    pub fn due(&self) -> Vec<(usize, Range<usize>)> {
        let running = self
            .runners
            .iter()
            .enumerate()
            .filter(|(_, runner)| !runner.dropped);
        let due = running.map(|(candidate, runner)| {
            let seen = runner.values.len();
            let next = self
                .rungs
                .iter()
                .copied()
                .find(|&rung| rung > seen)
                .unwrap_or(seen);
            (candidate, seen..next.min(self.target(runner)).max(seen))
        });
        due.filter(|(_, batches)| !batches.is_empty()).collect()
    }

    /// The values of a candidate in the batches after those that it has seen.
    pub fn tell(&mut self, candidate: usize, values: &[f64]) {
        let sign = if self.rules.more_is_better { -1.0 } else { 1.0 };
        self.told += values.len();
        self.runners[candidate]
            .values
            .extend(values.iter().map(|value| sign * value));
        let seen = self.runners[candidate].values.len();
        assert!(
            seen <= self.rules.batches,
            "candidate {candidate} was told {seen} batches of {}",
            self.rules.batches
        );
    }

    /// Those that are worse than the leader beyond chance drop out.
    pub fn judge(&mut self) {
        let Some(leader) = self.leader() else { return };
        let confidence = 1.0 - 2.0 * self.error_of_one();
        for candidate in 0..self.runners.len() {
            if candidate == leader || self.runners[candidate].dropped {
                continue;
            }
            let pairs = self.pairs(candidate, leader);
            let nothing = pairs.is_empty() && !self.runners[candidate].values.is_empty();
            let difference = difference_over_seeds(&pairs, confidence);
            // Without an interval, two or more differ by the same in every batch.
            let worse = pairs.len() > 1 && difference.value > difference.half_width.unwrap_or(0.0);
            self.runners[candidate].dropped = nothing || worse;
        }
    }

    /// Whether all that run have seen what this rung has for them.
    pub fn is_settled(&self) -> bool {
        self.due().is_empty()
    }

    /// Goes on to the next rung; `false` if the race is over, because one is left or all batches
    /// are used.
    pub fn advance(&mut self) -> bool {
        let left = self.runners.iter().filter(|runner| !runner.dropped).count();
        if left < 2 || self.rung + 1 == self.rungs.len() {
            return false;
        }
        self.rung += 1;
        if self.rung + 1 == self.rungs.len() {
            self.share_out();
        }
        true
    }

    /// Who has the best mean of those that have seen most.
    pub fn leader(&self) -> Option<usize> {
        let running = || {
            self.runners
                .iter()
                .enumerate()
                .filter(|(_, runner)| !runner.dropped)
        };
        let seen = running()
            .map(|(_, runner)| runner.values.len())
            .max()
            .filter(|&seen| seen > 0)?;
        let able = running().filter(|(_, runner)| runner.values.len() == seen);
        let means = able.map(|(candidate, runner)| (candidate, runner.mean()));
        means
            .filter(|(_, mean)| !mean.is_nan())
            .min_by(|one, other| one.1.total_cmp(&other.1))
            .map(|one| one.0)
    }

    /// Values that were told in all.
    pub fn told(&self) -> usize {
        self.told
    }

    /// Who still runs.
    pub fn running(&self) -> usize {
        self.runners.iter().filter(|runner| !runner.dropped).count()
    }

    /// All that have joined, the leader first, then by their difference to it.
    pub fn standings(&self) -> Vec<Standing> {
        let Some(leader) = self.leader() else {
            return Vec::new();
        };
        let mut standings: Vec<Standing> = (0..self.runners.len())
            .map(|candidate| self.standing(candidate, leader))
            .collect();
        let behind = |standing: &Standing| {
            let sign = if self.rules.more_is_better { -1.0 } else { 1.0 };
            standing
                .difference
                .map_or(f64::NEG_INFINITY, |difference| sign * difference.value)
        };
        let order = |standing: &Standing| (standing.dropped, behind(standing).is_nan());
        standings.sort_by(|one, other| {
            order(one)
                .cmp(&order(other))
                .then_with(|| behind(one).total_cmp(&behind(other)))
        });
        standings
    }

    /// The chance that the leader, with those that are equal to it, is the best of those that joined, at least.
    pub fn probability_correct(&self) -> f64 {
        let others: f64 = self
            .standings()
            .iter()
            .map(|standing| standing.chance_better)
            .sum();
        (1.0 - others).max(0.0)
    }

    fn standing(&self, candidate: usize, leader: usize) -> Standing {
        let sign = if self.rules.more_is_better { -1.0 } else { 1.0 };
        let runner = &self.runners[candidate];
        let pairs = self.pairs(candidate, leader);
        let rivals = self.runners.len().saturating_sub(1).max(1) as f64;
        let confidence = 1.0 - (1.0 - self.rules.confidence) / rivals;
        let signed: Vec<(f64, f64)> = pairs
            .iter()
            .map(|(one, other)| (sign * one, sign * other))
            .collect();
        let shared = self.runners[leader].values.iter().take(runner.values.len());
        let is_leader = candidate == leader;
        let equal = !is_leader && alike(&pairs);
        Standing {
            candidate,
            batches: runner.values.len(),
            dropped: runner.dropped,
            value: sign * runner.mean(),
            leader_value: sign * mean(shared),
            difference: (!is_leader).then(|| difference_over_seeds(&signed, confidence)),
            chance_better: if is_leader || equal {
                0.0
            } else {
                chance_below_zero(&pairs)
            },
            equal,
        }
    }

    fn target(&self, runner: &Runner) -> usize {
        runner.share.unwrap_or(self.rungs[self.rung])
    }

    /// The batches that both have seen and in which both measured something.
    fn pairs(&self, candidate: usize, leader: usize) -> Vec<(f64, f64)> {
        let values = |runner: usize| self.runners[runner].values.iter().copied();
        values(candidate)
            .zip(values(leader))
            .filter(|(one, other)| !one.is_nan() && !other.is_nan())
            .collect()
    }

    /// The error that is allowed for one rival at one rung. The last rung is looked at with as many
    /// batches as each has, which is one look more.
    fn error_of_one(&self) -> f64 {
        let rivals = self
            .rules
            .candidates
            .max(self.runners.len())
            .saturating_sub(1)
            .max(1);
        (1.0 - self.rules.confidence) / ((self.rungs.len() + 1) * rivals) as f64
    }

    /// Half of the batches that all who run would still see, given where they decide most.
    fn share_out(&mut self) {
        let Some(leader) = self.leader() else { return };
        let seen = self.runners[leader].values.len();
        let others: Vec<(usize, f64)> = (0..self.runners.len())
            .filter(|&candidate| candidate != leader && !self.runners[candidate].dropped)
            .map(|candidate| (candidate, noise_to_signal(&self.pairs(candidate, leader))))
            .collect();
        let whole: f64 = others.iter().map(|(_, share)| share).sum();
        assert!(
            seen <= self.rules.batches,
            "the leader has seen {seen} batches of {}",
            self.rules.batches
        );
        let more = self.rules.batches - seen;
        let budget = (others.len() + 1) as f64 * more as f64 / 2.0;
        let mut most = seen;
        for (candidate, share) in others {
            let own = (budget * share / whole).round().min(more as f64) as usize;
            // The neediest one is not held back by rounding.
            let share = seen + own.max(1).min(more);
            self.runners[candidate].share = Some(share);
            most = most.max(share);
        }
        self.runners[leader].share = Some(most);
    }
}

impl Runner {
    fn mean(&self) -> f64 {
        mean(self.values.iter())
    }
}

/// Over what was measured; not a number where nothing was.
fn mean<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    let (sum, count) = values
        .filter(|value| !value.is_nan())
        .fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count)
}

/// Whether two have the same value in every batch, and in no fewer than two.
fn alike(pairs: &[(f64, f64)]) -> bool {
    pairs.len() >= 2 && pairs.iter().all(|(one, other)| one == other)
}

/// The squared deviation of differences over their squared mean; bounded, where they have none.
fn noise_to_signal(pairs: &[(f64, f64)]) -> f64 {
    // Nothing is to be found out about those that are equal.
    if alike(pairs) {
        return NOISE_MIN;
    }
    let differences: Vec<f64> = pairs.iter().map(|(one, other)| one - other).collect();
    let count = differences.len().max(2) as f64;
    let mean = mean(differences.iter());
    let variance = differences
        .iter()
        .map(|difference| (difference - mean).powi(2))
        .sum::<f64>()
        / (count - 1.0);
    // A difference within its own error could be anything up to that.
    (variance / (mean * mean).max(variance / count)).clamp(NOISE_MIN, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{Noisy, unordered};

    fn rules(candidates: usize, batches: usize) -> RaceRules {
        RaceRules {
            batches,
            first: 8,
            confidence: 0.95,
            more_is_better: false,
            candidates,
        }
    }

    fn run(noisy: &Noisy, rules: RaceRules) -> Race {
        let mut race = Race::new(rules);
        (0..rules.candidates).for_each(|_| _ = race.join());
        loop {
            for (candidate, batches) in race.due() {
                race.tell(candidate, &noisy.values(candidate, batches));
            }
            race.judge();
            if race.is_settled() && !race.advance() {
                return race;
            }
        }
    }

    #[test]
    fn of_two_hundred_the_best_is_selected_at_a_fraction_of_the_cost() {
        let (seeds, batches) = (40, 128);
        let (mut right, mut told) = (0, 0);
        for seed in 0..seeds {
            let noisy = unordered(seed);
            let race = run(&noisy, rules(200, batches));
            right += u64::from(race.leader() == Some(noisy.best()));
            told += race.told();
        }
        let share = told as f64 / (seeds as usize * 200 * batches) as f64;
        println!(
            "{right} of {seeds} right at {:.1} % of the exhaustive cost",
            100.0 * share
        );
        assert!(right * 100 >= 95 * seeds, "{right} of {seeds}");
        assert!(share <= 0.15, "{share}");
    }

    #[test]
    fn the_best_rarely_drops_out_though_all_are_alike() {
        // None is worse, so that each is a best one: how often a given one drops out.
        let dropped = (0..60)
            .filter(|&seed| {
                let race = run(&Noisy::new(vec![5.0; 12], 64, 1.0, seed), rules(12, 64));
                race.runners[0].dropped
            })
            .count();
        assert!(dropped <= 3, "{dropped} of 60");
    }

    #[test]
    fn those_that_are_alike_are_not_told_apart_and_the_rest_is() {
        let race = run(
            &Noisy::new(vec![5.0, 5.0, 9.0, 12.0], 64, 0.5, 3),
            rules(4, 64),
        );
        let standings = race.standings();
        let known: Vec<bool> = standings.iter().map(|standing| standing.dropped).collect();
        assert_eq!(known, [false, false, true, true]);
        assert_eq!((standings[2].candidate, standings[3].candidate), (2, 3));
        let sure = race.probability_correct();
        assert!((0.4..0.999).contains(&sure), "{sure}");
        assert!(standings[2].batches < 64, "it was seen at once");
    }

    #[test]
    fn the_last_rung_is_given_to_those_that_are_near() {
        let mut race = Race::new(rules(3, 64));
        (0..3).for_each(|_| _ = race.join());
        let noisy = Noisy::new(vec![5.0, 5.2, 8.0], 64, 1.5, 7);
        while race.running() == 3 && race.rung + 2 < race.rungs.len() {
            for (candidate, batches) in race.due() {
                race.tell(candidate, &noisy.values(candidate, batches));
            }
            race.advance();
        }
        race.advance();
        let share = |candidate: usize| race.runners[candidate].share.unwrap();
        let leader = race.leader().unwrap();
        let near = 1 - leader;
        assert!(share(near) > share(2), "{} and {}", share(near), share(2));
        assert!(share(leader) >= share(near) && share(leader) <= 64);
    }

    #[test]
    fn one_that_is_equal_to_the_leader_is_named_so_and_is_no_rival() {
        let mut race = Race::new(rules(4, 64));
        (0..4).for_each(|_| _ = race.join());
        // The first two are one and the same.
        let noisy = Noisy::new(vec![5.0, 5.0, 5.2, 9.0], 64, 1.0, 5);
        loop {
            for (candidate, batches) in race.due() {
                let as_whom = if candidate == 1 { 0 } else { candidate };
                race.tell(candidate, &noisy.values(as_whom, batches));
            }
            race.judge();
            if race.is_settled() && !race.advance() {
                break;
            }
        }
        let standings = race.standings();
        let equal: Vec<(usize, bool)> = standings
            .iter()
            .map(|standing| (standing.candidate, standing.equal))
            .collect();
        assert_eq!(equal[..2], [(0, false), (1, true)]);
        assert!(equal[2..].iter().all(|(_, equal)| !equal) && !standings[1].dropped);
        let others: f64 = standings[2..]
            .iter()
            .map(|standing| standing.chance_better)
            .sum();
        assert!((race.probability_correct() - (1.0 - others)).abs() < 1e-12 && others < 0.5);
        // What is left goes to the one that is near, not to the one that is equal.
        let share = |candidate: usize| race.runners[candidate].share;
        assert!(
            share(2) > share(1) || race.runners[2].dropped,
            "{:?} and {:?}",
            share(2),
            share(1)
        );
    }

    #[test]
    fn more_may_be_better_and_what_measures_nothing_drops_out() {
        let mut race = Race::new(RaceRules {
            more_is_better: true,
            ..rules(3, 8)
        });
        (0..3).for_each(|_| _ = race.join());
        race.tell(0, &[1.0, 1.1, 0.9, 1.0, 1.2, 1.0, 0.8, 1.0]);
        race.tell(1, &[5.0, 5.1, 4.9, 5.0, 5.3, 5.0, 4.8, 5.0]);
        race.tell(2, &[f64::NAN; 8]);
        race.judge();
        let standings = race.standings();
        assert_eq!(
            (race.leader(), race.running(), standings[0].value),
            (Some(1), 1, 5.0125)
        );
        assert!(standings[1].difference.unwrap().value < -3.9);
        assert!(!race.advance());
    }

    #[test]
    fn who_joins_late_catches_up_rung_by_rung() {
        let mut race = Race::new(rules(3, 32));
        (0..2).for_each(|_| _ = race.join());
        let noisy = Noisy::new(vec![5.0, 5.1, 9.0], 32, 1.0, 1);
        for _ in 0..2 {
            for (candidate, batches) in race.due() {
                race.tell(candidate, &noisy.values(candidate, batches));
            }
            race.advance();
        }
        race.join();
        assert_eq!(race.due().last(), Some(&(2, 0..8)));
        race.tell(2, &noisy.values(2, 0..8));
        race.judge();
        assert!(
            race.standings()[2].dropped && race.due().iter().all(|(candidate, _)| *candidate != 2)
        );
    }
}
