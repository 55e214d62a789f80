//! The top of a page: headlines, and the verdicts on all claims.

use super::choices;
use super::folds::{anchor, fold};
use super::table::{counted, row};
use super::verdicts::{HeadlineLine, SectionSummary, VerdictLine};
use crate::expression::CONFIDENCE;
use crate::held_out::HeldOut;
use crate::study::Study;
use crate::verdict::ClaimVerdict;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Returns the top of the page of `folder`, from the texts of its sections by study, and from
/// all of its studies.
pub(super) fn head(
    folder: &Path,
    texts: &BTreeMap<String, String>,
    studies: &[Study],
    held_out: &HeldOut,
) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!(
        "# Results: {name}\n\n<!-- Written by `fullstroke study results --write {name}/`; a test holds it to the studies. -->\n\n"
    );
    let sections: Vec<(&Study, SectionSummary)> = studies
        .iter()
        .filter_map(|study| {
            let section = texts.get(&study.id)?;
            Some((study, SectionSummary::of_section(section)?))
        })
        .collect();
    first_sentence(&sections, studies.len(), &mut text);
    headlines(&sections, &mut text);
    by_study(&sections, &mut text);
    choices::matrix(&sections, held_out, &mut text);
    choices::table(studies, held_out, &mut text);
    all_statements(&sections, &mut text);
    let others = studies
        .iter()
        .any(|study| study.config.confidence != CONFIDENCE);
    let _ = write!(
        text,
        "± is half the width of the 95 % interval{}. If both ends of an interval over seeds do not give the same verdict, the claim is undecided. How to read the page: [docs/studies.md](../../docs/studies.md).\n\n",
        if others {
            ", unless a study says another"
        } else {
            ""
        }
    );
    text
}

/// Writes the number of claims by verdict in one sentence.
fn first_sentence(sections: &[(&Study, SectionSummary)], studies: usize, text: &mut String) {
    let count = |verdict| -> usize {
        sections
            .iter()
            .map(|(_, summary)| summary.count(verdict))
            .sum()
    };
    let claims: usize = sections
        .iter()
        .map(|(_, summary)| summary.claims.len())
        .sum();
    let untestable: usize = sections.iter().map(|(_, summary)| summary.untestable).sum();
    if claims > 0 || untestable > 0 {
        let _ = write!(
            text,
            "Of {} of the source {} hold.",
            counted(claims, "statement"),
            count(ClaimVerdict::Holds)
        );
        for (verdicts, words) in [
            (
                &[ClaimVerdict::Fragile][..],
                "hold as assumed, but not with other seeds or another open choice",
            ),
            (&[ClaimVerdict::Fitted][..], "are fitted"),
            (&[ClaimVerdict::Undecided][..], "are undecided"),
            (
                &[ClaimVerdict::DoesNotHold, ClaimVerdict::DiffersExplained][..],
                "do not hold",
            ),
        ] {
            let number: usize = verdicts.iter().map(|&verdict| count(verdict)).sum();
            if number > 0 {
                let _ = write!(text, " {number} {words}.");
            }
        }
        if untestable > 0 {
            let _ = write!(
                text,
                " {} cannot be tested.",
                counted(untestable, "sentence")
            );
        }
    }
    let ours: Vec<&VerdictLine> = sections
        .iter()
        .flat_map(|(_, summary)| &summary.ours)
        .collect();
    if !ours.is_empty() {
        let hold = ours
            .iter()
            .filter(|line| line.verdict == ClaimVerdict::Holds.text())
            .count();
        let space = if text.ends_with('.') { " " } else { "" };
        let _ = write!(text, "{space}Of {} claims of ours {hold} hold.", ours.len());
    }
    if sections.len() < studies {
        let _ = write!(
            text,
            " {} of {studies} studies are not in this count.",
            studies - sections.len()
        );
    }
    text.push_str("\n\n");
}

/// Writes the headlines of the source with their causes.
fn headlines(sections: &[(&Study, SectionSummary)], text: &mut String) {
    let lines: Vec<(&VerdictLine, &HeadlineLine)> = sections
        .iter()
        .flat_map(|(_, summary)| summary.claims.iter().chain(&summary.ours))
        .filter_map(|line| Some((line, line.headline.as_ref()?)))
        .collect();
    if lines.is_empty() {
        return;
    }
    text.push_str(
        "## Headlines\n\n| headline | published | here | verdict | cause |\n|---|---|---|---|---|\n",
    );
    for (line, headline) in lines {
        let says = if headline.quote.is_empty() {
            format!("{} ({})", line.says, line.id)
        } else {
            format!("{} ({})<br>{}", line.says, line.id, headline.quote)
        };
        text.push_str(&row([
            &says,
            &headline.published,
            &headline.obtained,
            &line.verdict,
            &format!("**{}**: {}", headline.cause, headline.why),
        ]));
    }
    text.push('\n');
}

/// Writes the number of claims of each study by verdict.
fn by_study(sections: &[(&Study, SectionSummary)], text: &mut String) {
    let columns: Vec<ClaimVerdict> = ClaimVerdict::ALL
        .into_iter()
        .filter(|&verdict| {
            sections
                .iter()
                .any(|(_, summary)| summary.count(verdict) > 0)
        })
        .collect();
    if columns.is_empty() {
        return;
    }
    let names: Vec<&str> = columns.iter().map(|verdict| verdict.text()).collect();
    let _ = writeln!(
        text,
        "## Verdicts by study\n\n| study | {} |\n|---{}|",
        names.join(" | "),
        "|---".repeat(columns.len())
    );
    for (study, summary) in sections {
        let counts: Vec<String> = columns
            .iter()
            .map(|&verdict| summary.count(verdict).to_string())
            .collect();
        let title = &study.config.title;
        let _ = writeln!(
            text,
            "| [{title}](#{}) | {} |",
            anchor(title),
            counts.join(" | ")
        );
    }
    text.push('\n');
}

/// Writes the claims by verdict, folded.
fn all_statements(sections: &[(&Study, SectionSummary)], text: &mut String) {
    let mut list = String::new();
    for verdict in ClaimVerdict::ALL {
        let lines: Vec<String> = sections
            .iter()
            .flat_map(|(_, summary)| &summary.claims)
            .filter(|line| line.verdict == verdict.text())
            .map(|line| format!("{} {}", line.id, line.says))
            .collect();
        if !lines.is_empty() {
            let _ = writeln!(
                list,
                "- **{}** ({}): {}.",
                verdict.text(),
                lines.len(),
                lines.join("; ")
            );
        }
    }
    if !list.is_empty() {
        fold("All statements by verdict", &list, text);
    }
}
