//! The calls of a program, and their results.

use fullstroke_files::FileError;
use fullstroke_units::{Duration, Time};
use std::fmt;

/// The number of an open file in a process. The program chooses the number, because the program
/// knows the numbers in use. Each process has its own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(pub u32);

/// Flags of `open(2)` with an effect here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenFlags {
    /// The file may be written (`O_WRONLY`, `O_RDWR`).
    pub write: bool,
    /// The file is created if it does not exist (`O_CREAT`).
    pub create: bool,
    /// The file must not exist (`O_EXCL` with `O_CREAT`).
    pub exclusive: bool,
    /// The file is emptied (`O_TRUNC`).
    pub truncate: bool,
    /// Each write goes to the end of the file (`O_APPEND`).
    pub append: bool,
    /// Reads and writes bypass the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Each write completes when the data is on the medium (`O_SYNC`, `O_DSYNC`).
    pub durable: bool,
    /// With `durable`, a write does not wait for changes of the file's times (`O_DSYNC`).
    pub data_only: bool,
}

impl OpenFlags {
    /// For reading.
    pub const READ: OpenFlags = OpenFlags {
        write: false,
        create: false,
        exclusive: false,
        truncate: false,
        append: false,
        direct: false,
        durable: false,
        data_only: false,
    };
    /// For reading and writing; the file must exist.
    pub const WRITE: OpenFlags = OpenFlags {
        write: true,
        ..OpenFlags::READ
    };
    /// For writing to an empty file, created if necessary: `creat(2)`.
    pub const CREATE: OpenFlags = OpenFlags {
        create: true,
        truncate: true,
        ..OpenFlags::WRITE
    };
    /// For writing at the end of the file, created if necessary.
    pub const APPEND: OpenFlags = OpenFlags {
        create: true,
        append: true,
        ..OpenFlags::WRITE
    };
}

/// One call. Paths begin at the root, with or without `/`. If `at` is `None`, the transfer starts
/// at the file's position and moves the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// `open(2)`. If the number is in use, the old file is closed first, as in `dup2(2)`.
    Open {
        /// Path of the file.
        path: &'a str,
        /// Number of the open file from now on.
        fd: Fd,
        /// Flags of the open.
        how: OpenFlags,
    },
    /// `close(2)`.
    Close {
        /// Number of the open file.
        fd: Fd,
    },
    /// `read(2)`, `pread(2)`; returns the number of bytes read.
    Read {
        /// Number of the open file.
        fd: Fd,
        /// First byte; `None` means the position.
        at: Option<u64>,
        /// Maximum number of bytes.
        bytes: u64,
    },
    /// `write(2)`, `pwrite(2)`.
    Write {
        /// Number of the open file.
        fd: Fd,
        /// First byte; `None` means the position.
        at: Option<u64>,
        /// Number of bytes.
        bytes: u64,
    },
    /// `lseek(2)`: sets the position of the next transfer.
    Seek {
        /// Number of the open file.
        fd: Fd,
        /// New position from the beginning of the file.
        to: u64,
    },
    /// `fsync(2)`.
    Fsync {
        /// Number of the open file.
        fd: Fd,
    },
    /// `fdatasync(2)`: as `fsync`, but changes of the file's times need not be durable.
    Fdatasync {
        /// Number of the open file.
        fd: Fd,
    },
    /// `sync(2)`: writes all dirty data and waits.
    Sync,
    /// `truncate(2)`.
    Truncate {
        /// Path of the file.
        path: &'a str,
        /// New length.
        bytes: u64,
    },
    /// `ftruncate(2)`.
    Resize {
        /// Number of the open file.
        fd: Fd,
        /// New length.
        bytes: u64,
    },
    /// `mkdir(2)`.
    MakeDirectory {
        /// Path of the directory.
        path: &'a str,
    },
    /// `unlink(2)` for a file or `rmdir(2)` for a directory. An open file disappears at its last
    /// close.
    Remove {
        /// Path of the file or directory.
        path: &'a str,
    },
    /// `rename(2)`.
    Rename {
        /// Old path.
        from: &'a str,
        /// New path; an existing file there is replaced.
        to: &'a str,
    },
    /// `stat(2)`; returns the length.
    Stat {
        /// Path of the file.
        path: &'a str,
    },
    /// `getdents(2)` until the end of the directory; returns the number of entries.
    List {
        /// Path of the directory.
        path: &'a str,
    },
}

