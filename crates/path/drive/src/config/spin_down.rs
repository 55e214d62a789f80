//! Keys of the spin-down policy.

use fullstroke_contract::registry::Keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Spin-down policy of an idle drive. The policy stands for the standby timer of ATA (ACS-3,
/// STANDBY) and of SCSI's power conditions, or for a cleverer timer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpinDownConfig {
    /// Name of the policy.
    pub policy: String,
    /// The policy's own keys.
    #[serde(flatten)]
    pub keys: Keys,
}
