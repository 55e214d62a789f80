//! Keys of the policy that stops the platters of an idle drive.

use fullstroke_contract::registry::Keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Policy that stops the platters of an idle drive. The policy stands for the standby timer of ATA
/// (ACS-3, STANDBY) and of SCSI's power conditions, or for a cleverer timer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpinDownConfig {
    /// Name of the policy.
    pub policy: String,
    /// The policy's own keys.
    #[serde(flatten)]
    pub keys: Keys,
}
