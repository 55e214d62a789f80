//! The policy `wait`: a volume waits for every member.
//!
//! md has no clock of its own for member I/O (`drivers/md/raid5.c` and `raid1.c`, Linux 6.12). A
//! member that answers late delays the array until the driver of the device gives up.

use super::LateRule;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `wait`: none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitConfig {}

/// Waits for every member.
#[derive(Debug)]
struct Wait;

impl LateRule for Wait {
    fn needs_redundancy(&self) -> bool {
        false
    }
    fn is_of_md(&self) -> bool {
        true
    }
}

pub(super) fn build(keys: &Keys, _: usize) -> Result<Box<dyn LateRule>, ConfigError> {
    read::<WaitConfig>(keys)?;
    Ok(Box::new(Wait))
}
