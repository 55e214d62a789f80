//! A disk drive: geometry, arm, platter and in-drive queue.
//!
//! Read in the order in which a request passes:
//!
//! | file | what |
//! |---|---|
//! | `config.rs` | the drive file |
//! | `drive.rs` | the layer: queue, service, completion |
//! | `queue/` | disciplines, one file each, and their registry |
//! | `geometry/` | LBN to cylinder, surface and angle, and back |
//! | `seek.rs` | the seek curve |
//! | `mechanics.rs` | seek, rotation and transfer of one access |
//! | `check.rs` | what a description must satisfy |
//! | `statistics.rs` | what a drive counts about itself |

mod check;
mod config;
mod drive;
mod geometry;
mod mechanics;
pub mod queue;
mod seek;
mod statistics;

pub use check::{Check, checks};
pub use config::{
    Direction, DriveConfig, ExceptionConfig, Published, RunConfig, SectorsPerTrack, SeekConfig, SlipConfig,
    TrackOrder, ZoneConfig,
};
pub use drive::{Drive, Model};
pub use geometry::{Geometry, Position, ZoneView};
pub use mechanics::{Access, Head, Mechanics};
pub use queue::QueueConfig;
pub use seek::SeekTable;
