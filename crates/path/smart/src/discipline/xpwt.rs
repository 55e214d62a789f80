//! XPWT: an XPW goes first unless another command is shorter by more than δ. Chang & Du, section
//! 3.2. With δ = 0, the discipline equals Greedy. If δ is at least the longest access time, an XPW
//! always goes first.

use super::XorDiscipline;
use crate::choices::{Choices, NextCommand};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str =
    "an XPW goes first unless another command's access time is shorter by more than `delta_ms`";

/// Keys of `xpwt`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Config {
    /// `xpwt`: δ in ms, the additional access time allowed for an XPW. Default 3, as in the paper.
    delta_ms: f64,
}

impl Default for Config {
    fn default() -> Config {
        Config { delta_ms: 3.0 }
    }
}

struct Xpwt {
    delta: Duration,
}

pub(super) fn build(keys: &Keys, _segments: u32) -> Result<Box<dyn XorDiscipline>, ConfigError> {
    let Config { delta_ms } = read(keys)?;
    // A δ of 1000 s is longer than every access already, so a larger value would change nothing.
    if !(delta_ms.is_finite() && (0.0..=1e6).contains(&delta_ms)) {
        let message = format!("found {delta_ms}; expected milliseconds, 0 to 1000000");
        return Err(ConfigError::new("delta_ms", message));
    }
    Ok(Box::new(Xpwt {
        delta: Duration::from_millis_f64(delta_ms),
    }))
}

impl XorDiscipline for Xpwt {
    fn choose(&mut self, choices: &Choices<'_>) -> Option<NextCommand> {
        choices.preferring_xpw(self.delta)
    }
}
