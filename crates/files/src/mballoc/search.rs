//! Where a run of free blocks is found (`ext4_mb_regular_allocator`).

use super::Aim;
use crate::groups::Groups;
use crate::runs::Runs;
use std::ops::Range;

/// The largest buddy: `MB_NUM_ORDERS` − 1 for blocks of 4 KiB.
const ORDER_MAX: u32 = 13;
/// Requests from 2^1 blocks on are sought among buddies (`MB_DEFAULT_ORDER2_REQS`).
const ORDER_MIN: u32 = 1;
/// Runs of a group that are looked at before the best of them is taken, and before
/// the search is given up (`MB_DEFAULT_MIN_TO_SCAN`, `MB_DEFAULT_MAX_TO_SCAN`).
const SCAN_MIN: usize = 10;
const SCAN_MAX: usize = 200;

/// What a group must have to be searched (`enum criteria`), each weaker than the one
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Criterion {
    /// A buddy of the length asked for, which is a power of two.
    Buddy(u32),
    /// Runs that are as long on average.
    LongRuns,
    /// As many free blocks.
    Blocks,
    /// Any free block.
    Any,
}

/// The run at the goal, if that is wanted and free; else one in the goal's group or
/// the groups behind it.
pub(super) fn regular(groups: &mut Groups, aim: &Aim) -> Option<Range<u64>> {
    if aim.at_goal
        && let Some(found) = at_goal(groups, aim)
    {
        return Some(found);
    }
    let goal = if aim.goal < groups.layout.blocks { aim.goal } else { 0 };
    let first = groups.layout.group_of(goal);
    let order = aim.pages.ilog2();
    let buddy = aim.pages.is_power_of_two() && (ORDER_MIN..=ORDER_MAX).contains(&order);
    let criteria = [Criterion::Buddy(order), Criterion::LongRuns, Criterion::Blocks, Criterion::Any];
    let mut best = None;
    for criterion in &criteria[usize::from(!buddy)..] {
        for step in 0..groups.count() {
            let group = (first + step) % groups.count();
            if u64::from(groups.counts(group).blocks) == 0 || skipped(groups, group, aim, *criterion) {
                continue;
            }
            let whole = matches!(criterion, Criterion::Buddy(_) | Criterion::LongRuns);
            if whole && groups.longest(group) < aim.pages {
                continue;
            }
            let start = groups.layout.first_block(group);
            let runs = groups.searched(group);
            if !suits(runs, aim, *criterion) {
                continue;
            }
            match scan(runs, aim, *criterion) {
                Some(Found::Enough(run)) => return Some(start + run.start..start + run.end),
                Some(Found::Best(run)) => longer(&mut best, start + run.start..start + run.end),
                None => groups.measure_longest(group),
            }
        }
        // The longest that was seen (`ext4_mb_try_best_found`).
        if let Some(best) = best {
            return Some(best);
        }
    }
    None
}

fn longer(best: &mut Option<Range<u64>>, found: Range<u64>) {
    let length = |run: &Range<u64>| run.end - run.start;
    if best.as_ref().is_none_or(|best| length(&found) > length(best)) {
        *best = Some(found);
    }
}

/// The first group of a flex group is left to directories and metadata
/// (`ext4_mb_good_group`, `EXT4_FLEX_SIZE_DIR_ALLOC_SCHEME`).
fn skipped(groups: &Groups, group: u32, aim: &Aim, criterion: Criterion) -> bool {
    let flex = groups.layout.flex;
    matches!(criterion, Criterion::Buddy(_)) && aim.data && flex >= 4 && group.is_multiple_of(flex)
}

/// As long a run as asked for, from the goal on (`ext4_mb_find_by_goal`).
fn at_goal(groups: &mut Groups, aim: &Aim) -> Option<Range<u64>> {
    if aim.goal >= groups.layout.blocks {
        return None;
    }
    let group = groups.layout.group_of(aim.goal);
    let start = groups.layout.first_block(group);
    let run = groups.searched(group).run_at(aim.goal - start)?;
    (run.end + start >= aim.goal + aim.pages).then(|| aim.goal..aim.goal + aim.pages)
}

fn suits(runs: &Runs, aim: &Aim, criterion: Criterion) -> bool {
    match criterion {
        // Whether there is such a buddy is seen by looking for it.
        Criterion::Buddy(_) | Criterion::Any => true,
        Criterion::LongRuns => runs.total() >= aim.pages * runs.count() as u64,
        Criterion::Blocks => runs.total() >= aim.pages,
    }
}

