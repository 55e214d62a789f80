//! Advice that becomes surer step by step.
//!
//! [`advise`](crate::advise) answers once, after minutes. [`GradualAdvice`] answers after each step
//! of a few milliseconds to seconds:
//!
//! 1. Arithmetic excludes impossible layouts. No run is needed.
//! 2. A round runs each layout on the first requests of the load, the same number for each. Each
//!    round has [`GROWTH`] times the requests of the round before. Rounds end when the ranking is
//!    settled and the intervals are narrow, or when a round has run the whole load.
//! 3. Each redundant layout runs with a failed drive, on the requests of the second round, and then
//!    during a rebuild, on the requests of the first round. A rebuild has many requests of its own,
//!    so that a long run would take minutes. Last, it runs with a slow drive, on the requests of the
//!    second round.
//!
//! The runs of step 3 do not depend on the rounds. Other threads or workers may carry them out at the
//! same time ([`GradualAdvice::outcome`]) and hand the outcomes over ([`GradualAdvice::take_outcome`]).
//!
//! Each layout has the first value of each list in [`Choices`](crate::Choices). No setting is
//! searched, so the answer ranks layouts only.

mod watch;

use crate::advise::{Chosen, Finals, check};
use crate::layouts::{Arrangement, arrangements, has_parity};
use crate::order::order;
use crate::slow_drive::with_a_slow_drive;
use crate::{
    Advice, AdviceRequest, AdviseError, ArrayOutcome, Condition, DataLossChance, ExcludedLayout,
    Finalist, loss,
};
use fullstroke_lab::{
    self as lab, ComparedStack, Ranking, Recipe, RunResult, Settled, Settling, VolumeReport, run,
};
use fullstroke_measure::{Significance, Stop};
use fullstroke_stack::{Document, StackError};
use serde::Serialize;
use serde_json::Value;

/// Factor between the numbers of requests of two rounds.
const GROWTH: u64 = 3;
/// Two layouts count as equal if the whole interval of their difference lies within this share of
/// the best value. Chosen: no one buys by a difference of 3 %.
const EQUAL_SHARE: f64 = 0.03;
/// Rounds go on until the interval of each layout is within this share of its value. Chosen: half
/// of the width needs four times the requests.
const PRECISE_SHARE: f64 = 0.1;

/// Conditions of the runs after the rounds, in their order.
const CONDITIONS: [Condition; 3] = [Condition::Degraded, Condition::Rebuilding, Condition::Slow];

/// Numbers of requests of the first round and of the largest round, and the load of all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundPlan {
    /// Requests of the first round, at least 1.
    pub first: u64,
    /// Largest number of requests of a round. The load may end before.
    pub most: u64,
    /// Factor by which requests arrive faster than in the stack file. Other values than 1 need open
    /// arrivals.
    pub load: f64,
}

/// A layout before any run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PossibleLayout {
    /// Name: `raid6 of 6`.
    pub name: String,
    /// Layout: `raid6`.
    pub layout: String,
    /// Size and redundancy of the volume.
    pub volume: VolumeReport,
    /// Price of the drives, the controller and the flash devices. Flash devices without a price are
    /// left out.
    pub price: Option<f64>,
    /// Chance of data loss, as if a rebuild took no time.
    pub loss: DataLossChance,
}

/// Progress of a gradual advice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GradualProgress {
    /// Number of requests of each run so far; 0 before the first round ends.
    pub requests: u64,
    /// True if longer runs would not change the ranking: each difference to the best layout is
    /// larger than chance, or too small to matter.
    pub settled: bool,
    /// True if the whole load has run.
    pub whole_load: bool,
    /// True if only runs in other conditions are left.
    pub rounds_over: bool,
    /// True if no step is left.
    pub over: bool,
    /// True if the last step has ended a round, so that the advice is new.
    pub renewed: bool,
    /// Number of steps so far.
    pub steps: usize,
    /// Next step in words; empty at the end.
    pub next: String,
}

/// The part of the work that the next steps belong to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Rounds with all drives.
    Healthy,
    /// Runs in a condition.
    In(Condition),
    Over,
}

