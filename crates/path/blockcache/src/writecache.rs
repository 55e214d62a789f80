//! Linux's dm-writecache on a flash device (drivers/md/dm-writecache.c, Linux 6.1).
//!
//! Writes go to free blocks of the flash device, and reads find them there. When few blocks are
//! free, the oldest blocks are written to the array. Reads of the array are not kept.
//!
//! Left out: persistent memory, `cleaner`, `pause_writeback` and `max_age`.

use crate::rule::{CacheRule, CacheSite, CopyIo, Part};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a block's entry in the metadata (`struct wc_memory_entry`), and of the header.
const ENTRY_BYTES: u64 = 16;
const HEADER_BYTES: u64 = 64;
/// Unit in which changed metadata are written (`BITMAP_GRANULARITY`).
const MAP_UNIT: u64 = 65_536;
/// Largest number of blocks of one copy. A bio takes 256 pages.
const COPY_BLOCKS: u64 = 256;

/// The keys of dm-writecache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WritecacheConfig {
    /// Size of a block. Default 4KiB.
    #[serde(default = "four_kib")]
    pub block: Bytes,
    /// Share of used blocks, in percent, at which writing back begins. Default 50.
    #[serde(default = "fifty")]
    pub high_watermark: u32,
    /// Share of used blocks, in percent, at which writing back ends. Default 45.
    #[serde(default = "forty_five")]
    pub low_watermark: u32,
    /// Blocks written back at once. 0 = no limit (default).
    #[serde(default)]
    pub writeback_jobs: u32,
    /// Number of written blocks after which the metadata are written. Default 65536.
    #[serde(default = "autocommit")]
    pub autocommit_blocks: u64,
    /// Time after a write at which the metadata are written. Default 1s.
    #[serde(default = "one_second")]
    pub autocommit_time: Duration,
}

fn four_kib() -> Bytes {
    Bytes(4096)
}
fn fifty() -> u32 {
    // HIGH_WATERMARK, LOW_WATERMARK and AUTOCOMMIT_BLOCKS_SSD of dm-writecache.c.
    50
}
fn forty_five() -> u32 {
    45
}
fn autocommit() -> u64 {
    65_536
}
fn one_second() -> Duration {
    Duration::from_secs(1)
}

impl WritecacheConfig {
    /// Checks the keys. Returns the number of blocks, and the sectors of the metadata.
    fn check(&self, site: &CacheSite) -> Result<(u64, u64), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        if !self.block.0.is_power_of_two() || !(512..=4096).contains(&self.block.0) {
            let message = format!(
                "found {}; expected a power of two from 512B to 4KiB, the size of a page",
                self.block
            );
            return refuse("block", message);
        }
        if self.high_watermark > 100 {
            let message = format!("found {}; expected 0 to 100", self.high_watermark);
            return refuse("high_watermark", message);
        }
        if self.low_watermark > self.high_watermark {
            let message = format!(
                "found {}; expected at most high_watermark, {}, because writing back ends below the share at which it begins",
                self.low_watermark, self.high_watermark
            );
            return refuse("low_watermark", message);
        }
        if self.autocommit_blocks == 0 {
            return refuse("autocommit_blocks", "found 0; expected 1 or more".into());
        }
        let bytes = site.cache.bytes().0;
        let blocks =
            bytes.saturating_sub(HEADER_BYTES + self.block.0) / (self.block.0 + ENTRY_BYTES);
        if blocks < 16 {
            let message = format!(
                "found {}; the metadata and 16 blocks of {} need more",
                site.cache.bytes(),
                self.block
            );
            return refuse("size", message);
        }
        let metadata = (HEADER_BYTES + blocks * ENTRY_BYTES).next_multiple_of(self.block.0);
        Ok((blocks, metadata / SECTOR_BYTES))
    }
}

/// Builds dm-writecache from its keys.
///
/// # Errors
/// Names the invalid key.
pub(crate) fn build(keys: &Keys, site: CacheSite) -> Result<Box<dyn CacheRule>, ConfigError> {
    let config: WritecacheConfig = read(keys)?;
    let (blocks, metadata) = config.check(&site)?;
    Ok(Box::new(Writecache::new(&config, blocks, metadata)))
}

/// A block of the flash device with data.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Block of the array, divided by the size of a block.
    block: u64,
    /// Number of the last write, for the order of writing back.
    age: u64,
    /// I/Os of the host in flight to the block.
    users: u32,
    /// True while a copy is in flight.
    leaves: bool,
    /// True if the map has the entry.
    mapped: bool,
}

