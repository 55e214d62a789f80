//! The idle time that costs as much as stopping and starting.
//!
//! For any sequence of requests, this policy takes at most twice the energy of a policy that knows
//! the future (Karlin, Manasse, McGeoch and Owicki, Competitive randomized algorithms for
//! non-uniform problems, 1990).

use super::{Costs, SpinDown, keys};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str = "stops behind the idle time that costs as much as a stop and a start: at most twice the least energy";

/// Keys of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Factor of the break-even time. Default 1.
    #[serde(default = "one")]
    pub factor: f64,
}

fn one() -> f64 {
    1.0
}

struct BreakEven(Duration);

pub(super) fn build(own: &Keys, costs: &Costs) -> Result<Box<dyn SpinDown>, ConfigError> {
    let Config { factor } = keys(own)?;
    if !(factor.is_finite() && (0.1..=1000.0).contains(&factor)) {
        return Err(ConfigError::new(
            "factor",
            format!("found {factor}; expected 0.1 to 1000"),
        ));
    }
    let Some(least) = costs.break_even else {
        let message = "the drive's file does not say what it draws, or standing saves nothing; give [power] its \
                       watts and joules, or a policy that needs none";
        return Err(ConfigError::new("policy", message));
    };
    let after = Duration::from_secs_f64(least.as_secs_f64() * factor);
    Ok(Box::new(BreakEven(after.max(costs.round_trip))))
}

impl SpinDown for BreakEven {
    fn stops_at(&self, idle: Time) -> Time {
        idle + self.0
    }

    fn least_idle(&self) -> Duration {
        self.0
    }
}
