//! `raid5`: rows of chunks, each row with one rotating parity chunk.
//!
//! Any one member may fail. A write of part of a row needs reads first. A read-modify-write reads
//! the old data and the old parity; a reconstruct-write reads the other data of the row. The layout
//! takes the method with fewer member I/Os. A write of a whole row needs no reads. A read of a
//! failed member's data reads the same sectors of all other members.

use crate::layout::Layout;
use crate::members::DEFAULT_CHUNK;
use crate::parity::{ParityConfig, ParityLayout, Placement, Rotation};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_units::{Bytes, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `raid5`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Raid5Config {
    /// Bytes on one member before the next member has its turn: a positive multiple of 512. Default
    /// 64KiB.
    pub chunk: Bytes,
    /// Pattern in which parity moves from row to row. Default `left-symmetric`.
    pub rotation: Rotation,
    /// The failed member, counted from 0; at most one. Default none.
    pub failed: Vec<u32>,
    /// Number of stripes with their data and parity in memory. A write of part of a row need not
    /// read data or parity from there. Corresponds to md's `stripe_cache_size`, in pages of 4 KiB
    /// of each member; the default of md is 256. Default 0: no stripe is held.
    pub stripe_cache: u32,
    /// True to read the parity together with all data of a row and to discard the parity. Each
    /// member then reads without gaps (Qian & Wang, section 5.1). Default false.
    pub dummy_parity_reads: bool,
}

impl Default for Raid5Config {
    fn default() -> Raid5Config {
        Raid5Config {
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
    let Raid5Config {
        chunk,
        rotation,
        failed,
        stripe_cache,
        dummy_parity_reads,
    } = registry::read(keys)?;
    let placement = Placement::Rotating(rotation);
    let config = ParityConfig {
        name: "raid5",
        parities: 1,
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
    use crate::layout::Role;
    use fullstroke_units::Lbn;
    use serde_json::json;

    fn raid5(keys: serde_json::Value, members: usize) -> Result<Box<dyn Layout>, ConfigError> {
        build(keys.as_object().unwrap(), &vec![Sectors(10_000); members])
    }

    #[test]
    fn two_disks_are_no_raid5() {
        let error = raid5(json!({}), 2).err().unwrap();
        assert_eq!(error.key, "members");
        assert!(error.message.contains("at least 3 members"), "{error}");
    }

    #[test]
    fn one_failed_member_is_survived_and_two_are_not() {
        assert!(raid5(json!({ "failed": [2] }), 3).is_ok());
        assert_eq!(
            raid5(json!({ "failed": [1, 2] }), 3).err().unwrap().key,
            "failed"
        );
    }

    #[test]
    fn misspelt_keys_and_rotations_name_the_right_ones() {
        let error = raid5(json!({ "chunks": "64KiB" }), 3).err().unwrap();
        assert!(error.message.contains("did you mean `chunk`"), "{error}");
        let error = raid5(json!({ "rotation": "left" }), 3).err().unwrap();
        assert!(error.message.contains("left-symmetric"), "{error}");
    }

    #[test]
    fn capacity_is_the_common_whole_chunks_less_one_member() {
        let layout = build(&Keys::new(), &[Sectors(1000), Sectors(700), Sectors(900)]).unwrap();
        assert_eq!(layout.capacity(), Sectors(5 * 128 * 2));
        assert_eq!(layout.unused(), Sectors(360 + 60 + 260));
        assert_eq!(layout.role_of(0, Lbn(640)), Role::Unused);
    }
}
