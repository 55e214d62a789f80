//! The requests of a round on their way to the device. The list is sorted upwards from the position
//! of the device. Merges and slices do not change the list. Reads and writes keep their order, as
//! in `elv_dispatch_sort` of `block/elevator.c`, Linux 2.6.24.

use super::super::forest::{Forest, SlotTree};
use std::collections::VecDeque;

/// Requests of one direction, chosen in succession.
#[derive(Clone, Copy, Debug)]
struct DirectionRun {
    writes: bool,
    sorted: SlotTree,
}

/// A list: filled when empty, and then dispatched completely.
#[derive(Debug, Default)]
pub(super) struct DispatchList {
    runs: VecDeque<DirectionRun>,
    forest: Forest,
    /// Position of the device at the time of filling.
    origin: u64,
}

impl DispatchList {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Begins to fill the empty list. The device is at `origin`.
    pub(super) fn begin(&mut self, origin: u64) {
        assert!(
            self.runs.is_empty(),
            "the list is filled anew while requests are in it"
        );
        self.origin = origin;
    }

    /// Adds a request to the last run if the run has the same direction, otherwise to a new run. A
    /// run is sorted upwards from the origin. Addresses below the origin come last.
    pub(super) fn push(&mut self, slot: u32, start: u64, writes: bool) {
        let key = self.key(start);
        // `elv_dispatch_sort` never sorts across a change between reads and writes.
        if self.runs.back().is_none_or(|run| run.writes != writes) {
            self.runs.push_back(DirectionRun {
                writes,
                sorted: SlotTree::default(),
            });
        }
        if let Some(run) = self.runs.back_mut() {
            self.forest.insert(&mut run.sorted, key, slot);
        }
    }

    /// Removes and returns the next request.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let run = self.runs.front_mut()?;
        let slot = self.forest.first(&run.sorted)?;
        self.forest.remove(&mut run.sorted, slot);
        if run.sorted.is_empty() {
            self.runs.pop_front();
        }
        Some(slot)
    }

    /// True if the list has a request with this start.
    pub(super) fn holds(&self, start: u64) -> bool {
        let key = self.key(start);
        let found = |run: &DirectionRun| self.forest.at_or_after(&run.sorted, key);
        self.runs
            .iter()
            .filter_map(found)
            .any(|slot| self.forest.key(slot) == key)
    }

    /// Returns the sort key: addresses below the origin wrap, and so come last.
    fn key(&self, start: u64) -> u64 {
        // Addresses before the origin wrap to large keys, so one sweep goes up from the origin and
        // round to the start.
        start.wrapping_sub(self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_run_of_a_direction_goes_once_around_from_the_origin(
            chosen in prop::collection::vec((0u64..1000, any::<bool>()), 1..60), origin in 0u64..1000,
        ) {
            let mut list = DispatchList::default();
            list.begin(origin);
            for (slot, &(start, writes)) in (0..).zip(&chosen) {
                list.push(slot, start, writes);
            }
            let mut expected: Vec<u32> = Vec::new();
            let all: Vec<u32> = (0..chosen.len() as u32).collect();
            for run in all.chunk_by(|&one, &other| chosen[one as usize].1 == chosen[other as usize].1) {
                let mut run = run.to_vec();
                run.sort_by_key(|&slot| (chosen[slot as usize].0 < origin, chosen[slot as usize].0));
                expected.extend(run);
            }
            prop_assert!(chosen.iter().all(|&(start, _)| list.holds(start)));
            let popped: Vec<u32> = std::iter::from_fn(|| list.pop()).collect();
            prop_assert_eq!(popped, expected);
            prop_assert!(list.is_empty() && !list.holds(chosen[0].0));
        }
    }
}
