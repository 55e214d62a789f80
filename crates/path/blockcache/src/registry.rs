//! The caches by name, one line each.

use crate::bcache::{self, BcacheConfig};
use crate::dmcache::{self, DmCacheConfig};
use crate::rule::{CacheRule, CacheSite};
use crate::writecache::{self, WritecacheConfig};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};

/// Builds a cache from its keys and the sizes of the devices.
pub type BuildCache = fn(&Keys, CacheSite) -> Result<Box<dyn CacheRule>, ConfigError>;

/// Every cache. A new cache is a new file and a line here.
#[rustfmt::skip]
pub const CACHE_REGISTRY: &[PolicyEntry<BuildCache>] = &[
    PolicyEntry { name: "bcache", summary: "Linux's bcache: extents in buckets on the flash device; reads are kept, sequential streams pass by; writes go through (default), wait on the flash device, or pass by", schema: schema_of::<BcacheConfig>, build: bcache::build },
    PolicyEntry { name: "dm-cache", summary: "Linux's dm-cache with smq, as lvmcache: popular blocks are copied to the flash device; writes of these blocks go through (default) or wait there", schema: schema_of::<DmCacheConfig>, build: dmcache::build },
    PolicyEntry { name: "dm-writecache", summary: "Linux's dm-writecache: writes wait on the flash device in blocks; reads are not kept", schema: schema_of::<WritecacheConfig>, build: writecache::build },
];
