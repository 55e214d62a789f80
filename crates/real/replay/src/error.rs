//! Reasons why a trace is not replayed, or not to its end.

use crate::issued::IssuedCommand;
use fullstroke_contract::Operation;
use fullstroke_trace::TraceError;
use fullstroke_units::{SECTOR_BYTES, Time};
use fullstroke_workload::pace::NoCompletion;
use std::io;
use thiserror::Error;

/// Reason why a trace is not replayed, or not to its end.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The trace cannot be read or understood, or does not fit.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The pace needs completion times, which the trace lacks.
    #[error("`{file}`: {source}")]
    Completions {
        /// The trace.
        file: String,
        /// The request without a completion.
        source: NoCompletion,
    },
    /// A request would change the device, and writes are not permitted.
    #[error(
        "`{file}`: request {number} is a {}; --writes is missing: expected --writes skip, as-reads, or overwrite. With overwrite all data of the device are lost",
        operation.name()
    )]
    Writes {
        /// The trace.
        file: String,
        /// Number of the request, from 1.
        number: u64,
        /// Operation of the request.
        operation: Operation,
    },
    /// No request of the trace is left.
    #[error("`{file}`: no request is left to replay: all {skipped} were left out")]
    Nothing {
        /// The trace.
        file: String,
        /// Number of omitted requests.
        skipped: u64,
    },
    /// The device cannot be used.
    #[error("`{device}`: {reason}")]
    Target {
        /// The device or file.
        device: String,
        /// The value found, and the value expected.
        reason: String,
    },
    /// The kernel does not provide io_uring.
    #[error(
        "io_uring cannot be used here: {source}; expected Linux 5.11 or later that allows io_uring \
         (kernel.io_uring_disabled = 0, and no filter of a container); --io threads needs no io_uring"
    )]
    Ring {
        /// Error of the kernel.
        source: io::Error,
    },
    /// The kernel does not provide io_uring to a thread that issues several requests in one call.
    #[error(
        "--threads with --batch hands several requests to the kernel in one call, which needs io_uring, and io_uring cannot \
         be used here: {source}; --threads without --batch needs no io_uring"
    )]
    Together {
        /// Error of the kernel.
        source: io::Error,
    },
    /// A request failed, and the limit of tolerated failures was reached.
    #[error(
        "`{device}`: request {number} ({operation}, sector {sector}, {bytes} bytes) failed after {issued} were \
         issued, {seconds:.3} s after the beginning: {source}{gone}"
    )]
    Failed {
        /// The device or file.
        device: String,
        /// Number of the request among the issued requests, from 1.
        number: u64,
        /// Name of the operation.
        operation: &'static str,
        /// First sector of 512 bytes.
        sector: u64,
        /// Length in bytes.
        bytes: u64,
        /// Number of requests issued before.
        issued: u64,
        /// Time of the failure, in s after the beginning.
        seconds: f64,
        /// Error of the kernel.
        source: io::Error,
        /// Meaning of the error, if clear.
        gone: &'static str,
    },
    /// A clock, a thread or a ring failed.
    #[error("the replay stopped: {0}")]
    System(#[from] io::Error),
}

impl ReplayError {
    /// Creates the error of request `number`, which failed at `at` after `issued` requests were
    /// issued.
    pub(crate) fn of_request(
        device: &str,
        number: u64,
        command: &IssuedCommand,
        issued: u64,
        at: Time,
        error: i32,
    ) -> ReplayError {
        let gone = match error {
            libc::ENODEV | libc::ENXIO | libc::ESHUTDOWN | libc::ENOTCONN => "; the device is gone",
            libc::ENODATA => "; it ends before the end of the request",
            libc::ENOSPC => "; the file system of the target is full",
            _ => "",
        };
        ReplayError::Failed {
            device: device.to_owned(),
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
