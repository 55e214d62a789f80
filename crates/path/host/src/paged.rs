//! The page cache of a host whose programs read and write a device through it:
//! the device is one object, and its pages are those of the buffer cache.
//!
//! What is cached costs no time. A flush is an fsync of the device: what is dirty
//! goes down, and a flush behind it. What is opened with O_DIRECT passes the cache
//! by, after what is dirty of it; what is forced (O_SYNC) ends when it is on the
//! device. What could not be written is told to everybody who flushes, once, by
//! the first flush of theirs that ends from then on, and by forced writes until then
//! (`errseq_t` of Linux). Read-ahead is by process, or by stream where the workload has some:
//! each has the device open for itself.
//!
//! Where other hosts stand above, as above the memory that guests share, PULL is heeded
//! here as far as anything is dirty here, and goes on to them; what they write for it goes
//! on down (*Pro-active storage systems*, 2012, section 5.4).

use fullstroke_contract::{
    Completion, Counters, Cx, Extent, Gauge, Hints, Node, Notice, Object, Operation, Out, Port,
    Request, RequestId, Signal, Slots, Status, Wake,
};
use fullstroke_memory::{
    Access, Answer, Cache, FileId, Io, IoId, Out as CacheOut, PAGE_BYTES, Run, Ticket, Why,
};
use fullstroke_units::{SECTOR_BYTES, Sectors, Time};
use std::collections::BTreeMap;

#[cfg(test)]
mod failures;
#[cfg(test)]
mod tests;

/// Sectors of a page.
const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// What goes down for a request itself, not for the cache, has its slot behind
/// this bit.
const OWN: u64 = 1 << 32;

/// The layer.
///
/// - **Events in**: `submit`, `completed`, `noticed`, `wake`.
/// - **Effects out**: `issue` to the one member, `complete`.
pub struct PagedDevice {
    cache: Cache,
    capacity: Sectors,
    /// Whoever has the device open: streams, then processes.
    open: BTreeMap<(bool, u32), FileId>,
    slots: Slots<Slot>,
    /// What is on its way for the cache, by the number of its I/O.
    flights: Vec<(Operation, Run)>,
    /// What the cache leaves to do; reused.
    todo: CacheOut,
    /// What was written above for a PULL and has not begun to go down: pages of it are
    /// still being written as they were before.
    passing: Vec<Run>,
    /// How many writes of the cache that have failed whoever has flushed was told of.
    told: BTreeMap<(bool, u32), u64>,
    idle_since: Time,
    /// The host that it is of, where there are several.
    host: Option<String>,
}

/// A request of the programs.
#[derive(Clone, Copy, Debug)]
struct Slot {
    request: Request,
    submitted: Time,
}

impl PagedDevice {
    /// `cache` above a device of `capacity`.
    pub fn new(cache: Cache, capacity: Sectors) -> PagedDevice {
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

    /// The same, of the host called `name`.
    #[must_use]
    pub fn of_host(self, name: &str) -> PagedDevice {
        PagedDevice {
            host: Some(name.to_owned()),
            ..self
        }
    }

    /// The file of whoever asks.
    fn file(&mut self, hints: &Hints) -> FileId {
        let cache = &mut self.cache;
        *self
            .open
            .entry(opener(hints))
            .or_insert_with(|| cache.open(Object::DEVICE))
    }

    /// Asks the cache for what a request needs of it first.
    fn ask(&mut self, now: Time, slot: u32) -> Answer {
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
            Operation::Start => Answer::Done,
            operation => {
                let changes = operation != Operation::Read;
                self.cache
                    .direct(now, pages_of(extent), changes, ticket, &mut self.todo)
            }
        }
    }

    fn access(&self, extent: Extent) -> Access {
        let bytes = |sectors: u64| sectors * SECTOR_BYTES;
        Access::new(
            bytes(extent.start.0),
            bytes(extent.sectors.0),
            bytes(self.capacity.0),
        )
    }

