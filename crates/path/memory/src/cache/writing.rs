//! Writes: pages become dirty, and writers may be throttled.

use super::pending::{OperationKind, PendingOperation, Wait};
use super::room::SHORTAGE_WAIT;
use super::{FileAccess, FileId, PageCache, pages_of};
use crate::out::{CacheOut, IoReason, OperationAnswer, PageIo, Ticket};
use crate::pages::{ASIDE, flag};
use crate::replacement::ListPlace;
use crate::run::{PAGE_BYTES, PageRun};
use crate::write_back::{ThrottledWriter, WriterVerdict};
use fullstroke_contract::Object;
use fullstroke_units::Time;

impl PageCache {
    /// Writes bytes of an open file. If the write covers a part of a page that is not held, and the
    /// rest holds data of the file, the page is read first. With `durable` (O_SYNC) the operation
    /// ends when its pages are on the device.
    pub fn write(
        &mut self,
        now: Time,
        file: FileId,
        access: FileAccess,
        durable: bool,
        ticket: Ticket,
        out: &mut CacheOut,
    ) -> OperationAnswer {
        let object = self.files[file.0].object;
        let (first, end) = if access.bytes > 0 {
            pages_of(access.offset, access.bytes)
        } else {
            (0, 0)
        };
        let operation = PendingOperation {
            file: Some(file.0),
            offset: access.offset,
            bytes: access.bytes,
            size: access.size,
            dirtier: ThrottledWriter {
                file: file.0,
                written: 0,
            },
            ..PendingOperation::new(
                ticket,
                OperationKind::Write { durable },
                PageRun::new(object, first, end - first),
            )
        };
        self.begin(now, operation, out)
    }

    /// Makes whole pages dirty, such as blocks of metadata. The write is not throttled, and waits
    /// only for memory.
    pub fn write_run(
        &mut self,
        now: Time,
        run: PageRun,
        ticket: Ticket,
        out: &mut CacheOut,
    ) -> OperationAnswer {
        let write = PendingOperation::new(ticket, OperationKind::Write { durable: false }, run);
        let (offset, bytes) = (run.first * PAGE_BYTES, run.pages * PAGE_BYTES);
        self.begin(
            now,
            PendingOperation {
                offset,
                bytes,
                ..write
            },
            out,
        )
    }

    pub(super) fn go_on_writing(
        &mut self,
        now: Time,
        write: &mut PendingOperation,
        out: &mut CacheOut,
    ) -> bool {
        loop {
            if write.balancing && !self.balance(now, write, out) {
                return false;
            }
            self.count_throttled(now, write);
            if write.next == write.end {
                return self.end_write(now, write, out);
            }
            if !self.write_some(now, write, out) {
                return false;
            }
        }
    }

    fn end_write(&mut self, now: Time, write: &mut PendingOperation, out: &mut CacheOut) -> bool {
        if write.kind != (OperationKind::Write { durable: true }) {
            return true;
        }
        // generic_write_sync: fsync of the written pages.
        (write.kind, write.next, write.settling) = (OperationKind::Sync, write.first, false);
        self.go_on_syncing(now, write, out)
    }

    /// Asks if a writer may continue. Returns false if the writer waits.
    fn balance(&mut self, now: Time, write: &mut PendingOperation, out: &mut CacheOut) -> bool {
        let (mut parts, write_back) = self.parts(now, out);
        let verdict = write_back.balance(&mut write.dirtier, &mut parts);
        write.balancing = !matches!(verdict, WriterVerdict::Go | WriterVerdict::Pause(_));
        write.wait = match verdict {
            WriterVerdict::Go => {
                write.dirtier.written = 0;
                return true;
            }
            WriterVerdict::Pause(until) | WriterVerdict::Again(until) if until <= now => {
                return true;
            }
            WriterVerdict::Pause(until) | WriterVerdict::Again(until) => Wait::Until(until),
            WriterVerdict::Congestion(until) => Wait::Congestion(until),
            WriterVerdict::Room => Wait::Room,
        };
        if write.throttled.is_none() {
            write.throttled = Some(now);
            self.counters.throttles += 1;
        }
        false
    }

    fn count_throttled(&mut self, now: Time, write: &mut PendingOperation) {
        if let Some(since) = write.throttled.take() {
            // Many writers wait at a time, so the sum may exceed the largest duration.
            let throttled = now.since(since);
            self.counters.throttled = self.counters.throttled.saturating_add(throttled);
        }
    }