/// dm-writecache.
struct Writecache {
    /// Sectors of a block.
    size: u64,
    metadata: u64,
    entries: Vec<Option<Entry>>,
    free: BTreeSet<u32>,
    /// Where the search for free blocks goes on: free blocks are taken in order of their places
    /// (`WC_MODE_SORT_FREELIST`).
    next_free: u32,
    map: BTreeMap<u64, u32>,
    /// Mapped entries that are not being copied, by age.
    by_age: BTreeMap<u64, u32>,
    age: u64,
    /// Free blocks at which writing back begins, and at which writing back ends.
    begins_at: usize,
    ends_at: usize,
    writing_back: bool,
    jobs: usize,
    leaving: usize,
    /// Blocks of the array that copies in flight write.
    copying: BTreeSet<u64>,
    /// Blocks of the array with direct writes in flight.
    direct: Vec<u64>,
    commits: Commits,
    bypassed: u64,
    /// Sectors of metadata written.
    written: u64,
}

/// Writes of the metadata.
#[derive(Clone, Copy, Debug)]
struct Commits {
    blocks: u64,
    limit: u64,
    delay: Duration,
    due: Time,
    /// First and last changed entry.
    changed: Option<(u32, u32)>,
}

impl Writecache {
    fn new(config: &WritecacheConfig, blocks: u64, metadata: u64) -> Writecache {
        let share = |percent: u32| (blocks * u64::from(100 - percent.min(100)) / 100) as usize;
        Writecache {
            size: config.block.0 / SECTOR_BYTES,
            metadata,
            entries: vec![None; blocks as usize],
            free: (0..blocks as u32).collect(),
            next_free: 0,
            map: BTreeMap::new(),
            by_age: BTreeMap::new(),
            age: 0,
            begins_at: share(config.high_watermark),
            ends_at: share(config.low_watermark),
            writing_back: false,
            jobs: match config.writeback_jobs {
                0 => usize::MAX,
                jobs => jobs as usize,
            },
            leaving: 0,
            copying: BTreeSet::new(),
            direct: Vec::new(),
            commits: Commits {
                blocks: 0,
                limit: config.autocommit_blocks,
                delay: config.autocommit_time,
                due: Time::NEVER,
                changed: None,
            },
            bypassed: 0,
            written: 0,
        }
    }

    fn place(&self, entry: u32) -> u64 {
        self.metadata + u64::from(entry) * self.size
    }

    fn entry_at(&self, place: u64) -> u32 {
        ((place - self.metadata) / self.size) as u32
    }

    fn entry(&mut self, index: u32) -> &mut Entry {
        self.entries[index as usize]
            .as_mut()
            .unwrap_or_else(|| unreachable!("an I/O uses a free block"))
    }

    /// Takes the next free block in the order of places.
    fn take_free(&mut self) -> Option<u32> {
        let after = self.free.range(self.next_free..).next().copied();
        let index = after.or_else(|| self.free.first().copied())?;
        self.free.remove(&index);
        self.next_free = index + 1;
        Some(index)
    }

    /// True if a copy of an entry may begin: nobody uses the entry, and no older copy of the block is
    /// in flight.
    fn may_leave(&self, entry: &Entry) -> bool {
        entry.users == 0 && !entry.leaves && !self.copying.contains(&entry.block)
    }

    fn release(&mut self, index: u32) {
        self.entries[index as usize] = None;
        self.free.insert(index);
    }

    /// Lets an entry go if nobody uses the entry, and the map does not have it.
    fn drop_unused(&mut self, index: u32) {
        let entry = *self.entry(index);
        if !entry.mapped && !entry.leaves && entry.users == 0 {
            self.release(index);
        }
    }

    /// Takes an entry out of the map.
    fn unmap(&mut self, index: u32) {
        let entry = self.entry(index);
        entry.mapped = false;
        let (block, age) = (entry.block, entry.age);
        self.map.remove(&block);
        self.by_age.remove(&age);
        self.changed(index);
        self.drop_unused(index);
    }

    fn changed(&mut self, index: u32) {
        self.commits.changed = Some(match self.commits.changed {
            None => (index, index),
            Some((first, last)) => (first.min(index), last.max(index)),
        });
    }

