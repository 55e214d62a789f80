//! `lru2`: Linux's two lists of page-cache pages, by kernel.
//!
//! A new page enters the inactive list. `mark_page_accessed` (`mm/swap.c`, today
//! `folio_mark_accessed`) sets its referenced flag at the first use, and moves the page to the
//! active list at the second use. Reclaim takes the oldest inactive page, referenced or not. The
//! flag spares mapped pages only, and there are no mapped pages here (`page_check_references`
//! returns `PAGEREF_RECLAIM_CLEAN` for the others).
//!
//! An active page keeps its flag when it becomes inactive. One more use makes the page active again
//! (`shrink_active_list` asks `page_referenced` of mapped pages only). The kernels differ in the
//! time at which active pages become inactive:
//!
//! | `kernel` | rule | where |
//! |---|---|---|
//! | `2.4` | before each round of 32 pages, 32 · active / (2 · (inactive + 1)) pages; those referenced stay, once | `shrink_caches`, `refill_inactive` |
//! | `2.6` | as many, in proportion, as inactive pages are scanned | `shrink_zone`, `refill_inactive_zone`, to 2.6.27 |
//! | `3.0` | the same, but only while there are more active than inactive pages | `inactive_file_is_low`, 2.6.31 to 4.6 |
//! | `today` | the same, while active > inactive · √(10 · GiB), or after pages have come back too soon | `inactive_is_low`, `prepare_scan_control` |
//!
//! Today's kernel also remembers the age of a reclaimed page, counted in pages reclaimed or
//! activated since (`mm/workingset.c`). If the page comes back at an age of at most the length of
//! the active list, the page becomes active at once. The exception is a page for a write
//! (`filemap_add_folio`: `__GFP_WRITE`).
//!
//! Today's reclaim and its memory of reclaimed pages use statistics: the lengths of the lists, and
//! the return of pages. The kernel updates these statistics every two seconds (`lruvec_page_state`,
//! `flush_memcg_stats_dwork`, with or without cgroups; since 6.12).
//!
//! Left out: mapped and anonymous pages, zones and nodes, background reclaim by `kswapd` before
//! memory is short, and multi-generational LRU. Large folios, used and evicted as one page, are
//! left out too.

use super::{ListPlace, PolicySite, Replacement, home, put, renew, take_oldest};
use crate::pages::{ASIDE, NOWHERE, PageTable, Stretch};
use crate::run::{PAGE_BYTES, PageRun};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "Linux's inactive and active lists: a page must be used twice to be kept";

const INACTIVE: u8 = 0;
const ACTIVE: u8 = 1;
/// The note of a page: `PG_referenced`.
const REFERENCED: u16 = 1;
/// Number of pages in a round of reclaim: the kernels' `SWAP_CLUSTER_MAX`.
const CLUSTER: u64 = 32;
/// `FLUSH_TIME` of `mm/memcontrol.c`.
const FLUSH_TIME: Duration = Duration::from_millis(2000);

/// Kernel whose rules apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
enum Kernel {
    /// Linux 2.4.
    #[serde(rename = "2.4")]
    V2_4,
    /// Linux 2.6.0 to 2.6.27.
    #[serde(rename = "2.6")]
    V2_6,
    /// Linux 2.6.31 to 4.6.
    #[serde(rename = "3.0")]
    V3_0,
    /// Linux 5.9 and later.
    #[default]
    #[serde(rename = "today")]
    Today,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Kernel whose rule makes active pages inactive: "2.4", "2.6" (to 2.6.27), "3.0" (2.6.31 to
    /// 4.6), "today" (remembers reclaimed pages); default "today".
    #[serde(default)]
    kernel: Kernel,
}

/// Statistics of the lists for reclaim, with `today`.
#[derive(Clone, Copy, Debug, Default)]
struct ReclaimStatistics {
    /// Time of the next update.
    next: Time,
    /// True if returning pages have become active since the last round.
    came_back: bool,
    inactive_is_low: bool,
    /// Number of active pages.
    active: u64,
}

struct Lru2 {
    kernel: Kernel,
    limit: u64,
    /// Number of evictions before the next balance of the lists.
    round: u64,
    /// Number of active pages due for a scan.
    due: u64,
    /// True if returning pages have become active since the last update.
    came_back: bool,
    statistics: ReclaimStatistics,
    shadows: ShadowEntries,
    /// True if the pages about to come had left only a short while ago.
    soon: bool,
    /// True if the last used pages have become active.
    activated: bool,
}

pub(super) fn build(keys: &Keys, site: &PolicySite) -> Result<Box<dyn Replacement>, ConfigError> {
    let Config { kernel } = read(keys)?;
    Ok(Box::new(Lru2 {
        kernel,
        limit: site.limit,
        round: 0,
        due: 0,
        came_back: false,
        statistics: ReclaimStatistics::default(),
        shadows: ShadowEntries::default(),
        soon: false,
        activated: false,
    }))
}

impl Lru2 {
    /// Balances the lists before a round of reclaim: makes active pages inactive if necessary.
    fn balance(&mut self, pages: &mut PageTable) {
        let (inactive, active) = (pages.pages_in(INACTIVE), pages.pages_in(ACTIVE));
        match self.kernel {
            // shrink_caches: the factor at the call of refill_inactive.
            Kernel::V2_4 => refill_2_4(pages, CLUSTER * active / (2 * (inactive + 1))),
            Kernel::V2_6 => self.scan(pages, true),
            Kernel::V3_0 => self.scan(pages, active > inactive),
            Kernel::Today => {
                let came_back = std::mem::take(&mut self.statistics.came_back);
                self.scan(pages, came_back || self.statistics.inactive_is_low);
            }
        }
        if pages.pages_in(INACTIVE) == 0 {
            deactivate(pages, CLUSTER);
        }
    }

