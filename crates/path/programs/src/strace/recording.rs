//! A recording in the form for the player: processes, steps, times and order.

use crate::call::OpenFlags;
use crate::program::InitialFile;
use std::sync::Arc;

/// Index of a path.
pub(super) type PathId = u32;

/// Descriptor of a failed open in the recording. All other descriptors are greater.
pub(super) const FAILED: u32 = 0;

/// A whole recording. A million calls need 40 bytes each.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// Paths without the leading `/`.
    pub paths: Vec<Arc<str>>,
    pub lanes: Vec<Lane>,
    pub laid: Vec<InitialFile>,
    pub notes: Vec<String>,
    /// Number of processes and threads of the recording. Successive processes may share a lane.
    pub processes: u64,
    /// Time from the first line to the last, in nanoseconds.
    pub recorded: u64,
    /// Number of executed calls.
    pub calls: u64,
    /// Total recorded duration of these calls, in nanoseconds.
    pub calls_took: u64,
}

/// The steps of one process, or of several processes one after another. Each of these began after a
/// wait for the previous one.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// The lane begins when another lane has reached this place.
    pub after: Option<LanePlace>,
    pub records: Vec<RecordedCall>,
}

/// A place: a number of records of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LanePlace {
    pub lane: u32,
    pub records: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedCall {
    /// Own time before the step, in nanoseconds.
    pub own: u64,
    /// Line in the recording, from 1.
    pub line: u32,
    /// True if the call failed in the recording.
    pub fails: bool,
    pub step: RecordedStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedStep {
    /// Own time only.
    Nothing,
    /// Waits until another lane has reached this place.
    After(LanePlace),
    Open {
        path: PathId,
        fd: u32,
        flags: Flags,
    },
    Close {
        fd: u32,
    },
    Read {
        fd: u32,
        at: u64,
        bytes: u64,
    },
    Write {
        fd: u32,
        at: u64,
        bytes: u64,
    },
    /// A write at the end of the file.
    Append {
        fd: u32,
        bytes: u64,
    },
    Fsync {
        fd: u32,
    },
    Fdatasync {
        fd: u32,
    },
    Sync,
    Truncate {
        path: PathId,
        bytes: u64,
    },
    Resize {
        fd: u32,
        bytes: u64,
    },
    MakeDirectory {
        path: PathId,
    },
    Remove {
        path: PathId,
    },
    Rename {
        from: PathId,
        to: PathId,
    },
    Stat {
        path: PathId,
    },
    List {
        path: PathId,
    },
}

/// [`OpenFlags`] packed into a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    pub fn new(how: OpenFlags) -> Flags {
        let bits = [
            how.write,
            how.create,
            how.exclusive,
            how.truncate,
            how.append,
            how.direct,
            how.durable,
            how.data_only,
        ];
        Flags(
            bits.iter()
                .enumerate()
                .fold(0, |all, (place, &bit)| all | (u8::from(bit) << place)),
        )
    }

    pub fn how(self) -> OpenFlags {
        let bit = |place: u8| self.0 >> place & 1 == 1;
        OpenFlags {
            write: bit(0),
            create: bit(1),
            exclusive: bit(2),
            truncate: bit(3),
            append: bit(4),
            direct: bit(5),
            durable: bit(6),
            data_only: bit(7),
        }
    }
}
