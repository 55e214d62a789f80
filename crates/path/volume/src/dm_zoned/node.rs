//! The node of dm-zoned.

use super::config::{BLOCK, ZonedFormat};
use super::map::ChunkMap;
use super::metadata::{FlushStep, Metadata, MetadataFlush, STEPS};
use super::progress::Reclaim;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Completion, ConfigError, Counters, Extent, Gauge, Hints, LayerReadings, Node, NodeContext,
    Operation, Port, Request, RequestId, RequestStatus, Slots, Wake,
};
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Time};
use std::collections::VecDeque;

/// Period of the writes of changed metadata (`DMZ_FLUSH_PERIOD`).
const FLUSH_PERIOD: Duration = Duration::from_secs(10);

/// Linux's dm-zoned above one drive with zones.
///
/// - **Events in**: the events of [`Node`].
/// - **Effects out**: `issue`, `complete`.
///
/// Invariants: the parts of requests to one chunk begin in the order of their arrival. While
/// reclaim works on a chunk, no part of a request to the chunk is in flight. While changed metadata
/// are being written, no part begins.
pub struct DmZoned {
    pub(super) map: ChunkMap,
    pub(super) slots: Slots<ZonedRequest>,
    pub(super) parts: Slots<RequestPart>,
    pub(super) ios: Slots<IoPurpose>,
    /// Parts that wait for a zone, for reclaim or for metadata, in order.
    pub(super) waiting: VecDeque<u32>,
    /// Parts that end without I/O, with their times, in order.
    pub(super) held: VecDeque<(Time, u32)>,
    pub(super) metadata: Metadata,
    pub(super) reclaim: Reclaim,
    /// Time of the next periodic write of metadata.
    flush_due: Time,
    /// Time of the newest request that moves data.
    pub(super) last_request: Time,
    idle_since: Time,
    pub(super) counts: ZonedCounts,
    /// Chunks with a waiting part; empty between events.
    pub(super) blocked: Vec<u32>,
}

/// A request of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZonedRequest {
    pub(super) request: Request,
    pub(super) submitted: Time,
    /// Parts without an end.
    pub(super) left: u32,
    pub(super) status: RequestStatus,
    pub(super) last: Completion,
}

/// The part of a request in one chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestPart {
    pub(super) request: u32,
    pub(super) chunk: u32,
    /// First block in the chunk, and the block behind the part.
    pub(super) start: u32,
    pub(super) end: u32,
    /// Data zone of the chunk since the part began.
    pub(super) zone: u32,
    /// I/Os in flight.
    pub(super) left: u32,
}

/// Purpose of an I/O of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IoPurpose {
    /// An I/O of this part of a request.
    Host(u32),
    /// A command of the host for the whole drive.
    Command(u32),
    /// A read of a copy: blocks `0..1` of the source.
    CopyRead(u32, u32),
    /// A write of a copy, or of zeros: blocks `0..1` of the destination.
    CopyWrite(u32, u32),
    /// A read of a bitmap block.
    Bitmap(u32),
    /// An I/O of a write of changed metadata.
    Metadata,
    /// A reset of a zone.
    Reset,
}

/// Totals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ZonedCounts {
    /// Blocks written at write pointers, and to random zones.
    pub(super) direct: u64,
    pub(super) random: u64,
    pub(super) reclaimed_zones: u64,
    pub(super) copied: u64,
    pub(super) zeroed: u64,
    pub(super) interrupted: u64,
    pub(super) waits: u64,
}

impl DmZoned {
    /// Creates dm-zoned from the keys of its layout, for a drive of `drive` sectors.
    ///
    /// # Errors
    /// As the layout: names the key, the value found and the value expected.
    pub fn new(keys: &Keys, drive: Sectors) -> Result<DmZoned, ConfigError> {
        Ok(DmZoned::of(ZonedFormat::read(keys, &[drive])?))
    }

    pub(super) fn of(format: ZonedFormat) -> DmZoned {
        DmZoned {
            metadata: Metadata::new(&format),
            reclaim: Reclaim::new(),
            map: ChunkMap::new(format),
            slots: Slots::default(),
            parts: Slots::default(),
            ios: Slots::default(),
            waiting: VecDeque::new(),
            held: VecDeque::new(),
            flush_due: Time::NEVER,
            last_request: Time::ZERO,
            idle_since: Time::ZERO,
            counts: ZonedCounts::default(),
            blocked: Vec::new(),
        }
    }

