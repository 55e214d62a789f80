//! Measuring, planning and comparing volumes of constant transfer rate (Lloyd,
//! "Constant transfer rate RAID striping for QoS", 2002).
//!
//! | file | what |
//! |---|---|
//! | `timed.rs` | something that answers timed reads |
//! | `survey.rs` | ratio and zones of a disk, measured |
//! | `profile.rs` | the same and where zones end, in minutes |
//! | `jumps.rs` | where a measured curve jumps |
//! | `sweep.rs` | completion times across a volume, measured |
//! | `streams.rs` | where arms go under streams |
//! | `rates.rs` | transfer rates across a volume, worked out |
//! | `plan.rs` | layouts of two disks beside each other |
//! | `remap.rs` | a volume's trace as its members see it |
//!
//! The mathematics and the layouts are those of `fullstroke-volume`.

mod error;
mod jumps;
mod plan;
mod profile;
mod rates;
mod remap;
mod streams;
mod survey;
mod sweep;
mod timed;

pub use error::LzvsError;
pub use plan::{Offer, Pair, ZoneLine};
pub use profile::{Profile, measured_keys, profile};
pub use rates::{RateAt, Rates, rates};
pub use remap::Remapper;
pub use streams::{Seeks, stream_seeks};
pub use survey::{POINTS, Survey, TRIALS, survey};
pub use sweep::{Sweep, SweepPoint, sweep};
pub use timed::{Move, SimulatedReads, TimedReads};
