//! Allocator of ext2 from Linux 2.6.24 on: reservation windows (`ext2_new_blocks`,
//! `ext2_try_to_allocate_with_rsv`, `alloc_new_reservation`).
//!
//! A window exists only in memory. Its blocks are free on the device, but other files with windows
//! avoid these blocks.

use crate::groups::{BLOCKS_PER_GROUP, Groups};
use crate::{FileError, MetaAccesses};
use std::collections::BTreeMap;
use std::ops::Range;

/// Smallest and largest window in blocks (`EXT2_DEFAULT_RESERVE_BLOCKS`,
/// `EXT2_MAX_RESERVE_BLOCKS`).
const SIZE: u64 = 8;
const SIZE_MAX: u64 = 1027;

/// Reservation window of one file.
#[derive(Debug)]
pub(super) struct ReservationWindow {
    run: Range<u64>,
    size: u64,
    hits: u64,
}

impl Default for ReservationWindow {
    fn default() -> ReservationWindow {
        ReservationWindow {
            run: 0..0,
            size: SIZE,
            hits: 0,
        }
    }
}

/// All windows: start → end.
#[derive(Debug, Default)]
pub(super) struct ReservationWindows {
    all: BTreeMap<u64, u64>,
}

impl ReservationWindows {
    /// Removes a window (`ext2_discard_reservation`).
    pub(super) fn remove(&mut self, window: &mut ReservationWindow) {
        if !window.run.is_empty() {
            self.all.remove(&window.run.start);
        }
        window.run = 0..0;
    }

    /// Returns the first position from `start` to `last` where `size` blocks overlap no window
    /// (`find_next_reservable_window`). The file's own old window counts too, so the search
    /// continues behind it.
    fn gap(&self, start: u64, last: u64, size: u64) -> Option<u64> {
        let before = self
            .all
            .range(..=start)
            .next_back()
            .map_or(start, |(_, &end)| end.max(start));
        let mut at = before;
        for (&next, &end) in self.all.range(start + 1..) {
            if at > last || at + size <= next {
                break;
            }
            at = end;
        }
        (at <= last).then_some(at)
    }
}

/// State that a search reads and changes.
pub(super) struct WindowSearch<'a> {
    pub(super) groups: &'a mut Groups,
    pub(super) windows: &'a mut ReservationWindows,
}

