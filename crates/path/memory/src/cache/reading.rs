//! Reads: look-up page by page, read-ahead, and waits.

use super::pending::{OperationKind, PendingOperation, Wait};
use super::room::SHORTAGE_WAIT;
use super::{FileAccess, FileId, PageCache, pages_of};
use crate::out::{CacheOut, IoReason, OperationAnswer, PageIo, Ticket};
use crate::pages::{NOWHERE, Stretch, flag};
use crate::read_ahead::{PagePresence, PageWindow, ReadAheadPlan, ReadAheadQuery};
use crate::replacement::ListPlace;
use crate::run::PageRun;
use fullstroke_units::Time;

impl PageCache {
    /// Reads bytes of an open file. Bytes after the end of the file are not read.
    pub fn read(
        &mut self,
        now: Time,
        file: FileId,
        access: FileAccess,
        ticket: Ticket,
        out: &mut CacheOut,
    ) -> OperationAnswer {
        let object = self.files[file.0].object;
        let bytes = access.bytes.min(access.size.saturating_sub(access.offset));
        let (first, end) = if bytes > 0 {
            pages_of(access.offset, bytes)
        } else {
            (0, 0)
        };
        if end > first {
            self.read_ahead.begins(file.0, access.offset, bytes);
        }
        let operation = PendingOperation {
            file: Some(file.0).filter(|_| end > first),
            offset: access.offset,
            bytes,
            size: access.size.div_ceil(crate::run::PAGE_BYTES),
            cuts: access.cuts,
            again: if self.read_ahead.watches() {
                first
            } else {
                ReadAheadPlan::NEVER
            },
            ..PendingOperation::new(
                ticket,
                OperationKind::Read,
                PageRun::new(object, first, end - first),
            )
        };
        self.begin(now, operation, out)
    }

    /// Reads pages without read-ahead, such as blocks of metadata.
    pub fn read_run(
        &mut self,
        now: Time,
        run: PageRun,
        ticket: Ticket,
        out: &mut CacheOut,
    ) -> OperationAnswer {
        self.begin(
            now,
            PendingOperation::new(ticket, OperationKind::Read, run),
            out,
        )
    }

    pub(super) fn go_on_reading(
        &mut self,
        now: Time,
        read: &mut PendingOperation,
        out: &mut CacheOut,
    ) -> bool {
        while read.next < read.end {
            let slot = self.pages.find(read.object, read.next);
            let (found, to) = self.look(read, slot);
            if asks(read, found) {
                self.ask(now, read, found, slot, out);
                continue;
            }
            let Some(slot) = slot else {
                if self.fetch_alone(now, read, out) > 0 {
                    continue;
                }
                read.wait = Wait::Memory(now + SHORTAGE_WAIT);
                self.counters.shortages += 1;
                return false;
            };
            if self.pages.get(slot).is(flag::READING | flag::DOOMED) {
                self.wait_for(read, slot);
                return false;
            }
            debug_assert!(
                read.next < to && to <= read.end,
                "a read at page {} goes on to {to}, of {}",
                read.next,
                read.end
            );
            let to = to.min(read.again.max(read.next + 1));
            self.use_pages(read, slot, to);
            read.next = to;
        }
        true
    }

    /// Returns the state of the page at the position of a read, and the end of the pages in the
    /// same state.
    fn look(&self, read: &PendingOperation, slot: Option<u32>) -> (PagePresence, u64) {
        let Some(slot) = slot else {
            return (PagePresence::Absent, read.next + 1);
        };
        let stretch = self.pages.get(slot);
        let end = stretch.end().min(read.end);
        match stretch.marked() {
            Some(mark) if mark == read.next => (PagePresence::Marked, read.next + 1),
            _ if stretch.is(flag::READING) => (PagePresence::Reading, end),
            Some(mark) if mark > read.next => (PagePresence::Held, end.min(mark)),
            _ => (PagePresence::Held, end),
        }
    }

