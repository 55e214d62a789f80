//! The node around a volume that watches late members.

use super::LateRule;
use crate::layout::Layout;
use crate::plan::{Detail, MemberIo, Plan};
use crate::states::MemberStates;
use fullstroke_contract::{
    Breakdown, Completion, Counters, Effect, Effects, Extent, Gauge, Hints, LayerOrder,
    LayerReadings, LayersBelow, MemberState, Node, NodeContext, Notice, Operation, Port, Refusal,
    Request, RequestId, RequestStatus, Signal, Slots, Wake,
};
use fullstroke_units::{Sectors, Time};
use std::collections::VecDeque;

/// A volume with a policy against slow members.
///
/// - **Events in**: the events of [`Node`].
///
/// Invariants: the volume inside gets one completion for each member I/O. The first answer counts:
/// of the member, of the others, or of the timeout. Later answers end here. Each I/O below has an
/// id of this node, so that the volume inside may reuse its own id at once.
pub struct LateVolume {
    inside: Box<dyn Node>,
    rule: Box<dyn LateRule>,
    /// Plans of reads around a member. `None` if the volume inside deals with lost data itself.
    planner: Option<Planner>,
    /// Effects of the volume inside; empty between events.
    effects: Effects,
    /// Member I/O of the volume inside; empty between events.
    left: Vec<(Port, Request)>,
    ios: Slots<WatchedIo>,
    arounds: Slots<ReadAround>,
    /// I/Os below in the order of their issue, each with its number. Entries of ended I/Os stay
    /// until they are the first.
    watched: VecDeque<(Time, u32, u64)>,
    /// Number of I/Os so far.
    issued: u64,
    /// Extents that a member could not read once, for a volume that reads twice before it computes.
    unreadable: Vec<(u16, Extent)>,
    /// Member I/O of the plan in work.
    planned: Vec<MemberIo>,
    counts: LateCounts,
}

/// A layout for plans around a member.
struct Planner {
    layout: Box<dyn Layout>,
    plan: Plan,
    owners: Vec<Extent>,
}

/// A member I/O below.
#[derive(Clone, Copy, Debug)]
struct WatchedIo {
    /// The request of the volume inside.
    request: Request,
    member: u16,
    issued: Time,
    number: u64,
    purpose: IoPurpose,
    /// True while the member has the I/O.
    sent: bool,
    /// True once the volume inside has its completion.
    answered: bool,
    /// The member's own answer, if the member could not read.
    unreadable: Option<Completion>,
    /// Read around the member under way.
    around: Option<u32>,
}

/// Purpose of an I/O below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IoPurpose {
    /// An I/O of the volume inside.
    Volume,
    /// A part of a read around a member.
    Around(u32),
    /// A write of computed data to the member that could not read.
    Rewrite,
}

/// A read around a member.
#[derive(Clone, Copy, Debug)]
struct ReadAround {
    /// The I/O for which the data are read.
    target: u32,
    left: u32,
    status: RequestStatus,
    last: Completion,
}

#[derive(Clone, Copy, Debug, Default)]
struct LateCounts {
    late: u64,
    read_around: u64,
    member_ios: u64,
    rewritten: u64,
    failed: u64,
    sit_outs: u64,
}

impl LateVolume {
    /// Returns the node around the volume `inside`. `planner` is a second
    /// instance of the volume's layout, for reads around members; `None` if the volume computes
    /// lost data itself, as md's stripes do.
    pub fn new(
        inside: Box<dyn Node>,
        rule: Box<dyn LateRule>,
        planner: Option<Box<dyn Layout>>,
    ) -> LateVolume {
        LateVolume {
            inside,
            rule,
            planner: planner.map(|layout| Planner {
                layout,
                plan: Plan::new(Detail::Timing),
                owners: Vec::new(),
            }),
            effects: Effects::new(),
            left: Vec::new(),
            ios: Slots::default(),
            arounds: Slots::default(),
            watched: VecDeque::new(),
            issued: 0,
            unreadable: Vec::new(),
            planned: Vec::new(),
            counts: LateCounts::default(),
        }
    }

