//! Measures the properties of a disk from outside.
//!
//! Each kind of extraction is an algorithm without I/O ([`Extraction`]). The algorithm names its
//! next step and receives the result with its times. So the same code runs on a simulated drive
//! under virtual time and on any readable device. docs/extract.md describes the method and the
//! accuracy of each kind.
//!
//! | file | contents |
//! |---|---|
//! | `machine.rs` | an extraction as a state machine, and its driver |
//! | `translate.rs` | tracks by address translation |
//! | `angles.rs` | the revolution, and the angle of any sector |
//! | `timing.rs`, `pattern.rs` | tracks by rotational timing |
//! | `zones.rs` | zones, from samples of track lengths |
//! | `density.rs` | one track length from three or four reads |
//! | `verify.rs` | test of claimed track boundaries |
//! | `arms.rs` | number of arms that share the addresses |
//! | `seek.rs` | the seek curve |
//! | `skew.rs` | skews |
//! | `cache.rs` | the buffer's segments, read-ahead, write-back |
//! | `depth.rs` | number of commands in the device's queue |
//! | `zero_latency.rs` | test of zero-latency transfers |
//! | `growth.rs` | tracks by reads of growing size, and the failure of this method |
//! | `survey.rs` | all measurements in sequence |
//! | `drive_file.rs` | a drive file from the results |
//! | `check.rs` | comparison of the results with known truth |
//! | `scsi.rs` | address translation of SCSI disks |
//! | `block.rs` | any device or file, under the real clock |
//! | `simulated.rs` | a simulated drive, and a host that splits requests |
//! | `error.rs` | reasons for an extraction without a result |

mod angles;
mod arms;
mod block;
mod cache;
mod check;
mod density;
mod depth;
mod drive_file;
mod error;
mod growth;
mod machine;
mod pattern;
mod sample;
pub mod scsi;
mod seek;
mod simulated;
mod skew;
mod survey;
mod timing;
mod translate;
mod verify;
mod zero_latency;
mod zones;

pub use angles::{Angles, NOISE_MAX, Rotation};
pub use arms::arms;
pub use block::BlockDevice;
pub use cache::{MeasuredBuffer, cache};
pub use check::{
    BoundaryAccuracy, SeekTruth, compare, seek_curve, seek_error, skew_error, zone_error,
};
pub use density::{ZoneMap, zones};
pub use depth::{Depth, depth};
pub use drive_file::Mechanics;
pub use error::ExtractError;
pub use growth::growth;
pub use machine::{
    Effort, ExtractedDevice, Extraction, ExtractionAlgorithm, ExtractionProgress,
    ExtractionRequest, ExtractionStep, PhysicalPlace, RequestAnswer, run,
};
pub use pattern::FoundTrack;
pub use sample::TimeSummary;
pub use seek::{Seek, Seeks, seeks};
pub use simulated::{SimulatedDrive, SplittingHost};
pub use skew::{Skew, ZoneSkews, skews};
pub use survey::survey;
pub use timing::{ExtractionPace, Stretch, Timed, first_tracks, spot_check, timing, tracks};
pub use translate::{EndSearch, Translated, translate, translate_by};
pub use verify::{Offset, Verified, verify};
pub use zero_latency::{ZeroLatencyResult, zero_latency};
pub use zones::FoundZone;
