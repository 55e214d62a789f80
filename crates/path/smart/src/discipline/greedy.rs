//! Greedy: the command with the shortest access time among the commands with enough free segments.
//! Chang & Du, section 3.1. At equal times an XPW goes first.

use super::XorDiscipline;
use crate::choices::{Choices, NextCommand};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str =
    "shortest access time first, among the commands for which segments are free";

/// Keys of `greedy`: none.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {}

struct Greedy;

pub(super) fn build(keys: &Keys, _segments: u32) -> Result<Box<dyn XorDiscipline>, ConfigError> {
    let Config {} = read(keys)?;
    Ok(Box::new(Greedy))
}

impl XorDiscipline for Greedy {
    fn choose(&mut self, choices: &Choices<'_>) -> Option<NextCommand> {
        choices.preferring_xpw(Duration::ZERO)
    }
}
