//! A drive with shingled tracks whose zones the host knows of (ZBC for SCSI, ZAC for ATA).
//!
//! The addresses are zones of equal size. The first zones are **conventional**: the drive writes
//! them in any order. Each other zone has a **write pointer**, the address of the next write in
//! order. A **host-managed** drive refuses every other write of such a zone. A **host-aware** drive
//! takes every write, and treats writes that are out of order as a drive-managed drive does.
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the keys `[zoned]` of a drive file |
//! | `pointers.rs` | write pointers, open zones, and the rules of the commands |
//! | `node.rs` | the node around the drive |
//!
//! A discard of whole zones resets their write pointers, as f2fs does in place of a discard
//! (`__f2fs_issue_discard_zone`, fs/f2fs/segment.c, Linux 6.1). No other request resets a zone, and
//! no request opens or finishes a zone explicitly.
//!
//! Simplifications: a write pointer moves when the write arrives, because a host keeps the writes of
//! a zone in order. A read past the write pointer costs the same time as any other read. Conditions
//! of zones are always in memory. No request appends: SCSI and ATA have no such command.

mod config;
mod node;
mod pointers;

#[cfg(test)]
mod tests;

pub use config::{AtOpenLimit, ZonedConfig, ZonedModel, Zones};
pub(crate) use node::ZonedDrive;
