//! The keys of bcache.

use crate::rule::CacheSite;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Least number of buckets: `cache_alloc` (super.c) keeps a share of 2^-10 of the buckets free,
/// rounded up to a power of two before, and refuses a cache without such a bucket. Linux 6.12
/// refuses 70 MiB in buckets of 512 KiB ("nbuckets is too small").
const BUCKETS_MIN: u64 = (1 << 9) + 1;
/// Largest number of buckets, because each takes memory in the model.
const BUCKETS_MAX: u64 = 1 << 24;

/// `cutoff_writeback` (writeback.h): the largest `writeback_percent`, because writes that are not
/// synchronous go through from this share of dirty buckets on.
const CUTOFF_WRITEBACK: u32 = 40;

/// The place of written data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BcacheMode {
    /// On the flash device and the array; the write ends when both have the data.
    #[default]
    Writethrough,
    /// On the flash device first, and on the array later.
    Writeback,
    /// On the array alone.
    Writearound,
}

/// The keys of bcache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BcacheConfig {
    /// Place of written data: `writethrough` (default), `writeback` or `writearound`.
    #[serde(default)]
    pub mode: BcacheMode,
    /// Unit of space on the flash device. Default 512KiB, as make-bcache.
    #[serde(default = "half_mib")]
    pub bucket: Bytes,
    /// Length of a sequential stream from which the stream passes by the cache. 0 = never. bcache
    /// follows the last 128 streams. Default 4MiB.
    #[serde(default = "four_mib")]
    pub sequential_cutoff: Bytes,
    /// Time of a read by the flash device above which the device counts as congested. Some
    /// requests, chosen at random, then go to the array without the cache, those of long streams
    /// first. 0 = never. Default 2ms.
    #[serde(default = "two_ms")]
    pub congested_read_threshold: Duration,
    /// Time of a write by the flash device above which the device counts as congested. 0 = never.
    /// Default 20ms.
    #[serde(default = "twenty_ms")]
    pub congested_write_threshold: Duration,
    /// Share of the cache that may be dirty, in percent, 0 to 40. A controller sets the rate of
    /// writing back so that the share is kept. 0 = dirty data are written as fast as possible.
    /// Default 10.
    #[serde(default = "ten")]
    pub writeback_percent: u32,
    /// Pause after each pass over all dirty data. Default 30s.
    #[serde(default = "thirty_seconds")]
    pub writeback_delay: Duration,
    /// Lowest rate of writing back, in bytes a second. Default 4KiB.
    #[serde(default = "four_kib")]
    pub writeback_rate_minimum: Bytes,
    /// True if a cache that had no I/O for 30 s writes back as fast as possible. Default true.
    #[serde(default = "yes")]
    pub idle_max_writeback_rate: bool,
}

fn half_mib() -> Bytes {
    // `make-bcache` makes buckets of 1,024 sectors.
    Bytes(512 << 10)
}
fn four_mib() -> Bytes {
    // `cached_dev_init`: sequential_cutoff.
    Bytes(4 << 20)
}
fn two_ms() -> Duration {
    // `bch_cache_set_alloc`: congested_read_threshold_us.
    Duration::from_millis(2)
}
fn twenty_ms() -> Duration {
    // `bch_cache_set_alloc`: congested_write_threshold_us.
    Duration::from_millis(20)
}
fn ten() -> u32 {
    // `bch_cached_dev_writeback_init`: writeback_percent, and writeback_delay below.
    10
}
fn thirty_seconds() -> Duration {
    Duration::from_secs(30)
}
fn four_kib() -> Bytes {
    Bytes(4096)
}
fn yes() -> bool {
    true
}

impl BcacheConfig {
    /// Checks the keys, and returns the number of buckets.
    ///
    /// # Errors
    /// Names the key, the value found and the value expected.
    pub(crate) fn check(&self, site: &CacheSite) -> Result<u64, ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        let bucket = self.bucket.0;
        // `read_super_common`: a power of two, at least a page; a sector count of 16 bits.
        if !bucket.is_power_of_two() || !(4096..=16 << 20).contains(&bucket) {
            let message = format!(
                "found {}; expected a power of two from 4KiB to 16MiB",
                self.bucket
            );
            return refuse("bucket", message);
        }
        let buckets = site.cache.0 / (bucket / SECTOR_BYTES);
        if buckets < BUCKETS_MIN {
            let message = format!(
                "found {}; a cache of {BUCKETS_MIN} buckets of {} needs {} at least, because bcache keeps a 1024th of its buckets free, rounded up",
                site.cache.bytes(),
                self.bucket,
                Bytes(BUCKETS_MIN * bucket)
            );
            return refuse("size", message);
        }
        if buckets > BUCKETS_MAX {
            let message = format!(
                "found {}, which are {buckets} buckets in {}; expected {BUCKETS_MAX} at most: give a larger bucket or a smaller cache",
                self.bucket,
                site.cache.bytes()
            );
            return refuse("bucket", message);
        }
        if self.writeback_percent > CUTOFF_WRITEBACK {
            let message = format!(
                "found {}; expected 0 to {CUTOFF_WRITEBACK}, because writes go through to the array when more buckets are dirty",
                self.writeback_percent
            );
            return refuse("writeback_percent", message);
        }
        if self.writeback_rate_minimum.0 < SECTOR_BYTES {
            let message = format!(
                "found {}; expected {} or more",
                self.writeback_rate_minimum,
                Bytes(SECTOR_BYTES)
            );
            return refuse("writeback_rate_minimum", message);
        }
        Ok(buckets)
    }
}
