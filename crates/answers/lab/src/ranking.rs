//! The order of candidates and its confidence.

use crate::ranked::Ranked;
use crate::reasons::{Reason, reasons};
use crate::{LabError, RunResult, VariedValues};
use fullstroke_measure::{
    Difference, HostReport, Metric, Report, difference_over_seeds, half_width_over_seeds,
    paired_difference,
};
use fullstroke_units::order_by;
use serde::Serialize;
use std::cmp::Ordering;

/// The confidence of the whole ranking.
const CONFIDENCE: f64 = 0.95;

/// Candidates in order, the best first.
///
/// A candidate that could not serve every request ranks behind all that could, because the missing
/// requests would flatter its times. A candidate that cannot serve the load as fast as the load
/// arrives ranks behind all candidates that can. Several such candidates rank by the served share
/// of the load, because their response times grow with the length of the load. The intervals of the
/// differences to the best candidate hold together with 95 % confidence. Each pair that could have
/// been compared gets an equal share of the error (Bonferroni over all pairs, because the data also
/// decide which candidate is best).
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ranking {
    /// The metric's dotted name.
    pub by: String,
    /// True if a larger value is better.
    pub more_is_better: bool,
    /// The confidence of each value's interval, and of all differences together.
    pub confidence: f64,
    /// Number of seeds of each candidate. Intervals are over the seeds if there are several and if
    /// the seeds change the values.
    pub seeds: usize,
    /// True if all candidates received the same number of requests. If false, the candidates did
    /// not see the same workload.
    pub same_number_of_requests: bool,
    /// The best candidate, its lead and its confidence. `null` for a single candidate, or if
    /// nothing was measured.
    pub verdict: Option<String>,
    /// The varied keys and their values.
    pub varied: VariedValues,
    /// The candidates.
    pub candidates: Vec<Ranked>,
    /// Reasons why some candidates answer sooner than others: for the leader and the next, and for
    /// surprising pairs.
    pub reasons: Vec<Reason>,
}

/// A candidate's runs, one for each seed.
#[derive(Clone, Copy)]
struct Entrant<'a>(&'a [RunResult]);

impl Entrant<'_> {
    /// Returns the first run, which represents all runs.
    fn ran(&self) -> &RunResult {
        &self.0[0]
    }

    fn values(&self, metric: Metric) -> impl Iterator<Item = f64> {
        self.0
            .iter()
            .map(move |ran| metric.value(&ran.measured.report))
    }

    fn value(&self, metric: Metric) -> f64 {
        match self.varies(metric) {
            false => metric.value(&self.ran().measured.report),
            true => self.values(metric).sum::<f64>() / self.0.len() as f64,
        }
    }

    /// Returns true if a seed gives another value than the first seed.
    fn varies(&self, metric: Metric) -> bool {
        let first = metric.value(&self.ran().measured.report).to_bits();
        self.values(metric).any(|value| value.to_bits() != first)
    }

    fn half_width(&self, metric: Metric) -> Option<f64> {
        if let Some(own) = metric.own_half_width(&self.ran().measured.report) {
            return Some(own);
        }
        match self.varies(metric) {
            false => self.ran().measured.half_width(metric, CONFIDENCE),
            true => half_width_over_seeds(&self.values(metric).collect::<Vec<_>>(), CONFIDENCE),
        }
    }

    fn difference(&self, best: Entrant<'_>, metric: Metric, confidence: f64) -> Difference {
        let own = |one: &Entrant<'_>| {
            let half_width = metric.own_half_width(&one.ran().measured.report)?;
            Some((one.value(metric), half_width))
        };
        if let (Some(one), Some(other)) = (own(self), own(&best)) {
            return Difference::of_independent(one, other);
        }
        let within = || {
            paired_difference(
                &self.ran().measured,
                &best.ran().measured,
                metric,
                confidence,
            )
        };
        let over_seeds = || {
            let pairs: Vec<(f64, f64)> = self.values(metric).zip(best.values(metric)).collect();
            difference_over_seeds(&pairs, confidence)
        };
        match (self.varies(metric), best.varies(metric)) {
            (false, false) => within(),
            (true, true) => over_seeds(),
            // Only one of both values depends on the seed. Seeds then say nothing about the error
            // of the other value, so the wider interval counts.
            _ => over_seeds().with_wider_interval(&within()),
        }
    }

    /// Returns true if both have the same value with each seed, and both are complete or both are
    /// not.
    fn equals(&self, other: Entrant<'_>, metric: Metric) -> bool {
        self.values(metric).eq(other.values(metric)) && self.is_complete() == other.is_complete()
    }

    fn is_complete(&self) -> bool {
        self.0.iter().all(|ran| is_complete(&ran.measured.report))
    }

    fn carried_share(&self) -> f64 {
        self.0
            .iter()
            .map(|ran| carried_share(&ran.measured.report))
            .fold(f64::INFINITY, f64::min)
    }

    fn carries(&self) -> bool {
        self.0
            .iter()
            .all(|ran| ran.measured.report.arrived.overload.is_none())
    }
}

