//! Stack and drive files, and the stacks built from them.
//!
//! | file | contents |
//! |---|---|
//! | `document.rs` | a TOML file that remembers the line of each key |
//! | `drives.rs`, `drive_names.rs` | the drive library and drive files; the drive for a user's name |
//! | `config.rs` | the stack file |
//! | `homes.rs` | the table of a key that was written without its table |
//! | `overrides.rs` | changes by the command line |
//! | `files.rs`, `folder.rs` | the list of files of a stack; the folder of a stack file |
//! | `workloads.rs`, `workload.rs`, `workload/` | workloads: one or several; the kinds |
//! | `hosts.rs` | several hosts, and their common layers |
//! | `volume.rs` | the volume |
//! | `build.rs` | from a stack file to layers and a source |
//! | `slow.rs` | slow members of a volume, and the policy against them |
//! | `cache.rs` | the cache on a flash device in front of the volume |
//! | `link.rs` | the link between a volume and its drives |
//! | `layouts.rs` | the layouts by name |
//! | `stripes.rs` | the map of a volume's addresses to members, for the host above |
//! | `tracks.rs` | the known tracks above drives, an array, a controller |
//! | `schema.rs` | the JSON schemas of stack and drive files |
//! | `reference.rs` | the reference pages |

mod build;
mod cache;
mod config;
#[cfg(test)]
mod conformance;
mod document;
mod drive_names;
mod drive_tracks;
pub mod drives;
mod error;
pub mod facts;
mod files;
mod folder;
mod homes;
mod hosts;
mod late;
mod layouts;
mod length;
mod like;
mod link;
mod load;
mod mdadm;
mod measurement;
mod observed;
mod opportunities;
mod overrides;
mod ready;
mod rebuild;
mod reference;
mod schema;
mod shared;
mod slow;
mod smartctl;
mod spec;
mod stripes;
mod tracks;
mod upper;
mod volume;
mod workload;
mod workloads;
mod zoned;
mod zpool;

pub use build::{PreparedRun, PreparedService, ProgramFiles, VolumeSummary};
pub use config::Stack;
pub use document::{Document, assigned, read_text};
pub use error::StackError;
pub use files::{files, resolved};
pub use fullstroke_pool::PoolCapacity;
pub use fullstroke_trace::{FileKind, FileSource, Files, MemoryFiles};
pub use hosts::HostNodes;
pub use length::{LengthValue, LoadLength};
pub use mdadm::MdArray;
pub use measurement::MeasurementConfig;
pub use observed::ObservedLoad;
pub use overrides::{Overrides, SpinDownChoice};
pub use ready::{READY_LOADS, READY_PREFIX, ReadyLoad, is_ready};
pub use rebuild::RebuiltMember;
pub use reference::{ReferencePage, reference};
pub use schema::drive as drive_schema;
pub use smartctl::{ReportedDrive, SmartIdentity, smart_number};
pub use zpool::ZfsPool;
