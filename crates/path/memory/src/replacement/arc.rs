//! `arc`: Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache" (FAST 2003,
//! figure 4). T1 has the pages seen once, T2 the pages seen more often. B1 and B2 remember the
//! pages evicted from T1 and T2. A hit in B1 or B2 changes the target size `p` of T1.

use super::ghosts::Ghosts;
use super::{ListPlace, NoPolicyKeys, PolicySite, Replacement, put, renew, take_oldest};
use crate::pages::{NOWHERE, PageTable, Stretch};
use crate::run::PageRun;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Object};

pub(super) const SUMMARY: &str = "ARC: recency and frequency, balanced by hits among evicted pages";

const T1: u8 = 0;
const T2: u8 = 1;
const B1: u8 = 0;
const B2: u8 = 1;

struct Arc {
    /// The paper's c.
    limit: u64,
    /// The paper's p.
    target: u64,
    ghosts: Ghosts,
    /// Page about to come, and its ghost list.
    coming: Option<(Object, u64, u8)>,
}

pub(super) fn build(keys: &Keys, site: &PolicySite) -> Result<Box<dyn Replacement>, ConfigError> {
    let NoPolicyKeys {} = read(keys)?;
    Ok(Box::new(Arc {
        limit: site.limit,
        target: 0,
        ghosts: Ghosts::default(),
        coming: None,
    }))
}

impl Arc {
    /// Cases II and III: changes p by the ratio of the ghost lists, in whole pages.
    fn adapt(&mut self, list: u8) {
        let (b1, b2) = (self.ghosts.pages_in(B1), self.ghosts.pages_in(B2));
        if list == B1 {
            self.target = (self.target + (b2 / b1).max(1)).min(self.limit);
        } else {
            self.target = self.target.saturating_sub((b1 / b2).max(1));
        }
    }

    /// Limits of case IV: |T1| + |B1| ≤ c, and 2c for all four lists.
    fn trim(&mut self, pages: &PageTable) {
        let (t1, t2) = (pages.pages_in(T1), pages.pages_in(T2));
        self.ghosts.trim(B1, self.limit.saturating_sub(t1));
        let others = t1 + t2 + self.ghosts.pages_in(B1);
        self.ghosts
            .trim(B2, (2 * self.limit).saturating_sub(others));
    }
}

impl Replacement for Arc {
    fn wanted(&mut self, _: &PageTable, run: PageRun, free: u64) -> u64 {
        // A second question for one page must not adapt the target again.
        if let Some((object, page, _)) = self.coming
            && (object, page) == (run.object, run.first)
        {
            return 1;
        }
        let (list, alike) = self.ghosts.of(run);
        self.coming = list.map(|list| (run.object, run.first, list));
        if let Some(list) = list {
            self.adapt(list);
            self.ghosts.forget(PageRun { pages: 1, ..run });
            return 1;
        }
        // As in 2Q the victim depends on the page that comes, so full memory takes pages one by
        // one.
        if free == 0 { 1 } else { alike.min(free) }
    }

    fn admitted(&mut self, pages: &mut PageTable, slot: u32, place: ListPlace) {
        let again = self.coming.take().is_some();
        put(
            pages,
            slot,
            if again || place == ListPlace::Hot {
                T2
            } else {
                T1
            },
            place,
        );
        self.trim(pages);
    }

    fn used(&mut self, pages: &mut PageTable, slot: u32, first: bool) {
        // Case I. The use for which a page came does not count as a second use.
        let list = pages.get(slot).list;
        let seen_once = first && super::home(pages.get(slot)) == T1;
        match list {
            // At the first use the page stays in T1. Usually it is the newest there already. A page
            // of read-ahead becomes the newest now.
            _ if seen_once => renew(pages, slot, T1),
            _ => renew(pages, slot, T2),
        }
    }

    fn victim(&mut self, pages: &mut PageTable, _most: u64) -> Option<u32> {
        // REPLACE.
        let t1 = pages.pages_in(T1);
        let from_b2 = matches!(self.coming, Some((_, _, B2)));
        let from_t1 = t1 > self.target || (from_b2 && t1 == self.target);
        let (first, second) = if t1 > 0 && from_t1 {
            (T1, T2)
        } else {
            (T2, T1)
        };
        take_oldest(pages, first, 1).or_else(|| take_oldest(pages, second, 1))
    }

    fn evicted(&mut self, _: &PageTable, gone: &Stretch) {
        debug_assert_ne!(gone.origin, NOWHERE);
        self.ghosts
            .remember(gone, if gone.origin == T1 { B1 } else { B2 });
    }

    fn forgotten(&mut self, run: PageRun) {
        self.ghosts.forget(run);
        if self
            .coming
            .is_some_and(|(object, page, _)| run.holds(object, page))
        {
            self.coming = None;
        }
    }
}

#[cfg(test)]
pub(super) mod plain {
    use crate::replacement::conformance::PlainPolicy;
    use std::collections::VecDeque;

    /// Figure 4, word for word; the least recently used is the first.
    #[derive(Default)]
    pub struct Model {
        pub c: usize,
        pub p: usize,
        pub t1: VecDeque<u64>,
        pub t2: VecDeque<u64>,
        pub b1: VecDeque<u64>,
        pub b2: VecDeque<u64>,
    }

    impl Model {
        fn replace(&mut self, in_b2: bool) -> Option<u64> {
            let t1 = self.t1.len();
            if t1 >= 1 && ((in_b2 && t1 == self.p) || t1 > self.p) || self.t2.is_empty() {
                let gone = self.t1.pop_front();
                self.b1.extend(gone);
                gone
            } else {
                let gone = self.t2.pop_front();
                self.b2.extend(gone);
                gone
            }
        }

        /// Case IV.
        fn miss(&mut self, full: bool) -> Option<u64> {
            let l1 = self.t1.len() + self.b1.len();
            let all = l1 + self.t2.len() + self.b2.len();
            if l1 == self.c {
                if self.t1.len() < self.c {
                    self.b1.pop_front();
                    return if full { self.replace(false) } else { None };
                }
                return self.t1.pop_front();
            }
            if all == 2 * self.c {
                self.b2.pop_front();
            }
            if full { self.replace(false) } else { None }
        }
    }

    impl PlainPolicy for Model {
        fn come(&mut self, page: u64, full: bool) -> Option<u64> {
            let (b1, b2) = (self.b1.len(), self.b2.len());
            if self.b1.contains(&page) {
                self.p = (self.p + if b1 >= b2 { 1 } else { b2 / b1 }).min(self.c);
                self.b1.retain(|&other| other != page);
                let gone = if full { self.replace(false) } else { None };
                self.t2.push_back(page);
                gone
            } else if self.b2.contains(&page) {
                self.p = self.p.saturating_sub(if b2 >= b1 { 1 } else { b1 / b2 });
                self.b2.retain(|&other| other != page);
                let gone = if full { self.replace(true) } else { None };
                self.t2.push_back(page);
                gone
            } else {
                let gone = self.miss(full);
                self.t1.push_back(page);
                gone
            }
        }

        fn used(&mut self, page: u64, first: bool) {
            let once = first && self.t1.contains(&page);
            self.t1.retain(|&other| other != page);
            self.t2.retain(|&other| other != page);
            if once {
                self.t1.push_back(page)
            } else {
                self.t2.push_back(page)
            }
        }
    }
}
