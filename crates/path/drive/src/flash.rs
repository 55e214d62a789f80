//! A flash device (SSD) described by the numbers of its data sheet.
//!
//! A command waits for one of `parallelism` units, takes its latency there, and moves its data over
//! one path: by the rate of the interface, and at most so many commands a second as the data sheet
//! names. Written data fill a **write cache** of cells with one bit (SLC). When this cache is full,
//! writes go on at the rate behind the cache. An idle device empties the cache at that rate.
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the keys `[flash]` of a drive file |
//! | `node.rs` | the device |
//!
//! Left out: garbage collection inside the device with its pauses and its own writes (the rate behind
//! the cache stands for both), reads that wait for the erasure of a block, heat, and a cache whose
//! size depends on the fill of the device.

mod config;
mod node;

#[cfg(test)]
mod tests;

pub(crate) use config::Flash;
pub use config::{FlashConfig, complete_flash};
pub(crate) use node::FlashDrive;
