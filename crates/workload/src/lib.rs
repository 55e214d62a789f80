//! Where requests come from: synthetic loads.
//!
//! A [`Synthetic`] source joins an arrival process (`arrivals/`, when), an
//! address pattern (`addresses/`, where), sizes and a read share (what). Each
//! process and each pattern is one file and one line in its registry.
//! [`Processes`] are closed loops side by side, each with a pattern, a priority
//! and randomness of its own.
//!
//! | file | what |
//! |---|---|
//! | `synthetic.rs` | one load from an arrival process and a pattern |
//! | `process_config.rs` | what a stack file says about processes |
//! | `process.rs` | one process: its requests and its pauses |
//! | `processes.rs` | many processes as one source |
//! | `arrivals/` | when requests arrive |
//! | `addresses/` | where they go |
//! | `sizes.rs` | how large they are |
//! | `region.rs` | the part of the volume that is addressed |

pub mod addresses;
pub mod arrivals;
mod process;
mod process_config;
mod processes;
mod region;
mod sizes;
mod synthetic;

pub use process_config::{ProcessConfig, ProcessesConfig};
pub use processes::Processes;
pub use sizes::{SizeConfig, WeightedSize};
pub use synthetic::{AddressesConfig, ArrivalsConfig, Synthetic, SyntheticConfig};
