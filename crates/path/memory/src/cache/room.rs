//! Room for pages: eviction, and the case without evictable pages.

use super::PageCache;
use crate::out::{CacheOut, IoReason};
use crate::pages::{ASIDE, Stretch, flag};
use crate::replacement::ListPlace;
use crate::run::PageRun;
use fullstroke_units::{Duration, Time};

/// `SWAP_CLUSTER_MAX`: smallest number of pages set aside before the operation waits.
const CLUSTER: u64 = 32;
/// Longest wait for memory: `congestion_wait(WRITE, HZ/10)`, `reclaim_throttle`.
pub(super) const SHORTAGE_WAIT: Duration = Duration::from_millis(100);

impl PageCache {
    /// Makes room for `wanted` pages. Returns the number of pages with room.
    pub(super) fn make_room(&mut self, now: Time, wanted: u64, out: &mut CacheOut) -> u64 {
        // The time comes first, because `lru2` chooses its victims from statistics of this time.
        self.replacement.at(now, &self.pages);
        let mut aside = 0;
        loop {
            assert!(
                self.pages.held().pages <= self.limit,
                "{} pages are held, of {} that memory has",
                self.pages.held().pages,
                self.limit
            );
            let free = self.limit - self.pages.held().pages;
            if free >= wanted {
                return wanted;
            }
            if self.evict_aside(wanted - free) {
                continue;
            }
            let Some(slot) = self.replacement.victim(&mut self.pages, wanted - free) else {
                return free;
            };
            let victim = *self.pages.get(slot);
            debug_assert!(
                victim.list == crate::pages::NOWHERE && u64::from(victim.pages) <= wanted,
                "the policy lets {victim:?} go, for {wanted} pages"
            );
            if victim.is(flag::DIRTY | flag::BUSY) {
                aside += u64::from(victim.pages);
                self.set_aside(now, slot, out);
                if aside >= CLUSTER.max(wanted) {
                    return self.limit - self.pages.held().pages;
                }
            } else {
                self.evict(slot);
                self.counters.evicted_clean += u64::from(victim.pages);
            }
        }
    }

    /// Evicts pages from the list of pages set aside. `turn_aside` has moved the evictable ones to
    /// the old end of the list. Returns false if there are none.
    fn evict_aside(&mut self, most: u64) -> bool {
        let Some(slot) = self.pages.oldest(ASIDE) else {
            return false;
        };
        let stretch = *self.pages.get(slot);
        if stretch.is(flag::DIRTY | flag::BUSY) {
            return false;
        }
        let slot = self.pages.cut(
            slot,
            stretch.first,
            stretch.first + most.min(u64::from(stretch.pages)),
        );
        self.pages.unlink(slot);
        self.counters.evicted_dirty += u64::from(self.pages.get(slot).pages);
        self.evict(slot);
        true
    }

    /// Evicts a victim. The victim must be in no list.
    fn evict(&mut self, slot: u32) {
        debug_assert!(
            !self.pages.get(slot).is(flag::DIRTY | flag::BUSY),
            "a page goes that is dirty or under I/O: {:?}",
            self.pages.get(slot)
        );
        let gone = self.pages.remove(slot);
        self.count_wasted(&gone);
        self.replacement.evicted(&self.pages, &gone);
    }

    pub(super) fn count_wasted(&mut self, gone: &Stretch) {
        if gone.is(flag::AHEAD) {
            self.counters.ahead_wasted += u64::from(gone.pages);
        }
        if gone.is(flag::PUSHED) {
            self.counters.pushed_wasted += u64::from(gone.pages);
        }
    }

    /// Sets aside a dirty victim, or one under I/O. The page leaves as soon as possible
    /// (`PG_reclaim`, `rotate_reclaimable_page`), and may be written for this purpose.
    fn set_aside(&mut self, now: Time, slot: u32, out: &mut CacheOut) {
        self.pages.push_newest(ASIDE, slot);
        let victim = *self.pages.get(slot);
        if !victim.is(flag::DIRTY) {
            return;
        }
        let (mut parts, write_back) = self.parts(now, out);
        if write_back.note_shortage(&mut parts) && !victim.is(flag::WRITING) {
            parts.write_run(
                victim.run(),
                crate::cache_parts::Bounds {
                    most: u64::MAX,
                    nonblocking: true,
                    why: IoReason::Reclaim,
                },
            );
            parts.settle(victim.object);
        }
    }

    /// Moves clean pages among those set aside to the old end of their list, to be evicted first.
    /// Then writes dirty ones left over from a full queue. Called at the end of an I/O.
    pub(super) fn turn_aside(&mut self, now: Time, run: PageRun, out: &mut CacheOut) {
        let mut at = run.first;
        while at < run.end()
            && let Some(slot) = self.pages.from(run.object, at)
        {
            let stretch = *self.pages.get(slot);
            at = stretch.end();
            if stretch.first < run.end()
                && stretch.list == ASIDE
                && !stretch.is(flag::DIRTY | flag::BUSY)
            {
                self.pages.unlink(slot);
                self.pages.push_oldest(ASIDE, slot);
            }
        }
        self.write_aside(now, out);
    }

    /// Writes the dirty pages set aside, as far as the device's queue has places. Does so only
    /// while an operation waits for memory.
    pub(super) fn write_aside(&mut self, now: Time, out: &mut CacheOut) {
        if self.wanted() == 0 {
            return;
        }
        let mut next = self.pages.oldest(ASIDE);
        while let Some(slot) = next {
            next = self.pages.newer(slot);
            let stretch = *self.pages.get(slot);
            if !stretch.is(flag::DIRTY) || stretch.is(flag::WRITING) {
                continue;
            }
            let (mut parts, write_back) = self.parts(now, out);
            if !write_back.note_shortage(&mut parts) || parts.full() {
                return;
            }
            parts.write_run(
                stretch.run(),
                crate::cache_parts::Bounds {
                    most: u64::MAX,
                    nonblocking: true,
                    why: IoReason::Reclaim,
                },
            );
            parts.settle(stretch.object);
        }
    }

    /// Brings missing pages into memory, with these flags, as far as there is room. Returns the
    /// number of pages.
    pub(super) fn admit(
        &mut self,
        now: Time,
        run: PageRun,
        flags: u16,
        place: ListPlace,
        out: &mut CacheOut,
    ) -> u64 {
        let mut at = run.first;
        while at < run.end() {
            let rest = PageRun::new(run.object, at, (run.end() - at).min(self.limit));
            let free = self.limit - self.pages.held().pages;
            let step = self
                .replacement
                .wanted(&self.pages, rest, free)
                .clamp(1, rest.pages);
            let step = self.make_room(now, step, out).min(step);
            if step == 0 {
                break;
            }
            let slot = self.pages.add(PageRun::new(run.object, at, step), flags);
            self.replacement.admitted(&mut self.pages, slot, place);
            at += step;
        }
        at - run.first
    }
}
