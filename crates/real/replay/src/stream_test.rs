//! A media server and its clients on a real device, with growing load until the first byte is late.
//!
//! The streams are those of the simulator. Rates, places of files, buffers, starts and the
//! definition of an underrun come from `fullstroke-workload`. Here the clock is real, and each
//! client is a leaky bucket on a thread of its own. The server sends the data over TCP on the
//! loopback interface, with one thread for each client.
//!
//! | file | contents |
//! |---|---|
//! | `medium.rs` | the place of the files: a device, a folder, an NBD server |
//! | `server.rs` | reads the data and sends them |
//! | `client.rs` | the leaky bucket |
//! | `ramp.rs` | one stream after the other |

mod client;
mod medium;
mod ramp;
mod ramp_state;
mod server;

pub use medium::{Medium, NbdAddress, Target};
pub use ramp::{RampOutcome, RampProgress, run};

use fullstroke_contract::ConfigError;
use std::io;
use thiserror::Error;

/// Reason why streams could not be served.
#[derive(Debug, Error)]
pub enum StreamTestError {
    /// The target cannot be opened or used.
    #[error("`{target}`: {message}")]
    Target {
        /// Target as given by the user.
        target: String,
        /// The value found, and the value expected.
        message: String,
    },
    /// The settings of the streams are invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A read failed while streams played.
    #[error("`{target}`: read number {read} of file {file}: {source}; nothing is said of streams")]
    Read {
        /// Target as given by the user.
        target: String,
        /// Number of the file, from 0.
        file: u32,
        /// Number of the read in the file, from 0.
        read: u64,
        /// Error of the host.
        source: io::Error,
    },
    /// Sockets or threads could not be created.
    #[error("{what}: {source}")]
    Host {
        /// Name of the failed step.
        what: &'static str,
        /// Error of the host.
        source: io::Error,
    },
}
