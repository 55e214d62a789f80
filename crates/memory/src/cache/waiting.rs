//! Operations that wait: what for, and how they go on.

use super::Cache;
use crate::out::{Answer, Out, Ticket, Woken};
use crate::pages::flag;
use crate::read_ahead::{Cuts, Plan};
use crate::run::Run;
use crate::write_back::Dirtier;
use fullstroke_contract::{Object, Status};
use fullstroke_units::Time;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Reads pages, with the read-ahead of its file if it has one.
    Read,
    /// Writes pages; `durable` says that it ends when they are on the device.
    Write { durable: bool },
    /// Writes back what is dirty of a run, and waits for it.
    Sync,
    /// The same of all objects.
    SyncAll,
    /// The same of a run, which is then dropped if `drop`.
    Direct { drop: bool },
}

/// What it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing: it goes on.
    Nothing,
    /// That a page has been read.
    Page(u64),
    /// That the write-back of a page has ended.
    Written(u64),
    /// The time.
    Until(Time),
    /// The end of congestion, until then at most.
    Congestion(Time),
    /// A place in the device's queue.
    Room,
    /// Memory, looking again then at the latest.
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

/// An operation that goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub ticket: Ticket,
    pub kind: Kind,
    pub file: Option<u32>,
    pub object: Object,
    /// The bytes, for read-ahead and partial pages.
    pub offset: u64,
    pub bytes: u64,
    /// The length of the object, in pages.
    pub size: u64,
    /// The page that it began with, the one that it is at, and the one behind its
    /// last.
    pub first: u64,
    pub next: u64,
    pub end: u64,
    /// The page from which on read-ahead is asked again of pages that are held, and
    /// the one behind that of which it was asked last.
    pub again: u64,
    pub asked: u64,
    /// Where windows end early.
    pub cuts: Cuts,
    /// Whether it waits for what it wrote back.
    pub settling: bool,
    /// Whether its writer is to be asked whether it may go on, and as whom.
    pub balancing: bool,
    pub dirtier: Dirtier,
    pub wait: Wait,
    /// Since when it is made to wait for too many dirty pages.
    pub throttled: Option<Time>,
    pub status: Status,
}

impl Operation {
    #[inline]
    pub fn new(ticket: Ticket, kind: Kind, run: Run) -> Operation {
        Operation {
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
            again: Plan::NEVER,
            asked: 0,
            cuts: Cuts::NONE,
            settling: false,
            balancing: false,
            dirtier: Dirtier::default(),
            wait: Wait::Nothing,
            throttled: None,
            status: Status::Done,
        }
    }

    pub fn run(&self) -> Run {
        Run::new(self.object, self.first, self.end - self.first)
    }
}

impl Cache {
    /// Begins an operation.
    pub(super) fn begin(&mut self, now: Time, mut operation: Operation, out: &mut Out) -> Answer {
        let answer = if self.proceed(now, &mut operation, out) {
            self.finish(&operation);
            Answer::Done
        } else {
            let slot = self.operations.keep(operation);
            self.waiting.push(slot);
            Answer::Waits
        };
        self.settle(now, out);
        answer
    }

    /// Lets it go on; answers whether it is over.
    fn proceed(&mut self, now: Time, operation: &mut Operation, out: &mut Out) -> bool {
        operation.wait = Wait::Nothing;
        let over = match operation.kind {
            Kind::Read => self.go_on_reading(now, operation, out),
            Kind::Write { .. } => self.go_on_writing(now, operation, out),
            Kind::Sync | Kind::SyncAll | Kind::Direct { .. } => self.go_on_syncing(now, operation, out),
        };
        debug_assert_eq!(over, operation.wait == Wait::Nothing, "it waits for something, or is over");
        over
    }

    fn finish(&mut self, operation: &Operation) {
        if let (Kind::Read, Some(file)) = (operation.kind, operation.file) {
            self.read_ahead.ended(file, operation.offset, operation.bytes);
            if operation.end > operation.first {
                self.files[file].last_page = operation.end - 1;
            }
        }
    }

    /// Lets those go on that need not wait any more, in the order in which they
    /// came. Answers whether any did.
    pub(super) fn resume(&mut self, now: Time, out: &mut Out) -> bool {
        let cleared = self.device.take_cleared();
        let freed = std::mem::take(&mut self.freed);
        let mut any = false;
        let mut at = 0;
        while at < self.waiting.len() {
            let slot = self.waiting[at];
            let mut operation = self.operations[slot];
            if !self.may_go_on(now, &operation, cleared, freed) {
                at += 1;
                continue;
            }
            any = true;
            if self.proceed(now, &mut operation, out) {
                self.finish(&operation);
                self.operations.take(slot);
                self.waiting.remove(at);
                out.woken.push(Woken { ticket: operation.ticket, status: operation.status });
            } else {
                self.operations[slot] = operation;
                at += 1;
            }
        }
        any
    }

    fn may_go_on(&self, now: Time, operation: &Operation, cleared: bool, freed: bool) -> bool {
        let has = |page: u64, flag: u16| {
            self.pages.look(operation.object, page).is_some_and(|slot| self.pages.get(slot).is(flag))
        };
        match operation.wait {
            Wait::Nothing => true,
            Wait::Page(page) => !has(page, flag::READING),
            Wait::Written(page) => !has(page, flag::WRITING),
            Wait::Until(time) => now >= time,
            Wait::Congestion(time) => cleared || now >= time,
            Wait::Room => !self.device.full(),
            Wait::Memory(time) => freed || now >= time,
        }
    }

    /// Pages could not be read or written: who waits for them is told.
    pub(super) fn fail(&mut self, run: Run, status: Status, out: &mut Out) {
        let mut at = 0;
        while at < self.waiting.len() {
            let slot = self.waiting[at];
            let operation = &mut self.operations[slot];
            match operation.wait {
                Wait::Page(page) if run.holds(operation.object, page) => {
                    let ticket = operation.ticket;
                    self.operations.take(slot);
                    self.waiting.remove(at);
                    out.woken.push(Woken { ticket, status });
                }
                Wait::Written(page) if run.holds(operation.object, page) => {
                    operation.status = status;
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Pages that those who wait for memory still need.
    pub(super) fn wanted(&self) -> u64 {
        let waits = |operation: &Operation| matches!(operation.wait, Wait::Memory(_));
        let operations = self.waiting.iter().map(|&slot| &self.operations[slot]);
        operations.filter(|operation| waits(operation)).map(|operation| operation.end - operation.next).sum()
    }
}
