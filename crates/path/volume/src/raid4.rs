//! `raid4`: rows of chunks with parity on the last member.
//!
//! Same as raid5, but the parity does not rotate: the last member takes part in every write and in
//! no read.

use crate::layout::Layout;
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
    /// Bytes on one member before the next member has its turn: a positive multiple of 512. Default
    /// 64KiB.
    pub chunk: Bytes,
    /// The failed member, counted from 0; at most one. Default none.
    pub failed: Vec<u32>,
    /// Number of stripes with their data and parity in memory. A write of part of a row need not
    /// read data or parity from there. Corresponds to md's `stripe_cache_size`, in pages of 4 KiB
    /// of each member; the default of md is 256. Default 0: no stripe is held.
    pub stripe_cache: u32,
}

impl Default for Raid4Config {
    fn default() -> Raid4Config {
        Raid4Config {
            chunk: DEFAULT_CHUNK,
            failed: Vec::new(),
            stripe_cache: 0,
        }
    }
}

/// See [`BuildLayout`](crate::BuildLayout).
pub fn build(keys: &Keys, members: &[Sectors]) -> Result<Box<dyn Layout>, ConfigError> {
    let Raid4Config {
        chunk,
        failed,
        stripe_cache,
    } = registry::read(keys)?;
    let config = ParityConfig {
        name: "raid4",
        parities: 1,
        placement: Placement::Dedicated,
        chunk,
        failed: &failed,
        stripe_cache,
        // One member holds all parity. A dummy read of parity would not close a gap on any data
        // member.
        dummy_parity_reads: false,
    };
    Ok(Box::new(ParityLayout::build(&config, members)?))
}
