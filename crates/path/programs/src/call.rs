//! What a program asks of files, and what it is answered.

use fullstroke_files::FileError;
use fullstroke_units::{Duration, Time};
use std::fmt;

/// The number by which a process knows an open file. The program chooses it, as it
/// knows which it has in use; each process has numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(pub u32);

/// How a file is opened: the flags of `open(2)` that change what happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// It may be written (`O_WRONLY`, `O_RDWR`).
    pub write: bool,
    /// It is made if it is not there (`O_CREAT`).
    pub create: bool,
    /// It must not be there (`O_EXCL` with `O_CREAT`).
    pub exclusive: bool,
    /// It is emptied (`O_TRUNC`).
    pub truncate: bool,
    /// Each write goes to its end (`O_APPEND`).
    pub append: bool,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Each write ends when it is on the medium (`O_SYNC`, `O_DSYNC`).
    pub durable: bool,
}

impl How {
    /// For reading.
    pub const READ: How = How {
        write: false,
        create: false,
        exclusive: false,
        truncate: false,
        append: false,
        direct: false,
        durable: false,
    };
    /// For reading and writing; it must be there.
    pub const WRITE: How = How {
        write: true,
        ..How::READ
    };
    /// For writing, empty, made if it is not there: `creat(2)`.
    pub const CREATE: How = How {
        create: true,
        truncate: true,
        ..How::WRITE
    };
    /// For writing at its end, made if it is not there.
    pub const APPEND: How = How {
        create: true,
        append: true,
        ..How::WRITE
    };
}

/// One call. Paths begin at the root, with or without `/`; bytes at `None` are at
/// the file's position, which moves on behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call<'a> {
    /// `open(2)`. A number that is in use is closed first, as `dup2(2)` does.
    Open {
        /// What.
        path: &'a str,
        /// How it is known from now on.
        fd: Fd,
        /// The flags.
        how: How,
    },
    /// `close(2)`.
    Close {
        /// Which.
        fd: Fd,
    },
    /// `read(2)`, `pread(2)`; answers how many bytes there were.
    Read {
        /// Of which.
        fd: Fd,
        /// From this byte on.
        at: Option<u64>,
        /// At most so many.
        bytes: u64,
    },
    /// `write(2)`, `pwrite(2)`.
    Write {
        /// To which.
        fd: Fd,
        /// From this byte on.
        at: Option<u64>,
        /// So many.
        bytes: u64,
    },
    /// `lseek(2)`: where the next byte without a place is.
    Seek {
        /// Of which.
        fd: Fd,
        /// From the file's beginning.
        to: u64,
    },
    /// `fsync(2)`.
    Fsync {
        /// Which.
        fd: Fd,
    },
    /// `sync(2)`: everything, and waits for it.
    Sync,
    /// `truncate(2)`.
    Truncate {
        /// What.
        path: &'a str,
        /// Its length from now on.
        bytes: u64,
    },
    /// `ftruncate(2)`.
    Resize {
        /// Which.
        fd: Fd,
        /// Its length from now on.
        bytes: u64,
    },
    /// `mkdir(2)`.
    MakeDirectory {
        /// What.
        path: &'a str,
    },
    /// `unlink(2)` or `rmdir(2)`, whichever it is. A file that is open goes at its
    /// last close.
    Remove {
        /// What.
        path: &'a str,
    },
    /// `rename(2)`.
    Rename {
        /// What.
        from: &'a str,
        /// What it is called from now on; replaced if it is there.
        to: &'a str,
    },
    /// `stat(2)`; answers the length.
    Stat {
        /// What.
        path: &'a str,
    },
    /// `getdents(2)` until there are no more; answers how many entries there are.
    List {
        /// Which directory.
        path: &'a str,
    },
}

/// The kinds of calls that are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallKind {
    /// An open of what was there.
    Open,
    /// An open that made the file.
    Create,
    /// A close.
    Close,
    /// A read.
    Read,
    /// A write.
    Write,
    /// A change of a position.
    Seek,
    /// An fsync.
    Fsync,
    /// A sync.
    Sync,
    /// A change of a length.
    Truncate,
    /// A new directory.
    Mkdir,
    /// A removal.
    Unlink,
    /// A change of a name.
    Rename,
    /// A look at what is known of a file.
    Stat,
    /// A list of a directory.
    List,
}

impl CallKind {
    /// All, in the order of reports.
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

    /// As in reports: `hosts.NAME.operations.fsync.latency_ms.p99`.
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
    /// Its kind; an open is an [`CallKind::Open`] until it has made a file.
    pub const fn kind(&self) -> CallKind {
        match self {
            Call::Open { .. } => CallKind::Open,
            Call::Close { .. } => CallKind::Close,
            Call::Read { .. } => CallKind::Read,
            Call::Write { .. } => CallKind::Write,
            Call::Seek { .. } => CallKind::Seek,
            Call::Fsync { .. } => CallKind::Fsync,
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

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The file system says so.
    File(FileError),
    /// No open file has that number, or it is not open for this (EBADF).
    BadFd(Fd),
    /// The device did not read or write it (EIO).
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

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it was.
    pub kind: CallKind,
    /// When it was made.
    pub began: Time,
    /// When it ended.
    pub ended: Time,
    /// What it gave: bytes, a length, a number of entries, or 0.
    pub result: Result<u64, CallError>,
}

impl Answer {
    /// How long it took.
    pub fn took(&self) -> Duration {
        self.ended.since(self.began)
    }
}
