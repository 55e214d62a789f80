//! The policy `fail`: a member that has not answered after a timeout has failed.
//!
//! Linux's SCSI layer gives a command 30 s (`SD_TIMEOUT`, `drivers/scsi/sd.h`, Linux 6.12), and md
//! fails a member whose write ends with an error (`md_error`, `drivers/md/md.c`). Hardware
//! controllers wait about 8 s, which is why drives for arrays give up a bad sector after 7 s. The
//! policy does without the retries and resets between timeout and failure.

use super::LateRule;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `fail`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FailConfig {
    /// Time after which a member without an answer fails. A hardware controller: 8s. Default 30s,
    /// as in Linux's SCSI layer.
    pub timeout: Duration,
}

impl Default for FailConfig {
    fn default() -> FailConfig {
        FailConfig {
            // Linux's timeout of a command to a disk: SD_TIMEOUT (drivers/scsi/sd.h).
            timeout: Duration::from_secs(30),
        }
    }
}

/// Fails members by a timeout.
#[derive(Debug)]
struct Fail(Duration);

impl LateRule for Fail {
    fn fails_after(&self) -> Option<Duration> {
        Some(self.0)
    }
    fn is_of_md(&self) -> bool {
        true
    }
}

pub(super) fn build(keys: &Keys, _: usize) -> Result<Box<dyn LateRule>, ConfigError> {
    let FailConfig { timeout } = read(keys)?;
    if timeout == Duration::ZERO {
        let message = "found 0, at which every member fails; expected a time above 0";
        return Err(ConfigError::new("timeout", message));
    }
    Ok(Box::new(Fail(timeout)))
}
