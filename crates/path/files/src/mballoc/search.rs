//! Search for a run of free blocks (`ext4_mb_regular_allocator`).

use super::Aim;
use crate::groups::{FreeBlocks, Groups, ORDER_MAX, buddy_at};
use crate::runs::DisjointRuns;
use std::ops::Range;

/// Smallest order of a request searched among buddies: 2^1 blocks (`MB_DEFAULT_ORDER2_REQS`).
const ORDER_MIN: u32 = 1;
/// Numbers of runs of a group to visit: before the best suitable run is taken, and before the
/// search in the group ends (`MB_DEFAULT_MIN_TO_SCAN`, `MB_DEFAULT_MAX_TO_SCAN`).
const SCAN_MIN: usize = 10;
const SCAN_MAX: usize = 200;

/// Conditions for a group to be searched (`enum criteria`), from the strictest to the weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Criterion {
    /// A free buddy of the requested length, which is a power of two.
    Buddy(u32),
    /// Free runs whose mean length reaches the request.
    LongRuns,
    /// As many free blocks as requested.
    Blocks,
    /// Any free block.
    Any,
}

/// Returns the run at the goal if the aim demands this and the run is free. Else returns a run in
/// the goal's group or in the following groups.
pub(super) fn regular(groups: &mut Groups, aim: &Aim) -> Option<Range<u64>> {
    if aim.at_goal
        && let Some(found) = at_goal(groups, aim)
    {
        return Some(found);
    }
    let goal = if aim.goal < groups.layout.blocks {
        aim.goal
    } else {
        0
    };
    let first = groups.layout.group_of(goal);
    let order = aim.pages.ilog2();
    let buddy = aim.pages.is_power_of_two() && (ORDER_MIN..=ORDER_MAX).contains(&order);
    let criteria = [
        Criterion::Buddy(order),
        Criterion::LongRuns,
        Criterion::Blocks,
        Criterion::Any,
    ];
    let mut best = None;
    for criterion in &criteria[usize::from(!buddy)..] {
        for step in 0..groups.count() {
            let group = (first + step) % groups.count();
            if u64::from(groups.counts(group).blocks) == 0
                || skipped(groups, group, aim, *criterion)
            {
                continue;
            }
            let whole = matches!(criterion, Criterion::Buddy(_) | Criterion::LongRuns);
            // These criteria need one run of the whole length. The bound spares most searches in
            // vain.
            if whole && groups.longest(group) < aim.pages {
                continue;
            }
            let start = groups.layout.first_block(group);
            let free = groups.searched(group);
            if !suits(free.runs(), aim, *criterion) {
                continue;
            }
            match scan(free, aim, *criterion) {
                Some(GroupSearchResult::Enough(run)) => {
                    return Some(start + run.start..start + run.end);
                }
                Some(GroupSearchResult::Best(run)) => {
                    longer(&mut best, start + run.start..start + run.end)
                }
                // The bound was too high. An exact one spares the next search.
                None => groups.measure_longest(group),
            }
        }
        // The longest run seen, although too short (`ext4_mb_try_best_found`).
        if let Some(best) = best {
            return Some(best);
        }
    }
    None
}

fn longer(best: &mut Option<Range<u64>>, found: Range<u64>) {
    let length = |run: &Range<u64>| run.end - run.start;
    if best
        .as_ref()
        .is_none_or(|best| length(&found) > length(best))
    {
        *best = Some(found);
    }
}

/// Returns true for the first group of a flex group, which is left to directories and metadata
/// (`ext4_mb_good_group`, `EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME`).
fn skipped(groups: &Groups, group: u32, aim: &Aim, criterion: Criterion) -> bool {
    let flex = groups.layout.flex;
    matches!(criterion, Criterion::Buddy(_)) && aim.data && flex >= 4 && group.is_multiple_of(flex)
}

/// Returns the run of the requested length that begins at the goal (`ext4_mb_find_by_goal`).
fn at_goal(groups: &mut Groups, aim: &Aim) -> Option<Range<u64>> {
    if aim.goal >= groups.layout.blocks {
        return None;
    }
    let group = groups.layout.group_of(aim.goal);
    let start = groups.layout.first_block(group);
    let run = groups.searched(group).runs().run_at(aim.goal - start)?;
    (run.end + start >= aim.goal + aim.pages).then(|| aim.goal..aim.goal + aim.pages)
}

fn suits(runs: &DisjointRuns, aim: &Aim, criterion: Criterion) -> bool {
    match criterion {
        // The search itself finds out whether such a buddy exists.
        Criterion::Buddy(_) | Criterion::Any => true,
        Criterion::LongRuns => runs.total() >= aim.pages * runs.count() as u64,
        Criterion::Blocks => runs.total() >= aim.pages,
    }
}

/// Result of the search in one group.
enum GroupSearchResult {
    /// A run of the requested length.
    Enough(Range<u64>),
    /// The longest run, shorter than requested.
    Best(Range<u64>),
}

fn scan(free: &FreeBlocks, aim: &Aim, criterion: Criterion) -> Option<GroupSearchResult> {
    match criterion {
        Criterion::Buddy(order) => {
            let start = free.smallest_buddy(order)?;
            Some(GroupSearchResult::Enough(start..start + aim.pages))
        }
        _ => {
            let skip_short = criterion == Criterion::LongRuns;
            let found = free.measured((aim.pages, skip_short), |runs| {
                measure(runs, aim.pages, skip_short)
            })?;
            Some(if found.end - found.start == aim.pages {
                GroupSearchResult::Enough(found)
            } else {
                GroupSearchResult::Best(found)
            })
        }
    }
}

/// Visits the runs in order. Returns the shortest sufficient run of the visited runs, else the
/// longest (`ext4_mb_complex_scan_group`, `ext4_mb_measure_extent`).
fn measure(runs: &DisjointRuns, pages: u64, skip_short: bool) -> Option<Range<u64>> {
    let mut best: Option<Range<u64>> = None;
    let mut looked_at = 0;
    let length = |run: &Range<u64>| run.end - run.start;
    'runs: for run in runs.iter() {
        let mut at = run.start;
        while at < run.end {
            if skip_short && run.end - at < pages {
                break;
            }
            // Adds whole buddies until the length suffices (`mb_find_extent`).
            let mut end = at;
            while end < run.end && end - at < pages {
                end += 1 << buddy_at(end, run.end);
            }
            let extent = at..end;
            at = end;
            looked_at += 1;
            let better = match &best {
                None => true,
                Some(best) if length(best) < pages => length(&extent) > length(best),
                Some(best) => length(&extent) >= pages && length(&extent) < length(best),
            };
            if better {
                best = Some(extent);
            }
            let enough = best.as_ref().is_some_and(|best| length(best) >= pages);
            let exact = best.as_ref().is_some_and(|best| length(best) == pages);
            if exact || looked_at > SCAN_MAX || (enough && looked_at > SCAN_MIN) {
                break 'runs;
            }
        }
    }
    best.map(|best| best.start..best.end.min(best.start + pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_lengths_go_to_the_shortest_run_that_holds_them() {
        let mut runs = DisjointRuns::of(0..64);
        runs.insert(100..140);
        runs.insert(200..208);
        let found = |pages, skip| measure(&runs, pages, skip).unwrap_or(0..0);
        assert_eq!(
            found(33, true),
            100..133,
            "36 blocks of whole buddies, 64 before"
        );
        assert_eq!(found(100, false), 0..64);
        assert_eq!(found(100, true), 0..0);
    }
}
