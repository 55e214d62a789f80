//! A disk drive: geometry, arm, platter and in-drive queue.
//!
//! Read in the order in which a request passes:
//!
//! | file | what |
//! |---|---|
//! | `config.rs`, `config/` | the drive file |
//! | `drive.rs` | the layer: queue, service, completion |
//! | `drive/` | what goes on beside the arm; commands that move no data |
//! | `queue/` | disciplines, one file each, and their registry |
//! | `geometry/` | LBN to cylinder, surface and angle, and back |
//! | `seek.rs` | the seek curve |
//! | `arm.rs` | the arm: its heads, its time, what it has done |
//! | `actuators.rs` | several arms behind one interface |
//! | `buffer.rs` | segments, read-ahead, write-back |
//! | `buffer/` | the segments themselves, found by address and by age |
//! | `electronics.rs` | command overheads and the bus |
//! | `mechanics.rs` | seek, rotation and transfer of one access |
//! | `freeblock.rs` | a background scan in the rotational latency of requests |
//! | `power.rs` | how long the arm was in each state of power |
//! | `spin_down/` | when an idle drive stops its platters, one file each, and their registry |
//! | `check.rs` | what a description must satisfy |
//! | `data_sheet.rs`, `data_sheet/` | a first description from a data sheet |
//! | `statistics.rs` | what a drive counts about itself |

mod actuators;
mod arm;
mod buffer;
mod check;
mod config;
mod data_sheet;
mod drive;
mod electronics;
mod faults;
mod freeblock;
mod geometry;
mod mechanics;
mod power;
pub mod queue;
mod seek;
pub mod spin_down;
mod statistics;

pub use actuators::MultiActuator;
pub use check::{Check, checks};
pub use config::{
    BufferConfig, Direction, DriveConfig, ElectronicsConfig, ExceptionConfig, FlushCommand,
    FreeblockConfig, IdleConfig, OverheadConfig, PowerConfig, Published, QueueConfig, ReadAhead,
    RunConfig, SectorsPerTrack, SeekConfig, SlipConfig, SpinDownConfig, TrackOrder,
    WriteDisconnectConfig, ZeroLatency, ZoneConfig,
};
pub use data_sheet::{DataSheet, sectors_of};
pub use drive::{Drive, Model};
pub use faults::{FaultAt, FaultKind, FaultsConfig};
pub use geometry::{Geometry, Position, ZoneView};
pub use mechanics::{Access, Feed, Head, Mechanics, Piece};
pub use power::{Meter, Standing};
pub use seek::SeekTable;
