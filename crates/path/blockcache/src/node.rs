//! The node of a cache in front of an array.

use crate::flight::{CacheIo, CachedRequest, FLASH, IoPurpose, ORIGIN};
use crate::rule::{CacheRule, Part};
use fullstroke_contract::{
    Completion, Counters, Extent, Gauge, Hints, LayerReadings, Node, NodeContext, Operation, Port,
    Request, RequestId, RequestStatus, Slots, Wake,
};
use fullstroke_units::{SECTOR_BYTES, Sectors, Time};
use std::collections::VecDeque;

/// A cache on a flash device in front of an array.
///
/// - **Events in**: the events of [`Node`].
/// - **Effects out**: `issue`, `complete`.
///
/// Lower port 0 is the array, lower port 1 the flash device. The addresses above are those of the
/// array.
///
/// Without the flash device (`lost_at`), the cache passes everything on to the array. If the flash
/// device had dirty data, every later request ends as lost: bcache stops such
/// a device (`conditional_stop_bcache_device`, drivers/md/bcache/super.c, Linux 6.1), and a dm
/// target answers with errors.
pub struct BlockCache {
    name: &'static str,
    capacity: Sectors,
    rule: Box<dyn CacheRule>,
    slots: Slots<CachedRequest>,
    ios: Slots<CacheIo>,
    /// Requests without room, in order.
    waiting: VecDeque<u32>,
    /// Parts of the request in work.
    parts: Vec<Part>,
    /// Time at which the flash device is lost. [`Time::NEVER`] if never.
    lost_at: Time,
    loss: Loss,
    idle_since: Time,
    counts: CacheCounts,
}

/// State of the flash device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// The flash device works.
    None,
    /// The flash device is gone. The array has all data.
    Harmless,
    /// The flash device is gone, and data with it.
    Fatal,
}

#[derive(Clone, Copy, Debug, Default)]
struct CacheCounts {
    read: u64,
    read_from_flash: u64,
    written: u64,
    filled: u64,
    copied: u64,
    waited: u64,
    lost: u64,
}

impl BlockCache {
    /// Returns the cache `name` in front of an array of `capacity` sectors. The flash device is lost
    /// at `lost_at`.
    pub fn new(
        name: &'static str,
        rule: Box<dyn CacheRule>,
        capacity: Sectors,
        lost_at: Time,
    ) -> BlockCache {
        BlockCache {
            name,
            capacity,
            rule,
            slots: Slots::default(),
            ios: Slots::default(),
            waiting: VecDeque::new(),
            parts: Vec::new(),
            lost_at,
            loss: Loss::None,
            idle_since: Time::ZERO,
            counts: CacheCounts::default(),
        }
    }

    /// Puts clean data of the array's first `sectors` sectors on the flash device, before a run.
    /// Returns the number of sectors for which the cache has room.
    pub fn warm(&mut self, sectors: Sectors) -> Sectors {
        Sectors(self.rule.warm(sectors.0))
    }

    /// Returns an I/O in flight and, for a part of a request, the request's id.
    #[cfg(test)]
    pub(crate) fn io(&self, id: RequestId) -> (CacheIo, Option<RequestId>) {
        let io = self.ios[id.0 as u32];
        let host = match io.purpose {
            IoPurpose::Host(slot) => Some(self.slots[slot].request.id),
            _ => None,
        };
        (io, host)
    }

    /// Takes the flash device away, if its time has come.
    fn check_loss(&mut self, now: Time) {
        if self.loss != Loss::None || now < self.lost_at {
            return;
        }
        self.loss = match self.rule.dirty_sectors() {
            0 => Loss::Harmless,
            dirty => {
                self.counts.lost = dirty;
                Loss::Fatal
            }
        };
        self.rule.lose();
    }

