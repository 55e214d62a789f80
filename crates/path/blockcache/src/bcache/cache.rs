//! bcache as a rule.

use super::buckets::Buckets;
use super::bypass::Bypass;
use super::config::{BcacheConfig, BcacheMode};
use super::extents::{CachedExtent, ExtentMap};
use super::priorities::Priorities;
use super::writeback::Writeback;
use crate::rule::{CacheRule, CacheSite, CopyIo, Part};
use fullstroke_contract::ConfigError;
use fullstroke_contract::Slots;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, SECTOR_BYTES, Time};
use std::collections::VecDeque;

/// Shares of dirty buckets, in percent, from which writes go through although the mode is
/// `writeback`: writes that are not synchronous, and all (`CUTOFF_WRITEBACK`,
/// `CUTOFF_WRITEBACK_SYNC`, writeback.h).
const CUTOFF_WRITEBACK: u64 = 40;
const CUTOFF_WRITEBACK_SYNC: u64 = 70;
/// Share from which nothing is added (`CUTOFF_CACHE_ADD`, request.c).
const CUTOFF_CACHE_ADD: u64 = 95;
/// Time between a new key and its write to the journal (`journal_delay_ms`, super.c).
const JOURNAL_DELAY: Duration = Duration::from_millis(100);
/// Bytes of a key in the journal, and of the header.
const KEY_BYTES: u64 = 24;
const HEADER_BYTES: u64 = 200;
/// Least write of the journal, in sectors.
const JOURNAL_LEAST: u64 = 8;
/// Share of the buckets that the journal takes, and its bounds (make-bcache: a 128th; `SB_JOURNAL_BUCKETS`).
const JOURNAL_SHARE: u64 = 128;
const JOURNAL_BUCKETS: std::ops::RangeInclusive<u64> = 2..=256;
/// Dirty extents of a pass of writing back (`KEYBUF_NR`, bcache.h).
const PASS_EXTENTS: usize = 500;
/// Share of reused buckets after which stale extents leave the map.
const SWEEP_SHARE: u64 = 8;

/// Builds bcache from its keys.
///
/// # Errors
/// Names the invalid key.
pub(crate) fn build(keys: &Keys, site: CacheSite) -> Result<Box<dyn CacheRule>, ConfigError> {
    let config: BcacheConfig = read(keys)?;
    let buckets = config.check(&site)?;
    Ok(Box::new(Bcache::new(&config, buckets, site)))
}

/// Kind of a part in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoteKind {
    /// A read of cached data.
    Hit,
    /// Read data on their way to the flash device. False once a write has made the data old.
    Fill(bool),
    /// A write past the cache.
    Around,
    /// A write to both devices.
    Through,
    /// A write to the flash device alone.
    Back,
}

#[derive(Clone, Copy, Debug)]
struct PartNote {
    kind: NoteKind,
    generation: u32,
    start: u64,
    end: u64,
}

/// The journal, a ring of buckets.
#[derive(Clone, Copy, Debug)]
struct Journal {
    first: u64,
    sectors: u64,
    at: u64,
    /// Keys outside the journal.
    keys: u64,
    /// Time at which the keys outside the journal are written.
    due: Time,
    written: u64,
}

/// bcache: extents in buckets.
pub(super) struct Bcache {
    mode: BcacheMode,
    map: ExtentMap,
    buckets: Buckets,
    bypass: Bypass,
    writeback: Writeback,
    journal: Journal,
    priorities: Priorities,
    /// Dirty extents of the pass that are not under way, in the order of addresses.
    pass: VecDeque<CachedExtent>,
    notes: Slots<PartNote>,
    /// Notes of fills in flight.
    fills: Vec<u32>,
    /// Addresses of writes of the origin and of copies in flight.
    origin_writes: Vec<(u64, u64)>,
    copies: Vec<(u64, u64)>,
    /// Time at which a copy may be possible without an event from outside.
    next_try: Time,
    /// Number of reused buckets at the last sweep.
    swept: u64,
    bypassed: u64,
    /// Extents of the request in work.
    found: Vec<CachedExtent>,
}

