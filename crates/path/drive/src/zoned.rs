//! A drive with shingled tracks whose zones the host knows of (ZBC for SCSI, ZAC for ATA).
//!
//! The addresses are zones of equal size. The first zones are **conventional**: the drive writes
//! them in any order. Each other zone has a **write pointer**, the address of the next write in
//! order. A **host-managed** drive refuses every other write of such a zone. A **host-aware** drive
//! takes every write. Writes at the write pointer go to their zone, and writes that are out of order
//! go the way of a drive-managed drive.
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the keys `[zoned]` of a drive file |
//! | `pointers.rs` | write pointers, open zones, and the rules of the commands |
//! | `plug.rs` | writes that wait in the host: zone write plugging and zone append |
//! | `node.rs` | the node around the drive |
//!
//! A discard of whole zones resets their write pointers, as f2fs does in place of a discard
//! (`__f2fs_issue_discard_zone`, fs/f2fs/segment.c, Linux 6.1). No other request resets a zone, and
//! no request opens or finishes a zone explicitly.
//!
//! Simplifications: a write pointer moves when the write arrives at the drive. A read past the write
//! pointer costs the same time as any other read. Conditions of zones are always in memory. No
//! request appends: SCSI and ATA have no such command, and the host makes appends writes.

mod config;
mod node;
mod plug;
mod pointers;

#[cfg(test)]
mod tests;

pub use config::{AtOpenLimit, ZoneWrites, ZonedConfig, ZonedModel, Zones};
pub(crate) use node::{DriveInside, ZonedDrive};
