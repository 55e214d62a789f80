//! A constant idle time: a drive's own timer, as set by `hdparm -S`.

use super::{Costs, SpinDown, check_after, keys};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const SUMMARY: &str = "stops behind an idle time that never changes";

/// Keys of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Idle time before the platters stop.
    pub after: Duration,
}

struct Fixed(Duration);

pub(super) fn build(own: &Keys, costs: &Costs) -> Result<Box<dyn SpinDown>, ConfigError> {
    let Config { after } = keys(own)?;
    check_after("after", after, costs)?;
    Ok(Box::new(Fixed(after)))
}

impl SpinDown for Fixed {
    fn stops_at(&self, idle: Time) -> Time {
        idle + self.0
    }

    fn least_idle(&self) -> Duration {
        self.0
    }
}
