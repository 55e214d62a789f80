//! A study with the verdicts on its claims, for `study check` and for pages.

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
    /// Id of the study.
    pub study: &'a str,
    /// Title of the study.
    pub title: &'a str,
    /// Question of the study.
    pub question: &'a str,
    /// Source: the publication and the place in it.
    pub source: &'a str,
    /// Seeds and free choices with which the verdicts were tested.
    pub tried: Vec<String>,
    /// Claims of the study.
    pub claims: Vec<Judged>,
    /// Variants of the study.
    pub variants: Vec<Changed<'a>>,
    /// Figures of the study.
    pub figures: Vec<Drawn>,
}

/// The claims that a variant affects, judged in the variant.
#[derive(Clone, Debug, Serialize)]
pub struct Changed<'a> {
    /// Title of the variant.
    pub title: &'a str,
    /// The claims.
    pub claims: Vec<Judged>,
}

impl<'a> Checked<'a> {
    /// Judges the claims of study number `index` of a run list against the results and against
    /// `record`.
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
