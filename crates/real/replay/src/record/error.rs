//! Errors of a recording, and counters of its reader.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why requests of a device cannot be recorded.
#[derive(Debug, Error)]
pub(super) enum RecordError {
    #[error("{0}")]
    Device(io::Error),
    #[error("found {0}; expected a block device, or a partition")]
    NoDevice(&'static str),
    #[error(
        "the kernel's tracer cannot be reached; expected tracefs, which root mounts: `mount -t tracefs tracefs \
         /sys/kernel/tracing`"
    )]
    NoTracer,
    #[error(
        "the kernel's tracer gives no instance in `{}`: {source}; recording takes root",
        tracefs.display()
    )]
    NoInstance { tracefs: PathBuf, source: io::Error },
    #[error("`{}` cannot be set to {value}: {source}", path.display())]
    Set {
        path: PathBuf,
        value: String,
        source: io::Error,
    },
    #[error("`{}`: {source}", path.display())]
    Pipe { path: PathBuf, source: io::Error },
    #[error("no request reached the device during the recording")]
    Nothing,
}

/// Counters of the reader of events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReaderCounts {
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) high_water_bytes: u64,
    pub(super) seconds: f64,
}
