//! The layer of a pool: requests for the volume, records in memory, and the way to the drives.
//!
//! The table lists the files in the order in which a request passes through them:
//!
//! | file | duty |
//! |---|---|
//! | `pool.rs` | requests, reads of records, admission of writers |
//! | `arc.rs`, `zfetch.rs` | records in memory, read-ahead |
//! | `txg.rs`, `sync.rs` | dirty records, and the steps of a transaction group |
//! | `zil.rs`, `commit.rs` | the intent log |
//! | `allocate.rs` | a place for each block |
//! | `io.rs`, `queue.rs` | columns of blocks, and the queue of each drive |
//! | `resilver.rs` | filling a new drive |
//!
//! Departures from ZFS: the processor needs no time. Metadata is in memory for reads, and has an
//! estimated size for writes (`sync.rs`). A read that meets its own read-ahead in flight does not
//! hurry it. A record without a free place is written over its old place.

use crate::allocate::Space;
use crate::arc::RecordCache;
use crate::config::{PoolSettings, Sync};
use crate::io::{Block, Cause, PoolIo, Purpose};
use crate::place::{Dva, FirstPlaces};
use crate::queue::{Class, async_writes};
use crate::resilver::Resilver;
use crate::txg::Txg;
use crate::zfetch::Zfetch;
use crate::zil::Zil;
use fullstroke_contract::{
    Completion, Counters, Effects, Extent, Gauge, LayerOrder, LayerReadings, Node, NodeContext,
    Operation, Port, Refusal, Request, RequestStatus, Slots, Wake,
};
use fullstroke_units::{Duration, SECTOR_BYTES, Time};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

const NONE: u32 = u32::MAX;

/// A request from above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) request: Request,
    pub(crate) submitted: Time,
    /// Number of records that the request waits for.
    remaining: u32,
    status: RequestStatus,
    /// The I/O that ended last, of those that the request waited for.
    pub(crate) last: Completion,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    asked: u32,
    next: u32,
}

/// Counts over the run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PoolCounts {
    reads: u64,
    hits: u64,
    fetched: u64,
    /// Records read because a write changed a part of each.
    read_for_writes: u64,
    delayed: Duration,
    /// Records and bytes written by transaction groups, and of metadata.
    pub(crate) written: u64,
    pub(crate) metadata: u64,
    /// Records that found no free place.
    pub(crate) in_place: u64,
}

/// A pool with one volume.
///
/// - **Events in**: the events of [`Node`].
/// - Invariant: a record is in at most one of these states: being read, dirty, clean in memory, on
///   the drives only.
pub struct Pool {
    pub(crate) name: &'static str,
    pub(crate) settings: PoolSettings,
    pub(crate) io: PoolIo,
    pub(crate) space: Space,
    places: FirstPlaces,
    /// Places of records that were written since the start of the run.
    moved: HashMap<u64, Dva>,
    arc: RecordCache,
    zfetch: Zfetch,
    pub(crate) txg: Txg,
    pub(crate) zil: Zil,
    pub(crate) resilver: Resilver,
    pub(crate) asked: Slots<Asked>,
    waiters: Slots<Waiter>,
    /// Records that are being read, each with the first of its waiters.
    reading: HashMap<u64, u32>,
    /// Writers that go on at a time.
    delayed: VecDeque<(Time, u32)>,
    /// Writers that wait for less dirty data.
    stalled: VecDeque<u32>,
    pub(crate) counts: PoolCounts,
    idle_since: Time,
    /// Places of metadata, to be freed by the next group.
    pub(crate) metadata: Vec<(Dva, u64)>,
    /// Writes of the present group in flight, by vdev.
    pub(crate) in_flight: Vec<u32>,
    /// Records that a log commit writes to their final place; kept to reuse the memory.
    pub(crate) log_blocks: Vec<u64>,
}

