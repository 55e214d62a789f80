//! The pages in memory, as runs with one state each.
//!
//! A **stretch** is a run of pages in the same state: same object, same flags, same list, and
//! neighbours in this list in the order of their indices. So a list of stretches is equivalent to a
//! list of pages, and a policy for lists of pages gives the same results. But a file read from end
//! to end is a handful of stretches, for any size. A change to some pages of a stretch first cuts
//! the stretch ([`PageTable::cut`]), and afterwards joins the stretches of equal state
//! ([`PageTable::join`]).

mod hints;
pub(crate) mod index;

use crate::run::PageRun;
use fullstroke_contract::Object;
use hints::Hints;
pub use hints::NONE;
use index::{Index, Key, key, object_of};
use std::cell::Cell;

/// Largest number of lists of a policy, [`ASIDE`] included.
pub const LISTS: usize = 6;
/// The list of victims not yet evictable.
pub const ASIDE: u8 = LISTS as u8 - 1;
/// The stretch is in no list.
pub const NOWHERE: u8 = u8::MAX;

/// The flags. A flag holds for each page of a stretch.
pub mod flag {
    /// The page holds data newer than the device.
    pub const DIRTY: u16 = 1 << 0;
    /// The page is under write-back.
    pub const WRITING: u16 = 1 << 1;
    /// The page is being read, and has no data yet.
    pub const READING: u16 = 1 << 2;
    /// The page was read ahead and has not been used yet.
    pub const AHEAD: u16 = 1 << 3;
    /// The object no longer wants the page. The page leaves at the end of its I/O.
    pub const DOOMED: u16 = 1 << 4;
    /// The page was pushed and has not been used yet.
    pub const PUSHED: u16 = 1 << 5;
    /// The page has not been used since it came.
    pub const FRESH: u16 = 1 << 8;
    /// All flags of unused pages.
    pub const UNUSED: u16 = AHEAD | PUSHED | FRESH;
    /// Note of the replacement policy, two bits.
    pub const NOTE: u16 = 3 << NOTE_SHIFT;
    /// Position of the lowest bit of the note.
    pub const NOTE_SHIFT: u32 = 6;
    /// The page is under I/O.
    pub const BUSY: u16 = WRITING | READING;
}

/// A stretch of pages.
// The alignment keeps a stretch within one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Stretch {
    /// Index of the first page.
    pub first: u64,
    /// Object of the pages.
    pub object: Object,
    /// Number of pages.
    pub pages: u32,
    /// See [`flag`].
    pub flags: u16,
    /// List of the stretch, or [`NOWHERE`].
    pub list: u8,
    /// List of the stretch before it was set aside.
    pub origin: u8,
    /// Position of the marked page (Linux's `PG_readahead`), counted from the first page, or
    /// [`NONE`].
    pub mark: u32,
    older: u32,
    newer: u32,
}

impl Stretch {
    /// Returns the index after the last page.
    #[inline]
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.pages)
    }

    /// Returns the pages.
    #[inline]
    pub fn run(&self) -> PageRun {
        PageRun::new(self.object, self.first, u64::from(self.pages))
    }

    /// True if one of the flags is set.
    #[inline]
    pub fn is(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// Returns the note of the replacement policy.
    #[inline]
    pub fn note(&self) -> u16 {
        (self.flags & flag::NOTE) >> flag::NOTE_SHIFT
    }

    /// Returns the index of the marked page.
    pub fn marked(&self) -> Option<u64> {
        (self.mark != NONE).then(|| self.first + u64::from(self.mark))
    }

    fn key(&self) -> Key {
        key(self.object, self.first)
    }
}

/// A list, from the oldest page to the newest.
#[derive(Clone, Copy, Debug)]
struct PageList {
    oldest: u32,
    newest: u32,
    pages: u64,
}

/// Numbers of pages in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResidentPages {
    /// All pages.
    pub pages: u64,
    /// Dirty pages. A page under write-back counts only if dirtied again.
    pub dirty: u64,
    /// Pages under write-back.
    pub writing: u64,
    /// Pages being read.
    pub reading: u64,
}

