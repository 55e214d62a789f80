//! When a drive stops its platters by itself.

use fullstroke_contract::registry::Keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a drive that has nothing to do stops its platters by itself: the standby timer of ATA
/// (ACS-3, STANDBY) and of SCSI's power conditions, or something cleverer in its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpinDownConfig {
    /// The rule.
    pub policy: String,
    /// The policy's own keys.
    #[serde(flatten)]
    pub keys: Keys,
}