    /// shrink_zone, shrink_lruvec: scans both lists in proportion to their lengths, in clusters.
    /// Active pages are scanned only if `allowed`.
    fn scan(&mut self, pages: &mut PageTable, allowed: bool) {
        let (inactive, active) = (pages.pages_in(INACTIVE), pages.pages_in(ACTIVE));
        self.due += CLUSTER * active / inactive.max(1);
        if self.due >= CLUSTER {
            let due = std::mem::take(&mut self.due);
            if allowed {
                deactivate(pages, due);
            }
        }
    }
}

/// inactive_is_low (`mm/vmscan.c`): √(10 · GiB); 1 below 1 GiB.
fn inactive_ratio(pages: u64) -> u64 {
    match (pages * PAGE_BYTES) >> 30 {
        0 => 1,
        gigabytes => (10 * gigabytes).isqrt(),
    }
}

/// Makes the oldest active pages inactive.
fn deactivate(pages: &mut PageTable, most: u64) {
    let mut left = most;
    while left > 0
        && let Some(slot) = take_oldest(pages, ACTIVE, left)
    {
        left -= u64::from(pages.get(slot).pages);
        renew(pages, slot, INACTIVE);
    }
}

/// refill_inactive of 2.4: a referenced page goes round once more.
fn refill_2_4(pages: &mut PageTable, most: u64) {
    let mut left = most.min(pages.pages_in(ACTIVE));
    while left > 0
        && let Some(slot) = take_oldest(pages, ACTIVE, left)
    {
        let stretch = *pages.get(slot);
        left -= u64::from(stretch.pages);
        if stretch.note() & REFERENCED != 0 {
            pages.set_note(slot, 0);
            renew(pages, slot, ACTIVE);
        } else {
            // "SetPageReferenced(page)" behind del_page_from_active_list.
            pages.set_note(slot, REFERENCED);
            renew(pages, slot, INACTIVE);
        }
    }
}

impl Replacement for Lru2 {
    fn at(&mut self, now: Time, pages: &PageTable) {
        if now < self.statistics.next {
            return;
        }
        let period = FLUSH_TIME.as_nanos();
        let (inactive, active) = (pages.pages_in(INACTIVE), pages.pages_in(ACTIVE));
        self.statistics = ReclaimStatistics {
            next: Time::from_nanos((now.as_nanos() / period + 1) * period),
            came_back: std::mem::take(&mut self.came_back) || self.statistics.came_back,
            inactive_is_low: active > inactive * inactive_ratio(inactive + active),
            active,
        };
    }

    fn wanted(&mut self, _: &PageTable, run: PageRun, _free: u64) -> u64 {
        if self.kernel != Kernel::Today {
            return run.pages;
        }
        let (age, alike) = self.shadows.of(run);
        // workingset_test_recent compares the refault distance with the length of the active list
        // in the statistics.
        let distance = age.map(|age| self.shadows.clock - age);
        let active = self.statistics.active;
        match distance {
            None => {
                self.soon = false;
                alike
            }
            // Pages that left later have shorter distances. If the first page came back soon, all
            // did.
            Some(distance) => {
                self.soon = distance <= active;
                if self.soon {
                    alike
                } else {
                    alike.min(distance - active)
                }
            }
        }
    }

