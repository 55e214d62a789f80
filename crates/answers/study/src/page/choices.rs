//! Settings that reverse verdicts: open choices of the source, variants and other seeds.

use super::folds::fold;
use super::table::{counted, row};
use super::verdicts::SectionSummary;
use crate::held_out::HeldOut;
use crate::study::Study;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A setting that reverses a verdict, and the claims.
#[derive(Default)]
struct Reversals {
    /// Claims in the order of the page, with `true` if they hold with the setting.
    settings: Vec<(String, BTreeMap<String, bool>)>,
    claims: Vec<String>,
}

impl Reversals {
    fn add(&mut self, with: &str, id: &str, holds: bool) {
        if !self.claims.iter().any(|known| known == id) {
            self.claims.push(id.to_owned());
        }
        let at = self.settings.iter().position(|(name, _)| name == with);
        let at = at.unwrap_or_else(|| {
            self.settings.push((with.to_owned(), BTreeMap::new()));
            self.settings.len() - 1
        });
        self.settings[at].1.insert(id.to_owned(), holds);
    }
}

/// Writes the matrix of claims by settings. A cell is filled only if the setting reverses the verdict
/// on the claim.
pub(super) fn matrix(sections: &[(&Study, SectionSummary)], held_out: &HeldOut, text: &mut String) {
    let mut found = Reversals::default();
    for (study, summary) in sections {
        for claim in &study.claims {
            let id = &claim.config.id;
            for change in summary.changes.iter().filter(|change| change.id == *id) {
                found.add(&change.with, id, change.holds);
            }
            let record = held_out.of(study);
            let flips = record.and_then(|record| record.flips.get(id));
            for flip in flips.into_iter().flatten() {
                found.add(&flip.with, id, flip.holds);
            }
        }
    }
    if found.settings.is_empty() {
        return;
    }
    text.push_str(
        "## Settings that reverse a verdict\n\n+: the claim holds with this setting. −: the claim does not hold with this setting. Other settings and claims are left out.\n\n",
    );
    for (number, (name, _)) in found.settings.iter().enumerate() {
        let _ = writeln!(text, "{}. {name}", number + 1);
    }
    let numbers: Vec<String> = (1..=found.settings.len())
        .map(|number| number.to_string())
        .collect();
    let _ = writeln!(
        text,
        "\n| claim | {} |\n|---{}|",
        numbers.join(" | "),
        "|---".repeat(numbers.len())
    );
    for id in &found.claims {
        let cells: Vec<&str> = found
            .settings
            .iter()
            .map(|(_, claims)| match claims.get(id) {
                Some(true) => "+",
                Some(false) => "−",
                None => "",
            })
            .collect();
        let _ = writeln!(text, "| {id} | {} |", cells.join(" | "));
    }
    text.push('\n');
}

/// Writes the choices that the source leaves open, each once, folded.
pub(super) fn table(studies: &[Study], held_out: &HeldOut, text: &mut String) {
    let mut names: Vec<&str> = Vec::new();
    for choice in studies.iter().flat_map(|study| &study.choices) {
        if !names.contains(&choice.config.name.as_str()) {
            names.push(&choice.config.name);
        }
    }
    if names.is_empty() {
        return;
    }
    let mut table = String::from(
        "| choice | taken | why | chosen | tried | verdicts that change |\n|---|---|---|---|---|---|\n",
    );
    for name in &names {
        let having = || {
            studies.iter().filter(|study| {
                study
                    .choices
                    .iter()
                    .any(|choice| choice.config.name == *name)
            })
        };
        let Some(choice) = having()
            .flat_map(|study| &study.choices)
            .find(|choice| choice.config.name == *name)
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
        table.push_str(&row([
            name,
            &config.taken,
            &config.why,
            &config.chosen,
            &tried.join(", "),
            &flips,
        ]));
    }
    let leaves = "that the source leaves open";
    let title = format!("{} {leaves}", counted(names.len(), "choice"));
    fold(&title, &table, text);
}
