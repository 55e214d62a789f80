//! Storage pools like ZFS: the maps of vdevs, the capacity of a pool, and the layer of the pool.
//!
//! A pool is no [`Layout`](fullstroke_volume::Layout) with a fixed address map: each write goes to a
//! new place. The pool therefore has a crate and a layer of its own, as an array of disks that
//! compute parity has (`crates/path/smart`). The volume manager stays as small as before.
//!
//! All rules are those of OpenZFS 2.1 to 2.3. Each constant names the function or the file of its
//! source. No code is taken over.
//!
//! | term | meaning |
//! |---|---|
//! | vdev | a group of drives with common redundancy, such as a RAIDZ; a pool stripes over its vdevs |
//! | child | a drive of a vdev |
//! | sector | `2^ashift` bytes, the smallest unit of a vdev |
//! | record | a block of data of the volume, `recordsize` before compression |
//! | psize, asize | bytes of a block after compression, and with parity and padding |

mod allocate;
mod arc;
mod block;
pub mod capacity;
mod checks;
mod classes;
mod commit;
mod config;
pub mod draid;
mod draid_seeds;
mod files;
mod holding;
mod io;
mod keys;
mod l2arc;
mod layout;
pub mod parity;
mod place;
mod pool;
mod processor;
mod queue;
pub mod raidz;
mod registry;
mod resilver;
mod scan;
mod scatter;
mod segments;
mod sync;
mod throttle;
mod trim;
mod trim_ranges;
mod txg;
mod vdev;
mod zfetch;
mod zil;

pub use block::{BlockMap, BlockRow, Column};
pub use capacity::PoolCapacity;
pub use config::PoolSettings;
pub use draid::{Draid, DraidShape};
pub use keys::{
    DraidKeys, Kind, L2arcKeys, Logbias, MemoryKeys, MirrorKeys, Primarycache, ProcessorKeys,
    RaidzKeys, ResilverKind, ScanKeys, ScanRecords, Sync, TrimKeys, VdevKeys, VolumeKeys,
};
pub use layout::PoolLayout;
pub use place::{Dva, FirstPlaces};
pub use pool::Pool;
pub use raidz::Raidz;
pub use registry::{POOLS, kind_of};
pub use vdev::Vdev;