impl Ranking {
    /// Returns the notes on the trace. Notes of one kind differ in the figures of each candidate's
    /// volume; the first note stands for the kind, with the name of its candidate.
    pub fn trace_notes(&self) -> Vec<String> {
        let all = || {
            let noted = self.candidates.iter().map(|ranked| &ranked.report);
            noted.flat_map(|report| {
                let notes = report.arrived.trace_notes.iter();
                notes.map(|note| (report.name.as_str(), note.as_str()))
            })
        };
        let kind = |note: &str| note.chars().take_while(|&at| at != ',').collect::<String>();
        let mut kinds: Vec<(String, &str, &str)> = Vec::new();
        for (name, note) in all() {
            let known = kinds.iter().any(|(one, ..)| *one == kind(note));
            if !known {
                kinds.push((kind(note), name, note));
            }
        }
        let told = kinds.into_iter().map(|(kind_of, name, note)| {
            let mut alike = all().filter(|(_, other)| kind(other) == kind_of);
            match alike.all(|(_, other)| other == note) {
                true => note.to_owned(),
                false => format!("{note} (figures of {name})"),
            }
        });
        told.collect()
    }

    /// Ranks the results of [`run_all`](crate::run_all). Equal values keep the order given.
    pub fn new(ran: &[RunResult], metric: Metric) -> Ranking {
        Ranking::of_seeds(ran, 1, metric)
    }

    /// Ranks the results of [`run_all`](crate::run_all) for candidates that ran with `seeds` seeds
    /// each, one after the other. Candidates are ranked by their means, with intervals over seeds.
    pub fn of_seeds(ran: &[RunResult], seeds: usize, metric: Metric) -> Ranking {
        assert!(
            ran.len().is_multiple_of(seeds.max(1)),
            "{} runs are not {seeds} of each candidate",
            ran.len()
        );
        let mut order: Vec<Entrant<'_>> = ran.chunks(seeds.max(1)).map(Entrant).collect();
        let entrants = order.len();
        order_by(&mut order, |one, other| {
            let complete = other.is_complete().cmp(&one.is_complete());
            let carried = other.carried_share().total_cmp(&one.carried_share());
            // Complete runs come first, because a run that lost requests is fast for a bad reason.
            // Next counts the carried share of the load.
            complete
                .then(carried)
                .then_with(|| better_first(metric, one.value(metric), other.value(metric)))
        });
        let pairs = entrants * entrants.saturating_sub(1) / 2;
        // Bonferroni over all pairs: the order as a whole has the confidence.
        let confidence = 1.0 - (1.0 - CONFIDENCE) / pairs.max(1) as f64;
        let best = order.first().copied();
        let candidates: Vec<Ranked> = order
            .iter()
            .enumerate()
            .map(|(place, entrant)| {
                ranked(
                    place,
                    *entrant,
                    best.filter(|_| place > 0),
                    metric,
                    confidence,
                )
            })
            .collect();
        let mut ranking = Ranking {
            by: metric.name(),
            more_is_better: metric.more_is_better(),
            confidence: CONFIDENCE,
            seeds: seeds.max(1),
            same_number_of_requests: same_number(ran, seeds.max(1)),
            varied: VariedValues::of(ran.iter().map(|ran| &ran.varied)),
            reasons: reasons(&candidates, metric),
            verdict: None,
            candidates,
        };
        ranking.verdict = ranking.in_words();
        ranking
    }

