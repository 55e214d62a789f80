//! The section of one study: figures in view; claims, variants, notes and numbers folded.

use super::folds::fold;
use super::table::{counted, holding, row};
use super::verdicts::{SectionSummary, VerdictChange};
use crate::expression::CONFIDENCE;
use crate::figure::Figure;
use crate::record::StudyRecord;
use crate::run_list::RunList;
use crate::store::Results;
use crate::study::Study;
use crate::variation::Variation;
use crate::verdict::{ClaimVerdict, JudgedClaim};
use crate::{StudyError, text};
use std::fmt::Write as _;

const FIGURES: &str = "figures";
pub(super) const MARK: &str = "<!-- study: ";

/// Draws a figure as SVG, or returns an error message. The study provides the numbers of a figure,
/// the caller the style.
pub type Draw<'a> = &'a dyn Fn(&Figure) -> Result<String, String>;

/// Section and figures of one study with its results.
pub(super) struct StudySection {
    pub(super) text: String,
    /// File names below the folder, and SVG.
    pub(super) figures: Vec<(String, String)>,
}

impl StudySection {
    /// Returns the section; `None` if results are missing.
    pub(super) fn new(
        index: usize,
        study: &Study,
        run_list: &RunList,
        results: &Results,
        record: Option<&StudyRecord>,
        draw: Draw<'_>,
    ) -> Result<Option<StudySection>, StudyError> {
        let table = |variation: Variation| run_list.table(index, study, variation, results);
        if !study
            .variations()
            .into_iter()
            .all(|variation| table(variation).is_complete())
        {
            return Ok(None);
        }
        // Only with all variations: a page with half of the variants would be mistaken for a study
        // without the others.
        let own = table(Variation::Base);
        let judged: Vec<JudgedClaim> = study
            .claims
            .iter()
            .map(|claim| claim.judge(study, &table, record))
            .collect();
        let variants = Variants::new(index, study, &judged, run_list, results);
        let mut section = opening(study, &judged, variants.changes);
        let mut figures = Vec::new();
        for number in 0..study.figures.len() {
            let Some(figure) = Figure::new(study, number, &own) else {
                return Ok(None);
            };
            let config = &study.config.figures[number];
            let stem = study.id.rsplit('/').next().unwrap_or_default();
            let name = format!("{FIGURES}/{stem}-{}.svg", config.id);
            let _ = write!(section, "![{}]({name})\n\n", config.title);
            if let Some(caption) = &study.captions[number] {
                let _ = write!(section, "*{}*\n\n", caption.filled(&study.evaluator(&own)));
            }
            let mut table = String::new();
            numbers(&config.x, &figure, &mut table);
            fold("Numbers of the figure", &table, &mut section);
            let svg = draw(&figure).map_err(|message| StudyError::Figure {
                figure: figure.id().to_owned(),
                message,
            })?;
            figures.push((name, svg));
        }
        claims(&judged, record, &mut section);
        if !variants.text.is_empty() {
            let title = counted(study.config.variants.len(), "variant");
            fold(&title, &variants.text, &mut section);
        }
        untestable(study, &mut section);
        if let Some(notes) = &study.notes {
            fold("Notes", &notes.filled(&study.evaluator(&own)), &mut section);
        }
        Ok(Some(StudySection {
            text: section,
            figures,
        }))
    }
}

pub(super) fn mark(study: &Study) -> String {
    format!("{MARK}{} {} -->\n", study.id, study.digest)
}

fn opening(study: &Study, judged: &[JudgedClaim], changes: Vec<VerdictChange>) -> String {
    let config = &study.config;
    let summary = SectionSummary::new(study, judged, changes).comment();
    let mut text = format!(
        "{}{summary}\n## {}\n\n{}\n\n",
        mark(study),
        config.title,
        config.question.trim()
    );
    let (points, seeds) = (study.matrix.points().len(), config.replications);
    let _ = write!(text, "Source: {}. `{}`", config.source, study.id);
    if points > 0 {
        let _ = write!(
            text,
            ": {}, {} each",
            counted(points, "point"),
            counted(seeds as usize, "seed")
        );
        if seeds == 1 {
            text.push_str("; intervals are those within a run");
        } else if config.confidence != CONFIDENCE {
            let _ = write!(text, "; intervals of {} %", 100.0 * config.confidence);
        }
    }
    text.push_str(".\n\n");
    text
}