    /// What a request needs of the cache is done: it is answered, or goes on to
    /// the device itself.
    fn ready(
        &mut self,
        now: Time,
        slot: u32,
        status: Status,
        last: Option<&Completion>,
        out: &mut Out,
    ) {
        let Slot { request, .. } = self.slots[slot];
        let cached = request.operation.transfers() && !request.hints.direct;
        if cached && status == Status::Done && request.hints.pulled {
            self.passing.push(pages_of(request.extent));
        }
        if cached || status != Status::Done {
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

    /// The status of a flush, or of a forced write, that ends as `status`, and whatever else its
    /// owner is to be told.
    fn told(&mut self, request: &Request, status: Status) -> Status {
        let flushes = matches!(request.operation, Operation::Flush | Operation::Standby);
        let forced = request.operation == Operation::Write && request.hints.force_unit_access;
        if !flushes && !forced {
            return status;
        }
        let (failures, how) = self.cache.failures(Object::DEVICE);
        let opener = opener(&request.hints);
        let told = self.told.get(&opener).copied().unwrap_or(0);
        if flushes {
            // Whoever forces one write does not learn from it what became of the others.
            self.told.insert(opener, failures);
        }
        if status == Status::Done && told < failures {
            how
        } else {
            status
        }
    }

    fn answer(
        &mut self,
        now: Time,
        slot: u32,
        status: Status,
        last: Option<&Completion>,
        out: &mut Out,
    ) {
        let Slot { request, submitted } = self.slots.take(slot);
        let status = self.told(&request, status);
        out.complete(Completion {
            status,
            ..Completion::ready(submitted, now, last).held_since(submitted, request.id)
        });
        if self.slots.is_empty() {
            self.idle_since = now;
        }
    }

    /// Tells below whether `extent` is here as the device has it. To be lent is no use of
    /// a page: it goes as soon as it would have gone.
    fn answer_whether_held(&mut self, now: Time, extent: Extent, out: &mut Out) {
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
        let slot = self.slots.keep(Slot {
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

    /// Begins to write what was written above for a PULL, as far as it can.
    fn pass(&mut self, now: Time) {
        for run in &self.passing {
            self.cache.pull(now, *run, &mut self.todo);
        }
        self.passing.retain(|run| self.cache.is_dirty(*run));
    }

    /// Carries out what the cache has left to do. `last` is what has just come
    /// back from below, if that is why.
    fn carry_out(&mut self, now: Time, last: Option<&Completion>, out: &mut Out) {
        self.carry_out_once(now, last, out);
        // What passes may wake who wrote more of it.
        while !self.passing.is_empty() {
            self.pass(now);
            if self.todo.is_empty() {
                return;
            }
            self.carry_out_once(now, last, out);
        }
    }

    fn carry_out_once(&mut self, now: Time, last: Option<&Completion>, out: &mut Out) {
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
            "what the cache leaves to do while it is carried out would be lost"
        );
        todo.clear();
        self.todo = todo;
    }

    fn issue(&mut self, io: &Io, operation: Operation, out: &mut Out) {
        let place = io.id.0 as usize;
        if self.flights.len() <= place {
            self.flights
                .resize(place + 1, (Operation::Read, Run::default()));
        }
        self.flights[place] = (operation, io.run);
        let asked = io.ticket.map(|ticket| self.slots[ticket.0 as u32].request);
        let synchronous = matches!(io.why, Why::Read | Why::Fill | Why::Sync);
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
                    pulled: io.why == Why::Pull,
                    force_unit_access: false,
                    ..hints
                },
                ..Request::default()
            },
        );
    }
}

/// Whoever has the device open: a stream, or a process.
fn opener(hints: &Hints) -> (bool, u32) {
    if hints.stream != 0 {
        (false, hints.stream)
    } else {
        (true, hints.process)
    }
}

/// The pages of which an extent has any sector.
fn pages_of(extent: Extent) -> Run {
    let first = extent.start.0 / PAGE_SECTORS;
    Run::new(
        Object::DEVICE,
        first,
        extent.end().0.div_ceil(PAGE_SECTORS) - first,
    )
}

impl Node for PagedDevice {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut Cx<'_>) {
        let slot = self.slots.keep(Slot {
            request,
            submitted: now,
        });
        let empty = request.extent.sectors == Sectors::ZERO && !request.operation.is_of_all();
        if empty || !request.extent.within(self.capacity) {
            return self.answer(now, slot, Status::OutOfRange, None, cx.out);
        }
        let answer = self.ask(now, slot);
        // What it leaves to do goes down before what the request itself does.
        self.carry_out(now, None, cx.out);
        if answer == Answer::Done {
            self.ready(now, slot, Status::Done, None, cx.out);
        }
        if !self.passing.is_empty() {
            self.carry_out(now, None, cx.out);
        }
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut Cx<'_>) {
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
                // What was read meanwhile may be older.
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

    fn wake(&mut self, now: Time, cx: &mut Cx<'_>) {
        self.cache.wake(now, &mut self.todo);
        self.carry_out(now, None, cx.out);
    }

    /// What is asked is answered. PULL is heeded here first, and goes on to whoever is above:
    /// of addresses, for what is newer there; of any, for what is not dirty here. The rest
    /// is for whoever is above.
    fn noticed(&mut self, now: Time, from: Port, notice: Notice, cx: &mut Cx<'_>) {
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

    /// Rounds of write-back go on for ever; somebody who waits does not.
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
