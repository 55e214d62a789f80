//! Free space: allocation groups, each with its free runs.

use crate::runs::DisjointRuns;
use crate::{FileError, MetaAccesses};
use std::ops::Range;

/// Block numbers within a group: the headers, and the roots of the group's B-trees.
const HEADERS: u64 = 0;
const BY_ADDRESS: u64 = 1;
const BY_LENGTH: u64 = 2;
pub(super) const INODES: u64 = 3;
/// Root of the B-tree of chunks with free inodes (`finobt`), which `mkfs.xfs` makes since 2015.
pub(super) const FREE_INODES: u64 = 4;

/// Request for a run of pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// Preferred first page.
    pub(super) target: u64,
    /// True if the run should begin exactly at the target, because it continues another run.
    pub(super) exact: bool,
    pub(super) length: u64,
    /// True for data of a file, false for metadata.
    pub(super) data: bool,
    /// Required alignment of the first page; 0 or 1 for none.
    pub(super) align: u64,
}

#[derive(Debug)]
pub(super) struct Space {
    groups: Vec<DisjointRuns>,
    group_pages: u64,
    /// Number of fixed blocks at the beginning of each group. The first block holds superblock,
    /// AGF, AGI and AGFL; then follow the roots of the B-trees, and blocks of the free list.
    fixed: u64,
    pages: u64,
    free: u64,
    /// Runs that belong to no file: the log.
    hidden: Vec<Range<u64>>,
}

impl Space {
    pub(super) fn new(pages: u64, count: u32, fixed: u64) -> Space {
        let group_pages = pages.div_ceil(u64::from(count));
        let groups: Vec<DisjointRuns> = (0..u64::from(count))
            .map(|group| {
                let start = group * group_pages;
                let end = (start + group_pages).min(pages);
                DisjointRuns::of((start + fixed).min(end)..end)
            })
            .collect();
        let free = groups.iter().map(DisjointRuns::total).sum();
        Space {
            groups,
            group_pages,
            fixed,
            pages,
            free,
            hidden: Vec::new(),
        }
    }

    pub(super) fn pages(&self) -> u64 {
        self.pages
    }
    pub(super) fn free(&self) -> u64 {
        self.free
    }
    pub(super) fn count(&self) -> u32 {
        self.groups.len() as u32
    }
    pub(super) fn group_pages(&self) -> u64 {
        self.group_pages
    }
    pub(super) fn group_of(&self, page: u64) -> u32 {
        ((page / self.group_pages) as u32).min(self.count() - 1)
    }
    pub(super) fn group_free(&self, group: u32) -> u64 {
        self.groups[group as usize].total()
    }

    pub(super) fn metadata(&self) -> Vec<Range<u64>> {
        let fixed = (0..u64::from(self.count())).map(|group| {
            let start = group * self.group_pages;
            start..(start + self.fixed).min(self.pages)
        });
        fixed.chain(self.hidden.iter().cloned()).collect()
    }

    /// Takes `pages` pages from the first free run of a group that is long enough, for the log.
    pub(super) fn reserve_hidden(&mut self, group: u32, pages: u64) -> Option<Range<u64>> {
        let run = self
            .groups
            .get(group as usize)?
            .iter()
            .find(|run| run.end - run.start >= pages)?;
        let area = run.start..run.start + pages;
        self.take(area.clone(), &mut MetaAccesses::new());
        self.hidden.push(area.clone());
        Some(area)
    }

    /// Returns a block of the group's headers.
    pub(super) fn header(&self, group: u32, which: u64) -> u64 {
        u64::from(group) * self.group_pages + which
    }

    /// Reports that the headers and free-space B-trees of the pages' groups change.
    pub(super) fn change_free(&self, pages: Range<u64>, touches: &mut MetaAccesses) {
        if let Some(last) = pages.end.checked_sub(1) {
            (self.group_of(pages.start)..=self.group_of(last))
                .for_each(|group| self.touch(group, touches));
        }
    }

    fn touch(&self, group: u32, touches: &mut MetaAccesses) {
        for block in [HEADERS, BY_ADDRESS, BY_LENGTH] {
            touches.change(self.header(group, block));
        }
    }

    fn take(&mut self, run: Range<u64>, touches: &mut MetaAccesses) {
        let group = self.group_of(run.start);
        assert!(
            self.groups[group as usize]
                .run_at(run.start)
                .is_some_and(|free| run.end <= free.end),
            "{run:?} is taken, and is not free in group {group}"
        );
        self.groups[group as usize].remove(run.clone());
        self.free -= run.end - run.start;
        self.touch(group, touches);
    }

    /// Frees pages of any groups.
    pub(super) fn free_pages(&mut self, run: Range<u64>, touches: &mut MetaAccesses) {
        let mut at = run.start;
        while at < run.end {
            let group = self.group_of(at);
            let end = run.end.min(u64::from(group + 1) * self.group_pages);
            debug_assert!(
                self.groups[group as usize].first_in(at..end).is_none(),
                "{at} to {end} are given back, and some are free"
            );
            self.groups[group as usize].insert(at..end);
            self.free += end - at;
            self.touch(group, touches);
            at = end;
        }
    }

