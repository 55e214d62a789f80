//! Verdicts of a section, kept in a comment of the section.

use crate::study::Study;
use crate::verdict::{ClaimVerdict, JudgedClaim};
use serde::{Deserialize, Serialize};

const MARK: &str = "<!-- summary: ";

/// Verdicts of a section. The section keeps them in a comment, so that the top of the page follows
/// from its sections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SectionSummary {
    /// Claims of the source with their verdicts.
    pub(super) claims: Vec<VerdictLine>,
    /// Claims of this project.
    pub(super) ours: Vec<VerdictLine>,
    /// Number of untestable sentences.
    pub(super) untestable: usize,
    /// Verdicts that a variant reverses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) changes: Vec<VerdictChange>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct VerdictLine {
    pub(super) id: String,
    pub(super) says: String,
    pub(super) verdict: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) headline: Option<HeadlineLine>,
}

/// A row of the headlines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct HeadlineLine {
    pub(super) quote: String,
    pub(super) published: String,
    pub(super) obtained: String,
    pub(super) cause: String,
    pub(super) why: String,
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

    /// Returns true if the claim has this verdict.
    pub(super) fn has(&self, verdict: ClaimVerdict) -> bool {
        self.verdict == verdict.text()
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

    pub(super) fn of_section(section: &str) -> Option<SectionSummary> {
        let line = section.lines().find_map(|line| line.strip_prefix(MARK))?;
        serde_json::from_str(line.strip_suffix(" -->")?).ok()
    }

    /// Returns the number of claims of the source with a verdict.
    pub(super) fn count(&self, verdict: ClaimVerdict) -> usize {
        self.claims.iter().filter(|line| line.has(verdict)).count()
    }
}
