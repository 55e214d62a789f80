//! Errors of arrays.

use crate::member_layout::PlanRefusal;
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
        /// Path of the device.
        device: String,
        /// Failed action.
        action: &'static str,
        /// Error of the device.
        source: io::Error,
    },
    /// There is no device at the path, or the device does not answer.
    #[error("`{device}`: {source}")]
    Gone {
        /// Path of the device.
        device: String,
        /// Error of the host.
        source: io::Error,
    },
    /// The request is not possible, for the given reason.
    #[error("{0}")]
    Refused(String),
    /// Members of the last assembly are missing.
    #[error("{0}; if these members are gone, assemble the array without them: --degraded")]
    Missing(String),
    /// The sectors cannot be computed from the remaining members.
    #[error("{extent:?} was lost: more members have failed than the array survives")]
    Lost {
        /// Requested extent.
        extent: Extent,
    },
    /// Reported once, by the next flush after data was lost: earlier writes may be among the lost
    /// data.
    #[error(
        "data were lost since the last flush: more members have failed than the array survives"
    )]
    LostBefore,
    /// A change could be made neither with nor without a member. The array changes nothing any
    /// more, so flushed data stays.
    #[error(
        "the array accepts no more changes: {why}; stop the array, repair the cause, and assemble the array again"
    )]
    Halted {
        /// Description of the failure.
        why: String,
    },
    /// The array was assembled to be read only.
    #[error("the array accepts no changes: {why}")]
    ReadOnly {
        /// Reason, and the way to an array with changes.
        why: &'static str,
    },
    /// The request reaches behind the end of the array, or is empty.
    #[error("{extent:?} is not within the array's {capacity}, or is empty")]
    OutOfRange {
        /// Requested extent.
        extent: Extent,
        /// Capacity of the array.
        capacity: Sectors,
    },
}

/// True if the host has no room left: the file system is full, a quota is used up, or a file has its
/// largest size. The medium is not broken then.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

impl From<PlanRefusal> for ArrayError {
    fn from(refusal: PlanRefusal) -> ArrayError {
        match refusal {
            PlanRefusal::Lost { extent } => ArrayError::Lost { extent },
            PlanRefusal::OutOfRange { extent, capacity } => {
                ArrayError::OutOfRange { extent, capacity }
            }
        }
    }
}

impl ArrayError {
    /// Returns an error of a device.
    pub(crate) fn device(name: String, action: &'static str, source: io::Error) -> ArrayError {
        ArrayError::Device {
            device: name,
            action,
            source,
        }
    }
}
