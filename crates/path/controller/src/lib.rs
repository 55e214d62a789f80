//! A hardware RAID controller between host and volume: its queue, its memory,
//! its link to the host.
//!
//! A command waits for the controller's processor, and its data for the link.
//! Reads are answered from memory or fetched from the array; writes are taken
//! into memory and written later (write-back), or handed through. What the
//! controller asks of the array waits under a discipline of its own.
//!
//! | file | what |
//! |---|---|
//! | `config.rs` | what a stack file says about it |
//! | `controller.rs` | the layer: events in, effects out |
//! | `reads.rs` | reads: hits, fetches, read-ahead |
//! | `writes.rs` | writes, flushes and discards |
//! | `destage.rs` | when dirty data go to the array, and in which pieces |
//! | `command.rs` | a command of the host, and where its time went |
//! | `io.rs` | what the controller asks of the array |
//! | `memory.rs`, `block.rs` | blocks in memory: clean, dirty, on their way |
//! | `places.rs`, `lists.rs` | how they get and lose their place, and are found |
//! | `epochs.rs` | what a flush has to wait for |
//! | `resource.rs` | the processor and the link, one user at a time |
//! | `streams.rs` | sequential readers, found by their addresses |
//! | `counts.rs` | what is counted, for reports |
//! | `discipline/` | which I/O the array is given next |
//!
//! # What it promises
//!
//! - A read that is submitted after a write has completed sees that write:
//!   memory goes before the array, and two writes of one sector are never on
//!   their way to the array at once.
//! - Dirty data never exceed their share of memory, and all of them reach the
//!   array in the end.
//! - A flush with a battery completes at once, because memory is durable then;
//!   without one it waits for everything that completed before it, and goes on
//!   to the array.
//!
//! Whether the drives keep written data in buffers of their own is said in the
//! volume (`write_cache = true`);
//! with a battery they should not, because no flush reaches them.
//!
//! A controller's memory is a cache of blocks. Real controllers are silent on
//! their replacement and destage rules; those here are least recently used, and
//! oldest first with its dirty neighbours.

mod block;
mod command;
mod config;
mod controller;
mod counts;
mod destage;
pub mod discipline;
mod epochs;
mod io;
mod lists;
mod memory;
mod places;
mod reads;
mod resource;
mod streams;
mod writes;

pub use config::{ControllerConfig, DestageConfig};
pub use controller::Controller;