/// All stretches, by address and in lists.
#[derive(Clone, Debug)]
pub struct PageTable {
    stretches: Vec<Stretch>,
    free: Vec<u32>,
    by_address: Index,
    hints: Hints,
    /// The dirty stretches, and the stretches under write-back (the kernel's tags of the page
    /// tree).
    dirty: Index,
    writing: Index,
    lists: [PageList; LISTS],
    held: ResidentPages,
    /// Result of the last look-up, because the next look-up often has the same result.
    last: u32,
    /// Gap of the last look-up without a result.
    gap: Cell<Gap>,
}

/// A gap: missing pages of an object, and the stretch after the gap, or [`NONE`].
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    object: Object,
    from: u64,
    to: u64,
    next: u32,
}

impl Gap {
    #[inline]
    fn holds(&self, object: Object, page: u64) -> bool {
        self.object == object && (self.from..self.to).contains(&page)
    }

    /// True if a stretch lies in the gap or beside it. The stretch then changes the gap.
    fn touches(&self, stretch: &Stretch) -> bool {
        self.object == stretch.object && stretch.first <= self.to && stretch.end() >= self.from
    }
}

impl Default for PageTable {
    fn default() -> PageTable {
        PageTable {
            stretches: Vec::new(),
            free: Vec::new(),
            by_address: Index::default(),
            hints: Hints::default(),
            dirty: Index::default(),
            writing: Index::default(),
            lists: [PageList {
                oldest: NONE,
                newest: NONE,
                pages: 0,
            }; LISTS],
            held: ResidentPages::default(),
            last: NONE,
            gap: Cell::default(),
        }
    }
}

/// Getters.
impl PageTable {
    /// Returns a stretch.
    #[inline]
    pub fn get(&self, slot: u32) -> &Stretch {
        &self.stretches[slot as usize]
    }

    /// Returns the numbers of pages in memory.
    #[inline]
    pub fn held(&self) -> ResidentPages {
        self.held
    }

    /// Returns the number of stretches. Memory and time of the simulation depend on this number.
    pub fn stretches(&self) -> usize {
        self.stretches.len() - self.free.len()
    }

    /// Returns the stretch of a page.
    #[inline]
    pub fn find(&mut self, object: Object, page: u64) -> Option<u32> {
        // Sequential I/O asks for the same stretch page after page.
        if self.is_at(self.last, object, page) {
            return Some(self.last);
        }
        let hint = self.hinted(object, page);
        let found = hint.or_else(|| self.seek(object, page))?;
        if hint.is_none() {
            self.hints.set(object, page, found);
        }
        self.last = found;
        Some(found)
    }

    /// As [`PageTable::find`], without an update of the hints.
    #[inline]
    pub fn look(&self, object: Object, page: u64) -> Option<u32> {
        self.hinted(object, page)
            .or_else(|| self.seek(object, page))
    }

    #[inline]
    fn hinted(&self, object: Object, page: u64) -> Option<u32> {
        self.hints
            .get(object, page)
            .into_iter()
            .find(|&hint| self.is_at(hint, object, page))
    }

    /// Searches the tree, except for a page in the last gap: a new page and its neighbours are
    /// looked up several times.
    fn seek(&self, object: Object, page: u64) -> Option<u32> {
        if self.gap.get().holds(object, page) {
            return None;
        }
        let (before, after) = self.by_address.around(key(object, page));
        let before = before
            .map(|slot| (slot, self.get(slot)))
            .filter(|(_, stretch)| stretch.object == object);
        if let Some((slot, stretch)) = before
            && page < stretch.end()
        {
            return Some(slot);
        }
        let after = after
            .map(|(_, slot)| (slot, self.get(slot)))
            .filter(|(_, stretch)| stretch.object == object);
        self.gap.set(Gap {
            object,
            from: before.map_or(0, |(_, stretch)| stretch.end()),
            to: after.map_or(u64::MAX, |(_, stretch)| stretch.first),
            next: after.map_or(NONE, |(slot, _)| slot),
        });
        None
    }

    /// True if the stretch in `slot` contains the page. The slot may be free.
    #[inline]
    fn is_at(&self, slot: u32, object: Object, page: u64) -> bool {
        let stretch = self.stretches.get(slot as usize);
        // A removed stretch keeps its old pages in its slot; the list tells that it is gone.
        stretch.is_some_and(|stretch| stretch.list != NOWHERE && stretch.run().holds(object, page))
    }

