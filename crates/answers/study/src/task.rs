//! One run of a study, and its key.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Key of a run: the digest of its setup, and its seed.
pub type RunKey = (String, u64);

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Key of the results.
    pub key: RunKey,
    /// First study and point of the run, as text.
    pub name: String,
    /// The stack file.
    pub stack: PathBuf,
    /// Keys set in the stack file.
    pub set: Vec<String>,
    /// Paths of the numbers kept besides the metrics.
    pub paths: Vec<String>,
}
