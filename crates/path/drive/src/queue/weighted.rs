//! Least weighted sum of seek and rotation: between SSTF and shortest latency first.

use super::search::{Positioning, key, take_cheapest};
use super::sorted::Sorted;
use super::{ArmView, Discipline, NextRequest, WaitingRequest};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "least weighted sum of seek and rotational latency; equal weights are satf";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Weight of the seek time. Default 1.
    #[serde(default = "one")]
    seek: f64,
    /// Weight of the rotational latency. Default 1.
    #[serde(default = "one")]
    rotation: f64,
}

fn one() -> f64 {
    1.0
}

struct Weighted {
    config: Config,
    waiting: Sorted,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    let config: Config = read(keys)?;
    for (key, weight) in [("seek", config.seek), ("rotation", config.rotation)] {
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(ConfigError::new(
                key,
                format!("found {weight}; expected a weight of 0 or more"),
            ));
        }
    }
    Ok(Box::new(Weighted {
        config,
        waiting: Sorted::default(),
    }))
}

impl Discipline for Weighted {
    fn insert(&mut self, waiting: WaitingRequest) {
        self.waiting.insert(key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest> {
        let Config {
            seek: seek_weight,
            rotation: rotation_weight,
        } = self.config;
        let weighted = |waiting: &WaitingRequest, least_seek: Duration| {
            let Positioning { seek, rotation } = Positioning::of(waiting, &arm, least_seek);
            Some(
                seek_weight * seek.as_nanos() as f64 + rotation_weight * rotation.as_nanos() as f64,
            )
        };
        let bound = |seek: Duration| seek_weight * seek.as_nanos() as f64;
        take_cheapest(&mut self.waiting, &arm, bound, weighted).map(NextRequest::direct)
    }

    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        self.waiting.remove_slot(slot)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