    fn issue(
        &mut self,
        now: Time,
        (operation, extent, hints): (Operation, Extent, Hints),
        part: Part,
        purpose: IoPurpose,
        cx: &mut NodeContext<'_>,
    ) {
        let flash = part.cache.is_some();
        let origin = match purpose {
            IoPurpose::Host(slot) | IoPurpose::Commit(slot) => self.slots[slot].request.origin,
            _ => Request::BACKGROUND,
        };
        let slot = self.ios.keep(CacheIo {
            part,
            purpose,
            left: u32::from(flash) + u32::from(part.origin),
            status: RequestStatus::Done,
            issued: now,
        });
        let request = Request {
            id: RequestId(u64::from(slot)),
            origin,
            operation,
            extent,
            hints,
            ..Request::default()
        };
        if part.origin {
            cx.out.issue(ORIGIN, request);
        }
        if let Some(place) = part.cache {
            let sectors = extent.sectors.0;
            let extent = match operation.is_of_all() {
                true => Extent::default(),
                false => Extent::new(place, sectors),
            };
            // Facts of the array's addresses mean nothing on the flash device.
            let hints = Hints {
                synchronous: hints.synchronous,
                force_unit_access: hints.force_unit_access,
                ..Hints::default()
            };
            let request = Request {
                extent,
                hints,
                ..request
            };
            cx.out.issue(FLASH, request);
        }
    }

    /// Begins the request in `slot`. Returns false if the request must wait.
    fn begin(&mut self, now: Time, slot: u32, cx: &mut NodeContext<'_>) -> bool {
        let CachedRequest { request, .. } = self.slots[slot];
        let (start, sectors) = (request.extent.start.0, request.extent.sectors.0);
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        let begun = match (request.operation, self.loss) {
            (_, Loss::Fatal) => {
                self.parts = parts;
                self.slots[slot].status = RequestStatus::Lost;
                self.finish(now, slot, cx);
                return true;
            }
            (Operation::Read, Loss::None) => {
                self.rule.read(now, start, sectors, &mut parts);
                true
            }
            (Operation::Write, Loss::None) => {
                let synchronous = request.hints.synchronous;
                self.rule
                    .write(now, start, sectors, synchronous, &mut parts)
            }
            (Operation::Discard, Loss::None) if !self.rule.discard(start, sectors) => false,
            (Operation::Flush, Loss::None) => {
                self.commit(now, slot, cx);
                self.parts = parts;
                return true;
            }
            _ => {
                parts.push(Part::of_origin(start, sectors));
                true
            }
        };
        self.slots[slot].left = parts.len() as u32;
        if request.operation == Operation::Read && begun {
            let of_flash = parts.iter().filter(|part| !part.origin);
            self.counts.read += sectors;
            self.counts.read_from_flash += of_flash.map(|part| part.sectors).sum::<u64>();
        }
        if request.operation == Operation::Write {
            let of_flash = parts.iter().filter(|part| part.cache.is_some());
            self.counts.written += of_flash.map(|part| part.sectors).sum::<u64>();
        }
        for part in &parts {
            let extent = match request.operation.is_of_all() {
                true => request.extent,
                false => Extent::new(part.start, part.sectors),
            };
            let what = (request.operation, extent, request.hints);
            self.issue(now, what, *part, IoPurpose::Host(slot), cx);
        }
        self.parts = parts;
        begun
    }

    /// Makes all completed writes durable, for the request in `slot`.
    fn commit(&mut self, now: Time, slot: u32, cx: &mut NodeContext<'_>) {
        let map = self.rule.commit(now);
        let request = self.slots[slot].request;
        let origin = request.operation == Operation::Flush && self.rule.flushes_origin();
        self.slots[slot].commits = true;
        self.slots[slot].left = 1 + u32::from(map.is_some());
        if let Some(map) = map {
            self.write_map(now, map, IoPurpose::Commit(slot), cx);
        }
        let part = Part {
            origin,
            cache: Some(0),
            ..Part::default()
        };
        let what = (Operation::Flush, Extent::default(), Hints::default());
        self.issue(now, what, part, IoPurpose::Commit(slot), cx);
    }

    /// Completes the request in `slot`, or begins its last stage.
    fn finish(&mut self, now: Time, slot: u32, cx: &mut NodeContext<'_>) {
        let CachedRequest {
            request,
            submitted,
            status,
            last,
            commits,
            ..
        } = self.slots[slot];
        let through = request.operation == Operation::Write && request.hints.force_unit_access;
        if through && !commits && status == RequestStatus::Done && self.loss == Loss::None {
            return self.commit(now, slot, cx);
        }
        self.slots.take(slot);
        self.idle_since = now;
        let ready = match last.finished == now && last.submitted >= submitted {
            true => last.held_since(submitted, request.id),
            false => {
                let at_once = Completion::at_once(request.id, now, status);
                at_once.held_since(submitted, request.id)
            }
        };
        cx.out.complete(Completion { status, ..ready });
    }

