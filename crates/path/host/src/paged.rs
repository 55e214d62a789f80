//! The page cache of a host, for programs on a device. The device is one object. Its pages
//! correspond to the kernel's buffer cache.
//!
//! - Cached pages cost no time.
//! - A flush is an fsync of the device: the dirty pages are written, then a flush follows.
//! - A request with O_DIRECT bypasses the cache, after dirty pages within its extent have been
//!   written.
//! - A forced write (O_SYNC) completes when the data are on the device.
//! - A failed write-back is reported once to each flushing process, by its next completed flush.
//!   Until then the forced writes of the process report the failure too (`errseq_t` of Linux).
//! - Read-ahead has a state for each process, or for each stream if the workload has streams. Each
//!   process or stream has opened the device separately.
//!
//! Other hosts may stand above, for example guests with shared memory. Then this layer writes its
//! own dirty pages for a PULL and passes the PULL on to the hosts above. Writes of these hosts for
//! the PULL go on down (*Pro-active storage systems*, 2012, section 5.4).

use fullstroke_contract::{
    Completion, Counters, Effects, Extent, Gauge, Hints, Node, NodeContext, Notice, Object,
    Operation, Port, Request, RequestId, RequestStatus, Signal, Slots, Wake,
};
use fullstroke_memory::{
    CacheOut, FileAccess, FileId, IoId, IoReason, OperationAnswer, PAGE_BYTES, PageCache, PageIo,
    PageRun, Ticket,
};
use fullstroke_units::{SECTOR_BYTES, Sectors, Time};
use std::collections::BTreeMap;

#[cfg(test)]
mod failures;
#[cfg(test)]
mod tests;

/// Sectors of a page.
const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// Bit in the id of a request that goes down for a program, not for the cache. The lower bits are
/// the slot.
const OWN: u64 = 1 << 32;

/// The layer.
///
/// - **Events in**: `submit`, `completed`, `noticed`, `wake`.
/// - **Effects out**: `issue` to the one member, `complete`.
pub struct PagedDevice {
    cache: PageCache,
    capacity: Sectors,
    /// Open files of the device. Streams come first, then processes.
    open: BTreeMap<(bool, u32), FileId>,
    slots: Slots<ProgramRequest>,
    /// I/Os of the cache in flight, by number.
    flights: Vec<(Operation, PageRun)>,
    /// Work from the cache for this layer. Kept between calls to reuse the memory.
    todo: CacheOut,
    /// Pages from hosts above for a PULL, before their write-back. An earlier write of some of the
    /// pages is still in flight.
    passing: Vec<PageRun>,
    /// Number of failed write-backs reported to each process or stream by a flush.
    told: BTreeMap<(bool, u32), u64>,
    idle_since: Time,
    /// Name of the host, if there are several.
    host: Option<String>,
}

/// A request of the programs.
#[derive(Clone, Copy, Debug)]
struct ProgramRequest {
    request: Request,
    submitted: Time,
}

impl PagedDevice {
    /// Returns the layer with `cache` above a device of `capacity`.
    pub fn new(cache: PageCache, capacity: Sectors) -> PagedDevice {
        PagedDevice {
            cache,
            capacity,
            open: BTreeMap::new(),
            slots: Slots::default(),
            flights: Vec::new(),
            todo: CacheOut::default(),
            passing: Vec::new(),
            told: BTreeMap::new(),
            idle_since: Time::ZERO,
            host: None,
        }
    }

    /// Names the layer after the host called `name`.
    #[must_use]
    pub fn of_host(self, name: &str) -> PagedDevice {
        PagedDevice {
            host: Some(name.to_owned()),
            ..self
        }
    }

    /// Returns the open file of the process or stream, and opens the device if necessary.
    fn file(&mut self, hints: &Hints) -> FileId {
        let cache = &mut self.cache;
        *self
            .open
            .entry(opener(hints))
            .or_insert_with(|| cache.open(Object::DEVICE))
    }

    /// Asks the cache for the part of a request that comes first: the read or write of pages, or
    /// the write-back of dirty pages.
    fn ask(&mut self, now: Time, slot: u32) -> OperationAnswer {
        let request = self.slots[slot].request;
        let ticket = Ticket(u64::from(slot));
        let (extent, hints) = (request.extent, request.hints);
        let transfers = request.operation.transfers();
        if transfers && !hints.direct {
            let file = self.file(&hints);
            let access = self.access(extent);
            let out = &mut self.todo;
            return match request.operation {
                Operation::Read => self.cache.read(now, file, access, ticket, out),
                _ => self
                    .cache
                    .write(now, file, access, hints.force_unit_access, ticket, out),
            };
        }
        match request.operation {
            Operation::Flush | Operation::Standby => {
                self.cache
                    .fsync(now, Object::DEVICE, ticket, &mut self.todo)
            }
            Operation::Start => OperationAnswer::Done,
            operation => {
                let changes = operation != Operation::Read;
                self.cache
                    .direct(now, pages_of(extent), changes, ticket, &mut self.todo)
            }
        }
    }

