//! The top of a page: the verdicts on all claims, and the assumptions.

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
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct VerdictLine {
    id: String,
    says: String,
    verdict: String,
}

impl SectionSummary {
    pub(super) fn new(study: &Study, judged: &[JudgedClaim]) -> SectionSummary {
        let lines = |ours: bool| {
            let those = judged.iter().filter(move |claim| claim.ours == ours);
            let line = |claim: &JudgedClaim| VerdictLine {
                id: claim.id.clone(),
                says: claim.says.clone(),
                verdict: claim.verdict.text().to_owned(),
            };
            those.map(line).collect()
        };
        SectionSummary {
            claims: lines(false),
            ours: lines(true),
            untestable: study.config.untestable.len(),
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
    let sections = studies
        .iter()
        .filter_map(|study| page.sections.get(&study.id));
    let summaries: Vec<SectionSummary> = sections
        .filter_map(|section| SectionSummary::of_section(section))
        .collect();
    verdicts(&summaries, studies.len(), &mut text);
    choices(studies, held_out, &mut text);
    let others = studies
        .iter()
        .any(|study| study.config.confidence != CONFIDENCE);
    let _ = write!(
        text,
        "± is half the width of the 95 % interval{}; verdicts are about the estimate. How to read it: [docs/studies.md](../../docs/studies.md).\n\n",
        if others {
            ", unless a study says another"
        } else {
            ""
        }
    );
    text
}

/// Writes the number of claims that no source makes.
fn own_claims(summaries: &[SectionSummary], text: &mut String) {
    let ours: Vec<&VerdictLine> = summaries.iter().flat_map(|summary| &summary.ours).collect();
    if !ours.is_empty() {
        let hold = ours
            .iter()
            .filter(|line| line.verdict == ClaimVerdict::Holds.text())
            .count();
        let space = if text.ends_with('.') { " " } else { "" };
        let _ = write!(text, "{space}Of {} claims of ours {hold} hold.", ours.len());
    }
}

/// Writes the claims by verdict.
fn verdicts(summaries: &[SectionSummary], studies: usize, text: &mut String) {
    let claims: Vec<&VerdictLine> = summaries
        .iter()
        .flat_map(|summary| &summary.claims)
        .collect();
    let with = |verdict: ClaimVerdict| -> Vec<&VerdictLine> {
        claims
            .iter()
            .copied()
            .filter(|line| line.verdict == verdict.text())
            .collect()
    };
    let untestable: usize = summaries.iter().map(|summary| summary.untestable).sum();
    if !claims.is_empty() || untestable > 0 {
        let _ = write!(
            text,
            "Of {} statements of the source {} hold, {} hold as assumed and are fragile, {} do not hold; {} sentences cannot be tested.",
            claims.len(),
            with(ClaimVerdict::Holds).len(),
            with(ClaimVerdict::Fragile).len(),
            with(ClaimVerdict::DoesNotHold).len() + with(ClaimVerdict::DiffersExplained).len(),
            untestable,
        );
    }
    own_claims(summaries, text);
    if summaries.len() < studies {
        let _ = write!(
            text,
            " {} of {studies} studies are not in this count.",
            studies - summaries.len()
        );
    }
    text.push_str("\n\n");
    for (verdict, title) in [
        (ClaimVerdict::Holds, "Reproduced"),
        (
            ClaimVerdict::Fragile,
            "Fragile: reproduced as assumed, and not with other seeds or another choice below",
        ),
        (
            ClaimVerdict::DiffersExplained,
            "Not reproduced; a variant restores it",
        ),
        (ClaimVerdict::DoesNotHold, "Not reproduced"),
        (
            ClaimVerdict::HoldsThoughExplained,
            "Reproduced, though a variant explains why not",
        ),
        (ClaimVerdict::NotRun, "Not run"),
        (ClaimVerdict::Broken, "Broken"),
    ] {
        let lines = with(verdict);
        if !lines.is_empty() {
            let each: Vec<String> = lines
                .iter()
                .map(|line| format!("{} {}", line.id, line.says))
                .collect();
            let _ = writeln!(
                text,
                "- **{title}** ({}): {}.",
                lines.len(),
                each.join("; ")
            );
        }
    }
    text.push('\n');
}

/// Writes the choices that the source leaves open, each once.
fn choices(studies: &[Study], held_out: &HeldOut, text: &mut String) {
    let mut names: Vec<&str> = Vec::new();
    for choice in studies.iter().flat_map(|study| &study.choices) {
        if !names.contains(&choice.config.name.as_str()) {
            names.push(&choice.config.name);
        }
    }
    if names.is_empty() {
        return;
    }
    text.push_str(
        "What the source leaves open:\n\n| choice | taken | why | chosen | tried | verdicts that it flips |\n|---|---|---|---|---|---|\n",
    );
    for name in names {
        let having = || {
            studies.iter().filter(|study| {
                study
                    .choices
                    .iter()
                    .any(|choice| choice.config.name == name)
            })
        };
        let Some(choice) = having()
            .flat_map(|study| &study.choices)
            .find(|choice| choice.config.name == name)
        else {
            continue;
        };
        let tried: Vec<&str> = choice
            .values
            .iter()
            .map(|value| value.name.as_str())
            .collect();
        let mut flipped = Vec::new();
        let mut unknown = 0;
        for study in having() {
            match held_out.of(study) {
                Some(record) => flipped.extend(record.flipped_by(name)),
                None => unknown += usize::from(!study.matrix.points().is_empty()),
            }
        }
        let flips = match (tried.is_empty(), flipped.is_empty(), unknown) {
            (true, ..) => String::new(),
            (_, true, 0) => "none".to_owned(),
            (_, true, _) => "not known in all studies".to_owned(),
            (_, false, 0) => flipped.join(", "),
            (_, false, _) => format!("{}; not known in all studies", flipped.join(", ")),
        };
        let config = &choice.config;
        text.push_str(&row([
            name,
            &config.taken,
            &config.why,
            &config.chosen,
            &tried.join(", "),
            &flips,
        ]));
    }
    text.push('\n');
}