    /// Begins waiting requests and copies, as far as the rule lets them.
    fn go_on(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        while let Some(&slot) = self.waiting.front() {
            if !self.begin(now, slot, cx) {
                break;
            }
            self.waiting.pop_front();
        }
        if self.loss != Loss::None {
            return;
        }
        while let Some(copy) = self.rule.copy(now) {
            let part = Part {
                start: copy.start,
                sectors: copy.sectors,
                origin: copy.promotes,
                cache: (!copy.promotes).then_some(copy.place),
                mark: copy.mark,
            };
            let what = (
                Operation::Read,
                Extent::new(copy.start, copy.sectors),
                Hints::default(),
            );
            self.issue(now, what, part, IoPurpose::CopyRead(copy), cx);
        }
    }

    /// Carries out what is due at `now`.
    fn due(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.check_loss(now);
        if self.loss == Loss::None
            && let Some(map) = self.rule.timer(now)
        {
            self.write_map(now, map, IoPurpose::Map, cx);
        }
    }

    /// Writes a part of the map durably to the flash device: place and sectors.
    fn write_map(
        &mut self,
        now: Time,
        (place, sectors): (u64, u64),
        purpose: IoPurpose,
        cx: &mut NodeContext<'_>,
    ) {
        let part = Part {
            start: 0,
            sectors,
            origin: false,
            cache: Some(place),
            mark: Part::UNMARKED,
        };
        let what = (Operation::Write, Extent::new(0, sectors), durable());
        self.issue(now, what, part, purpose, cx);
    }

    /// Takes the end of an I/O on all its devices.
    fn io_ended(&mut self, now: Time, io: &CacheIo, last: &Completion, cx: &mut NodeContext<'_>) {
        match io.purpose {
            IoPurpose::Host(slot) => self.part_ended(now, slot, io, last, cx),
            IoPurpose::Commit(slot) => self.answer(now, slot, io.status, last, cx),
            IoPurpose::Fill if self.loss == Loss::None => {
                self.counts.filled += io.part.sectors;
                self.rule.fill_ended(now, &io.part);
            }
            IoPurpose::CopyRead(copy) if self.loss == Loss::None => {
                let part = Part {
                    start: copy.start,
                    sectors: copy.sectors,
                    origin: !copy.promotes,
                    cache: copy.promotes.then_some(copy.place),
                    mark: copy.mark,
                };
                let extent = Extent::new(copy.start, copy.sectors);
                let what = (Operation::Write, extent, unawaited());
                self.issue(now, what, part, IoPurpose::CopyWrite(copy), cx);
            }
            IoPurpose::CopyWrite(copy) if self.loss == Loss::None => {
                match copy.promotes {
                    true => self.counts.filled += copy.sectors,
                    false => self.counts.copied += copy.sectors,
                }
                self.rule.copy_ended(now, &copy);
            }
            IoPurpose::Fill | IoPurpose::CopyRead(_) | IoPurpose::CopyWrite(_) | IoPurpose::Map => {
            }
        }
    }

    /// Takes the end of a part of the host's request in `slot`.
    fn part_ended(
        &mut self,
        now: Time,
        slot: u32,
        io: &CacheIo,
        last: &Completion,
        cx: &mut NodeContext<'_>,
    ) {
        let CachedRequest { request, .. } = self.slots[slot];
        let part = io.part;
        let mut status = io.status;
        let done = status == RequestStatus::Done;
        match (request.operation, self.loss) {
            (Operation::Read, Loss::None) => {
                if let Some(fill) = self.rule.read_ended(now, &part, done) {
                    let extent = Extent::new(fill.start, fill.sectors);
                    let what = (Operation::Write, extent, unawaited());
                    self.issue(now, what, fill, IoPurpose::Fill, cx);
                }
            }
            (Operation::Write, Loss::None) => self.rule.write_ended(now, &part, done),
            // The array has the data that a lost flash device answered with an error: bcache reads
            // clean data again from the backing device (`cached_dev_read_error`).
            (Operation::Read, Loss::Harmless) if !part.origin => {
                let origin = Part::of_origin(part.start, part.sectors);
                let what = (
                    Operation::Read,
                    Extent::new(part.start, part.sectors),
                    request.hints,
                );
                return self.issue(now, what, origin, IoPurpose::Host(slot), cx);
            }
            // A write to the flash device alone is gone with the device.
            (Operation::Write, _) if !part.origin => status = RequestStatus::Lost,
            (Operation::Read, Loss::Fatal) if !part.origin => status = RequestStatus::Lost,
            _ => {}
        }
        self.answer(now, slot, status, last, cx);
    }

