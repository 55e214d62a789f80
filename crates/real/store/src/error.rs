//! What can go wrong with an array.

use fullstroke_contract::Extent;
use fullstroke_units::Sectors;
use std::io;
use thiserror::Error;

/// Why an array could not be made or assembled, or a request not be served.
#[derive(Debug, Error)]
pub enum ArrayError {
    /// A device failed.
    #[error("cannot {action} `{device}`: {source}")]
    Device {
        /// Its path.
        device: String,
        /// What was tried.
        action: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// There is no device there, or none that answers.
    #[error("`{device}`: {source}")]
    Gone {
        /// Its path.
        device: String,
        /// What the host said.
        source: io::Error,
    },
    /// What was asked for cannot be, for the reason given.
    #[error("{0}")]
    Refused(String),
    /// Members are missing that the array had when it was last assembled.
    #[error("{0}; assemble it without them with --degraded, if they are gone")]
    Missing(String),
    /// The sectors cannot be computed from the members that are left.
    #[error("{extent:?} was lost: more members have failed than the array survives")]
    Lost {
        /// What was asked for.
        extent: Extent,
    },
    /// The same, said once to whoever flushes next: what was written before may be among it.
    #[error(
        "data were lost since the last flush: more members have failed than the array survives"
    )]
    LostBefore,
    /// A change could be made neither on a member nor without it. Nothing is
    /// changed any more, so that what was flushed stays.
    #[error(
        "the array takes no changes any more: {why}; stop it, mend that, and assemble it again"
    )]
    Halted {
        /// What happened.
        why: String,
    },
    /// The request reaches behind the end of the array, or is empty.
    #[error("{extent:?} is not within the array's {capacity}, or is empty")]
    OutOfRange {
        /// What was asked for.
        extent: Extent,
        /// Where the array ends.
        capacity: Sectors,
    },
}

/// Whether the host has no room left.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

impl ArrayError {
    /// Something failed on a device.
    pub(crate) fn device(name: String, action: &'static str, source: io::Error) -> ArrayError {
        ArrayError::Device {
            device: name,
            action,
            source,
        }
    }
}
