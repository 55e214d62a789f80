//! The settings of one run of PostMark.

use fullstroke_contract::{Reason, reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of a file. PostMark reserves twice the length of its longest file, in an `int`.
pub(super) const SIZE_MAX: u64 = (1 << 30) - 1;
/// Maximum number of files. The table has twice as many entries of 12 bytes: 240 MB.
pub(super) const FILES_MAX: u64 = 10_000_000;
/// Maximum number of transactions. File names are numbers of 32 bits.
pub(super) const TRANSACTIONS_MAX: u64 = 1_000_000_000;
/// Maximum number of subdirectories of one location.
pub(super) const SUBDIRECTORIES_MAX: u64 = 1_000_000;
/// Maximum number of locations, and maximum weight of a location.
pub(super) const LOCATIONS_MAX: usize = 1000;
pub(super) const WEIGHT_MAX: u64 = 1_000_000;

/// Format of PostMark's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Text.
    Verbose,
    /// One line of numbers.
    Terse,
}

/// A directory for files, and its weight relative to the other directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WeightedDirectory {
    pub path: String,
    pub weight: u32,
}

/// The settings of one run. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PostmarkSettings {
    pub size_low: u32,
    pub size_high: u32,
    pub number: u32,
    pub transactions: u32,
    pub subdirectories: u32,
    pub locations: Vec<WeightedDirectory>,
    pub read: u32,
    pub write: u32,
    pub buffering: bool,
    /// Share of reads in tenths; `None` for neither reads nor appends.
    pub bias_read: Option<u32>,
    /// Share of creations in tenths; `None` for neither creations nor deletions.
    pub bias_create: Option<u32>,
    pub seed: u32,
    pub style: Style,
}

impl Default for PostmarkSettings {
    /// Returns PostMark's own defaults (1.5, "Configurable Parameters").
    fn default() -> PostmarkSettings {
        PostmarkSettings {
            size_low: 500,
            size_high: 10_000,
            number: 500,
            transactions: 500,
            subdirectories: 0,
            locations: Vec::new(),
            read: 512,
            write: 512,
            buffering: true,
            bias_read: Some(5),
            bias_create: Some(5),
            seed: 42,
            style: Style::Verbose,
        }
    }
}

/// Returns a whole number from `low` to `high`, or an error with the values found and expected.
pub(super) fn within(found: u64, low: u64, high: u64) -> Result<u32, Reason> {
    u32::try_from(found)
        .ok()
        .filter(|_| (low..=high).contains(&found))
        .ok_or_else(|| reason!("found {found}; expected {low} to {high}"))
}

/// Reads a bias: tenths, or -1 for none.
pub(super) fn bias(found: i64) -> Result<Option<u32>, Reason> {
    match found {
        -1 => Ok(None),
        0..=10 => Ok(Some(found as u32)),
        _ => Err(reason!(
            "found {found}; expected 0 to 10, or -1 for neither"
        )),
    }
}

/// Reads `PATH` or `PATH WEIGHT`.
pub(super) fn location(words: &[&str]) -> Result<WeightedDirectory, Reason> {
    let (path, weight) = match *words {
        [path] => (path, 1),
        [path, weight] => (path, within(whole(weight)?, 1, WEIGHT_MAX)?),
        _ => {
            return Err(reason!(
                "found {} words; expected a directory, and its weight",
                words.len()
            ));
        }
    };
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    if parts.contains(&"..") {
        return Err(reason!(
            "found `{path}`; expected a directory from the root on, without `..`"
        ));
    }
    Ok(WeightedDirectory {
        path: parts.join("/"),
        weight,
    })
}

/// Reads a whole number.
pub(super) fn whole(word: &str) -> Result<u64, Reason> {
    word.parse()
        .map_err(|_| reason!("found `{word}`; expected a whole number"))
}