    /// Issues an I/O of the blocks `start..end` of a zone.
    pub(super) fn issue(
        &mut self,
        operation: Operation,
        (zone, start, end): (u32, u32, u32),
        purpose: IoPurpose,
        cx: &mut NodeContext<'_>,
    ) {
        let sectors = u64::from(end - start) * BLOCK;
        let extent = Extent::new(self.map.format.sector(zone, start), sectors);
        let (origin, hints) = match purpose {
            IoPurpose::Host(part) => {
                let request = &self.slots[self.parts[part].request].request;
                let stripe = None;
                (
                    request.origin,
                    Hints {
                        stripe,
                        ..request.hints
                    },
                )
            }
            _ => (Request::BACKGROUND, Hints::default()),
        };
        self.metadata.unflushed |= operation == Operation::Write;
        let request = Request {
            id: RequestId(u64::from(self.ios.keep(purpose))),
            origin,
            operation,
            extent,
            hints,
            ..Request::default()
        };
        cx.out.issue(0, request);
    }

    /// Issues a command for the whole drive.
    fn command(&mut self, operation: Operation, purpose: IoPurpose, cx: &mut NodeContext<'_>) {
        let request = Request {
            id: RequestId(u64::from(self.ios.keep(purpose))),
            origin: Request::BACKGROUND,
            operation,
            ..Request::default()
        };
        cx.out.issue(0, request);
    }

    /// Frees a zone without a chunk, and resets the zone if need be.
    pub(super) fn free(&mut self, zone: u32, cx: &mut NodeContext<'_>) {
        if self.map.free(zone) {
            let blocks = self.map.format.blocks;
            self.issue(Operation::Discard, (zone, 0, blocks), IoPurpose::Reset, cx);
        }
    }

    /// Carries out what an event has made possible.
    fn go_on(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        loop {
            let mut changed = self.copy_on(now, cx);
            if self.metadata.flush.is_none() {
                changed |= self.finish_reclaim(now, cx);
            }
            if self.metadata.flush.is_none() && !self.metadata.requests.is_empty() {
                self.begin_flush(cx);
            }
            self.retry(now, cx);
            changed |= self.begin_reclaim(now, cx);
            if !changed {
                break;
            }
        }
        if self.metadata.unflushed && self.flush_due == Time::NEVER {
            self.flush_due = now + FLUSH_PERIOD;
        }
    }

    /// Begins a write of the changed metadata.
    pub(super) fn begin_flush(&mut self, cx: &mut NodeContext<'_>) {
        let blocks: Vec<u32> = std::mem::take(&mut self.map.dirty).into_iter().collect();
        let requests = std::mem::take(&mut self.metadata.requests);
        let nothing = blocks.is_empty();
        self.metadata.flush = Some(MetadataFlush {
            step: if nothing { STEPS.len() } else { 0 },
            flushing: nothing,
            left: 0,
            blocks,
            requests,
        });
        match nothing {
            true => self.flush_drive(cx),
            false => self.write_step(0, cx),
        }
    }

    /// Issues the writes of a step.
    fn write_step(&mut self, step: usize, cx: &mut NodeContext<'_>) {
        let copy_start = |copy: u32| copy * self.map.format.meta_zones * self.map.format.blocks;
        let mut runs: Vec<(u32, u32)> = Vec::new();
        match STEPS[step] {
            FlushStep::Superblock(copy) => runs.push((copy_start(copy), copy_start(copy) + 1)),
            FlushStep::Blocks(copy) => {
                let blocks = self.metadata.flush.iter().flat_map(|flush| &flush.blocks);
                for block in blocks.map(|block| copy_start(copy) + block) {
                    match runs.last_mut() {
                        // The plug of the block layer joins neighbours.
                        Some(last) if last.1 == block => last.1 += 1,
                        _ => runs.push((block, block + 1)),
                    }
                }
            }
        }
        for &(start, end) in &runs {
            self.metadata.moved += u64::from(end - start);
            self.issue(Operation::Write, (0, start, end), IoPurpose::Metadata, cx);
        }
        if let Some(flush) = &mut self.metadata.flush {
            (flush.step, flush.flushing, flush.left) = (step, false, runs.len() as u32);
        }
    }

    fn flush_drive(&mut self, cx: &mut NodeContext<'_>) {
        self.command(Operation::Flush, IoPurpose::Metadata, cx);
        if let Some(flush) = &mut self.metadata.flush {
            (flush.flushing, flush.left) = (true, 1);
        }
    }

    /// Takes the end of an I/O of a write of metadata.
    fn metadata_ended(&mut self, now: Time, last: &Completion, cx: &mut NodeContext<'_>) {
        let Some(flush) = &mut self.metadata.flush else {
            unreachable!("an I/O of metadata belongs to a flush")
        };
        flush.left -= 1;
        if flush.left > 0 {
            return;
        }
        let next = flush.step + 1;
        match (flush.flushing, next < STEPS.len()) {
            (false, _) => self.flush_drive(cx),
            (true, true) => self.write_step(next, cx),
            (true, false) => self.flush_ended(now, last, cx),
        }
    }

