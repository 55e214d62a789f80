//! The top of a page: headlines, and the verdicts on all claims.

use super::choices;
use super::folds::{anchor, fold};
use super::table::{counted, holding, row};
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
        "± is half the width of the 95 % interval{}. If the values of an interval over seeds do not all give the same verdict, the claim is undecided. How to read the page: [docs/studies.md](../../docs/studies.md).\n\n",
        if others {
            ", unless a study says another"
        } else {
            ""
        }
    );
    text
}

/// Writes the number of claims by verdict, first of the source's and then of this project's.
fn first_sentence(sections: &[(&Study, SectionSummary)], studies: usize, text: &mut String) {
    let lines = |of: fn(&SectionSummary) -> &[VerdictLine]| -> Vec<&VerdictLine> {
        sections
            .iter()
            .flat_map(|(_, summary)| of(summary))
            .collect()
    };
    let claims = lines(|summary| &summary.claims);
    let untestable: usize = sections.iter().map(|(_, summary)| summary.untestable).sum();
    let mut sentences = Vec::new();
    if !claims.is_empty() || untestable > 0 {
        let whole = format!("{} of the source", counted(claims.len(), "statement"));
        sentences.push(tally(&whole, &claims));
        if untestable > 0 {
            let number = counted(untestable, "sentence");
            sentences.push(format!("{number} cannot be tested."));
        }
    }
    let ours = lines(|summary| &summary.ours);
    if !ours.is_empty() {
        let whole = format!("{} of ours", counted(ours.len(), "claim"));
        sentences.push(tally(&whole, &ours));
    }
    if sections.len() < studies {
        let missing = studies - sections.len();
        sentences.push(format!(
            "{missing} of {studies} studies are not in this count."
        ));
    }
    let _ = write!(text, "{}\n\n", sentences.join(" "));
}

/// Returns the number of claims of each verdict as sentences.
fn tally(whole: &str, lines: &[&VerdictLine]) -> String {
    let count = |verdict| lines.iter().filter(|line| line.has(verdict)).count();
    let mut text = format!("Of {whole} {}.", holding(count(ClaimVerdict::Holds)));
    let fragile = count(ClaimVerdict::Fragile);
    if fragile > 0 {
        let holds = holding(fragile);
        let _ = write!(
            text,
            " {holds} only with our settings (fragile), and not with other seeds or another open choice."
        );
    }
    let explained = count(ClaimVerdict::DiffersExplained);
    for (number, one, several) in [
        (count(ClaimVerdict::Fitted), "is fitted", "are fitted"),
        (
            count(ClaimVerdict::Undecided),
            "is undecided",
            "are undecided",
        ),
        (
            count(ClaimVerdict::DoesNotHold) + explained,
            "does not hold",
            "do not hold",
        ),
    ] {
        if number > 0 {
            let does = if number == 1 { one } else { several };
            let _ = write!(text, " {number} {does}.");
        }
    }
    if explained > 0 {
        let _ = write!(text, " A variant shows the cause for {explained} of these.");
    }
    text
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
            .filter(|line| line.has(verdict))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_is_counted_with_its_own_verb() {
        use ClaimVerdict::{DiffersExplained, DoesNotHold, Fragile, Holds, Undecided};
        let verdicts = [Holds, Fragile, Undecided, DoesNotHold, DiffersExplained];
        let lines = verdicts.map(|verdict| VerdictLine {
            id: "T-1".to_owned(),
            says: String::new(),
            verdict: verdict.text().to_owned(),
            headline: None,
        });
        let all: Vec<&VerdictLine> = lines.iter().collect();
        assert_eq!(
            tally("5 claims of ours", &all),
            "Of 5 claims of ours 1 holds. 1 holds only with our settings (fragile), and not with other seeds or another open choice. 1 is undecided. 2 do not hold. A variant shows the cause for 1 of these."
        );
        let fragile = &all[1..2];
        assert_eq!(
            tally("1 claim of ours", fragile),
            "Of 1 claim of ours 0 hold. 1 holds only with our settings (fragile), and not with other seeds or another open choice."
        );
    }
}
