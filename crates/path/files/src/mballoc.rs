//! ext4's multi-block allocator (fs/ext4/mballoc.c of Linux 6.x, `ext4_mb_new_blocks`).
//!
//! The allocator makes a request longer than asked (`ext4_mb_normalize_request`) and searches a run
//! of free blocks of that length (`ext4_mb_regular_allocator`). The surplus is set aside. It
//! belongs to the file itself, or, for files up to 64 KiB, to the following small files (the
//! locality group). Blocks are set aside in memory only. Other files get these blocks when nothing
//! else is free.
//!
//! Simplifications: one locality group and one goal of streams instead of one for each processor.
//! Groups are searched in order. The kernel first asks lists of groups by their largest buddies
//! (and since 6.17 walks these lists in the same order).

mod search;

use crate::groups::Groups;
use crate::runs::DisjointRuns;
use crate::{FileError, MetaAccesses};
use std::collections::BTreeMap;
use std::ops::Range;

/// Longest file in blocks that is no stream (`s_mb_stream_request`, 64 KiB).
const STREAM: u64 = 16;
/// Number of blocks set aside at once by the locality group (`MB_DEFAULT_GROUP_PREALLOC`).
const GROUP_PREALLOC: u64 = 512;
/// Number of runs that the locality group keeps for each order of length. A further run replaces
/// the oldest of its order (`ext4_mb_add_n_trim`).
const GROUP_RUNS: usize = 8;

/// Request for blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockRequest {
    pub(crate) inode: u32,
    /// True for data of a file; false for a page of a directory or a block of a mapping.
    pub(crate) data: bool,
    /// True while a program may still write to the file.
    pub(crate) open: bool,
    /// First page, and number of pages.
    pub(crate) page: u64,
    pub(crate) pages: u64,
    /// Length of the file in pages.
    pub(crate) length: u64,
    pub(crate) goal: u64,
    /// Nearest page before (`left`) and behind (`right`) that has a place, with the place.
    pub(crate) left: Option<(u64, u64)>,
    pub(crate) right: Option<(u64, u64)>,
}

/// Blocks set aside for pages of one file.
#[derive(Debug)]
struct PreallocatedRun {
    /// Block `block` is for page `page`, and the following blocks are for the following pages.
    page: u64,
    block: u64,
    /// Pages whose blocks are not used yet.
    free: DisjointRuns,
}

impl PreallocatedRun {
    fn block_of(&self, page: u64) -> u64 {
        debug_assert!(
            page >= self.page,
            "page {page} lies before the run for page {}",
            self.page
        );
        self.block + (page - self.page)
    }
}

/// Normalised request: the run to search for.
#[derive(Clone, Copy, Debug)]
struct Aim {
    /// First page of the run, and its length.
    page: u64,
    pages: u64,
    goal: u64,
    /// True if the run must begin exactly at `goal`, because it continues existing pages.
    at_goal: bool,
    data: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Mballoc {
    files: BTreeMap<u32, Vec<PreallocatedRun>>,
    /// Runs of the locality group, oldest first.
    locality: Vec<Range<u64>>,
    /// Group that served the last stream (`s_mb_last_group`).
    stream: u32,
    aside: u64,
}

impl Mballoc {
    /// Returns the number of blocks set aside for all files and the locality group.
    pub(crate) fn aside(&self) -> u64 {
        self.aside
    }

    /// Returns the number of blocks of the locality group.
    pub(crate) fn pooled(&self) -> u64 {
        self.locality.iter().map(|run| run.end - run.start).sum()
    }

    /// Returns the number of blocks set aside for one file.
    pub(crate) fn aside_for(&self, inode: u32) -> u64 {
        self.files
            .get(&inode)
            .map_or(0, |list| list.iter().map(|aside| aside.free.total()).sum())
    }

    /// Allocates a run of at most the requested number of blocks.
    pub(crate) fn allocate(
        &mut self,
        groups: &mut Groups,
        request: &BlockRequest,
        touches: &mut MetaAccesses,
    ) -> Result<Range<u64>, FileError> {
        let found = self.find(groups, request).or_else(|| {
            // No free run: all blocks set aside become free (`ext4_mb_discard_preallocations`), and
            // the search is repeated.
            (self.aside > 0).then(|| self.discard_all(groups))?;
            self.find(groups, request)
        });
        let Some(found) = found else {
            return Err(FileError::NoSpace {
                needed: request.pages,
                free: groups.free_blocks,
            });
        };
        assert!(
            !found.is_empty() && found.end - found.start <= request.pages,
            "{found:?} is allocated for {} pages",
            request.pages
        );
        groups.mark(found.clone(), touches);
        Ok(found)
    }

