//! Our own model: an array under a load, as queues.
//!
//! | file | content |
//! |---|---|
//! | `load.rs` | measures of a load |
//! | `access.rs` | seek, rotation and transfer of a drive, in two moments |
//! | `gain.rs` | gain by the choice in a drive's queue, tabulated once |
//! | `station.rs` | one arm and its queue |
//! | `plans.rs` | accesses of a layout for a request |
//! | `join.rs` | requests whose parts end with the last part |
//! | `volume.rs` | the result: response times, utilisation, watts |
//! | `regime.rs` | bounds within which simulations agreed |

mod access;
mod gain;
mod join;
mod load;
mod moments;
mod plans;
mod regime;
mod station;
mod volume;

pub use access::{ArmModel, PhasedAccess};
pub use gain::QueueGain;
pub use join::PartMoments;
pub use load::{Load, LoadGatherer, PLACES};
pub use moments::Moments;
pub use plans::{PlannedAccesses, plans};
pub use regime::{Bound, REGIME};
pub use station::{StationResult, waiting};
pub use volume::{DriveTables, VolumeResult, queues};
