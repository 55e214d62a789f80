//! The keys of dm-cache.

use crate::rule::CacheSite;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, SECTOR_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bounds of a block (`DATA_DEV_BLOCK_SIZE_MIN_SECTORS`, dm-cache-target.c).
const BLOCK_MIN: u64 = 32 << 10;
const BLOCK_MAX: u64 = 1 << 30;
/// Bytes of the metadata device: a constant, and for each block (Documentation, device-mapper/cache:
/// 4 MiB and 16 bytes a block).
const METADATA: u64 = 4 << 20;
const METADATA_BLOCK: u64 = 16;
/// Least number of blocks: each of the 64 levels of smq gets an entry.
const BLOCKS_MIN: u64 = 64;
/// Default of the migration threshold in sectors (`MIGRATION_THRESHOLD`, dm-cache-target.c).
const THRESHOLD: u64 = 2048;
/// Least default in blocks (`MIN_MIGRATION_THRESHOLD_BLOCKS`, libdevmapper).
const THRESHOLD_BLOCKS: u64 = 8;
/// Largest number of blocks, because each takes memory in the model.
const BLOCKS_MAX: u64 = 1 << 25;

/// The place of written data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DmCacheMode {
    /// A write of a cached block goes to the flash device, and to the array later.
    Writeback,
    /// A write of a cached block goes to the flash device and the array.
    #[default]
    Writethrough,
    /// Everything goes to the array. The cache stays empty.
    Passthrough,
}

/// The keys of dm-cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DmCacheConfig {
    /// Place of written data: `writethrough` (default, as `lvcreate`), `writeback` or `passthrough`.
    #[serde(default)]
    pub mode: DmCacheMode,
    /// Size of a block, a multiple of 32KiB. Default 256KiB.
    #[serde(default = "quarter_mib")]
    pub block: Bytes,
    /// Sectors that may be written back at once in idle time, at least one block. Default 2048, and at
    /// least 8 blocks, as LVM sets the threshold.
    #[serde(default)]
    pub migration_threshold: Option<u64>,
}

fn quarter_mib() -> Bytes {
    Bytes(256 << 10)
}

impl DmCacheConfig {
    /// Checks the keys. Returns the number of blocks, and the sectors of the metadata.
    pub(super) fn check(&self, site: &CacheSite) -> Result<(u64, u64), ConfigError> {
        let block = self.block.0;
        if !block.is_multiple_of(BLOCK_MIN) || !(BLOCK_MIN..=BLOCK_MAX).contains(&block) {
            let message = format!(
                "found {}; expected a multiple of {} up to {}",
                self.block,
                Bytes(BLOCK_MIN),
                Bytes(BLOCK_MAX)
            );
            return Err(ConfigError::new("block", message));
        }
        let bytes = site.cache.bytes().0;
        let blocks = bytes.saturating_sub(METADATA) / (block + METADATA_BLOCK);
        if blocks < BLOCKS_MIN {
            let least = METADATA + BLOCKS_MIN * (block + METADATA_BLOCK);
            let message = format!(
                "found {}; {BLOCKS_MIN} blocks of {} and their metadata need {}",
                site.cache.bytes(),
                self.block,
                Bytes(least.next_multiple_of(4096))
            );
            return Err(ConfigError::new("size", message));
        }
        if blocks > BLOCKS_MAX {
            let message = format!(
                "found {}, which are {blocks} blocks in {}; expected {BLOCKS_MAX} at most: give a larger block or a smaller cache",
                self.block,
                site.cache.bytes()
            );
            return Err(ConfigError::new("block", message));
        }
        if let Some(found) = self.migration_threshold
            && found < block / SECTOR_BYTES
        {
            let message = format!(
                "found {found} sectors; expected {} at least, the sectors of a block: with fewer, no dirty block is ever written back",
                block / SECTOR_BYTES
            );
            return Err(ConfigError::new("migration_threshold", message));
        }
        let metadata = (METADATA + blocks * METADATA_BLOCK).next_multiple_of(4096);
        Ok((blocks, metadata / SECTOR_BYTES))
    }

    /// Returns the sectors that may be written back at once.
    pub(super) fn threshold(&self) -> u64 {
        let blocks = THRESHOLD_BLOCKS * self.block.0 / SECTOR_BYTES;
        self.migration_threshold.unwrap_or(THRESHOLD.max(blocks))
    }
}
