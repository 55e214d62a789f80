//! Popular blocks of the array that are not in the cache, in larger pieces.

use super::levels::{LEVELS, LevelPlace, LevelQueue};
use fullstroke_units::{Duration, Time};
use std::collections::BTreeMap;

/// Time between two settings (`HOTSPOT_UPDATE_PERIOD`).
const HOTSPOT_PERIOD: Duration = Duration::from_secs(1);
/// Levels at the top of the hotspot queue with a number of their own (`nr_top_levels`).
const TOP_LEVELS: usize = 8;
/// Hits of levels from here on count as hits of the queue (`stats_init`: three quarters).
const HIT_LEVEL: usize = LEVELS * 3 / 4;

/// Hits of a queue.
#[derive(Clone, Copy, Debug, Default)]
struct QueueStats {
    hits: u64,
    misses: u64,
}

impl QueueStats {
    /// Notes a hit in a level.
    pub(super) fn accessed(&mut self, level: usize) {
        match level >= HIT_LEVEL {
            true => self.hits += 1,
            false => self.misses += 1,
        }
    }

    /// Notes an access of a block that the queue does not have.
    pub(super) fn missed(&mut self) {
        self.misses += 1;
    }

    /// Returns 0 for a poor queue, 1 for a fair one, 2 for a good one
    /// (`stats_assess`: below a sixteenth, below an eighth).
    pub(super) fn assess(&self) -> usize {
        let all = self.hits + self.misses;
        if self.hits * 16 < all || all == 0 {
            0
        } else {
            1 + usize::from(self.hits * 8 >= all)
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct HotBlock {
    block: u64,
    hit: bool,
    place: LevelPlace,
}

/// The hotspot queue.
pub(super) struct Hotspots {
    blocks: Vec<HotBlock>,
    table: BTreeMap<u64, u32>,
    queue: LevelQueue,
    most: usize,
    /// Blocks of the array in a hotspot block.
    per_block: u64,
    stats: QueueStats,
    level_jump: usize,
    /// Time of the next setting.
    next: Time,
}

impl Hotspots {
    /// Returns the queue of a cache with `count` blocks of `size` sectors before an array of
    /// `origin` sectors.
    pub(super) fn new(count: usize, size: u64, origin: u64) -> Hotspots {
        // `calc_hotspot_params`
        let most = (count / 4).max(1024);
        let mut per_block = 16;
        while per_block > 1 && per_block * size * most as u64 > origin {
            per_block /= 2;
        }
        let in_top = (most / LEVELS).min(count / per_block as usize);
        Hotspots {
            blocks: Vec::new(),
            table: BTreeMap::new(),
            queue: LevelQueue::new((TOP_LEVELS, in_top)),
            most,
            per_block,
            stats: QueueStats::default(),
            level_jump: 1,
            next: Time::ZERO,
        }
    }

    /// Notes an access of a block of the array. Returns the level of its hotspot block
    /// (`update_hotspot_queue`).
    pub(super) fn access(&mut self, block: u64) -> usize {
        let block = block / self.per_block;
        if let Some(&index) = self.table.get(&block) {
            return self.rise(index);
        }
        self.stats.missed();
        let index = match self.blocks.len() < self.most {
            true => {
                self.blocks.push(HotBlock::default());
                self.blocks.len() as u32 - 1
            }
            false => {
                let oldest = self.queue.below(LEVELS).next().unwrap_or(0);
                let old = self.blocks[oldest as usize];
                self.queue.remove(old.place);
                self.table.remove(&old.block);
                oldest
            }
        };
        let place = self.queue.push(index, 0);
        self.blocks[index as usize] = HotBlock {
            block,
            hit: false,
            place,
        };
        self.table.insert(block, index);
        assert!(
            self.table.len() <= self.most,
            "{} hotspot blocks, of at most {}",
            self.table.len(),
            self.most
        );
        0
    }

    fn rise(&mut self, index: u32) -> usize {
        let hot = self.blocks[index as usize];
        self.stats.accessed(hot.place.level);
        // A hit block rises once in a period (`update_hotspot_queue`).
        let jump = if hot.hit { 0 } else { self.level_jump };
        let level = (hot.place.level + jump).min(LEVELS - 1);
        if jump > 0
            && hot.place.level < LEVELS - 1
            && let Some(other) = self.queue.first_of(level)
        {
            self.queue.remove(self.blocks[other as usize].place);
            self.blocks[other as usize].place = self.queue.push(other, hot.place.level);
        }
        self.queue.remove(self.blocks[index as usize].place);
        let place = self.queue.push(index, level);
        self.blocks[index as usize] = HotBlock {
            hit: true,
            place,
            ..hot
        };
        level
    }

    /// Lets each block rise again.
    pub(super) fn tick(&mut self) {
        self.blocks.iter_mut().for_each(|hot| hot.hit = false);
    }

    /// Returns how well the queue predicts; see [`QueueStats::assess`].
    pub(super) fn assess(&self) -> usize {
        self.stats.assess()
    }

    /// Ends a period, if its time has come.
    pub(super) fn end_period(&mut self, now: Time) {
        if now < self.next {
            return;
        }
        self.level_jump = [4, 2, 1][self.stats.assess()];
        let blocks = &mut self.blocks;
        self.queue
            .redistribute(|index, place| blocks[index as usize].place = place);
        self.stats = QueueStats::default();
        self.next = now + HOTSPOT_PERIOD;
    }
}
