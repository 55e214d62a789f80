//! A hardware RAID controller between host and volume, with a queue, memory, and a link to the
//! host.
//!
//! A command waits for the controller's processor, and the data of the command wait for the link.
//! Reads are answered from memory or fetched from the array. Writes are taken into memory and
//! written later (write-back), or passed through. The controller's I/Os to the array wait under a
//! discipline of their own.
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the keys in a stack file |
//! | `controller.rs` | the layer: events in, effects out |
//! | `reads.rs` | reads: hits, fetches, read-ahead |
//! | `writes.rs` | writes, flushes and discards |
//! | `destage.rs` | times and pieces of destages |
//! | `command.rs` | a command of the host, with the breakdown of its time |
//! | `io.rs` | I/Os to the array |
//! | `memory.rs`, `block.rs` | blocks in memory: clean, dirty, on the way |
//! | `places.rs`, `lists.rs` | allocation, release and search of blocks |
//! | `epochs.rs` | epochs of dirty blocks, for flushes |
//! | `resource.rs` | the processor and the link, one user at a time |
//! | `streams.rs` | sequential readers, found by their addresses |
//! | `counts.rs` | counters for reports |
//! | `discipline/` | the choice of the next I/O for the array |
//!
//! # Guarantees
//!
//! - A read after the completion of a write sees the write. Memory goes before the array, and two
//!   destages of one sector are never in flight at once.
//! - Dirty data never exceed their share of memory. All dirty data reach the array in the end.
//! - With a battery, memory is durable, and a flush completes at once. Without a battery, a flush
//!   waits for all writes completed before, and then goes on to the array.
//!
//! The key `write_cache = true` of the volume tells if the drives keep written data in their own
//! buffers. With a battery, the drives should not do so, because no flush reaches the drives.
//!
//! The controller's memory is a cache of blocks. Vendors do not publish the replacement and destage
//! rules of real controllers. This controller replaces the least recently used block. The
//! controller destages the oldest dirty block first, together with dirty neighbours.

mod admission;
mod array_queue;
mod block;
mod command;
mod config;
mod controller;
mod counts;
mod destage;
mod destaging;
pub mod discipline;
mod epochs;
mod io;
mod lists;
mod memory;
mod places;
mod reads;
mod resource;
mod steps;
mod streams;
mod waits;
mod writes;

pub use config::{ControllerConfig, DestageConfig};
pub use controller::Controller;
