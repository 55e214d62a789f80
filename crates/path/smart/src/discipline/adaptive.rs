//! Adaptive: XPWT whose δ follows the buffer. Not in the paper.
//!
//! What an XPW is worth is the segment that it frees on another disk, and a
//! segment is worth the more the fewer are left there. A disk does not see
//! another's buffer, but two signs of how full they are: its own, since all fill
//! alike, and the XPWs that wait for it, each of which holds one of theirs. With
//! the mean of both, where a disk could keep n more results δ is an n-th of a
//! revolution, what a missed sector costs; where it could keep none, an XPW goes
//! first.

use super::XorDiscipline;
use crate::choices::{Choice, Choices, Class};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str =
    "as xpwt, with a δ that rises as free segments, here and elsewhere, become fewer";

/// It has no keys.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {}

struct Adaptive;

pub(super) fn build(keys: &Keys, _segments: u32) -> Result<Box<dyn XorDiscipline>, ConfigError> {
    let Config {} = read(keys)?;
    Ok(Box::new(Adaptive))
}

impl XorDiscipline for Adaptive {
    fn choose(&mut self, choices: &Choices<'_>) -> Option<Choice> {
        // Of its segments a disk can keep all but one: an XDW begins with two free.
        let most = u64::from(choices.segments() - 1);
        let here = u64::from(choices.free().saturating_sub(1));
        let there = most.saturating_sub(choices.waiting(Class::Xpw) as u64);
        let delta = match here + there {
            0 => Duration::MAX,
            twice => choices.revolution() * 2 / twice,
        };
        choices.preferring_xpw(delta)
    }
}