    fn admitted(&mut self, pages: &mut PageTable, slot: u32, place: ListPlace) {
        let run = pages.get(slot).run();
        let soon = self.soon && self.kernel == Kernel::Today && place != ListPlace::Written;
        if soon {
            // workingset_refault activates the page, which ages the others.
            self.shadows.clock += run.pages;
            self.came_back = true;
        }
        self.shadows.forget(run);
        put(
            pages,
            slot,
            if soon || place == ListPlace::Hot {
                ACTIVE
            } else {
                INACTIVE
            },
            place,
        );
    }

    fn used(&mut self, pages: &mut PageTable, slot: u32, _first: bool) {
        let stretch = *pages.get(slot);
        let referenced = stretch.note() & REFERENCED != 0;
        self.activated = referenced && home(&stretch) == INACTIVE;
        match (home(&stretch), referenced) {
            (INACTIVE, true) => {
                pages.set_note(slot, 0);
                renew(pages, slot, ACTIVE);
                self.used_more(u64::from(stretch.pages));
            }
            // A page set aside stays there, because the kernel does not clear its PG_reclaim.
            (_, false) => {
                pages.set_note(slot, REFERENCED);
                pages.join(slot);
            }
            _ => {
                pages.join(slot);
            }
        }
    }

    fn used_more(&mut self, pages: u64) {
        if self.activated && self.kernel == Kernel::Today {
            // workingset_activation.
            self.shadows.clock += pages;
        }
    }

    fn ignores_use(&self, stretch: &Stretch) -> bool {
        stretch.list == ACTIVE && stretch.note() & REFERENCED != 0
    }

    fn victim(&mut self, pages: &mut PageTable, most: u64) -> Option<u32> {
        // The kernel balances the lists before each round of 32 pages, and not at each page.
        if self.round == 0 || pages.pages_in(INACTIVE) == 0 {
            self.balance(pages);
            self.round = CLUSTER;
        }
        let slot = take_oldest(pages, INACTIVE, most.min(self.round))?;
        self.round -= u64::from(pages.get(slot).pages);
        Some(slot)
    }

    fn evicted(&mut self, _: &PageTable, gone: &Stretch) {
        debug_assert!(gone.list != ASIDE && gone.origin != NOWHERE);
        if self.kernel == Kernel::Today {
            self.shadows.remember(gone, self.limit);
        }
    }

    fn forgotten(&mut self, run: PageRun) {
        self.shadows.forget(run);
    }
}

/// Record of evicted pages: `mm/workingset.c`.
#[derive(Clone, Debug, Default)]
struct ShadowEntries {
    gone: PageTable,
    /// By slot of `gone`: the clock at which the first page left. Each following page left one tick
    /// later.
    ages: Vec<u64>,
    /// Number of pages evicted or activated (the kernel's nonresident_age).
    clock: u64,
}

impl ShadowEntries {
    const LIST: u8 = 0;

    fn remember(&mut self, gone: &Stretch, most: u64) {
        self.forget(gone.run());
        let slot = self.gone.add(gone.run(), 0);
        self.set_age(slot, self.clock);
        self.clock += u64::from(gone.pages);
        let before = self.gone.newest(Self::LIST);
        self.gone.push_newest(Self::LIST, slot);
        let follows = before.is_some_and(|before| {
            self.ages[before as usize] + u64::from(self.gone.get(before).pages)
                == self.ages[slot as usize]
        });
        if follows {
            self.gone.join(slot);
        }
        self.trim(most);
    }

    /// Forgets pages evicted too long ago to matter: there are never more than `most` active pages.
    fn trim(&mut self, most: u64) {
        while let Some(slot) = self.gone.oldest(Self::LIST) {
            let stretch = *self.gone.get(slot);
            let last = self.ages[slot as usize] + u64::from(stretch.pages) - 1;
            if self.clock - last <= most {
                return;
            }
            self.gone.unlink(slot);
            self.gone.remove(slot);
        }
    }

    fn set_age(&mut self, slot: u32, age: u64) {
        if self.ages.len() <= slot as usize {
            self.ages.resize(slot as usize + 1, 0);
        }
        self.ages[slot as usize] = age;
    }

