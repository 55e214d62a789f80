//! A drive with shingled tracks that hides the shingles (drive-managed SMR).
//!
//! Shingled tracks overlap, so that a track cannot be written without destroying its neighbour. The
//! tracks form **bands**, and only a whole band can be written in place. Therefore the drive keeps a
//! **persistent cache** on the medium. Writes go to the end of the cache, which is a log. A map
//! finds the newest data of each sector: in the cache, or at home in the band. In idle time, or when
//! the cache is full, the drive **cleans** bands: the drive reads a band, puts the cached data in,
//! and writes the band (Aghayev & Desnoyers, "Skylight", FAST 2015).
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the keys `[shingled]` of a drive file |
//! | `map.rs` | the log of the cache, and the map |
//! | `buffer.rs` | writes in the volatile buffer, before they reach the medium |
//! | `node.rs` | the node: requests, and what the drive inside does for them |
//! | `under_way.rs` | work under way inside the drive |
//! | `writer.rs` | writes to the cache, or of whole bands |
//! | `cleaner.rs` | cleaning |
//! | `mover.rs` | moves of valid data to the end of the log |
//!
//! Simplifications: the cache lies on the outermost tracks, which the first bands share with the
//! cache in the model; this moves the first bands by less than a hundredth of the stroke. A map is
//! always in memory. The drive loses nothing at a loss of power.

mod buffer;
mod cleaner;
mod config;
mod map;
mod mover;
mod node;
mod under_way;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use config::Shingles;
pub use config::{Cleaning, ShingledConfig};
pub(crate) use node::ShingledDrive;
