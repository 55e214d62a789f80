//! The layer that carries a layout's plans out.

use crate::counts::Counts;
use crate::layout::Layout;
use crate::locks::RowLocks;
use crate::plan::Detail;
pub use coordination::Coordination;
use flight::{Flight, Purpose, decode, encode};
use fullstroke_contract::{
    Below, Completion, Counters, Cx, Extent, Gauge, MemberState, Node, Notice, Operation, Order,
    Out, Port, RebuildSpeed, Refusal, Request, Status, Wake,
};
use fullstroke_units::{Bytes, Cylinder, Sectors, Time};
use pressure::Pressure;
use rebuild::{Job, Rebuilds};
use shifts::Shifts;

mod coordination;
mod flight;
mod orders;
mod pressure;
mod rebuild;
mod shifts;

#[cfg(test)]
mod rebuild_races;
#[cfg(test)]
mod rebuild_storms;
#[cfg(test)]
mod rebuild_tests;
#[cfg(test)]
mod shift_tests;
#[cfg(test)]
mod tests;

/// A volume: requests from above become member I/O below, as the layout plans.
///
/// - **Events in**: those of [`Node`].
/// - **Getters**: [`layout`](Volume::layout), and those of [`Node`].
///
/// What holds after each event:
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
///
/// Members fail and are restored by [`Order`]s, or when they say themselves that
/// they failed or were replaced, as a member that is a volume does; these and
/// their own rebuilds they tell the volume and nobody above.
///
/// - A failure holds for what is planned from then on; I/O that is under way
///   ends as it will, and where a member refuses it, the request is planned anew.
///   If data is lost with the member, the volume has **failed**: it says
///   [`Signal::Failed`], and rebuilds rest. Requests that do not need what is
///   lost are served all the same.
/// - A failed volume stays so. A restore is refused, with the reason, unless it
///   says that data may be lost; what cannot be filled is passed over then, the
///   new member's own sectors count, and when so the volume has all addresses
///   again, it says [`Signal::Replaced`]. Or members come back with their bytes
///   ([`Order::ReAdd`]): then it says [`Signal::Returned`].
/// - A restored member is empty, and is filled from the others, in units. Members
///   that stand at the same place, or nearly, are filled together: what they are
///   computed from is read once, and what does not share drives goes on side by
///   side. Otherwise it is one member after the other. Its first unit begins not before all requests that
///   were planned before the restore have ended, and none before the rate allows
///   it; a wake-up is asked for then. A unit takes its rows in the same queues as
///   writes, so that what it fills is up to date. Its I/O is of the class
///   [`Idle`], and its origin is [`Request::BACKGROUND`].
/// - While nobody asks for anything, units are long, and several are under way:
///   one is written while the next are read. While requests come, and for a second
///   after, units are short, and one begins when the one before it has ended,
///   unless the rebuild is slower than [`RebuildSpeed::least`]. Requests of the
///   class [`Idle`] are no reason to make way.
/// - When a unit and all before it have ended, the volume says
///   [`Signal::Rebuilt`]. A unit whose I/O is lost, or that read of a member which
///   has failed since, fills nothing: it is planned again, with those behind it,
///   if a member has failed meanwhile; otherwise rebuilds rest until the next
///   order.
/// - A layout with [gears](crate::Gears) is shifted by their utilisation; the module `shifts` says how.
/// - Members that are replaced without an order are filled at the rate of the
///   latest restore, or else at that of [`Order::Speed`].
///
/// [`RebuildSpeed::least`]: fullstroke_contract::RebuildSpeed
/// [`Signal::Failed`]: fullstroke_contract::Signal::Failed
/// [`Signal::Replaced`]: fullstroke_contract::Signal::Replaced
/// [`Signal::Returned`]: fullstroke_contract::Signal::Returned
/// [`Signal::Rebuilt`]: fullstroke_contract::Signal::Rebuilt
/// [`Idle`]: fullstroke_contract::PriorityClass::Idle
pub struct Volume {
    layout: Box<dyn Layout>,
    detail: Detail,
    /// Whether parts of requests are told how long queues at members are.
    coordination: Option<Coordination>,
    /// What is in flight, by slot. A free slot keeps its room.
    flights: Vec<Flight>,
    free: Vec<u32>,
    locks: RowLocks,
    /// Strands that may begin; empty between events.
    granted: Vec<u64>,
    /// The member whose arm stands for the volume's.
    first_alive: usize,
    /// Requests from above that have not finished.
    in_flight: u32,
    head: Cylinder,
    idle_since: Option<Time>,
    /// Whether every address still has its data.
    answering: bool,
    rebuilds: Rebuilds,
    /// What the next unit fills; its room is kept.
    filled: Vec<usize>,
    /// The requests that rebuilds make way for.
    pressure: Pressure,
    /// Members that have failed and were not written with the others since.
    missed: Vec<u32>,
    /// Whether a member comes back as it was.
    returning: bool,
    /// How many members were restored so far.
    restores: u64,
    /// How often members changed their state so far.
    changes: u64,
    /// The rate of the latest restore.
    latest_rate: Option<Bytes>,
    /// Of a layout with gears: when they are shifted.
    shifts: Option<Shifts>,
    counts: Counts,
}