    fn flush_ended(&mut self, now: Time, last: &Completion, cx: &mut NodeContext<'_>) {
        let Some(flush) = self.metadata.flush.take() else {
            return;
        };
        // The map is always in memory.
        let map_blocks = self.map.format.map_blocks;
        let bitmaps = flush.blocks.iter().filter(|&&block| block > map_blocks);
        bitmaps.for_each(|&block| self.metadata.keep(block));
        self.metadata.unflushed = !self.map.dirty.is_empty();
        self.flush_due = Time::NEVER;
        self.reclaim.flushed(now);
        for slot in flush.requests {
            self.request_ended(now, slot, last.status, last, cx);
        }
    }

    /// Carries out what is due at `now`.
    fn due(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while let Some(&(_, part)) = self.held.front().filter(|held| held.0 <= now) {
            self.held.pop_front();
            self.part_ended(now, part, cx);
        }
        if self.flush_due <= now && self.metadata.flush.is_none() {
            self.flush_due = Time::NEVER;
            self.begin_flush(cx);
        }
    }

    /// Notes the end of a request of the host.
    pub(super) fn ended(&mut self, now: Time) {
        self.idle_since = now;
    }
}

impl Node for DmZoned {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let Extent { start, sectors } = request.extent;
        let of_all = request.operation.is_of_all();
        // The device has logical blocks of 4 KiB.
        let whole = start.0.is_multiple_of(BLOCK) && sectors.0.is_multiple_of(BLOCK);
        let fits = request.extent.within(self.map.format.capacity) && sectors > Sectors::ZERO;
        if !(of_all || whole && fits) {
            let status = RequestStatus::OutOfRange;
            return cx
                .out
                .complete(Completion::at_once(request.id, now, status));
        }
        self.due(now, cx);
        let slot = self.slots.keep(ZonedRequest {
            request,
            submitted: now,
            left: 1,
            status: RequestStatus::Done,
            last: Completion::default(),
        });
        match request.operation {
            Operation::Flush => self.metadata.requests.push(slot),
            operation if of_all => self.command(operation, IoPurpose::Command(slot), cx),
            _ => self.split(now, slot, cx),
        }
        self.go_on(now, cx);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        self.due(now, cx);
        let done = completion.status == RequestStatus::Done;
        match self.ios.take(completion.id.0 as u32) {
            IoPurpose::Host(part) => self.host_io_ended(now, part, &completion, cx),
            IoPurpose::Command(slot) => {
                self.request_ended(now, slot, completion.status, &completion, cx);
            }
            IoPurpose::CopyRead(start, end) => self.reclaim.read_ended(now, start, end, done),
            IoPurpose::CopyWrite(start, end) => self.reclaim.write_ended(now, start, end, done),
            IoPurpose::Bitmap(block) => self.metadata.end_read(block),
            IoPurpose::Metadata => self.metadata_ended(now, &completion, cx),
            IoPurpose::Reset => {}
        }
        self.go_on(now, cx);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.due(now, cx);
        self.go_on(now, cx);
    }

    /// The addresses of the drive are not those of the device.
    fn owners(&self, _: Port, _: Extent, _: &mut dyn FnMut(Port, Extent)) {}

    fn next_wake(&self) -> Wake {
        let held = self.held.front().map_or(Time::NEVER, |held| held.0);
        let flush = match &self.metadata.flush {
            Some(_) => Time::NEVER,
            None => self.flush_due,
        };
        let at = held
            .min(flush)
            .min(self.reclaim.alarm(self.metadata.flush.is_some()));
        // Reclaim does not keep a run from ending.
        match self.slots.is_empty() && at < Time::NEVER {
            true => Wake::Chore(at),
            false => Wake::Work(at),
        }
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            queue_length: self.slots.len() as u32,
            idle_since: self.slots.is_empty().then_some(self.idle_since),
            ..Gauge::default()
        }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        let mb = |blocks: u64| (blocks * BLOCK * SECTOR_BYTES) as f64 / 1e6;
        let counts = &self.counts;
        let free = f64::from(self.map.free_random()) / f64::from(self.map.random_zones());
        let readings = [
            ("dmzoned_direct_mb", mb(counts.direct)),
            ("dmzoned_random_mb", mb(counts.random)),
            ("dmzoned_reclaimed_zones", counts.reclaimed_zones as f64),
            ("dmzoned_reclaimed_mb", mb(counts.copied)),
            ("dmzoned_zeroed_mb", mb(counts.zeroed)),
            ("dmzoned_interrupted", counts.interrupted as f64),
            ("dmzoned_metadata_mb", mb(self.metadata.moved)),
            ("dmzoned_waits", counts.waits as f64),
            ("dmzoned_free_random_share", free),
        ];
        counters
            .layers
            .push(LayerReadings::new("dm-zoned", &readings));
    }
}
