//! `fullstroke study check`: whether claims hold.

use super::{Loaded, Selection};
use crate::output::{Failure, Output};
use clap::Args;
use fullstroke_measure::table;
use fullstroke_study::{Judged, Study};
use serde::Serialize;
use std::fmt::Write as _;

/// Hold the claims of studies against the results that there are. Status 1 if
/// one does not hold and the study does not explain why.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,

    /// As of `study run`: look at results that were made with these keys.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// The claims of one study.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    study: &'a str,
    claims: Vec<Judged>,
    variants: Vec<Changed<'a>>,
}

/// The claims that are looked at with one thing changed. They decide nothing.
#[derive(Debug, Serialize)]
struct Changed<'a> {
    title: &'a str,
    claims: Vec<Judged>,
}

pub(crate) fn execute(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let loaded = arguments.selection.load(&arguments.set)?;
    let checked: Vec<Checked<'_>> =
        loaded.studies.iter().enumerate().map(|(index, study)| check(index, study, &loaded)).collect();
    output.show(&checked, text(&checked))?;
    let passes = checked.iter().flat_map(|study| &study.claims).all(|claim| claim.verdict.passes());
    if passes { Ok(()) } else { Err(Failure::Checks) }
}

fn check<'a>(index: usize, study: &'a Study, loaded: &Loaded) -> Checked<'a> {
    let results = |variant| loaded.run_list.table(index, study, variant, &loaded.results);
    let variants = study.config.variants.iter().enumerate().map(|(number, variant)| Changed {
        title: &variant.title,
        claims: study
            .claims
            .iter()
            .filter(|claim| variant.claims.contains(&claim.config.id))
            .map(|claim| claim.judge_changed(study, &results(Some(number))))
            .collect(),
    });
    Checked {
        study: &study.id,
        claims: study.claims.iter().map(|claim| claim.judge(study, &results(None))).collect(),
        variants: variants.collect(),
    }
}

fn text(checked: &[Checked<'_>]) -> String {
    let mut text = String::new();
    for study in checked {
        let _ = writeln!(text, "{}\n{}\n", study.study, lines(&study.claims));
        for variant in &study.variants {
            let _ =
                writeln!(text, "{}, changed: {}\n{}\n", study.study, variant.title, lines(&variant.claims));
        }
    }
    let claims = || checked.iter().flat_map(|study| &study.claims);
    let hold = claims().filter(|claim| claim.verdict.passes()).count();
    let _ = write!(text, "{hold} of {} claims hold or are explained.", claims().count());
    text
}

fn lines(claims: &[Judged]) -> String {
    let mut table = table(["claim", "published", "obtained", "verdict", "what"], &[0, 1, 2, 3, 4]);
    for claim in claims {
        table.add_row([&claim.id, &claim.published, &claim.shown, claim.verdict.text(), &claim.says]);
    }
    let mut text = table.trim_fmt();
    for claim in claims {
        if let Some(why) = &claim.why {
            let _ = write!(text, "\n{}: {why}", claim.id);
        }
    }
    text
}
