//! What a disk is like, found from outside.
//!
//! Each kind of extraction is an algorithm that says what it wants next and is
//! told what came of it and when ([`Extraction`]); so the same code runs on a
//! simulated drive under virtual time and on any device that can be read.
//! docs/extract.md says what each kind does and how well.
//!
//! | file | what |
//! |---|---|
//! | `machine.rs` | an extraction as a state machine; who drives it |
//! | `translate.rs` | tracks by address translation |
//! | `angles.rs` | the revolution, and the angle of any sector |
//! | `timing.rs`, `pattern.rs` | tracks by rotational timing |
//! | `zones.rs` | zones, from the lengths of tracks here and there |
//! | `density.rs` | these lengths, from three or four reads each |
//! | `verify.rs` | whether claimed boundaries are any |
//! | `arms.rs` | how many arms share the addresses |
//! | `seek.rs` | the seek curve |
//! | `skew.rs` | skews |
//! | `cache.rs` | the buffer's segments, read-ahead, write-back |
//! | `depth.rs` | how many commands a device orders |
//! | `zero_latency.rs` | whether transfers begin wherever the heads land |
//! | `growth.rs` | tracks by reads that grow: how that fails |
//! | `survey.rs` | all of these, one after the other |
//! | `drive_file.rs` | a drive file of what was found |
//! | `check.rs` | how near it came, where the truth is known |
//! | `scsi.rs` | address translation of SCSI disks |
//! | `block.rs` | any device or file, under the real clock |
//! | `simulated.rs` | a simulated drive, and a host that splits requests |
//! | `error.rs` | why an extraction ends without a result |

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
pub use cache::{Cache, cache};
pub use check::{Nearness, SeekTruth, compare, seek_curve, seek_error, skew_error, zone_error};
pub use density::{ZoneMap, zones};
pub use depth::{Depth, depth};
pub use drive_file::Mechanics;
pub use error::ExtractError;
pub use growth::growth;
pub use machine::{Answer, Ask, Device, Effort, Extraction, Place, Probe, Progress, Step, run};
pub use pattern::FoundTrack;
pub use sample::Sample;
pub use seek::{Seek, Seeks, seeks};
pub use simulated::{SimulatedDrive, SplittingHost};
pub use skew::{Skew, ZoneSkews, skews};
pub use survey::survey;
pub use timing::{Pace, Stretch, Timed, first_tracks, spot_check, timing, tracks};
pub use translate::{Search, Translated, translate, translate_by};
pub use verify::{Offset, Verified, verify};
pub use zero_latency::{Latency, zero_latency};
pub use zones::FoundZone;