impl Bcache {
    fn new(config: &BcacheConfig, buckets: u64, site: CacheSite) -> Bcache {
        let size = config.bucket.0 / SECTOR_BYTES;
        let journal =
            (buckets / JOURNAL_SHARE).clamp(*JOURNAL_BUCKETS.start(), *JOURNAL_BUCKETS.end());
        let room = Priorities::room(buckets, size);
        let priorities = Priorities::new(buckets, size, (1 + journal) * size);
        // The first bucket has the superblock.
        let first = (1 + journal + room) * size;
        let buckets = Buckets::new(buckets - 1 - journal - room, size, first);
        let thresholds = [
            config.congested_read_threshold,
            config.congested_write_threshold,
        ];
        Bcache {
            mode: config.mode,
            map: ExtentMap::default(),
            bypass: Bypass::new(
                config.sequential_cutoff.0 / SECTOR_BYTES,
                thresholds,
                site.seed.stream("bcache congestion"),
            ),
            writeback: Writeback::new(config, buckets.sectors()),
            buckets,
            journal: Journal {
                first: size,
                sectors: journal * size,
                at: 0,
                keys: 0,
                due: Time::NEVER,
                written: 0,
            },
            priorities,
            pass: VecDeque::new(),
            notes: Slots::default(),
            fills: Vec::new(),
            origin_writes: Vec::new(),
            copies: Vec::new(),
            next_try: Time::NEVER,
            swept: 0,
            bypassed: 0,
            found: Vec::new(),
        }
    }

    fn note(&mut self, kind: NoteKind, generation: u32, start: u64, end: u64) -> u32 {
        self.notes.keep(PartNote {
            kind,
            generation,
            start,
            end,
        })
    }

    /// Collects the current extents between `start` and `end`.
    fn find(&mut self, start: u64, end: u64) {
        let (found, buckets) = (&mut self.found, &self.buckets);
        found.clear();
        self.map.between(start, end, |extent| {
            if buckets.is_current(extent.place, extent.generation) {
                found.push(extent);
            }
        });
    }

    /// Takes the addresses out of the map.
    fn forget(&mut self, start: u64, end: u64) {
        let buckets = &mut self.buckets;
        self.map.cut(start, end, |old| {
            buckets.unmap(old.place, old.sectors, old.generation, old.dirty);
        });
    }

    fn put(&mut self, extent: CachedExtent) {
        let buckets = &mut self.buckets;
        self.map.insert(extent, |old| {
            buckets.unmap(old.place, old.sectors, old.generation, old.dirty);
        });
        self.buckets.map(extent.place, extent.sectors, extent.dirty);
        self.sweep();
    }

    /// Drops stale extents now and then, as the garbage collector does.
    fn sweep(&mut self) {
        let reused = self.buckets.reused - self.swept;
        let buckets = &self.buckets;
        let many = buckets.sectors() / JOURNAL_LEAST / SWEEP_SHARE;
        if reused > 0 && self.map.len() as u64 > many.max(1024) {
            self.map
                .sweep(|extent| buckets.is_current(extent.place, extent.generation));
            self.swept = self.buckets.reused;
        }
    }

    /// Notes a key for the journal.
    fn add_key(&mut self, now: Time) {
        if self.journal.keys == 0 {
            self.journal.due = now + JOURNAL_DELAY;
        }
        self.journal.keys += 1;
    }

    /// Returns the place and the sectors of the next write of the journal.
    fn write_journal(&mut self) -> (u64, u64) {
        let journal = &mut self.journal;
        let bytes = HEADER_BYTES + journal.keys * KEY_BYTES;
        let block = JOURNAL_LEAST * SECTOR_BYTES;
        let sectors = (bytes.div_ceil(block) * JOURNAL_LEAST).min(journal.sectors);
        if journal.at + sectors > journal.sectors {
            journal.at = 0;
        }
        let place = journal.first + journal.at;
        journal.at += sectors;
        journal.keys = 0;
        journal.due = Time::NEVER;
        journal.written += sectors;
        (place, sectors)
    }