impl WindowSearch<'_> {
    /// Allocates up to `count` blocks near `goal` (`ext2_new_blocks`).
    pub(super) fn blocks(
        &mut self,
        goal: u64,
        count: u64,
        mut window: Option<&mut ReservationWindow>,
        touches: &mut MetaAccesses,
    ) -> Result<Range<u64>, FileError> {
        let goal = if goal < self.groups.layout.blocks {
            goal
        } else {
            0
        };
        let first = self.groups.layout.group_of(goal);
        // First with windows. If no group has room for a window, the second round takes any free
        // block, because the device may be nearly full (`ext2_new_blocks`).
        for reserve in [true, false] {
            if !reserve && window.is_none() {
                break;
            }
            for step in 0..=self.groups.count() {
                let group = (first + step) % self.groups.count();
                let free = u64::from(self.groups.counts(group).blocks);
                let size = window
                    .as_ref()
                    .filter(|_| reserve)
                    .map_or(0, |window| window.size);
                // If few blocks are free, the goal's group gets no new window, and other groups are
                // skipped.
                let scarce = if step == 0 {
                    free == 0
                } else {
                    free <= size / 2
                };
                if scarce {
                    continue;
                }
                let within = (step == 0).then_some(goal % BLOCKS_PER_GROUP);
                let mine = window.as_deref_mut().filter(|window| {
                    reserve && !(step == 0 && free < size && window.run.is_empty())
                });
                let found = match mine {
                    Some(window) => self.in_window(group, within, count, window, touches),
                    None => self.anywhere(group, within, count, touches),
                };
                if let Some(found) = found {
                    self.groups.take(found.clone(), touches);
                    return Ok(found);
                }
            }
        }
        Err(FileError::NoSpace {
            needed: count,
            free: self.groups.free_blocks,
        })
    }

    /// Allocates in the file's window, or in a new window (`ext2_try_to_allocate_with_rsv`).
    fn in_window(
        &mut self,
        group: u32,
        goal: Option<u64>,
        count: u64,
        window: &mut ReservationWindow,
        touches: &mut MetaAccesses,
    ) -> Option<Range<u64>> {
        let start = self.groups.layout.first_block(group);
        let last = self.groups.layout.end_of_group(start) - 1;
        let mut goal = goal.map(|goal| start + goal);
        let mut failed = false;
        loop {
            // `goal_in_my_reservation`.
            let suits = |window: &ReservationWindow, goal: Option<u64>| {
                let meets = window.run.start <= last && window.run.end > start;
                meets && goal.is_none_or(|goal| window.run.contains(&goal))
            };
            if window.run.is_empty() || failed || !suits(window, goal) {
                window.size = window.size.max(count);
                self.new_window(group, goal.unwrap_or(start), window, touches)?;
                // Any block of the new window will do if the goal is not in it.
                if !suits(window, goal) {
                    goal = None;
                }
            } else if let Some(goal) = goal
                && window.run.end - goal < count
            {
                self.extend(window, goal + count);
            }
            if let Some(found) = self.take_in(group, goal, count, window.run.clone(), touches) {
                window.hits += found.end - found.start;
                return Some(found);
            }
            failed = true;
        }
    }

    /// Extends the window to `end`, but not into the next window (`try_to_extend_reservation`).
    fn extend(&mut self, window: &mut ReservationWindow, end: u64) {
        let next = self
            .windows
            .all
            .range(window.run.start + 1..)
            .next()
            .map_or(u64::MAX, |(&next, _)| next);
        window.run.end = end.min(next).max(window.run.end);
        self.windows.all.insert(window.run.start, window.run.end);
    }

    /// Makes a window that begins at or behind `from` and contains a free block
    /// (`alloc_new_reservation`).
    fn new_window(
        &mut self,
        group: u32,
        from: u64,
        window: &mut ReservationWindow,
        touches: &mut MetaAccesses,
    ) -> Option<()> {
        let start = self.groups.layout.first_block(group);
        let end = self.groups.layout.end_of_group(start);
        if !window.run.is_empty() {
            let crosses = window.run.start < end && window.run.end > end;
            // The window's other part lies in the next group. The search for blocks there still
            // needs the window, so it is kept (`alloc_new_reservation`).
            if crosses && from >= window.run.start {
                return None;
            }
            // More than half of the window was used, so the file writes sequentially and gets a
            // window of twice the size (`alloc_new_reservation`).
            if window.hits > (window.run.end - window.run.start) / 2 {
                window.size = (window.size * 2).min(SIZE_MAX);
            }
        }
        let mut from = from;
        loop {
            // The file's own window is removed only after the search, so that the search continues
            // behind this window.
            let at = self.windows.gap(from, end - 1, window.size);
            self.windows.remove(window);
            let at = at?;
            let free = self
                .groups
                .blocks(group, touches)
                .runs()
                .first_in(at - start..end - start)?
                + start;
            if free < at + window.size {
                window.run = at..at + window.size;
                window.hits = 0;
                self.windows.all.insert(at, at + window.size);
                return Some(());
            }
            from = free;
        }
    }

    /// Takes up to `count` free blocks in `range`, from the goal on if the range contains the goal
    /// (`ext2_try_to_allocate` with a window).
    fn take_in(
        &mut self,
        group: u32,
        goal: Option<u64>,
        count: u64,
        range: Range<u64>,
        touches: &mut MetaAccesses,
    ) -> Option<Range<u64>> {
        let start = self.groups.layout.first_block(group);
        let end = range.end.min(self.groups.layout.end_of_group(start)) - start;
        let from = goal.unwrap_or(0).max(range.start).max(start) - start;
        let runs = self.groups.blocks(group, touches).runs();
        let found = runs.first_in(from..end)?;
        let run_end = runs.run_at(found)?.end.min(end).min(found + count);
        Some(start + found..start + run_end)
    }

    /// Takes blocks without a window (`ext2_try_to_allocate`, `find_next_usable_block`).
    fn anywhere(
        &mut self,
        group: u32,
        goal: Option<u64>,
        count: u64,
        touches: &mut MetaAccesses,
    ) -> Option<Range<u64>> {
        let start = self.groups.layout.first_block(group);
        let free = self.groups.blocks(group, touches);
        let runs = free.runs();
        let goal = goal.unwrap_or(0);
        let near = (goal + 63) & !63;
        let found = runs
            .first_in(goal..near.max(goal + 1))
            .or_else(|| free.run_with_byte(goal))
            .or_else(|| runs.first_in(goal..u64::MAX))?;
        let end = runs.run_at(found)?.end.min(found + count);
        Some(start + found..start + end)
    }
}
