//! dm-cache as a rule.

use super::config::{DmCacheConfig, DmCacheMode};
use super::host_io::HostIo;
use super::mappings::Mappings;
use super::smq::Smq;
use crate::rule::{CacheRule, CacheSite, CopyIo, Part};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{SECTOR_BYTES, Time};
use std::collections::{BTreeMap, VecDeque};

/// Waiting promotions (`btracker_create`, dm-cache-policy-smq.c: 4096 pieces of work).
const PROMOTIONS: usize = 4096;

/// Builds dm-cache from its keys.
///
/// # Errors
/// Names the invalid key.
pub(crate) fn build(keys: &Keys, site: CacheSite) -> Result<Box<dyn CacheRule>, ConfigError> {
    let config: DmCacheConfig = read(keys)?;
    let (blocks, metadata) = config.check(&site)?;
    let size = config.block.0 / SECTOR_BYTES;
    let threshold = config.threshold();
    Ok(Box::new(DmCache {
        mode: config.mode,
        size,
        origin: site.origin.0,
        metadata,
        threshold,
        smq: Smq::new(blocks as usize, size, site.origin.0),
        host: HostIo::new(blocks as usize),
        writes: BTreeMap::new(),
        migrating: BTreeMap::new(),
        promotions: VecDeque::new(),
        writebacks: 0,
        blocked: false,
        presses: false,
        mappings: Mappings::new(metadata),
        bypassed: 0,
    }))
}

/// dm-cache: blocks, chosen by smq.
///
/// Invariants: a block that migrates gets no write, and a block with a write in flight does not
/// migrate. A cache block with users is not given to other data.
struct DmCache {
    mode: DmCacheMode,
    /// Sectors of a block, of the array, and of the metadata.
    size: u64,
    origin: u64,
    metadata: u64,
    threshold: u64,
    smq: Smq,
    host: HostIo,
    /// Writes of the host in flight, by block of the array.
    writes: BTreeMap<u64, u32>,
    /// Blocks of the array under copy, with their cache blocks.
    migrating: BTreeMap<u64, u32>,
    /// Cache blocks whose promotion waits.
    promotions: VecDeque<u32>,
    writebacks: u64,
    /// True while every dirty block is in use. The next end of a part ends this.
    blocked: bool,
    /// True if a promotion found no clean block to give up.
    presses: bool,
    mappings: Mappings,
    bypassed: u64,
}

impl DmCache {
    fn place(&self, index: u32) -> u64 {
        self.metadata + u64::from(index) * self.size
    }

    fn index_at(&self, place: u64) -> u32 {
        ((place - self.metadata) / self.size) as u32
    }

    /// Sectors of a block of the array; the last block may be shorter.
    fn length(&self, block: u64) -> u64 {
        self.size.min(self.origin - block * self.size)
    }

    /// Returns the parts of a range by block: block, first sector, sectors.
    fn blocks_of(&self, start: u64, sectors: u64) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let (size, end) = (self.size, start + sectors);
        (start / size..end.div_ceil(size)).map(move |block| {
            let from = start.max(block * size);
            (block, from, end.min((block + 1) * size) - from)
        })
    }

    fn on_flash(&self, block: u64, index: u32, from: u64) -> u64 {
        self.place(index) + (from - block * self.size)
    }

    /// Lets a block be promoted, if there is room (`queue_promotion`). A full cache gives up a block
    /// first, and promotes the next time. Without a clean block to give up, a dirty block is written
    /// back under load as well (`queue_demotion`).
    fn promote(&mut self, block: u64) {
        let is_block = |&index: &u32| self.smq.blocks[index as usize].block == block;
        if self.migrating.contains_key(&block)
            || self.promotions.len() >= PROMOTIONS
            || self.promotions.iter().any(is_block)
        {
            return;
        }
        // Without a free block, the promotion is given up and frees a block for a later one
        // (`queue_promotion`).
        if self.smq.free.is_empty() {
            if self.smq.wants_demotion() {
                let host = &self.host;
                match self.smq.demote(|index| host.is_unused(index)) {
                    true => self.mappings.change(),
                    false => self.presses = true,
                }
            }
            return;
        }
        self.promotions.extend(self.smq.take_free(block));
    }

    fn end_part(&mut self, now: Time, part: &Part) {
        let index = part.cache.map(|place| self.index_at(place));
        self.host.end(now, part.origin, index);
        self.blocked = false;
    }

    /// Returns the copy of a waiting promotion, if one may begin.
    fn next_promotion(&mut self) -> Option<CopyIo> {
        let ready = |&index: &u32| {
            let block = self.smq.blocks[index as usize].block;
            !self.writes.contains_key(&block)
        };
        let at = self.promotions.iter().position(ready)?;
        let index = self.promotions.remove(at)?;
        let block = self.smq.blocks[index as usize].block;
        self.migrating.insert(block, index);
        Some(CopyIo {
            start: block * self.size,
            sectors: self.length(block),
            place: self.place(index),
            mark: index,
            promotes: true,
        })
    }

    /// Looks for a block, and promotes the block if the policy wants so. Returns the place of a hit,
    /// which then has one user more. With `passthrough` there are no hits.
    fn access(&mut self, now: Time, block: u64) -> Option<u32> {
        if self.mode == DmCacheMode::Passthrough {
            return None;
        }
        let (hit, promotes) = self.smq.access(now, block);
        if promotes {
            self.promote(block);
        }
        if let Some(index) = hit {
            self.host.enter(index);
        }
        hit
    }
}