    /// Returns the first stretch of an object with its end after `page`.
    pub fn from(&self, object: Object, page: u64) -> Option<u32> {
        if let Some(slot) = self.look(object, page) {
            return Some(slot);
        }
        let gap = self.gap.get();
        match gap.holds(object, page) {
            true => Some(gap.next).filter(|&slot| slot != NONE),
            // The page of the largest index is in no gap.
            false => self.next_of(&self.by_address, object, page),
        }
    }

    /// Returns the first dirty stretch of an object with its end after `page`.
    pub fn dirty_from(&self, object: Object, page: u64) -> Option<u32> {
        self.tagged_from(&self.dirty, object, page)
    }

    /// Returns the first stretch of an object under write-back with its end after `page`.
    pub fn writing_from(&self, object: Object, page: u64) -> Option<u32> {
        self.tagged_from(&self.writing, object, page)
    }

    /// Returns the first object from `object` on with dirty pages.
    pub fn dirty_object_from(&self, object: Object) -> Option<Object> {
        self.dirty
            .at_or_after(key(object, 0))
            .map(|(key, _)| object_of(key))
    }

    /// Returns the first object from `object` on with pages under write-back.
    pub fn writing_object_from(&self, object: Object) -> Option<Object> {
        self.writing
            .at_or_after(key(object, 0))
            .map(|(key, _)| object_of(key))
    }

    fn tagged_from(&self, index: &Index, object: Object, page: u64) -> Option<u32> {
        let before = index.at_or_before(key(object, page)).map(|(_, slot)| slot);
        before
            .filter(|&slot| self.get(slot).run().holds(object, page))
            .or_else(|| self.next_of(index, object, page))
    }

    fn next_of(&self, index: &Index, object: Object, page: u64) -> Option<u32> {
        let (_, slot) = index.at_or_after(key(object, page))?;
        (self.get(slot).object == object).then_some(slot)
    }

    /// Returns the number of missing pages of a run.
    pub fn absent(&self, run: PageRun) -> u64 {
        let (mut at, mut absent) = (run.first, 0);
        while at < run.end() {
            match self.from(run.object, at).map(|slot| self.get(slot)) {
                Some(next) if next.first < run.end() => {
                    absent += next.first.saturating_sub(at);
                    at = next.end();
                }
                _ => return absent + (run.end() - at),
            }
        }
        absent
    }

    /// Returns the first missing page from `page` on, among `most` pages; `page + most` if all are
    /// held (Linux's `page_cache_next_miss`).
    pub fn next_hole(&self, object: Object, page: u64, most: u64) -> u64 {
        let mut at = page;
        while at < page + most {
            match self.look(object, at) {
                Some(slot) => at = self.get(slot).end(),
                None => return at,
            }
        }
        page + most
    }

    /// Returns the first held page from `page` on; the largest index if there is none.
    pub fn next_held(&self, object: Object, page: u64) -> u64 {
        self.from(object, page)
            .map_or(u64::MAX, |slot| self.get(slot).first.max(page))
    }

    /// Returns the number of consecutive held pages just before `page`, at most `most` (the use of
    /// `page_cache_prev_miss`).
    pub fn held_before(&self, object: Object, page: u64, most: u64) -> u64 {
        let mut at = page;
        while at > 0 && page - at < most {
            match self.look(object, at - 1) {
                Some(slot) => at = self.get(slot).first,
                None => break,
            }
        }
        (page - at).min(most)
    }

    /// Returns the number of pages in a list.
    #[inline]
    pub fn pages_in(&self, list: u8) -> u64 {
        self.lists[list as usize].pages
    }

    /// Returns the stretch at the oldest end of a list.
    #[inline]
    pub fn oldest(&self, list: u8) -> Option<u32> {
        Some(self.lists[list as usize].oldest).filter(|&slot| slot != NONE)
    }

    /// Returns the stretch at the newest end of a list.
    pub fn newest(&self, list: u8) -> Option<u32> {
        Some(self.lists[list as usize].newest).filter(|&slot| slot != NONE)
    }

