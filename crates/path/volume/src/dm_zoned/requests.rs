//! The requests of the host, chunk by chunk (drivers/md/dm-zoned-target.c).

use super::config::{BITMAP_BITS, BLOCK};
use super::map::NONE;
use super::node::{DmZoned, IoPurpose, RequestPart};
use fullstroke_contract::{Completion, NodeContext, Operation, RequestStatus};
use fullstroke_units::{Duration, Time};

/// Time of a part without I/O: the work of a thread of the kernel. Assumed.
const ANSWER: Duration = Duration::from_micros(10);

impl DmZoned {
    /// Splits a request into parts of one chunk each, and begins the parts (`dmz_map`).
    pub(super) fn split(&mut self, now: Time, slot: u32, cx: &mut NodeContext<'_>) {
        self.last_request = now;
        let extent = self.slots[slot].request.extent;
        let blocks = u64::from(self.map.format.blocks);
        let (mut at, end) = (extent.start.0 / BLOCK, extent.end().0 / BLOCK);
        let chunks = (end - 1) / blocks - at / blocks + 1;
        self.slots[slot].left = chunks as u32;
        while at < end {
            let chunk = at / blocks;
            let stop = end.min((chunk + 1) * blocks);
            let part = self.parts.keep(RequestPart {
                request: slot,
                chunk: chunk as u32,
                start: (at - chunk * blocks) as u32,
                end: (stop - chunk * blocks) as u32,
                zone: NONE,
                left: 0,
            });
            let behind = |&other: &u32| self.parts[other].chunk == chunk as u32;
            // Parts of one chunk keep their order, because the kernel has one work item with a list
            // of bios for each chunk (`dmz_queue_chunk_work`).
            if self.waiting.iter().any(behind) || !self.begin(now, part, cx) {
                self.counts.waits += 1;
                self.waiting.push_back(part);
            }
            at = stop;
        }
    }

    /// Begins waiting parts, in order for each chunk.
    pub(super) fn retry(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        if self.metadata.flush.is_some() {
            return;
        }
        let mut blocked = std::mem::take(&mut self.blocked);
        for _ in 0..self.waiting.len() {
            let Some(part) = self.waiting.pop_front() else {
                break;
            };
            let chunk = self.parts[part].chunk;
            if blocked.contains(&chunk) || !self.begin(now, part, cx) {
                blocked.push(chunk);
                self.waiting.push_back(part);
            }
        }
        blocked.clear();
        self.blocked = blocked;
    }

    /// Begins a part (`dmz_handle_bio`). Returns false if the part must wait.
    fn begin(&mut self, now: Time, slot: u32, cx: &mut NodeContext<'_>) -> bool {
        // `dmz_flush_metadata` takes the metadata's lock for writing, and `dmz_handle_bio` takes
        // the lock for reading, so no request begins during a flush.
        if self.metadata.flush.is_some() {
            return false;
        }
        let part = self.parts[slot];
        let operation = self.slots[part.request].request.operation;
        let mut zone = self.map.data_zone(part.chunk);
        if zone == NONE {
            if operation != Operation::Write {
                // The blocks of a chunk without data are zeros.
                self.held.push_back((now + ANSWER, slot));
                return true;
            }
            let Some(free) = self.take_random(now) else {
                return false;
            };
            self.map.map(free, part.chunk);
            zone = free;
        }
        if self.map.zone(zone).in_reclaim {
            // Since Linux 5.8 a bio ends the reclaim of its chunk (`DMZ_RECLAIM_TERMINATE`) instead
            // of waiting for the copy.
            self.reclaim.interrupt();
            return false;
        }
        if !self.has_bitmaps(zone, &part, cx) {
            return false;
        }
        // A drive takes writes of a sequential zone at the write pointer only. All other writes
        // need a random zone as a buffer (`dmz_handle_write`).
        let direct = self.map.format.is_random(zone) || self.map.zone(zone).pointer == part.start;
        let buffered = operation == Operation::Write && !direct;
        if buffered && self.map.zone(zone).partner == NONE {
            let Some(buffer) = self.take_random(now) else {
                return false;
            };
            self.map.map_buffer(buffer, zone);
        }
        self.map.zone_mut(zone).active += 1;
        self.map.touch(zone);
        self.parts[slot].zone = zone;
        match operation {
            Operation::Read => self.read(now, slot, cx),
            Operation::Write if buffered => self.write_to_buffer(slot, cx),
            Operation::Write => self.write_in_place(slot, cx),
            _ => self.discard(now, slot),
        }
        true
    }

    /// Takes a free random zone for a write (`dmz_alloc_zone`).
    fn take_random(&mut self, now: Time) -> Option<u32> {
        self.schedule_reclaim(now);
        let taken = self.map.take_random();
        if taken.is_some() {
            self.reclaim.watch(now + self.map.format.config.idle);
        }
        taken
    }

    /// Returns true if the bitmaps of the part's blocks are in memory. Begins to read the missing
    /// ones.
    fn has_bitmaps(&mut self, zone: u32, part: &RequestPart, cx: &mut NodeContext<'_>) -> bool {
        let mut all = true;
        let partner = self.map.zone(zone).partner;
        for zone in [zone, partner].into_iter().filter(|&zone| zone != NONE) {
            for bits in part.start / BITMAP_BITS..part.end.div_ceil(BITMAP_BITS) {
                let block = self.map.format.bitmap_block(zone, bits * BITMAP_BITS);
                if self.map.dirty.contains(&block) || self.metadata.has(block) {
                    continue;
                }
                all = false;
                if self.metadata.begin_read(block) {
                    let place = (0, block, block + 1);
                    self.issue(Operation::Read, place, IoPurpose::Bitmap(block), cx);
                }
            }
        }
        all
    }

