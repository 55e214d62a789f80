//! Settings of the measurement.

use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasurementConfig {
    /// Start of the measurement. Requests that finish earlier are served but not counted. Requests
    /// in flight at this time count with their whole response times. Rates refer to the time from
    /// here to the last completion.
    #[serde(default)]
    pub warm_up: Duration,
}
