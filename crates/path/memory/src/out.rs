//! What a cache answers with, beside what its methods return.

use crate::device::IoId;
use crate::run::Run;
use fullstroke_contract::Status;

/// What a caller knows an operation by, from when it is asked for until it is
/// woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(pub u64);

/// Why pages are read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// A read waits for some of them.
    Read,
    /// Read-ahead, nobody waits.
    ReadAhead,
    /// A write of part of a page needs the rest of it.
    Fill,
    /// PUSH: storage has said that they are worth having.
    Push,
    /// Too much is dirty: written in the background.
    Background,
    /// They have been dirty for long.
    Periodic,
    /// Whoever dirtied pages writes some, as too much is dirty.
    Throttled,
    /// fsync, sync, O_SYNC or O_DIRECT.
    Sync,
    /// Memory is short.
    Reclaim,
    /// PULL: storage has asked for them.
    Pull,
}

/// Pages that the cache wants to be read or written. They may end in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// To be given back as they end.
    pub id: IoId,
    /// The pages.
    pub run: Run,
    /// Why.
    pub why: Why,
    /// Whose operation asked for it, if one did.
    pub ticket: Option<Ticket>,
}

/// An operation that has waited and is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// Which.
    pub ticket: Ticket,
    /// `Lost` if a page that it needed could not be read or written.
    pub status: Status,
}

/// What a method leaves for the caller to do; the caller empties it.
#[derive(Clone, Debug, Default)]
pub struct Out {
    /// To be read.
    pub reads: Vec<Io>,
    /// To be written.
    pub writes: Vec<Io>,
    /// Operations that were waiting and are over.
    pub woken: Vec<Woken>,
}

impl Out {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.woken.is_empty()
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.woken.clear();
    }
}

/// What an operation answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Answer {
    /// It is over.
    Done,
    /// It will be among the woken.
    Waits,
}
