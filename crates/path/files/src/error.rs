//! Errors of file operations.

use thiserror::Error;

/// Error of a file operation. Each variant names the errno of the kernel in brackets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// No room is left for data, names or metadata (ENOSPC).
    #[error("no space is left: {needed} pages are needed, {free} are free")]
    NoSpace {
        /// Number of 4 KiB pages requested.
        needed: u64,
        /// Number of 4 KiB pages available.
        free: u64,
    },
    /// All inodes of the file system are in use (ENOSPC). `mke2fs` fixes their number.
    #[error("no inode is left: all {inodes} are in use")]
    NoInode {
        /// Number of inodes of the file system.
        inodes: u64,
    },
    /// No object has this number (EBADF), or no entry has this name (ENOENT).
    #[error("there is no `{0}`")]
    NotFound(String),
    /// The name exists already (EEXIST).
    #[error("`{0}` exists already")]
    Exists(String),
    /// A directory to be removed has entries (ENOTEMPTY).
    #[error("`{0}` is not empty")]
    NotEmpty(String),
    /// A directory was expected, but the object is a file (ENOTDIR).
    #[error("`{0}` is not a directory")]
    NotADirectory(String),
    /// A file was expected, but the object is a directory (EISDIR).
    #[error("`{0}` is a directory")]
    IsADirectory(String),
    /// The file would become larger than the format can address (EFBIG).
    #[error("{pages} pages are more than the {limit} that a file can have")]
    TooLarge {
        /// Length that the file would have, in 4 KiB pages.
        pages: u64,
        /// Largest length of a file, in 4 KiB pages.
        limit: u64,
    },
    /// The name is empty, longer than 255 bytes, `.` or `..`, or contains `/` (EINVAL,
    /// ENAMETOOLONG).
    #[error("`{0}` cannot be a name: one of 1 to 255 bytes without `/` is expected")]
    BadName(String),
    /// A directory would be moved into itself (EINVAL).
    #[error("`{0}` cannot be moved into itself")]
    IntoItself(String),
    /// The file system does not support this operation, because `raw` has only one file.
    #[error("{0} is not possible here: this file system has one file, and no names")]
    OneFile(&'static str),
}
