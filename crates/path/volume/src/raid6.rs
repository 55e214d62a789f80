//! `raid6`: rows of chunks, each row with two rotating parity chunks.
//!
//! Any two members may fail. P is the exclusive or of the row's data. Q is a Reed-Solomon sum over
//! GF(2^8). The places of P and Q and the coefficients of the data are those of the Linux md
//! driver; [`Rotation`] has the places. A write of part of a row updates both P and Q.

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

/// Keys of `raid6`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Raid6Config {
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
    /// `left-symmetric`, as in md. The pattern is that of P; Q is on the member after P, and on
    /// member 0 if P is on the last member.
    pub rotation: Rotation,
    /// The failed members, counted from 0; at most two. Default none.
    pub failed: Vec<u32>,
    /// Number of stripes in memory, in pages of 4 KiB of each member: md's `stripe_cache_size`. A
    /// write of part of a row reads no data and no parity that a stripe holds. An `ideal` array has
    /// the default 0: no stripe is held. An array like md has 17 to 32768 stripes, in a stack file
    /// by default 256, and writes wait while all stripes have work. With `kernel = "6.12"` the
    /// cache grows by a stripe when a request finds none free (`grow_one_stripe`, since Linux 4.1).
    #[schemars(extend("x-default" = "`256` if `like = \"md\"`, else `0`"))]
    pub stripe_cache: u32,
    /// Method for a partly written stripe: md's `rmw_level`. Read-modify-write reads the old data
    /// and both old parities; reconstruct-write reads the other data. `reconstruct` (0): always
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
    /// True to read both parities together with all data of a row and to discard the parities. Each
    /// member then reads without gaps (Qian & Wang, section 5.1, for RAID-5). Default false.
    pub dummy_parity_reads: bool,
}

impl Default for Raid6Config {
    fn default() -> Raid6Config {
        let md = MdKeys::default();
        Raid6Config {
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
    let keys: Raid6Config = registry::read(keys)?;
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
        name: "raid6",
        parities: 2,
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
