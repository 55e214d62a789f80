//! A model of our own: an array under a load, as queues.
//!
//! | file | what |
//! |---|---|
//! | `load.rs` | what a load is to it |
//! | `access.rs` | seek, rotation and transfer of a drive, in two moments |
//! | `gain.rs` | what a drive's queue gains by its choice, tabulated once |
//! | `station.rs` | one arm and its queue |
//! | `plans.rs` | which accesses a layout makes of a request |
//! | `join.rs` | parts of a request that end with the last |
//! | `volume.rs` | all of that: response times, utilisation, watts |
//! | `regime.rs` | where a simulation was found to agree |

mod access;
mod gain;
mod join;
mod load;
mod moments;
mod plans;
mod regime;
mod station;
mod volume;

pub use access::{Access, Arm};
pub use gain::QueueGain;
pub use join::Apart;
pub use load::{Load, LoadGatherer, PLACES};
pub use moments::Moments;
pub use plans::{Planned, plans};
pub use regime::{Bound, REGIME};
pub use station::{Waiting, waiting};
pub use volume::{DriveTables, Queues, queues};
