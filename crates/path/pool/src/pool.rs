//! The layer of a pool: requests for the volume, records in memory, and the way to the drives.
//!
//! The table lists the files in the order in which a request passes through them:
//!
//! | file | duty |
//! |---|---|
//! | `pool.rs`, `pool/` | requests, reads of records and metadata, admission of writers |
//! | `arc.rs`, `zfetch.rs` | records in memory, read-ahead |
//! | `l2arc.rs` | records on flash devices |
//! | `files.rs`, `holding.rs` | objects of a file system: records of any size; the keys that such a pool refuses |
//! | `txg.rs`, `sync.rs` | dirty records, and the steps of a transaction group |
//! | `zil.rs`, `commit.rs` | the intent log |
//! | `allocate.rs` | a place for each block |
//! | `processor.rs` | time of the processor for records |
//! | `io.rs`, `io/`, `queue.rs`, `classes.rs` | columns of blocks, and the queue of each drive |
//! | `resilver.rs`, `segments.rs` | scrubs, and filling a new drive |
//! | `trim.rs`, `trim_ranges.rs` | TRIM of free space |
//! | `scan.rs`, `scatter.rs` | the order of the records of a scan, and scattered records |
//!
//! Departures from ZFS: metadata of a volume is in memory for reads, and has an estimated size for
//! writes (`sync.rs`). A record without a free place is written over its old place.

mod files;
mod metadata;
mod node;
mod objects;
mod records;
mod trim_steps;

use crate::allocate::PoolSpace;
use crate::classes::async_writes;
use crate::config::PoolSettings;
use crate::files::KnownMetadata;
use crate::io::{Block, PoolIo, Purpose};
use crate::keys::{Logbias, Sync};
use crate::l2arc::L2arc;
use crate::place::FirstPlaces;
use crate::processor::{Job, Processor, add_work};
use crate::resilver::Resilver;
use crate::throttle::Throttle;
use crate::trim::Trim;
use crate::txg::{Step, Txg};
use crate::zil::{Logged, Zil};
use fullstroke_contract::{
    Completion, DatasetObject, Effects, Extent, Operation, Request, RequestStatus, Slots,
};
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use records::Records;
use std::collections::VecDeque;
use std::ops::Range;

/// A request from above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpperRequest {
    pub(crate) request: Request,
    pub(crate) submitted: Time,
    /// Number of records that the request waits for.
    remaining: u32,
    /// Metadata that the request has looked up.
    known: KnownMetadata,
    status: RequestStatus,
    /// The last completion among the I/Os of the request.
    pub(crate) last: Completion,
}

/// Counts over the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolCounts {
    reads: u64,
    hits: u64,
    fetched: u64,
    /// Records read because a write changed a part of each.
    read_for_writes: u64,
    /// Blocks of metadata for requests of files: needed blocks, blocks read from drives, and bytes
    /// read.
    metadata_asked: u64,
    metadata_read: u64,
    metadata_bytes: u64,
    delayed: Duration,
    /// Records and bytes written by transaction groups, and of metadata.
    pub(crate) written: u64,
    pub(crate) metadata: u64,
    /// Records that found no free place.
    pub(crate) in_place: u64,
}

/// A pool with one volume.
///
/// - **Events in**: the events of [`Node`](fullstroke_contract::Node).
/// - Invariant: a record is in at most one of these states: being read, dirty, clean in memory, on
///   the drives only.
pub struct Pool {
    pub(crate) name: &'static str,
    pub(crate) settings: PoolSettings,
    pub(crate) io: PoolIo,
    pub(crate) space: PoolSpace,
    /// Free space of the special vdev.
    pub(crate) special: Option<PoolSpace>,
    pub(crate) records: Records,
    pub(crate) txg: Txg,
    pub(crate) zil: Zil,
    pub(crate) processor: Processor,
    pub(crate) l2arc: L2arc,
    pub(crate) resilver: Resilver,
    pub(crate) trim: Trim,
    pub(crate) asked: Slots<UpperRequest>,
    /// Writers that go on at a time.
    delayed: VecDeque<(Time, u32)>,
    /// Writers that wait for less dirty data.
    stalled: VecDeque<u32>,
    pub(crate) counts: PoolCounts,
    idle_since: Time,
    /// Records of the present group in flight.
    pub(crate) throttle: Throttle,
}

impl Pool {
    /// Returns the layer of a pool called `name`.
    pub fn new(name: &'static str, settings: PoolSettings) -> Pool {
        let places = FirstPlaces::new(&settings);
        let io = PoolIo::new(&settings);
        let asize = io.asize(0, settings.psize, true);
        let memory = &settings.memory;
        Pool {
            name,
            space: PoolSpace::new(&settings, &places, asize),
            special: settings
                .special
                .as_ref()
                .map(|vdev| PoolSpace::of_special(vdev, &settings)),
            records: Records::new(&settings, places),
            io,
            txg: Txg::new(
                memory.dirty_data_max.0,
                Duration::from_secs(memory.txg_timeout_s.into()),
            ),
            zil: Zil::default(),
            processor: Processor::new(&settings),
            l2arc: L2arc::new(&settings),
            resilver: Resilver::scrubbing(&settings),
            trim: Trim::new(&settings),
            asked: Slots::default(),
            delayed: VecDeque::new(),
            stalled: VecDeque::new(),
            counts: PoolCounts::default(),
            idle_since: Time::ZERO,
            throttle: Throttle::new(settings.vdevs.len(), settings.special.is_some()),
            settings,
        }
        .place_small_blocks()
    }

