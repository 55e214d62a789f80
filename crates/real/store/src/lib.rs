//! Bytes that must survive: arrays on real devices, and served volumes in a folder or in memory.
//!
//! Both stand on one trait, [`Device`], and on the same records: a journal, a
//! map of regions and two sealed copies of a description, written in the same
//! order. [`Array`] serves many threads at the speed of its devices; its members carry the records.
//! [`Store`](bytes::Store) carries out requests for volumes of volumes one at a time, when a model
//! says so; a file beside the members carries the records.
//!
//! [`create`] makes an array of [`Device`]s, [`assemble`] finds it again and mends
//! what a loss of power has left, [`Array`] takes requests, and [`serve`] has NBD
//! clients bring them. The layouts are those of `fullstroke-volume`, and their
//! plans are carried out on bytes.
//!
//! | file | what it holds |
//! |---|---|
//! | `device.rs`, `memory.rs`, `sparse.rs` | [`Device`]: block devices and files, memory, files of a folder |
//! | `copies.rs` | a sealed record in two copies |
//! | `bitmap.rs` | regions that are being written, and that failed members have missed |
//! | `journal.rs` | what is about to be changed |
//! | `buffers.rs` | the memory of a plan, and its arithmetic |
//! | `bytes.rs` | [`Store`](bytes::Store): the bytes of a served volume |
//! | `array.rs` | [`Array`]: reads, writes, flushes; what is in which order |
//! | `array/trim.rs` | room that is given back |
//! | `assembly.rs` | arrays are made, assembled, stopped, destroyed |
//! | `keys.rs` | what layouts take for granted, written down |
//! | `members.rs` | members fail, come back, are replaced and filled; what is written down of that |
//! | `gears.rs` | members that stand while little is asked of the array |
//! | `verify.rs` | redundancy against data, compared and mended |
//! | `judge.rs` | which of the sectors that contradict each other are wrong |
//! | `superblock.rs` | what each member says of itself and of its array |
//! | `label.rs` | which member a device is, said far from its superblocks |
//! | `gather.rs` | writes of one row that come together become one |
//! | `transfer.rs` | many transfers at a time, by io_uring or one by one |
//! | `locks.rs`, `group.rs` | rows that somebody needs alone; one flush for all who wait |
//! | `signatures.rs` | whose devices and files are |
//! | `standby.rs` | members whose platters stand while nobody needs them |
//! | `server.rs` | an array over NBD or ublk, questions and orders |
//! | `timed.rs` | devices that hang |
//! | `error.rs` | [`ArrayError`] |
//! | `power.rs` | the tests: arrays lose power |
//!
//! # One write down
//!
//! A write is cut into rows that it touches in part and a run of whole rows. Each
//! is planned, with its rows held; its regions are marked on all members, if they
//! are not; what the plan reads is read, and parity computed; unless rows are
//! written whole, all that is about to be written goes to the journals of the
//! members with the row's parity, and is flushed there; then all members are
//! written. A member that fails in between is done without: all others have been
//! written, so that the row is whole. Before the write is answered, the others
//! have its failure written down.
//!
//! # What orders what
//!
//! | before this | that is durable |
//! |---|---|
//! | a region's first write | its bit, on all members |
//! | a change of a row in part | its record, on the members with parity |
//! | a record's room is used again, or its row written without a record | the change, then the marker that says so |
//! | a bit is cleared | what was written in the region |
//! | a member counts as filled | what it was filled with |
//! | the answer to a write that a member missed | the others' superblocks without it |

#![allow(
    clippy::too_many_lines,
    reason = "the two stores become one; their long functions go then"
)]
mod array;
mod assembly;
mod bitmap;
mod buffers;
pub mod bytes;
mod copies;
mod device;
mod error;
mod gather;
mod gears;
mod group;
mod journal;
mod judge;
mod keys;
mod label;
mod locks;
mod members;
mod memory;
mod server;
mod signatures;
mod sparse;
mod standby;
mod superblock;
mod timed;
mod transfer;
mod verify;

#[cfg(test)]
mod power;

pub use array::{Array, Worker};
pub use assembly::{
    Allowances, Design, Report, assemble, assemble_with, create, destroy, examine, room, unused,
};
pub use device::{ALIGNMENT_BYTES, Access, Device, FileDevice};
pub use error::ArrayError;
pub use gears::Towards;
pub use judge::Repair;
pub use members::{Happening, SlotStatus, Status};
pub use memory::Memory;
pub use server::{Answer, Listen, Question, Serve, Serving, TOLD, ask, check_ublk, serve};
pub use signatures::owners;
pub use sparse::SparseFile;
pub use standby::{Attended, Standby, check_standby};
pub use superblock::{
    Copies, JournalPolicy, LowGear, Measured, Own, Roster, Slot, SlotState, Spare, Stamp,
    Superblock, Uuid,
};
pub use timed::{Limit, Timed};
pub use verify::{Comparison, Mismatch};