    /// Returns the parts of a range in blocks: block number, first sector, sectors.
    fn blocks_of(&self, start: u64, sectors: u64) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let (size, end) = (self.size, start + sectors);
        (start / size..end.div_ceil(size)).map(move |block| {
            let from = start.max(block * size);
            (block, from, end.min((block + 1) * size) - from)
        })
    }

    /// Adds a part, joined to the part before if both are neighbours on both sides.
    fn join(parts: &mut Vec<Part>, next: Part) {
        if let Some(last) = parts.last_mut()
            && last.end() == next.start
            && last.origin == next.origin
            && last.mark == next.mark
            && last.cache.map(|place| place + last.sectors) == next.cache
        {
            last.sectors += next.sectors;
            return;
        }
        parts.push(next);
    }

    /// Returns the entries of a part on the flash device.
    fn entries_of(&self, part: &Part) -> std::ops::Range<u32> {
        match part.cache {
            None => 0..0,
            Some(place) => {
                let last = place + part.sectors - 1;
                self.entry_at(place)..self.entry_at(last) + 1
            }
        }
    }

    fn write_map(&mut self) -> (u64, u64) {
        let (first, last) = self.commits.changed.take().unwrap_or((0, 0));
        let unit = |entry: u32| (HEADER_BYTES + u64::from(entry) * ENTRY_BYTES) / MAP_UNIT;
        let step = MAP_UNIT / SECTOR_BYTES;
        let from = unit(first) * step;
        let to = ((unit(last) + 1) * step).min(self.metadata);
        self.commits.blocks = 0;
        self.commits.due = Time::NEVER;
        self.written += to - from;
        (from, to - from)
    }
}

impl CacheRule for Writecache {
    fn read(&mut self, _: Time, start: u64, sectors: u64, parts: &mut Vec<Part>) {
        for (block, from, length) in self.blocks_of(start, sectors) {
            let next = match self.map.get(&block).copied() {
                None => Part::of_origin(from, length),
                Some(index) => {
                    self.entry(index).users += 1;
                    Part {
                        origin: false,
                        cache: Some(self.place(index) + (from - block * self.size)),
                        ..Part::of_origin(from, length)
                    }
                }
            };
            Writecache::join(parts, next);
        }
    }

    fn write(&mut self, _: Time, start: u64, sectors: u64, _: bool, parts: &mut Vec<Part>) -> bool {
        // dm-writecache takes whole blocks only, as its logical blocks are those of the cache. Here a
        // part of a block goes to the block's entry or, without an entry, to the array.
        let mut fresh = 0;
        for (block, _, length) in self.blocks_of(start, sectors) {
            if self.direct.contains(&block) {
                return false;
            }
            let entry = self
                .map
                .get(&block)
                .map(|&index| self.entries[index as usize]);
            if entry.flatten().is_some_and(|entry| !entry.leaves) {
                continue;
            }
            fresh += usize::from(length == self.size);
            let direct = length < self.size || self.free.len() < fresh;
            // Older data of the block are on the way to the array.
            if direct && self.copying.contains(&block) {
                return false;
            }
        }
        for (block, from, length) in self.blocks_of(start, sectors) {
            let entry = self.map.get(&block).copied();
            let inside = length == self.size;
            let own = entry.filter(|&index| !self.entry(index).leaves);
            let index = match own {
                Some(index) => Some(index),
                None if inside => self.take_free(),
                None => None,
            };
            let next = match index {
                // No block is free: the write goes to the array (`writecache_map_write`).
                None => {
                    self.direct.push(block);
                    self.bypassed += length;
                    Part::of_origin(from, length)
                }
                Some(index) => {
                    if own.is_none() {
                        self.entries[index as usize] = Some(Entry {
                            block,
                            age: 0,
                            users: 0,
                            leaves: false,
                            mapped: false,
                        });
                    }
                    self.entry(index).users += 1;
                    Part {
                        origin: false,
                        cache: Some(self.place(index) + (from - block * self.size)),
                        ..Part::of_origin(from, length)
                    }
                }
            };
            Writecache::join(parts, next);
        }
        true
    }

    fn discard(&mut self, start: u64, sectors: u64) -> bool {
        let whole: Vec<u64> = (self.blocks_of(start, sectors))
            .filter(|&(_, _, length)| length == self.size)
            .map(|(block, ..)| block)
            .collect();
        let leaves = |block: &u64| {
            let entry = self
                .map
                .get(block)
                .map(|&index| self.entries[index as usize]);
            entry.flatten().is_some_and(|entry| entry.leaves)
        };
        if whole.iter().any(leaves) {
            return false;
        }
        for block in whole {
            if let Some(&index) = self.map.get(&block) {
                self.unmap(index);
            }
        }
        true
    }

    fn read_ended(&mut self, _: Time, part: &Part, _: bool) -> Option<Part> {
        for index in self.entries_of(part) {
            self.entry(index).users -= 1;
            self.drop_unused(index);
        }
        None
    }

