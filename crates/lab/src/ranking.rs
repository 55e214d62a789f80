//! The order of candidates, and how sure it is.

use crate::reasons::{Reason, reasons};
use crate::{Ran, Varied, VolumeReport};
use fullstroke_measure::{Difference, HostReport, Measured, Metric, Report, paired_difference};
use serde::Serialize;
use std::cmp::Ordering;

/// The confidence of the whole ranking.
const CONFIDENCE: f64 = 0.95;

/// Candidates in order, the best first.
///
/// A candidate that could not serve every request ranks behind all that could:
/// what it left out would flatter its times. Behind them rank those that do not
/// carry the load, by the share that they carry: response times that grow with
/// the length of the load do not rank drives. Differences to the best carry
/// intervals that hold together with 95 % confidence: each of the pairs that
/// could have been compared gets an equal share of the error (Bonferroni over
/// all pairs, because which candidate is best is itself read off the data).
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// The metric's dotted name.
    pub by: String,
    /// Whether a larger value is the better one.
    pub more_is_better: bool,
    /// The confidence of each value's interval, and of all differences together.
    pub confidence: f64,
    /// Whether all candidates were given the same number of requests. If not,
    /// they did not see the same workload.
    pub same_number_of_requests: bool,
    /// The candidates.
    pub candidates: Vec<Ranked>,
    /// Why some answer sooner than others: the leader than the next, and those
    /// that contradict what one might expect.
    pub reasons: Vec<Reason>,
}

/// A candidate in its place.
#[derive(Clone, Debug, Serialize)]
pub struct Ranked {
    /// From 1.
    pub rank: usize,
    /// The candidate's name.
    pub name: String,
    /// The values that were varied, by key.
    pub varied: Varied,
    /// The metric's value.
    pub value: f64,
    /// Half the width of its 95 % confidence interval, if there is one.
    pub ci95_half_width: Option<f64>,
    /// Its value less that of the best; `None` for the best itself, and for one
    /// that does not carry the load.
    pub difference_to_best: Option<Difference>,
    /// Whether it served every request.
    pub complete: bool,
    /// Whether it carries the load; `report.overload` has the share otherwise.
    pub carries: bool,
    /// What its volume amounts to.
    pub volume: VolumeReport,
    /// Everything that was measured.
    pub report: Report,
}

impl Ranking {
    /// Ranks what `run_all` returned. Equal values keep the order given.
    pub fn new(ran: &[Ran], metric: Metric) -> Ranking {
        let value = |ran: &Ran| metric.value(&ran.measured.report);
        let mut order: Vec<&Ran> = ran.iter().collect();
        order.sort_by(|one, other| {
            let complete = is_complete(&other.measured.report).cmp(&is_complete(&one.measured.report));
            let carried =
                carried_share(&other.measured.report).total_cmp(&carried_share(&one.measured.report));
            complete.then(carried).then_with(|| better_first(metric, value(one), value(other)))
        });
        let pairs = ran.len() * ran.len().saturating_sub(1) / 2;
        let confidence = 1.0 - (1.0 - CONFIDENCE) / pairs.max(1) as f64;
        let best = order.first().map(|best| &best.measured);
        let candidates: Vec<Ranked> = order
            .iter()
            .enumerate()
            .map(|(place, ran)| ranked(place, ran, best.filter(|_| place > 0), metric, confidence))
            .collect();
        Ranking {
            by: metric.name(),
            more_is_better: metric.more_is_better(),
            confidence: CONFIDENCE,
            same_number_of_requests: ran
                .windows(2)
                .all(|pair| given(&pair[0].measured.report) == given(&pair[1].measured.report)),
            reasons: reasons(&candidates),
            candidates,
        }
    }
}

impl Ranked {
    /// The name, with the values that were varied.
    pub fn label(&self) -> String {
        self.varied.label(&self.name)
    }
}

fn ranked(place: usize, ran: &Ran, best: Option<&Measured>, metric: Metric, confidence: f64) -> Ranked {
    let report = &ran.measured.report;
    let best = best.filter(|_| report.overload.is_none());
    Ranked {
        rank: place + 1,
        name: report.name.clone(),
        varied: ran.varied.clone(),
        value: metric.value(report),
        ci95_half_width: ran.measured.half_width(metric, CONFIDENCE),
        difference_to_best: best.map(|best| paired_difference(&ran.measured, best, metric, confidence)),
        complete: is_complete(report),
        carries: report.overload.is_none(),
        volume: ran.volume.clone(),
        report: report.clone(),
    }
}

/// How much a candidate was given to do: calls where programs run, else requests.
fn given(report: &Report) -> u64 {
    match report.hosts.as_slice() {
        [] => report.requests,
        hosts => hosts.iter().map(HostReport::calls).sum(),
    }
}

fn is_complete(report: &Report) -> bool {
    report.completed == report.requests
}

/// What is carried of the load; all of it unless found otherwise.
fn carried_share(report: &Report) -> f64 {
    report.overload.as_ref().map_or(1.0, |overload| overload.carried_share.min(1.0 - f64::EPSILON))
}

/// What is not a number comes last.
fn better_first(metric: Metric, one: f64, other: f64) -> Ordering {
    match (one.is_nan(), other.is_nan()) {
        (false, false) if metric.more_is_better() => other.total_cmp(&one),
        (false, false) => one.total_cmp(&other),
        (one, other) => one.cmp(&other),
    }
}