    /// Returns the clock at the eviction of the first page of the run, if remembered. Also returns
    /// the number of pages of the run in the same state.
    fn of(&self, run: PageRun) -> (Option<u64>, u64) {
        let Some(slot) = self.gone.from(run.object, run.first) else {
            return (None, run.pages);
        };
        let stretch = self.gone.get(slot);
        if stretch.first > run.first {
            return (None, stretch.first.min(run.end()) - run.first);
        }
        (
            Some(self.ages[slot as usize] + (run.first - stretch.first)),
            stretch.end().min(run.end()) - run.first,
        )
    }

    fn forget(&mut self, run: PageRun) {
        while let Some(slot) = self
            .gone
            .from(run.object, run.first)
            .filter(|&slot| self.gone.get(slot).first < run.end())
        {
            let (stretch, age) = (*self.gone.get(slot), self.ages[slot as usize]);
            let (from, to) = (stretch.first.max(run.first), stretch.end().min(run.end()));
            let middle = self.gone.cut(slot, from, to);
            if to < stretch.end()
                && let Some(behind) = self.gone.newer(middle)
            {
                self.set_age(behind, age + (to - stretch.first));
            }
            self.gone.unlink(middle);
            self.gone.remove(middle);
        }
    }
}

#[cfg(test)]
pub(super) mod plain {
    use crate::replacement::conformance::PlainPolicy;
    use std::collections::{BTreeMap, VecDeque};

    /// A model page by page. Each page has its referenced flag; oldest first.
    #[derive(Default)]
    pub struct Model {
        kernel: &'static str,
        inactive: VecDeque<(u64, bool)>,
        active: VecDeque<(u64, bool)>,
        round: u64,
        due: usize,
        came_back: bool,
        seen: bool,
        low: bool,
        seen_active: usize,
        flushes: u64,
        clock: usize,
        ages: BTreeMap<u64, usize>,
    }

    impl Model {
        pub fn new(kernel: &'static str) -> Model {
            Model {
                kernel,
                ..Model::default()
            }
        }

        fn deactivate(&mut self, most: usize) {
            for _ in 0..most.min(self.active.len()) {
                let (page, referenced) = self.active.pop_front().unwrap();
                self.inactive.push_back((page, referenced));
            }
        }

        fn refill_2_4(&mut self, most: usize) {
            for _ in 0..most.min(self.active.len()) {
                let (page, referenced) = self.active.pop_front().unwrap();
                if referenced {
                    self.active.push_back((page, false));
                } else {
                    self.inactive.push_back((page, true));
                }
            }
        }

        fn balance(&mut self) {
            let (inactive, active) = (self.inactive.len(), self.active.len());
            if self.kernel == "2.4" {
                self.refill_2_4(32 * active / (2 * (inactive + 1)));
            } else {
                self.due += 32 * active / inactive.max(1);
                if self.due >= 32 {
                    let due = std::mem::take(&mut self.due);
                    let allowed = match self.kernel {
                        "2.6" => true,
                        "3.0" => active > inactive,
                        _ => self.low || self.seen,
                    };
                    if allowed {
                        self.deactivate(due);
                    }
                }
                self.seen = false;
            }
            if self.inactive.is_empty() {
                self.deactivate(32);
            }
        }

        fn evict(&mut self) -> Option<u64> {
            if self.round == 0 || self.inactive.is_empty() {
                self.balance();
                self.round = 32;
            }
            let (page, _) = self.inactive.pop_front()?;
            self.round -= 1;
            self.ages.insert(page, self.clock);
            self.clock += 1;
            Some(page)
        }
    }

    impl PlainPolicy for Model {
        fn at(&mut self, second: u64) {
            if second / 2 > self.flushes {
                self.flushes = second / 2;
                self.seen |= self.came_back;
                self.came_back = false;
                self.low = self.active.len() > self.inactive.len();
                self.seen_active = self.active.len();
            }
        }

        fn come(&mut self, page: u64, full: bool) -> Option<u64> {
            let soon = self.kernel == "today"
                && self
                    .ages
                    .get(&page)
                    .is_some_and(|age| self.clock - age <= self.seen_active);
            let gone = if full { self.evict() } else { None };
            self.ages.remove(&page);
            if soon {
                self.clock += 1;
                self.came_back = true;
                self.active.push_back((page, false));
            } else {
                self.inactive.push_back((page, false));
            }
            gone
        }