    /// Adds parts of a write whose data go to the flash device, and to the origin too with
    /// `through`. Returns false if there is no room.
    fn allocate(
        &mut self,
        now: Time,
        start: u64,
        sectors: u64,
        through: bool,
        parts: &mut Vec<Part>,
    ) -> bool {
        let (first, end) = (parts.len(), start + sectors);
        let mut at = start;
        while at < end {
            let Some((place, sectors, generation)) = self.buckets.allocate(end - at, !through)
            else {
                // The write waits as a whole, so that no part of it is on the flash device alone.
                for part in parts.drain(first..) {
                    self.notes.take(part.mark);
                    part.cache
                        .iter()
                        .for_each(|&place| self.buckets.unpin(place));
                }
                return false;
            };
            let kind = match through {
                true => NoteKind::Through,
                false => NoteKind::Back,
            };
            parts.push(Part {
                start: at,
                sectors,
                origin: through,
                cache: Some(place),
                mark: self.note(kind, generation, at, at + sectors),
            });
            at += sectors;
        }
        self.priorities.opened(now, self.buckets.opened);
        true
    }

    /// True if the write goes to the flash device alone (`should_writeback`, writeback.h).
    fn writes_back(&self, passes: bool, synchronous: bool) -> bool {
        let in_use = self.buckets.in_use();
        self.mode == BcacheMode::Writeback
            && in_use <= CUTOFF_WRITEBACK_SYNC
            && !passes
            && (synchronous || in_use <= CUTOFF_WRITEBACK)
    }

    /// Collects the dirty extents of a pass, from the end of the last one on (`refill_dirty`,
    /// writeback.c). Data that become dirty later wait for the next pass. Returns true if the pass
    /// has all dirty data.
    fn refill(&mut self) -> bool {
        let first = self.writeback.at;
        let mut from = first;
        while self.pass.len() < PASS_EXTENTS
            && let Some(extent) = self.map.dirty_from(from)
        {
            self.pass.push_back(extent);
            from = extent.end();
        }
        if self.pass.len() == PASS_EXTENTS {
            return false;
        }
        // From the end of the array, the search goes on at its begin, up to where it began.
        from = 0;
        while self.pass.len() < PASS_EXTENTS
            && let Some(extent) = self.map.dirty_from(from)
            && extent.start < first
        {
            self.pass.push_back(extent);
            from = extent.end();
        }
        self.pass.len() < PASS_EXTENTS
    }

    /// Returns the next extent of the pass without a conflict, and its index. Extents that are not
    /// dirty any more leave the pass.
    fn next_dirty(&mut self) -> Option<(usize, CachedExtent)> {
        let mut index = 0;
        while let Some(&extent) = self.pass.get(index) {
            let (start, end) = (extent.start, extent.end());
            if self.map.dirty_from(start) != Some(extent) {
                self.pass.remove(index);
            } else if overlaps(&self.origin_writes, start, end)
                || overlaps(&self.copies, start, end)
            {
                index += 1;
            } else {
                return Some((index, extent));
            }
        }
        None
    }
}

fn overlaps(all: &[(u64, u64)], start: u64, end: u64) -> bool {
    all.iter().any(|&(from, to)| from < end && start < to)
}

fn remove(all: &mut Vec<(u64, u64)>, range: (u64, u64)) {
    if let Some(at) = all.iter().position(|&other| other == range) {
        all.swap_remove(at);
    }
}

impl CacheRule for Bcache {
    fn warm(&mut self, sectors: u64) -> u64 {
        let mut start = 0;
        while start < sectors && self.buckets.has_room() {
            let Some(room) = self.buckets.allocate(sectors - start, false) else {
                break;
            };
            let (place, length, generation) = room;
            self.buckets.unpin(place);
            self.put(CachedExtent {
                start,
                sectors: length,
                place,
                generation,
                dirty: false,
            });
            start += length;
        }
        start
    }