    fn ask(
        &mut self,
        now: Time,
        read: &mut PendingOperation,
        found: PagePresence,
        slot: Option<u32>,
        out: &mut CacheOut,
    ) {
        let Some(file) = read.file else { return };
        if let (PagePresence::Marked, Some(slot)) = (found, slot) {
            self.pages.set_mark(slot, None);
            // page_cache_async_readahead does nothing at a page under write-back.
            if self.pages.get(slot).is(flag::WRITING) {
                return;
            }
        }
        let mut plan = self.plan;
        plan.clear();
        let due = read.next >= read.again;
        read.asked = read.next + 1;
        let ask = ReadAheadQuery {
            file,
            object: read.object,
            index: read.next,
            wanted: read.end - read.next,
            found,
            due,
            size: read.size,
            pages: &self.pages,
            cuts: read.cuts,
        };
        self.read_ahead.ask(&ask, &mut plan);
        if due || plan.again != ReadAheadPlan::NEVER {
            read.again = plan.again;
        }
        for &window in plan.windows() {
            self.open_window(now, read, window, out);
        }
    }

    /// Reads the missing pages of a window, up to the end of the object, or as far as there is
    /// room.
    fn open_window(
        &mut self,
        now: Time,
        read: &PendingOperation,
        window: PageWindow,
        out: &mut CacheOut,
    ) {
        let end = (window.first + window.pages).min(read.size);
        let mut at = window.first;
        while at < end {
            if let Some(slot) = self.pages.look(read.object, at) {
                at = self.pages.get(slot).end();
                continue;
            }
            let gap = PageRun::new(
                read.object,
                at,
                self.pages.next_held(read.object, at).min(end) - at,
            );
            let fetched = self.fetch(now, read, gap, out);
            debug_assert!(fetched <= gap.pages, "{fetched} pages came of {gap:?}");
            self.mark(
                PageRun {
                    pages: fetched,
                    ..gap
                },
                window.mark,
            );
            // Without memory the rest of the window is not read (`page_cache_ra_unbounded`).
            if fetched < gap.pages {
                return;
            }
            at += fetched;
        }
    }

    fn mark(&mut self, run: PageRun, mark: Option<u64>) {
        if let Some(page) = mark.filter(|&page| run.holds(run.object, page))
            && let Some(slot) = self.pages.look(run.object, page)
        {
            self.pages.set_mark(slot, Some(page));
        }
    }

    /// Reads missing pages, as far as there is room. Returns the number of pages.
    fn fetch(
        &mut self,
        now: Time,
        read: &PendingOperation,
        run: PageRun,
        out: &mut CacheOut,
    ) -> u64 {
        // The run has pages that the read has requested, and then pages of read-ahead.
        let asked = PageRun {
            pages: read.end.clamp(run.first, run.end()) - run.first,
            ..run
        };
        let flags = flag::READING | flag::FRESH;
        let mut came = self.admit(now, asked, flags, ListPlace::Usual, out);
        self.counters.misses += came;
        // Read-ahead gets memory only after the requested pages.
        if came == asked.pages {
            let beside = PageRun::new(run.object, asked.end(), run.end() - asked.end());
            let ahead = self.admit(now, beside, flags | flag::AHEAD, ListPlace::Usual, out);
            self.counters.ahead += ahead;
            came += ahead;
        }
        if came > 0 {
            let run = PageRun { pages: came, ..run };
            let why = if asked.pages > 0 {
                IoReason::Read
            } else {
                IoReason::ReadAhead
            };
            let id = self.device.begin(run, false);
            out.reads.push(PageIo {
                id,
                run,
                why,
                ticket: Some(read.ticket),
            });
        }
        came
    }

    /// Reads the page at the position of the read. Without read-ahead, reads the whole rest in one
    /// piece.
    fn fetch_alone(&mut self, now: Time, read: &PendingOperation, out: &mut CacheOut) -> u64 {
        let end = if read.file.is_some() {
            read.next + 1
        } else {
            read.end
        };
        let to = self.pages.next_held(read.object, read.next).min(end);
        self.fetch(
            now,
            read,
            PageRun::new(read.object, read.next, to - read.next),
            out,
        )
    }

    /// Waits for the I/O of a page: a read, or the write after which the page is dropped.
    fn wait_for(&mut self, read: &mut PendingOperation, slot: u32) {
        let stretch = *self.pages.get(slot);
        if !stretch.is(flag::READING) {
            read.wait = Wait::Written(read.next);
            return;
        }
        if stretch.is(flag::AHEAD) {
            // The page was read ahead, but not early enough.
            let to = stretch.end().min(read.end);
            let slot = self.pages.cut(slot, read.next, to);
            self.pages.change(slot, 0, flag::AHEAD);
            self.pages.join(slot);
            self.counters.ahead_used += to - read.next;
            self.counters.late += to - read.next;
        }
        read.wait = Wait::Page(read.next);
    }