impl Volume {
    /// A volume whose I/O is timed only.
    pub fn new(layout: Box<dyn Layout>) -> Volume {
        Volume::with_detail(layout, Detail::Timing)
    }

    /// A volume whose plans can be carried out on bytes if `detail` says so.
    pub(crate) fn with_detail(mut layout: Box<dyn Layout>, detail: Detail) -> Volume {
        Volume {
            first_alive: orders::first_alive(&*layout),
            answering: layout.answers(),
            shifts: layout.gears().map(|gears| Shifts::new(gears)),
            layout,
            detail,
            coordination: None,
            flights: Vec::new(),
            free: Vec::new(),
            locks: RowLocks::default(),
            granted: Vec::new(),
            in_flight: 0,
            head: Cylinder(0),
            idle_since: Some(Time::ZERO),
            rebuilds: Rebuilds::default(),
            filled: Vec::new(),
            pressure: Pressure::default(),
            missed: Vec::new(),
            returning: false,
            restores: 0,
            changes: 0,
            latest_rate: None,
            counts: Counts::default(),
        }
    }

    /// The same volume, whose `members` are new and empty at time 0, to be
    /// rebuilt together at this speed.
    ///
    /// # Panics
    /// If there is no such member.
    #[must_use]
    pub fn rebuilding(mut self, members: &[u32], speed: RebuildSpeed) -> Volume {
        self.rebuilds.speed = speed;
        for &member in members {
            let member = member as usize;
            assert!(
                member < self.layout.members(),
                "member {member} is rebuilt, of {}",
                self.layout.members()
            );
            let filling = Sectors::ZERO..self.layout.member_used(member);
            self.layout.set_member_state(
                member,
                MemberState::Rebuilding {
                    done: Sectors::ZERO,
                },
            );
            let together = self.layout.answers();
            let again = self.rebuilds.add(
                Time::ZERO,
                Job::new(Time::ZERO, member, filling, None),
                together,
                0,
            );
            debug_assert!(!again, "nothing is under way yet");
        }
        self.answering = self.layout.answers();
        self.first_alive = orders::first_alive(&*self.layout);
        self
    }

    /// The same volume, which tells parts of requests how long queues at members are,
    /// in [`Hints::stripe_queue`](fullstroke_contract::Hints::stripe_queue).
    #[must_use]
    pub fn coordinating(mut self, coordination: Option<Coordination>) -> Volume {
        self.coordination = coordination;
        self
    }

    /// How the volume's addresses lie on its members.
    pub fn layout(&self) -> &dyn Layout {
        &*self.layout
    }

    /// The plan to which a member I/O belongs, and the index of the I/O in it.
    /// It stays until the end of the last I/O of the request that it serves.
    /// `None` if the volume never issued such an id.
    #[cfg(test)]
    pub(crate) fn plan_of(
        &self,
        member_io: fullstroke_contract::RequestId,
    ) -> Option<(&crate::plan::Plan, usize)> {
        let (slot, io) = decode(member_io.0);
        let plan = &self.flights.get(slot)?.plan;
        (io < plan.ios().len()).then_some((plan, io))
    }