    fn read(&mut self, now: Time, start: u64, sectors: u64, parts: &mut Vec<Part>) {
        self.writeback.disturbed();
        let passes =
            self.bypass.passes(now, start, sectors) || self.buckets.in_use() > CUTOFF_CACHE_ADD;
        match passes {
            true => self.bypassed += sectors,
            false => self.buckets.pass(sectors),
        }
        let end = start + sectors;
        self.find(start, end);
        let mut at = start;
        for index in 0..=self.found.len() {
            let hit = self.found.get(index).copied();
            let next = hit.map_or(end, |hit| hit.start);
            if at < next {
                let mut part = Part::of_origin(at, next - at);
                if !passes {
                    part.mark = self.note(NoteKind::Fill(true), 0, at, next);
                    self.fills.push(part.mark);
                }
                parts.push(part);
            }
            let Some(hit) = hit else { break };
            self.buckets.pin(hit.place);
            self.buckets.touch(hit.place);
            parts.push(Part {
                start: hit.start,
                sectors: hit.sectors,
                origin: false,
                cache: Some(hit.place),
                mark: self.note(NoteKind::Hit, hit.generation, hit.start, hit.end()),
            });
            at = hit.end();
        }
    }

    fn write(
        &mut self,
        now: Time,
        start: u64,
        sectors: u64,
        synchronous: bool,
        parts: &mut Vec<Part>,
    ) -> bool {
        self.writeback.disturbed();
        let end = start + sectors;
        // A write over data that are being copied goes to the flash device, so that no older data
        // reach the array after newer ones (`cached_dev_write`, request.c).
        if overlaps(&self.copies, start, end) {
            return self.allocate(now, start, sectors, false, parts);
        }
        let passes = self.mode == BcacheMode::Writearound
            || self.bypass.passes(now, start, sectors)
            || self.buckets.in_use() > CUTOFF_CACHE_ADD;
        if !passes {
            self.buckets.pass(sectors);
        }
        let back = self.writes_back(passes, synchronous);
        if back {
            return self.allocate(now, start, sectors, false, parts);
        }
        if !passes && self.allocate(now, start, sectors, true, parts) {
            let ranges = parts.iter().map(|part| (part.start, part.end()));
            self.origin_writes.extend(ranges);
            return true;
        }
        self.bypassed += sectors;
        self.origin_writes.push((start, end));
        let mark = self.note(NoteKind::Around, 0, start, end);
        parts.push(Part {
            mark,
            ..Part::of_origin(start, sectors)
        });
        true
    }

    fn discard(&mut self, start: u64, sectors: u64) -> bool {
        let end = start + sectors;
        if overlaps(&self.copies, start, end) {
            return false;
        }
        self.forget(start, end);
        true
    }

    fn read_ended(&mut self, now: Time, part: &Part, done: bool) -> Option<Part> {
        if part.mark == Part::UNMARKED {
            return None;
        }
        let note = self.notes[part.mark];
        if note.kind == NoteKind::Hit {
            self.notes.take(part.mark);
            part.cache
                .iter()
                .for_each(|&place| self.buckets.unpin(place));
            return None;
        }
        let room = match done && note.kind == NoteKind::Fill(true) {
            true => self.buckets.allocate(part.sectors, false),
            false => None,
        };
        let Some((place, sectors, generation)) = room else {
            self.fills.retain(|&fill| fill != part.mark);
            self.notes.take(part.mark);
            return None;
        };
        self.notes[part.mark].generation = generation;
        self.priorities.opened(now, self.buckets.opened);
        Some(Part {
            sectors,
            origin: false,
            cache: Some(place),
            ..*part
        })
    }

    fn write_ended(&mut self, now: Time, part: &Part, done: bool) {
        let note = self.notes.take(part.mark);
        let (start, end) = (part.start, part.end());
        part.cache
            .iter()
            .for_each(|&place| self.buckets.unpin(place));
        if part.origin {
            remove(&mut self.origin_writes, (start, end));
        }
        // A read that began before this write has older data, and must not fill the cache with
        // them.
        for index in 0..self.fills.len() {
            let fill = &mut self.notes[self.fills[index]];
            if fill.start < end && start < fill.end {
                fill.kind = NoteKind::Fill(false);
            }
        }
        self.add_key(now);
        match (note.kind, part.cache) {
            (NoteKind::Through | NoteKind::Back, Some(place)) if done => {
                let dirty = note.kind == NoteKind::Back;
                self.put(CachedExtent {
                    start,
                    sectors: part.sectors,
                    place,
                    generation: note.generation,
                    dirty,
                });
                if dirty {
                    self.writeback.dirtied(now);
                }
            }
            (NoteKind::Around, _) => self.forget(start, end),
            _ => {}
        }
    }

