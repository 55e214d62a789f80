//! A study with the verdicts on its claims, for `study check` and for pages.

use crate::figure::{FigureNumbers, drawn};
use crate::record::StudyRecord;
use crate::run_list::RunList;
use crate::store::Results;
use crate::study::Study;
use crate::variation::Variation;
use crate::verdict::JudgedClaim;
use serde::Serialize;

/// The claims of one study.
#[derive(Clone, Debug, Serialize)]
pub struct CheckedClaims<'a> {
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
    pub claims: Vec<JudgedClaim>,
    /// Variants of the study.
    pub variants: Vec<ChangedClaims<'a>>,
    /// Figures of the study.
    pub figures: Vec<FigureNumbers>,
}

/// The claims that a variant affects, judged in the variant.
#[derive(Clone, Debug, Serialize)]
pub struct ChangedClaims<'a> {
    /// Title of the variant.
    pub title: &'a str,
    /// The claims.
    pub claims: Vec<JudgedClaim>,
}

impl<'a> CheckedClaims<'a> {
    /// Judges the claims of study number `index` of a run list against the results and against
    /// `record`.
    pub fn new(
        index: usize,
        study: &'a Study,
        run_list: &RunList,
        results: &Results,
        record: Option<&StudyRecord>,
    ) -> CheckedClaims<'a> {
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
                ChangedClaims {
                    title: &variant.title,
                    claims,
                }
            });
        CheckedClaims {
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
