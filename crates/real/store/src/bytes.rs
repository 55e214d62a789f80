//! Where the bytes of a served volume live.
//!
//! A [`Store`] keeps the bytes of a volume on one [`Device`](crate::Device) a drive: in memory
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
//! | `gathered.rs` | the bytes of each member I/O in one piece |
//! | `verify.rs` | redundancy against data, compared and mended |
//! | `media.rs`, `transaction.rs` | all media; changes before they are made |
//! | `records.rs` | the store's own file: `description.rs`, `marks.rs`, `redo.rs` |
//! | `lock.rs` | one server a folder |
//! | `old.rs` | folders of format 2 |
//! | `error.rs` | [`StoreError`] |
//!
//! # The folder
//!
//! | file | what it holds |
//! |---|---|
//! | `fullstroke.store` | two copies of the description: the stack's digest, the members and their states, whether the store was closed; a bit for each region of the volume (16 MiB, or more for volumes beyond 8 TiB) that is being written; the journal, where there is parity |
//! | `member-0.2.img` | the bytes of the drive that is member 2 of member 0; behind them 4 KiB with a label: store, member, events |
//! | `written-since-0` | a bit for each sector that was written since data was given up for the first time |
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
//! completed request. **A loss of power**, or a crash of the host: what was synced before. Of all
//! else, each sector is old or new.
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
//!   This costs every byte being written twice, and a flush of the journal.
//!
//! With [`Opening::survive_power_loss`] marks and records are durable before what they stand
//! for, and all is durable before a member's state changes. `bytes/power.rs` tries it.
//!
//! **A member lost together with power or the process**: if the files of a member are
//! gone when an unclean store is opened whose parity volumes had all members, the marked regions
//! cannot be mended; [`OpenReport::regions_at_risk`] counts them.
//!
//! # Costs
//!
//! `cargo run --release -p fullstroke-store --example speed` prints requests a
//! second, whole and degraded, in memory and in files, and the time that mending
//! a region takes.

mod array;
mod description;
mod durability;
mod error;
mod gathered;
mod gears;
mod healing;
mod lock;
mod loss;
mod marks;
mod media;
mod members;
mod node;
mod old;
mod opening;
mod reading;
mod records;
mod redo;
mod states;
mod store;
mod sync;
mod transaction;
mod verify;

#[cfg(test)]
mod cuts;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod power;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod samples;

pub use description::RebuildRecord;
pub use durability::{MarkJob, Marked, SyncJob, Synced, Tidy};
pub use error::StoreError;
pub use lock::is_store;
pub use members::MemberStatus;
pub use opening::{Location, OpenReport, Opening, Progress};
pub use store::{Dropped, Scrub, Store};
pub use verify::{Comparison, Differing, Mismatch, differing};
