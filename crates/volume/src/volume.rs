//! The layer that carries a layout's plans out.

use crate::layout::Layout;
use crate::locks::{LockId, RowLocks};
use crate::plan::{Detail, MemberIo, Plan};
use fullstroke_contract::{
    Below, Completion, Gauge, Hints, Layer, Operation, Out, Request, RequestId, Status,
};
use fullstroke_units::{Cylinder, Time};
use std::ops::Range;

#[cfg(test)]
mod tests;

/// A volume: requests from above become member I/O below, as the layout plans.
///
/// - **Events in**: those of [`Layer`].
/// - **Getters**: [`layout`](Volume::layout), [`plan_of`](Volume::plan_of), and
///   those of [`Layer`].
///
/// It wants no wake-ups. What holds after each event:
///
/// - The second phase of a strand is issued when the last I/O of the first has
///   finished, unless one of these failed; nothing is written then.
/// - A strand that needs rows for itself is issued when nobody who asked for
///   any of them before is left.
/// - A request finishes when its last member I/O does, with the worst status
///   of all. Its breakdown is that of this last I/O; whatever passed before the
///   I/O was submitted counts as `parity`, so that the parts add up.
/// - A request that cannot be planned is answered at once.
///
/// Member I/O carries the hints of the request. In layouts with parity `stripe`
/// is the row of chunks. Reads that a write waits for are synchronous.
pub struct Volume {
    layout: Box<dyn Layout>,
    detail: Detail,
    /// In-flight requests by slot. A free slot keeps its room.
    flights: Vec<Flight>,
    free: Vec<u32>,
    locks: RowLocks,
    /// Strands that may begin; empty between events.
    granted: Vec<u64>,
    /// The member whose arm stands for the volume's.
    first_alive: usize,
    in_flight: u32,
    head: Cylinder,
    idle_since: Option<Time>,
}

/// A request in flight.
#[derive(Debug)]
struct Flight {
    request: Request,
    submitted: Time,
    plan: Plan,
    strands: Vec<Progress>,
    /// Strands that have not finished.
    unfinished: u32,
    status: Status,
    /// Of the member I/O so far, the one that finished last.
    last: Completion,
}

/// How far a strand is.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// I/Os that were issued and have not finished.
    outstanding: u32,
    in_second_phase: bool,
    failed: bool,
    lock: Option<LockId>,
}

/// The id of a member I/O, which is also what names a strand in the locks: the
/// slot, and the index within the plan.
fn encode(slot: usize, index: usize) -> u64 {
    (slot as u64) << 32 | index as u64
}

fn decode(id: u64) -> (usize, usize) {
    ((id >> 32) as usize, (id & u64::from(u32::MAX)) as usize)
}

impl Volume {
    /// A volume whose I/O is timed only.
    pub fn new(layout: Box<dyn Layout>) -> Volume {
        Volume::with_detail(layout, Detail::Timing)
    }

    /// A volume whose plans can be carried out on bytes if `detail` says so:
    /// see [`plan_of`](Volume::plan_of).
    pub fn with_detail(layout: Box<dyn Layout>, detail: Detail) -> Volume {
        let failed = layout.failed();
        let alive = (0..layout.members()).find(|&member| failed.binary_search(&(member as u32)).is_err());
        Volume {
            first_alive: alive.unwrap_or(0),
            layout,
            detail,
            flights: Vec::new(),
            free: Vec::new(),
            locks: RowLocks::default(),
            granted: Vec::new(),
            in_flight: 0,
            head: Cylinder(0),
            idle_since: Some(Time::ZERO),
        }
    }

    /// How the volume's addresses lie on its members.
    pub fn layout(&self) -> &dyn Layout {
        &*self.layout
    }

    /// The plan to which a member I/O belongs, and the index of the I/O in it.
    /// It stays until the next request is submitted after the one that it
    /// serves was completed. `None` if the volume never issued such an id.
    pub fn plan_of(&self, member_io: RequestId) -> Option<(&Plan, usize)> {
        let (slot, io) = decode(member_io.0);
        let plan = &self.flights.get(slot)?.plan;
        (io < plan.ios().len()).then_some((plan, io))
    }

    fn new_slot(&mut self) -> usize {
        if let Some(slot) = self.free.pop() {
            return slot as usize;
        }
        self.flights.push(Flight {
            request: Request::default(),
            submitted: Time::ZERO,
            plan: Plan::new(self.detail),
            strands: Vec::new(),
            unfinished: 0,
            status: Status::Done,
            last: Completion::default(),
        });
        self.flights.len() - 1
    }

    fn begin_strand(&mut self, slot: usize, strand: usize, out: &mut Out) {
        let flight = &mut self.flights[slot];
        if let Some(rows) = flight.plan.strands()[strand].exclusive_rows() {
            let (lock, free) = self.locks.acquire(rows, encode(slot, strand));
            flight.strands[strand].lock = Some(lock);
            if !free {
                return;
            }
        }
        flight.issue_first_phase(slot, strand, out);
    }