impl CacheRule for DmCache {
    fn warm(&mut self, sectors: u64) -> u64 {
        let sectors = sectors.min(self.origin);
        for block in 0..sectors.div_ceil(self.size) {
            let Some(index) = self.smq.take_free(block) else {
                return block * self.size;
            };
            self.smq.promoted(index);
        }
        sectors
    }

    fn read(&mut self, now: Time, start: u64, sectors: u64, parts: &mut Vec<Part>) {
        for (block, from, length) in self.blocks_of(start, sectors) {
            parts.push(match self.access(now, block) {
                None => {
                    self.host.begin_on_array();
                    // A read that the policy has seen is a miss, and no bypass.
                    if self.mode == DmCacheMode::Passthrough {
                        self.bypassed += length;
                    }
                    Part::of_origin(from, length)
                }
                Some(index) => Part {
                    origin: false,
                    cache: Some(self.on_flash(block, index, from)),
                    ..Part::of_origin(from, length)
                },
            });
        }
    }

    fn write(
        &mut self,
        now: Time,
        start: u64,
        sectors: u64,
        _: bool,
        parts: &mut Vec<Part>,
    ) -> bool {
        // A migration locks its block for writes (`mg_lock_writes`).
        if (self.blocks_of(start, sectors)).any(|(block, ..)| self.migrating.contains_key(&block)) {
            return false;
        }
        for (block, from, length) in self.blocks_of(start, sectors) {
            *self.writes.entry(block).or_default() += 1;
            let Some(index) = self.access(now, block) else {
                self.host.begin_on_array();
                self.bypassed += length;
                parts.push(Part::of_origin(from, length));
                continue;
            };
            let back = self.mode == DmCacheMode::Writeback;
            if !back {
                self.host.begin_on_array();
            }
            if back && !self.smq.blocks[index as usize].dirty {
                self.smq.set_dirty(now, index, true);
                self.mappings.change_at(now);
                self.blocked = false;
            }
            parts.push(Part {
                origin: !back,
                cache: Some(self.on_flash(block, index, from)),
                ..Part::of_origin(from, length)
            });
        }
        true
    }

    fn discard(&mut self, start: u64, sectors: u64) -> bool {
        if (self.blocks_of(start, sectors)).any(|(block, ..)| self.migrating.contains_key(&block)) {
            return false;
        }
        let whole: Vec<u32> = (self.blocks_of(start, sectors))
            .filter(|&(block, _, length)| length == self.length(block))
            .filter_map(|(block, ..)| self.smq.lookup(block))
            .collect();
        for index in whole {
            if self.host.is_unused(index) {
                self.smq.forget(index);
                self.mappings.change();
            }
        }
        true
    }

    fn read_ended(&mut self, now: Time, part: &Part, _: bool) -> Option<Part> {
        self.end_part(now, part);
        None
    }

    fn write_ended(&mut self, now: Time, part: &Part, _: bool) {
        self.end_part(now, part);
        let block = part.start / self.size;
        if let Some(count) = self.writes.get_mut(&block) {
            *count -= 1;
            if *count == 0 {
                self.writes.remove(&block);
            }
        }
    }

    fn fill_ended(&mut self, _: Time, _: &Part) {}

    fn copy(&mut self, now: Time) -> Option<CopyIo> {
        if let Some(promotion) = self.next_promotion() {
            return Some(promotion);
        }
        let room = (self.writebacks + 1) * self.size <= self.threshold;
        let idle = now >= self.host.idle_at();
        if !room || !(idle || self.presses) {
            return None;
        }
        // One block for each promotion in vain.
        self.presses = false;
        let host = &self.host;
        let Some(index) = self
            .smq
            .take_dirty(now, idle, |index| host.is_unused(index))
        else {
            // Without this mark the alarm, which is due, would ask again and again.
            self.blocked = idle;
            return None;
        };
        let block = self.smq.blocks[index as usize].block;
        self.migrating.insert(block, index);
        self.writebacks += 1;
        Some(CopyIo {
            start: block * self.size,
            sectors: self.length(block),
            place: self.place(index),
            mark: index,
            promotes: false,
        })
    }

    fn copy_ended(&mut self, now: Time, copy: &CopyIo) {
        self.migrating.remove(&(copy.start / self.size));
        self.blocked = false;
        match copy.promotes {
            true => self.smq.promoted(copy.mark),
            false => {
                self.writebacks -= 1;
                self.smq.cleaned(copy.mark);
            }
        }
        self.mappings.change_at(now);
    }

    fn commit(&mut self, _: Time) -> Option<(u64, u64)> {
        self.mappings.have_changed().then(|| self.mappings.commit())
    }

    fn flushes_origin(&self) -> bool {
        true
    }

    fn alarm(&self) -> Time {
        let waits = self.smq.dirty_waiting() > 0 && !self.blocked;
        let room = (self.writebacks + 1) * self.size <= self.threshold;
        let idle = match waits && room {
            true => self.host.idle_at(),
            false => Time::NEVER,
        };
        idle.min(self.mappings.due())
    }

    fn timer(&mut self, now: Time) -> Option<(u64, u64)> {
        (self.mappings.due() <= now).then(|| self.mappings.commit())
    }

    fn dirty_sectors(&self) -> u64 {
        self.smq.dirty_blocks() as u64 * self.size
    }

    fn lose(&mut self) {
        self.promotions.clear();
    }

    fn count(&self, readings: &mut Vec<(&'static str, f64)>) {
        let mb = |sectors: u64| (sectors * SECTOR_BYTES) as f64 / 1e6;
        readings.extend([
            ("ssd_bypassed_mb", mb(self.bypassed)),
            ("ssd_map_mb", mb(self.mappings.written())),
        ]);
    }
}
