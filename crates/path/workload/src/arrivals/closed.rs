//! Closed: a fixed number outstanding.

use super::Arrivals;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "closed: a fixed number of requests outstanding, each followed by another after a think time";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Requests on their way at any time.
    #[serde(default = "one")]
    outstanding: u32,
    /// From a completion to the request that follows it.
    #[serde(default)]
    think_time: Duration,
    /// Draw think times from an exponential distribution with that mean.
    #[serde(default)]
    exponential: bool,
}

fn one() -> u32 {
    1
}

pub(super) fn build(keys: &Keys) -> Result<Arrivals, ConfigError> {
    let Config {
        outstanding,
        think_time,
        exponential,
    } = read(keys)?;
    if outstanding == 0 {
        return Err(ConfigError::new(
            "outstanding",
            "found 0; expected at least 1",
        ));
    }
    Ok(Arrivals::Closed {
        outstanding,
        think_time,
        exponential,
    })
}