    /// Allocates a run of the requested length if a group has one, else the longest run
    /// (`xfs_bmap_btalloc`).
    pub(super) fn allocate(
        &mut self,
        wish: &Wish,
        touches: &mut MetaAccesses,
    ) -> Result<Range<u64>, FileError> {
        let found = self
            .continued(wish)
            .or_else(|| self.near(wish))
            .or_else(|| self.longest(wish));
        let found = found.ok_or(FileError::NoSpace {
            needed: wish.length,
            free: self.free,
        })?;
        assert!(
            !found.is_empty() && found.end - found.start <= wish.length,
            "{found:?} is found for {wish:?}"
        );
        self.take(found.clone(), touches);
        Ok(found)
    }

    /// Returns the run that begins exactly at the target.
    fn continued(&self, wish: &Wish) -> Option<Range<u64>> {
        if !wish.exact || wish.target >= self.pages {
            return None;
        }
        let run = self.groups[self.group_of(wish.target) as usize].run_at(wish.target)?;
        (run.end - wish.target >= wish.length).then(|| wish.target..wish.target + wish.length)
    }

    /// Returns the run nearest to the target in the target's group, else in the next group with a
    /// run of this length.
    fn near(&self, wish: &Wish) -> Option<Range<u64>> {
        let target = if wish.target < self.pages {
            wish.target
        } else {
            0
        };
        let first = self.group_of(target);
        for step in 0..self.count() {
            let group = (first + step) % self.count();
            let target = if step == 0 {
                target
            } else {
                u64::from(group) * self.group_pages
            };
            // A group without an aligned place is still better than a group far away.
            for align in [wish.align.max(1), 1] {
                let wish = Wish {
                    target,
                    align,
                    ..*wish
                };
                if let Some(found) = nearest(&self.groups[group as usize], &wish) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Returns the longest run of all groups, for a request that no run can hold. The search begins
    /// at the target's group, and the first of equally long runs wins.
    fn longest(&self, wish: &Wish) -> Option<Range<u64>> {
        let first = self.group_of(wish.target.min(self.pages - 1));
        let groups = (0..self.count()).map(|step| (first + step) % self.count());
        let longest = |group: u32| {
            self.groups[group as usize]
                .iter()
                .max_by_key(|run| (run.end - run.start, u64::MAX - run.start))
        };
        let mut best: Option<Range<u64>> = None;
        for run in groups.filter_map(longest) {
            if best
                .as_ref()
                .is_none_or(|best| run.end - run.start > best.end - best.start)
            {
                best = Some(run);
            }
        }
        best.map(|run| run.start..run.end.min(run.start + wish.length))
    }
}

/// Returns the run of the requested length that is nearest to the target
/// (`xfs_alloc_ag_vextent_near`).
fn nearest(runs: &DisjointRuns, wish: &Wish) -> Option<Range<u64>> {
    let mut best: Option<(u64, u64)> = None;
    let mut consider = |run: Range<u64>| {
        if let Some(start) = place_in(&run, wish) {
            let distance = start.abs_diff(wish.target);
            if best.is_none_or(|(least, _)| distance < least) {
                best = Some((distance, start));
            }
        }
        best.map(|(least, _)| least)
    };
    // Searches outwards on both sides. A side ends when its next run is farther away than the best
    // place.
    let at = runs
        .run_at(wish.target)
        .map_or(wish.target, |run| run.start);
    for run in runs.iter_from(at) {
        let beyond = run.start.saturating_sub(wish.target);
        if consider(run).is_some_and(|least| least <= beyond) {
            break;
        }
    }
    let mut before = at;
    while let Some(run) = runs.last_before(before) {
        before = run.start;
        let behind = wish.target.saturating_sub(run.end);
        if consider(run).is_some_and(|least| least <= behind) {
            break;
        }
    }
    best.map(|(_, start)| start..start + wish.length)
}

/// Returns the place within a free run (`xfs_alloc_compute_diff`): the target if it fits. Else the
/// start of the run, if the run lies behind the target or the request is for data. Else the end of
/// the run.
fn place_in(run: &Range<u64>, wish: &Wish) -> Option<u64> {
    let align = wish.align.max(1);
    let fits = |start: u64| start >= run.start && start + wish.length <= run.end;
    let wished = wish.target.next_multiple_of(align);
    if run.start <= wish.target && fits(wished) {
        return Some(wished);
    }
    if run.start >= wish.target || wish.data {
        return Some(run.start.next_multiple_of(align)).filter(|&start| fits(start));
    }
    let last = run.end.checked_sub(wish.length)?;
    Some(last - last % align).filter(|&start| fits(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_run_that_is_long_enough_is_taken() {
        let mut runs = DisjointRuns::of(100..120);
        runs.insert(200..400);
        runs.insert(900..1000);
        let wish = |target, length, data| Wish {
            target,
            exact: false,
            length,
            data,
            align: 0,
        };
        assert_eq!(nearest(&runs, &wish(250, 10, true)), Some(250..260));
        assert_eq!(
            nearest(&runs, &wish(500, 10, false)),
            Some(390..400),
            "metadata: at the end before"
        );
        assert_eq!(
            nearest(&runs, &wish(500, 10, true)),
            Some(200..210),
            "data: at the start"
        );
        assert_eq!(nearest(&runs, &wish(110, 15, true)), Some(100..115));
        assert_eq!(nearest(&runs, &wish(950, 80, true)), Some(900..980));
        assert_eq!(nearest(&runs, &wish(0, 500, true)), None);
        let aligned = Wish {
            align: 64,
            ..wish(100, 32, true)
        };
        assert_eq!(nearest(&runs, &aligned), Some(256..288));
    }
}
