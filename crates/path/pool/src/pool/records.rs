//! Reads and writes of records: places, records in memory, and requests that wait for a record.

use super::Pool;
use crate::arc::RecordCache;
use crate::classes::Class;
use crate::config::PoolSettings;
use crate::files::{Files, is_metadata};
use crate::io::{Block, Cause, Purpose};
use crate::keys::Primarycache;
use crate::place::{Dva, FirstPlaces};
use crate::zfetch::Zfetch;
use fullstroke_contract::{Effects, Operation, RequestStatus, Slots};
use fullstroke_units::{SECTOR_BYTES, Time};
use std::collections::HashMap;

const NONE: u32 = u32::MAX;

/// The records of the volume: their places, and the records in memory.
#[derive(Debug)]
pub(crate) struct Records {
    places: FirstPlaces,
    /// Places and bytes of records that were written since the start of the run.
    pub(crate) moved: HashMap<u64, (Dva, u32)>,
    /// The objects of a file system in place of the volume.
    pub(crate) files: Option<Files>,
    pub(crate) arc: RecordCache,
    zfetch: Zfetch,
    /// Records that are being read ahead, and the number from which a read-ahead grows no longer at once
    /// (`dmu_zfetch_prepare`: a sixteenth of the ARC).
    ahead: u64,
    ahead_most: u64,
    /// Records that are being read.
    reading: HashMap<u64, Reading>,
    waiters: Slots<Waiter>,
}

/// A record that is being read.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// The first waiter.
    waiter: u32,
    /// True for a read-ahead.
    is_ahead: bool,
    /// The block of a read-ahead from the vdevs that no request has waited for; `NONE` for other reads.
    ahead: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    asked: u32,
    next: u32,
}

impl Records {
    pub(super) fn new(settings: &PoolSettings, places: FirstPlaces) -> Records {
        let memory = &settings.memory;
        let files = settings.files.as_ref();
        let files = files.map(|start| Files::new(start, settings.record));
        let distance = memory.prefetch_distance.0;
        let (zfetch, weight) = match &files {
            Some(_) => (Zfetch::of_files(settings.record, distance), SECTOR_BYTES),
            None => {
                let records = settings.volsize / settings.record;
                let zfetch = Zfetch::new(settings.record, records, distance);
                (zfetch, settings.psize)
            }
        };
        Records {
            places,
            moved: HashMap::new(),
            files,
            arc: RecordCache::new(memory.arc.0 / weight),
            zfetch,
            ahead: 0,
            ahead_most: memory.arc.0 / 16 / settings.record,
            reading: HashMap::new(),
            waiters: Slots::default(),
        }
    }
}

impl Records {
    /// Returns the place of a record at the start of the run.
    pub(super) fn first_place(&self, record: u64) -> Dva {
        self.places.of(record)
    }
}

impl Pool {
    /// Returns the place of a record, and true if the record is from before an expansion.
    pub(crate) fn place_of(&self, record: u64) -> (Dva, u64, bool) {
        match self.records.moved.get(&record) {
            // A record that was rewritten has the present width. Other records keep the width
            // before the expansion.
            Some((dva, psize)) => (*dva, (*psize).into(), false),
            None => (self.records.places.of(record), self.psize_of(record), true),
        }
    }

    /// Moves a record to a new place and frees the old one.
    pub(crate) fn move_record(&mut self, record: u64, dva: Dva) {
        let psize = self.psize_of(record) as u32;
        if self.is_stored(record) {
            let (before, psize, old) = self.place_of(record);
            if before == dva {
                return;
            }
            // The snapshot still needs the block.
            if !self.is_in_snapshot(record) {
                self.free_place(before, psize, old);
            }
        }
        self.records.moved.insert(record, (dva, psize));
    }

    /// Returns true if a snapshot holds the present place of a record (`dsl_dataset_block_kill`: a block
    /// that is older than the last snapshot stays).
    pub(crate) fn is_in_snapshot(&self, record: u64) -> bool {
        self.settings.snapshot && !self.records.moved.contains_key(&record)
    }

