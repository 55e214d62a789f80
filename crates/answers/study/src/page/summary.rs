//! The top of a page: headlines, and the verdicts on all claims.

use super::choices;
use super::folds::{anchor, fold};
use super::{FolderPage, row};
use crate::claims::{ClaimVerdict, JudgedClaim};
use crate::expression::CONFIDENCE;
use crate::held_out::HeldOut;
use crate::study::Study;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::Path;

const MARK: &str = "<!-- summary: ";

/// Verdicts of a section. The section keeps them in a comment, so that the top of the page follows
/// from its sections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SectionSummary {
    /// Claims of the source with their verdicts.
    claims: Vec<VerdictLine>,
    /// Claims of this project.
    ours: Vec<VerdictLine>,
    /// Number of untestable sentences.
    untestable: usize,
    /// Verdicts that a variant reverses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) changes: Vec<VerdictChange>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct VerdictLine {
    id: String,
    says: String,
    verdict: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    headline: Option<HeadlineLine>,
}

/// A row of the headlines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct HeadlineLine {
    quote: String,
    published: String,
    obtained: String,
    cause: String,
    why: String,
}

/// A variant that reverses the verdict on a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct VerdictChange {
    /// Name of the claim.
    pub(super) id: String,
    /// Title of the variant.
    pub(super) with: String,
    /// True if the claim holds in the variant.
    pub(super) holds: bool,
}

impl VerdictLine {
    fn new(claim: &JudgedClaim) -> VerdictLine {
        let quote = match (&claim.quote, &claim.at) {
            (Some(quote), Some(at)) => format!("“{quote}” ({at})"),
            _ => String::new(),
        };
        VerdictLine {
            id: claim.id.clone(),
            says: claim.says.clone(),
            verdict: claim.verdict.text().to_owned(),
            headline: claim.headline.as_ref().map(|headline| HeadlineLine {
                quote,
                published: claim.published.clone(),
                obtained: claim.shown.clone(),
                cause: headline.cause.text().to_owned(),
                why: headline.why.clone(),
            }),
        }
    }
}

impl SectionSummary {
    pub(super) fn new(
        study: &Study,
        judged: &[JudgedClaim],
        changes: Vec<VerdictChange>,
    ) -> SectionSummary {
        let lines = |ours: bool| {
            let those = judged.iter().filter(move |claim| claim.ours == ours);
            those.map(VerdictLine::new).collect()
        };
        SectionSummary {
            claims: lines(false),
            ours: lines(true),
            untestable: study.config.untestable.len(),
            changes,
        }
    }

    /// Returns the comment with the summary.
    pub(super) fn comment(&self) -> String {
        // The text must not contain `--`, which would end the comment.
        let text = serde_json::to_string(self)
            .unwrap_or_default()
            .replace("--", "- -");
        format!("{MARK}{text} -->\n")
    }

    fn of_section(section: &str) -> Option<SectionSummary> {
        let line = section.lines().find_map(|line| line.strip_prefix(MARK))?;
        serde_json::from_str(line.strip_suffix(" -->")?).ok()
    }

    /// Returns the number of claims of the source with a verdict.
    fn count(&self, verdict: ClaimVerdict) -> usize {
        let same = |line: &&VerdictLine| line.verdict == verdict.text();
        self.claims.iter().filter(same).count()
    }
}

/// Returns a number with its noun: `1 claim`, `2 claims`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Returns the top of the page of `folder`, from its sections and all of its studies.
pub(super) fn head(
    folder: &Path,
    page: &FolderPage,
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
            let section = page.sections.get(&study.id)?;
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
