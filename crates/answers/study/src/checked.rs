//! A study with its claims judged: what `study check` prints and pages show.

use crate::claims::Judged;
use crate::figure::{Drawn, drawn};
use crate::held_out::Record;
use crate::run_list::RunList;
use crate::store::Results;
use crate::study::Study;
use crate::variation::Variation;
use serde::Serialize;

/// The claims of one study.
#[derive(Clone, Debug, Serialize)]
pub struct Checked<'a> {
    /// Its id.
    pub study: &'a str,
    /// Its title.
    pub title: &'a str,
    /// What it asks.
    pub question: &'a str,
    /// What was published, and where.
    pub source: &'a str,
    /// What its verdicts were held against.
    pub tried: Vec<String>,
    /// Its claims.
    pub claims: Vec<Judged>,
    /// Its variants.
    pub variants: Vec<Changed<'a>>,
    /// Its figures.
    pub figures: Vec<Drawn>,
}

/// The claims that a change touches, with one thing changed.
#[derive(Clone, Debug, Serialize)]
pub struct Changed<'a> {
    /// What was changed.
    pub title: &'a str,
    /// The claims.
    pub claims: Vec<Judged>,
}

impl<'a> Checked<'a> {
    /// The claims of the study number `index` of a run list, held against results and against what `record` has.
    pub fn new(
        index: usize,
        study: &'a Study,
        run_list: &RunList,
        results: &Results,
        record: Option<&Record>,
    ) -> Checked<'a> {
        let table = |variation| run_list.table(index, study, variation, results);
        let variants = study
            .config
            .variants
            .iter()
            .enumerate()
            .map(|(number, variant)| {
                let variation = Variation::Variant(number);
                let touched = study
                    .claims
                    .iter()
                    .filter(|claim| run_list.touches(index, variation, claim));
                let claims = touched
                    .map(|claim| claim.judge_plainly(study, &table(variation)))
                    .collect();
                Changed {
                    title: &variant.title,
                    claims,
                }
            });
        Checked {
            study: &study.id,
            title: &study.config.title,
            question: &study.config.question,
            source: &study.config.source,
            tried: record
                .map(|record| record.tried.clone())
                .unwrap_or_default(),
            claims: study
                .claims
                .iter()
                .map(|claim| claim.judge(study, &table, record))
                .collect(),
            variants: variants.collect(),
            figures: drawn(study, &table(Variation::Base)),
        }
    }
}
