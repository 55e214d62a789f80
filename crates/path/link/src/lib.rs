//! The connection of a volume with its drives: a Fibre Channel loop, a SCSI bus, or a separate
//! connection for each drive. A [`Link`] carries transfers between the host and the members, which
//! are the ports ([`Station`]) of the link, and knows nothing about volumes. [`LinkNode`] puts a
//! link between a volume and its members. The time of a request's member I/O on the link is
//! `overhead` in the breakdown. `docs/reference/link.md` lists the keys with units and defaults,
//! `docs/glossary.md` the terms of the field.
//!
//! An **exchange** is all transfers of one member I/O: command, data, status. A **word** is four
//! bytes, which take 40 bits on a serial wire (8b/10b). A **tenancy** is the time from a port's win
//! of the link to the release.
//!
//! | file | contents |
//! |---|---|
//! | `link.rs` | the trait [`Link`] |
//! | `transfer.rs` | transfers and stations |
//! | `fc_al.rs`, `scsi.rs` | the loop and the bus: one sender at a time |
//! | `sas.rs` | two lanes for each member, one per direction |
//! | `registry.rs` | all links by name |
//! | `shared.rs`, `queues.rs` | arbitration of a shared medium |
//! | `wire.rs` | words, frames and their duration |
//! | `statistics.rs` | counters of a link |
//! | `node.rs` | the node |
//!
//! # Sources
//! Frames, ordered sets, access fairness: FC-PH and FC-AL-2 (INCITS 332-1999), as described by
//! drive manuals (Seagate, Fibre Channel Interface Manual, rev. D). Information units: FCP; SSP
//! (SAS 1.1). Delays of the bus: SCSI-2 and SPI. Defaults of the loop, 3.5 ns from port to port and
//! a delay of six words in each port: Chang and Du, "Efficient RAID Disk Scheduling on Smart
//! Disks", section 4.1.2, table 3.
//!
//! # Limits of the model
//! Loop and bus never initialise, break or lose a frame. Buffer credit, the receiver's room for
//! frames, never runs out. A loop's circuit (the connection of two ports) carries one direction. A
//! member sends the data of a read in one piece, when all data are in the member's buffer.

mod fc_al;
mod link;
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
pub use link::Link;
pub use node::LinkNode;
pub use registry::{BuildLink, REGISTRY};
pub use sas::SasConfig;
pub use scsi::ScsiConfig;
pub use statistics::{LinkStatistics, Traffic};
pub use transfer::{DeliveredTransfer, LinkTransfer, Payload, Station};