    /// Ranks by `by`. Without `by`, the metric is the duration of the programs if all candidates
    /// run programs, else the mean response time.
    ///
    /// # Errors
    /// No candidate was measured after its warm-up, or no candidate has a value of the metric.
    pub fn by(ran: &[RunResult], seeds: usize, by: Option<Metric>) -> Result<Ranking, LabError> {
        if let Some(first) = ran
            .first()
            .filter(|_| ran.iter().all(|ran| ran.check_measured().is_err()))
        {
            first.check_measured()?;
        }
        if let Some(by) = by {
            by.check(
                &ran.iter()
                    .map(|ran| &ran.measured.report)
                    .collect::<Vec<_>>(),
            )?;
        }
        let programs = ran
            .iter()
            .all(|ran| !ran.measured.report.sources.hosts.is_empty());
        let usual = if programs {
            Metric::PROGRAMS_ELAPSED
        } else {
            Metric::RESPONSE_MEAN
        };
        Ok(Ranking::of_seeds(ran, seeds, by.unwrap_or(usual)))
    }
}

fn ranked(
    place: usize,
    entrant: Entrant<'_>,
    best: Option<Entrant<'_>>,
    metric: Metric,
    confidence: f64,
) -> Ranked {
    let ran = entrant.ran();
    let report = &ran.measured.report;
    let best = best.filter(|_| entrant.carries());
    Ranked {
        rank: place + 1,
        name: report.name.clone(),
        varied: ran.varied.clone(),
        value: entrant.value(metric),
        ci95_half_width: entrant.half_width(metric),
        varies_with_seed: (entrant.0.len() > 1).then(|| entrant.varies(metric)),
        equal_to_best: best.is_some_and(|best| entrant.equals(best, metric)),
        difference_to_best: best.map(|best| entrant.difference(best, metric, confidence)),
        beyond: entrant
            .0
            .iter()
            .map(|ran| metric.beyond(&ran.measured.report))
            .sum(),
        complete: entrant.is_complete(),
        carries: entrant.carries(),
        volume: ran.volume.clone(),
        report: report.clone(),
    }
}

/// Returns true if all candidates received the same amount of work, seed by seed.
fn same_number(ran: &[RunResult], seeds: usize) -> bool {
    let of = |ran: &RunResult| given(&ran.measured.report);
    ran.iter()
        .zip(ran.iter().skip(seeds))
        .all(|(one, other)| of(one) == of(other))
}

/// Returns the amount of work of a candidate: calls if programs run, else requests.
fn given(report: &Report) -> u64 {
    match report.sources.hosts.as_slice() {
        [] => report.arrived.requests,
        hosts => hosts.iter().map(HostReport::calls).sum(),
    }
}

fn is_complete(report: &Report) -> bool {
    report.arrived.completed == report.arrived.requests
}

/// Returns the carried share of the load; 1 without overload.
fn carried_share(report: &Report) -> f64 {
    // The share of an overloaded candidate may round to 1. Below 1, it ranks behind all candidates
    // that carry the load.
    report.arrived.overload.as_ref().map_or(1.0, |overload| {
        overload.carried_share.min(1.0 - f64::EPSILON)
    })
}

/// Orders the better value first and NaN last.
fn better_first(metric: Metric, one: f64, other: f64) -> Ordering {
    match (one.is_nan(), other.is_nan()) {
        (false, false) if metric.more_is_better() => other.total_cmp(&one),
        (false, false) => one.total_cmp(&other),
        // false sorts before true, so NaN comes last.
        (one, other) => one.cmp(&other),
    }
}
