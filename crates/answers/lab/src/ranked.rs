//! One candidate of a ranking.

use crate::{Varied, VolumeReport};
use fullstroke_measure::{Difference, Report};
use serde::Serialize;

/// A candidate with its rank.
#[derive(Clone, Debug, Serialize)]
pub struct Ranked {
    /// Rank, from 1.
    pub rank: usize,
    /// The candidate's name.
    pub name: String,
    /// Values of the varied keys.
    pub varied: Varied,
    /// Value of the metric.
    pub value: f64,
    /// Half the width of the 95 % confidence interval of `value`, if there is one.
    pub ci95_half_width: Option<f64>,
    /// True if seeds change the value; `None` for one seed. If false, the interval of the value
    /// comes from the first run. The same holds for a difference of two candidates whose values no
    /// seed changes.
    pub varies_with_seed: Option<bool>,
    /// True if the value equals that of the best candidate exactly, with each seed. False for the
    /// best candidate.
    pub equal_to_best: bool,
    /// Value less that of the best candidate. `None` for the best candidate, and for a candidate
    /// that does not carry the load.
    pub difference_to_best: Option<Difference>,
    /// Number of requests beyond `value` if the metric is a percentile, over all seeds.
    pub beyond: Option<u64>,
    /// True if the candidate served every request.
    pub complete: bool,
    /// True if the candidate carries the load. If false, `report.overload` holds the carried share.
    pub carries: bool,
    /// Size and redundancy of the volume.
    pub volume: VolumeReport,
    /// All measures.
    pub report: Report,
}

impl Ranked {
    /// Returns the name and the values of the varied keys.
    pub fn label(&self) -> String {
        self.varied.label(&self.name)
    }
}
