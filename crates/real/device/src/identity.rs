//! The file or device behind a path.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

/// The file or device to which a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceIdentity {
    /// A file, folder, pipe or character device.
    Inode {
        /// Number of the file system's device.
        device: u64,
        /// Number of the inode in the file system.
        inode: u64,
    },
    /// A block device, under any device node.
    BlockDevice {
        /// Number of the device.
        number: u64,
    },
}

impl DeviceIdentity {
    /// Returns the identity of the final target of `path`.
    ///
    /// # Errors
    /// An error of the host, for example if nothing exists there.
    pub fn of(path: &Path) -> io::Result<DeviceIdentity> {
        Ok(DeviceIdentity::from(&fs::metadata(path)?))
    }
}

impl From<&Metadata> for DeviceIdentity {
    fn from(metadata: &Metadata) -> DeviceIdentity {
        if metadata.file_type().is_block_device() {
            DeviceIdentity::BlockDevice {
                number: metadata.rdev(),
            }
        } else {
            DeviceIdentity::Inode {
                device: metadata.dev(),
                inode: metadata.ino(),
            }
        }
    }
}
