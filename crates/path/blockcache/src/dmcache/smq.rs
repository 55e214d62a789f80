//! The policy smq: stochastic multi-queue.

use super::levels::{LEVELS, LevelPlace, LevelQueue};
use fullstroke_units::{Duration, Time};
use std::collections::BTreeMap;

/// Times between two settings (`HOTSPOT_UPDATE_PERIOD`, `CACHE_UPDATE_PERIOD`), and between two ticks
/// of the target (`COMMIT_PERIOD`, dm-cache-target.c).
const HOTSPOT_PERIOD: Duration = Duration::from_secs(1);
const CACHE_PERIOD: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_secs(1);
/// Share of free blocks, in percent, once the cache was full (`FREE_TARGET`).
const FREE_TARGET: usize = 25;
/// Levels at the top of the hotspot queue with a number of their own (`nr_top_levels`).
const TOP_LEVELS: usize = 8;
/// Hits of levels from here on count as hits of the queue (`stats_init`: three quarters).
const HIT_LEVEL: usize = LEVELS * 3 / 4;
/// Promotion levels by the sixteenth of the accesses that hit (`default_promote_level`).
const PROMOTE: [usize; 17] = [1, 1, 1, 2, 4, 6, 7, 8, 7, 6, 4, 4, 3, 3, 2, 2, 1];

/// Hits of a queue.
#[derive(Clone, Copy, Debug, Default)]
struct QueueStats {
    hits: u64,
    misses: u64,
}

impl QueueStats {
    fn accessed(&mut self, level: usize) {
        match level >= HIT_LEVEL {
            true => self.hits += 1,
            false => self.misses += 1,
        }
    }

    /// Returns 0 for a poor queue, 1 for a fair one, 2 for a good one
    /// (`stats_assess`: below a sixteenth, below an eighth).
    fn assess(&self) -> usize {
        let all = self.hits + self.misses;
        if self.hits * 16 < all || all == 0 {
            0
        } else {
            1 + usize::from(self.hits * 8 >= all)
        }
    }
}

/// A block of the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CacheBlock {
    /// Block of the array.
    pub(super) block: u64,
    pub(super) dirty: bool,
    /// True while a copy of the block is in flight or about to begin. The block is in no queue.
    pub(super) pending: bool,
    /// True after a hit in this period.
    hit: bool,
    place: LevelPlace,
}

#[derive(Clone, Copy, Debug, Default)]
struct HotBlock {
    block: u64,
    hit: bool,
    place: LevelPlace,
}

/// smq.
///
/// Invariant: each mapped block is in the clean queue, in the dirty queue, or pending.
pub(super) struct Smq {
    pub(super) blocks: Vec<CacheBlock>,
    pub(super) free: Vec<u32>,
    table: BTreeMap<u64, u32>,
    clean: LevelQueue,
    dirty: LevelQueue,
    hot: Vec<HotBlock>,
    hot_table: BTreeMap<u64, u32>,
    hot_queue: LevelQueue,
    hot_most: usize,
    /// Blocks of the array in a hotspot block.
    per_hot: u64,
    hot_stats: QueueStats,
    stats: QueueStats,
    level_jump: usize,
    read_level: usize,
    write_level: usize,
    next_tick: Time,
    next_hotspot: Time,
    next_cache: Time,
}

impl Smq {
    /// Returns the policy for `count` blocks of `size` sectors before an array of `origin` sectors.
    pub(super) fn new(count: usize, size: u64, origin: u64) -> Smq {
        // `calc_hotspot_params`
        let hot_most = (count / 4).max(1024);
        let mut per_hot = 16;
        while per_hot > 1 && per_hot * size * hot_most as u64 > origin {
            per_hot /= 2;
        }
        let in_top = (hot_most / LEVELS).min(count / per_hot as usize);
        Smq {
            blocks: vec![CacheBlock::default(); count],
            free: (0..count as u32).rev().collect(),
            table: BTreeMap::new(),
            clean: LevelQueue::new((0, 0)),
            dirty: LevelQueue::new((0, 0)),
            hot: Vec::new(),
            hot_table: BTreeMap::new(),
            hot_queue: LevelQueue::new((TOP_LEVELS, in_top)),
            hot_most,
            per_hot,
            hot_stats: QueueStats::default(),
            stats: QueueStats::default(),
            level_jump: 1,
            read_level: LEVELS,
            write_level: LEVELS,
            next_tick: Time::ZERO,
            next_hotspot: Time::ZERO,
            next_cache: Time::ZERO,
        }
    }

