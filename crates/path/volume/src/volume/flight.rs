//! A request, or a unit of a rebuild, while its member I/O is in flight.

use crate::locks::LockId;
use crate::plan::{Detail, MemberIo, Plan};
use fullstroke_contract::{
    Completion, Effects, Hints, Operation, PriorityClass, Request, RequestId, RequestStatus,
};
use fullstroke_units::Time;
use std::ops::Range;

/// A request or a unit of a rebuild in flight.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) request: Request,
    pub(super) purpose: RequestPurpose,
    pub(super) submitted: Time,
    /// Number of restores before the request was planned.
    pub(super) restores: u64,
    /// Number of changes of states before the request was planned.
    pub(super) changes: u64,
    /// Number of completed shifts before the request was planned.
    pub(super) settled: u64,
    pub(super) plan: Plan,
    pub(super) strands: Vec<StrandProgress>,
    /// Queue length in the hints of member I/O.
    pub(super) stripe_queue: u32,
    /// Number of unfinished strands.
    pub(super) unfinished: u32,
    status: RequestStatus,
    /// Completion of the latest member I/O so far.
    last: Completion,
}

/// Progress of a strand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StrandProgress {
    /// Number of I/Os in flight.
    outstanding: u32,
    in_second_phase: bool,
    failed: bool,
    pub(super) lock: Option<LockId>,
}

/// Returns the id of a member I/O: the slot, and the index within the plan. The same encoding
/// identifies a strand in the locks.
pub(super) fn encode(slot: usize, index: usize) -> u64 {
    (slot as u64) << 32 | index as u64
}

pub(super) fn decode(id: u64) -> (usize, usize) {
    ((id >> 32) as usize, (id & u64::from(u32::MAX)) as usize)
}

/// Purpose of a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPurpose {
    /// A request of the layer above.
    Above,
    /// The rebuild of a member.
    Rebuild,
    /// A copy of a shift of gears.
    Copy,
    /// A stop or start of members for a shift of gears.
    Platters,
}

impl PendingRequest {
    pub(super) fn new(detail: Detail) -> PendingRequest {
        PendingRequest {
            request: Request::default(),
            purpose: RequestPurpose::Above,
            submitted: Time::ZERO,
            restores: 0,
            changes: 0,
            settled: 0,
            plan: Plan::new(detail),
            strands: Vec::new(),
            stripe_queue: 0,
            unfinished: 0,
            status: RequestStatus::Done,
            last: Completion::default(),
        }
    }

    /// Begins a request from above with the present plan.
    pub(super) fn begin(&mut self, now: Time, request: Request, restores: u64, changes: u64) {
        self.request = request;
        self.restores = restores;
        self.changes = changes;
        self.begin_flight(now, RequestPurpose::Above);
    }

    /// Begins the same request with a new plan.
    pub(super) fn begin_again(&mut self, changes: u64) {
        self.changes = changes;
        // The response time counts from the first arrival.
        self.begin_flight(self.submitted, self.purpose);
    }

    pub(super) fn request(&self) -> Request {
        self.request
    }

    pub(super) fn status(&self) -> RequestStatus {
        self.status
    }

    /// True if rebuilds make way for the request.
    pub(super) fn delays_rebuild(&self) -> bool {
        self.request.hints.class != PriorityClass::Idle
    }

    /// Begins a unit of a rebuild or of a shift with the present plan. No layer waits for the unit.
    /// A drive with background requests serves the unit when no other request waits.
    pub(super) fn begin_background(
        &mut self,
        now: Time,
        purpose: RequestPurpose,
        class: PriorityClass,
    ) {
        self.request = Request {
            origin: Request::BACKGROUND,
            hints: Hints {
                class,
                synchronous: false,
                ..Hints::default()
            },
            ..Request::default()
        };
        self.begin_flight(now, purpose);
    }

    fn begin_flight(&mut self, now: Time, purpose: RequestPurpose) {
        self.purpose = purpose;
        self.submitted = now;
        self.status = RequestStatus::Done;
        self.last = Completion::default();
        self.strands.clear();
        self.strands
            .resize(self.plan.strands().len(), StrandProgress::default());
        self.unfinished = self.strands.len() as u32;
    }

    /// Issues the first phase. Returns the indices of its I/Os.
    pub(super) fn issue_first_phase(
        &mut self,
        slot: usize,
        strand: usize,
        out: &mut Effects,
    ) -> Range<usize> {
        let ios = self.plan.strands()[strand].first_phase();
        self.issue(slot, strand, ios.clone(), out);
        ios
    }

    /// Issues the second phase. Does nothing if there is no second phase, if it was issued before,
    /// or if the first phase has failed. Returns the indices of the issued I/Os.
    pub(super) fn issue_second_phase(
        &mut self,
        slot: usize,
        strand: usize,
        out: &mut Effects,
    ) -> Option<Range<usize>> {
        let progress = &mut self.strands[strand];
        let ios = self.plan.strands()[strand].second_phase();
        // After a failed read, the arithmetic has no valid input.
        if progress.in_second_phase || progress.failed || ios.is_empty() {
            return None;
        }
        progress.in_second_phase = true;
        self.issue(slot, strand, ios.clone(), out);
        Some(ios)
    }

    fn issue(&mut self, slot: usize, strand: usize, ios: Range<usize>, out: &mut Effects) {
        self.strands[strand].outstanding = ios.len() as u32;
        for index in ios {
            let io = &self.plan.ios()[index];
            out.issue(
                io.member as usize,
                self.member_request(encode(slot, index), io),
            );
        }
    }

    fn member_request(&self, id: u64, io: &MemberIo) -> Request {
        let hints = self.request.hints;
        let waited_for = self.purpose == RequestPurpose::Above
            && io.operation == Operation::Read
            && self.request.operation != Operation::Read;
        Request {
            id: RequestId(id),
            origin: self.request.origin,
            operation: io.operation,
            extent: io.extent,
            hints: Hints {
                synchronous: hints.synchronous || waited_for,
                stripe: io.row.or(hints.stripe),
                stripe_queue: self.stripe_queue,
                ..hints
            },
            ..Request::default()
        }
    }

    /// Records the completion of a member I/O. Returns true if the I/O was the last of its phase.
    pub(super) fn record(&mut self, strand: usize, completion: Completion) -> bool {
        self.status = self.status.max(completion.status);
        if completion.finished >= self.last.finished {
            self.last = completion;
        }
        let progress = &mut self.strands[strand];
        progress.failed |= completion.status != RequestStatus::Done;
        progress.outstanding -= 1;
        progress.outstanding == 0
    }

    pub(super) fn completion(&self) -> Completion {
        let Completion {
            submitted,
            finished,
            mut breakdown,
            ..
        } = self.last;
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