pub(super) fn not_run(study: &Study) -> String {
    let judged: Vec<JudgedClaim> = study.claims.iter().map(crate::Claim::not_run).collect();
    let mut text = opening(study, &judged, Vec::new());
    text.push_str("Not run yet.\n\n");
    claims(&judged, None, &mut text);
    text
}

/// Writes the claims with their quotes, folded. The title says how many hold.
fn claims(judged: &[JudgedClaim], record: Option<&StudyRecord>, section: &mut String) {
    if judged.is_empty() {
        return;
    }
    let mut table = String::from(
        "| claim | what | published | holds if | obtained | verdict |\n|---|---|---|---|---|---|\n",
    );
    for claim in judged {
        let what = match (&claim.quote, &claim.at) {
            (Some(quote), Some(at)) => format!("{}<br>“{quote}” ({at})", claim.says),
            _ if claim.ours => format!("{} (ours)", claim.says),
            _ => claim.says.clone(),
        };
        let cells = [
            &claim.id,
            &what,
            &claim.published,
            &claim.holds_if,
            &claim.shown,
            &verdict(claim),
        ];
        table.push_str(&row(cells.map(String::as_str)));
    }
    table.push('\n');
    held_out(judged, record, &mut table);
    let hold = judged
        .iter()
        .filter(|claim| claim.verdict == ClaimVerdict::Holds)
        .count();
    let title = format!("{}, {}", counted(judged.len(), "claim"), holding(hold));
    fold(&title, &table, section);
}

fn verdict(claim: &JudgedClaim) -> String {
    let text = claim.verdict.text();
    let mut cell = if claim.verdict == ClaimVerdict::Holds {
        text.to_owned()
    } else {
        format!("**{text}**")
    };
    if let (Some(why), true) = (&claim.why, claim.verdict != ClaimVerdict::Holds) {
        let _ = write!(cell, ": {why}");
    }
    // All flips answer against the estimate. The verdict does not tell the answer: the estimate of
    // an undecided or fitted claim may hold or not.
    if !claim.flips.is_empty() {
        let does = if claim.estimate_holds {
            "does not hold"
        } else {
            "holds"
        };
        let _ = write!(cell, "; {does} with {}", claim.flips.join("; "));
    }
    cell
}

/// Writes the settings with which the verdicts were tested.
fn held_out(judged: &[JudgedClaim], record: Option<&StudyRecord>, section: &mut String) {
    let Some(record) = record.filter(|record| !record.tried.is_empty()) else {
        return;
    };
    let flipped = judged
        .iter()
        .filter(|claim| !claim.flips.is_empty())
        .count();
    let _ = write!(
        section,
        "Also run with: {}. {} of {} verdicts stay the same under all these settings.",
        record.tried.join("; "),
        judged.len() - flipped,
        judged.len()
    );
    let undecided: Vec<String> = judged
        .iter()
        .filter(|claim| !claim.undecided_with.is_empty())
        .map(|claim| format!("{} ({})", claim.id, claim.undecided_with.join(", ")))
        .collect();
    if !undecided.is_empty() {
        let _ = write!(
            section,
            " Undecided with these settings: {}.",
            undecided.join("; ")
        );
    }
    section.push_str("\n\n");
}

/// Claims that the variants of a study affect.
struct Variants {
    /// A table for each variant.
    text: String,
    /// Verdicts that a variant reverses.
    changes: Vec<VerdictChange>,
}

