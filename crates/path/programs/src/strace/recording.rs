//! A recording as it is played: who does what, when, and after whom.

use crate::call::How;
use crate::program::Laid;
use std::sync::Arc;

/// Which path.
pub(super) type PathId = u32;

/// The descriptor of an open that failed in the recording; those of others are above it.
pub(super) const FAILED: u32 = 0;

/// What was read. A million calls are held at 40 bytes each.
#[derive(Debug, Default)]
pub(super) struct Recording {
    /// Without the first `/`.
    pub paths: Vec<Arc<str>>,
    pub lanes: Vec<Lane>,
    pub laid: Vec<Laid>,
    pub notes: Vec<String>,
    /// Processes and threads of the recording; several that follow each other share a
    /// lane.
    pub processes: u64,
    /// From the first line to the last, in nanoseconds.
    pub recorded: u64,
    /// Calls that are carried out.
    pub calls: u64,
    /// What they took in the recording, in nanoseconds.
    pub calls_took: u64,
}

/// What one process does, or several of which each begins when it has been waited for
/// the one before.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// It begins when another has come so far.
    pub after: Option<Place>,
    pub records: Vec<Record>,
}

/// So many records of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub lane: u32,
    pub records: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Its own time before, in nanoseconds.
    pub own: u64,
    /// From 1.
    pub line: u32,
    /// It failed in the recording.
    pub fails: bool,
    pub step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Own time alone.
    Nothing,
    /// It waits until another has come so far.
    After(Place),
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
    /// A write to the end.
    Append {
        fd: u32,
        bytes: u64,
    },
    Fsync {
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

/// [`How`] in a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    pub fn new(how: How) -> Flags {
        let bits = [
            how.write,
            how.create,
            how.exclusive,
            how.truncate,
            how.append,
            how.direct,
            how.durable,
        ];
        Flags(
            bits.iter()
                .enumerate()
                .fold(0, |all, (place, &bit)| all | (u8::from(bit) << place)),
        )
    }

    pub fn how(self) -> How {
        let bit = |place: u8| self.0 >> place & 1 == 1;
        How {
            write: bit(0),
            create: bit(1),
            exclusive: bit(2),
            truncate: bit(3),
            append: bit(4),
            direct: bit(5),
            durable: bit(6),
        }
    }
}
