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
    BoundedMeasure, PredictError, PredictQuestion, PredictedLayout, Prediction, QueueingPrediction,
    SimulatedStack,
};
pub use fingerprint::{
    Fingerprint, FingerprintBuilder, PredictArrival, Totals, TraceWindow, WINDOW_S,
};
pub use gears::{Gears, Reserve, Shifted, ThresholdError, geared};
pub use members::{IdleMembers, idle_members};
pub use merges::{MergeChance, merge_chance};
pub use queueing::{
    ArmModel, Bound, DriveTables, Load, LoadGatherer, Moments, PLACES, PartMoments, PhasedAccess,
    PlannedAccesses, QueueGain, REGIME, StationResult, VolumeResult, plans, queues, waiting,
};
pub use windowed::{
    DiskParameters, Powers, Predicted, elapsed_s, energy_j, latency_s, seek_delays, striped,
};