    /// Calls the volume inside, and carries its effects out.
    fn call<R>(
        &mut self,
        now: Time,
        cx: &mut NodeContext<'_>,
        event: impl FnOnce(&mut dyn Node, &mut NodeContext<'_>) -> R,
    ) -> R {
        let mut effects = std::mem::take(&mut self.effects);
        let result = event(
            &mut *self.inside,
            &mut NodeContext {
                below: cx.below,
                out: &mut effects,
            },
        );
        let mut left = std::mem::take(&mut self.left);
        for effect in effects.drain() {
            match effect {
                Effect::Issue { port, request } => left.push((port, request)),
                Effect::Complete { port, completion } => cx.out.complete_to(port, completion),
                Effect::Notice { port, notice } => {
                    self.note_rebuild(&notice);
                    cx.out.notice(port, notice);
                }
            }
        }
        self.effects = effects;
        for (port, request) in left.drain(..) {
            self.issue(now, port, request, cx);
        }
        self.left = left;
        result
    }

    /// Follows the states of members that the volume inside reports.
    fn note_rebuild(&mut self, notice: &Notice) {
        let Some(planner) = &mut self.planner else {
            return;
        };
        if let Signal::Rebuilt {
            member,
            done,
            whole,
            ..
        } = notice.signal
        {
            let state = match whole {
                true => MemberState::Alive,
                false => MemberState::Rebuilding { done },
            };
            planner.layout.set_member_state(member as usize, state);
        }
    }

    fn keep(&mut self, now: Time, member: usize, request: Request, purpose: IoPurpose) -> u32 {
        self.issued += 1;
        self.ios.keep(WatchedIo {
            request,
            member: member as u16,
            issued: now,
            number: self.issued,
            purpose,
            sent: false,
            answered: false,
            unreadable: None,
            around: None,
        })
    }

    fn send(&mut self, slot: u32, out: &mut Effects) {
        let io = &mut self.ios[slot];
        io.sent = true;
        let (member, number, purpose, request) =
            (io.member as usize, io.number, io.purpose, io.request);
        let issued = io.issued;
        let id = RequestId(u64::from(slot));
        out.issue(member, Request { id, ..request });
        let deadlines =
            self.rule.fails_after().is_some() || self.rule.reads_around_after().is_some();
        if purpose == IoPurpose::Volume && deadlines {
            self.watched.push_back((issued, slot, number));
        }
    }

    /// Sends an I/O of the volume inside to its member, or around the member.
    fn issue(&mut self, now: Time, port: Port, request: Request, cx: &mut NodeContext<'_>) {
        let member = port.index();
        let slot = self.keep(now, member, request, IoPurpose::Volume);
        let rests = may_go_around(&request) && self.rule.sits_out(member, now);
        if !(rests && self.go_around(now, slot, cx)) {
            self.send(slot, cx.out);
        }
    }

    /// Reads the data of an I/O from the other members. Returns false if they do not have the data.
    fn go_around(&mut self, now: Time, slot: u32, cx: &mut NodeContext<'_>) -> bool {
        let io = self.ios[slot];
        let rule = &self.rule;
        let Some(planner) = &mut self.planner else {
            return false;
        };
        let left_out = |member: usize| member == io.member as usize || rule.sits_out(member, now);
        if !planner.plan(
            &io.request,
            io.member as usize,
            left_out,
            cx.below,
            &mut self.planned,
        ) {
            return false;
        }
        let around = self.arounds.keep(ReadAround {
            target: slot,
            left: self.planned.len() as u32,
            status: RequestStatus::Done,
            last: Completion::default(),
        });
        self.ios[slot].around = Some(around);
        self.counts.late += 1;
        self.counts.member_ios += self.planned.len() as u64;
        for index in 0..self.planned.len() {
            let MemberIo {
                member,
                extent,
                row,
                ..
            } = self.planned[index];
            let hints = Hints {
                stripe: row.or(io.request.hints.stripe),
                ..io.request.hints
            };
            let request = Request {
                extent,
                hints,
                ..io.request
            };
            let part = self.keep(now, member as usize, request, IoPurpose::Around(around));
            self.send(part, cx.out);
        }
        true
    }

    /// Gives the volume inside the completion of an I/O.
    fn answer(&mut self, now: Time, slot: u32, completion: Completion, cx: &mut NodeContext<'_>) {
        let io = &mut self.ios[slot];
        debug_assert!(!io.answered, "an I/O is answered twice: {io:?}");
        io.answered = true;
        let (port, id, sent) = (Port(io.member), io.request.id, io.sent);
        // A read around that lost the race ends without an answer.
        if let Some(around) = io.around.take() {
            self.arounds[around].target = NONE;
        }
        // An I/O that the member still has keeps its entry for the late answer.
        if !sent {
            self.ios.take(slot);
        }
        let completion = Completion { id, ..completion };
        self.call(now, cx, |inside, cx| {
            inside.completed(now, port, completion, cx)
        });
    }

    /// Takes the answer of a member to an I/O of the volume inside.
    fn member_answered(
        &mut self,
        now: Time,
        slot: u32,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
        self.ios[slot].sent = false;
        let io = self.ios[slot];
        if io.request.operation == Operation::Read
            && completion.status == RequestStatus::Done
            && self
                .rule
                .ended(now, io.member as usize, completion.breakdown.response())
        {
            self.counts.sit_outs += 1;
        }
        if io.answered {
            self.ios.take(slot);
            return;
        }
        let lost = completion.status == RequestStatus::Lost && may_go_around(&io.request);
        if lost {
            self.ios[slot].unreadable = Some(completion);
            if io.around.is_some() || self.go_around(now, slot, cx) {
                return;
            }
            if self.planner.is_none() {
                self.rewrite_after_second(now, &io, cx);
            }
        }
        self.answer(now, slot, completion, cx);
    }

    /// Writes an extent again that md has read twice in vain: past the stripes, and through the
    /// stripes, which then compute the data and write them (`raid5_end_read_request` sets
    /// `R5_ReadError`, `handle_stripe` sets `R5_ReWrite`, `drivers/md/raid5.c`).
    fn rewrite_after_second(&mut self, now: Time, io: &WatchedIo, cx: &mut NodeContext<'_>) {
        let extent = io.request.extent;
        let overlaps = |other: &(u16, Extent)| {
            other.0 == io.member && other.1.start < extent.end() && extent.start < other.1.end()
        };
        match self.unreadable.iter().position(overlaps) {
            None => self.unreadable.push((io.member, extent)),
            Some(index) => {
                self.unreadable.swap_remove(index);
                self.rewrite(now, io, cx);
            }
        }
    }

    fn rewrite(&mut self, now: Time, io: &WatchedIo, cx: &mut NodeContext<'_>) {
        self.counts.rewritten += 1;
        let request = Request {
            operation: Operation::Write,
            ..io.request
        };
        let slot = self.keep(now, io.member as usize, request, IoPurpose::Rewrite);
        self.send(slot, cx.out);
    }

    /// Takes the answer to a part of a read around a member.
    fn part_answered(
        &mut self,
        now: Time,
        around: u32,
        completion: &Completion,
        cx: &mut NodeContext<'_>,
    ) {
        let read = &mut self.arounds[around];
        read.status = read.status.max(completion.status);
        if completion.finished >= read.last.finished {
            read.last = *completion;
        }
        read.left -= 1;
        if read.left > 0 {
            return;
        }
        let ReadAround {
            target,
            status,
            last,
            ..
        } = self.arounds.take(around);
        if target == NONE {
            return;
        }
        let io = self.ios[target];
        self.ios[target].around = None;
        if status != RequestStatus::Done {
            // The others do not have the data, so the member's own answer counts.
            match io.unreadable {
                Some(own) => self.answer(now, target, own, cx),
                None if !io.sent => self.send(target, cx.out),
                None => {}
            }
            return;
        }
        self.counts.read_around += 1;
        if io.unreadable.is_some() {
            self.rewrite(now, &io, cx);
        }
        let mut breakdown = last.breakdown;
        // The time before the read around counts too, so that the parts of the breakdown sum up to
        // the response.
        breakdown.parity += last.submitted.since(io.issued);
        let completion = Completion {
            submitted: io.issued,
            status,
            breakdown,
            ..last
        };
        self.answer(now, target, completion, cx);
    }

    /// Drops entries of ended I/Os at the front of the list.
    fn forget_ended(&mut self) {
        while let Some(&(_, slot, number)) = self.watched.front() {
            let io = &self.ios[slot];
            // Slots are used again, and only the number tells two I/Os in one slot apart.
            if io.number == number && io.sent && !io.answered {
                return;
            }
            self.watched.pop_front();
        }
    }

    /// Returns the time at which the first I/O below is late.
    fn first_late(&self) -> Time {
        let delay = self.rule.fails_after().or(self.rule.reads_around_after());
        match (self.watched.front(), delay) {
            (Some((issued, ..)), Some(delay)) => issued.saturating_add(delay),
            _ => Time::NEVER,
        }
    }

    /// Acts on the I/Os that are late at `now`.
    fn act(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.forget_ended();
        while self.first_late() <= now {
            if let Some((_, slot, _)) = self.watched.pop_front() {
                if self.rule.fails_after().is_some() {
                    self.fail(now, slot, cx);
                } else if may_go_around(&self.ios[slot].request) && self.ios[slot].around.is_none()
                {
                    self.go_around(now, slot, cx);
                }
            }
            self.forget_ended();
        }
    }

    /// Fails the member of a late I/O. The volume inside gets an answer to each I/O that the member
    /// has.
    fn fail(&mut self, now: Time, late: u32, cx: &mut NodeContext<'_>) {
        let member = self.ios[late].member as usize;
        let late = (late, self.ios[late].number);
        let order = LayerOrder::Fail { member };
        // A refusal says that the member has failed already.
        if self.order(now, order, cx).is_ok() {
            self.counts.failed += 1;
        }
        self.counts.late += 1;
        let waits = |io: &&(Time, u32, u64)| {
            let watched = &self.ios[io.1];
            watched.number == io.2
                && watched.member as usize == member
                && watched.sent
                && !watched.answered
        };
        // The list is made before the answers, because an answer may issue more I/Os.
        let slots: Vec<(u32, u64)> = (self.watched.iter().filter(waits))
            .map(|&(_, slot, number)| (slot, number))
            .collect();
        for (slot, number) in std::iter::once(late).chain(slots) {
            let io = self.ios[slot];
            if io.number == number && io.sent && !io.answered {
                let waited = now.since(io.issued);
                let completion = Completion {
                    submitted: io.issued,
                    finished: now,
                    status: RequestStatus::Lost,
                    breakdown: Breakdown {
                        queue: waited,
                        ..Default::default()
                    },
                    ..Completion::default()
                };
                self.answer(now, slot, completion, cx);
            }
        }
    }

    fn order(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        // The volume inside may refuse the order, and then the planner must not follow.
        self.call(now, cx, |inside, cx| inside.ordered(now, order, cx))?;
        if let Some(planner) = &mut self.planner {
            let (member, state) = match order {
                LayerOrder::Fail { member } => (member, MemberState::Failed),
                LayerOrder::Restore { member, done, .. } => {
                    (member, MemberState::Rebuilding { done })
                }
                LayerOrder::ReAdd { member } => (member, MemberState::Alive),
                LayerOrder::Speed(_) | LayerOrder::Slow { .. } | LayerOrder::Rest => return Ok(()),
            };
            planner.layout.set_member_state(member, state);
        }
        Ok(())
    }
}

/// Slot of no I/O.
const NONE: u32 = u32::MAX;

/// True for a read of data that other members may answer. A scrub reads each member itself.
fn may_go_around(request: &Request) -> bool {
    request.operation == Operation::Read
        && request.origin != Request::BACKGROUND
        && !request.hints.members
        && !request.hints.verify
}

impl Planner {
    /// Plans the reads that give the data of `request` without the members `left_out`. Returns
    /// false if the other members do not have all data.
    fn plan(
        &mut self,
        request: &Request,
        member: usize,
        left_out: impl Fn(usize) -> bool,
        below: LayersBelow<'_>,
        planned: &mut Vec<MemberIo>,
    ) -> bool {
        let owners = &mut self.owners;
        owners.clear();
        self.layout
            .owners(member, request.extent, &mut |extent| owners.push(extent));
        let owned = owners
            .iter()
            .fold(Sectors::ZERO, |sum, own| sum + own.sectors);
        // Parity belongs to no address.
        if owned != request.extent.sectors {
            return false;
        }
        let members = self.layout.members();
        let before: MemberStates = self.layout.member_states().clone();
        (0..members)
            .filter(|&member| left_out(member))
            .for_each(|member| self.layout.set_member_state(member, MemberState::Failed));
        if !self.layout.answers() {
            // With too many members out, only the asked one is left out.
            *self.layout.member_states_mut() = before.clone();
            self.layout.set_member_state(member, MemberState::Failed);
        }
        planned.clear();
        let mut done = true;
        for &extent in &self.owners {
            let read = Request {
                operation: Operation::Read,
                extent,
                ..*request
            };
            done &= self.layout.plan(&read, below, &mut self.plan) == RequestStatus::Done;
            planned.extend_from_slice(self.plan.ios());
        }
        *self.layout.member_states_mut() = before;
        done && !planned.is_empty()
    }
}

impl Node for LateVolume {
    fn submit(&mut self, now: Time, from: Port, request: Request, cx: &mut NodeContext<'_>) {
        self.act(now, cx);
        self.call(now, cx, |inside, cx| inside.submit(now, from, request, cx));
    }

