//! Closed: a fixed number of outstanding requests.

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
    /// Outstanding requests.
    #[serde(default = "one")]
    outstanding: u32,
    /// Time from a completion to the next request.
    #[serde(default)]
    think_time: Duration,
    /// Draw think times from an exponential distribution with the mean `think_time`.
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
