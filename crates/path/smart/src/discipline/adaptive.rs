//! Adaptive: XPWT with a δ that follows the state of the buffer. Not in the paper.
//!
//! An XPW frees a segment on another disk. A segment is worth more if the other disk has fewer free
//! segments. A disk does not see the buffers of other disks, but has two signs. The first sign is
//! the disk's own buffer, because all buffers fill alike. The second sign is the number of XPWs
//! waiting at the disk, because each XPW holds a segment elsewhere. Let n be the mean number of
//! further results that a disk could keep. Then δ is one n-th of a revolution, and a revolution is
//! the cost of a missed sector. If n is 0, an XPW goes first.

use super::XorDiscipline;
use crate::choices::{Choices, CommandClass, NextCommand};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str = "as xpwt, with a δ that rises as the free segments of this disk and of the other disks become fewer";

/// Keys of `adaptive`: none.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {}

struct Adaptive;

pub(super) fn build(keys: &Keys, _segments: u32) -> Result<Box<dyn XorDiscipline>, ConfigError> {
    let Config {} = read(keys)?;
    Ok(Box::new(Adaptive))
}

impl XorDiscipline for Adaptive {
    fn choose(&mut self, choices: &Choices<'_>) -> Option<NextCommand> {
        // A disk can fill all segments but one with results, because an XDW begins with two free
        // segments.
        let most = u64::from(choices.segments() - 1);
        let here = u64::from(choices.free().saturating_sub(1));
        let there = most.saturating_sub(choices.waiting(CommandClass::Xpw) as u64);
        let delta = match here + there {
            0 => Duration::MAX,
            twice => choices.revolution() * 2 / twice,
        };
        choices.preferring_xpw(delta)
    }
}
