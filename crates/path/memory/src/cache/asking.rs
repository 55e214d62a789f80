//! Requests from outside programs: the end of objects, unwanted pages, and PUSH and PULL of
//! storage.

use super::PageCache;
use crate::cache_parts::Bounds;
use crate::dirty::DirtyList;
use crate::out::{CacheOut, IoReason, PageIo};
use crate::pages::flag;
use crate::replacement::ListPlace;
use crate::run::PageRun;
use fullstroke_contract::Object;
use fullstroke_units::Time;

/// Source of the data of a PUSH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataSource {
    /// The data come with the PUSH.
    Here,
    /// The data must be read.
    ToRead,
}

impl PageCache {
    /// Discards the pages of an object from `from` on, dirty or not, because the object is
    /// truncated or deleted. Pages under I/O leave at the end of their I/O.
    pub fn discard(&mut self, now: Time, object: Object, from: u64, out: &mut CacheOut) {
        self.discard_run(now, PageRun::new(object, from, u64::MAX - from), out);
        if from == 0 {
            self.dirty.forget(object);
        }
    }

    /// Discards the pages of a run: pages of metadata that are metadata no more (`bforget`).
    pub fn discard_run(&mut self, now: Time, run: PageRun, out: &mut CacheOut) {
        self.each_held(run, |cache, slot| {
            if cache.pages.get(slot).is(flag::BUSY) {
                // The device still uses the memory of a page under I/O, so the page stays until the
                // end of the I/O.
                cache.pages.change(slot, flag::DOOMED, flag::DIRTY);
            } else {
                cache.drop_stretch(slot);
            }
        });
        self.replacement.forgotten(run);
        if self.pages.dirty_from(run.object, 0).is_none() {
            self.dirty.leave(run.object);
        }
        self.settle(now, out);
    }

    /// Drops the clean pages of a run outside I/O (`invalidate_mapping_pages`). Returns the number
    /// of pages.
    pub fn invalidate(&mut self, run: PageRun) -> u64 {
        let before = self.pages.held().pages;
        self.each_held(run, |cache, slot| {
            if !cache.pages.get(slot).is(flag::DIRTY | flag::BUSY) {
                cache.drop_stretch(slot);
            }
        });
        before - self.pages.held().pages
    }

    /// Handles a PUSH: storage recommends pages. Missing pages come to `place`, as far as there is
    /// room. Returns the number of new pages.
    pub fn push(
        &mut self,
        now: Time,
        run: PageRun,
        place: ListPlace,
        arrival: DataSource,
        out: &mut CacheOut,
    ) -> u64 {
        let flags = flag::FRESH | flag::PUSHED;
        let flags = if arrival == DataSource::ToRead {
            flags | flag::READING
        } else {
            flags
        };
        let (mut at, mut pushed) = (run.first, 0);
        while at < run.end() {
            if let Some(slot) = self.pages.look(run.object, at) {
                at = self.pages.get(slot).end();
                continue;
            }
            let to = self.pages.next_held(run.object, at).min(run.end());
            let came = self.admit(
                now,
                PageRun::new(run.object, at, to - at),
                flags,
                place,
                out,
            );
            // Pages that nobody requested are worth no wait for memory.
            if came == 0 {
                break;
            }
            let gap = PageRun::new(run.object, at, came);
            if arrival == DataSource::ToRead {
                let id = self.device.begin(gap, false);
                out.reads.push(PageIo {
                    id,
                    run: gap,
                    why: IoReason::Push,
                    ticket: None,
                });
            }
            pushed += came;
            at += came;
        }
        self.counters.pushed += pushed;
        self.settle(now, out);
        pushed
    }

    /// Returns the dirty runs, object by object, in ascending order.
    pub fn dirty_runs(&self) -> Vec<PageRun> {
        let (mut runs, mut from) = (Vec::new(), Some(Object(0)));
        while let Some(object) = from.and_then(|object| self.pages.dirty_object_from(object)) {
            let mut page = 0;
            while let Some(slot) = self.pages.dirty_from(object, page) {
                let run = self.pages.get(slot).run();
                page = run.end();
                runs.push(run);
            }
            from = object.0.checked_add(1).map(Object);
        }
        runs
    }

    /// Handles a PULL of addresses: writes the dirty pages of a run. Returns the number of pages.
    pub fn pull(&mut self, now: Time, run: PageRun, out: &mut CacheOut) -> u64 {
        let (mut parts, _) = self.parts(now, out);
        let wrote = parts.write_run(
            run,
            Bounds {
                most: u64::MAX,
                nonblocking: false,
                why: IoReason::Pull,
            },
        );
        parts.settle(run.object);
        self.settle(now, out);
        wrote.pages
    }

    /// Notes the begin or the end of cleaning in a drive below. While a drive cleans, periodic
    /// write-back may wait longer. Other write-back does not.
    pub fn note_cleaning(&mut self, begun: bool) {
        self.cleaning = if begun {
            self.cleaning + 1
        } else {
            // The signal of a drive that began before this cache was there has no counterpart.
            self.cleaning.saturating_sub(1)
        };
        self.write_back.note_cleaning(self.cleaning > 0);
    }

    /// Handles a PULL of any data: writes `pages` dirty pages, beginning with the object that has
    /// been dirty longest. Returns the number written.
    pub fn pull_any(&mut self, now: Time, pages: u64, out: &mut CacheOut) -> u64 {
        let mut left = pages;
        let (mut parts, _) = self.parts(now, out);
        // Objects move from `Dirty` to `Io` and then to `More`, so the oldest are in the first two
        // lists.
        for queue in [DirtyList::Io, DirtyList::More, DirtyList::Dirty] {
            while left > 0
                && let Some((object, _)) = parts.oldest(queue)
            {
                let bounds = Bounds {
                    most: left,
                    nonblocking: false,
                    why: IoReason::Pull,
                };
                let wrote = parts.write_object(object, bounds).pages;
                parts.settle(object);
                left -= wrote;
                // The rest of the object is being written already, or finds no place in the queue.
                if parts.is_dirty(object) {
                    break;
                }
            }
        }
        self.settle(now, out);
        self.counters.pull_asked += pages;
        self.counters.pull_refused += left;
        pages - left
    }
}
