//! Operations that wait for memory, for the end of I/O or for a time, and go on afterwards.

use super::PageCache;
use super::pending::{Alarm, OperationKind, PendingOperation, Wait, WaitEvent};
use crate::out::{CacheOut, OperationAnswer, WokenOperation};
#[cfg(test)]
use crate::pages::flag;
use crate::run::PageRun;
use fullstroke_contract::RequestStatus;
use fullstroke_units::Time;

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
        let news = WaitEvent {
            now,
            cleared: self.device.take_cleared(),
            freed: std::mem::take(&mut self.freed),
            ended: std::mem::take(&mut self.ended),
        };
        let any =
            self.alarm.is_raised_by(&news, !self.device.full()) && self.resume_woken(&news, out);
        #[cfg(test)]
        self.assert_nobody_waits_in_vain(now);
        self.ended = news.ended;
        self.ended.clear();
        any
    }

    fn resume_woken(&mut self, news: &WaitEvent, out: &mut CacheOut) -> bool {
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