    /// Reads each block from the zone with its valid data (`dmz_handle_read`).
    fn read(&mut self, now: Time, slot: u32, cx: &mut NodeContext<'_>) {
        let RequestPart {
            start, end, zone, ..
        } = self.parts[slot];
        let buffer = self.map.zone(zone).partner;
        let mut at = start;
        while at < end {
            let (here, next) = self.map.zone(zone).valid.run(at, end);
            let (source, next) = match (here, buffer) {
                (true, _) => (Some(zone), next),
                (false, NONE) => (None, next),
                (false, buffer) => {
                    let (there, next) = self.map.zone(buffer).valid.run(at, next);
                    (there.then_some(buffer), next)
                }
            };
            if let Some(source) = source {
                self.parts[slot].left += 1;
                let place = (source, at, next);
                self.issue(Operation::Read, place, IoPurpose::Host(slot), cx);
            }
            at = next;
        }
        if self.parts[slot].left == 0 {
            self.held.push_back((now + ANSWER, slot));
        }
    }

    /// Writes to a random zone, or at the write pointer (`dmz_handle_direct_write`).
    fn write_in_place(&mut self, slot: u32, cx: &mut NodeContext<'_>) {
        let RequestPart {
            start, end, zone, ..
        } = self.parts[slot];
        self.parts[slot].left = 1;
        let blocks = u64::from(end - start);
        match self.map.format.is_random(zone) {
            true => self.counts.random += blocks,
            false => {
                self.counts.direct += blocks;
                self.map.zone_mut(zone).pointer = end;
            }
        }
        self.issue(
            Operation::Write,
            (zone, start, end),
            IoPurpose::Host(slot),
            cx,
        );
        self.map.validate(zone, start, end);
        let buffer = self.map.zone(zone).partner;
        // A block is valid in one zone of its chunk only, so the older copy in the buffer must go.
        if buffer != NONE {
            self.map.invalidate(buffer, start, end);
        }
    }

    /// Writes to the buffer of a sequential zone (`dmz_handle_buffered_write`).
    fn write_to_buffer(&mut self, slot: u32, cx: &mut NodeContext<'_>) {
        let RequestPart {
            start, end, zone, ..
        } = self.parts[slot];
        let buffer = self.map.zone(zone).partner;
        self.parts[slot].left = 1;
        self.counts.random += u64::from(end - start);
        self.issue(
            Operation::Write,
            (buffer, start, end),
            IoPurpose::Host(slot),
            cx,
        );
        self.map.validate(buffer, start, end);
        // The buffer has the newest copy from here on. `read` takes a block from the first zone
        // with a valid copy.
        self.map.invalidate(zone, start, end);
    }

    /// Makes blocks invalid (`dmz_handle_discard`).
    fn discard(&mut self, now: Time, slot: u32) {
        let RequestPart {
            start, end, zone, ..
        } = self.parts[slot];
        self.map.invalidate(zone, start, end);
        let buffer = self.map.zone(zone).partner;
        if buffer != NONE {
            self.map.invalidate(buffer, start, end);
        }
        self.held.push_back((now + ANSWER, slot));
    }

    /// Takes the end of an I/O of a part.
    pub(super) fn host_io_ended(
        &mut self,
        now: Time,
        slot: u32,
        completion: &Completion,
        cx: &mut NodeContext<'_>,
    ) {
        let part = &mut self.parts[slot];
        part.left -= 1;
        let ended = part.left == 0;
        let request = &mut self.slots[part.request];
        request.status = request.status.max(completion.status);
        if completion.finished >= request.last.finished {
            request.last = *completion;
        }
        if ended {
            self.part_ended(now, slot, cx);
        }
    }

    /// Ends a part. Frees zones of the chunk without valid blocks (`dmz_put_chunk_mapping`).
    pub(super) fn part_ended(&mut self, now: Time, slot: u32, cx: &mut NodeContext<'_>) {
        let RequestPart { request, zone, .. } = self.parts.take(slot);
        if zone != NONE {
            self.map.zone_mut(zone).active -= 1;
            // Only with the last request of the chunk, because the other requests have looked up
            // the zone already.
            if self.map.zone(zone).active == 0 {
                self.release(zone, cx);
            }
            self.schedule_reclaim(now);
        }
        let last = self.slots[request].last;
        self.request_ended(now, request, RequestStatus::Done, &last, cx);
    }

    fn release(&mut self, zone: u32, cx: &mut NodeContext<'_>) {
        let buffer = self.map.zone(zone).partner;
        // The buffer goes before the data zone, because a data zone with a buffer stays mapped.
        if buffer != NONE && self.map.zone(buffer).valid.weight() == 0 {
            self.map.unmap(buffer);
            self.free(buffer, cx);
        }
        let state = self.map.zone(zone);
        if state.partner == NONE && state.valid.weight() == 0 {
            self.map.unmap(zone);
            self.free(zone, cx);
        }
    }

    /// Counts the end of a part of a request, and completes the request with its last part.
    pub(super) fn request_ended(
        &mut self,
        now: Time,
        slot: u32,
        status: RequestStatus,
        last: &Completion,
        cx: &mut NodeContext<'_>,
    ) {
        let request = &mut self.slots[slot];
        request.status = request.status.max(status);
        request.left -= 1;
        if request.left > 0 {
            return;
        }
        let ended = self.slots.take(slot);
        self.ended(now);
        let waited = last.finished == now && last.submitted >= ended.submitted;
        let ready = match waited {
            true => *last,
            false => Completion::at_once(ended.request.id, now, ended.status),
        };
        cx.out.complete(Completion {
            status: ended.status,
            ..ready.held_since(ended.submitted, ended.request.id)
        });
    }
}