    fn write_ended(&mut self, now: Time, part: &Part, done: bool) {
        if part.origin {
            for (block, ..) in self.blocks_of(part.start, part.sectors) {
                if let Some(at) = self.direct.iter().position(|&other| other == block) {
                    self.direct.swap_remove(at);
                }
            }
            return;
        }
        for index in self.entries_of(part) {
            self.entry(index).users -= 1;
            if !done {
                self.drop_unused(index);
                continue;
            }
            self.age += 1;
            let age = self.age;
            let entry = self.entry(index);
            let (block, old, mapped) = (entry.block, entry.age, entry.mapped);
            (entry.age, entry.mapped) = (age, true);
            if mapped {
                self.by_age.remove(&old);
            } else if let Some(before) = self.map.insert(block, index) {
                // The entry before is being copied; the end of the copy frees its block.
                let entry = self.entry(before);
                entry.mapped = false;
                let age = entry.age;
                self.by_age.remove(&age);
                self.drop_unused(before);
            }
            self.by_age.insert(age, index);
            self.changed(index);
            self.commits.blocks += 1;
        }
        if self.commits.due == Time::NEVER {
            self.commits.due = now + self.commits.delay;
        }
        if self.commits.blocks >= self.commits.limit {
            self.commits.due = now;
        }
    }

    fn fill_ended(&mut self, _: Time, _: &Part) {}

    fn copy(&mut self, _: Time) -> Option<CopyIo> {
        // Blocks on their way to the array count as free (`freelist_size + writeback_size` of
        // dm-writecache.c).
        let free = self.free.len() + self.leaving;
        if free <= self.begins_at {
            self.writing_back = true;
        }
        if free > self.ends_at || self.by_age.is_empty() {
            self.writing_back = false;
        }
        if !self.writing_back || self.leaving >= self.jobs {
            return None;
        }
        // The oldest block that nobody writes or reads. `writecache_writeback` waits for the I/Os
        // before.
        let idle = |index: &u32| {
            let entry = self.entries[*index as usize];
            entry.is_some_and(|entry| self.may_leave(&entry))
        };
        let first = self.by_age.values().copied().find(|index| idle(index))?;
        let block = self.entry(first).block;
        // The blocks behind go along as long as the copy is one run on both devices.
        let mut last = 0;
        let most = COPY_BLOCKS.min((self.jobs - self.leaving) as u64);
        while last + 1 < most {
            let index = first + last as u32 + 1;
            let next = self.map.get(&(block + last + 1));
            let idle = |index: u32| {
                let entry = self.entries[index as usize];
                entry.is_some_and(|entry| self.may_leave(&entry))
            };
            if next != Some(&index) || !idle(index) {
                break;
            }
            last += 1;
        }
        let count = last + 1;
        for index in first..first + count as u32 {
            let entry = self.entry(index);
            entry.leaves = true;
            let (age, block) = (entry.age, entry.block);
            self.by_age.remove(&age);
            self.copying.insert(block);
        }
        self.leaving += count as usize;
        Some(CopyIo {
            start: block * self.size,
            sectors: count * self.size,
            place: self.place(first),
            mark: count as u32,
            promotes: false,
        })
    }

    fn copy_ended(&mut self, _: Time, copy: &CopyIo) {
        let first = self.entry_at(copy.place);
        self.leaving -= copy.mark as usize;
        for index in first..first + copy.mark {
            let entry = self.entry(index);
            entry.leaves = false;
            let (mapped, block) = (entry.mapped, entry.block);
            self.copying.remove(&block);
            match mapped {
                true => self.unmap(index),
                false => self.drop_unused(index),
            }
        }
    }

    fn commit(&mut self, _: Time) -> Option<(u64, u64)> {
        self.commits.changed.is_some().then(|| self.write_map())
    }

    fn flushes_origin(&self) -> bool {
        // Direct writes went to the array past the cache.
        true
    }

    fn alarm(&self) -> Time {
        self.commits.due
    }

    fn timer(&mut self, now: Time) -> Option<(u64, u64)> {
        (self.commits.due <= now).then(|| self.write_map())
    }

    fn dirty_sectors(&self) -> u64 {
        self.map.len() as u64 * self.size
    }

    fn lose(&mut self) {
        self.map.clear();
    }

    fn count(&self, readings: &mut Vec<(&'static str, f64)>) {
        let mb = |sectors: u64| (sectors * SECTOR_BYTES) as f64 / 1e6;
        readings.extend([
            ("ssd_bypassed_mb", mb(self.bypassed)),
            ("ssd_map_mb", mb(self.written)),
        ]);
    }
}
