//! Linux's dm-writecache on a flash device (drivers/md/dm-writecache.c, Linux 6.1).
//!
//! Writes go to free blocks of the flash device, and reads find them there. When few blocks are
//! free, the oldest blocks are written to the array. Reads of the array are not kept.
//!
//! Left out: persistent memory, `cleaner`, `pause_writeback` and `max_age`.

mod commits;
mod free;
mod write_back;

use crate::rule::{CacheRule, CacheSite, CopyIo, Part};
use commits::{Commits, ENTRY_BYTES, HEADER_BYTES};
use free::FreeBlocks;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use write_back::WriteBack;

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
        if blocks > u64::from(u32::MAX) {
            let message = format!(
                "found {}, which are {blocks} blocks in {}; expected {} at most: give a larger block or a smaller cache",
                self.block,
                site.cache.bytes(),
                u32::MAX
            );
            return refuse("block", message);
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
    /// Entries of the blocks that were ever in use.
    entries: Vec<Option<Entry>>,
    free: FreeBlocks,
    map: BTreeMap<u64, u32>,
    /// Mapped entries that are not being copied, by age.
    by_age: BTreeMap<u64, u32>,
    age: u64,
    write_back: WriteBack,
    /// Blocks of the array with direct writes in flight.
    direct: Vec<u64>,
    commits: Commits,
    bypassed: u64,
}

impl Writecache {
    fn new(config: &WritecacheConfig, blocks: u64, metadata: u64) -> Writecache {
        let share = |percent: u32| (blocks * u64::from(100 - percent.min(100)) / 100) as usize;
        Writecache {
            size: config.block.0 / SECTOR_BYTES,
            metadata,
            entries: Vec::new(),
            free: FreeBlocks::new(blocks as u32),
            map: BTreeMap::new(),
            by_age: BTreeMap::new(),
            age: 0,
            write_back: WriteBack::new(
                share(config.high_watermark),
                share(config.low_watermark),
                config.writeback_jobs,
            ),
            direct: Vec::new(),
            commits: Commits::new(metadata, config.autocommit_blocks, config.autocommit_time),
            bypassed: 0,
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

    /// True if a copy of an entry may begin: nobody uses the entry, and no older copy of the block is
    /// in flight.
    fn may_leave(&self, entry: &Entry) -> bool {
        entry.users == 0 && !entry.leaves && !self.write_back.is_copying(entry.block)
    }

    fn release(&mut self, index: u32) {
        self.entries[index as usize] = None;
        self.free.give_back(index);
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
        self.commits.changed(index);
        self.drop_unused(index);
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
            if direct && self.write_back.is_copying(block) {
                return false;
            }
        }
        for (block, from, length) in self.blocks_of(start, sectors) {
            let entry = self.map.get(&block).copied();
            let inside = length == self.size;
            let own = entry.filter(|&index| !self.entry(index).leaves);
            let index = match own {
                Some(index) => Some(index),
                None if inside => self.free.take(),
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
                        if self.entries.len() <= index as usize {
                            self.entries.resize(index as usize + 1, None);
                        }
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
            self.commits.block_written(index);
        }
        self.commits.schedule(now);
    }

    fn fill_ended(&mut self, _: Time, _: &Part) {}

    fn copy(&mut self, _: Time) -> Option<CopyIo> {
        let most = self
            .write_back
            .most(self.free.len(), self.by_age.is_empty());
        if most == 0 {
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
        let most = COPY_BLOCKS.min(most as u64);
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
            self.write_back.begin(block);
        }
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
        for index in first..first + copy.mark {
            let entry = self.entry(index);
            entry.leaves = false;
            let (mapped, block) = (entry.mapped, entry.block);
            self.write_back.end(block);
            match mapped {
                true => self.unmap(index),
                false => self.drop_unused(index),
            }
        }
    }

    fn commit(&mut self, _: Time) -> Option<(u64, u64)> {
        self.commits.has_changes().then(|| self.commits.write())
    }

    fn flushes_origin(&self) -> bool {
        // Direct writes went to the array past the cache.
        true
    }

    fn alarm(&self) -> Time {
        self.commits.due()
    }

    fn timer(&mut self, now: Time) -> Option<(u64, u64)> {
        (self.commits.due() <= now).then(|| self.commits.write())
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
            ("ssd_map_mb", mb(self.commits.written())),
        ]);
    }
}
