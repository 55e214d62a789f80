//! The implementation that a layout stands for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The implementation that a layout stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Like {
    /// A planner that knows each request as a whole, locks rows of chunks and reads as little as
    /// possible.
    #[default]
    Ideal,
    /// Linux's md (kernel 6.12): stripes of 4 KiB pages with a cache and delayed writes, md's
    /// choice of the copy to read.
    Md,
}
