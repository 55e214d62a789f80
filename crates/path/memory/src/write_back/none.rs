//! `none`: writes back on demand only (fsync, sync, PULL), or when memory is full of dirty pages.

use super::{Dirtier, Verdict, WriteBack};
use crate::desk::Desk;
use crate::pages::Held;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "nothing is written back unless asked for, or as memory is short";

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

    fn balance(&mut self, _: &mut Dirtier, _: &mut Desk<'_>) -> Verdict {
        Verdict::Go
    }

    fn run(&mut self, _: &mut Desk<'_>) {}

    fn next_wake(&self, _: Held, _: bool) -> Time {
        Time::NEVER
    }

    fn pressed(&mut self, _: &mut Desk<'_>) -> bool {
        true
    }
}
