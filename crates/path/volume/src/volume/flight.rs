//! A request, or a unit of a rebuild, while its member I/O is under way.

use crate::locks::LockId;
use crate::plan::{Detail, MemberIo, Plan};
use fullstroke_contract::{
    Completion, Hints, Operation, Out, PriorityClass, Request, RequestId, Status,
};
use fullstroke_units::Time;
use std::ops::Range;

/// A request in flight, or a unit of a rebuild.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) request: Request,
    pub(super) purpose: Purpose,
    pub(super) submitted: Time,
    /// How many members had been restored before it was planned.
    pub(super) restores: u64,
    /// How often states had changed when it was planned.
    pub(super) changes: u64,
    /// How often a gear had been settled in when it was planned.
    pub(super) settled: u64,
    pub(super) plan: Plan,
    pub(super) strands: Vec<Progress>,
    /// What its member I/Os are told of the members' queues.
    pub(super) stripe_queue: u32,
    /// Strands that have not finished.
    pub(super) unfinished: u32,
    status: Status,
    /// Of the member I/O so far, the one that finished last.
    last: Completion,
}

/// How far a strand is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// I/Os that were issued and have not finished.
    outstanding: u32,
    in_second_phase: bool,
    failed: bool,
    pub(super) lock: Option<LockId>,
}

/// The id of a member I/O, which is also what names a strand in the locks: the
/// slot, and the index within the plan.
pub(super) fn encode(slot: usize, index: usize) -> u64 {
    (slot as u64) << 32 | index as u64
}

pub(super) fn decode(id: u64) -> (usize, usize) {
    ((id >> 32) as usize, (id & u64::from(u32::MAX)) as usize)
}

/// Whom a flight serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The layer above, which waits for the request's completion.
    Above,
    /// The rebuild of a member.
    Rebuild,
    /// A shift of gears, which copies.
    Copy,
    /// A shift of gears, which stops or starts members.
    Platters,
}

impl Flight {
    pub(super) fn new(detail: Detail) -> Flight {
        Flight {
            request: Request::default(),
            purpose: Purpose::Above,
            submitted: Time::ZERO,
            restores: 0,
            changes: 0,
            settled: 0,
            plan: Plan::new(detail),
            strands: Vec::new(),
            stripe_queue: 0,
            unfinished: 0,
            status: Status::Done,
            last: Completion::default(),
        }
    }

    /// A request from above begins with the plan that is there.
    pub(super) fn begin(&mut self, now: Time, request: Request, restores: u64, changes: u64) {
        self.request = request;
        self.restores = restores;
        self.changes = changes;
        self.take_off(now, Purpose::Above);
    }

    /// The same request begins with another plan.
    pub(super) fn begin_again(&mut self, changes: u64) {
        self.changes = changes;
        self.take_off(self.submitted, self.purpose);
    }

    pub(super) fn request(&self) -> Request {
        self.request
    }

    pub(super) fn status(&self) -> Status {
        self.status
    }

    /// Whether a rebuild makes way for it.
    pub(super) fn presses(&self) -> bool {
        self.request.hints.class != PriorityClass::Idle
    }

    /// A unit of a rebuild or of a shift begins with the plan that is there. Nobody waits for
    /// it, and drives that know priorities serve it when nothing else waits.
    pub(super) fn begin_background(&mut self, now: Time, purpose: Purpose) {
        let class = PriorityClass::Idle;
        self.request = Request {
            origin: Request::BACKGROUND,
            hints: Hints {
                class,
                synchronous: false,
                ..Hints::default()
            },
            ..Request::default()
        };
        self.take_off(now, purpose);
    }

    fn take_off(&mut self, now: Time, purpose: Purpose) {
        self.purpose = purpose;
        self.submitted = now;
        self.status = Status::Done;
        self.last = Completion::default();
        self.strands.clear();
        self.strands
            .resize(self.plan.strands().len(), Progress::default());
        self.unfinished = self.strands.len() as u32;
    }

    pub(super) fn issue_first_phase(&mut self, slot: usize, strand: usize, out: &mut Out) {
        let ios = self.plan.strands()[strand].first_phase();
        self.issue(slot, strand, ios, out);
    }

    /// Issues the second phase unless there is none, it was issued before, or
    /// the first has failed. Answers whether it did.
    pub(super) fn issue_second_phase(&mut self, slot: usize, strand: usize, out: &mut Out) -> bool {
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
            out.issue(
                io.member as usize,
                self.member_request(encode(slot, index), io),
            );
        }
    }

    fn member_request(&self, id: u64, io: &MemberIo) -> Request {
        let hints = self.request.hints;
        let waited_for = self.purpose == Purpose::Above
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

    /// Notes the end of a member I/O. Answers whether it was the last of its
    /// phase.
    pub(super) fn record(&mut self, strand: usize, completion: Completion) -> bool {
        self.status = self.status.max(completion.status);
        if completion.finished >= self.last.finished {
            self.last = completion;
        }
        let progress = &mut self.strands[strand];
        progress.failed |= completion.status != Status::Done;
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