    /// Frees the place of a block of `psize` bytes. `old` is true for a block from before an expansion.
    pub(crate) fn free_place(&mut self, dva: Dva, psize: u64, old: bool) {
        let asize = self.io.asize(dva.vdev as usize, psize, old);
        match &mut self.special {
            Some(space) if dva.vdev as usize == self.settings.vdevs.len() => {
                space.free(Dva { vdev: 0, ..dva }, asize);
            }
            _ => self.space.free(dva, asize),
        }
    }

    /// Returns true if the record stays in memory.
    pub(crate) fn is_kept(&self, record: u64) -> bool {
        match self.settings.primarycache {
            Primarycache::All => true,
            Primarycache::Metadata => self.is_of_metadata(record),
            // The inode of an open file is held apart from the ARC (`dnode_hold`).
            Primarycache::None => self.is_of_metadata(record) && is_metadata(record),
        }
    }

    /// Puts a clean record into memory, if records of its kind stay there.
    pub(crate) fn keep_in_memory(&mut self, record: u64) {
        if self.is_kept(record) {
            self.put_into_memory(record);
        }
    }

    fn put_into_memory(&mut self, record: u64) {
        let weight = match &self.records.files {
            Some(_) => (self.psize_of(record) / SECTOR_BYTES) as u32,
            None => 1,
        };
        self.records.arc.insert_sized(record, weight);
    }

    /// Returns true if the record is in memory.
    fn is_in_memory(&self, record: u64) -> bool {
        self.txg.holds(record) || self.records.arc.holds(record)
    }

    /// Lets a request wait for a record. Begins to read the record if nobody has. A read-ahead of the
    /// record becomes as urgent as the request (`arc_read`).
    pub(super) fn wait_for(&mut self, now: Time, record: u64, asked: u32) {
        let before = self.records.reading.get(&record).copied();
        let waiter = self.records.waiters.keep(Waiter {
            asked,
            next: before.map_or(NONE, |before| before.waiter),
        });
        let reading = Reading {
            waiter,
            is_ahead: before.is_some_and(|before| before.is_ahead),
            ahead: NONE,
        };
        self.records.reading.insert(record, reading);
        self.asked[asked].remaining += 1;
        match before {
            Some(Reading { ahead: NONE, .. }) => {}
            Some(Reading { ahead, .. }) => {
                let place = self.place_of(record);
                self.io.hurry(place, ahead);
            }
            None => {
                let cause = Cause::of(&self.asked[asked].request);
                match self.is_of_metadata(record) {
                    true => self.read_metadata(now, record, cause),
                    false => _ = self.read_record(now, record, Class::SyncRead, cause),
                }
            }
        }
    }

    /// Begins to read a record: from a cache on flash, or from the vdevs. Returns the block of a read
    /// from the vdevs, otherwise `NONE`.
    fn read_record(&mut self, now: Time, record: u64, class: Class, cause: Cause) -> u32 {
        let purpose = Purpose::Read { record };
        let is_ahead = class == Class::AsyncRead;
        match self.l2arc.find(record, is_ahead) {
            Some((member, offset)) if !self.io.has_failed(member) => {
                let place = (member, offset, self.settings.psize);
                let how = (Operation::Read, class);
                self.io.leaf(now, place, how, purpose, cause);
                NONE
            }
            _ => {
                let place = self.place_of(record);
                self.io.read(now, place, class, purpose, cause)
            }
        }
    }

    /// Writes records that leave the memory soon to the caches on flash, if the time has come.
    pub(super) fn feed_caches(&mut self, now: Time) {
        if self.l2arc.next() > now {
            return;
        }
        let mut writes = Vec::new();
        self.l2arc.feed(now, &mut self.records.arc, &mut writes);
        writes.retain(|(member, ..)| !self.io.has_failed(*member));
        for (member, offset, record) in writes {
            let place = (member, offset, self.settings.psize);
            let how = (Operation::Write, Class::AsyncWrite);
            let purpose = Purpose::Fill { record };
            self.io.leaf(now, place, how, purpose, Cause::background());
        }
    }

