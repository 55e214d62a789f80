//! What joins a volume to its drives: a Fibre Channel loop, a SCSI bus, or a
//! connection of its own for each.
//!
//! A [`Link`] carries transfers between the ports of a host and of its members,
//! and knows nothing of volumes; [`LinkNode`] puts one between a volume and
//! its members. What the member I/O of a request costs on the link is `overhead`
//! in its breakdown.
//!
//! | file | what |
//! |---|---|
//! | `transfer.rs` | what goes over a link; the trait |
//! | `fc_al.rs`, `scsi.rs` | the loop and the bus, which one port at a time may use |
//! | `sas.rs` | lanes for each member |
//! | `registry.rs` | all of them by name |
//! | `shared.rs`, `queues.rs` | who is next on a shared medium |
//! | `wire.rs` | words, frames, and how long they take |
//! | `statistics.rs` | what a link counts |
//! | `node.rs` | the node |
//!
//! # Sources
//!
//! Frames, ordered sets, access fairness: FC-PH and FC-AL-2 (INCITS 332-1999), as
//! drive manuals describe them (Seagate, Fibre Channel Interface Manual, rev. D).
//! Information units: FCP; SSP (SAS 1.1). Delays of the bus: SCSI-2 and SPI.
//! Defaults of the loop, 3.5 ns and six words a node: Chang and Du, "Efficient
//! RAID Disk Scheduling on Smart Disks", section 4.1.2, table 3.
//!
//! # Where the model ends
//!
//! Loop and bus never initialise, break or lose a frame; buffer credit does not
//! run out; a loop's circuit carries one direction. A member sends the data of a
//! read in one piece, when all of them are in its buffer.

mod fc_al;
mod node;
mod queues;
mod registry;
mod sas;
mod scsi;
mod shared;
mod statistics;
mod transfer;
mod wire;

#[cfg(test)]
mod conformance;

pub use fc_al::FcAlConfig;
pub use node::LinkNode;
pub use registry::{BuildLink, REGISTRY};
pub use sas::SasConfig;
pub use scsi::ScsiConfig;
pub use statistics::{LinkStatistics, Traffic};
pub use transfer::{Delivered, Link, Payload, Station, Transfer};
