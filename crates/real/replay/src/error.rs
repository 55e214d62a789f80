//! Why a trace is not replayed, or not to its end.

use crate::command::Command;
use crate::target::Target;
use fullstroke_contract::Operation;
use fullstroke_trace::TraceError;
use fullstroke_units::{SECTOR_BYTES, Time};
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
    /// The kernel gives no ring to a thread that is to make one call of several requests.
    #[error(
        "--threads with --batch hands several requests to the kernel in one call, which takes io_uring, and that cannot \
         be used here: {source}; --threads without --batch does without"
    )]
    Together {
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

impl ReplayError {
    /// Request `number` failed at `at`, after so many were issued.
    pub(crate) fn of_request(
        target: &Target,
        number: u64,
        command: &Command,
        issued: u64,
        at: Time,
        error: i32,
    ) -> ReplayError {
        let gone = match error {
            libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN | libc::ENOTCONN => "; the device is gone",
            libc::ENODATA => "; it ends before the end of the request",
            libc::ENOSPC => "; what it stands on is full",
            _ => "",
        };
        ReplayError::Failed {
            device: target.name.clone(),
            number,
            operation: command.action.name(),
            sector: command.start / SECTOR_BYTES,
            bytes: command.bytes,
            issued,
            seconds: at.since(Time::ZERO).as_secs_f64(),
            source: io::Error::from_raw_os_error(error),
            gone,
        }
    }
}