    pub(super) fn read(&mut self, now: Time, asked: u32) {
        if self.waits_for_metadata(now, asked) {
            return;
        }
        let request = self.asked[asked].request;
        let units = self.units_of(request.extent);
        for unit in units.clone() {
            let record = self.record_at(unit);
            self.counts.reads += 1;
            self.l2arc.asked_for(record);
            // A hole has no data.
            let is_hole = !self.is_stored(record);
            if is_hole || self.txg.holds(record) || self.records.arc.access(record) {
                self.counts.hits += 1;
                if !self.is_kept(record) {
                    self.records.arc.forget(record);
                }
            } else {
                self.wait_for(now, record, asked);
            }
        }
        let is_metadata = units.start != units.end && self.is_of_metadata(units.start);
        if self.settings.memory.prefetch && !is_metadata {
            let is_full = self.records.ahead >= self.records.ahead_most;
            let ahead = self.records.zfetch.access(now, units, is_full);
            for unit in ahead {
                let record = self.record_at(unit);
                let is_wanted = self.is_stored(record) && !self.is_in_memory(record);
                if is_wanted && !self.records.reading.contains_key(&record) {
                    self.counts.fetched += 1;
                    self.records.ahead += 1;
                    self.l2arc.read_ahead(record);
                    let cause = Cause::of(&request);
                    let ahead = self.read_record(now, record, Class::AsyncRead, cause);
                    // The entry without a waiter keeps a second request from reading the record
                    // again.
                    let reading = Reading {
                        waiter: NONE,
                        is_ahead: true,
                        ahead,
                    };
                    self.records.reading.insert(record, reading);
                }
            }
        }
    }

    /// Begins a write: records of which a part stays must be in memory first.
    pub(super) fn write(&mut self, now: Time, asked: u32) {
        if self.waits_for_metadata(now, asked) || self.reads_before_change(now, asked) {
            return;
        }
        let extent = self.asked[asked].request.extent;
        let all = self.units_of(extent);
        // A record is compressed and checked as a whole, so a partial write needs the rest of the
        // record (`dbuf_will_dirty`).
        let ends = [
            Some(all.start),
            Some(all.end - 1).filter(|last| *last > all.start),
        ];
        for unit in ends.into_iter().flatten() {
            let (record, part) = self.part(extent, unit);
            let covers = part.start == 0 && part.end >= self.size_of(record);
            let is_known = covers || !self.is_stored(record);
            if !is_known && !self.txg.holds(record) && !self.records.arc.access(record) {
                self.counts.read_for_writes += 1;
                self.wait_for(now, record, asked);
            }
        }
        if self.asked[asked].remaining == 0 && !self.calls(now, asked) {
            self.admit(now, asked);
        }
    }

    /// A record has been read: its waiters go on.
    pub(super) fn record_read(&mut self, now: Time, record: u64, block: &Block, out: &mut Effects) {
        let reading = self.records.reading.remove(&record);
        let mut next = reading.map_or(NONE, |reading| reading.waiter);
        let was_ahead = reading.is_some_and(|reading| reading.is_ahead);
        self.records.ahead -= u64::from(was_ahead);
        if was_ahead && next != NONE {
            let asked = self.records.waiters[next].asked;
            let units = self.units_of(self.asked[asked].request.extent);
            self.records.zfetch.came_late(units.start);
        }
        if block.status == RequestStatus::Done {
            // A record that nobody waits for was read ahead (`arc_uncached` of 2.2).
            match next {
                NONE => self.put_into_memory(record),
                _ => self.keep_in_memory(record),
            }
        }
        while next != NONE {
            let waiter = self.records.waiters.take(next);
            next = waiter.next;
            if !self.waited(waiter.asked, block) {
                continue;
            }
            if self.goes_on_behind_metadata(now, waiter.asked, record) {
                continue;
            }
            if self.calls(now, waiter.asked) {
                continue;
            }
            let asked = &self.asked[waiter.asked];
            // The read was only the first half of a partial write.
            if asked.request.operation == Operation::Write && asked.status == RequestStatus::Done {
                self.admit(now, waiter.asked);
            } else {
                self.complete(now, waiter.asked, out);
            }
        }
    }
}