    fn new_slot(&mut self) -> usize {
        if let Some(slot) = self.free.pop() {
            return slot as usize;
        }
        self.flights.push(Flight::new(self.detail));
        self.flights.len() - 1
    }

    /// What is issued for the request from now on is told of the queues as they are.
    fn see_queues(&mut self, slot: usize, below: Below<'_>) {
        if let Some(coordination) = self.coordination {
            self.flights[slot].stripe_queue = coordination.queue(below, self.layout.members());
        }
    }

    fn begin_strands(&mut self, slot: usize, out: &mut Out) {
        self.idle_since = None;
        for strand in 0..self.flights[slot].strands.len() {
            self.begin_strand(slot, strand, out);
        }
    }

    fn begin_strand(&mut self, slot: usize, strand: usize, out: &mut Out) {
        let flight = &mut self.flights[slot];
        if let Some(rows) = flight.plan.strands()[strand].exclusive_rows() {
            assert!(
                flight.strands[strand].lock.is_none(),
                "strand {strand} of slot {slot} asks for {rows:?} beside rows that it has"
            );
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
        let Some(lock) = self.flights[slot].strands[strand].lock else {
            return;
        };
        self.locks.release(lock, &mut self.granted);
        for token in self.granted.drain(..) {
            let (slot, strand) = decode(token);
            self.flights[slot].issue_first_phase(slot, strand, out);
        }
    }

    /// Plans a request again that a member did not answer, if members have
    /// failed or come since it was planned: a member that is a volume refuses
    /// what reaches it after its own failure, such as the second phase of a
    /// write. What was written already is written again.
    fn plan_anew(&mut self, slot: usize, below: Below<'_>, out: &mut Out) -> bool {
        let flight = &mut self.flights[slot];
        if flight.status() == Status::Done || flight.changes == self.changes {
            return false;
        }
        let request = flight.request();
        let status = self.layout.plan(&request, below, &mut flight.plan);
        if status != Status::Done || flight.plan.ios().is_empty() {
            return false;
        }
        flight.begin_again(self.changes);
        self.note_missed(request.operation);
        self.begin_strands(slot, out);
        true
    }

    fn finish(&mut self, slot: usize, below: Below<'_>, out: &mut Out) {
        let flight = &self.flights[slot];
        let (completion, restores, purpose) =
            (flight.completion(), flight.restores, flight.purpose);
        let settled = flight.settled;
        if purpose == Purpose::Above && self.plan_anew(slot, below, out) {
            return;
        }
        let flight = &self.flights[slot];
        self.free.push(slot as u32);
        debug_assert!(
            self.free.len() <= self.flights.len()
                && !self.free[..self.free.len() - 1].contains(&(slot as u32)),
            "slot {slot} is free twice"
        );
        match purpose {
            Purpose::Above => {
                assert!(
                    self.in_flight > 0 && completion.submitted <= completion.finished,
                    "a request ends at {:?} that came at {:?}; {} are in flight",
                    completion.finished,
                    completion.submitted,
                    self.in_flight
                );
                self.in_flight -= 1;
                if flight.presses() {
                    self.pressure.request_ended(completion.finished);
                }
                if restores < self.restores {
                    self.rebuilds.older_ended(completion.finished);
                }
                self.ended_before_gear(completion.finished, settled, out);
                out.complete(completion);
            }
            Purpose::Rebuild => self.unit_ended(slot, completion.finished, completion.status, out),
            Purpose::Copy => self.copy_ended(completion.finished, completion.status),
            Purpose::Platters => self.platters_ended(completion.finished, out),
        }
        if self.in_flight == 0 && !self.rebuilds.is_busy() {
            self.idle_since = Some(completion.finished);
        }
    }
}

impl Node for Volume {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut Cx<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        self.head = below.gauge(self.first_alive).head;
        self.catch_up(now, out);
        let slot = self.new_slot();
        let flight = &mut self.flights[slot];
        let status = self.layout.plan(&request, below, &mut flight.plan);
        if flight.plan.ios().is_empty() {
            self.free.push(slot as u32);
            return out.complete(Completion::at_once(request.id, now, status));
        }
        self.counts.planned(request.operation, &flight.plan);
        debug_assert_eq!(
            flight
                .plan
                .strands()
                .iter()
                .map(|strand| strand.first_phase().len() + strand.second_phase().len())
                .sum::<usize>(),
            flight.plan.ios().len(),
            "each I/O of a plan is of one strand: {request:?}"
        );
        flight.begin(now, request, self.restores, self.changes);
        flight.settled = self.shifts.as_ref().map_or(0, |shifts| shifts.settled);
        self.in_flight += 1;
        if flight.presses() {
            self.pressure.request_came(now);
        }
        self.note_missed(request.operation);
        self.see_queues(slot, below);
        self.begin_strands(slot, out);
    }

