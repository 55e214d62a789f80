//! Errors of a device.

use std::io;
use thiserror::Error;

/// Reason why there is no device.
#[derive(Debug, Error)]
pub enum UblkError {
    /// The kernel has no ublk, or this user may not use it.
    #[error(
        "cannot open `{path}`: found {source} (Linux {release}); expected a kernel with CONFIG_BLK_DEV_UBLK, its module \
         loaded (`modprobe ublk_drv`), and root; without it serve over NBD: --socket PATH"
    )]
    Absent {
        /// Path of the file.
        path: &'static str,
        /// Version of the kernel.
        release: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// The kernel's ublk is too old.
    #[error(
        "`{path}`: the kernel's ublk has the features {found:#x} (Linux {release}); expected UBLK_F_CMD_IOCTL_ENCODE and \
         UBLK_F_USER_COPY, which Linux 6.5 brought; without them serve over NBD: --socket PATH"
    )]
    Old {
        /// Path of the file.
        path: &'static str,
        /// Version of the kernel.
        release: String,
        /// Features found, one bit each.
        found: u64,
    },
    /// The properties of the device are invalid.
    #[error("a block device of ublk: {key}: found {found}; expected {expected}")]
    Form {
        /// Name of the wrong property.
        key: &'static str,
        /// Value of the property.
        found: u64,
        /// Expected value.
        expected: &'static str,
    },
    /// The kernel refused an action.
    #[error("cannot {action} a block device of ublk: {source}")]
    Refused {
        /// Name of the action.
        action: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
}

impl UblkError {
    /// Creates the error for a refused action.
    pub(crate) fn refused(action: &'static str) -> impl FnOnce(io::Error) -> UblkError {
        move |source| UblkError::Refused { action, source }
    }
}