    /// Returns the next stretch towards the newest end.
    pub fn newer(&self, slot: u32) -> Option<u32> {
        Some(self.get(slot).newer).filter(|&slot| slot != NONE)
    }
}

/// Changes.
impl PageTable {
    /// Adds missing pages, in no list.
    pub fn add(&mut self, run: PageRun, flags: u16) -> u32 {
        debug_assert_eq!(self.absent(run), run.pages, "a page is held twice");
        let stretch = Stretch {
            first: run.first,
            object: run.object,
            pages: u32::try_from(run.pages)
                .expect("runs are added in pieces of less than 2^32 pages"),
            flags: 0,
            list: NOWHERE,
            origin: NOWHERE,
            mark: NONE,
            older: NONE,
            newer: NONE,
        };
        // Before the stretch is added: the gap of the last look-up would still say that its pages
        // are missing.
        self.forget_gap(&stretch);
        let slot = self.keep(stretch);
        self.by_address.insert(stretch.key(), slot);
        self.hints.set(run.object, run.first, slot);
        self.held.pages += run.pages;
        // The flags come last and through `change`, so that the counters and the index of dirty
        // stretches follow.
        self.change(slot, flags, 0);
        slot
    }

    /// Removes a stretch. The stretch must be in no list.
    pub fn remove(&mut self, slot: u32) -> Stretch {
        let stretch = *self.get(slot);
        debug_assert_eq!(stretch.list, NOWHERE, "still in a list");
        // All flags go first, for the counters' sake.
        self.change(slot, 0, !0);
        self.forget_gap(&stretch);
        self.by_address.remove(stretch.key());
        assert!(
            u64::from(stretch.pages) <= self.held.pages,
            "{} pages go, of {} that are held",
            stretch.pages,
            self.held.pages
        );
        self.held.pages -= u64::from(stretch.pages);
        self.free.push(slot);
        stretch
    }

    fn forget_gap(&mut self, changed: &Stretch) {
        if self.gap.get_mut().touches(changed) {
            self.gap = Cell::default();
        }
    }

