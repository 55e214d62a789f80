//! What can go wrong with a device.

use std::io;
use thiserror::Error;

/// Why there is no device.
#[derive(Debug, Error)]
pub enum UblkError {
    /// The kernel has no ublk, or nobody may use it.
    #[error(
        "cannot open `{path}`: found {source} (Linux {release}); expected a kernel with CONFIG_BLK_DEV_UBLK, its module \
         loaded (`modprobe ublk_drv`), and root; without it serve over NBD: --socket PATH"
    )]
    Absent {
        /// The file.
        path: &'static str,
        /// The kernel's version.
        release: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Its ublk is too old.
    #[error(
        "`{path}`: the kernel's ublk has the features {found:#x} (Linux {release}); expected UBLK_F_CMD_IOCTL_ENCODE and \
         UBLK_F_USER_COPY, which Linux 6.5 brought; without them serve over NBD: --socket PATH"
    )]
    Old {
        /// The file.
        path: &'static str,
        /// The kernel's version.
        release: String,
        /// A bit for each feature.
        found: u64,
    },
    /// No device can be like this.
    #[error("a block device of ublk: {key}: found {found}; expected {expected}")]
    Form {
        /// What is wrong.
        key: &'static str,
        /// What it is.
        found: u64,
        /// What it should be.
        expected: &'static str,
    },
    /// The kernel refused something.
    #[error("cannot {action} a block device of ublk: {source}")]
    Refused {
        /// What.
        action: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl UblkError {
    /// The kernel refused this.
    pub(crate) fn refused(action: &'static str) -> impl FnOnce(io::Error) -> UblkError {
        move |source| UblkError::Refused { action, source }
    }
}