    /// Writes the next pages of the same state. Returns false if the operation must wait.
    fn write_some(&mut self, now: Time, write: &mut PendingOperation, out: &mut CacheOut) -> bool {
        let allowance = write
            .file
            .map_or(u64::MAX, |file| self.write_back.allowance(file));
        let most = write.next.saturating_add(allowance).min(write.end);
        let (pages, newly) = match self.pages.find(write.object, write.next) {
            Some(slot) => {
                let stretch = *self.pages.get(slot);
                if stretch.is(flag::READING) {
                    write.wait = Wait::Page(write.next);
                    return false;
                }
                // The page goes with the end of its I/O, and the write then takes a new page.
                if stretch.is(flag::DOOMED) {
                    write.wait = Wait::Written(write.next);
                    return false;
                }
                let to = stretch.end().min(most);
                let slot = self.pages.cut(slot, write.next, to);
                self.dirty_pages(slot);
                (
                    to - write.next,
                    if stretch.is(flag::DIRTY) {
                        0
                    } else {
                        to - write.next
                    },
                )
            }
            None => match self.write_new(now, write, most, out) {
                0 => return false,
                came => (came, came),
            },
        };
        assert!(
            pages > 0 && write.next + pages <= write.end,
            "a write of {pages} pages at page {} exceeds its end {}",
            write.next,
            write.end
        );
        write.next += pages;
        self.note_dirtied(now, write, pages, newly);
        true
    }

    fn dirty_pages(&mut self, slot: u32) {
        self.pages.change(slot, flag::DIRTY, 0);
        let first = self.pages.get(slot).first;
        let object = self.pages.get(slot).object;
        self.used(slot);
        self.keep_aside_in_order(object, first);
    }

    /// Moves a newly dirty page among those set aside behind the evictable ones.
    fn keep_aside_in_order(&mut self, object: Object, page: u64) {
        if let Some(slot) = self
            .pages
            .look(object, page)
            .filter(|&slot| self.pages.get(slot).list == ASIDE)
        {
            self.pages.unlink(slot);
            self.pages.push_newest(ASIDE, slot);
        }
    }

    /// Adds missing pages: dirty pages, or one page to read first. Returns the number of pages
    /// written; 0 if the operation must wait.
    fn write_new(
        &mut self,
        now: Time,
        write: &mut PendingOperation,
        most: u64,
        out: &mut CacheOut,
    ) -> u64 {
        if self.needs_filling(write, write.next) {
            return self.fill(now, write, out);
        }
        let mut to = self.pages.next_held(write.object, write.next).min(most);
        // The last page gets a turn of its own, because the rest of the page must be read first.
        if to == write.end && to > write.next + 1 && self.needs_filling(write, to - 1) {
            to -= 1;
        }
        let run = PageRun::new(write.object, write.next, to - write.next);
        debug_assert!(
            run.pages > 0,
            "no page of a write at {} is absent",
            write.next
        );
        let came = self.admit(now, run, flag::DIRTY | flag::FRESH, ListPlace::Written, out);
        self.each(
            PageRun { pages: came, ..run },
            flag::FRESH,
            |cache, slot| cache.used(slot),
        );
        if came == 0 {
            self.wait_for_memory(now, write);
        }
        came
    }

    fn wait_for_memory(&mut self, now: Time, write: &mut PendingOperation) {
        write.wait = Wait::Memory(now + SHORTAGE_WAIT);
        self.counters.shortages += 1;
    }

    /// True if the page holds bytes of the file outside the write.
    fn needs_filling(&self, write: &PendingOperation, page: u64) -> bool {
        let (from, to) = (page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
        let end = write.offset + write.bytes;
        let before = write.offset > from && from < write.size;
        let behind = end < to && end < write.size;
        before || behind
    }

    /// Reads a page for a partial write.
    fn fill(&mut self, now: Time, write: &mut PendingOperation, out: &mut CacheOut) -> u64 {
        let run = PageRun::new(write.object, write.next, 1);
        if self.admit(
            now,
            run,
            flag::READING | flag::FRESH,
            ListPlace::Written,
            out,
        ) == 0
        {
            self.wait_for_memory(now, write);
            return 0;
        }
        self.counters.filled += 1;
        let id = self.device.begin(run, false);
        out.reads.push(PageIo {
            id,
            run,
            why: IoReason::Fill,
            ticket: Some(write.ticket),
        });
        write.wait = Wait::Page(write.next);
        0
    }

    fn note_dirtied(&mut self, now: Time, write: &mut PendingOperation, pages: u64, newly: u64) {
        debug_assert!(newly <= pages, "{newly} of {pages} pages have become dirty");
        self.counters.written += pages;
        self.counters.dirtied += newly;
        self.dirty.enter(write.object, now);
        if let Some(file) = write.file {
            write.balancing = self.write_back.dirtied(file, pages, newly);
        }
    }
}
