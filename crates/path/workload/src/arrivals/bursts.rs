//! Open, in bursts.

use super::{Arrivals, OpenProcess};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Random};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "open: bursts of requests at a regular interval";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Requests in a burst.
    requests: u32,
    /// Time between the requests of a burst.
    #[serde(default)]
    spacing: Duration,
    /// Time from the start of a burst to the start of the next.
    interval: Duration,
}

struct Bursts {
    config: Config,
    in_burst: u32,
}

pub(super) fn build(keys: &Keys) -> Result<Arrivals, ConfigError> {
    let config: Config = read(keys)?;
    if config.requests == 0 {
        return Err(ConfigError::new(
            "requests",
            "found 0; a burst has at least one request",
        ));
    }
    // Spacings of years add up to more than can be counted: longer than every interval.
    let length = config
        .spacing
        .saturating_mul(u64::from(config.requests - 1));
    if config.interval < length || config.interval == Duration::ZERO {
        return Err(ConfigError::new(
            "interval",
            format!(
                "found {}; a burst lasts {length}, and the next cannot begin before",
                config.interval
            ),
        ));
    }
    Ok(Arrivals::Open(Box::new(Bursts {
        config,
        in_burst: 0,
    })))
}

impl OpenProcess for Bursts {
    fn gap(&mut self, _: &mut Random) -> Duration {
        self.in_burst += 1;
        if self.in_burst < self.config.requests {
            return self.config.spacing;
        }
        self.in_burst = 0;
        // The last gap of a burst fills up the interval, so the bursts stay in step.
        let length = self.config.spacing * u64::from(self.config.requests - 1);
        self.config.interval - length
    }
}
