//! Waiting operations, and the conditions of their waits.

use super::PageCache;
use crate::out::{CacheOut, OperationAnswer, Ticket, WokenOperation};
#[cfg(test)]
use crate::pages::flag;
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
struct News {
    now: Time,
    /// Congestion has ended.
    cleared: bool,
    /// Something has become free or clean.
    freed: bool,
    /// Runs whose I/O has ended.
    ended: Vec<PageRun>,
}

impl News {
    /// True if the operation may continue. `room` tells if the device's queue has a place now; the
    /// operation before may have taken the last one.
    fn lets_go_on(&self, operation: &PendingOperation, room: bool) -> bool {
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
    fn set(&mut self, wait: Wait) {
        self.until = self.until.min(wait.until());
        self.room |= wait == Wait::Room;
    }

    fn is_raised_by(&self, news: &News, room: bool) -> bool {
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

impl PageCache {
    /// Begins an operation.
    pub(super) fn begin(
        &mut self,
        now: Time,
        mut operation: PendingOperation,
        out: &mut CacheOut,
    ) -> OperationAnswer {
        let answer = if self.proceed(now, &mut operation, out) {
            self.finish(&operation);
            OperationAnswer::Done
        } else {
            let slot = self.operations.keep(operation);
            self.waiting.push(slot);
            self.alarm.set(operation.wait);
            OperationAnswer::Waits
        };
        self.settle(now, out);
        answer
    }

    /// Continues an operation. Returns true if it has ended.
    fn proceed(&mut self, now: Time, operation: &mut PendingOperation, out: &mut CacheOut) -> bool {
        operation.wait = Wait::Nothing;
        let over = match operation.kind {
            OperationKind::Read => self.go_on_reading(now, operation, out),
            OperationKind::Write { .. } => self.go_on_writing(now, operation, out),
            OperationKind::Sync | OperationKind::SyncAll | OperationKind::Direct { .. } => {
                self.go_on_syncing(now, operation, out)
            }
        };
        debug_assert_eq!(
            over,
            operation.wait == Wait::Nothing,
            "it waits for something, or is over"
        );
        over
    }

    fn finish(&mut self, operation: &PendingOperation) {
        if let (OperationKind::Read, Some(file)) = (operation.kind, operation.file) {
            self.read_ahead
                .ended(file, operation.offset, operation.bytes);
            if operation.end > operation.first {
                self.files[file].last_page = operation.end - 1;
            }
        }
    }

    /// Continues the waiting operations whose condition holds, in order of arrival. Returns true if
    /// any continued.
    pub(super) fn resume(&mut self, now: Time, out: &mut CacheOut) -> bool {
        let news = News {
            now,
            cleared: self.device.take_cleared(),
            freed: std::mem::take(&mut self.freed),
            ended: std::mem::take(&mut self.ended),
        };
        let any =
            self.alarm.is_raised_by(&news, !self.device.full()) && self.resume_those_of(&news, out);
        #[cfg(test)]
        self.assert_nobody_waits_in_vain(now);
        self.ended = news.ended;
        self.ended.clear();
        any
    }

    fn resume_those_of(&mut self, news: &News, out: &mut CacheOut) -> bool {
        let (mut any, mut at) = (false, 0);
        self.alarm = Alarm::default();
        while at < self.waiting.len() {
            let slot = self.waiting[at];
            if !news.lets_go_on(&self.operations[slot], !self.device.full()) {
                self.alarm.set(self.operations[slot].wait);
                at += 1;
                continue;
            }
            any = true;
            let mut operation = self.operations[slot];
            if self.proceed(news.now, &mut operation, out) {
                self.finish(&operation);
                self.operations.take(slot);
                self.waiting.remove(at);
                out.woken.push(WokenOperation {
                    ticket: operation.ticket,
                    status: operation.status,
                });
            } else {
                self.alarm.set(operation.wait);
                self.operations[slot] = operation;
                at += 1;
            }
        }
        any
    }

    /// Checks that every waiting operation waits with reason.
    #[cfg(test)]
    fn assert_nobody_waits_in_vain(&self, now: Time) {
        for &slot in &self.waiting {
            let operation = &self.operations[slot];
            let has = |page: u64, flag: u16| {
                self.pages
                    .look(operation.object, page)
                    .is_some_and(|slot| self.pages.get(slot).is(flag))
            };
            let waits = match operation.wait {
                Wait::Nothing => false,
                Wait::Page(page) => has(page, flag::READING),
                Wait::Written(page) => has(page, flag::WRITING),
                wait => now < wait.until(),
            };
            assert!(waits, "{operation:?} waits in vain");
        }
    }

    /// Reports a failed read or write to the waiting operations.
    pub(super) fn fail(&mut self, run: PageRun, status: RequestStatus, out: &mut CacheOut) {
        let mut at = 0;
        while at < self.waiting.len() {
            let slot = self.waiting[at];
            let operation = &mut self.operations[slot];
            match operation.wait {
                Wait::Page(page) if run.holds(operation.object, page) => {
                    let ticket = operation.ticket;
                    self.operations.take(slot);
                    self.waiting.remove(at);
                    out.woken.push(WokenOperation { ticket, status });
                }
                Wait::Written(page) if run.holds(operation.object, page) => {
                    operation.status = status;
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Returns the number of pages wanted by operations waiting for memory.
    pub(super) fn wanted(&self) -> u64 {
        let waits = |operation: &PendingOperation| matches!(operation.wait, Wait::Memory(_));
        let operations = self.waiting.iter().map(|&slot| &self.operations[slot]);
        operations
            .filter(|operation| waits(operation))
            .map(|operation| operation.end - operation.next)
            .sum()
    }
}