    /// Gives the strand's rows to whoever waits for them.
    fn end_strand(&mut self, slot: usize, strand: usize, out: &mut Out) {
        let Some(lock) = self.flights[slot].strands[strand].lock else { return };
        self.locks.release(lock, &mut self.granted);
        for token in self.granted.drain(..) {
            let (slot, strand) = decode(token);
            self.flights[slot].issue_first_phase(slot, strand, out);
        }
    }

    fn finish(&mut self, slot: usize, out: &mut Out) {
        let completion = self.flights[slot].completion();
        self.free.push(slot as u32);
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.idle_since = Some(completion.finished);
        }
        out.complete(completion);
    }
}

impl Layer for Volume {
    fn submit(&mut self, now: Time, request: Request, below: Below<'_>, out: &mut Out) {
        self.head = below.gauge(self.first_alive).head;
        let slot = self.new_slot();
        let flight = &mut self.flights[slot];
        let status = self.layout.plan(&request, below, &mut flight.plan);
        if flight.plan.ios().is_empty() {
            self.free.push(slot as u32);
            let answer =
                Completion { id: request.id, submitted: now, finished: now, status, ..Completion::default() };
            return out.complete(answer);
        }
        flight.begin(now, request);
        let strands = flight.strands.len();
        self.in_flight += 1;
        self.idle_since = None;
        for strand in 0..strands {
            self.begin_strand(slot, strand, out);
        }
    }

    fn completed(
        &mut self,
        _now: Time,
        member: usize,
        completion: Completion,
        below: Below<'_>,
        out: &mut Out,
    ) {
        self.head = below.gauge(self.first_alive).head;
        let (slot, io) = decode(completion.id.0);
        let flight = &mut self.flights[slot];
        debug_assert_eq!(flight.plan.ios()[io].member as usize, member, "a member answers its own requests");
        let strand = flight.plan.ios()[io].strand as usize;
        if flight.record(strand, completion) {
            if flight.issue_second_phase(slot, strand, out) {
                return;
            }
            flight.unfinished -= 1;
            let finished = flight.unfinished == 0;
            self.end_strand(slot, strand, out);
            if finished {
                self.finish(slot, out);
            }
        }
    }

    fn wake(&mut self, _now: Time, _below: Below<'_>, _out: &mut Out) {}

    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            queue_length: self.in_flight,
            head: self.head,
            idle_since: self.idle_since,
            ..Gauge::default()
        }
    }
}

impl Flight {
    fn begin(&mut self, now: Time, request: Request) {
        self.request = request;
        self.submitted = now;
        self.status = Status::Done;
        self.last = Completion::default();
        self.strands.clear();
        self.strands.resize(self.plan.strands().len(), Progress::default());
        self.unfinished = self.strands.len() as u32;
    }

    fn issue_first_phase(&mut self, slot: usize, strand: usize, out: &mut Out) {
        let ios = self.plan.strands()[strand].first_phase();
        self.issue(slot, strand, ios, out);
    }

    /// Issues the second phase unless there is none, it was issued before, or
    /// the first has failed. Answers whether it did.
    fn issue_second_phase(&mut self, slot: usize, strand: usize, out: &mut Out) -> bool {
        let progress = &mut self.strands[strand];
        let ios = self.plan.strands()[strand].second_phase();
        if progress.in_second_phase || progress.failed || ios.is_empty() {
            return false;
        }
        progress.in_second_phase = true;
        self.issue(slot, strand, ios, out);
        true
    }

    fn issue(&mut self, slot: usize, strand: usize, ios: Range<usize>, out: &mut Out) {
        self.strands[strand].outstanding = ios.len() as u32;
        for index in ios {
            let io = &self.plan.ios()[index];
            out.issue(io.member as usize, self.member_request(encode(slot, index), io));
        }
    }

    fn member_request(&self, id: u64, io: &MemberIo) -> Request {
        let hints = self.request.hints;
        let waited_for = io.operation == Operation::Read && self.request.operation != Operation::Read;
        Request {
            id: RequestId(id),
            origin: self.request.origin,
            operation: io.operation,
            extent: io.extent,
            hints: Hints {
                synchronous: hints.synchronous || waited_for,
                stripe: io.row.or(hints.stripe),
                ..hints
            },
        }
    }

    /// Notes the end of a member I/O. Answers whether it was the last of its
    /// phase.
    fn record(&mut self, strand: usize, completion: Completion) -> bool {
        self.status = self.status.max(completion.status);
        if completion.finished >= self.last.finished {
            self.last = completion;
        }
        let progress = &mut self.strands[strand];
        progress.failed |= completion.status != Status::Done;
        progress.outstanding -= 1;
        progress.outstanding == 0
    }

    fn completion(&self) -> Completion {
        let Completion { submitted, finished, mut breakdown, .. } = self.last;
        breakdown.parity += submitted.since(self.submitted);
        Completion {
            id: self.request.id,
            submitted: self.submitted,
            finished,
            status: self.status,
            breakdown,
        }
    }
}