/// Outcomes in conditions, by layout. `None` is an outcome that has not run. The inner `None` is a
/// layout that has no such condition.
struct OutcomesByCondition {
    /// Outcomes with a failed drive.
    degraded: Vec<Option<Option<ArrayOutcome>>>,
    /// Outcomes during a rebuild.
    rebuilding: Vec<Option<Option<ArrayOutcome>>>,
    /// Outcomes with a slow drive.
    slow: Vec<Option<Option<ArrayOutcome>>>,
}

/// An advice in the making.
pub struct GradualAdvice {
    request: AdviceRequest,
    chosen: Vec<Chosen>,
    left_out: Vec<ExcludedLayout>,
    plan: RoundPlan,
    load: Load,
    phase: Phase,
    /// Requests of the round in progress.
    size: u64,
    /// Index of the layout of the next step.
    next: usize,
    /// Runs of the round in progress, seed by seed.
    running: Vec<RunResult>,
    /// Runs of the last complete round, with its number of requests.
    healthy: (u64, Vec<RunResult>),
    outcomes: OutcomesByCondition,
    settled: bool,
    whole_load: bool,
    steps: usize,
}

impl GradualAdvice {
    /// Begins an advice. Each arrangement is decided by arithmetic here.
    ///
    /// # Errors
    /// Wishes that nothing can meet, or a stack that cannot be used.
    pub fn new(request: AdviceRequest, plan: RoundPlan) -> Result<GradualAdvice, AdviseError> {
        check(&request)?;
        let (arrangements, left_out) = arrangements(&request)?;
        let load = Load::of(&request)?;
        let chosen: Vec<Chosen> = arrangements
            .into_iter()
            .map(|arrangement| first_settings(&request, arrangement))
            .collect();
        let least = load.least();
        let first = plan.first.max(least).min(load.total.unwrap_or(u64::MAX));
        let mut advice = GradualAdvice {
            outcomes: OutcomesByCondition {
                degraded: vec![None; chosen.len()],
                rebuilding: vec![None; chosen.len()],
                slow: vec![None; chosen.len()],
            },
            request,
            chosen,
            left_out,
            plan,
            load,
            phase: Phase::Healthy,
            size: first,
            next: 0,
            running: Vec::new(),
            healthy: (0, Vec::new()),
            settled: false,
            whole_load: false,
            steps: 0,
        };
        // A stack may be impossible only with the settings.
        for one in 0..advice.chosen.len() {
            let candidates = advice.candidates(one, Condition::Healthy)?;
            check_load(plan.load, &candidates)?;
        }
        advice.plan.first = first;
        advice.plan.most = advice.plan.most.max(first);
        Ok(advice)
    }

    /// Returns the possible layouts, and the excluded ones with the reason.
    pub fn layouts(&self) -> (Vec<PossibleLayout>, &[ExcludedLayout]) {
        let possible = |one: &Chosen| {
            let arrangement = &one.arrangement;
            PossibleLayout {
                name: arrangement.name(),
                layout: arrangement.layout.clone(),
                volume: VolumeReport::from(&arrangement.summary),
                price: arrangement.price(&self.request),
                loss: loss(arrangement.redundancy(), self.request.assumptions, 0.0),
            }
        };
        (self.chosen.iter().map(possible).collect(), &self.left_out)
    }

    /// Carries out the next step: one layout in one condition. `progress` is called with the number
    /// of finished requests and, if known, the total number.
    ///
    /// # Errors
    /// A run fails.
    pub fn step(
        &mut self,
        stop: &Stop,
        progress: &dyn Fn(u64, Option<u64>),
    ) -> Result<GradualProgress, AdviseError> {
        let condition = match self.phase {
            Phase::Healthy => Condition::Healthy,
            Phase::In(condition) => condition,
            Phase::Over => return Ok(self.progress(false)),
        };
        let ran = self.runs(self.next, condition, stop, progress)?;
        if condition != Condition::Healthy {
            return Ok(self.put_outcome(self.next, condition, &ran));
        }
        self.steps += 1;
        for one in &ran {
            // Before the runs join the round, because a run without a measured request has no values to
            // rank.
            one.check_measured()?;
        }
        self.running.extend(ran);
        self.next += 1;
        let last = self.next == self.chosen.len();
        if last {
            self.end_round();
        }
        Ok(self.progress(last))
    }

    /// Returns the runs that the rounds do not need: each layout with a failed drive, during a
    /// rebuild, and with a slow drive.
    pub fn conditions(&self) -> Vec<(String, Condition)> {
        let names = || self.chosen.iter().map(|one| one.arrangement.name());
        let of = |condition| names().map(move |name| (name, condition));
        CONDITIONS.into_iter().flat_map(of).collect()
    }

