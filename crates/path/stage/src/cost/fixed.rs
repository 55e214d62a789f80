//! The same time for each request: the share of a hypervisor, or of a target's processor.

use super::RequestCost;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "one time for each request; `cost = \"170us\"` is short for it";

/// The keys of a fixed cost.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixedConfig {
    /// The time.
    pub time: Duration,
}

pub(super) struct Fixed(Duration);

impl Fixed {
    pub(super) fn new(time: Duration) -> Fixed {
        Fixed(time)
    }
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn RequestCost>, ConfigError> {
    let FixedConfig { time } = read(keys)?;
    Ok(Box::new(Fixed(time)))
}

impl RequestCost for Fixed {
    fn take(&mut self, _: Time) -> Duration {
        self.0
    }
}
