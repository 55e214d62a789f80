//! `2.6.23`: pdflush with the ratios of Linux 2.6.22 and 2.6.23.

use super::WriteBack;
use super::pdflush::{Knobs, Pdflush};
use super::v2_6_17::{dirty_expire, dirty_writeback};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "pdflush as of Linux 2.6.23: in the background from 5 % on, by the writers from 10 %";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Threshold of background write-back of dirty pages, in per cent of memory; default 5.
    #[serde(default = "dirty_background_ratio")]
    dirty_background_ratio: u64,
    /// Threshold of write-back by the writers themselves, in per cent of memory; default
    /// 10. Limited to 5 to 50.
    #[serde(default = "dirty_ratio")]
    dirty_ratio: u64,
    /// Age of a dirty object at its periodic write-back; default 30s.
    #[serde(default = "dirty_expire")]
    dirty_expire: Duration,
    /// Interval of the search for objects dirty for too long; default 5s. 0s: never.
    #[serde(default = "dirty_writeback")]
    dirty_writeback: Duration,
}

// `mm/page-writeback.c`: dirty_background_ratio, vm_dirty_ratio,
// dirty_expire_centisecs (or _interval), dirty_writeback_centisecs.
fn dirty_background_ratio() -> u64 {
    5
}

fn dirty_ratio() -> u64 {
    10
}

pub(super) fn build(keys: &Keys, limit: u64) -> Result<Box<dyn WriteBack>, ConfigError> {
    let config: Config = read(keys)?;
    let knobs = Knobs {
        background: config.dirty_background_ratio,
        dirty: config.dirty_ratio,
        expire: config.dirty_expire,
        writeback: config.dirty_writeback,
    };
    Ok(Box::new(Pdflush::new(knobs.checked()?, limit)))
}