    /// Returns the outcome of a layout, such as `raid6 of 6`, in a condition of
    /// [`GradualAdvice::conditions`]. `None` is a layout without this condition: RAID 0 does not run
    /// with a failed drive. The advice itself does not change.
    ///
    /// # Errors
    /// No layout has this name, or a run fails.
    pub fn outcome(
        &self,
        name: &str,
        condition: Condition,
        stop: &Stop,
        progress: &dyn Fn(u64, Option<u64>),
    ) -> Result<Option<ArrayOutcome>, AdviseError> {
        let ran = self.runs(self.index(name)?, condition, stop, progress)?;
        Ok((!ran.is_empty()).then(|| ArrayOutcome::new(&ran)))
    }

    /// Takes an outcome that [`GradualAdvice::outcome`] returned elsewhere. The steps leave the run out
    /// then.
    ///
    /// # Errors
    /// No layout has this name, or the condition is none of [`GradualAdvice::conditions`].
    pub fn take_outcome(
        &mut self,
        name: &str,
        condition: Condition,
        outcome: Option<ArrayOutcome>,
    ) -> Result<GradualProgress, AdviseError> {
        let index = self.index(name)?;
        if !CONDITIONS.contains(&condition) {
            let why = "condition: expected degraded, rebuilding or slow".to_owned();
            return Err(AdviseError::Impossible(why));
        }
        Ok(self.put(index, condition, outcome))
    }

    fn put_outcome(
        &mut self,
        index: usize,
        condition: Condition,
        ran: &[RunResult],
    ) -> GradualProgress {
        let outcome = (!ran.is_empty()).then(|| ArrayOutcome::new(ran));
        self.put(index, condition, outcome)
    }

    fn put(
        &mut self,
        index: usize,
        condition: Condition,
        outcome: Option<ArrayOutcome>,
    ) -> GradualProgress {
        self.steps += 1;
        let outcomes = self.outcomes(condition);
        outcomes[index] = Some(outcome);
        let last = outcomes.iter().all(Option::is_some);
        // An outcome may come from elsewhere (`take_outcome`), so the next step is sought among all
        // layouts and not behind this one.
        self.skip_known();
        self.progress(last && !self.healthy.1.is_empty())
    }

    fn outcomes(&mut self, condition: Condition) -> &mut Vec<Option<Option<ArrayOutcome>>> {
        match condition {
            Condition::Rebuilding => &mut self.outcomes.rebuilding,
            Condition::Slow => &mut self.outcomes.slow,
            // Healthy never comes here, because the rounds hold those runs.
            Condition::Healthy | Condition::Degraded => &mut self.outcomes.degraded,
        }
    }

    /// After the rounds, moves on to the first condition of a layout without an outcome.
    fn skip_known(&mut self) {
        if self.phase == Phase::Healthy {
            return;
        }
        for condition in CONDITIONS {
            let open = self.outcomes(condition).iter().position(Option::is_none);
            if let Some(index) = open {
                (self.phase, self.next) = (Phase::In(condition), index);
                return;
            }
        }
        (self.phase, self.next) = (Phase::Over, 0);
    }

    fn progress(&self, renewed: bool) -> GradualProgress {
        GradualProgress {
            requests: self.healthy.0,
            settled: self.settled,
            whole_load: self.whole_load,
            rounds_over: self.phase != Phase::Healthy,
            over: self.phase == Phase::Over,
            renewed,
            steps: self.steps,
            next: self.next_in_words(),
        }
    }

    /// Returns the advice from the runs so far; `None` before the end of the first round.
    pub fn advice(&self) -> Option<Advice> {
        if self.healthy.1.is_empty() {
            return None;
        }
        let request = &self.request;
        let seeds = request.seeds();
        let mut finalists: Vec<Finalist> = Vec::new();
        for (index, one) in self.chosen.iter().enumerate() {
            let whole = &self.healthy.1[index * seeds..(index + 1) * seeds];
            let (degraded, rebuilding) = (
                self.outcomes.degraded[index],
                self.outcomes.rebuilding[index],
            );
            let (degraded, rebuilding) = (degraded.flatten(), rebuilding.flatten());
            let mut finalist = request.finalist(one, whole, degraded, rebuilding);
            if let Some(slow) = self.outcomes.slow[index].flatten() {
                finalist.set_slow(&request.wishes, slow);
            }
            finalists.push(finalist);
        }
        let ranking = Ranking::of_seeds(&self.healthy.1, seeds, request.metric());
        order(&mut finalists, &request.wishes, &ranking);
        let finals = Finals {
            settled: self.settled(&ranking),
            finalists,
            ranking,
            chosen: Vec::new(),
        };
        let runs = self.steps * seeds;
        Some(request.concluded(finals, self.left_out.clone(), Vec::new(), runs))
    }

