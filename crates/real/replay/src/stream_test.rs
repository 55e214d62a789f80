//! A media server and its clients on a real device, until the first byte is late.
//!
//! The same streams as in the simulator: rates, places of files, buffers, starts
//! and what counts as an underrun are those of `fullstroke-workload`. Here the
//! clock is real, each client is a leaky bucket on a thread of its own, and the
//! server sends it what it has read over TCP on the loopback interface, a thread
//! for each.
//!
//! | file | what |
//! |---|---|
//! | `medium.rs` | where the files lie: a device, a folder, an NBD server |
//! | `server.rs` | reads, and sends what was read |
//! | `client.rs` | the leaky bucket |
//! | `ramp.rs` | one stream after the other |

mod client;
mod medium;
mod ramp;
mod server;

pub use medium::{Medium, NbdAddress, Target};
pub use ramp::{Outcome, Progress, run};

use fullstroke_contract::ConfigError;
use std::io;
use thiserror::Error;

/// Why streams could not be served.
#[derive(Debug, Error)]
pub enum StreamTestError {
    /// The target cannot be opened or used.
    #[error("`{target}`: {message}")]
    Target {
        /// As it was named.
        target: String,
        /// What was found, and what was expected.
        message: String,
    },
    /// Settings of the streams that cannot be.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A read failed while streams played.
    #[error("`{target}`: read number {read} of file {file}: {source}; nothing is said of streams")]
    Read {
        /// As it was named.
        target: String,
        /// The file, from 0.
        file: u32,
        /// The read in it, from 0.
        read: u64,
        /// What the host said.
        source: io::Error,
    },
    /// Sockets or threads could not be had.
    #[error("{what}: {source}")]
    Host {
        /// What was tried.
        what: &'static str,
        /// What the host said.
        source: io::Error,
    },
}