    /// Number of dirty blocks, those under way to the array included.
    pub(super) fn dirty_blocks(&self) -> usize {
        let pending = self
            .table
            .values()
            .map(|&index| &self.blocks[index as usize]);
        self.dirty.len() + pending.filter(|block| block.dirty && block.pending).count()
    }

    /// Number of waiting dirty blocks.
    pub(super) fn dirty_waiting(&self) -> usize {
        self.dirty.len()
    }

    /// Returns the cache block of a block of the array.
    pub(super) fn lookup(&self, block: u64) -> Option<u32> {
        self.table.get(&block).copied()
    }

    /// Notes an access. Returns the cache block, and true if the block is to be promoted.
    pub(super) fn access(&mut self, now: Time, block: u64, write: bool) -> (Option<u32>, bool) {
        self.tick(now);
        if let Some(index) = self.lookup(block) {
            let level = self.blocks[index as usize].place.level;
            self.stats.accessed(level);
            self.requeue(index);
            return (Some(index), false);
        }
        self.stats.misses += 1;
        let level = self.access_hot(block / self.per_hot);
        let least = if write {
            self.write_level
        } else {
            self.read_level
        };
        (None, level >= least)
    }

    /// Lets a cache block rise one level, at most once a period (`requeue`). The first block of the
    /// level above takes its place.
    fn requeue(&mut self, index: u32) {
        let block = self.blocks[index as usize];
        if block.pending || block.hit {
            return;
        }
        self.blocks[index as usize].hit = true;
        let queue = match block.dirty {
            true => &mut self.dirty,
            false => &mut self.clean,
        };
        let level = block.place.level;
        let above = (level + 1).min(LEVELS - 1);
        // The first entry of the level above changes places, so that the levels keep their sizes
        // (`q_requeue`).
        if level < LEVELS - 1
            && let Some(other) = queue.first_of(above)
        {
            queue.remove(self.blocks[other as usize].place);
            self.blocks[other as usize].place = queue.push(other, level);
        }
        queue.remove(block.place);
        self.blocks[index as usize].place = queue.push(index, above);
    }

    /// Notes an access of a hotspot block. Returns its level (`update_hotspot_queue`).
    fn access_hot(&mut self, block: u64) -> usize {
        if let Some(&index) = self.hot_table.get(&block) {
            let hot = self.hot[index as usize];
            self.hot_stats.accessed(hot.place.level);
            // A hit block rises once in a period (`update_hotspot_queue`).
            let jump = if hot.hit { 0 } else { self.level_jump };
            let level = (hot.place.level + jump).min(LEVELS - 1);
            if jump > 0
                && hot.place.level < LEVELS - 1
                && let Some(other) = self.hot_queue.first_of(level)
            {
                self.hot_queue.remove(self.hot[other as usize].place);
                self.hot[other as usize].place = self.hot_queue.push(other, hot.place.level);
            }
            self.hot_queue.remove(self.hot[index as usize].place);
            let place = self.hot_queue.push(index, level);
            self.hot[index as usize] = HotBlock {
                hit: true,
                place,
                ..hot
            };
            return level;
        }
        self.hot_stats.misses += 1;
        let index = match self.hot.len() < self.hot_most {
            true => {
                self.hot.push(HotBlock::default());
                self.hot.len() as u32 - 1
            }
            false => {
                let oldest = self.hot_queue.below(LEVELS).next().unwrap_or(0);
                let old = self.hot[oldest as usize];
                self.hot_queue.remove(old.place);
                self.hot_table.remove(&old.block);
                oldest
            }
        };
        let place = self.hot_queue.push(index, 0);
        self.hot[index as usize] = HotBlock {
            block,
            hit: false,
            place,
        };
        self.hot_table.insert(block, index);
        0
    }

