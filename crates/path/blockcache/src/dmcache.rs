//! Linux's dm-cache with the policy smq (drivers/md/dm-cache-target.c and dm-cache-policy-smq.c,
//! Linux 6.1).
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | keys |
//! | `levels.rs` | queues of 64 levels |
//! | `smq.rs` | the policy: which blocks go to the flash device, and which leave |
//! | `target.rs` | the rule |
//!
//! Left out: discards that spare the read of a promotion, writes of a whole block in place of a
//! promotion, the sentinels of smq (an entry that was just promoted may be written back at once), and
//! changes of the mode at run time.

mod config;
mod host_io;
mod hotspots;
mod levels;
mod mappings;
mod smq;
mod target;

pub use config::{DmCacheConfig, DmCacheMode};
pub(crate) use target::build;