/// Kinds of calls, counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// An open of an existing file.
    Open,
    /// An open with creation of the file.
    Create,
    /// A close.
    Close,
    /// A read.
    Read,
    /// A write.
    Write,
    /// A change of the position.
    Seek,
    /// An fsync or fdatasync.
    Fsync,
    /// A sync.
    Sync,
    /// A change of the length.
    Truncate,
    /// A new directory.
    Mkdir,
    /// A removal.
    Unlink,
    /// A change of the name.
    Rename,
    /// A query of a file's attributes.
    Stat,
    /// A listing of a directory.
    List,
}

impl CallKind {
    /// All kinds, in the order of reports.
    pub const ALL: [CallKind; 14] = [
        CallKind::Open,
        CallKind::Create,
        CallKind::Close,
        CallKind::Read,
        CallKind::Write,
        CallKind::Seek,
        CallKind::Fsync,
        CallKind::Sync,
        CallKind::Truncate,
        CallKind::Mkdir,
        CallKind::Unlink,
        CallKind::Rename,
        CallKind::Stat,
        CallKind::List,
    ];

    /// Returns the name in reports: `hosts.NAME.operations.fsync.latency_ms.p99`.
    pub const fn name(self) -> &'static str {
        match self {
            CallKind::Open => "open",
            CallKind::Create => "create",
            CallKind::Close => "close",
            CallKind::Read => "read",
            CallKind::Write => "write",
            CallKind::Seek => "seek",
            CallKind::Fsync => "fsync",
            CallKind::Sync => "sync",
            CallKind::Truncate => "truncate",
            CallKind::Mkdir => "mkdir",
            CallKind::Unlink => "unlink",
            CallKind::Rename => "rename",
            CallKind::Stat => "stat",
            CallKind::List => "list",
        }
    }
}

impl Call<'_> {
    /// Returns the kind. An open counts as [`CallKind::Open`] until it has created a file.
    pub const fn kind(&self) -> CallKind {
        match self {
            Call::Open { .. } => CallKind::Open,
            Call::Close { .. } => CallKind::Close,
            Call::Read { .. } => CallKind::Read,
            Call::Write { .. } => CallKind::Write,
            Call::Seek { .. } => CallKind::Seek,
            Call::Fsync { .. } | Call::Fdatasync { .. } => CallKind::Fsync,
            Call::Sync => CallKind::Sync,
            Call::Truncate { .. } | Call::Resize { .. } => CallKind::Truncate,
            Call::MakeDirectory { .. } => CallKind::Mkdir,
            Call::Remove { .. } => CallKind::Unlink,
            Call::Rename { .. } => CallKind::Rename,
            Call::Stat { .. } => CallKind::Stat,
            Call::List { .. } => CallKind::List,
        }
    }
}

/// Reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// An error of the file system.
    File(FileError),
    /// The number is not open, or not open for this operation (EBADF).
    BadFd(Fd),
    /// The device failed to read or write (EIO).
    Device,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::File(error) => error.fmt(f),
            CallError::BadFd(Fd(number)) => {
                write!(f, "descriptor {number} is not open, or not for this")
            }
            CallError::Device => f.write_str("the device did not carry it out"),
        }
    }
}

impl std::error::Error for CallError {}

impl From<FileError> for CallError {
    fn from(error: FileError) -> CallError {
        CallError::File(error)
    }
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAnswer {
    /// Kind of the call.
    pub kind: CallKind,
    /// Time when the call began.
    pub began: Time,
    /// Time when the call ended.
    pub ended: Time,
    /// Number of bytes, a length, a number of entries, or 0.
    pub result: Result<u64, CallError>,
}

impl CallAnswer {
    /// Returns the duration of the call.
    pub fn took(&self) -> Duration {
        self.ended.since(self.began)
    }
}
