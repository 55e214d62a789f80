//! The bytes of a served volume.
//!
//! A [`Store`] keeps the bytes of a volume on one [`Device`](crate::Device) for each drive: in
//! memory or in sparse files of a folder. The layouts of `fullstroke-volume` plan each request, as
//! in a simulation, and the store carries the plans out: reads of pieces, arithmetic of parity, and
//! writes of pieces. A request is carried out as a whole before the next. So parity and copies are
//! right between any two requests.
//!
//! | file | contents |
//! |---|---|
//! | `store.rs` | [`Store`]: reads, writes, zeros, discards, allocation, scrubbing |
//! | `opening.rs` | making a store, and opening and mending it |
//! | `reading.rs` | a store that is opened read-only |
//! | `durability.rs`, `sync.rs`, `checkpoints.rs` | syncing, also from another thread; tidying; closing |
//! | `members.rs` | members fail, are restored, and are filled again |
//! | `healing.rs` | failures of the host's storage, and their consequences |
//! | `loss.rs` | data that was given up, until it is written again |
//! | `gears.rs` | arrays with standby members: the copies that a shift makes |
//! | `states.rs` | how the failure of one member fails others, in nested volumes |
//! | `node.rs`, `array.rs`, `member.rs` | the tree of drives and volumes; plans on bytes; a member of a volume |
//! | `gathered.rs` | the bytes of each member I/O in one piece |
//! | `verify.rs` | comparing redundancy with data, and mending |
//! | `media.rs`, `transaction.rs` | all media; changes before they are made |
//! | `records.rs` | the store's own file: `description.rs`, `marks.rs`, `redo.rs` |
//! | `lock.rs` | one server for each folder |
//! | `old.rs` | folders of format 2 |
//! | `error.rs` | [`StoreError`] |
//!
//! # The folder
//!
//! | file | contents |
//! |---|---|
//! | `fullstroke.store` | two copies of the description: the stack's digest, the members and their states, whether the store was closed; a bit for each region of the volume (16 MiB, or more for volumes beyond 8 TiB) that is being written; the journal, if a volume has parity |
//! | `member-0.2.img` | the bytes of the drive that is member 2 of member 0; behind them 4 KiB with a label: store, member, events |
//! | `written-since-0` | a bit for each sector that was written since data was given up for the first time |
//! | `lock` | nothing; the file is locked while the store is open |
//!
//! All records beside the drives' bytes have check sums and name their store. The store counts
//! events: each opening, failure and replacement. The labels and the description must agree on this
//! count. So a file from an earlier time, or in the place of another file, is found and counts as
//! missing. If the marks are damaged, all regions are compared after a kill. A damaged journal is
//! an error if its records may have been needed. The drives' bytes themselves have no check sums:
//! [`Store::scrub`] finds differences.
//!
//! # Crashes and power loss
//!
//! After **the death of the process** at any moment, including `kill -9`, every completed request
//! is there. After **a loss of power** or a crash of the host, all synced data is there. Each other
//! sector is old or new. The opening makes redundancy follow from the data again:
//!
//! - With all members, parity and copies are made again in the marked regions, from the present
//!   data. A region is marked before its first write. The mark is cleared after some quiet seconds
//!   and a sync. The cost is one write for the first request to a region, and none for the others.
//! - A parity volume without a member cannot be mended so: new data with old parity gives wrong
//!   bytes for the missing member, also where nothing was written (the "write hole"). Such a volume
//!   writes all changes of a request to the journal before the first is made, and repeats the
//!   changes from the journal. The cost is a second write of every byte, and a flush of the
//!   journal.
//!
//! With [`Opening::survive_power_loss`], marks and records are durable before their changes, and
//! all data is durable before a member's state changes. The tests are in `bytes/power.rs`.
//!
//! **A member lost together with power or the process**: the files of a member may be missing when
//! an unclean store is opened. With [`JournalScope::All`] this costs nothing: the journal has all
//! changes. With [`JournalScope::Degraded`], if all parity volumes had all members until then,
//! there are no journal records, and the marked regions cannot be mended.
//! [`OpenReport::regions_at_risk`] counts these regions.
//!
//! # Costs
//!
//! `cargo run --release -p fullstroke-store --example store_speed` prints requests per second, whole and
//! degraded, in memory and in files, and the time to mend a region.

mod array;
mod checkpoints;
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
mod member;
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

pub use crate::comparison::{Mismatch, RedundancyCheck};
pub use description::{JournalScope, RebuildRecord};
pub use durability::{MarkJob, MarkResult, SyncJob, SyncResult, TidyWork};
pub use error::StoreError;
pub use lock::is_store;
pub use members::MemberStatus;
pub use opening::{MendingProgress, OpenReport, Opening, StoreLocation};
pub use store::{HostFailedMember, Scrub, Store};
