//! Allocator of ext2 up to Linux 2.6.23: `ext2_new_block` with pre-allocation.

use crate::groups::{FreeBlocks, Groups};
use crate::{FileError, MetaAccesses, PAGE_SECTORS};
use fullstroke_tracks::Boundaries;
use fullstroke_units::Lbn;
use std::ops::Range;

/// Blocks of one allocation, including the requested block (`EXT2_DEFAULT_PREALLOC_BLOCKS`).
const BLOCKS: u64 = 8;

/// Blocks set aside for one file (`i_prealloc_block`, `i_prealloc_count`).
#[derive(Debug, Default)]
pub(super) struct PreallocatedBlocks {
    run: Range<u64>,
}

impl PreallocatedBlocks {
    pub(super) fn blocks(&self) -> u64 {
        self.run.end - self.run.start
    }

    /// Frees the rest of the pool (`ext2_discard_prealloc`).
    pub(super) fn discard(&mut self, groups: &mut Groups, touches: &mut MetaAccesses) {
        if !self.run.is_empty() {
            groups.free_blocks(std::mem::take(&mut self.run), touches);
        }
    }
}

/// Allocates one block at `goal`, from the file's pool or near the goal (`ext2_alloc_block`).
/// Directories have no pool. With `tracks`, the pool is the rest of a track.
pub(super) fn block(
    groups: &mut Groups,
    goal: u64,
    pool: Option<&mut PreallocatedBlocks>,
    tracks: Option<&Boundaries>,
    touches: &mut MetaAccesses,
) -> Result<Range<u64>, FileError> {
    let Some(pool) = pool else {
        return new_block(groups, goal, 1, touches);
    };
    // The pool serves a goal at or just before its first block (`ext2_alloc_block`). With another
    // goal the file goes on elsewhere.
    if pool.run.is_empty() || (goal != pool.run.start && goal + 1 != pool.run.start) {
        pool.discard(groups, touches);
        let track = tracks.and_then(|tracks| new_track(groups, goal, tracks, touches));
        pool.run = match track {
            Some(track) => track,
            None => new_block(groups, goal, BLOCKS, touches)?,
        };
    }
    let block = pool.run.start;
    pool.run.start += 1;
    Ok(block..block + 1)
}

/// Allocates a track. The search takes the first track at or behind `goal` whose first block is
/// free, and continues at the beginning of the device. The result ends at the end of the track or
/// in front of a used block: "pre-allocation looks for the first block of a track [...] and then
/// allocates this track" (Qian & Wang, section 4.2). Returns `None` if no track has a free first
/// block.
fn new_track(
    groups: &mut Groups,
    goal: u64,
    tracks: &Boundaries,
    touches: &mut MetaAccesses,
) -> Option<Range<u64>> {
    let goal = if goal < groups.layout.blocks { goal } else { 0 };
    let first = groups.layout.group_of(goal);
    // One step more than there are groups: the last step searches the part of the goal's group in
    // front of the goal.
    let track = (0..=groups.count()).find_map(|step| {
        let group = (first + step) % groups.count();
        if groups.counts(group).blocks == 0 {
            return None;
        }
        let start = groups.layout.first_block(group);
        let from = if step == 0 { goal } else { start };
        let end = groups.layout.end_of_group(start);
        let runs = groups.blocks(group, touches);
        let whole = tracks_from(tracks, from).take_while(|track| track.start < end);
        let mut free = whole.filter_map(|track| {
            let run = runs.runs().run_at(track.start.checked_sub(start)?)?;
            Some(track.start..track.end.min(end).min(start + run.end))
        });
        free.next()
    })?;
    groups.take(track.clone(), touches);
    Some(track)
}

/// Yields the whole blocks of each track whose first whole block is at or behind `block`.
fn tracks_from(tracks: &Boundaries, block: u64) -> impl Iterator<Item = Range<u64>> + '_ {
    let all = tracks.tracks_from(Lbn(block * PAGE_SECTORS));
    all.map(|track| track.start.0.div_ceil(PAGE_SECTORS)..track.end().0 / PAGE_SECTORS)
        .filter(move |track| track.start >= block && !track.is_empty())
}

/// Allocates a block near `goal`, and up to `count` blocks with the free blocks behind it
/// (`ext2_new_block`).
fn new_block(
    groups: &mut Groups,
    goal: u64,
    count: u64,
    touches: &mut MetaAccesses,
) -> Result<Range<u64>, FileError> {
    let goal = if goal < groups.layout.blocks { goal } else { 0 };
    let first = groups.layout.group_of(goal);
    // One step more than there are groups: the last step searches the goal's group again, from its
    // beginning.
    for step in 0..=groups.count() {
        let group = (first + step) % groups.count();
        let free = u64::from(groups.counts(group).blocks);
        if free == 0 {
            continue;
        }
        let start = groups.layout.first_block(group);
        let within = if step == 0 { goal - start } else { 0 };
        let free_blocks = groups.blocks(group, touches);
        let Some(found) = grab(free_blocks, within) else {
            continue;
        };
        let end = free_blocks
            .runs()
            .run_at(found)
            .map_or(found + 1, |run| run.end.min(found + count.min(free)));
        let blocks = start + found..start + end;
        groups.take(blocks.clone(), touches);
        return Ok(blocks);
    }
    Err(FileError::NoSpace {
        needed: 1,
        free: groups.free_blocks,
    })
}

/// Chooses a free block: the goal; else a free block before the next multiple of 64; else the
/// beginning of a run that covers a whole byte of the bitmap; else any free block (`grab_block`).
fn grab(free: &FreeBlocks, goal: u64) -> Option<u64> {
    let runs = free.runs();
    if runs.contains(goal) {
        return Some(goal);
    }
    let near = (goal + 63) & !63;
    if let Some(found) = runs.first_in(goal..near) {
        return Some(found);
    }
    let from = if goal == 0 { 0 } else { near };
    free.run_with_byte(from)
        .or_else(|| runs.first_in(from..u64::MAX))
}

#[cfg(test)]
mod tests {
    use crate::runs::DisjointRuns;

    #[test]
    fn the_search_prefers_the_goal_then_the_neighbourhood_then_a_free_byte() {
        let mut runs = DisjointRuns::default();
        for range in [0..1, 70..72, 200..203, 306..330, 1000..1100] {
            runs.insert(range);
        }
        let grab = |runs: &DisjointRuns, goal| super::grab(&runs.clone().into(), goal);
        assert_eq!(grab(&runs, 201), Some(201));
        assert_eq!(grab(&runs, 66), Some(70), "before the next multiple of 64");
        assert_eq!(grab(&runs, 100), Some(306), "200 to 202 have no free byte");
        assert_eq!(grab(&runs, 400), Some(1000));
        assert_eq!(grab(&runs, 1100), None);
        assert_eq!(grab(&runs, 1), Some(306));
        runs.remove(306..2000);
        assert_eq!(grab(&runs, 100), Some(200), "no byte is free: any block");
    }
}
