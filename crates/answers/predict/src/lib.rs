//! What can be said without a simulation: closed formulas, and a model of queues.
//!
//! | file | what |
//! |---|---|
//! | `answer.rs` | what all of them say of a stack, beside a simulation |
//! | `occupancy.rs` | how many of some places a random set of requests reaches |
//! | `fingerprint.rs` | what a trace is reduced to, for all layouts |
//! | `windowed.rs`, `gears.rs` | latency and energy of disks, striped and geared arrays from that |
//! | `queueing.rs` | our own model: arrays as queues of drives with their own mechanics |
//! | `members.rs` | whether members of an array stand idle |
//! | `merges.rs` | whether requests of a random set could be merged |

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
