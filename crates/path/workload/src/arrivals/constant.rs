//! Open, at equal distances.

use super::{Arrivals, OpenProcess, gap_of_rate};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Random};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "open: equal distances";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Requests a second.
    rate_per_s: f64,
}

struct Constant(Duration);

pub(super) fn build(keys: &Keys) -> Result<Arrivals, ConfigError> {
    let Config { rate_per_s } = read(keys)?;
    Ok(Arrivals::Open(Box::new(Constant(gap_of_rate(rate_per_s)?))))
}

impl OpenProcess for Constant {
    fn gap(&mut self, _: &mut Random) -> Duration {
        self.0
    }
}
