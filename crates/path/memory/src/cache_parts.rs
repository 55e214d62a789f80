//! The parts of a cache for write-back: the pages, the ages of the dirty objects, and the device's
//! queue. This module chooses the pages, their order and the size of the pieces. The policies
//! choose the time and the number of pages.

use crate::counters::Counters;
use crate::device::DeviceQueue;
use crate::dirty::{DirtyList, DirtyObjects};
use crate::out::{CacheOut, IoReason, PageIo, Ticket};
use crate::pages::{PageTable, ResidentPages, flag};
use crate::run::PageRun;
use fullstroke_contract::Object;
use fullstroke_units::Time;

/// Parts of a cache, borrowed for one call.
pub struct CacheParts<'a> {
    /// The present time.
    pub now: Time,
    /// Largest number of pages: the kernel's dirtyable memory.
    pub limit: u64,
    pub(crate) pages: &'a mut PageTable,
    pub(crate) dirty: &'a mut DirtyObjects,
    pub(crate) device: &'a mut DeviceQueue,
    pub(crate) counters: &'a mut Counters,
    pub(crate) out: &'a mut CacheOut,
}

/// Limits of a write-back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Largest number of pages.
    pub most: u64,
    /// True to stop at congestion of the device; false to stop at a full queue.
    pub nonblocking: bool,
    /// Reason of the write-back.
    pub why: IoReason,
}

/// Result of a write-back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteBackResult {
    /// Number of pages.
    pub pages: u64,
    /// True if the device's queue ended the write-back.
    pub stopped: bool,
}

/// Place of an object with dirty pages left after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftoverPlace {
    /// The object goes next again: `wb_kupdate`.
    First,
    /// The object counts as dirtied now, because the others must have their turn:
    /// `background_writeout` and throttled writers.
    AsNew,
}

