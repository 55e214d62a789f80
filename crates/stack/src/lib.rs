//! Stack and drive files, and the stacks built from them.
//!
//! | file | what |
//! |---|---|
//! | `document.rs` | a TOML file whose keys know their lines |
//! | `drives.rs`, `drive_names.rs` | the drive library and drive files; which drive a user means |
//! | `config.rs` | the stack file |
//! | `workload.rs`, `volume.rs` | its workload and its volume |
//! | `build.rs` | from a stack file to layers and a source |
//! | `link.rs` | the link between a volume and its drives |
//! | `fio.rs` | a job file of fio's as a workload |
//! | `layouts.rs` | the layouts by name |
//! | `stripes.rs` | how a volume's addresses lie on its members, for the host above |
//! | `replay.rs` | a trace as a source of requests |
//! | `schema.rs` | the JSON schemas of stack and drive files |
//! | `reference.rs` | the reference page |

mod build;
mod config;
mod document;
mod drive_names;
pub mod drives;
mod error;
mod fio;
mod layouts;
mod link;
mod rebuild;
mod reference;
mod replay;
mod schema;
mod stripes;
mod volume;
mod workload;

pub use build::{Run, Service, VolumeSummary};
pub use config::{MeasurementConfig, Overrides, Stack};
pub use document::Document;
pub use error::StackError;
pub use fio::FioConfig;
pub use rebuild::RebuiltMember;
pub use reference::reference;
pub use replay::replay;
pub use schema::drive as drive_schema;
pub use workload::TraceConfig;