    fn completed(
        &mut self,
        now: Time,
        from: Port,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
        let slot = completion.id.0 as u32;
        debug_assert_eq!(
            self.ios[slot].member, from.0,
            "a member answers its own I/O"
        );
        match self.ios[slot].purpose {
            IoPurpose::Volume => self.member_answered(now, slot, completion, cx),
            IoPurpose::Around(around) => {
                let io = self.ios.take(slot);
                self.rule
                    .ended(now, io.member as usize, completion.breakdown.response());
                self.part_answered(now, around, &completion, cx);
            }
            IoPurpose::Rewrite => _ = self.ios.take(slot),
        }
        self.act(now, cx);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        if self.inside.next_wake().at() <= now {
            self.call(now, cx, |inside, cx| inside.wake(now, cx));
        }
        self.act(now, cx);
    }

    fn noticed(&mut self, now: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        self.call(now, cx, |inside, cx| inside.noticed(now, from, notice, cx));
    }

    fn owners(&self, from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        self.inside.owners(from, extent, owner);
    }

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        self.order(now, order, cx)
    }

    fn next_wake(&self) -> Wake {
        let inside = self.inside.next_wake();
        match self.first_late() {
            Time::NEVER => inside,
            late => Wake::Work(late.min(inside.at())),
        }
    }

    fn gauge(&self) -> Gauge {
        self.inside.gauge()
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        self.inside.count(now, counters);
        let counts = &self.counts;
        let readings = [
            ("late_io", counts.late),
            ("late_read_around", counts.read_around),
            ("late_member_io", counts.member_ios),
            ("late_rewritten", counts.rewritten),
            ("late_failed", counts.failed),
            ("late_sit_outs", counts.sit_outs),
        ];
        let readings = readings.map(|(name, count)| (name, count as f64));
        counters
            .layers
            .push(LayerReadings::new("slow members", &readings));
    }
}
