//! Why a file system could not do what it was asked.

use thiserror::Error;

/// What a file operation can come to. The names in brackets are the kernel's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// There is no room left for data, names or metadata (ENOSPC).
    #[error("no space is left: {needed} pages are needed, {free} are free")]
    NoSpace {
        /// 4 KiB pages that were asked for.
        needed: u64,
        /// 4 KiB pages that could be had.
        free: u64,
    },
    /// All inodes that the file system was made with are in use (ENOSPC).
    #[error("no inode is left: all {inodes} are in use")]
    NoInode {
        /// How many there are.
        inodes: u64,
    },
    /// No object has that number (EBADF), or no entry that name (ENOENT).
    #[error("there is no `{0}`")]
    NotFound(String),
    /// The name is taken (EEXIST).
    #[error("`{0}` exists already")]
    Exists(String),
    /// A directory was to be removed that has entries (ENOTEMPTY).
    #[error("`{0}` is not empty")]
    NotEmpty(String),
    /// A directory was expected, a file was found (ENOTDIR).
    #[error("`{0}` is not a directory")]
    NotADirectory(String),
    /// A file was expected, a directory was found (EISDIR).
    #[error("`{0}` is a directory")]
    IsADirectory(String),
    /// The file would become larger than the format can address (EFBIG).
    #[error("{pages} pages are more than the {limit} that a file can have")]
    TooLarge {
        /// 4 KiB pages that the file would have.
        pages: u64,
        /// The most that it can have.
        limit: u64,
    },
    /// A name that is empty, longer than 255 bytes, `.`, `..` or has a `/`
    /// (EINVAL, ENAMETOOLONG).
    #[error("`{0}` cannot be a name: one of 1 to 255 bytes without `/` is expected")]
    BadName(String),
    /// A directory was to be moved into itself (EINVAL).
    #[error("`{0}` cannot be moved into itself")]
    IntoItself(String),
    /// The file system does not know this operation: `raw` has one file.
    #[error("{0} is not possible here: this file system has one file, and no names")]
    OneFile(&'static str),
}
