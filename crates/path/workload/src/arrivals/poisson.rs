//! Open, memoryless.

use super::{Arrivals, OpenProcess, gap_of_rate};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Random};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "open: exponentially distributed distances";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Mean requests a second.
    rate_per_s: f64,
}

struct Poisson {
    mean_gap: Duration,
}

pub(super) fn build(keys: &Keys) -> Result<Arrivals, ConfigError> {
    let Config { rate_per_s } = read(keys)?;
    Ok(Arrivals::Open(Box::new(Poisson {
        mean_gap: gap_of_rate(rate_per_s)?,
    })))
}

impl OpenProcess for Poisson {
    fn gap(&mut self, random: &mut Random) -> Duration {
        random.exponential(self.mean_gap)
    }
}
