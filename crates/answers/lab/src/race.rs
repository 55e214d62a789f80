//! A race of many candidates over batches of requests that are the same for all candidates.
//!
//! A candidate that is worse than the leader beyond chance drops out, so most batches are simulated
//! for few candidates. The race does no I/O. The race names the batches and candidates that are
//! due, receives their values, and judges.
//!
//! - **Rungs.** All running candidates see the first `first` batches, then twice as many, and so
//!   on. Batch `i` holds the same requests for all, so differences are taken batch by batch.
//! - **Dropping.** A candidate drops out if the paired Student interval of its difference to the
//!   leader lies on the worse side of zero. The error of the whole race is divided by the number of
//!   rungs and of rivals (Bonferroni). The best candidate drops out only if at some rung some rival
//!   looks better by more than its share of the error. The sum covers all such events, for every
//!   order of leaders. Holm's steps would be a little shorter, but Holm's procedure needs a leader
//!   that is known in advance.
//! - **The last rung.** The remaining batches are given to the candidates where they decide most,
//!   in proportion to (deviation / difference)^2 of each difference to the leader. The leader sees
//!   as many as the candidate with the most. (Chen, Lin, Yücesan and Chick, "Simulation budget
//!   allocation for further enhancing the efficiency of ordinal optimization", Discrete Event
//!   Dynamic Systems 10, 2000, equation 12. The paper assumes independent runs. Here deviations are
//!   those of the paired differences, so the leader needs no share of its own.)
//! - **Confidence.** The chance that another candidate is the best is at most a sum over all
//!   others: the chance that the difference has the other sign (the paper's lower bound APCS-B,
//!   with Student's t). A candidate with exactly the leader's value in every batch is equal to the
//!   leader, not a rival, and adds nothing to the sum.

use fullstroke_measure::{Difference, chance_below_zero, difference_over_seeds};
use fullstroke_units::order_by;
use std::ops::Range;

/// Least weight of a candidate in the last rung.
const NOISE_MIN: f64 = 1e-6;

/// Rules of a race.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RaceRules {
    /// Number of batches.
    pub batches: usize,
    /// Number of batches of the first rung, at least two.
    pub first: usize,
    /// Probability that the best candidate does not drop out, 0 to 1.
    pub confidence: f64,
    /// True if a larger value is better.
    pub more_is_better: bool,
    /// Largest number of candidates.
    pub candidates: usize,
}

/// A race under way.
#[derive(Clone, Debug)]
pub struct Race {
    rules: RaceRules,
    /// Number of batches of a running candidate at the end of each rung.
    rungs: Vec<usize>,
    rung: usize,
    runners: Vec<Runner>,
    told: usize,
}

#[derive(Clone, Debug, Default)]
struct Runner {
    /// Values by batch; a smaller value is better. NaN if nothing was measured.
    values: Vec<f64>,
    dropped: bool,
    /// Number of batches at the end of the last rung; `None` means all.
    share: Option<usize>,
}

/// Result of a candidate so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CandidateResult {
    /// Index of the candidate, in the order of joining.
    pub candidate: usize,
    /// Number of batches of the candidate so far.
    pub batches: usize,
    /// True if the candidate dropped out.
    pub dropped: bool,
    /// Mean of the candidate's values.
    pub value: f64,
    /// Mean of the leader's values over the same batches.
    pub leader_value: f64,
    /// The candidate's value less the leader's. All intervals hold together at the race's
    /// confidence. `None` for the leader.
    pub difference: Option<Difference>,
    /// Chance that the candidate is better than the leader in spite of the measured values; 0 for
    /// an equal candidate.
    pub chance_better: f64,
    /// True if the candidate's value equals the leader's in each batch that both have seen, two or
    /// more. False for the leader.
    pub equal: bool,
}

impl Race {
    /// Creates a race without candidates.
    ///
    /// # Panics
    /// If the first rung has fewer than two batches, or more batches than there are.
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

    /// Adds a candidate and returns its index.
    pub fn join(&mut self) -> usize {
        self.runners.push(Runner::default());
        self.runners.len() - 1
    }

    /// Returns the batches of each candidate that are due next. A candidate that joined late sees
    /// the batches of one rung at a time, so that it may drop out before it has caught up.
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

    /// Adds a candidate's values in its next batches.
    pub fn add_values(&mut self, candidate: usize, values: &[f64]) {
        // With the sign, smaller is better for every metric.
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

    /// Drops candidates that are worse than the leader beyond chance.
    pub fn judge(&mut self) {
        let Some(leader) = self.leader() else { return };
        // A candidate drops out on one side of the interval only, so the two-sided interval may
        // have twice the error.
        let confidence = 1.0 - 2.0 * self.error_of_one();
        for candidate in 0..self.runners.len() {
            if candidate == leader || self.runners[candidate].dropped {
                continue;
            }
            let pairs = self.pairs(candidate, leader);
            let nothing = pairs.is_empty() && !self.runners[candidate].values.is_empty();
            let difference = difference_over_seeds(&pairs, confidence);
            // Two or more pairs without an interval differ by the same amount in every batch.
            let worse = pairs.len() > 1 && difference.value > difference.half_width.unwrap_or(0.0);
            self.runners[candidate].dropped = nothing || worse;
        }
    }

    /// Returns true if all running candidates have seen the batches of this rung.
    pub fn is_settled(&self) -> bool {
        self.due().is_empty()
    }

    /// Advances to the next rung. Returns `false` if the race is over, because one candidate is
    /// left or all batches are used.
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

    /// Returns the candidate with the best mean among the candidates with most batches.
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
            // A candidate without a measured value cannot lead.
            .filter(|(_, mean)| !mean.is_nan())
            .min_by(|one, other| one.1.total_cmp(&other.1))
            .map(|one| one.0)
    }

