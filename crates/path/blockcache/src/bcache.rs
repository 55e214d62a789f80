//! Linux's bcache (drivers/md/bcache, Linux 6.1).
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | keys |
//! | `extents.rs` | the map from the array's addresses to the flash device |
//! | `buckets.rs` | space on the flash device |
//! | `priorities.rs` | writes of the priorities of all buckets |
//! | `bypass.rs` | requests that pass by: sequential streams, congestion |
//! | `writeback.rs` | writing dirty data back: order, rate, pauses |
//! | `cache.rs` | the rule |
//!
//! Left out: nodes of the B-tree on the flash device (they are in memory and cost neither time nor
//! wear), moving garbage collection, several cache or backing devices, the mean of a task's
//! sequential I/O over several streams, and the higher rate for fragmented dirty data
//! (`writeback_consider_fragment`).

mod buckets;
mod bypass;
mod cache;
mod config;
mod extents;
mod priorities;
mod writeback;

pub(crate) use cache::build;
pub use config::{BcacheConfig, BcacheMode};
