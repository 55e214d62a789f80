//! Errors of stores.

use crate::error::is_out_of_space;
use crate::member_layout::PlanRefusal;
use fullstroke_contract::Extent;
use fullstroke_units::Sectors;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The file with the description, the marks of regions and the journal.
pub(crate) const NAME: &str = "fullstroke.store";

/// Why a store could not be opened, or a request not be served.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The host failed: its disk is full or broken, or the file is out of reach.
    #[error("cannot {action} `{file}`: {source}")]
    Host {
        /// Name of the file or device.
        file: String,
        /// Failed action.
        action: &'static str,
        /// Error of the host.
        source: io::Error,
    },
    /// The sectors were lost: more members have failed than the redundancy
    /// covers.
    #[error("{extent:?} was lost: more members have failed than the volume survives")]
    Lost {
        /// Requested extent.
        extent: Extent,
    },
    /// The volume has failed. The volume waits for the members, or for an acceptance of the loss.
    #[error(
        "the volume has failed: more members are missing than it survives ({members}); it continues only after the loss of their data is accepted"
    )]
    Failed {
        /// Failed and incomplete members.
        members: String,
    },
    /// A flush failed for data without redundancy. The host reports a failure only once, so later
    /// successes of the host prove nothing.
    #[error(
        "the store has stopped, because written data may be lost: {why}; stop the server and check its disk"
    )]
    Stopped {
        /// Description of the failure.
        why: String,
    },
    /// The request reaches behind the end of the volume, or is empty.
    #[error("{extent:?} is not within the volume's {capacity}, or is empty")]
    OutOfRange {
        /// Requested extent.
        extent: Extent,
        /// Capacity of the volume.
        capacity: Sectors,
    },
    /// Another process has the store open.
    #[error("`{}` is in use by another process; stop that process, or use another folder", folder.display())]
    InUse {
        /// The store's folder.
        folder: PathBuf,
    },
    /// The store belongs to another stack.
    #[error(
        "`{}` holds the bytes of another stack: its digest is {found}, this stack's is {expected} ({layout}); \
         give this stack a folder of its own, or serve the stack that the folder was made for",
        folder.display()
    )]
    OtherStack {
        /// The store's folder.
        folder: PathBuf,
        /// The digest in the folder.
        found: String,
        /// Digest of the stack to be served.
        expected: String,
        /// Layout of the folder's stack.
        layout: String,
    },
    /// The folder holds something, but no store.
    #[error(
        "`{}` is not empty (it holds `{found}`) and has no `{}`; give an empty or a new folder",
        folder.display(), NAME
    )]
    NoStore {
        /// The folder.
        folder: PathBuf,
        /// Name of one entry of the folder.
        found: String,
    },
    /// A file of the store is damaged.
    #[error("`{}`: {detail}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Found state, expected state, and the remedy.
        detail: String,
    },
    /// Members' files are missing or short.
    #[error(
        "{detail}; restore the files, or allow the volume to be opened degraded, \
         which counts these members as failed"
    )]
    MembersMissing {
        /// The files, and the fault of each.
        detail: String,
    },
    /// More members' files are missing than the layout survives.
    #[error("{detail}; the volume does not survive this: restore the files")]
    TooManyMissing {
        /// The files, and the fault of each.
        detail: String,
    },
    /// The operation is not possible in the present state.
    #[error("{0}")]
    Refused(String),
}

impl From<PlanRefusal> for StoreError {
    fn from(refusal: PlanRefusal) -> StoreError {
        match refusal {
            PlanRefusal::Lost { extent } => StoreError::Lost { extent },
            PlanRefusal::OutOfRange { extent, capacity } => {
                StoreError::OutOfRange { extent, capacity }
            }
        }
    }
}

impl StoreError {
    /// Returns an error of the host at `file`.
    pub(crate) fn host(action: &'static str, file: &Path, source: io::Error) -> StoreError {
        StoreError::Host {
            file: file.display().to_string(),
            action,
            source,
        }
    }

    /// True if the host has no room left. Clients get a separate error then, because the medium is
    /// not broken.
    pub fn is_out_of_space(&self) -> bool {
        matches!(self, StoreError::Host { source, .. } if is_out_of_space(source))
    }
}

/// The first error of the two, if there is one.
#[inline]
pub(crate) fn first_error(
    first: Result<(), StoreError>,
    second: Result<(), StoreError>,
) -> Result<(), StoreError> {
    if first.is_ok() { second } else { first }
}