    fn keep(&mut self, stretch: Stretch) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.stretches[slot as usize] = stretch;
                slot
            }
            None => {
                self.stretches.push(stretch);
                self.hints.fit(self.stretches.len());
                self.stretches.len() as u32 - 1
            }
        }
    }

    /// Sets and clears flags of all pages of a stretch.
    pub fn change(&mut self, slot: u32, set: u16, clear: u16) {
        let stretch = &mut self.stretches[slot as usize];
        let (before, after) = (stretch.flags, (stretch.flags & !clear) | set);
        stretch.flags = after;
        // Notes of policies change often, and no counter depends on them.
        if (before ^ after) & (flag::DIRTY | flag::BUSY) != 0 {
            self.account(slot, before, after);
        }
    }

    fn account(&mut self, slot: u32, before: u16, after: u16) {
        let stretch = self.stretches[slot as usize];
        let pages = u64::from(stretch.pages);
        let count = |count: &mut u64, flag: u16| match (before & flag != 0, after & flag != 0) {
            (false, true) => *count += pages,
            (true, false) => *count -= pages,
            _ => {}
        };
        count(&mut self.held.dirty, flag::DIRTY);
        count(&mut self.held.writing, flag::WRITING);
        count(&mut self.held.reading, flag::READING);
        debug_assert!(
            self.held.dirty <= self.held.pages
                && self.held.writing <= self.held.pages
                && self.held.reading <= self.held.pages,
            "more pages are dirty or under I/O than are held: {:?}",
            self.held
        );
        for (index, flag) in [
            (&mut self.dirty, flag::DIRTY),
            (&mut self.writing, flag::WRITING),
        ] {
            match (before & flag != 0, after & flag != 0) {
                (false, true) => index.insert(stretch.key(), slot),
                (true, false) => index.remove(stretch.key()),
                _ => {}
            }
        }
    }

    /// Sets the policy's note of a stretch.
    pub fn set_note(&mut self, slot: u32, note: u16) {
        self.change(slot, note << flag::NOTE_SHIFT, flag::NOTE);
    }

    /// Marks a page, or removes the mark. A stretch has at most one mark: the latest.
    pub fn set_mark(&mut self, slot: u32, page: Option<u64>) {
        debug_assert!(
            page.is_none_or(|page| {
                let stretch = self.get(slot);
                (stretch.first..stretch.end()).contains(&page)
            }),
            "page {page:?} is marked in {:?}",
            self.get(slot)
        );
        let stretch = &mut self.stretches[slot as usize];
        stretch.mark = page.map_or(NONE, |page| (page - stretch.first) as u32);
    }

    /// Sets the list of origin of a stretch.
    pub fn set_origin(&mut self, slot: u32, origin: u8) {
        self.stretches[slot as usize].origin = origin;
    }

    /// Cuts the pages `from..to` out of the stretch in `slot`, as a stretch of their own. Returns
    /// the slot of the new stretch. The pages may reach to the ends of the stretch.
    pub fn cut(&mut self, slot: u32, from: u64, to: u64) -> u32 {
        debug_assert!(
            self.get(slot).first <= from && from < to && to <= self.get(slot).end(),
            "pages {from} to {to} are cut out of {:?}",
            self.get(slot)
        );
        // The front part keeps the slot, and with it the hints that point there.
        let middle = if from > self.get(slot).first {
            self.split(slot, from)
        } else {
            slot
        };
        if to < self.get(middle).end() {
            self.split(middle, to);
        }
        middle
    }

    /// Cuts a stretch in two. Returns the slot of the second, which begins at `at` and is the newer
    /// neighbour of the first.
    fn split(&mut self, slot: u32, at: u64) -> u32 {
        let whole = *self.get(slot);
        debug_assert!(whole.first < at && at < whole.end());
        let front = (at - whole.first) as u32;
        let marked_behind = whole.mark != NONE && whole.mark >= front;
        let behind = self.keep(Stretch {
            first: at,
            pages: whole.pages - front,
            mark: if marked_behind {
                whole.mark - front
            } else {
                NONE
            },
            older: slot,
            ..whole
        });
        let before = &mut self.stretches[slot as usize];
        before.pages = front;
        before.mark = if marked_behind { NONE } else { whole.mark };
        // The copy of `whole` names neighbours of a list that it is not in.
        if whole.list == NOWHERE {
            self.stretches[behind as usize].older = NONE;
        } else {
            before.newer = behind;
            self.hang_newer(whole.list, whole.newer, behind);
        }
        self.by_address.insert(key(whole.object, at), behind);
        for (index, flag) in [
            (&mut self.dirty, flag::DIRTY),
            (&mut self.writing, flag::WRITING),
        ] {
            if whole.flags & flag != 0 {
                index.insert(key(whole.object, at), behind);
            }
        }
        behind
    }

    /// Makes `slot` the older neighbour of `newer`, or the newest of the list.
    fn hang_newer(&mut self, list: u8, newer: u32, slot: u32) {
        match newer {
            NONE => self.lists[list as usize].newest = slot,
            _ => self.stretches[newer as usize].older = slot,
        }
    }

    fn hang_older(&mut self, list: u8, older: u32, slot: u32) {
        match older {
            NONE => self.lists[list as usize].oldest = slot,
            _ => self.stretches[older as usize].newer = slot,
        }
    }

    /// Joins a stretch with its neighbours in the list, if consecutive and in the same state.
    /// Returns the slot of the joined stretch.
    pub fn join(&mut self, slot: u32) -> u32 {
        // The newer neighbour first: the older one takes this slot in, and its neighbours would
        // have to be read again.
        let newer = self.get(slot).newer;
        if newer != NONE {
            self.join_pair(slot, newer);
        }
        let older = self.get(slot).older;
        if older != NONE && self.join_pair(older, slot) {
            older
        } else {
            slot
        }
    }

    fn join_pair(&mut self, older: u32, newer: u32) -> bool {
        let (front, back) = (*self.get(older), *self.get(newer));
        let alike = front.object == back.object
            && front.end() == back.first
            && front.flags == back.flags
            && front.origin == back.origin;
        let fits = front.pages.checked_add(back.pages).is_some();
        // A stretch has room for one mark, and the kernel's mark of each window must survive.
        if !alike || !fits || (front.mark != NONE && back.mark != NONE) {
            return false;
        }
        let joined = &mut self.stretches[older as usize];
        joined.pages += back.pages;
        joined.newer = back.newer;
        if back.mark != NONE {
            joined.mark = front.pages + back.mark;
        }
        self.hang_newer(front.list, back.newer, older);
        self.by_address.remove(back.key());
        if back.is(flag::DIRTY) {
            self.dirty.remove(back.key());
        }
        if back.is(flag::WRITING) {
            self.writing.remove(back.key());
        }
        debug_assert_eq!(
            front.list, back.list,
            "neighbours in a list are in one list"
        );
        // `is_at` then no longer takes the freed slot for a held stretch.
        self.stretches[newer as usize].list = NOWHERE;
        self.free.push(newer);
        true
    }

    /// Moves the first `pages` pages of a stretch to the end of another, directly before the first.
    /// The effect equals three steps: cut the pages off, give the pages the state of the other, and
    /// put them behind the other in its list. Some pages must be left. Neither stretch may be dirty
    /// or under I/O.
    pub fn give(&mut self, from: u32, to: u32, pages: u32) {
        let (giver, taker) = (*self.get(from), *self.get(to));
        debug_assert!(
            giver.object == taker.object && taker.end() == giver.first && pages < giver.pages
        );
        debug_assert!(!giver.is(flag::DIRTY | flag::BUSY) && !taker.is(flag::DIRTY | flag::BUSY));
        debug_assert!(
            giver.mark == NONE || giver.mark >= pages,
            "the marked page stays"
        );
        let giver = &mut self.stretches[from as usize];
        let key = giver.key();
        giver.first += u64::from(pages);
        giver.pages -= pages;
        if giver.mark != NONE {
            giver.mark -= pages;
        }
        self.by_address.advance(key, giver.key());
        let lists = (giver.list, taker.list);
        self.stretches[to as usize].pages += pages;
        debug_assert!(
            lists.0 != NOWHERE && lists.1 != NOWHERE,
            "pages are given between stretches in no list"
        );
        self.lists[lists.0 as usize].pages -= u64::from(pages);
        self.lists[lists.1 as usize].pages += u64::from(pages);
    }

    /// True if pages put behind a stretch in its list come before all others: the stretch is the
    /// newest, or only `next` is newer.
    pub fn stands_before(&self, slot: u32, next: u32) -> bool {
        let stretch = self.get(slot);
        stretch.newer == NONE || stretch.newer == next
    }

    /// Puts a stretch at the newest end of a list. The stretch must be in no list.
    pub fn push_newest(&mut self, list: u8, slot: u32) {
        let newest = self.lists[list as usize].newest;
        self.link(list, slot, newest, NONE);
    }

    /// Puts a stretch at the oldest end of a list. The stretch must be in no list.
    pub fn push_oldest(&mut self, list: u8, slot: u32) {
        let oldest = self.lists[list as usize].oldest;
        self.link(list, slot, NONE, oldest);
    }

    fn link(&mut self, list: u8, slot: u32, older: u32, newer: u32) {
        let stretch = &mut self.stretches[slot as usize];
        debug_assert_eq!(stretch.list, NOWHERE, "already in a list");
        (stretch.list, stretch.older, stretch.newer) = (list, older, newer);
        self.lists[list as usize].pages += u64::from(stretch.pages);
        self.hang_newer(list, newer, slot);
        self.hang_older(list, older, slot);
    }

    /// Removes a stretch from its list.
    pub fn unlink(&mut self, slot: u32) {
        let Stretch {
            list,
            older,
            newer,
            pages,
            ..
        } = *self.get(slot);
        if list == NOWHERE {
            return;
        }
        self.hang_newer(list, newer, older);
        self.hang_older(list, older, newer);
        assert!(
            self.lists[list as usize].pages >= u64::from(pages)
                || self.lists[list as usize].oldest == NONE,
            "{pages} pages leave list {list}, which has {}",
            self.lists[list as usize].pages
        );
        self.lists[list as usize].pages -= u64::from(pages);
        let stretch = &mut self.stretches[slot as usize];
        (stretch.list, stretch.older, stretch.newer) = (NOWHERE, NONE, NONE);
    }
}

#[cfg(test)]
mod tests;