impl Variants {
    fn new(
        index: usize,
        study: &Study,
        judged: &[JudgedClaim],
        run_list: &RunList,
        results: &Results,
    ) -> Variants {
        let (mut text, mut changes) = (String::new(), Vec::new());
        for (number, variant) in study.config.variants.iter().enumerate() {
            let variation = Variation::Variant(number);
            let data = run_list.table(index, study, variation, results);
            let _ = write!(text, "Variant: {}.\n\n", variant.title);
            text.push_str(
                "| claim | as assumed | in the variant | verdict in the variant |\n|---|---|---|---|\n",
            );
            let mut untouched = Vec::new();
            for (claim, before) in study.claims.iter().zip(judged) {
                // A claim on points that the variant leaves as they are would repeat its verdict
                // and seem to survive the change.
                if !run_list.touches(index, variation, claim) {
                    untouched.push(before.id.as_str());
                    continue;
                }
                let after = claim.judge_plainly(study, &data);
                let verdict = after.verdict.text();
                text.push_str(&row([&before.id, &before.shown, &after.shown, verdict]));
                // An interval that holds both answers reverses no verdict.
                if after.verdict != ClaimVerdict::Undecided
                    && after.estimate_holds != before.estimate_holds
                {
                    changes.push(VerdictChange {
                        id: before.id.clone(),
                        with: variant.title.clone(),
                        holds: after.estimate_holds,
                    });
                }
            }
            text.push('\n');
            if !untouched.is_empty() {
                let _ = write!(
                    text,
                    "These claims do not use the changed points: {}.\n\n",
                    untouched.join(", ")
                );
            }
        }
        Variants { text, changes }
    }
}

/// Writes the untestable sentences.
fn untestable(study: &Study, section: &mut String) {
    if study.config.untestable.is_empty() {
        return;
    }
    let mut list = String::new();
    for sentence in &study.config.untestable {
        let _ = writeln!(
            list,
            "- “{}” ({}): {}",
            sentence.quote, sentence.at, sentence.why
        );
    }
    let title = counted(study.config.untestable.len(), "sentence");
    fold(&format!("{title} not testable here"), &list, section);
}

/// Writes the table of a figure's numbers.
fn numbers(x: &str, figure: &Figure, section: &mut String) {
    let name = |name: &str| {
        if name.is_empty() {
            "value".to_owned()
        } else {
            name.to_owned()
        }
    };
    let mut names = Vec::new();
    for line in &figure.lines {
        names.push(name(&line.name));
        if !line.published.is_empty() {
            names.push(format!("{}, published", name(&line.name)));
        }
    }
    let _ = writeln!(
        section,
        "| {x} | {} |\n|---{}|",
        names.join(" | "),
        "|---".repeat(names.len())
    );
    for (at, (place, tick)) in figure.ticks.iter().enumerate() {
        let cell = |point: Option<(f64, Option<f64>)>| match point {
            Some((value, width)) => text::with_width(value, width),
            None => String::new(),
        };
        let mut cells = Vec::new();
        for line in &figure.lines {
            cells.push(cell(line.points[at]));
            if !line.published.is_empty() {
                // The source may have printed fewer points than the study ran.
                let published = line.published.iter().find(|point| point.0 == *place);
                cells.push(
                    published.map_or_else(String::new, |point| text::significant(point.1, 3)),
                );
            }
        }
        let _ = writeln!(section, "| {tick} | {} |", cells.join(" | "));
    }
    section.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_says_how_a_setting_answers_whatever_its_own_verdict() {
        use ClaimVerdict::{DoesNotHold, Fitted, Fragile, Undecided};
        for (own, estimate_holds, words) in [
            (Fragile, true, "; does not hold with order: look: 0.5"),
            (Fitted, true, "; does not hold with order: look: 0.5"),
            (Undecided, true, "; does not hold with order: look: 0.5"),
            (Undecided, false, "; holds with order: look: 0.5"),
            (DoesNotHold, false, "; holds with order: look: 0.5"),
        ] {
            let claim = JudgedClaim {
                flips: vec!["order: look: 0.5".to_owned()],
                ..JudgedClaim::of_test(own, estimate_holds)
            };
            let cell = verdict(&claim);
            assert!(cell.ends_with(words), "{own:?} {estimate_holds}: {cell}");
        }
    }
}
