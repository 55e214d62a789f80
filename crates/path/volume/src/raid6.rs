//! `raid6`: rows of chunks, each row with two rotating parity chunks.
//!
//! Any two members may fail. P is the exclusive or of the row's data. Q is a Reed-Solomon sum over
//! GF(2^8). The places of P and Q and the coefficients of the data are those of the Linux md
//! driver. A write of part of a row updates both P and Q.

use crate::layout::Layout;
use crate::members::DEFAULT_CHUNK;
use crate::parity::{ParityConfig, ParityLayout, Placement, Rotation};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_units::{Bytes, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `raid6`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Raid6Config {
    /// Bytes on one member before the next member has its turn: a positive multiple of 512. Default
    /// 64KiB.
    pub chunk: Bytes,
    /// Pattern in which parity moves from row to row. Default `left-symmetric`.
    pub rotation: Rotation,
    /// The failed members, counted from 0; at most two. Default none.
    pub failed: Vec<u32>,
    /// Number of stripes with their data and parity in memory. A write of part of a row need not
    /// read data or parity from there. Corresponds to md's `stripe_cache_size`, in pages of 4 KiB
    /// of each member; the default of md is 256. Default 0: no stripe is held.
    pub stripe_cache: u32,
    /// True to read both parities together with all data of a row and to discard the parities. Each
    /// member then reads without gaps (Qian & Wang, section 5.1, for RAID-5). Default false.
    pub dummy_parity_reads: bool,
}

impl Default for Raid6Config {
    fn default() -> Raid6Config {
        Raid6Config {
            chunk: DEFAULT_CHUNK,
            rotation: Rotation::default(),
            failed: Vec::new(),
            stripe_cache: 0,
            dummy_parity_reads: false,
        }
    }
}

/// See [`BuildLayout`](crate::BuildLayout).
pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let Raid6Config {
        chunk,
        rotation,
        failed,
        stripe_cache,
        dummy_parity_reads,
    } = registry::read(keys)?;
    let placement = Placement::Rotating(rotation);
    let config = ParityConfig {
        name: "raid6",
        parities: 2,
        placement,
        chunk,
        failed: &failed,
        stripe_cache,
        dummy_parity_reads,
    };
    Ok(Box::new(ParityLayout::build(&config, members)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn raid6(keys: serde_json::Value, members: usize) -> Result<Box<dyn Layout>, ConfigError> {
        build(keys.as_object().unwrap(), &vec![Sectors(10_000); members])
    }

    #[test]
    fn three_disks_are_no_raid6_and_four_are() {
        assert_eq!(raid6(json!({}), 3).err().unwrap().key, "members");
        assert!(raid6(json!({}), 4).is_ok());
    }

    #[test]
    fn more_members_than_the_second_parity_tells_apart_are_refused() {
        assert!(raid6(json!({}), 257).is_ok());
        let error = raid6(json!({}), 258).err().unwrap();
        assert!(error.message.contains("at most 257"), "{error}");
    }

    #[test]
    fn two_failed_members_are_survived_and_three_are_not() {
        assert!(raid6(json!({ "failed": [0, 3] }), 4).is_ok());
        assert_eq!(
            raid6(json!({ "failed": [0, 1, 3] }), 4).err().unwrap().key,
            "failed"
        );
    }
}
