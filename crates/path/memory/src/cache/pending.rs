//! Operations in progress, and the conditions of their waits.

use crate::out::Ticket;
use crate::read_ahead::{ReadAheadPlan, WindowCuts};
use crate::run::PageRun;
use crate::write_back::ThrottledWriter;
use fullstroke_contract::{Object, RequestStatus};
use fullstroke_units::Time;

/// Kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationKind {
    /// Reads pages, with the read-ahead of its file if it has one.
    Read,
    /// Writes pages. With `durable`, the operation ends when the pages are on the device.
    Write { durable: bool },
    /// Writes back the dirty pages of a run, and waits for them.
    Sync,
    /// Writes back the dirty pages of all objects, and waits for them.
    SyncAll,
    /// Writes back the dirty pages of a run, and waits for them. Then drops the run if `drop`.
    Direct { drop: bool },
}

/// Condition of a waiting operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// No condition: the operation continues.
    Nothing,
    /// The end of the read of a page.
    Page(u64),
    /// The end of the write-back of a page.
    Written(u64),
    /// A time.
    Until(Time),
    /// The end of congestion, at most until a time.
    Congestion(Time),
    /// A place in the device's queue.
    Room,
    /// Free memory, with a new attempt at a time at the latest.
    Memory(Time),
}

impl Wait {
    pub fn until(self) -> Time {
        match self {
            Wait::Until(time) | Wait::Congestion(time) | Wait::Memory(time) => time,
            _ => Time::NEVER,
        }
    }
}

/// Events for waiting operations.
pub(super) struct WaitEvent {
    pub(super) now: Time,
    /// Congestion has ended.
    pub(super) cleared: bool,
    /// Something has become free or clean.
    pub(super) freed: bool,
    /// Runs whose I/O has ended.
    pub(super) ended: Vec<PageRun>,
}

impl WaitEvent {
    /// True if the operation may continue. `room` tells if the device's queue has a place now; the
    /// operation before may have taken the last one.
    pub(super) fn lets_go_on(&self, operation: &PendingOperation, room: bool) -> bool {
        match operation.wait {
            Wait::Nothing => true,
            Wait::Page(page) | Wait::Written(page) => self
                .ended
                .iter()
                .any(|run| run.holds(operation.object, page)),
            Wait::Until(time) => self.now >= time,
            Wait::Congestion(time) => self.cleared || self.now >= time,
            Wait::Room => room,
            Wait::Memory(time) => self.freed || self.now >= time,
        }
    }
}

/// Summary of the conditions of all waiting operations. The summary is checked first, because most
/// events concern no operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alarm {
    /// Earliest time among the waits.
    pub(super) until: Time,
    /// True if an operation waits for a place in the queue.
    room: bool,
}

impl Default for Alarm {
    fn default() -> Alarm {
        Alarm {
            until: Time::NEVER,
            room: false,
        }
    }
}

impl Alarm {
    pub(super) fn set(&mut self, wait: Wait) {
        self.until = self.until.min(wait.until());
        self.room |= wait == Wait::Room;
    }

    pub(super) fn is_raised_by(&self, news: &WaitEvent, room: bool) -> bool {
        self.room && room
            || news.cleared
            || news.freed
            || !news.ended.is_empty()
            || news.now >= self.until
    }
}

/// An operation in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingOperation {
    pub ticket: Ticket,
    pub kind: OperationKind,
    pub file: Option<u32>,
    pub object: Object,
    /// Byte range, for read-ahead and partial pages.
    pub offset: u64,
    pub bytes: u64,
    /// Length of the object: in pages for a read, in bytes for a write.
    pub size: u64,
    /// First page, present page, and the page after the last.
    pub first: u64,
    pub next: u64,
    pub end: u64,
    /// Page from which read-ahead is asked again even at held pages, and the page after the last
    /// question.
    pub again: u64,
    pub asked: u64,
    /// Pages at which windows end early.
    pub cuts: WindowCuts,
    /// True if the operation waits for its own write-back.
    pub settling: bool,
    /// True if the writer must ask for permission to continue, and the state of the writer.
    pub balancing: bool,
    pub dirtier: ThrottledWriter,
    pub wait: Wait,
    /// Start of the present throttling.
    pub throttled: Option<Time>,
    pub status: RequestStatus,
}

impl PendingOperation {
    #[inline]
    pub fn new(ticket: Ticket, kind: OperationKind, run: PageRun) -> PendingOperation {
        PendingOperation {
            ticket,
            kind,
            file: None,
            object: run.object,
            offset: 0,
            bytes: 0,
            size: u64::MAX,
            first: run.first,
            next: run.first,
            end: run.end(),
            again: ReadAheadPlan::NEVER,
            asked: 0,
            cuts: WindowCuts::NONE,
            settling: false,
            balancing: false,
            dirtier: ThrottledWriter::default(),
            wait: Wait::Nothing,
            throttled: None,
            status: RequestStatus::Done,
        }
    }

    pub fn run(&self) -> PageRun {
        PageRun::new(self.object, self.first, self.end - self.first)
    }
}
