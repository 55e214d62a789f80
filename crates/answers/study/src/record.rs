//! Verdicts of one study under other settings.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Record of one study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// Digest of the study without its prose at the time of the record.
    pub(crate) substance: String,
    /// Build of the runs.
    pub(crate) version: String,
    /// Tested settings.
    pub tried: Vec<String>,
    /// Settings with another verdict on claims, by the claim's id. Claims without an entry
    /// kept their verdict.
    pub flips: BTreeMap<String, Vec<VerdictFlip>>,
    /// Settings that leave a claim undecided that the study decides, by the claim's id. Such a
    /// setting reverses no verdict, because its interval holds both answers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub undecided: BTreeMap<String, Vec<String>>,
}

/// A setting with another verdict on a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictFlip {
    /// The setting.
    pub with: String,
    /// True if the claim holds with this setting.
    pub holds: bool,
    /// Value obtained with this setting.
    pub obtained: String,
}

impl StudyRecord {
    /// Returns the claims whose verdicts a choice reverses, each with the value of the choice.
    pub(crate) fn flipped_by(&self, choice: &str) -> Vec<String> {
        let mut flipped = Vec::new();
        for (id, flips) in &self.flips {
            let values = flips
                .iter()
                .filter_map(|flip| flip.with.strip_prefix(choice)?.strip_prefix(": "));
            let values: Vec<&str> = values.collect();
            if !values.is_empty() {
                flipped.push(format!("{id} ({})", values.join(", ")));
            }
        }
        flipped
    }
}
