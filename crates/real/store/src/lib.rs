//! Storage that must survive failures: arrays on real devices, and served volumes in a folder or in
//! memory.
//!
//! Arrays and volumes use one trait, [`Device`], and the same records: a journal, a map of regions
//! and two sealed copies of a description, written in the same order. [`Array`] serves many threads
//! at the speed of its devices; its members carry the records. [`Store`](bytes::Store) serves
//! nested volumes and carries out one request at a time, at the time set by a model. A file beside
//! the members carries its records.
//!
//! [`create`] makes an array of [`Device`]s. [`assemble`] finds the array again and mends the
//! effects of a power loss. [`Array`] carries out requests, and [`serve`] accepts requests from NBD
//! clients. The layouts of `fullstroke-volume` plan each request; this crate carries the plans out
//! on bytes.
//!
//! | file | contents |
//! |---|---|
//! | `device.rs`, `file_device.rs`, `memory.rs`, `sparse.rs` | [`Device`]: block devices and files, memory, files of a folder |
//! | `copies.rs` | a sealed record in two copies |
//! | `bitmap.rs` | regions that are being written, and regions that failed members have missed |
//! | `journal.rs` | changes that are about to be made |
//! | `overlay.rs` | devices whose writes stay in memory, for members that are only read |
//! | `buffers.rs` | the memory of a plan, and its arithmetic |
//! | `bytes.rs` | [`Store`](bytes::Store): the bytes of a served volume |
//! | `array.rs` | [`Array`] |
//! | `array/reading.rs`, `array/writing.rs`, `array/trim.rs`, `array/flushing.rs` | reads, writes, discards, flushes |
//! | `array/changing.rs` | the order of the steps of a change |
//! | `assembly.rs` | making, assembling, stopping and destroying arrays |
//! | `keys.rs` | the parameters of layouts, written down |
//! | `condition.rs`, `order.rs`, `epochs.rs`, `journals.rs` | owners of an array's state: failures and the end of changes; locks among threads; flushes; journals |
//! | `roster_record.rs` | the recorded description of an array in use |
//! | `vacant.rs` | devices that become members: owners, room, old signatures |
//! | `members.rs` | members fail, come back and are replaced |
//! | `members/filling.rs`, `members/mending.rs`, `members/recording.rs`, `members/tending.rs` | filling members; mending sectors; the records of members' states; what reads around members leave behind |
//! | `status.rs` | the state of an array for people |
//! | `gears.rs`, `gear_state.rs` | members in standby while the array has little load |
//! | `comparison.rs` | comparing the pieces of a planned write with the present bytes; the results |
//! | `verify.rs` | comparing redundancy of an array with data, and mending |
//! | `member_layout.rs` | a layout, with the states and the gear of its members: plans of requests, repairs, fills, and shifts |
//! | `judge.rs` | finding the wrong sectors among sectors that contradict each other |
//! | `superblock.rs` | the description of a member and its array on each member |
//! | `uuid.rs`, `label.rs` | the identity of a member, stored far from the description of its array |
//! | `gather.rs` | combining concurrent writes of one row |
//! | `transfer.rs`, `member_transfer.rs` | many transfers at a time, by io_uring or one by one |
//! | `locks.rs`, `group.rs` | exclusive access to rows; one flush for all threads that wait |
//! | `signatures.rs` | owners of devices and files |
//! | `standby.rs`, `stoppable.rs`, `stop_control.rs` | spinning idle members down |
//! | `server.rs` | an array over NBD or ublk; status and commands |
//! | `timed.rs`, `limit.rs` | devices that hang |
//! | `slow_members.rs`, `late.rs`, `array/race.rs` | slow members: finding them, policies against them, reads around them |
//! | `error.rs` | [`ArrayError`] |
//! | `power.rs` | the tests: arrays lose power |
//!
//! # The steps of a write
//!
//! 1. The write is cut into partly covered rows and a run of whole rows.
//! 2. The rows are locked and planned.
//! 3. The regions of the write are marked on all members, unless they are marked already.
//! 4. The old data and parity for the plan are read, and the new parity is computed.
//! 5. Unless whole rows are written, all new bytes are written to the journals of the members with
//!    the row's parity. The journals are flushed.
//! 6. All members are written.
//!
//! If a member fails in step 6, the write continues without the member. All other members have been
//! written, so the row is whole. The failure is written to the superblocks of the other members
//! before the write is answered.
//!
//! # Ordering
//!
//! | before this | this is durable |
//! |---|---|
//! | a region's first write | its bit, on all members |
//! | a change of part of a row | its record, on the members with parity |
//! | the room of a record is used again, or its row is written without a record | the change, then the marker that says so |
//! | a bit is cleared | all writes to the region |
//! | a member counts as filled | the bytes that filled it |
//! | the answer to a write that a member missed | the superblocks of the other members, without the member |

mod array;
mod assembly;
mod bitmap;
mod buffers;
pub mod bytes;
mod comparison;
mod condition;
mod copies;
mod device;
mod epochs;
mod error;
mod file_device;
mod gather;
mod gear_state;
mod gears;
mod group;
mod journal;
mod journals;
mod judge;
mod keys;
mod label;
mod late;
mod limit;
mod locks;
mod member_layout;
mod member_transfer;
mod members;
mod memory;
mod order;
mod overlay;
mod roster_record;
mod server;
mod signatures;
mod slow_members;
mod sparse;
mod standby;
mod status;
mod stop_control;
mod stoppable;
mod superblock;
mod timed;
mod transfer;
mod uuid;
mod vacant;
mod verify;

#[cfg(test)]
mod power;

pub use array::{Array, RequestScratch};
pub use assembly::{
    Allowances, AssemblyReport, Design, assemble, assemble_with, create, destroy, examine, room,
    unused,
};
pub use comparison::{MemberName, Mismatch, RedundancyCheck};
pub use condition::ArrayEvent;
pub use device::{ALIGNMENT_BYTES, Device, EndedRead, TakeRead};
pub use error::ArrayError;
pub use file_device::{FileDevice, OpenPurpose};
pub use gears::GearDirection;
pub use judge::Repair;
pub use late::{LatePolicy, LateStatus};
pub use limit::Limit;
pub use memory::MemoryDevice;
pub use server::{ControlAnswer, Listen, Question, Serve, Serving, TOLD, ask, check_ublk, serve};
pub use signatures::owners;
pub use slow_members::SlowMembers;
pub use sparse::SparseFile;
pub use standby::check_standby;
pub use status::{ArrayStatus, SlotStatus};
pub use stop_control::Standby;
pub use stoppable::StoppableDevice;
pub use superblock::{
    Copies, DeviceBinding, JournalPolicy, LowGear, MemberRates, MemberSlot, Roster, SlotState,
    Spare, Stamp, Superblock,
};
pub use timed::Timed;
pub use uuid::Uuid;
