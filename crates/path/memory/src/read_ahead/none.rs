//! `none`: reads only the missing pages of a request, in one piece.

use super::{PagePresence, ReadAhead, ReadAheadPlan, ReadAheadQuery};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "no read-ahead: only the requested pages";

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {}

struct Nothing;

pub(super) fn build(keys: &Keys) -> Result<Box<dyn ReadAhead>, ConfigError> {
    let Config {} = read(keys)?;
    Ok(Box::new(Nothing))
}

impl ReadAhead for Nothing {
    fn opened(&mut self, _: u32) {}

    fn ask(&mut self, ask: &ReadAheadQuery<'_>, plan: &mut ReadAheadPlan) {
        if ask.found == PagePresence::Absent {
            plan.read(ask.index, ask.wanted, None);
        }
    }
}