/// What a group offers.
enum Found {
    /// As long as asked for.
    Enough(Range<u64>),
    /// The longest, but shorter.
    Best(Range<u64>),
}

fn scan(runs: &Runs, aim: &Aim, criterion: Criterion) -> Option<Found> {
    match criterion {
        Criterion::Buddy(order) => {
            let start = smallest_buddy(runs, order)?;
            Some(Found::Enough(start..start + aim.pages))
        }
        _ => measure(runs, aim, criterion == Criterion::LongRuns),
    }
}

/// The first of the smallest buddies that are no smaller than 2^`order`
/// (`ext4_mb_simple_scan_group`).
fn smallest_buddy(runs: &Runs, order: u32) -> Option<u64> {
    let mut best: Option<(u32, u64)> = None;
    for run in runs.iter() {
        let mut at = run.start;
        while at < run.end {
            let buddy = buddy_at(at, run.end);
            if buddy >= order && best.is_none_or(|(smallest, _)| buddy < smallest) {
                if buddy == order {
                    return Some(at);
                }
                best = Some((buddy, at));
            }
            at += 1 << buddy;
        }
    }
    best.map(|(_, at)| at)
}

/// The largest buddy that begins at `at` and ends within the run.
fn buddy_at(at: u64, end: u64) -> u32 {
    let aligned = if at == 0 { ORDER_MAX } else { at.trailing_zeros() };
    aligned.min((end - at).ilog2()).min(ORDER_MAX)
}

/// Runs one after the other; the shortest that is long enough, of those that are
/// looked at (`ext4_mb_complex_scan_group`, `ext4_mb_measure_extent`).
fn measure(runs: &Runs, aim: &Aim, skip_short: bool) -> Option<Found> {
    let mut best: Option<Range<u64>> = None;
    let mut looked_at = 0;
    let length = |run: &Range<u64>| run.end - run.start;
    'runs: for run in runs.iter() {
        let mut at = run.start;
        while at < run.end {
            if skip_short && run.end - at < aim.pages {
                break;
            }
            // Whole buddies, until they are enough (`mb_find_extent`).
            let mut end = at;
            while end < run.end && end - at < aim.pages {
                end += 1 << buddy_at(end, run.end);
            }
            let extent = at..end;
            at = end;
            looked_at += 1;
            let better = match &best {
                None => true,
                Some(best) if length(best) < aim.pages => length(&extent) > length(best),
                Some(best) => length(&extent) >= aim.pages && length(&extent) < length(best),
            };
            if better {
                best = Some(extent);
            }
            let enough = best.as_ref().is_some_and(|best| length(best) >= aim.pages);
            let exact = best.as_ref().is_some_and(|best| length(best) == aim.pages);
            if exact || looked_at > SCAN_MAX || (enough && looked_at > SCAN_MIN) {
                break 'runs;
            }
        }
    }
    let best = best?;
    let found = best.start..best.end.min(best.start + aim.pages);
    Some(if length(&found) == aim.pages { Found::Enough(found) } else { Found::Best(found) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_of_two_goes_to_the_smallest_buddy_that_holds_it() {
        // As group 1 of an ext4 of 3 GiB: from 385 on.
        let runs = Runs::of(385..32_768);
        assert_eq!(smallest_buddy(&runs, 9), Some(512));
        assert_eq!(smallest_buddy(&runs, 4), Some(400));
        assert_eq!(smallest_buddy(&runs, 7), Some(512), "there are none of 2^7 and 2^8");
        assert_eq!(smallest_buddy(&Runs::of(1..4), 2), None);
    }

    #[test]
    fn other_lengths_go_to_the_shortest_run_that_holds_them() {
        let mut runs = Runs::of(0..64);
        runs.insert(100..140);
        runs.insert(200..208);
        let aim = |pages| Aim { page: 0, pages, goal: 0, at_goal: false, data: true };
        let found = |pages, skip| match measure(&runs, &aim(pages), skip) {
            Some(Found::Enough(run)) => (run, true),
            Some(Found::Best(run)) => (run, false),
            None => (0..0, false),
        };
        assert_eq!(found(33, true), (100..133, true), "36 blocks of whole buddies, 64 before");
        assert_eq!(found(100, false), (0..64, false));
        assert_eq!(found(100, true), (0..0, false));
    }
}