    /// Returns the state of the answer after the last round.
    fn settled(&self, ranking: &Ranking) -> Settled {
        let (settling, too_short_by) = match (self.settled, self.whole_load) {
            (true, _) => (Settling::Settled, 1.0),
            (false, true) => (Settling::LoadEnds, too_short_by(ranking)),
            // Rounds that are not over count as runs of a chosen length: longer runs are possible.
            (false, false) => (Settling::LengthChosen, too_short_by(ranking)),
        };
        Settled {
            settling,
            requests: self.healthy.0,
            too_short_by,
            ..Settled::default()
        }
    }

    /// Returns the stack file of a layout, such as `raid6 of 6`, on the whole load.
    ///
    /// # Errors
    /// No layout has this name.
    pub fn stack_file(&self, name: &str) -> Result<String, AdviseError> {
        let one = &self.chosen[self.index(name)?];
        Ok(fullstroke_stack::resolved(
            &one.recipe.file,
            &one.recipe.overrides,
        )?)
    }

    /// Returns the place of a layout.
    fn index(&self, name: &str) -> Result<usize, AdviseError> {
        let mut names = self.chosen.iter().map(|one| one.arrangement.name());
        if let Some(index) = names.position(|one| one == name) {
            return Ok(index);
        }
        let known: Vec<String> = self
            .chosen
            .iter()
            .map(|one| one.arrangement.name())
            .collect();
        let why = format!("found `{name}`; expected one of {}", known.join(", "));
        Err(AdviseError::Impossible(why))
    }

    /// Returns the number of requests of a run.
    fn length(&self, condition: Condition) -> u64 {
        let second = self.plan.first.saturating_mul(GROWTH);
        match condition {
            Condition::Healthy => self.size,
            Condition::Degraded | Condition::Slow => {
                second.min(self.load.total.unwrap_or(u64::MAX))
            }
            Condition::Rebuilding => self.plan.first,
        }
    }

    /// Carries out the runs of a layout in a condition, one per seed; none if the layout has no such
    /// condition.
    fn runs(
        &self,
        index: usize,
        condition: Condition,
        stop: &Stop,
        progress: &dyn Fn(u64, Option<u64>),
    ) -> Result<Vec<RunResult>, AdviseError> {
        let mut ran = Vec::new();
        for mut candidate in self.candidates(index, condition)? {
            candidate.stop = stop.clone();
            ran.push(run(&candidate, None, progress)?);
        }
        Ok(ran)
    }

    /// Returns the candidates of a layout in a condition, one per seed; none if the layout has no
    /// such condition.
    fn candidates(
        &self,
        index: usize,
        condition: Condition,
    ) -> Result<Vec<ComparedStack>, AdviseError> {
        self.candidates_of(index, condition, self.length(condition))
    }

    /// Returns the candidates of a layout in a condition on the first `requests` requests.
    fn candidates_of(
        &self,
        index: usize,
        condition: Condition,
        requests: u64,
    ) -> Result<Vec<ComparedStack>, AdviseError> {
        let recipe = &self.chosen[index].recipe;
        let recipe = match condition {
            Condition::Healthy => Some(recipe.clone()),
            Condition::Degraded => recipe.in_condition(lab::Condition::Degraded)?,
            Condition::Rebuilding => recipe.in_condition(lab::Condition::Rebuilding)?,
            Condition::Slow => with_a_slow_drive(recipe, self.request.slow_condition())?,
        };
        let mut candidates = Vec::new();
        if let Some(recipe) = recipe {
            let recipe = self.load.first_requests(recipe, requests);
            for recipe in recipe.with_seeds(self.request.seeds())? {
                let candidate = recipe.candidate()?;
                candidates.push(ComparedStack {
                    load: self.plan.load,
                    ..candidate
                });
            }
        }
        Ok(candidates)
    }

