//! `raid4`: rows of chunks with parity on the last member.
//!
//! Same as raid5, but the parity does not rotate. With all members alive, the last member takes
//! part in every write and in no read.

use crate::layout::Layout;
use crate::like::Like;
use crate::md::{MdKernel, MdKeys, ParityUpdates};
use crate::members::DEFAULT_CHUNK;
use crate::parity::{ParityConfig, ParityLayout, Placement};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_units::{Bytes, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keys of `raid4`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Raid4Config {
    /// Behaviour of the array: `md` as Linux's md, or `ideal`. Simulations (`run`, `compare`,
    /// `advise`) have the default `md`, but `ideal` with `[controller]` and with `coordinate`. Live
    /// serving, arrays on devices and studies have the default `ideal`.
    #[schemars(extend("x-default" = "`md` in `run`, `compare` and other simulations, else `ideal`"))]
    pub like: Like,
    /// Bytes on one member before the next member has its turn: a positive multiple of 512; for an
    /// array like md a power of two, at least 4KiB. Default 64KiB; in a stack file with
    /// `like = "md"` 512KiB, as `mdadm --create` makes it.
    #[schemars(extend("x-default" = "`512KiB` if `like = \"md\"`, else `64KiB`"))]
    pub chunk: Bytes,
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
}

impl Default for Raid4Config {
    fn default() -> Raid4Config {
        let md = MdKeys::default();
        Raid4Config {
            like: Like::Ideal,
            chunk: DEFAULT_CHUNK,
            failed: Vec::new(),
            stripe_cache: 0,
            parity_updates: md.parity_updates,
            preread_bypass_threshold: md.preread_bypass_threshold,
            largest_member_io: md.largest_member_io,
            kernel: md.kernel,
        }
    }
}

/// See [`BuildLayout`](crate::BuildLayout).
pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let keys: Raid4Config = registry::read(keys)?;
    let md = MdKeys {
        stripe_cache: keys.stripe_cache,
        parity_updates: keys.parity_updates,
        preread_bypass_threshold: keys.preread_bypass_threshold,
        largest_member_io: keys.largest_member_io,
        kernel: keys.kernel,
    };
    let config = ParityConfig {
        name: "raid4",
        parities: 1,
        placement: Placement::Dedicated,
        chunk: keys.chunk,
        failed: &keys.failed,
        stripe_cache: keys.stripe_cache,
        // One member holds all parity. A dummy read of parity would not close a gap on any data
        // member.
        dummy_parity_reads: false,
        md: md.of(keys.like)?,
    };
    Ok(Box::new(ParityLayout::build(&config, members)?))
}