impl CacheParts<'_> {
    /// Returns the numbers of pages held.
    pub fn held(&self) -> ResidentPages {
        self.pages.held()
    }

    /// True if the device is congested with writes.
    pub fn congested(&self) -> bool {
        self.device.congested()
    }

    /// True if the device's queue has no place for a further write.
    pub fn full(&self) -> bool {
        self.device.full()
    }

    /// Returns the oldest object of a list.
    pub(crate) fn oldest(&self, queue: DirtyList) -> Option<(Object, Time)> {
        self.dirty.oldest(queue)
    }

    /// Performs one round over the objects (2.6's `sync_sb_inodes`). Each object that became dirty
    /// at `until` or before has its turn, oldest first.
    pub fn round(&mut self, bounds: Bounds, until: Time, left: LeftoverPlace) -> WriteBackResult {
        let mut wrote = WriteBackResult::default();
        if left == LeftoverPlace::AsNew || self.dirty.is_empty(DirtyList::Io) {
            self.dirty
                .splice(DirtyList::Dirty, DirtyList::Io, Time::NEVER);
        }
        while let Some((object, dirtied)) = self.dirty.oldest(DirtyList::Io) {
            if dirtied > until || wrote.pages >= bounds.most {
                break;
            }
            let turn = self.write_object(
                object,
                Bounds {
                    most: bounds.most - wrote.pages,
                    ..bounds
                },
            );
            assert!(
                wrote.pages + turn.pages <= bounds.most,
                "{} pages are written, of {} at most",
                wrote.pages + turn.pages,
                bounds.most
            );
            wrote.pages += turn.pages;
            if !self.is_dirty(object) {
                self.dirty.leave(object);
            } else if turn.stopped && (!bounds.nonblocking || turn.pages == 0) {
                // The object stays first, because the writer continues with it after the wait for
                // the queue.
            } else if left == LeftoverPlace::First {
                self.dirty.requeue_oldest(object, DirtyList::Dirty);
            } else {
                self.dirty.requeue(object, DirtyList::Dirty, Some(self.now));
            }
            if turn.stopped {
                wrote.stopped = true;
                break;
            }
        }
        wrote
    }

    /// Extends a run over the next dirty pages outside write-back, up to `end`.
    pub(crate) fn extended(&self, run: PageRun, end: u64) -> PageRun {
        let to = self.next_piece(
            PageRun::new(run.object, run.first, end - run.first),
            run.first,
            u64::MAX,
        );
        to.unwrap_or(run)
    }

    /// True if the object has dirty pages.
    pub(crate) fn is_dirty(&self, object: Object) -> bool {
        self.pages.dirty_from(object, 0).is_some()
    }

    /// Writes dirty pages of an object, upwards from the end of the last write-back and then from
    /// the first page (`write_cache_pages` with `range_cyclic`). Skips pages under write-back.
    pub fn write_object(&mut self, object: Object, bounds: Bounds) -> WriteBackResult {
        let cursor = self.dirty.cursor(object);
        let mut wrote = self.write_run(PageRun::new(object, cursor, u64::MAX - cursor), bounds);
        if cursor > 0 && wrote.pages < bounds.most && !wrote.stopped {
            let rest = Bounds {
                most: bounds.most - wrote.pages,
                ..bounds
            };
            let again = self.write_run(PageRun::new(object, 0, cursor), rest);
            wrote = WriteBackResult {
                pages: wrote.pages + again.pages,
                stopped: again.stopped,
            };
        }
        wrote
    }

    /// Writes dirty pages of a run, upwards.
    pub fn write_run(&mut self, run: PageRun, bounds: Bounds) -> WriteBackResult {
        self.write_for(run, bounds, None)
    }

    pub(crate) fn write_for(
        &mut self,
        run: PageRun,
        bounds: Bounds,
        ticket: Option<Ticket>,
    ) -> WriteBackResult {
        let mut wrote = WriteBackResult::default();
        let mut at = run.first;
        while wrote.pages < bounds.most {
            let Some(piece) = self.next_piece(run, at, bounds.most - wrote.pages) else {
                break;
            };
            if self.stops(bounds.nonblocking) {
                wrote.stopped = true;
                break;
            }
            debug_assert!(
                piece.pages > 0 && piece.first >= at,
                "{piece:?} follows page {at}"
            );
            self.submit(piece, bounds.why, ticket);
            wrote.pages += piece.pages;
            at = piece.end();
        }
        wrote
    }

    fn stops(&self, nonblocking: bool) -> bool {
        self.device.full() || (nonblocking && self.device.congested())
    }

    /// Returns the next consecutive dirty pages of the run from `at` on, at most one request. Pages
    /// under write-back are skipped.
    fn next_piece(&self, run: PageRun, at: u64, most: u64) -> Option<PageRun> {
        let mut at = at;
        let first = loop {
            let stretch = self.pages.get(self.pages.dirty_from(run.object, at)?);
            if stretch.first >= run.end() {
                return None;
            }
            if !stretch.is(flag::WRITING) {
                break stretch.first.max(at);
            }
            at = stretch.end();
        };
        let most = most.min(self.device.request_pages());
        let end = run.end().min(first.saturating_add(most));
        let mut to = first;
        while to < end
            && let Some(slot) = self.pages.look(run.object, to)
        {
            let stretch = self.pages.get(slot);
            if !stretch.is(flag::DIRTY) || stretch.is(flag::WRITING) {
                break;
            }
            to = stretch.end().min(end);
        }
        Some(PageRun::new(run.object, first, to - first))
    }

    /// Issues the write of dirty pages.
    pub(crate) fn submit(&mut self, piece: PageRun, why: IoReason, ticket: Option<Ticket>) {
        let mut at = piece.first;
        while at < piece.end()
            && let Some(slot) = self.pages.look(piece.object, at)
        {
            let to = self.pages.get(slot).end().min(piece.end());
            let slot = self.pages.cut(slot, at, to);
            self.pages.change(slot, flag::WRITING, flag::DIRTY);
            self.pages.join(slot);
            at = to;
        }
        assert!(
            at == piece.end(),
            "the pages of {piece:?} behind {at} are not held, and would be written"
        );
        self.dirty.set_cursor(piece.object, piece.end());
        *self.count(why) += piece.pages;
        let id = self.device.begin(piece, true);
        self.out.writes.push(PageIo {
            id,
            run: piece,
            why,
            ticket,
        });
    }

    fn count(&mut self, why: IoReason) -> &mut u64 {
        match why {
            IoReason::Periodic => &mut self.counters.back_periodic,
            IoReason::Throttled => &mut self.counters.back_throttled,
            IoReason::Sync => &mut self.counters.back_sync,
            IoReason::Reclaim => &mut self.counters.back_reclaim,
            IoReason::Pull => &mut self.counters.back_pull,
            IoReason::Background
            | IoReason::Read
            | IoReason::ReadAhead
            | IoReason::Fill
            | IoReason::Push => &mut self.counters.back_background,
        }
    }

    /// Removes an object without dirty pages from the dirty lists.
    pub(crate) fn settle(&mut self, object: Object) {
        if !self.is_dirty(object) {
            self.dirty.leave(object);
        }
    }
}
