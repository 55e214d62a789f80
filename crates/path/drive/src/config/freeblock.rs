//! Keys of free-block scheduling.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A background scan in the rotational latency of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FreeblockConfig {
    /// Smallest time in ms between the return of the arm and the first sector of the request.
    /// Default 0.
    pub margin_ms: f64,
    /// Number of places between the arm and the request at which the scan looks for a track to
    /// read. With 0, the scan reads on the tracks of the arm and of the request only. Default 8.
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