    fn completed(&mut self, now: Time, from: Port, completion: Completion, cx: &mut Cx<'_>) {
        let member = from.index();
        let (below, out) = (cx.below, &mut *cx.out);
        self.head = below.gauge(self.first_alive).head;
        self.catch_up(now, out);
        let (slot, io) = decode(completion.id.0);
        self.see_queues(slot, below);
        let flight = &mut self.flights[slot];
        assert!(
            io < flight.plan.ios().len(),
            "the I/O {io} of slot {slot} comes back, of a plan with {}",
            flight.plan.ios().len()
        );
        debug_assert_eq!(
            flight.plan.ios()[io].member as usize,
            member,
            "a member answers its own requests"
        );
        if let Some(shifts) = &mut self.shifts
            && flight.purpose == Purpose::Above
        {
            shifts.worked(completion.breakdown.service());
        }
        let member_io = &flight.plan.ios()[io];
        let strand = member_io.strand as usize;
        if member_io.second_phase && member_io.operation == Operation::Write {
            self.counts
                .written(flight.plan.overwrites_what_it_read(member_io), &completion);
        } else if flight.strands[strand].lock.is_some()
            && flight.request.operation == Operation::Write
        {
            self.counts
                .got_row(completion.submitted.since(flight.submitted));
        }
        if flight.record(strand, completion) {
            if flight.issue_second_phase(slot, strand, out) {
                return;
            }
            assert!(
                flight.unfinished > 0,
                "strand {strand} of slot {slot} ends twice"
            );
            flight.unfinished -= 1;
            let finished = flight.unfinished == 0;
            self.end_strand(slot, strand, out);
            if finished {
                self.finish(slot, below, out);
                self.catch_up(now, out);
            }
        }
    }

    fn wake(&mut self, now: Time, cx: &mut Cx<'_>) {
        let out = &mut *cx.out;
        self.catch_up(now, out);
    }

    fn noticed(&mut self, now: Time, from: Port, notice: Notice, cx: &mut Cx<'_>) {
        self.catch_up(now, cx.out);
        self.hear(now, from, notice, cx.out);
        self.catch_up(now, cx.out);
    }

    fn owners(&self, from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        self.layout.owners(from.index(), extent, &mut |extent| {
            owner(Port::FIRST, extent)
        });
    }

    fn ordered(&mut self, now: Time, order: Order, cx: &mut Cx<'_>) -> Result<(), Refusal> {
        let (below, out) = (cx.below, &mut *cx.out);
        self.catch_up(now, out);
        self.carry_out(now, order, below, out)?;
        self.catch_up(now, out);
        Ok(())
    }

    fn next_wake(&self) -> Wake {
        let unit = self.next_unit();
        match &self.shifts {
            Some(shifts) if self.rebuilds.job().is_none() => Wake::Chore(shifts.next()),
            Some(shifts) => unit.min(shifts.next()).into(),
            None => unit.into(),
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        let shifts = self.shifts.as_ref().map(|shifts| shifts.readings(now));
        counters.layers.push(
            self.counts
                .readings(self.layout.name(), shifts.as_slice().as_flattened()),
        );
        counters
            .gear_shifts
            .extend(self.shifts.iter().flat_map(|shifts| &shifts.begun));
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            queue_length: self.in_flight,
            head: self.head,
            idle_since: self.idle_since,
            alive: self.answering,
            ..Gauge::default()
        }
    }
}