    /// Ends a round: decides if the ranking is settled, and begins the next round or phase.
    fn end_round(&mut self) {
        self.next = 0;
        self.healthy = (self.size, std::mem::take(&mut self.running));
        let ran = &self.healthy.1;
        let ranking = Ranking::of_seeds(ran, self.request.seeds(), self.request.metric());
        self.settled = is_settled(&ranking);
        // A load that has ended by itself is the whole load.
        self.whole_load = self.load.is_whole(self.size)
            || ran
                .iter()
                .all(|one| one.measured.report.arrived.requests < self.load.planned(self.size));
        let size = self.size.saturating_mul(GROWTH).min(self.plan.most);
        let done = self.settled && is_precise(&ranking);
        if done || self.whole_load || size == self.size {
            self.phase = Phase::In(Condition::Degraded);
            self.skip_known();
        } else {
            self.size = size.min(self.load.total.unwrap_or(u64::MAX));
        }
    }

    fn next_in_words(&self) -> String {
        let Some(one) = self.chosen.get(self.next) else {
            return String::new();
        };
        let (when, condition) = match self.phase {
            Phase::Over => return String::new(),
            Phase::Healthy | Phase::In(Condition::Healthy) => {
                ("with all drives", Condition::Healthy)
            }
            Phase::In(Condition::Degraded) => ("with a failed drive", Condition::Degraded),
            Phase::In(Condition::Rebuilding) => ("during a rebuild", Condition::Rebuilding),
            Phase::In(Condition::Slow) => ("with a slow drive", Condition::Slow),
        };
        let requests = self.length(condition);
        format!("{} {when}, {requests} requests", one.arrangement.name())
    }
}

/// Checks that the candidates can run at a multiple of their load.
fn check_load(load: f64, candidates: &[ComparedStack]) -> Result<(), AdviseError> {
    if !(load.is_finite() && load > 0.0) {
        let why = format!("load: found {load}; expected a factor above 0");
        return Err(AdviseError::Impossible(why));
    }
    for candidate in candidates.iter().filter(|_| load != 1.0) {
        if !candidate.can_be_hurried()? {
            let why = format!(
                "load: found {load}; requests of this load wait for completions, so only 1 is possible"
            );
            return Err(AdviseError::Impossible(why));
        }
    }
    Ok(())
}

/// Returns true if each difference to the best candidate is larger than chance, or surely smaller
/// than [`EQUAL_SHARE`] of the best value. A candidate that does not carry the load is no rival.
fn is_settled(ranking: &Ranking) -> bool {
    let Some((best, others)) = ranking.candidates.split_first() else {
        return false;
    };
    others.iter().filter(|other| other.carries).all(|other| {
        let Some(difference) = other.difference_to_best else {
            return true;
        };
        let narrow = |half: f64| difference.value.abs() + half <= EQUAL_SHARE * best.value.abs();
        other.equal_to_best
            || difference.significance == Significance::Significant
            || difference.half_width.is_some_and(narrow)
    })
}

/// Returns the factor by which runs are too short for the widest interval of a difference. The width
/// of an interval falls with the root of the number of requests.
fn too_short_by(ranking: &Ranking) -> f64 {
    let differences = ranking
        .candidates
        .iter()
        .filter_map(|one| one.difference_to_best);
    let open = differences.filter(|one| one.significance != Significance::Significant);
    let factors = open.filter_map(|one| Some((one.half_width? / one.value).powi(2)));
    factors.fold(1.0, f64::max)
}

/// Returns true if the interval of each value is narrow. A value without an interval does not count.
fn is_precise(ranking: &Ranking) -> bool {
    ranking.candidates.iter().all(|one| {
        let half = one.ci95_half_width.unwrap_or(0.0);
        half <= PRECISE_SHARE * one.value.abs()
    })
}

/// Returns the arrangement with the first value of each choice. A key that the user has set keeps
/// its value.
fn first_settings(request: &AdviceRequest, arrangement: Arrangement) -> Chosen {
    let own = |key: &str| {
        let set = &request.overrides.set;
        set.iter()
            .any(|own| own.split('=').next().map(str::trim) == Some(key))
    };
    let keys = request.values(&arrangement.layout);
    let settings: Vec<String> = keys
        .iter()
        .filter(|(key, _)| !own(key))
        .filter(|(key, _)| *key != "volume.stripe_cache" || has_parity(&arrangement.layout))
        .filter_map(|(key, values)| Some(format!("{key}={}", values.first()?)))
        .collect();
    let mut recipe = arrangement.recipe.clone();
    recipe.overrides.set.extend(settings.iter().cloned());
    Chosen {
        arrangement,
        settings,
        recipe,
        settings_alike: 0,
        healthy: None,
    }
}

