//! Reads and writes of records: places, records in memory, and requests that wait for a record.

use super::Pool;
use crate::arc::RecordCache;
use crate::config::PoolSettings;
use crate::io::{Block, Cause, Purpose};
use crate::place::{Dva, FirstPlaces};
use crate::queue::Class;
use crate::zfetch::Zfetch;
use fullstroke_contract::{Effects, Operation, RequestStatus, Slots};
use fullstroke_units::{SECTOR_BYTES, Time};
use std::collections::HashMap;

const NONE: u32 = u32::MAX;

/// The records of the volume: their places, and the records in memory.
#[derive(Debug)]
pub(crate) struct Records {
    places: FirstPlaces,
    /// Places of records that were written since the start of the run.
    pub(super) moved: HashMap<u64, Dva>,
    pub(super) arc: RecordCache,
    zfetch: Zfetch,
    /// Records that are being read, each with the first of its waiters.
    reading: HashMap<u64, u32>,
    waiters: Slots<Waiter>,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    asked: u32,
    next: u32,
}

impl Records {
    pub(super) fn new(settings: &PoolSettings, places: FirstPlaces) -> Records {
        let records = settings.volsize / settings.record;
        let memory = &settings.memory;
        Records {
            places,
            moved: HashMap::new(),
            arc: RecordCache::new(memory.arc.0 / settings.psize),
            zfetch: Zfetch::new(settings.record, records, memory.prefetch_distance.0),
            reading: HashMap::new(),
            waiters: Slots::default(),
        }
    }
}

impl Pool {
    /// Returns the place of a record, and true if the record is from before an expansion.
    pub(crate) fn place_of(&self, record: u64) -> (Dva, u64, bool) {
        match self.records.moved.get(&record) {
            // A record that was rewritten has the present width. Other records keep the width
            // before the expansion.
            Some(dva) => (*dva, self.settings.psize, false),
            None => (self.records.places.of(record), self.settings.psize, true),
        }
    }

    /// Moves a record to a new place and frees the old one.
    pub(crate) fn move_record(&mut self, record: u64, dva: Dva) {
        let (before, psize, old) = self.place_of(record);
        if before == dva {
            return;
        }
        let asize = self.io.asize(before.vdev as usize, psize, old);
        self.space.free(before, asize);
        self.records.moved.insert(record, dva);
    }

    /// Returns true if the record is in memory.
    fn is_in_memory(&self, record: u64) -> bool {
        self.txg.holds(record) || self.records.arc.holds(record)
    }

    /// Lets a request wait for a record. Begins to read the record if nobody has.
    fn wait_for(&mut self, now: Time, record: u64, asked: u32) {
        let head = self.records.reading.get(&record).copied();
        let waiter = self.records.waiters.keep(Waiter {
            asked,
            next: head.unwrap_or(NONE),
        });
        self.records.reading.insert(record, waiter);
        self.asked[asked].remaining += 1;
        if head.is_none() {
            let cause = Cause::of(&self.asked[asked].request);
            self.read_record(now, record, Class::SyncRead, cause);
        }
    }

    /// Begins to read a record: from a cache on flash, or from the vdevs.
    fn read_record(&mut self, now: Time, record: u64, class: Class, cause: Cause) {
        let purpose = Purpose::Read { record };
        let is_ahead = class == Class::AsyncRead;
        match self.l2arc.find(record, is_ahead) {
            Some((member, offset)) if !self.io.has_failed(member) => {
                let place = (member, offset, self.settings.psize);
                let how = (Operation::Read, class);
                self.io.leaf(now, place, how, purpose, cause);
            }
            _ => {
                let place = self.place_of(record);
                self.io.read(now, place, class, purpose, cause);
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
        let request = self.asked[asked].request;
        let records = self.records_of(request.extent);
        for record in records.clone() {
            self.counts.reads += 1;
            self.l2arc.asked_for(record);
            if self.txg.holds(record) || self.records.arc.access(record) {
                self.counts.hits += 1;
            } else {
                self.wait_for(now, record, asked);
            }
        }
        if self.settings.memory.prefetch {
            let ahead = self.records.zfetch.access(now, records);
            for record in ahead {
                if !self.is_in_memory(record) && !self.records.reading.contains_key(&record) {
                    // The entry without a waiter keeps a second request from reading the record
                    // again.
                    self.records.reading.insert(record, NONE);
                    self.counts.fetched += 1;
                    self.l2arc.read_ahead(record);
                    self.read_record(now, record, Class::AsyncRead, Cause::of(&request));
                }
            }
        }
    }

    /// Begins a write: records of which a part stays must be in memory first.
    pub(super) fn write(&mut self, now: Time, asked: u32) {
        let extent = self.asked[asked].request.extent;
        let record = self.settings.record;
        let (begin, end) = (extent.start.0 * SECTOR_BYTES, extent.end().0 * SECTOR_BYTES);
        let all = self.records_of(extent);
        // A record is compressed and checked as a whole, so a partial write needs the rest of the
        // record.
        let partial = [
            (!begin.is_multiple_of(record)).then_some(all.start),
            (!end.is_multiple_of(record)).then_some(all.end - 1),
        ];
        let mut before = None;
        for number in partial.into_iter().flatten() {
            if before != Some(number) && !self.txg.holds(number) && !self.records.arc.access(number)
            {
                self.counts.read_for_writes += 1;
                self.wait_for(now, number, asked);
            }
            before = Some(number);
        }
        if self.asked[asked].remaining == 0 && !self.calls(now, asked) {
            self.admit(now, asked);
        }
    }

    /// A record has been read: its waiters go on.
    pub(super) fn record_read(&mut self, now: Time, record: u64, block: &Block, out: &mut Effects) {
        if block.status == RequestStatus::Done {
            self.records.arc.insert(record);
        }
        let mut next = self.records.reading.remove(&record).unwrap_or(NONE);
        while next != NONE {
            let waiter = self.records.waiters.take(next);
            next = waiter.next;
            if !self.waited(waiter.asked, block) {
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
