//! Conditional priority: while more than `threshold` segments are in use, commands other than XDWs
//! go first. Source: Shim, Wang, Hsieh, Chang & Du, "Efficient implementation of RAID-5 using disk
//! based read modify writes", 1996, as described by Chang & Du in section 3. If no other command
//! waits, an XDW begins if possible.

use super::XorDiscipline;
use crate::choices::{Choices, CommandClass, NextCommand};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str =
    "commands other than XDWs go first while more than `threshold` segments are in use";

/// Keys of `conditional`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Config {
    /// `conditional`: number of segments in use above which XDWs go last. At most the number of
    /// segments. Default: half of the segments.
    threshold: Option<u32>,
}

struct Conditional {
    threshold: u32,
}

pub(super) fn build(keys: &Keys, segments: u32) -> Result<Box<dyn XorDiscipline>, ConfigError> {
    let Config { threshold } = read(keys)?;
    match threshold {
        Some(found) if found > segments => {
            let message =
                format!("found {found}; expected at most the number of segments, {segments}");
            Err(ConfigError::new("threshold", message))
        }
        _ => Ok(Box::new(Conditional {
            threshold: threshold.unwrap_or(segments / 2),
        })),
    }
}

impl XorDiscipline for Conditional {
    fn choose(&mut self, choices: &Choices<'_>) -> Option<NextCommand> {
        // If neither an XPW nor an ordinary command can begin, an XDW goes, because a disk must not
        // idle while a command can begin.
        if choices.segments() - choices.free() > self.threshold
            && let Some(other) =
                choices.shortest_of(&[CommandClass::Xpw, CommandClass::Plain], Duration::MAX)
        {
            return Some(other);
        }
        choices.preferring_xpw(Duration::ZERO)
    }
}