    /// Returns the units of an extent: records of the volume, or addresses of records of files.
    fn units_of(&self, extent: Extent) -> Range<u64> {
        if let Some(files) = &self.records.files {
            return files.units_of(extent);
        }
        let record = self.settings.record;
        let (begin, end) = (extent.start.0 * SECTOR_BYTES, extent.end().0 * SECTOR_BYTES);
        begin / record..end.div_ceil(record)
    }

    /// Admits a writer, now or later, by the amount of dirty data.
    fn admit(&mut self, now: Time, asked: u32) {
        // Behind a stalled writer each later writer stalls too. Otherwise small writes could
        // overtake for ever.
        if !self.stalled.is_empty() || self.txg.is_full() {
            return self.stalled.push_back(asked);
        }
        let at = self.txg.admit(now);
        if at > now {
            self.counts.delayed += at.since(now);
            self.delayed.push_back((at, asked));
        } else {
            self.dirty(now, asked);
        }
    }

    /// Puts the data of a write into the open transaction group.
    fn dirty(&mut self, now: Time, asked: u32) {
        let request = self.asked[asked].request;
        let written = self.written_by(&request);
        for unit in self.units_of(request.extent) {
            let (record, part) = self.part(request.extent, unit);
            let bytes = self.grow(record, part.end);
            self.txg.dirty(record, bytes);
            self.l2arc.forget(record);
            if written == Logged::Indirect {
                self.zil.note_indirect(self.object_of(&request), record);
            }
        }
        self.keep_pointers(asked);
        let size = request.extent.sectors.0 * SECTOR_BYTES;
        match written {
            Logged::Data => self.zil.note(self.object_of(&request), size),
            Logged::Names => self.zil.note(0, 0),
            Logged::Indirect | Logged::Nothing => {}
        }
        let waits = match self.settings.sync {
            Sync::Standard => request.hints.force_unit_access,
            // The change of an inode belongs to a call that waits anyway.
            Sync::Always => written != Logged::Nothing,
            Sync::Disabled => false,
        };
        if waits {
            self.zil.waiting.push_back(asked);
        } else {
            self.finish(now, asked);
        }
    }

    /// Returns the object whose writes the intent log keeps apart: a file, or 0 for a volume.
    pub(crate) fn object_of(&self, request: &Request) -> u32 {
        match &self.records.files {
            None => 0,
            Some(_) if request.operation == Operation::Flush => request.hints.stream,
            Some(_) => DatasetObject::at(request.extent.start).0.number,
        }
    }

    /// Returns the part of a write that goes into the intent log.
    fn written_by(&self, request: &Request) -> Logged {
        let size = request.extent.sectors.0 * SECTOR_BYTES;
        let has_logs = self.settings.logs > 0;
        let is_throughput = self.settings.logbias == Logbias::Throughput;
        let is_indirect = match &self.records.files {
            None => is_throughput || Zil::is_indirect(size, self.settings.record, has_logs),
            Some(_) => match DatasetObject::at(request.extent.start).0 {
                DatasetObject::TABLE => return Logged::Nothing,
                object if object.is_metadata => return Logged::Names,
                _ => is_throughput || Zil::is_indirect_of_file(size, has_logs),
            },
        };
        match is_indirect {
            true => Logged::Indirect,
            false => Logged::Data,
        }
    }

    /// Lets stalled writers go on as far as there is room for dirty data.
    pub(crate) fn admit_stalled(&mut self, now: Time) {
        while !self.txg.is_full()
            && let Some(asked) = self.stalled.pop_front()
        {
            // `admit` must find the queue empty, or this writer would go to the end of the queue
            // again.
            let rest = std::mem::take(&mut self.stalled);
            self.admit(now, asked);
            self.stalled.extend(rest);
        }
    }

    /// Takes note that a request need not wait for an I/O any longer. Returns true if it waits for
    /// nothing else.
    pub(crate) fn waited(&mut self, asked: u32, block: &Block) -> bool {
        let at = &mut self.asked[asked];
        at.status = at.status.max(block.status);
        if block.last.finished >= at.last.finished {
            at.last = block.last;
        }
        at.remaining = at.remaining.saturating_sub(1);
        at.remaining == 0
    }

    /// A record has been written by a transaction group.
    fn record_written(&mut self, now: Time, record: u64, vdev: u32) {
        self.throttle.ended(vdev as usize);
        self.txg.outstanding -= 1;
        self.txg.written(record);
        if !self.was_freed(record) {
            self.keep_in_memory(record);
        }
        self.processor.written(record);
        self.admit_stalled(now);
    }

