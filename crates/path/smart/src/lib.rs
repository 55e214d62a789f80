//! Disk arrays whose disks compute parity themselves: disk-based XOR.
//!
//! A write of part of a row is one XDWRITE EXTENDED to the data disk. That disk
//! reads the old data, receives the new, writes it, and keeps the exclusive or
//! of both in a protected segment of its buffer (XDWRITE, an XDW); then it has
//! the parity disk read the old parity, fetch the exclusive or over the link and
//! write the new parity (XPWRITE, an XPW). No old data go to the host. The
//! commands are those of SBC (X3T10/94-111r9); the disciplines are those of
//! Chang & Du, "Efficient RAID disk scheduling on smart disks", sections 2 and 3.
//!
//! Read in the order in which a request passes:
//!
//! | file | what |
//! |---|---|
//! | `config.rs` | the keys of the layout `xor` |
//! | `map.rs` | a request's pieces, and where each lies |
//! | `piece.rs` | what is known of a piece on its way, and where its time went |
//! | `array.rs` | the layer: what goes over the link, and what follows it |
//! | `message.rs` | what is sent |
//! | `rows.rs` | who may write in a row at the same time |
//! | `disk.rs` | queues, segments, arm |
//! | `choices.rs` | what a disk could begin next |
//! | `discipline/` | which of it it begins, one file each, and their registry |
//! | `statistics.rs` | what a disk counts about itself |
//! | `readings.rs` | what the array reports |

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
pub use choices::{Choice, Choices, Class};
pub use config::{LAYOUT, PLACING, XorConfig};
pub use statistics::DiskStatistics;