    fn access(&self, extent: Extent) -> FileAccess {
        let bytes = |sectors: u64| sectors * SECTOR_BYTES;
        FileAccess::new(
            bytes(extent.start.0),
            bytes(extent.sectors.0),
            bytes(self.capacity.0),
        )
    }

    /// Continues a request after the cache has done its part: completes the request, or issues it
    /// to the device.
    fn ready(
        &mut self,
        now: Time,
        slot: u32,
        status: RequestStatus,
        last: Option<&Completion>,
        out: &mut Effects,
    ) {
        let ProgramRequest { request, .. } = self.slots[slot];
        let cached = request.operation.transfers() && !request.hints.direct;
        if cached && status == RequestStatus::Done && request.hints.pulled {
            self.passing.push(pages_of(request.extent));
        }
        if cached || status != RequestStatus::Done {
            return self.answer(now, slot, status, last, out);
        }
        out.issue(
            0,
            Request {
                id: RequestId(OWN | u64::from(slot)),
                ..request
            },
        );
    }

    /// Returns the status of a flush or forced write at completion: `status`, or a failed
    /// write-back not yet reported to the process.
    fn reported_status(&mut self, request: &Request, status: RequestStatus) -> RequestStatus {
        let flushes = matches!(request.operation, Operation::Flush | Operation::Standby);
        let forced = request.operation == Operation::Write && request.hints.force_unit_access;
        if !flushes && !forced {
            return status;
        }
        let (failures, how) = self.cache.failures(Object::DEVICE);
        let opener = opener(&request.hints);
        let told = self.told.get(&opener).copied().unwrap_or(0);
        if flushes {
            // A forced write does not count as the report: the process still learns of the failure
            // from its next flush.
            self.told.insert(opener, failures);
        }
        if status == RequestStatus::Done && told < failures {
            how
        } else {
            status
        }
    }

    fn answer(
        &mut self,
        now: Time,
        slot: u32,
        status: RequestStatus,
        last: Option<&Completion>,
        out: &mut Effects,
    ) {
        let ProgramRequest { request, submitted } = self.slots.take(slot);
        let status = self.reported_status(&request, status);
        out.complete(Completion {
            status,
            ..Completion::ready(submitted, now, last).held_since(submitted, request.id)
        });
        if self.slots.is_empty() {
            self.idle_since = now;
        }
    }

    /// Answers an ASK: tells the storage below if `extent` is cached and clean. The look-up does
    /// not count as a use of the pages, and so does not delay an eviction.
    fn answer_whether_held(&mut self, now: Time, extent: Extent, out: &mut Effects) {
        let held = extent.within(self.capacity) && self.cache.holds_clean(pages_of(extent));
        let extent = if held {
            extent
        } else {
            Extent {
                sectors: Sectors::ZERO,
                ..extent
            }
        };
        let request = Request {
            origin: Request::BACKGROUND,
            operation: Operation::Answer,
            extent,
            ..Request::default()
        };
        let slot = self.slots.keep(ProgramRequest {
            request,
            submitted: now,
        });
        out.issue(
            0,
            Request {
                id: RequestId(OWN | u64::from(slot)),
                ..request
            },
        );
    }

    /// Begins the write-back of pages from hosts above for a PULL, as far as possible.
    fn pass(&mut self, now: Time) {
        for run in &self.passing {
            self.cache.pull(now, *run, &mut self.todo);
        }
        self.passing.retain(|run| self.cache.is_dirty(*run));
    }

    /// Carries out the work from the cache. `last` is the completion from below that caused the
    /// work, if there was one.
    fn carry_out(&mut self, now: Time, last: Option<&Completion>, out: &mut Effects) {
        self.carry_out_once(now, last, out);
        // A pass may wake a writer that adds more pages.
        while !self.passing.is_empty() {
            self.pass(now);
            if self.todo.is_empty() {
                return;
            }
            self.carry_out_once(now, last, out);
        }
    }

    fn carry_out_once(&mut self, now: Time, last: Option<&Completion>, out: &mut Effects) {
        let mut todo = std::mem::take(&mut self.todo);
        for io in &todo.reads {
            self.issue(io, Operation::Read, out);
        }
        for io in &todo.writes {
            self.issue(io, Operation::Write, out);
        }
        for woken in &todo.woken {
            self.ready(now, woken.ticket.0 as u32, woken.status, last, out);
        }
        assert!(
            self.todo.is_empty(),
            "the cache has added work during the execution of its work; it would be lost"
        );
        todo.clear();
        self.todo = todo;
    }

    fn issue(&mut self, io: &PageIo, operation: Operation, out: &mut Effects) {
        let place = io.id.0 as usize;
        if self.flights.len() <= place {
            self.flights
                .resize(place + 1, (Operation::Read, PageRun::default()));
        }
        self.flights[place] = (operation, io.run);
        let asked = io.ticket.map(|ticket| self.slots[ticket.0 as u32].request);
        let synchronous = matches!(io.why, IoReason::Read | IoReason::Fill | IoReason::Sync);
        let hints = asked.map_or_else(Hints::default, |request| request.hints);
        let start = io.run.first * PAGE_SECTORS;
        assert!(
            io.run.pages > 0 && start < self.capacity.0,
            "the cache asks for {:?}, behind the {} of the device",
            io.run,
            self.capacity
        );
        // The last page may reach beyond the device.
        let sectors = (io.run.pages * PAGE_SECTORS).min(self.capacity.0 - start);
        out.issue(
            0,
            Request {
                id: RequestId(u64::from(io.id.0)),
                origin: asked.map_or(Request::BACKGROUND, |request| request.origin),
                operation,
                extent: Extent::new(start, sectors),
                hints: Hints {
                    synchronous,
                    pulled: io.why == IoReason::Pull,
                    force_unit_access: false,
                    ..hints
                },
                ..Request::default()
            },
        );
    }
}

