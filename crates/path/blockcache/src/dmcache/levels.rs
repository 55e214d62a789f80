//! Queues of levels (`struct queue`, dm-cache-policy-smq.c).

use std::collections::BTreeMap;

/// Number of levels (`NR_CACHE_LEVELS`, `NR_HOTSPOT_LEVELS`).
pub(super) const LEVELS: usize = 64;

/// Place of an entry in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LevelPlace {
    pub(super) level: usize,
    order: u64,
}

/// Entries in levels. Popular entries rise, one level a hit and period. Each level is a list in the
/// order of arrival.
#[derive(Clone, Debug)]
pub(super) struct LevelQueue {
    levels: Vec<BTreeMap<u64, u32>>,
    /// Levels at the top with a number of entries of their own, and this number.
    top: (usize, usize),
    count: usize,
    next_order: u64,
}

impl LevelQueue {
    pub(super) fn new(top: (usize, usize)) -> LevelQueue {
        LevelQueue {
            levels: vec![BTreeMap::new(); LEVELS],
            top,
            count: 0,
            next_order: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds an entry at the end of a level.
    pub(super) fn push(&mut self, entry: u32, level: usize) -> LevelPlace {
        self.next_order += 1;
        let order = self.next_order;
        self.levels[level].insert(order, entry);
        self.count += 1;
        LevelPlace { level, order }
    }

    pub(super) fn remove(&mut self, place: LevelPlace) {
        if self.levels[place.level].remove(&place.order).is_some() {
            self.count -= 1;
        }
    }

    /// Returns the first entry of a level.
    pub(super) fn first_of(&self, level: usize) -> Option<u32> {
        self.levels[level].values().next().copied()
    }

    /// Returns the entries below `level`, the least popular first.
    pub(super) fn below(&self, level: usize) -> impl Iterator<Item = u32> + '_ {
        self.levels[..level]
            .iter()
            .flat_map(BTreeMap::values)
            .copied()
    }

    /// Spreads the entries evenly over the levels (`q_redistribute`). Calls `moved` with each entry
    /// and its new place.
    pub(super) fn redistribute(&mut self, mut moved: impl FnMut(u32, LevelPlace)) {
        for level in 0..LEVELS - 1 {
            let target = self.target(level);
            while self.levels[level].len() < target {
                let above = (level + 1..LEVELS).find(|&above| !self.levels[above].is_empty());
                let Some((_, entry)) = above.and_then(|above| self.levels[above].pop_first())
                else {
                    break;
                };
                self.count -= 1;
                moved(entry, self.push(entry, level));
            }
            while self.levels[level].len() > target {
                let Some((_, entry)) = self.levels[level].pop_last() else {
                    break;
                };
                self.count -= 1;
                moved(entry, self.push(entry, level + 1));
            }
        }
    }

    /// Number of entries that a level should have (`q_set_targets`).
    fn target(&self, level: usize) -> usize {
        let (top_levels, in_top) = self.top;
        let below = LEVELS - top_levels;
        let (entries, levels, at) = match level >= below {
            true => (in_top, top_levels, level - below),
            false => (self.count.saturating_sub(in_top), below, level),
        };
        entries / levels + usize::from(at < entries % levels)
    }
}
