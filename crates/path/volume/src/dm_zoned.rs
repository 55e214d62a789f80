//! Linux's dm-zoned: a device with ordinary writes above a drive with zones.
//!
//! The addresses of the device are **chunks** of the size of a zone. A map gives each chunk a
//! **data zone**: a conventional zone, which takes writes in any order (a **random** zone here), or
//! a zone with a write pointer (a **sequential** zone). A write of a sequential data zone that does
//! not begin at the write pointer goes to a random zone, the **buffer** of the chunk, at the same
//! place in the zone. Bitmaps tell which zone has the valid data of each block of 4 KiB.
//! **Reclaim** frees random zones: reclaim copies their valid blocks to sequential zones.
//!
//! The rules are those of Linux 6.1 with one drive (drivers/md/dm-zoned-target.c,
//! dm-zoned-metadata.c, dm-zoned-reclaim.c, dm-kcopyd.c). No code is taken over.
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the keys, and the format of the drive |
//! | `layout.rs` | the layout of a stack: sizes |
//! | `valid.rs` | the set of valid blocks of a zone |
//! | `map.rs` | the map of chunks, free zones, zones by age |
//! | `metadata.rs` | bitmaps in memory, and writes of changed metadata |
//! | `node.rs`, `requests.rs` | the node, and its requests |
//! | `reclaim.rs`, `copy.rs`, `progress.rs` | the choice of a zone, the copies, and the state of both |
//! | `throttle.rs` | the share of time that copies may take |
//!
//! Differences from Linux: an empty buffer becomes free when no request of its chunk is in flight,
//! and not while a read of the buffer may be under way. Reclaim finds its bitmaps in memory. The
//! drive's cache is flushed every ten seconds only if something was written.

mod config;
mod copy;
mod layout;
mod map;
mod metadata;
mod node;
mod progress;
mod reclaim;
mod requests;
mod throttle;
mod valid;

#[cfg(test)]
mod tests;

pub use config::{DmZonedConfig, DriveZones};
pub use node::DmZoned;

use crate::layout::BuildLayout;
use fullstroke_contract::registry::{PolicyEntry, schema_of};

/// The layouts above a drive with zones.
#[rustfmt::skip]
pub const ZONED_REGISTRY: &[PolicyEntry<BuildLayout>] = &[
    PolicyEntry { name: "dm-zoned", summary: "Linux's dm-zoned above one drive with zones: writes in any order, with the conventional zones as a write buffer; survives no failed drive", schema: schema_of::<DmZonedConfig>, build: layout::ZonedLayout::build },
];
