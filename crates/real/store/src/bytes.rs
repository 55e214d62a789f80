//! Where the bytes of a served volume live.
//!
//! A [`Store`] keeps the bytes of a volume on one [`Medium`] a drive: in memory
//! or in sparse files of a folder. It asks the layouts of `fullstroke-volume`
//! for the same plans that a simulation times, and carries them out: pieces are
//! read, parity is computed, pieces are written. A request is carried out as a
//! whole before the next, so that parity and copies are right between any two.
//!
//! | file | what it holds |
//! |---|---|
//! | `store.rs` | [`Store`]: reads, writes, zeros, discards, allocation, scrubbing |
//! | `opening.rs` | a store is made, or opened again and mended |
//! | `reading.rs` | a store that is only read, and nothing of it changed |
//! | `durability.rs`, `sync.rs` | syncing, also from another thread; tidying; closing |
//! | `members.rs` | members fail, are restored, and are filled again |
//! | `healing.rs` | what the host's storage fails to do, and what follows |
//! | `loss.rs` | data that was given up, until it is written again |
//! | `gears.rs` | arrays whose members stop: what a shift copies |
//! | `states.rs` | how one member's failure is another's, in volumes of volumes |
//! | `node.rs`, `array.rs` | the tree of drives and volumes; plans on bytes |
//! | `buffers.rs`, `gathered.rs` | the memory of a plan, its arithmetic |
//! | `verify.rs` | redundancy against data, compared and mended |
//! | `medium.rs`, `memory.rs`, `file.rs` | [`Medium`], and its two kinds |
//! | `media.rs`, `transaction.rs` | all media; changes before they are made |
//! | `journal.rs`, `regions.rs`, `superblock.rs`, `lock.rs` | the other files of the folder |
//! | `sealed.rs` | check sums and identity of what the folder holds |
//! | `error.rs` | [`StoreError`] |
//!
//! # The folder
//!
//! | file | what it holds |
//! |---|---|
//! | `fullstroke.toml` | format, the stack's digest, the members and their states, whether the store was closed; always whole |
//! | `member-0.2.img` | the bytes of the drive that is member 2 of member 0; behind them 4 KiB with a label: store, member, events |
//! | `regions` | a bit for each region of the volume (16 MiB, or more for volumes beyond 8 TiB) that is being written |
//! | `journal` | the changes of the latest request to a degraded parity volume |
//! | `written-0` | a bit for each sector that was written since data was given up for the first time |
//! | `lock` | nothing; it is locked while the store is open |
//!
//! Everything beside the drives' bytes has check sums and names the store that
//! it is of. The store counts events: each opening, failure and replacement.
//! Labels and description must agree on it, so that a file that was put back
//! from an earlier time, or in another's place, is found and counts as missing.
//! Marks that are not whole mean that all regions are compared after a kill; a
//! journal that is not whole is an error if it may have been needed. The drives'
//! bytes themselves have no check sums: [`Store::scrub`] compares them.
//!
//! # What survives what
//!
//! **The death of the process** at any moment, `kill -9` included: every
//! completed request. Of the one that was under way, each sector is old or new.
//! Redundancy follows from the data again when the store is opened:
//!
//! - With all members, parity is computed and copies are made again in the
//!   marked regions, from the data as it is. A region is marked before it is
//!   first written, and no longer marked when it was quiet for some seconds and
//!   a sync has passed. This costs nothing for each request but the first of a
//!   region.
//! - A parity volume that lacks a member cannot do that: new data with old
//!   parity gives a wrong sum for what the missing member held, also where
//!   nobody wrote (the "write hole"). There all changes of a request are written
//!   to the journal before the first is made, and are made again from there.
//!   Requests are carried out one at a time, so one record is enough. This costs
//!   every byte being written twice.
//!
//! **A loss of power**, or a crash of the host: what was synced before. With
//! [`Opening::survive_power_loss`] the marks are durable before what they stand
//! for, and redundancy of volumes with all members is mended as above. Not
//! covered is a parity volume that lacks a member: the host writes journal and
//! members back in any order, so what the missing member held in rows that were
//! written since the last sync may be computed wrongly. An array that lost power
//! while it was degraded should be scrubbed, and such rows be restored from
//! elsewhere.
//!
//! **A member lost together with the process**: if the files of a member are
//! gone when an unclean store is opened, the marked regions cannot be mended;
//! [`OpenReport::regions_at_risk`] counts them.
//!
//! # Costs
//!
//! `cargo run --release -p fullstroke-store --example speed` prints requests a
//! second, whole and degraded, in memory and in files, and the time that mending
//! a region takes.

mod array;
mod buffers;
mod durability;
mod error;
mod file;
mod gathered;
mod gears;
mod healing;
mod journal;
mod lock;
mod loss;
mod media;
mod medium;
mod members;
mod memory;
mod node;
mod opening;
mod reading;
mod regions;
mod sealed;
mod states;
mod store;
mod superblock;
mod sync;
mod transaction;
mod verify;

#[cfg(test)]
mod cuts;
#[cfg(test)]
mod faults;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod samples;

pub use buffers::{Buffers, RequestBytes};
pub use durability::{MarkJob, Marked, SyncJob, Synced, Tidy};
pub use error::StoreError;
pub use file::FileMedium;
pub use medium::{Durable, Medium};
pub use members::MemberStatus;
pub use memory::MemoryMedium;
pub use opening::{Location, OpenReport, Opening, Progress};
pub use store::{Dropped, Scrub, Store};
pub use superblock::RebuildRecord;
pub use verify::{Comparison, Differing, Mismatch, differing};
