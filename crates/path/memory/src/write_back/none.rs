//! `none`: writes back on demand only (fsync, sync, PULL), or when memory is full of dirty pages.

use super::{ThrottledWriter, WriteBack, WriterVerdict};
use crate::cache_parts::CacheParts;
use crate::pages::ResidentPages;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "write-back on demand only, or when memory is short";

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {}

struct Nothing;

pub(super) fn build(keys: &Keys, _: u64) -> Result<Box<dyn WriteBack>, ConfigError> {
    let Config {} = read(keys)?;
    Ok(Box::new(Nothing))
}

impl WriteBack for Nothing {
    fn allowance(&self, _: u32) -> u64 {
        u64::MAX
    }

    fn dirtied(&mut self, _: u32, _: u64, _: u64) -> bool {
        false
    }

    fn balance(&mut self, _: &mut ThrottledWriter, _: &mut CacheParts<'_>) -> WriterVerdict {
        WriterVerdict::Go
    }

    fn run(&mut self, _: &mut CacheParts<'_>) {}

    fn next_wake(&self, _: ResidentPages, _: bool) -> Time {
        Time::NEVER
    }

    fn note_shortage(&mut self, _: &mut CacheParts<'_>) -> bool {
        true
    }
}