impl Pool {
    /// Returns the layer of a pool called `name`.
    pub fn new(name: &'static str, settings: PoolSettings) -> Pool {
        let places = FirstPlaces::new(&settings);
        let io = PoolIo::new(&settings);
        let records = settings.volsize / settings.record;
        let asize = io.asize(0, settings.psize, true);
        let memory = &settings.memory;
        Pool {
            name,
            space: Space::new(&settings, &places, asize),
            places,
            io,
            moved: HashMap::new(),
            arc: RecordCache::new(memory.arc.0 / settings.psize),
            zfetch: Zfetch::new(settings.record, records, memory.prefetch_distance.0),
            txg: Txg::new(
                settings.record,
                memory.dirty_data_max.0,
                Duration::from_secs(memory.txg_timeout_s.into()),
            ),
            zil: Zil::default(),
            resilver: Resilver::default(),
            asked: Slots::default(),
            waiters: Slots::default(),
            reading: HashMap::new(),
            delayed: VecDeque::new(),
            stalled: VecDeque::new(),
            counts: PoolCounts::default(),
            idle_since: Time::ZERO,
            metadata: Vec::new(),
            in_flight: vec![0; settings.vdevs.len()],
            log_blocks: Vec::new(),
            settings,
        }
    }

    /// Returns the place of a record, and true if the record is from before an expansion.
    pub(crate) fn place_of(&self, record: u64) -> (Dva, u64, bool) {
        match self.moved.get(&record) {
            Some(dva) => (*dva, self.settings.psize, false),
            None => (self.places.of(record), self.settings.psize, true),
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
        self.moved.insert(record, dva);
    }

    /// Returns the records of an extent.
    fn records(&self, extent: Extent) -> Range<u64> {
        let record = self.settings.record;
        let (begin, end) = (extent.start.0 * SECTOR_BYTES, extent.end().0 * SECTOR_BYTES);
        begin / record..end.div_ceil(record)
    }

    /// Returns true if the record is in memory.
    fn is_in_memory(&self, record: u64) -> bool {
        self.txg.holds(record) || self.arc.holds(record)
    }

    /// Lets a request wait for a record. Begins to read the record if nobody has.
    fn wait_for(&mut self, now: Time, record: u64, asked: u32) {
        let head = self.reading.get(&record).copied();
        let waiter = self.waiters.keep(Waiter {
            asked,
            next: head.unwrap_or(NONE),
        });
        self.reading.insert(record, waiter);
        self.asked[asked].remaining += 1;
        if head.is_none() {
            let cause = Cause::of(&self.asked[asked].request);
            let place = self.place_of(record);
            let purpose = Purpose::Read { record };
            self.io.read(now, place, Class::SyncRead, purpose, cause);
        }
    }

    fn read(&mut self, now: Time, asked: u32) {
        let request = self.asked[asked].request;
        let records = self.records(request.extent);
        for record in records.clone() {
            self.counts.reads += 1;
            if self.txg.holds(record) || self.arc.access(record) {
                self.counts.hits += 1;
            } else {
                self.wait_for(now, record, asked);
            }
        }
        if self.settings.memory.prefetch {
            let ahead = self.zfetch.access(now, records);
            for record in ahead {
                if !self.is_in_memory(record) && !self.reading.contains_key(&record) {
                    self.reading.insert(record, NONE);
                    self.counts.fetched += 1;
                    let place = self.place_of(record);
                    let purpose = Purpose::Read { record };
                    let cause = Cause::of(&request);
                    self.io.read(now, place, Class::AsyncRead, purpose, cause);
                }
            }
        }
    }

    /// Begins a write: records of which a part stays must be in memory first.
    fn write(&mut self, now: Time, asked: u32) {
        let extent = self.asked[asked].request.extent;
        let record = self.settings.record;
        let (begin, end) = (extent.start.0 * SECTOR_BYTES, extent.end().0 * SECTOR_BYTES);
        let all = self.records(extent);
        let partial = [
            (!begin.is_multiple_of(record)).then_some(all.start),
            (!end.is_multiple_of(record)).then_some(all.end - 1),
        ];
        let mut before = None;
        for number in partial.into_iter().flatten() {
            if before != Some(number) && !self.txg.holds(number) && !self.arc.access(number) {
                self.counts.read_for_writes += 1;
                self.wait_for(now, number, asked);
            }
            before = Some(number);
        }
        if self.asked[asked].remaining == 0 {
            self.admit(now, asked);
        }
    }

    /// Admits a writer, now or later, by the amount of dirty data.
    fn admit(&mut self, now: Time, asked: u32) {
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
        let (record, has_logs) = (self.settings.record, self.settings.logs > 0);
        let size = request.extent.sectors.0 * SECTOR_BYTES;
        let indirect = Zil::is_indirect(size, record, has_logs);
        for number in self.records(request.extent) {
            self.txg.dirty(number);
            if indirect {
                self.zil.note_indirect(number);
            }
        }
        if !indirect {
            self.zil.note(size);
        }
        let waits = match self.settings.sync {
            Sync::Standard => request.hints.force_unit_access,
            Sync::Always => true,
            Sync::Disabled => false,
        };
        if waits {
            self.zil.waiting.push_back(asked);
        } else {
            self.finish(now, asked);
        }
    }

    /// Lets stalled writers go on as far as there is room for dirty data.
    pub(crate) fn admit_stalled(&mut self, now: Time) {
        while !self.txg.is_full()
            && let Some(asked) = self.stalled.pop_front()
        {
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

    /// A record has been read: its waiters go on.
    fn record_read(&mut self, now: Time, record: u64, block: &Block, out: &mut Effects) {
        if block.status == RequestStatus::Done {
            self.arc.insert(record);
        }
        let mut next = self.reading.remove(&record).unwrap_or(NONE);
        while next != NONE {
            let waiter = self.waiters.take(next);
            next = waiter.next;
            if !self.waited(waiter.asked, block) {
                continue;
            }
            let asked = &self.asked[waiter.asked];
            if asked.request.operation == Operation::Write && asked.status == RequestStatus::Done {
                self.admit(now, waiter.asked);
            } else {
                self.complete(now, waiter.asked, out);
            }
        }
    }

    /// A record has been written by a transaction group.
    fn record_written(&mut self, now: Time, record: u64, vdev: u32) {
        self.in_flight[vdev as usize] -= 1;
        self.txg.outstanding -= 1;
        self.txg.written(record);
        self.arc.insert(record);
        self.admit_stalled(now);
    }

    /// Notes a request as ended; the answer follows at the end of the event.
    pub(crate) fn finish(&mut self, _now: Time, asked: u32) {
        self.zil.finished.push_back(asked);
    }

    /// Answers a request.
    fn complete(&mut self, now: Time, asked: u32, out: &mut Effects) {
        let asked = self.asked.take(asked);
        let last = Some(&asked.last).filter(|last| last.finished == now);
        let completion = Completion::ready(asked.submitted, now, last);
        let mut completion = completion.held_since(asked.submitted, asked.request.id);
        completion.status = asked.status;
        self.idle_since = now;
        out.complete(completion);
    }

    /// Carries on with everything that an event has made possible.
    fn settle(&mut self, now: Time, out: &mut Effects) {
        loop {
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
            while let Some(asked) = self.zil.finished.pop_front() {
                self.complete(now, asked, out);
            }
            if self.io.ended.is_empty() {
                break;
            }
        }
        let most = self.settings.memory.dirty_data_max.0;
        self.io.pump(async_writes(self.txg.dirty, most), out);
    }

    fn block_ended(&mut self, now: Time, block: &Block, out: &mut Effects) {
        match block.purpose {
            Purpose::Read { record } => self.record_read(now, record, block, out),
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
            Purpose::Resilver { .. } | Purpose::Repair => self.resilver_ended(block),
        }
    }

    /// Returns the answer to a request that cannot be served.
    fn refusal(&self, request: &Request) -> Option<RequestStatus> {
        let extent = request.extent;
        let whole = request.operation.is_of_all();
        let capacity = self.settings.volsize / SECTOR_BYTES;
        let inside = extent.sectors.0 > 0 && extent.within(fullstroke_units::Sectors(capacity));
        if !whole && (!inside || request.hints.members) {
            Some(RequestStatus::OutOfRange)
        } else {
            None
        }
    }
}

impl Node for Pool {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        if let Some(status) = self.refusal(&request) {
            return cx
                .out
                .complete(Completion::at_once(request.id, now, status));
        }
        let asked = self.asked.keep(Asked {
            request,
            submitted: now,
            remaining: 0,
            status: RequestStatus::Done,
            last: Completion::default(),
        });
        match request.operation {
            Operation::Read => {
                self.read(now, asked);
                if self.asked[asked].remaining == 0 {
                    self.finish(now, asked);
                }
            }
            Operation::Write => self.write(now, asked),
            Operation::Flush => {
                if self.settings.sync == Sync::Disabled {
                    self.finish(now, asked);
                } else {
                    self.zil.waiting.push_back(asked);
                }
            }
            // The space of discarded records is not freed: the volume stays as large.
            Operation::Discard | Operation::Answer => self.finish(now, asked),
            Operation::Standby | Operation::Start => {
                self.io
                    .command(request.operation, None, Purpose::Whole { asked }, cx.out);
            }
        }
        self.settle(now, cx.out);
    }

    fn completed(
        &mut self,
        now: Time,
        from: Port,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
        self.io.completed(from.index(), &completion);
        self.settle(now, cx.out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.settle(now, cx.out);
    }

    /// Records move, so that an address of a drive has no fixed owner.
    fn owners(&self, _: Port, _: Extent, _: &mut dyn FnMut(Port, Extent)) {}

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        self.carry_out(order)?;
        self.settle(now, cx.out);
        Ok(())
    }

    fn next_wake(&self) -> Wake {
        if self.resilver.waits_for_start() {
            return Wake::Work(Time::ZERO);
        }
        match (self.delayed.front(), self.txg.due()) {
            (Some((at, _)), due) => Wake::Work(due.map_or(*at, |due| due.min(*at))),
            // Nobody waits for a group that is not full.
            (None, Some(due)) => Wake::Chore(due),
            (None, None) => Wake::NEVER,
        }
    }

    fn gauge(&self) -> Gauge {
        let waiting = self.asked.len() as u32;
        Gauge {
            queue_length: waiting,
            idle_since: (waiting == 0).then_some(self.idle_since),
            alive: self.io.answers(),
            ..Gauge::default()
        }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        let counts = &self.counts;
        let (issued, joined) = self
            .io
            .leaves
            .iter()
            .fold((0, 0), |(issued, joined), leaf| {
                (issued + leaf.counts.0, joined + leaf.counts.1)
            });
        let (runs, free) = self.space.fragments();
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let all = [
            ("pool_hit_share", counts.hits as f64 / counts.reads as f64),
            (
                "pool_read_ahead_mb",
                mb(counts.fetched * self.settings.record),
            ),
            ("pool_reads_for_writes", counts.read_for_writes as f64),
            ("pool_groups", self.txg.groups as f64),
            ("pool_group_written_mb", mb(counts.written)),
            ("pool_metadata_written_mb", mb(counts.metadata)),
            ("pool_delayed_ms", counts.delayed.as_millis_f64()),
            ("pool_log_commits", self.zil.commits as f64),
            ("pool_drive_ios", issued as f64),
            ("pool_joined_ios", joined as f64),
            ("pool_drive_read_mb", mb(self.io.moved.0)),
            ("pool_drive_written_mb", mb(self.io.moved.1)),
            ("pool_free_run_mb_mean", mb(free) / runs as f64),
            ("pool_written_in_place", counts.in_place as f64),
        ];
        let counted: Vec<(&'static str, f64)> = all
            .into_iter()
            .filter(|(_, value)| value.is_finite())
            .collect();
        counters
            .layers
            .push(LayerReadings::new(format!("pool {}", self.name), &counted));
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