        fn used(&mut self, page: u64, _first: bool) {
            if let Some(entry) = self.active.iter_mut().find(|(other, _)| *other == page) {
                entry.1 = true;
            }
            let Some(at) = self.inactive.iter().position(|&(other, _)| other == page) else {
                return;
            };
            if self.inactive[at].1 {
                self.inactive.remove(at);
                self.active.push_back((page, false));
                self.clock += 1;
            } else {
                self.inactive[at].1 = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::flag;
    use fullstroke_contract::Object;

    const LIMIT: u64 = 100;

    struct Lists {
        pages: PageTable,
        policy: Box<dyn Replacement>,
    }

    impl Lists {
        fn new() -> Lists {
            let policy = build(&Keys::new(), &PolicySite { limit: LIMIT }).unwrap();
            Lists {
                pages: PageTable::default(),
                policy,
            }
        }

        fn come(&mut self, page: u64, place: ListPlace) -> u32 {
            let run = PageRun::new(Object(1), page, 1);
            self.policy.wanted(&self.pages, run, LIMIT);
            if self.pages.held().pages == LIMIT {
                let slot = self
                    .policy
                    .victim(&mut self.pages, 1)
                    .expect("a page can go");
                let gone = self.pages.remove(slot);
                self.policy.evicted(&self.pages, &gone);
            }
            let slot = self.pages.add(run, flag::FRESH);
            self.policy.admitted(&mut self.pages, slot, place);
            self.list_of(page)
        }

        fn list_of(&self, page: u64) -> u32 {
            let slot = self.pages.look(Object(1), page).expect("it is held");
            u32::from(home(self.pages.get(slot)))
        }

        fn use_once(&mut self, page: u64) {
            let slot = self.pages.look(Object(1), page).expect("it is held");
            let slot = self.pages.cut(slot, page, page + 1);
            self.policy.used(&mut self.pages, slot, false);
        }

        /// Returns full memory with 60 active and 40 inactive pages, and up-to-date statistics.
        fn full() -> Lists {
            let mut lists = Lists::new();
            for page in 0..LIMIT {
                lists.come(page, ListPlace::Usual);
            }
            for page in 0..60 {
                lists.use_once(page);
                lists.use_once(page);
            }
            lists.policy.at(Time::ZERO + FLUSH_TIME, &lists.pages);
            lists
        }
    }

    #[test]
    fn a_page_that_comes_back_soon_is_active_unless_it_comes_to_be_written() {
        for (place, list) in [(ListPlace::Usual, ACTIVE), (ListPlace::Written, INACTIVE)] {
            let mut lists = Lists::full();
            lists.come(1000, ListPlace::Usual);
            assert!(
                lists.pages.look(Object(1), 60).is_none(),
                "the oldest inactive page has gone"
            );
            assert_eq!(lists.come(60, place), u32::from(list), "{place:?}");
        }
    }

    #[test]
    fn an_active_page_that_became_inactive_is_active_again_at_its_next_use() {
        let mut lists = Lists::full();
        lists.use_once(0);
        // This begins a round. The inactive list is short, so the oldest active pages move there.
        lists.come(1000, ListPlace::Usual);
        assert_eq!(
            [lists.list_of(0), lists.list_of(1)],
            [u32::from(INACTIVE); 2]
        );
        lists.use_once(0);
        lists.use_once(1);
        assert_eq!(
            [lists.list_of(0), lists.list_of(1)],
            [u32::from(ACTIVE), u32::from(INACTIVE)]
        );
    }

    #[test]
    fn what_has_become_active_counts_when_the_statistics_are_brought_up_to_date() {
        let mut lists = Lists::new();
        for page in 0..LIMIT {
            lists.come(page, ListPlace::Usual);
        }
        lists.policy.at(Time::ZERO, &lists.pages);
        for page in 0..40 {
            lists.use_once(page);
            lists.use_once(page);
        }
        lists.come(1000, ListPlace::Usual);
        assert_eq!(
            lists.come(40, ListPlace::Usual),
            u32::from(INACTIVE),
            "the active list was empty two seconds ago"
        );
        lists.policy.at(Time::ZERO + FLUSH_TIME, &lists.pages);
        lists.come(1001, ListPlace::Usual);
        assert_eq!(lists.come(41, ListPlace::Usual), u32::from(ACTIVE));
    }
}