    fn fill_ended(&mut self, _: Time, part: &Part) {
        self.fills.retain(|&fill| fill != part.mark);
        let note = self.notes.take(part.mark);
        let Some(place) = part.cache else { return };
        self.buckets.unpin(place);
        if note.kind == NoteKind::Fill(true) {
            self.put(CachedExtent {
                start: part.start,
                sectors: part.sectors,
                place,
                generation: note.generation,
                dirty: false,
            });
        }
    }

    fn copy(&mut self, now: Time) -> Option<CopyIo> {
        self.next_try = Time::NEVER;
        if !self.writeback.may_copy(now) {
            self.next_try = self.writeback.next_pass();
            return None;
        }
        if self.pass.is_empty() {
            // `read_dirty` waits for all copies of a pass.
            if self.writeback.in_flight > 0 {
                return None;
            }
            if self.writeback.is_last_pass() {
                self.writeback.pass_ended(now, self.buckets.dirty_sectors);
                self.next_try = self.writeback.next_pass();
                return None;
            }
            let last = self.refill();
            self.writeback.pass_begins(last);
        }
        let Some((index, extent)) = self.next_dirty() else {
            // Without an extent in flight nothing else would end the pass.
            if self.pass.is_empty() && self.writeback.in_flight == 0 {
                self.next_try = now + Duration::from_millis(1);
            }
            return None;
        };
        if !self.writeback.rate_allows(now, extent.start) {
            self.next_try = self.writeback.next_copy();
            return None;
        }
        self.pass.remove(index);
        self.writeback.began(now, extent.start, extent.sectors);
        self.buckets.pin(extent.place);
        self.copies.push((extent.start, extent.end()));
        Some(CopyIo {
            start: extent.start,
            sectors: extent.sectors,
            place: extent.place,
            mark: extent.generation,
            promotes: false,
        })
    }

    fn copy_ended(&mut self, _: Time, copy: &CopyIo) {
        let (start, end) = (copy.start, copy.start + copy.sectors);
        self.writeback.in_flight -= 1;
        self.buckets.unpin(copy.place);
        remove(&mut self.copies, (start, end));
        self.find(start, end);
        let copied = std::mem::take(&mut self.found);
        // Data that were written meanwhile lie elsewhere, and stay dirty.
        let same =
            |extent: &&CachedExtent| extent.place == copy.place + (extent.start - copy.start);
        for extent in copied.iter().filter(same).filter(|extent| extent.dirty) {
            self.put(CachedExtent {
                dirty: false,
                ..*extent
            });
        }
        self.found = copied;
    }

    fn answered(&mut self, now: Time, write: bool, took: Duration) {
        self.bypass.answered(now, write, took);
    }

    fn commit(&mut self, _: Time) -> Option<(u64, u64)> {
        Some(self.write_journal())
    }

    fn flushes_origin(&self) -> bool {
        true
    }

    fn alarm(&self) -> Time {
        self.next_try
            .min(self.journal.due)
            .min(self.priorities.due)
            .min(self.writeback.next_update())
    }

    fn timer(&mut self, now: Time) -> Option<(u64, u64)> {
        self.writeback.update(now, self.buckets.dirty_sectors);
        if self.priorities.due <= now {
            return Some(self.priorities.write(now, self.buckets.opened));
        }
        (self.journal.due <= now).then(|| self.write_journal())
    }

    fn dirty_sectors(&self) -> u64 {
        self.buckets.dirty_sectors
    }

    fn lose(&mut self) {
        self.map.clear();
    }

    fn count(&self, readings: &mut Vec<(&'static str, f64)>) {
        let mb = |sectors: u64| (sectors * SECTOR_BYTES) as f64 / 1e6;
        readings.extend([
            ("ssd_bypassed_mb", mb(self.bypassed)),
            (
                "ssd_map_mb",
                mb(self.journal.written + self.priorities.written),
            ),
        ]);
    }
}
