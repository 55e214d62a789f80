//! Operations that wait: what for, and how they go on.

use super::Cache;
use crate::out::{Answer, Out, Ticket, Woken};
#[cfg(test)]
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

/// What has happened that somebody may have waited for.
struct News {
    now: Time,
    /// Congestion has ended.
    cleared: bool,
    /// Something has become free or clean.
    freed: bool,
    /// Runs of which the I/O has ended.
    ended: Vec<Run>,
}

impl News {
    /// `room`: the device's queue has a place, now; who goes on may take the last.
    fn lets_go_on(&self, operation: &Operation, room: bool) -> bool {
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

/// What of all who wait has to be seen before any is looked at: most events
/// concern none of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alarm {
    /// The first that waits for the time.
    pub(super) until: Time,
    /// Whether one waits for a place in the queue.
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
            self.alarm.set(operation.wait);
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
            Kind::Sync | Kind::SyncAll | Kind::Direct { .. } => {
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

    fn finish(&mut self, operation: &Operation) {
        if let (Kind::Read, Some(file)) = (operation.kind, operation.file) {
            self.read_ahead
                .ended(file, operation.offset, operation.bytes);
            if operation.end > operation.first {
                self.files[file].last_page = operation.end - 1;
            }
        }
    }

    /// Lets those go on that need not wait any more, in the order in which they
    /// came. Answers whether any did.
    pub(super) fn resume(&mut self, now: Time, out: &mut Out) -> bool {
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

    fn resume_those_of(&mut self, news: &News, out: &mut Out) -> bool {
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
                out.woken.push(Woken {
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

    /// What the waiting wait for is looked up, and is not there.
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
        operations
            .filter(|operation| waits(operation))
            .map(|operation| operation.end - operation.next)
            .sum()
    }
}
