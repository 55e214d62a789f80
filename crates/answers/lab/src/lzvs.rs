//! Measures, plans and compares volumes of constant transfer rate (Lloyd, "Constant transfer rate
//! RAID striping for QoS", 2002).
//!
//! | file | contents |
//! |---|---|
//! | `timed.rs` | the trait of targets with timed reads |
//! | `survey.rs` | ratio and zones of a disk, measured |
//! | `profile.rs` | ratio, zones and zone boundaries, measured in minutes |
//! | `jumps.rs` | jumps of a measured curve |
//! | `sweep.rs` | completion times across a volume, measured |
//! | `streams.rs` | arm movements under streams |
//! | `rates.rs` | transfer rates across a volume, computed |
//! | `plan.rs` | comparison of layouts of two disks |
//! | `remap.rs` | a volume's trace translated to its members |
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
pub use profile::{RateProfile, measured_keys, profile};
pub use rates::{RateAt, VolumeRates, rates};
pub use remap::Remapper;
pub use streams::{Seeks, stream_seeks};
pub use survey::{POINTS, Survey, TRIALS, survey};
pub use sweep::{Sweep, SweepPoint, sweep};
pub use timed::{DriveRequest, SimulatedReads, TimedReads};