    /// Counts an ended part of the request in `slot`.
    fn answer(
        &mut self,
        now: Time,
        slot: u32,
        status: RequestStatus,
        last: &Completion,
        cx: &mut NodeContext<'_>,
    ) {
        let request = &mut self.slots[slot];
        request.status = request.status.max(status);
        if last.finished >= request.last.finished {
            request.last = *last;
        }
        request.left -= 1;
        if request.left == 0 {
            self.finish(now, slot, cx);
        }
    }
}

/// Hints of a write that no process waits for: copies of kcopyd and the write-back of bcache have no
/// `REQ_SYNC`, so that the block layer throttles them (`blk-wbt.c`).
fn unawaited() -> Hints {
    Hints {
        synchronous: false,
        ..Hints::default()
    }
}

/// Hints of a write that is durable when it ends.
fn durable() -> Hints {
    Hints {
        force_unit_access: true,
        synchronous: true,
        ..Hints::default()
    }
}

impl Node for BlockCache {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let empty = request.operation.transfers() && request.extent.sectors == Sectors::ZERO;
        if empty || !request.extent.within(self.capacity) {
            let status = RequestStatus::OutOfRange;
            return cx
                .out
                .complete(Completion::at_once(request.id, now, status));
        }
        self.due(now, cx);
        let slot = self.slots.keep(CachedRequest {
            request,
            submitted: now,
            left: 0,
            status: RequestStatus::Done,
            last: Completion::default(),
            commits: false,
        });
        // A write does not overtake a waiting write. Reads need no room.
        let free = self.waiting.is_empty() || request.operation == Operation::Read;
        if !(free && self.begin(now, slot, cx)) {
            self.counts.waited += 1;
            self.waiting.push_back(slot);
        }
        self.go_on(now, cx);
    }

    fn completed(
        &mut self,
        now: Time,
        from: Port,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
        self.check_loss(now);
        let slot = completion.id.0 as u32;
        let io = &mut self.ios[slot];
        io.status = io.status.max(completion.status);
        io.left -= 1;
        let io = *io;
        if from.index() == FLASH && io.part.sectors > 0 && self.loss == Loss::None {
            let write = match io.purpose {
                IoPurpose::Host(slot) => self.slots[slot].request.operation == Operation::Write,
                IoPurpose::CopyRead(_) => false,
                _ => true,
            };
            self.rule
                .answered(now, write, now.saturating_since(io.issued));
        }
        if io.left == 0 {
            self.ios.take(slot);
            self.io_ended(now, &io, &completion, cx);
        }
        self.go_on(now, cx);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.due(now, cx);
        self.go_on(now, cx);
    }

    fn owners(&self, from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        // The flash device's addresses are not the host's.
        if from.index() == ORIGIN {
            owner(Port::FIRST, extent);
        }
    }

    fn next_wake(&self) -> Wake {
        let own = match self.loss {
            Loss::None => self.rule.alarm().min(self.lost_at),
            _ => Time::NEVER,
        };
        // Copies do not keep a run from ending.
        match self.slots.is_empty() && own < Time::NEVER {
            true => Wake::Chore(own),
            false => Wake::Work(own),
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
        let mb = |sectors: u64| (sectors * SECTOR_BYTES) as f64 / 1e6;
        let counts = &self.counts;
        let share = match counts.read {
            0 => 0.0,
            read => counts.read_from_flash as f64 / read as f64,
        };
        let mut readings = vec![
            ("ssd_hit_share", share),
            ("ssd_written_mb", mb(counts.written)),
            ("ssd_filled_mb", mb(counts.filled)),
            ("ssd_written_back_mb", mb(counts.copied)),
            ("ssd_dirty_mb", mb(self.rule.dirty_sectors())),
            ("ssd_waited", counts.waited as f64),
            ("ssd_lost_mb", mb(counts.lost)),
        ];
        self.rule.count(&mut readings);
        counters
            .layers
            .push(LayerReadings::new(self.name, &readings));
    }
}
