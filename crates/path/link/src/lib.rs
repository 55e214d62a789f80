//! The connection of a volume with its drives: a Fibre Channel loop, a SCSI bus, or a separate
//! connection for each drive. A [`Link`] carries transfers between the ports of a host and the
//! members, and knows nothing about volumes. [`LinkNode`] puts a link between a volume and its
//! members. The time of a request's member I/O on the link is `overhead` in the breakdown.
//!
//! | file | contents |
//! |---|---|
//! | `transfer.rs` | transfers; the trait |
//! | `fc_al.rs`, `scsi.rs` | the loop and the bus, for one port at a time |
//! | `sas.rs` | lanes for each member |
//! | `registry.rs` | all links by name |
//! | `shared.rs`, `queues.rs` | arbitration of a shared medium |
//! | `wire.rs` | words, frames and their duration |
//! | `statistics.rs` | counters of a link |
//! | `node.rs` | the node |
//!
//! # Sources
//! Frames, ordered sets, access fairness: FC-PH and FC-AL-2 (INCITS 332-1999), as described by
//! drive manuals (Seagate, Fibre Channel Interface Manual, rev. D). Information units: FCP; SSP
//! (SAS 1.1). Delays of the bus: SCSI-2 and SPI. Defaults of the loop, 3.5 ns and six words per
//! node: Chang and Du, "Efficient RAID Disk Scheduling on Smart Disks", section 4.1.2, table 3.
//!
//! # Limits of the model
//! Loop and bus never initialise, break or lose a frame. Buffer credit never runs out. A loop's
//! circuit carries one direction. A member sends the data of a read in one piece, when all data are
//! in the buffer.

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
pub use transfer::{DeliveredTransfer, Link, LinkTransfer, Payload, Station};
