//! Keys of free-block scheduling.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A background scan in the rotational latency of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FreeblockConfig {
    /// How long before a request's first sector the arm is back at the latest: 0 unless
    /// said.
    pub margin_ms: f64,
    /// At how many places between the arm and the request it looks for a track to read on
    /// the way; 0 reads on the tracks of the two only. 8 unless said.
    pub on_the_way: u32,
}

impl Default for FreeblockConfig {
    fn default() -> FreeblockConfig {
        FreeblockConfig {
            margin_ms: 0.0,
            on_the_way: 8,
        }
    }
}
