//! Predictions without a simulation: closed formulas, and a queueing model.
//!
//! | file | content |
//! |---|---|
//! | `answer.rs` | the predictions of all formulas for a stack, compared with a simulation |
//! | `occupancy.rs` | number of places that a random set of requests reaches |
//! | `fingerprint.rs` | summary of a trace, for all layouts |
//! | `windowed.rs`, `gears.rs` | latency and energy of disks, striped and geared arrays from the fingerprint |
//! | `queueing.rs` | our own model: arrays as queues of drives with their own mechanics |
//! | `members.rs` | probability of idle members of an array |
//! | `merges.rs` | probability that requests of a random set can be merged |

mod answer;
mod fingerprint;
mod gears;
mod members;
mod merges;
mod occupancy;
mod queueing;
mod windowed;

pub use answer::{
    Bounded, Modelled, PredictError, PredictQuestion, PredictedLayout, Prediction, SimulatedStack,
};
pub use fingerprint::{Arrival, Fingerprint, Gatherer, Totals, WINDOW_S, Window};
pub use gears::{Gears, Reserve, Shifted, ThresholdError, geared};
pub use members::{IdleMembers, idle_members};
pub use merges::{MergeChance, merge_chance};
pub use queueing::{
    Access, Apart, Arm, Bound, DriveTables, Load, LoadGatherer, Moments, PLACES, Planned,
    QueueGain, Queues, REGIME, Waiting, plans, queues, waiting,
};
pub use windowed::{Disk, Powers, Predicted, elapsed_s, energy_j, latency_s, seek_delays, striped};