    fn find(&mut self, groups: &mut Groups, request: &BlockRequest) -> Option<Range<u64>> {
        if !request.data {
            return self.exactly(groups, request, request.goal);
        }
        if let Some(found) = self.own(request) {
            return Some(found);
        }
        // `ext4_mb_group_or_file`.
        let end = request.page + request.pages;
        if end.max(request.length) <= STREAM {
            return self.local(groups, request);
        }
        // The request completes a closed file (`EXT4_MB_HINT_NOPREALLOC`), so blocks set aside
        // would stay unused.
        if end == request.length && !request.open {
            return self.exactly(groups, request, request.goal);
        }
        self.for_stream(groups, request)
    }

    /// Takes blocks set aside for exactly these pages (`ext4_mb_use_preallocated`).
    fn own(&mut self, request: &BlockRequest) -> Option<Range<u64>> {
        let list = self.files.get_mut(&request.inode)?;
        let aside = list
            .iter_mut()
            .find(|aside| aside.free.contains(request.page))?;
        let end = aside
            .free
            .run_at(request.page)?
            .end
            .min(request.page + request.pages);
        let pages = request.page..end;
        aside.free.remove(pages.clone());
        assert!(
            pages.end - pages.start <= self.aside,
            "{pages:?} are used, and {} blocks are set aside",
            self.aside
        );
        self.aside -= pages.end - pages.start;
        let start = aside.block_of(pages.start);
        list.retain(|aside| !aside.free.is_empty());
        Some(start..start + (pages.end - pages.start))
    }

    /// Searches a run of the requested length, and sets nothing aside.
    fn exactly(
        &mut self,
        groups: &mut Groups,
        request: &BlockRequest,
        goal: u64,
    ) -> Option<Range<u64>> {
        let aim = Aim {
            page: request.page,
            pages: request.pages,
            goal,
            at_goal: false,
            data: request.data,
        };
        let found = search::regular(groups, &aim)?;
        groups.reserve(found.clone());
        Some(found)
    }

    /// Takes blocks from the locality group's run nearest to the goal, or from a new run.
    fn local(&mut self, groups: &mut Groups, request: &BlockRequest) -> Option<Range<u64>> {
        let fits = self
            .locality
            .iter_mut()
            .filter(|run| run.end - run.start >= request.pages);
        if let Some(run) = fits.min_by_key(|run| run.start.abs_diff(request.goal)) {
            let found = run.start..run.start + request.pages;
            assert!(
                found.end <= run.end && request.pages <= self.aside,
                "{found:?} is taken out of {run:?}; {} blocks are set aside",
                self.aside
            );
            run.start = found.end;
            self.aside -= request.pages;
            self.locality.retain(|run| !run.is_empty());
            return Some(found);
        }
        let aim = Aim {
            page: request.page,
            pages: GROUP_PREALLOC.max(request.pages),
            goal: request.goal,
            at_goal: false,
            data: true,
        };
        let run = search::regular(groups, &aim)?;
        groups.reserve(run.clone());
        let used = run.start..run.end.min(run.start + request.pages);
        self.keep_local(groups, used.end..run.end);
        Some(used)
    }

    fn keep_local(&mut self, groups: &mut Groups, run: Range<u64>) {
        if run.is_empty() {
            return;
        }
        let order = |run: &Range<u64>| (run.end - run.start).ilog2().min(10);
        let alike = |other: &&Range<u64>| order(other) == order(&run);
        if self.locality.iter().filter(alike).count() >= GROUP_RUNS
            && let Some(at) = self
                .locality
                .iter()
                .position(|other| order(other) == order(&run))
        {
            let old = self.locality.remove(at);
            self.aside -= old.end - old.start;
            groups.unreserve(old);
        }
        self.aside += run.end - run.start;
        self.locality.push(run);
    }

