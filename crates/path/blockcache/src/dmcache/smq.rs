//! The policy smq: stochastic multi-queue.

use super::hotspots::Hotspots;
use super::levels::{LEVELS, LevelPlace, LevelQueue};
use fullstroke_units::{Duration, Time};
use std::collections::BTreeMap;

/// Time between two settings (`CACHE_UPDATE_PERIOD`), and between two ticks of the target
/// (`COMMIT_PERIOD`, dm-cache-target.c).
const CACHE_PERIOD: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_secs(1);
/// Period of the sentinels of the dirty queue (`WRITEBACK_PERIOD`).
const WRITEBACK_PERIOD: Duration = Duration::from_secs(10);
/// Share of free blocks, in percent, once the cache was full (`FREE_TARGET`).
const FREE_TARGET: usize = 25;

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
    /// Time since when the block is in its queue.
    since: Time,
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
    hotspots: Hotspots,
    promote_level: usize,
    next_tick: Time,
    next_cache: Time,
}

impl Smq {
    /// Returns the policy for `count` blocks of `size` sectors before an array of `origin` sectors.
    pub(super) fn new(count: usize, size: u64, origin: u64) -> Smq {
        Smq {
            blocks: vec![CacheBlock::default(); count],
            free: (0..count as u32).rev().collect(),
            table: BTreeMap::new(),
            clean: LevelQueue::new((0, 0)),
            dirty: LevelQueue::new((0, 0)),
            hotspots: Hotspots::new(count, size, origin),
            promote_level: LEVELS,
            next_tick: Time::ZERO,
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
    pub(super) fn access(&mut self, now: Time, block: u64) -> (Option<u32>, bool) {
        self.tick(now);
        if let Some(index) = self.lookup(block) {
            self.requeue(now, index);
            return (Some(index), false);
        }
        (None, self.hotspots.access(block) >= self.promote_level)
    }

    /// Lets a cache block rise one level, at most once a period (`requeue`). The first block of the
    /// level above takes its place.
    fn requeue(&mut self, now: Time, index: u32) {
        let block = self.blocks[index as usize];
        if block.pending || block.hit {
            return;
        }
        (
            self.blocks[index as usize].hit,
            self.blocks[index as usize].since,
        ) = (true, now);
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

    /// Ends periods (`copy_tick`).
    fn tick(&mut self, now: Time) {
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        self.hotspots.tick();
        self.update_promote_level();
        self.hotspots.end_period(now);
        if now >= self.next_cache {
            let blocks = &mut self.blocks;
            blocks.iter_mut().for_each(|block| block.hit = false);
            for queue in [&mut self.dirty, &mut self.clean] {
                queue.redistribute(|index, place| blocks[index as usize].place = place);
            }
            self.next_cache = now + CACHE_PERIOD;
        }
    }

    /// Sets the least level of a hotspot block whose blocks are promoted, the same for reads and writes.
    /// The kernel also has a threshold by the hits of the cache, and then takes the maximum of this
    /// threshold and all levels (`update_promote_levels`), so that the hotspot queue alone decides.
    fn update_promote_level(&mut self) {
        self.promote_level = LEVELS - LEVELS / [4, 2, 1][self.hotspots.assess()];
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
    pub(super) fn set_dirty(&mut self, now: Time, index: u32, dirty: bool) {
        let block = self.blocks[index as usize];
        (
            self.blocks[index as usize].dirty,
            self.blocks[index as usize].since,
        ) = (dirty, now);
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
    /// queue. Unless the array is idle, the block must be in the queue for a whole period: two sets of
    /// sentinels take turns to go to the ends of the queues, and `q_peek` stops at the older set.
    pub(super) fn take_dirty(
        &mut self,
        now: Time,
        idle: bool,
        may: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let period = |time: Time| time.as_nanos() / WRITEBACK_PERIOD.as_nanos();
        let blocks = &self.blocks;
        let waits = |index: u32| idle || period(blocks[index as usize].since) + 1 < period(now);
        let index = (self.dirty.below(LEVELS)).find(|&index| waits(index) && may(index))?;
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
