//! The results of a cache, beside the return values of its methods.

use crate::device::IoId;
use crate::run::PageRun;
use fullstroke_contract::RequestStatus;

/// The caller's name of an operation, from its start until its wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(pub u64);

/// Reason of a read or write of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoReason {
    /// A read waits for some of the pages.
    Read,
    /// Read-ahead: no operation waits.
    ReadAhead,
    /// A write to a part of a page needs the rest of the page.
    Fill,
    /// PUSH: storage has recommended the pages.
    Push,
    /// Background write-back, because too many pages are dirty.
    Background,
    /// Periodic write-back, because the pages have been dirty for long.
    Periodic,
    /// Write-back by a throttled writer, because too many pages are dirty.
    Throttled,
    /// fsync, sync, O_SYNC or O_DIRECT.
    Sync,
    /// Reclaim, because memory is short.
    Reclaim,
    /// PULL: storage has asked for the pages.
    Pull,
}

/// A read or write of pages for the caller. The caller may complete the I/O in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageIo {
    /// Number to return at completion.
    pub id: IoId,
    /// The pages.
    pub run: PageRun,
    /// Reason.
    pub why: IoReason,
    /// Operation behind the I/O, if there is one.
    pub ticket: Option<Ticket>,
}

/// An operation at the end of its wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WokenOperation {
    /// Name of the operation.
    pub ticket: Ticket,
    /// `Lost` if a page of the operation could not be read or written.
    pub status: RequestStatus,
}

/// Work for the caller. The caller empties the lists.
#[derive(Clone, Debug, Default)]
pub struct CacheOut {
    /// Reads to issue.
    pub reads: Vec<PageIo>,
    /// Writes to issue.
    pub writes: Vec<PageIo>,
    /// Operations at the end of their waits.
    pub woken: Vec<WokenOperation>,
}

impl CacheOut {
    /// True if there is no work.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.woken.is_empty()
    }

    /// Empties the lists.
    pub fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.woken.clear();
    }
}

/// Result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum OperationAnswer {
    /// The operation has ended.
    Done,
    /// The operation waits, and will appear in [`CacheOut::woken`].
    Waits,
}