    /// Notes a request as ended; the answer follows at the end of the event.
    pub(crate) fn finish(&mut self, _now: Time, asked: u32) {
        self.zil.finished.push_back(asked);
    }

    /// Answers a request.
    fn complete(&mut self, now: Time, asked: u32, out: &mut Effects) {
        let asked = self.asked.take(asked);
        // A request that ends later than its last I/O has waited in the pool, and that I/O does not
        // explain the time.
        let last = Some(&asked.last).filter(|last| last.finished == now);
        let completion = Completion::ready(asked.submitted, now, last);
        let mut completion = completion.held_since(asked.submitted, asked.request.id);
        completion.status = asked.status;
        self.idle_since = now;
        out.complete(completion);
    }

    /// Carries on with everything that an event has made possible.
    fn settle(&mut self, now: Time, out: &mut Effects) {
        // Each step may end blocks without I/O, and ended blocks may allow further steps.
        loop {
            while let Some(job) = self.processor.ended(now) {
                self.job_ended(now, job, out);
            }
            while let Some(block) = self.io.ended.pop() {
                self.block_ended(now, &block, out);
            }
            while let Some(&(at, asked)) = self.delayed.front()
                && at <= now
            {
                self.delayed.pop_front();
                self.dirty(now, asked);
            }
            self.commit_step(now, out);
            self.sync_step(now, out);
            self.resilver_step(now, out);
            self.trim_step(now);
            while let Some(asked) = self.zil.finished.pop_front() {
                self.complete(now, asked, out);
            }
            // The group goes on as soon as a scan has read everything.
            let scan_is_done = self.txg.step == Step::Scan && self.resilver.turn().is_none();
            if self.io.ended.is_empty() && !scan_is_done {
                break;
            }
        }
        self.feed_caches(now);
        // Drives get their I/O last, because the dirty data after all steps determine the limit of
        // writes.
        let most = self.settings.memory.dirty_data_max.0;
        self.io.pump(async_writes(self.txg.dirty, most), out);
    }

    /// Returns the time at which a group is due to be written.
    pub(crate) fn due(&self) -> Option<Time> {
        self.txg.due(self.resilver.scan())
    }

    fn block_ended(&mut self, now: Time, block: &Block, out: &mut Effects) {
        match block.purpose {
            Purpose::Read { record } => {
                if !self.processor.check(now, record, block) {
                    self.record_read(now, record, block, out);
                }
            }
            Purpose::Data { record, vdev } => self.record_written(now, record, vdev),
            Purpose::Group => self.txg.outstanding -= 1,
            Purpose::Log => {
                self.zil.outstanding -= 1;
                self.zil.last = block.last;
            }
            Purpose::Whole { asked } => {
                self.waited(asked, block);
                self.complete(now, asked, out);
            }
            Purpose::Fill { record } => self.l2arc.filled(record),
            Purpose::Trim { range } => self.trimmed(range),
            Purpose::Resilver { .. } | Purpose::Scrub | Purpose::Walk | Purpose::Repair => {
                self.resilver_ended(block);
            }
        }
    }

    /// Takes note of work of the processor that has ended.
    fn job_ended(&mut self, now: Time, job: Job, out: &mut Effects) {
        match job {
            Job::Read {
                record,
                mut block,
                began,
            } => {
                add_work(&mut block.last, began, now);
                self.record_read(now, record, &block, out);
            }
            Job::Write { record } => {
                self.txg.prepared.push_back(record);
                self.throttle.hand_over_one();
            }
            Job::Call { asked, began } => {
                let at = &mut self.asked[asked];
                add_work(&mut at.last, began, now);
                match at.request.operation {
                    Operation::Write => self.admit(now, asked),
                    _ => self.finish(now, asked),
                }
            }
        }
    }

    /// Begins the caller's work for a request whose records are in memory. Returns false if this
    /// needs no time.
    fn calls(&mut self, now: Time, asked: u32) -> bool {
        let request = &self.asked[asked].request;
        let bytes = request.extent.sectors.0 * SECTOR_BYTES;
        let mut work = Duration::ZERO;
        if request.operation == Operation::Read {
            for record in self.units_of(request.extent) {
                work += self.processor.access(record);
            }
        }
        self.processor.call(now, asked, bytes, work)
    }

    /// Returns the answer to a request that cannot be served.
    fn refusal(&self, request: &Request) -> Option<RequestStatus> {
        let extent = request.extent;
        let whole = request.operation.is_of_all();
        let capacity = Sectors(self.settings.volsize / SECTOR_BYTES);
        let inside = extent.sectors.0 > 0
            && match &self.records.files {
                Some(_) => Pool::is_in_object(extent),
                None => extent.within(capacity),
            };
        if !whole && (!inside || request.hints.members) {
            Some(RequestStatus::OutOfRange)
        } else {
            None
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