    /// Searches a longer run than requested, and sets the surplus aside for the file.
    fn for_stream(&mut self, groups: &mut Groups, request: &BlockRequest) -> Option<Range<u64>> {
        let aim = self.normalize(groups, request);
        let found = search::regular(groups, &aim)?;
        self.stream = groups.layout.group_of(found.start);
        groups.reserve(found.clone());
        let length = found.end - found.start;
        // First page of the file that the found run is for (`ext4_mb_new_inode_pa`).
        let asked_end = request.page + request.pages;
        let page = if length >= aim.pages {
            aim.page
        } else if (aim.page + aim.pages - length) <= request.page {
            aim.page + aim.pages - length
        } else if asked_end <= aim.page + length {
            aim.page
        } else {
            request.page
        };
        let mut aside = PreallocatedRun {
            page,
            block: found.start,
            free: DisjointRuns::of(page..page + length),
        };
        let used = request.page..asked_end.min(page + length);
        assert!(
            page <= request.page && !used.is_empty(),
            "the pages from {page} on are for a request at {}",
            request.page
        );
        aside.free.remove(used.clone());
        let start = aside.block_of(used.start);
        self.aside += aside.free.total();
        if !aside.free.is_empty() {
            self.files.entry(request.inode).or_default().push(aside);
        }
        Some(start..start + (used.end - used.start))
    }

    /// Computes the run to search for (`ext4_mb_normalize_request`).
    fn normalize(&self, groups: &Groups, request: &BlockRequest) -> Aim {
        // 1024 KiB in blocks of 4 KiB.
        const KIB: u64 = 1024 / 4;
        let end = request.page + request.pages;
        let size = end.max(request.length);
        // Up to 1 MiB (256 pages): the whole file, rounded up to a power of two, at least 16 KiB.
        // Larger files: aligned pieces of 2, 4 and 8 MiB.
        let piece = |pages: u64| (request.page - request.page % pages, pages);
        let (mut start, mut pages) = if size <= KIB {
            (0, size.next_power_of_two().max(4))
        } else if size <= 4 * KIB {
            piece(2 * KIB)
        } else if size <= 8 * KIB {
            piece(4 * KIB)
        } else if request.pages <= 8 * KIB {
            piece(8 * KIB)
        } else {
            (request.page, request.pages)
        };
        // A run lies within one group.
        pages = pages.min(crate::groups::BLOCKS_PER_GROUP);
        // The run must not overlap pages of the file that have a place or blocks set aside.
        let neighbours = self.files.get(&request.inode).into_iter().flatten();
        let asides = neighbours.flat_map(|aside| aside.free.iter());
        let mut low = request.left.map_or(0, |(page, _)| page + 1);
        let mut high = request.right.map_or(u64::MAX, |(page, _)| page);
        for run in asides {
            if run.end <= request.page {
                low = low.max(run.end);
            } else {
                high = high.min(run.start);
            }
        }
        // The requested page belongs to the run, whatever its neighbours leave free.
        let aim_end = (start + pages).min(high).max(request.page + 1);
        start = start.max(low).min(request.page);
        pages = (aim_end - start).max(1);
        let mut aim = Aim {
            page: start,
            pages,
            goal: groups
                .layout
                .first_block(self.stream.min(groups.count() - 1)),
            at_goal: false,
            data: true,
        };
        // Continue the file's pages on the left, so that both become one extent; else end just
        // before its pages on the right.
        if let Some((page, block)) = request.left
            && page + 1 == start
        {
            (aim.goal, aim.at_goal) = (block + 1, true);
        } else if let Some((page, block)) = request.right
            && page == start + pages
            && block > pages
        {
            (aim.goal, aim.at_goal) = (block - pages, true);
        }
        aim
    }

    /// Frees the blocks set aside for a file that is closed, truncated or removed
    /// (`ext4_discard_preallocations`).
    pub(crate) fn discard(&mut self, groups: &mut Groups, inode: u32) {
        for aside in self.files.remove(&inode).unwrap_or_default() {
            assert!(
                aside.free.total() <= self.aside,
                "{} blocks are given back, of {} set aside",
                aside.free.total(),
                self.aside
            );
            self.aside -= aside.free.total();
            for run in aside.free.iter() {
                let start = aside.block_of(run.start);
                groups.unreserve(start..start + (run.end - run.start));
            }
        }
    }

    fn discard_all(&mut self, groups: &mut Groups) {
        while let Some((&inode, _)) = self.files.first_key_value() {
            self.discard(groups, inode);
        }
        for run in std::mem::take(&mut self.locality) {
            self.aside -= run.end - run.start;
            groups.unreserve(run);
        }
    }
}

#[cfg(test)]
mod tests;
