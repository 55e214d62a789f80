//! `raid5`: rows of chunks, each row with one rotating parity chunk.
//!
//! Any one member may fail. A write of part of a row needs reads first. A read-modify-write reads
//! the old data and the old parity; a reconstruct-write reads the other data of the row. An array
//! like `ideal` takes the method with fewer member I/Os; an array like md follows `parity_updates`.
//! A write of a whole row needs no reads. A read of a failed member's data reads the same sectors
//! of all other members.

use crate::layout::Layout;
use crate::like::Like;
use crate::md::{MdKernel, MdKeys, ParityUpdates, no_dummy_reads};
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
    /// Behaviour of the array: `md` as Linux's md, or `ideal`. Simulations (`run`, `compare`,
    /// `advise`) have the default `md`, but `ideal` with `[controller]`, with `coordinate` and with
    /// `dummy_parity_reads`. Live serving, arrays on devices and studies have the default `ideal`.
    #[schemars(extend("x-default" = "`md` in `run`, `compare` and other simulations, else `ideal`"))]
    pub like: Like,
    /// Bytes on one member before the next member has its turn: a positive multiple of 512; for an
    /// array like md a power of two, at least 4KiB. Default 64KiB; in a stack file with
    /// `like = "md"` 512KiB, as `mdadm --create` makes it.
    #[schemars(extend("x-default" = "`512KiB` if `like = \"md\"`, else `64KiB`"))]
    pub chunk: Bytes,
    /// Pattern in which parity moves from row to row: towards member 0 (`left`) or away from it
    /// (`right`); data begins after the parity (`symmetric`) or at member 0 (`asymmetric`). Default
    /// `left-symmetric`, as in md.
    pub rotation: Rotation,
    /// The failed member, counted from 0; at most one. Default none.
    pub failed: Vec<u32>,
    /// Number of stripes in memory, in pages of 4 KiB of each member: md's `stripe_cache_size`. A
    /// write of part of a row reads no data and no parity that a stripe holds. An `ideal` array has
    /// the default 0: no stripe is held. An array like md has 17 to 32768 stripes, in a stack file
    /// by default 256, and writes wait while all stripes have work. With `kernel = "6.12"` the
    /// cache grows by a stripe when a request finds none free (`grow_one_stripe`, since Linux 4.1).
    #[schemars(extend("x-default" = "`256` if `like = \"md\"`, else `0`"))]
    pub stripe_cache: u32,
    /// Method for a partly written stripe: md's `rmw_level`. Read-modify-write reads the old data
    /// and the old parity; reconstruct-write reads the other data. `reconstruct` (0): always
    /// reconstruct-write. `fewer` (1): the method with fewer reads, and reconstruct-write if both
    /// need equally many. `modify` (2): the method with fewer reads, and read-modify-write if both
    /// need equally many. Default `fewer`. Only for an array like md.
    pub parity_updates: ParityUpdates,
    /// Number of stripes that are overwritten as a whole and go before a partly written stripe that
    /// waits for its reads: md's `preread_bypass_threshold`. Default 1. Only for an array like md.
    pub preread_bypass_threshold: u32,
    /// Largest I/O of a member in bytes: `max_sectors_kb` of the member's queue. Default 1280KiB
    /// (Linux 6.12). Only for an array like md.
    pub largest_member_io: Bytes,
    /// Generation of md: `2.6.16`, `2.6.23` or `6.12`. Default `6.12`. 2.6.16 sends reads through
    /// the stripes. In both early kernels a partial write waits for its neighbours before it reads,
    /// also a direct write; each whole stripe is written by itself; and RAID 6 always uses
    /// reconstruct-write. Only for an array like md.
    pub kernel: MdKernel,
    /// True to read the parity together with all data of a row and to discard the parity. Each
    /// member then reads without gaps (Qian & Wang, section 5.1). Default false.
    pub dummy_parity_reads: bool,
}

impl Default for Raid5Config {
    fn default() -> Raid5Config {
        let md = MdKeys::default();
        Raid5Config {
            like: Like::Ideal,
            chunk: DEFAULT_CHUNK,
            rotation: Rotation::default(),
            failed: Vec::new(),
            stripe_cache: 0,
            parity_updates: md.parity_updates,
            preread_bypass_threshold: md.preread_bypass_threshold,
            largest_member_io: md.largest_member_io,
            kernel: md.kernel,
            dummy_parity_reads: false,
        }
    }
}

/// See [`BuildLayout`](crate::BuildLayout).
pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let keys: Raid5Config = registry::read(keys)?;
    if keys.like == Like::Md && keys.dummy_parity_reads {
        return Err(no_dummy_reads());
    }
    let md = MdKeys {
        stripe_cache: keys.stripe_cache,
        parity_updates: keys.parity_updates,
        preread_bypass_threshold: keys.preread_bypass_threshold,
        largest_member_io: keys.largest_member_io,
        kernel: keys.kernel,
    };
    let config = ParityConfig {
        name: "raid5",
        parities: 1,
        placement: Placement::Rotating(keys.rotation),
        chunk: keys.chunk,
        failed: &keys.failed,
        stripe_cache: keys.stripe_cache,
        dummy_parity_reads: keys.dummy_parity_reads,
        md: md.of(keys.like)?,
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
    fn two_disks_are_no_raid5_but_for_md() {
        let error = raid5(json!({}), 2).err().unwrap();
        assert_eq!(error.key, "members");
        assert!(error.message.contains("at least 3 members"), "{error}");
        // md makes such arrays.
        let md = json!({ "like": "md", "chunk": "4KiB", "stripe_cache": 256 });
        assert_eq!(raid5(md, 2).unwrap().capacity(), Sectors(10_000));
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