/// Returns the key of an open file: a stream, or else a process.
fn opener(hints: &Hints) -> (bool, u32) {
    if hints.stream != 0 {
        (false, hints.stream)
    } else {
        (true, hints.process)
    }
}

/// Returns the pages with at least one sector of the extent.
fn pages_of(extent: Extent) -> PageRun {
    let first = extent.start.0 / PAGE_SECTORS;
    PageRun::new(
        Object::DEVICE,
        first,
        extent.end().0.div_ceil(PAGE_SECTORS) - first,
    )
}

impl Node for PagedDevice {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let slot = self.slots.keep(ProgramRequest {
            request,
            submitted: now,
        });
        let empty = request.extent.sectors == Sectors::ZERO && !request.operation.is_of_all();
        if empty || !request.extent.within(self.capacity) {
            return self.answer(now, slot, RequestStatus::OutOfRange, None, cx.out);
        }
        let answer = self.ask(now, slot);
        // The work of the cache is issued before the request itself. A direct read or flush depends
        // on the write-back.
        self.carry_out(now, None, cx.out);
        if answer == OperationAnswer::Done {
            self.ready(now, slot, RequestStatus::Done, None, cx.out);
        }
        if !self.passing.is_empty() {
            self.carry_out(now, None, cx.out);
        }
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        let id = completion.id.0;
        if id & OWN != 0 {
            let slot = id as u32;
            if self.slots[slot].request.operation == Operation::Answer {
                self.slots.take(slot);
                return;
            }
            let Request {
                operation,
                extent,
                hints,
                ..
            } = self.slots[slot].request;
            if hints.direct && operation == Operation::Write {
                // Pages that were read during the write may hold older data.
                self.cache.invalidate(pages_of(extent));
            }
            return self.answer(now, slot, completion.status, Some(&completion), cx.out);
        }
        let io = IoId(id as u32);
        assert!(
            (io.0 as usize) < self.flights.len(),
            "the I/O {} of the cache comes back, and was never issued",
            io.0
        );
        let (operation, run) = self.flights[io.0 as usize];
        match operation {
            Operation::Read => {
                self.cache
                    .read_done(now, io, run, completion.status, &mut self.todo)
            }
            _ => self
                .cache
                .written(now, io, run, completion.status, &mut self.todo),
        }
        self.carry_out(now, Some(&completion), cx.out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.cache.wake(now, &mut self.todo);
        self.carry_out(now, None, cx.out);
    }

    /// Handles notices from below. ASK is answered here. PULL starts write-back here and then goes
    /// on to the layers above. A PULL of addresses goes on because newer data may be there. A PULL
    /// of any data goes on for the amount not dirty here. All other notices go on to the layers
    /// above.
    fn noticed(&mut self, now: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        let signal = match notice.signal {
            Signal::Pull {
                extent: None,
                sectors,
            } => {
                let begun =
                    self.cache
                        .pull_any(now, sectors.0.div_ceil(PAGE_SECTORS), &mut self.todo);
                let sectors = Sectors(sectors.0.saturating_sub(begun * PAGE_SECTORS));
                Signal::Pull {
                    extent: None,
                    sectors,
                }
            }
            Signal::Pull {
                extent: Some(extent),
                ..
            } => {
                self.cache.pull(now, pages_of(extent), &mut self.todo);
                notice.signal
            }
            Signal::Ask(extent) => return self.answer_whether_held(now, extent, cx.out),
            Signal::CleaningBegan | Signal::CleaningEnded => {
                self.cache
                    .note_cleaning(notice.signal == Signal::CleaningBegan);
                notice.signal
            }
            other => other,
        };
        self.carry_out(now, None, cx.out);
        if !matches!(
            signal,
            Signal::Pull {
                sectors: Sectors::ZERO,
                ..
            }
        ) {
            self.pass_on(from, Notice { signal, ..notice }, cx.out);
        }
    }

    /// Write-back repeats for ever, and so is a chore. A waiting request is work.
    fn next_wake(&self) -> Wake {
        let at = self.cache.next_wake();
        if self.slots.is_empty() {
            Wake::Chore(at)
        } else {
            Wake::Work(at)
        }
    }

    fn gauge(&self) -> Gauge {
        let held = self.slots.len() as u32;
        Gauge {
            queue_length: held,
            idle_since: (held == 0).then_some(self.idle_since),
            ..Gauge::default()
        }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        counters
            .layers
            .push(self.cache.readings_of(self.host.as_deref()));
    }
}
