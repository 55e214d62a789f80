//! Caches on a flash device in front of an array.
//!
//! A cache is a node with two lower ports: the array (the **origin**) and the flash device. The node
//! [`BlockCache`] carries requests out. A [`CacheRule`] decides about the place of data: which reads
//! and writes go to the flash device, which data are copied between both, and when.
//!
//! | file | content |
//! |---|---|
//! | `rule.rs` | the interface between the node and the rules |
//! | `registry.rs` | the rules by name |
//! | `node.rs`, `flight.rs` | the node |
//! | `bcache.rs`, `bcache/` | Linux's bcache |
//! | `dmcache.rs`, `dmcache/` | Linux's dm-cache with its policy smq |
//! | `writecache.rs` | Linux's dm-writecache |
//!
//! A run begins with an empty cache, or with clean data of the start of the array
//! ([`CacheRule::warm`]).

mod bcache;
mod dmcache;
mod flight;
mod node;
mod registry;
mod rule;
mod writecache;

#[cfg(test)]
mod kernel_tests;
#[cfg(test)]
mod tests;

pub use bcache::{BcacheConfig, BcacheMode};
pub use dmcache::{DmCacheConfig, DmCacheMode};
pub use node::BlockCache;
pub use registry::{BuildCache, CACHE_REGISTRY};
pub use rule::{CacheRule, CacheSite, CopyIo, Part};
pub use writecache::WritecacheConfig;