    /// Uses the pages from the position of the read up to `to`.
    fn use_pages(&mut self, read: &PendingOperation, slot: u32, to: u64) {
        debug_assert!(
            !self.pages.get(slot).is(flag::READING),
            "a read uses a page that is being read: {:?}",
            self.pages.get(slot)
        );
        self.counters.read += to - read.next;
        let stretch = *self.pages.get(slot);
        let fresh = stretch.is(flag::UNUSED);
        if !fresh && self.replacement.ignores_use(&stretch) {
            return;
        }
        // A read that continues in the last page of the previous read is not a new use of this
        // page.
        let again = read.next == read.first
            && !stretch.is(flag::FRESH)
            && read
                .file
                .is_some_and(|file| self.files[file].last_page == read.next);
        let from = read.next + u64::from(again);
        if from < to && !self.use_more(slot, from, to) {
            let rest = to < stretch.end();
            let slot = self.pages.cut(slot, from, to);
            self.used(slot);
            self.note_streak(stretch, rest, to);
        }
    }

    /// Remembers the effect of the use of the first pages of a stretch, if some pages are left.
    fn note_streak(&mut self, stretch: Stretch, rest: bool, to: u64) {
        self.streak = None;
        if rest && let Some(into) = self.pages.look(stretch.object, to - 1) {
            let became = *self.pages.get(into);
            self.streak = Some(LastUse {
                was: (stretch.flags, stretch.list),
                into,
                became: (became.flags, became.list),
            });
        }
    }

    /// Uses pages without a cut of their stretch. Sequential reads use stretches piece by piece. If
    /// the pages have the state of the previous piece before its use, they join the stretch of that
    /// piece.
    fn use_more(&mut self, slot: u32, from: u64, to: u64) -> bool {
        let Some(streak) = self.streak else {
            return false;
        };
        let (stretch, pages) = (*self.pages.get(slot), to - from);
        if pages >= u64::from(stretch.pages) {
            return false;
        }
        let into = *self.pages.get(streak.into);
        let alike = (stretch.flags, stretch.list) == streak.was
            && (into.flags, into.list) == streak.became
            && !(stretch.is(flag::DIRTY | flag::BUSY) || into.is(flag::DIRTY | flag::BUSY));
        let beside = stretch.object == into.object
            && into.end() == stretch.first
            && stretch.first == from
            && into.origin == NOWHERE
            && self.pages.stands_before(streak.into, slot);
        if !(alike && beside && into.list != NOWHERE) {
            return false;
        }
        self.count_used(&stretch, pages);
        self.pages.give(slot, streak.into, pages as u32);
        self.replacement.used_more(pages);
        true
    }

    /// Uses all pages of a stretch.
    pub(super) fn used(&mut self, slot: u32) {
        let stretch = *self.pages.get(slot);
        if stretch.is(flag::UNUSED) {
            self.count_used(&stretch, u64::from(stretch.pages));
            self.pages.change(slot, 0, flag::UNUSED);
        }
        self.replacement
            .used(&mut self.pages, slot, stretch.is(flag::FRESH));
    }

    fn count_used(&mut self, stretch: &Stretch, pages: u64) {
        if stretch.is(flag::AHEAD) {
            self.counters.ahead_used += pages;
        }
        if stretch.is(flag::PUSHED) {
            self.counters.pushed_used += pages;
        }
    }
}

/// Effect of the last use of the first pages of a stretch: flags and list before and after, and the
/// stretch that the pages became part of.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastUse {
    was: (u16, u8),
    into: u32,
    became: (u16, u8),
}

/// True if read-ahead must be asked: once at a page that is absent or being read, at the mark, and
/// at the page of the last answer.
fn asks(read: &PendingOperation, found: PagePresence) -> bool {
    let again = match found {
        PagePresence::Marked => return read.file.is_some(),
        PagePresence::Absent | PagePresence::Reading => true,
        PagePresence::Held => read.next >= read.again,
    };
    read.file.is_some() && again && read.next >= read.asked
}