/// The numbers of requests in a stack file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Load {
    /// For each of `[[workloads]]` in the foreground, its index and its `requests`. Empty for one
    /// workload.
    shares: Vec<(usize, u64)>,
    /// Requests of the whole load, if the file has the number.
    total: Option<u64>,
    /// True if the number of requests can be limited.
    is_limited: bool,
}

impl Load {
    /// Reads the numbers of the request's stack. Several workloads are limited only if each in the
    /// foreground has `requests`.
    fn of(request: &AdviceRequest) -> Result<Load, StackError> {
        let overrides = &request.overrides;
        let document = Document::read_in(&overrides.files, &request.stack)?;
        let values = document.values();
        let number = |keys: &Value| keys.get("requests").and_then(Value::as_u64);
        let replaced = !overrides.workloads.is_empty();
        let own = Value::Array(
            overrides
                .workloads
                .iter()
                .cloned()
                .map(Value::Object)
                .collect(),
        );
        let several = match replaced {
            true => own.as_array(),
            false => values.get("workloads").and_then(Value::as_array),
        };
        let alone = overrides.trace.is_some() || overrides.fio.is_some();
        if let Some(several) = several.filter(|_| !alone) {
            let each = several.iter().enumerate();
            let before =
                each.filter(|(_, keys)| keys.get("background") != Some(&Value::Bool(true)));
            let shares: Option<Vec<(usize, u64)>> = before
                .map(|(index, keys)| Some((index, number(keys)?.max(1))))
                .collect();
            let total = shares
                .as_ref()
                .map(|shares| shares.iter().map(|(_, requests)| requests).sum());
            return Ok(Load {
                is_limited: shares.is_some(),
                shares: shares.unwrap_or_default(),
                total,
            });
        }
        let one = values.get("workload").filter(|_| !alone);
        Ok(Load {
            shares: Vec::new(),
            total: overrides.requests.or(one.and_then(number)),
            is_limited: !values.contains_key("hosts") || alone,
        })
    }

    /// Returns the smallest number of requests that gives each workload one.
    fn least(&self) -> u64 {
        let smallest = self.shares.iter().map(|(_, requests)| *requests).min();
        match (smallest, self.total) {
            (Some(smallest), Some(total)) => total.div_ceil(smallest),
            _ => 1,
        }
    }

    fn is_whole(&self, requests: u64) -> bool {
        !self.is_limited || self.total.is_some_and(|total| requests >= total)
    }

    /// Returns the number of requests of a round of `requests` requests. Several workloads round
    /// their parts down.
    fn planned(&self, requests: u64) -> u64 {
        match (self.shares.is_empty(), self.total) {
            (false, Some(total)) => {
                let parts = self
                    .shares
                    .iter()
                    .map(|(_, own)| part(*own, requests, total));
                parts.sum()
            }
            _ => requests,
        }
    }

    /// Returns the recipe limited to `requests` requests. Several workloads keep their proportions.
    fn first_requests(&self, mut recipe: Recipe, requests: u64) -> Recipe {
        if self.is_whole(requests) {
            return recipe;
        }
        let (true, total) = (!self.shares.is_empty(), self.total.unwrap_or(1)) else {
            recipe.overrides.requests = Some(requests);
            return recipe;
        };
        for (index, own) in &self.shares {
            let part = part(*own, requests, total);
            let set = format!("workloads[{index}].requests={part}");
            recipe.overrides.set.push(set);
        }
        recipe
    }
}

/// Returns the part of a workload with `own` of `total` requests in a round of `requests`, at least 1.
fn part(own: u64, requests: u64, total: u64) -> u64 {
    let part = u128::from(own) * u128::from(requests) / u128::from(total);
    // A round is never larger than the whole load, so the part is at most `own`.
    u64::try_from(part).unwrap_or(own).max(1)
}

#[cfg(test)]
#[path = "gradual_tests.rs"]
mod tests;
