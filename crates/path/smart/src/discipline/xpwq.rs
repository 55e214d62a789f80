//! XPWQ: if more than `max_xpw` XPWs wait, an XPW goes first. Chang & Du, section 3.3. With an
//! infinite bound, the discipline equals Greedy. With 0, an XPW always goes first.

use super::XorDiscipline;
use crate::choices::{Choices, CommandClass, NextCommand};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str = "an XPW goes first while more than `max_xpw` XPWs wait";

/// Keys of `xpwq`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Config {
    /// `xpwq`: maxNxpw, the number of waiting XPWs above which an XPW goes first. Default: the
    /// number of segments less four, as in the paper, but at least 0.
    max_xpw: Option<u64>,
}

struct Xpwq {
    max_xpw: u64,
}

pub(super) fn build(keys: &Keys, segments: u32) -> Result<Box<dyn XorDiscipline>, ConfigError> {
    let Config { max_xpw } = read(keys)?;
    Ok(Box::new(Xpwq {
        max_xpw: max_xpw.unwrap_or(u64::from(segments.saturating_sub(4))),
    }))
}

impl XorDiscipline for Xpwq {
    fn choose(&mut self, choices: &Choices<'_>) -> Option<NextCommand> {
        if choices.waiting(CommandClass::Xpw) as u64 > self.max_xpw
            && let Some(xpw) = choices.shortest(CommandClass::Xpw, Duration::MAX)
        {
            return Some(xpw);
        }
        choices.preferring_xpw(Duration::ZERO)
    }
}
