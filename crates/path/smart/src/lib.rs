//! Disk arrays with disks that compute parity themselves: disk-based XOR.
//!
//! A write of part of a row is one XDWRITE EXTENDED to the data disk. The data disk reads the old
//! data, receives the new data and writes them. The disk keeps the exclusive or of both in a
//! protected segment of the buffer (XDWRITE, an XDW). Then the data disk sends a command to the
//! parity disk: read the old parity, fetch the exclusive or over the link and write the new parity
//! (XPWRITE, an XPW). No old data go to the host. The commands are those of SBC (X3T10/94-111r9).
//! The disciplines are those of Chang & Du, "Efficient RAID disk scheduling on smart disks",
//! sections 2 and 3.
//!
//! The table lists the files in the order in which a request passes through them:
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the keys of the layout `xor` |
//! | `map.rs` | the pieces of a request, and their places |
//! | `piece.rs` | the state of a piece in flight, and the breakdown of its time |
//! | `array.rs` | the layer: messages over the link, and their effects |
//! | `message.rs` | the messages |
//! | `rows.rs` | locks of rows for writes |
//! | `disk.rs` | queues, segments, arm |
//! | `choices.rs` | the commands that a disk could begin next |
//! | `discipline/` | the choice of the next command, one file each, and their registry |
//! | `statistics.rs` | counters of a disk |
//! | `readings.rs` | readings of the array |

mod array;
mod choices;
mod config;
pub mod discipline;
mod disk;
mod map;
mod message;
mod piece;
mod readings;
mod rows;
mod statistics;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use array::SmartArray;
pub use choices::{Choices, CommandClass, NextCommand};
pub use config::{LAYOUT, PLACING, XorConfig};
pub use statistics::DiskStatistics;
