//! Why a trace is not replayed, or not to its end.

use fullstroke_contract::Operation;
use fullstroke_trace::TraceError;
use fullstroke_workload::pace::NoCompletion;
use std::io;
use thiserror::Error;

/// Why a trace is not replayed, or not to its end.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The trace cannot be read or understood, or does not fit.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The pace needs what the trace lacks.
    #[error("`{file}`: {source}")]
    Completions {
        /// The trace.
        file: String,
        /// Which request.
        source: NoCompletion,
    },
    /// A request would change the device, and nobody allowed it.
    #[error(
        "`{file}`: request {number} is a {}, and nothing was said of writes; expected --writes skip, as-reads, or \
         overwrite, with which all that stands on the device is lost",
        operation.name()
    )]
    Writes {
        /// The trace.
        file: String,
        /// Which request, from 1.
        number: u64,
        /// What it is.
        operation: Operation,
    },
    /// No request of the trace is left.
    #[error("`{file}`: no request is left to replay: all {skipped} were left out")]
    Nothing {
        /// The trace.
        file: String,
        /// How many were left out.
        skipped: u64,
    },
    /// The device cannot be used.
    #[error("`{device}`: {reason}")]
    Target {
        /// The device or file.
        device: String,
        /// What was found, what was expected.
        reason: String,
    },
    /// The kernel gives no ring.
    #[error(
        "io_uring cannot be used here: {source}; it needs Linux 5.11 or later that allows it \
         (kernel.io_uring_disabled = 0, and no filter of a container); --io threads does without"
    )]
    Ring {
        /// Why not.
        source: io::Error,
    },
    /// A request failed, and no further failure was tolerated.
    #[error(
        "`{device}`: request {number} ({operation}, sector {sector}, {bytes} bytes) failed after {issued} were \
         issued, {seconds:.3} s after the beginning: {source}{gone}"
    )]
    Failed {
        /// The device or file.
        device: String,
        /// Which request, from 1, of those that were issued.
        number: u64,
        /// What it was.
        operation: &'static str,
        /// Where it began, in sectors of 512 bytes.
        sector: u64,
        /// How long it was.
        bytes: u64,
        /// How many had been issued.
        issued: u64,
        /// When it failed.
        seconds: f64,
        /// How.
        source: io::Error,
        /// What that means, if it is plain.
        gone: &'static str,
    },
    /// A clock, a thread or a ring failed.
    #[error("the replay stopped: {0}")]
    System(#[from] io::Error),
}
