//! A disk drive: geometry, arm, platters and the command queue inside the drive.
//!
//! The table lists the files in the order in which a request passes through them:
//!
//! | file | content |
//! |---|---|
//! | `config.rs`, `config/` | the drive file |
//! | `drive.rs` | the layer: queue, service, completion |
//! | `drive/` | work beside the arm; commands that move no data |
//! | `queue/` | disciplines, one file each, and their registry |
//! | `geometry/` | LBN to cylinder, surface and angle, and back |
//! | `seek.rs` | the seek curve |
//! | `arm.rs` | the arm: heads, busy time, work done |
//! | `actuators.rs` | several arms behind one interface |
//! | `buffer.rs` | segments, read-ahead, write-back |
//! | `buffer/` | the segments, found by address and by age |
//! | `electronics.rs` | command overheads and the bus |
//! | `mechanics.rs` | seek, rotation and transfer of one access |
//! | `freeblock.rs` | a background scan in the rotational latency of requests |
//! | `shingled.rs`, `shingled/` | shingled tracks behind the interface of a conventional drive |
//! | `zoned.rs`, `zoned/` | zones that the host knows of: host-managed and host-aware drives |
//! | `flash.rs`, `flash/` | a flash device |
//! | `slow.rs`, `slow/` | a drive that answers late without failing |
//! | `power.rs` | time of the arm in each power state |
//! | `spin_down/` | spin-down policies for an idle drive, one file each, and their registry |
//! | `physical.rs` | writes that do not cover physical sectors |
//! | `presets.rs` | classes of drives |
//! | `check.rs` | conditions on a drive description |
//! | `data_sheet.rs`, `data_sheet/` | a first description from a data sheet |
//! | `statistics.rs` | counters of the drive |

mod actuators;
mod arm;
mod buffer;
mod check;
mod config;
mod data_sheet;
mod drive;
mod edges;
mod electronics;
mod faults;
mod flash;
mod freeblock;
mod geometry;
mod limits;
mod mechanics;
mod physical;
mod power;
pub mod presets;
pub mod queue;
mod seek;
mod shingled;
mod slow;
pub mod spin_down;
mod statistics;
mod zoned;

pub use actuators::MultiActuator;
pub use check::{Check, checks};
pub use config::{
    BufferConfig, DriveConfig, ElectronicsConfig, ExceptionConfig, FlushCommand, FreeblockConfig,
    IdleConfig, Noise, OverheadConfig, PowerConfig, Published, QueueConfig, ReadAhead, RunConfig,
    SectorsPerTrack, SeekConfig, SeekDirection, SlipConfig, SpinDownConfig, TrackOrder,
    ValidatedConfig, WriteDisconnectConfig, ZeroLatency, ZoneConfig,
};
pub use data_sheet::{DataSheet, sectors_of, settled_curve};
pub use drive::{Drive, DriveModel};
pub use faults::{FaultAt, FaultKind, FaultsConfig};
pub use flash::{FlashConfig, complete_flash};
pub use geometry::{Geometry, Position, ZoneView};
pub use limits::{DurationLimit, LimitPolicy, LimitsConfig};
pub use mechanics::{AccessTimes, BusArrival, HeadPosition, Mechanics, SectorPassage};
pub use power::{Meter, StoppedPlatters};
pub use seek::SeekTable;
pub use shingled::{Cleaning, ShingledConfig};
pub use slow::SlowConfig;
pub use zoned::{AtOpenLimit, ZoneWrites, ZonedConfig, ZonedModel, Zones};
