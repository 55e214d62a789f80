//! Limits of the time of a command: SCT Error Recovery Control, and command duration limits.
//!
//! **SCT ERC** (ACS-3, 8.3) ends the retries of a bad sector. The slow drive carries the limit out
//! (`slow/node.rs`); a drive without bad sectors never retries.
//!
//! **Command duration limits** (SPC-6, mode pages T2A and T2B; ACS-5) have three spans: the time in the
//! queue (`inactive`), the time of the work (`active`), and both together (`duration`). A drive serves a
//! command early enough for its limits if possible. What follows when a limit has passed is the
//! policy of the limit: the command goes on, or the drive ends the command without its data. Linux 6.5
//! selects a limit by the I/O priority of the process; here by the class of the priority.
//!
//! A drive with limits is a node around the node of a drive.
//!
//! | file | content |
//! |---|---|
//! | `config.rs` | the keys |
//! | `node.rs` | the node |

mod config;
mod node;

#[cfg(test)]
mod tests;

pub(crate) use config::Limits;
pub use config::{DurationLimit, LimitPolicy, LimitsConfig};
pub(crate) use node::LimitedDrive;