    /// Returns the number of values of all candidates so far.
    pub fn value_count(&self) -> usize {
        self.told
    }

    /// Returns the number of running candidates.
    pub fn running(&self) -> usize {
        self.runners.iter().filter(|runner| !runner.dropped).count()
    }

    /// Returns all candidates, the leader first, then by their difference to the leader.
    pub fn standings(&self) -> Vec<CandidateResult> {
        let Some(leader) = self.leader() else {
            return Vec::new();
        };
        let mut standings: Vec<CandidateResult> = (0..self.runners.len())
            .map(|candidate| self.standing(candidate, leader))
            .collect();
        let behind = |standing: &CandidateResult| {
            let sign = if self.rules.more_is_better { -1.0 } else { 1.0 };
            standing
                .difference
                .map_or(f64::NEG_INFINITY, |difference| sign * difference.value)
        };
        let order = |standing: &CandidateResult| (standing.dropped, behind(standing).is_nan());
        order_by(&mut standings, |one, other| {
            // Dropped candidates come behind, and among the others the candidates without values.
            order(one)
                .cmp(&order(other))
                .then_with(|| behind(one).total_cmp(&behind(other)))
        });
        standings
    }

    /// Returns a lower bound of the chance that the leader, or a candidate equal to the
    /// leader, is the best.
    pub fn probability_correct(&self) -> f64 {
        let others: f64 = self
            .standings()
            .iter()
            .map(|standing| standing.chance_better)
            .sum();
        // Boole's inequality: the chance that any rival is better is at most the sum of the
        // chances. The sum may exceed 1.
        (1.0 - others).max(0.0)
    }

    fn standing(&self, candidate: usize, leader: usize) -> CandidateResult {
        let sign = if self.rules.more_is_better { -1.0 } else { 1.0 };
        let runner = &self.runners[candidate];
        let pairs = self.pairs(candidate, leader);
        let rivals = self.runners.len().saturating_sub(1).max(1) as f64;
        // Bonferroni: the error of all comparisons with the leader is at most the sum of their
        // errors.
        let confidence = 1.0 - (1.0 - self.rules.confidence) / rivals;
        let signed: Vec<(f64, f64)> = pairs
            .iter()
            .map(|(one, other)| (sign * one, sign * other))
            .collect();
        let shared = self.runners[leader].values.iter().take(runner.values.len());
        let is_leader = candidate == leader;
        let equal = !is_leader && alike(&pairs);
        CandidateResult {
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

    /// Returns the values of both in the batches that both have seen and in which both measured
    /// something.
    fn pairs(&self, candidate: usize, leader: usize) -> Vec<(f64, f64)> {
        let values = |runner: usize| self.runners[runner].values.iter().copied();
        values(candidate)
            .zip(values(leader))
            .filter(|(one, other)| !one.is_nan() && !other.is_nan())
            .collect()
    }

    /// Returns the permitted error probability for one rival at one rung. The divisor counts
    /// one look more than there are rungs, because candidates of the last rung are judged at
    /// different numbers of batches.
    fn error_of_one(&self) -> f64 {
        let rivals = self
            .rules
            .candidates
            .max(self.runners.len())
            .saturating_sub(1)
            .max(1);
        // The error is divided among all rungs and rivals, because each rung compares each rival
        // once more.
        (1.0 - self.rules.confidence) / ((self.rungs.len() + 1) * rivals) as f64
    }

    /// Distributes half of the remaining batches of all running candidates to the candidates where
    /// they decide most.
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
            // At least one batch for each, so that rounding does not exclude a candidate.
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

/// Returns the mean over measured values; NaN if there are none.
fn mean<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    let (sum, count) = values
        .filter(|value| !value.is_nan())
        .fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count)
}

/// Returns true if both have the same value in every batch, in at least two batches.
fn alike(pairs: &[(f64, f64)]) -> bool {
    pairs.len() >= 2 && pairs.iter().all(|(one, other)| one == other)
}

/// Returns the squared deviation of the differences divided by their squared mean. Bounded if the
/// mean is near zero.
fn noise_to_signal(pairs: &[(f64, f64)]) -> f64 {
    // More batches would decide nothing about candidates that are equal.
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
    // A difference within its own error could be anything up to that error.
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
                race.add_values(candidate, &noisy.values(candidate, batches));
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
            told += race.value_count();
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
        // No candidate is worse, so each is a best one. Counts how often candidate 0 drops out.
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
                race.add_values(candidate, &noisy.values(candidate, batches));
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
        // Candidates 0 and 1 have the same values.
        let noisy = Noisy::new(vec![5.0, 5.0, 5.2, 9.0], 64, 1.0, 5);
        loop {
            for (candidate, batches) in race.due() {
                let as_whom = if candidate == 1 { 0 } else { candidate };
                race.add_values(candidate, &noisy.values(as_whom, batches));
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
        // The remaining batches go to the near candidate, not to the equal one.
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
        race.add_values(0, &[1.0, 1.1, 0.9, 1.0, 1.2, 1.0, 0.8, 1.0]);
        race.add_values(1, &[5.0, 5.1, 4.9, 5.0, 5.3, 5.0, 4.8, 5.0]);
        race.add_values(2, &[f64::NAN; 8]);
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
                race.add_values(candidate, &noisy.values(candidate, batches));
            }
            race.advance();
        }
        race.join();
        assert_eq!(race.due().last(), Some(&(2, 0..8)));
        race.add_values(2, &noisy.values(2, 0..8));
        race.judge();
        assert!(
            race.standings()[2].dropped && race.due().iter().all(|(candidate, _)| *candidate != 2)
        );
    }
}