    /// Ends periods (`copy_tick`).
    fn tick(&mut self, now: Time) {
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        self.hot.iter_mut().for_each(|hot| hot.hit = false);
        self.update_promote_levels();
        if now >= self.next_hotspot {
            self.level_jump = [4, 2, 1][self.hot_stats.assess()];
            let hot = &mut self.hot;
            self.hot_queue
                .redistribute(|index, place| hot[index as usize].place = place);
            self.hot_stats = QueueStats::default();
            self.next_hotspot = now + HOTSPOT_PERIOD;
        }
        if now >= self.next_cache {
            let blocks = &mut self.blocks;
            blocks.iter_mut().for_each(|block| block.hit = false);
            for queue in [&mut self.dirty, &mut self.clean] {
                queue.redistribute(|index, place| blocks[index as usize].place = place);
            }
            self.stats = QueueStats::default();
            self.next_cache = now + CACHE_PERIOD;
        }
    }

    fn update_promote_levels(&mut self) {
        let all = self.stats.hits + self.stats.misses;
        let threshold = match self.free.is_empty() {
            true => PROMOTE[(self.stats.hits * 16).checked_div(all).unwrap_or(0) as usize],
            false => LEVELS / 2,
        };
        let threshold = threshold / [4, 2, 1][self.hot_stats.assess()];
        self.read_level = LEVELS - threshold;
        // A write must be more popular than a read by two levels (`update_promote_levels`).
        self.write_level = LEVELS - threshold + 2;
    }

    /// Takes a free block for a promotion.
    pub(super) fn take_free(&mut self, block: u64) -> Option<u32> {
        let index = self.free.pop()?;
        self.blocks[index as usize] = CacheBlock {
            block,
            pending: true,
            ..CacheBlock::default()
        };
        Some(index)
    }

    /// Puts a promoted block into the table, at the top (`__complete_background_work`).
    pub(super) fn promoted(&mut self, index: u32) {
        let place = self.clean.push(index, LEVELS - 1);
        let block = &mut self.blocks[index as usize];
        (block.pending, block.place) = (false, place);
        self.table.insert(block.block, index);
    }

    /// True if the cache has fewer free blocks than its target.
    pub(super) fn wants_demotion(&self) -> bool {
        self.free.len() < self.blocks.len() * FREE_TARGET / 100
    }

    /// Gives up the least popular clean block for which `may` is true. Only the lower half of the
    /// levels is looked at (`queue_demotion`). Returns false if there is none.
    pub(super) fn demote(&mut self, may: impl Fn(u32) -> bool) -> bool {
        let Some(index) = self.clean.below(LEVELS / 2).find(|&index| may(index)) else {
            return false;
        };
        let block = self.blocks[index as usize];
        self.clean.remove(block.place);
        self.table.remove(&block.block);
        self.free.push(index);
        true
    }

    /// Makes a block dirty or clean.
    pub(super) fn set_dirty(&mut self, index: u32, dirty: bool) {
        let block = self.blocks[index as usize];
        self.blocks[index as usize].dirty = dirty;
        if block.pending || block.dirty == dirty {
            return;
        }
        let queues = [&mut self.clean, &mut self.dirty];
        let [clean, dirty_queue] = queues;
        let (from, to) = match dirty {
            true => (clean, dirty_queue),
            false => (dirty_queue, clean),
        };
        from.remove(block.place);
        self.blocks[index as usize].place = to.push(index, block.place.level);
    }

    /// Returns the least popular dirty block for which `may` is true, and takes the block out of the
    /// queue.
    pub(super) fn take_dirty(&mut self, may: impl Fn(u32) -> bool) -> Option<u32> {
        let index = self.dirty.below(LEVELS).find(|&index| may(index))?;
        self.dirty.remove(self.blocks[index as usize].place);
        self.blocks[index as usize].pending = true;
        Some(index)
    }

    /// Handles the end of the write of a dirty block to the array.
    pub(super) fn cleaned(&mut self, index: u32) {
        let level = self.blocks[index as usize].place.level;
        let place = self.clean.push(index, level);
        let block = &mut self.blocks[index as usize];
        (block.pending, block.dirty, block.place) = (false, false, place);
    }

    /// Forgets a block of a queue.
    pub(super) fn forget(&mut self, index: u32) {
        let block = self.blocks[index as usize];
        match block.dirty {
            true => self.dirty.remove(block.place),
            false => self.clean.remove(block.place),
        }
        self.table.remove(&block.block);
        self.blocks[index as usize] = CacheBlock::default();
        self.free.push(index);
    }
}
