//! The layer for the execution of a layout's plans.

use crate::counts::VolumeCounts;
use crate::layout::Layout;
use crate::locks::RowLocks;
use crate::plan::Detail;
pub use coordination::Coordination;
use flight::{PendingRequest, RequestPurpose, decode, encode};
use fullstroke_contract::{
    Completion, Counters, Effects, Extent, Gauge, LayerOrder, LayersBelow, MemberState, Node,
    NodeContext, Notice, Operation, Port, RebuildSpeed, Refusal, Request, RequestStatus, Wake,
};
use fullstroke_units::{Bytes, Cylinder, Sectors, Time};
use pressure::Pressure;
use rebuild::{RebuildJob, Rebuilds};
use shifts::Shifts;
use std::ops::Range;
use turns::Turns;
pub use yielding::REBUILD_WINDOW;

mod beside;
mod coordination;
mod flight;
mod orders;
mod pressure;
mod rebuild;
mod shifts;
mod turns;
mod waiting;
mod yielding;

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

/// A volume: turns requests from above into member I/O below, by the plans of the layout.
///
/// - **Events in**: the events of [`Node`].
/// - **Getters**: [`layout`](Volume::layout), and the getters of [`Node`].
///
/// Invariants after each event:
///
/// - The second phase of a strand is issued when the last I/O of the first phase has completed. If
///   an I/O of the first phase has failed, the second phase is not issued and nothing is written.
/// - A strand with exclusive rows is issued when no earlier strand still holds or awaits any of
///   these rows.
/// - A request completes when its last member I/O completes, with the worst status of all. The
///   breakdown of the request is the breakdown of its last I/O. The time before the submission of
///   the last I/O counts as `parity`; the parts then add up.
/// - A request that cannot be planned completes at once.
///
/// Member I/O carries the hints of the request. In layouts with parity, `stripe` is the row of
/// chunks. Reads of the first phase of a write are synchronous.
///
/// Members fail and are restored by [`LayerOrder`]s. A member that is a volume can also report its
/// own failure or replacement. Such reports, and reports of the member's own rebuilds, reach this
/// volume and no layer above.
///
/// - A failure affects all later plans. I/O in flight ends normally. If a member refuses such I/O,
///   the request is planned again. If data is lost with the member, the volume has **failed**: the
///   volume sends [`Signal::Failed`], and rebuilds stop. Requests that do not need the lost data
///   are still served.
/// - A failed volume stays failed. A restore is refused with the reason, unless the order accepts
///   data loss. Sectors without a source are then skipped, and the new member's own sectors count
///   as data. As soon as all addresses are available again, the volume sends [`Signal::Replaced`].
///   Members may also come back with their bytes ([`LayerOrder::ReAdd`]). The volume then sends
///   [`Signal::Returned`].
/// - A restored member is empty and is filled from the others, in units. Members whose rebuilds
///   have reached about the same place are filled together: common sources are read once, and work
///   on different drives runs in parallel. Otherwise one member is filled after the other. The
///   first unit begins after the completion of all requests from before the restore. No unit begins
///   before the rate allows it; the volume asks for a wake-up. A unit takes its rows in the same
///   queues as writes; the filled sectors are therefore up to date. Rebuild I/O has the origin
///   [`Request::BACKGROUND`] and the class [`Idle`]; in an array like md, best effort.
/// - Without requests, units are long and several are in flight: one unit is written while the next
///   units are read. With requests, and for a second after the last request, units are short. A
///   unit then begins after the end of the previous unit, unless the rebuild is slower than
///   [`RebuildSpeed::least`]. Requests of the class [`Idle`] do not slow the rebuild.
/// - A rebuild of an array like md makes way by md's own rules (modules `yielding` and `turns`).
/// - When a unit and all units before it have ended, the volume sends [`Signal::Rebuilt`]. A unit
///   fills nothing if its I/O is lost or if one of its sources has failed since. If a member has
///   failed meanwhile, this unit and all later units are planned again. Otherwise rebuilds stop
///   until the next order.
/// - The utilisation of the members decides when a layout with [gears](crate::Gears) shifts; see
///   the module `shifts`.
/// - Members replaced without an order are filled at the rate of the latest restore, or else at the
///   rate of [`LayerOrder::Speed`].
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
    /// Queue length in the hints of member I/O; `None` for no hint.
    coordination: Option<Coordination>,
    /// Requests and units in flight, by slot. A free slot keeps its allocated memory.
    flights: Vec<PendingRequest>,
    free: Vec<u32>,
    locks: RowLocks,
    /// Strands that may begin; empty between events.
    granted: Vec<u64>,
    /// Member whose arm position the volume reports as its own.
    first_alive: usize,
    /// Number of requests from above in flight.
    in_flight: u32,
    head: Cylinder,
    idle_since: Option<Time>,
    /// True if the data of every address is available.
    answering: bool,
    rebuilds: Rebuilds,
    /// Number of I/Os of a rebuild in flight from which on the rebuild makes way, as in Linux 6.16.
    sync_io_depth: Option<u32>,
    /// Members of the next unit; kept to reuse the allocated memory.
    filled: Vec<usize>,
    /// Requests with precedence over rebuilds.
    pressure: Pressure,
    /// Turns of requests and rebuilds, if the layout takes turns.
    turns: Option<Turns>,
    /// Members that have failed and have missed writes since.
    missed: Vec<u32>,
    /// True while a member comes back with its old bytes.
    returning: bool,
    /// Number of restores so far.
    restores: u64,
    /// Number of changes of members' states so far.
    changes: u64,
    /// Rate of the latest restore.
    latest_rate: Option<Bytes>,
    /// Shifts of a layout with gears.
    shifts: Option<Shifts>,
    counts: VolumeCounts,
}

impl Volume {
    /// Returns a volume for timing.
    pub fn new(layout: Box<dyn Layout>) -> Volume {
        Volume::with_detail(layout, Detail::Timing)
    }

    /// Returns a volume. With [`Detail::Bytes`], its plans can be carried out on bytes.
    pub(crate) fn with_detail(mut layout: Box<dyn Layout>, detail: Detail) -> Volume {
        Volume {
            first_alive: orders::first_alive(&*layout),
            answering: layout.answers(),
            shifts: Shifts::of(&mut *layout),
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
            sync_io_depth: None,
            filled: Vec::new(),
            pressure: Pressure::default(),
            turns: None,
            missed: Vec::new(),
            returning: false,
            restores: 0,
            changes: 0,
            latest_rate: None,
            counts: VolumeCounts::default(),
        }
    }

    /// Returns the volume with `members` new and empty at time 0, to be rebuilt together at this
    /// speed.
    ///
    /// # Panics
    /// If there is no such member.
    #[must_use]
    pub fn rebuilding(self, members: &[u32], speed: RebuildSpeed) -> Volume {
        self.rebuilding_from(members, Sectors::ZERO, speed)
    }

    /// As [`rebuilding`](Volume::rebuilding), with `done` sectors of each member filled already.
    ///
    /// # Panics
    /// If there is no such member.
    #[must_use]
    pub fn rebuilding_from(
        mut self,
        members: &[u32],
        done: Sectors,
        speed: RebuildSpeed,
    ) -> Volume {
        self.rebuilds.speed = speed;
        if !members.is_empty() {
            self.start_yielding(Time::ZERO);
        }
        for &member in members {
            let member = member as usize;
            assert!(
                member < self.layout.members(),
                "member {member} is rebuilt, of {}",
                self.layout.members()
            );
            let used = self.layout.member_used(member);
            let done = done.min(used);
            let filling = done..used;
            self.layout
                .set_member_state(member, MemberState::Rebuilding { done });
            let together = self.layout.answers();
            let again = self.rebuilds.add(
                Time::ZERO,
                RebuildJob::new(Time::ZERO, member, filling, None),
                together,
                0,
            );
            debug_assert!(!again, "nothing is under way yet");
        }
        self.answering = self.layout.answers();
        self.first_alive = orders::first_alive(&*self.layout);
        self
    }

    /// Returns the volume with a limit of a rebuild's I/O in flight beside requests, as Linux 6.16
    /// and later have: an I/O of md is a page of each member in an array with parity, and 64 KiB in
    /// one with copies (`sync_io_within_limit`, `drivers/md/md.c`). A rebuild with so much in
    /// flight waits until nothing of the rebuild is in flight. `None` for no limit but a short
    /// unit. Departure: an array with parity rebuilds whole rows of chunks, so that a chunk is the
    /// least amount in flight.
    #[must_use]
    pub fn with_sync_io_depth(mut self, depth: Option<u32>) -> Volume {
        self.sync_io_depth = depth;
        if let Some(yielding) = &mut self.rebuilds.yielding {
            yielding.set_limit(depth);
        }
        self
    }

    /// Returns the volume with units of this length without requests, for members of fixed latency.
    #[cfg(test)]
    pub(crate) fn with_long_units(mut self, sectors: Sectors) -> Volume {
        self.rebuilds.sizes.long = sectors;
        self
    }

    /// Returns the volume with a hint in member I/O about the queues of the members, in
    /// [`Hints::stripe_queue`](fullstroke_contract::Hints::stripe_queue).
    #[must_use]
    pub fn coordinating(mut self, coordination: Option<Coordination>) -> Volume {
        self.coordination = coordination;
        self
    }

    /// Returns the address map.
    pub fn layout(&self) -> &dyn Layout {
        &*self.layout
    }

    /// Returns the plan of a member I/O and the index of the I/O in the plan. The plan stays until
    /// the last I/O of its request completes. Returns `None` if the volume never issued this id.
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
        self.flights.push(PendingRequest::new(self.detail));
        self.flights.len() - 1
    }

    /// Updates the queue hint for the request's next member I/O.
    fn see_queues(&mut self, slot: usize, below: LayersBelow<'_>) {
        if let Some(coordination) = self.coordination {
            self.flights[slot].stripe_queue = coordination.queue(below, self.layout.members());
        }
    }

    fn begin_strands(&mut self, slot: usize, out: &mut Effects) {
        self.idle_since = None;
        for strand in 0..self.flights[slot].strands.len() {
            self.begin_strand(slot, strand, out);
        }
    }

    fn begin_strand(&mut self, slot: usize, strand: usize, out: &mut Effects) {
        let flight = &mut self.flights[slot];
        if let Some(rows) = flight.plan.strands()[strand].exclusive_rows() {
            assert!(
                flight.strands[strand].lock.is_none(),
                "strand {strand} of slot {slot} asks for {rows:?} beside rows that it has"
            );
            let (lock, free) = self.locks.acquire(rows, encode(slot, strand));
            flight.strands[strand].lock = Some(lock);
            // `end_strand` of the owner of the rows issues this strand.
            if !free {
                return;
            }
        }
        let ios = flight.issue_first_phase(slot, strand, out);
        note_begun(&mut self.rebuilds, flight, ios);
    }

    /// Releases the strand's rows and issues the next strands on these rows.
    fn end_strand(&mut self, slot: usize, strand: usize, out: &mut Effects) {
        let Some(lock) = self.flights[slot].strands[strand].lock else {
            return;
        };
        self.locks.release(lock, &mut self.granted);
        for token in self.granted.drain(..) {
            let (slot, strand) = decode(token);
            let flight = &mut self.flights[slot];
            let ios = flight.issue_first_phase(slot, strand, out);
            note_begun(&mut self.rebuilds, flight, ios);
        }
    }

    /// Plans a failed request again if a member has failed or come back since the previous plan. A
    /// nested volume refuses requests after its own failure, for example the second phase of a
    /// write. Written parts are written again.
    fn plan_anew(&mut self, slot: usize, below: LayersBelow<'_>, out: &mut Effects) -> bool {
        let flight = &mut self.flights[slot];
        // Without a change of states, a new plan would fail in the same way.
        if flight.status() == RequestStatus::Done || flight.changes == self.changes {
            return false;
        }
        let request = flight.request();
        let status = self.layout.plan(&request, below, &mut flight.plan);
        // The data is lost: the request keeps the status of its first plan.
        if status != RequestStatus::Done || flight.plan.ios().is_empty() {
            return false;
        }
        flight.begin_again(self.changes);
        self.note_missed(request.operation);
        self.begin_strands(slot, out);
        true
    }

    /// Begins at `now` a request that arrived at `arrived`.
    fn admit(
        &mut self,
        arrived: Time,
        now: Time,
        request: Request,
        below: LayersBelow<'_>,
        out: &mut Effects,
    ) {
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
        flight.begin(arrived, request, self.restores, self.changes);
        flight.settled = self.shifts.as_ref().map_or(0, |shifts| shifts.settled);
        self.in_flight += 1;
        if flight.delays_rebuild() {
            self.pressure.request_came(now);
        }
        self.note_missed(request.operation);
        self.see_queues(slot, below);
        self.begin_strands(slot, out);
    }

    fn finish(&mut self, slot: usize, below: LayersBelow<'_>, out: &mut Effects) {
        let flight = &self.flights[slot];
        let (completion, restores, purpose) =
            (flight.completion(), flight.restores, flight.purpose);
        let settled = flight.settled;
        // The slot stays in use: the request runs again, by the new plan.
        if purpose == RequestPurpose::Above && self.plan_anew(slot, below, out) {
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
            RequestPurpose::Above => {
                assert!(
                    self.in_flight > 0 && completion.submitted <= completion.finished,
                    "a request ends at {:?} that came at {:?}; {} are in flight",
                    completion.finished,
                    completion.submitted,
                    self.in_flight
                );
                self.in_flight -= 1;
                if flight.delays_rebuild() {
                    self.pressure.request_ended(completion.finished);
                }
                if restores < self.restores {
                    self.rebuilds.older_ended(completion.finished);
                }
                self.ended_before_gear(completion.finished, settled, out);
                out.complete(completion);
            }
            RequestPurpose::Rebuild => {
                self.unit_ended(slot, completion.finished, completion.status, out);
                self.let_in(completion.finished, below, out);
            }
            RequestPurpose::Copy => self.copy_ended(completion.finished, completion.status),
            RequestPurpose::Platters => self.platters_ended(completion.finished, out),
        }
        if self.in_flight == 0 && !self.rebuilds.is_busy() {
            self.idle_since = Some(completion.finished);
        }
    }
}

/// Takes note of I/Os of a rebuild that begin.
fn note_begun(rebuilds: &mut Rebuilds, flight: &PendingRequest, ios: Range<usize>) {
    if flight.purpose == RequestPurpose::Rebuild
        && let Some(yielding) = &mut rebuilds.yielding
    {
        for io in &flight.plan.ios()[ios] {
            yielding.begun(io.member as usize, io.extent.sectors);
        }
    }
}

impl Node for Volume {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        self.head = below.gauge(self.first_alive).head;
        self.catch_up(now, out);
        if self.must_wait(&request) {
            return self.keep_waiting(now, request);
        }
        self.admit(now, now, request, below, out);
    }

    fn completed(
        &mut self,
        now: Time,
        from: Port,
        completion: Completion,
        cx: &mut NodeContext<'_>,
    ) {
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
            && flight.purpose == RequestPurpose::Above
        {
            shifts.worked(completion.breakdown.service());
        }
        let member_io = &flight.plan.ios()[io];
        let strand = member_io.strand as usize;
        let (operation, end) = (member_io.operation, member_io.extent.end());
        if let Some(yielding) = &mut self.rebuilds.yielding {
            yielding.ended(member, member_io.extent.sectors);
        }
        self.layout.io_ended(member, operation, end);
        // Writes of the second phase wait for the sectors to return under the head; their rotation
        // is counted.
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
            if let Some(ios) = flight.issue_second_phase(slot, strand, out) {
                return note_begun(&mut self.rebuilds, flight, ios);
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

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        let out = &mut *cx.out;
        self.catch_up(now, out);
    }

    fn noticed(&mut self, now: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        self.catch_up(now, cx.out);
        self.handle_member_notice(now, from, notice, cx.out);
        self.let_in(now, cx.below, cx.out);
        self.catch_up(now, cx.out);
    }

    fn owners(&self, from: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        self.layout.owners(from.index(), extent, &mut |extent| {
            owner(Port::FIRST, extent)
        });
    }

    fn ordered(
        &mut self,
        now: Time,
        order: LayerOrder,
        cx: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        let (below, out) = (cx.below, &mut *cx.out);
        self.catch_up(now, out);
        self.carry_out(now, order, below, out)?;
        self.let_in(now, below, out);
        self.catch_up(now, out);
        Ok(())
    }

    fn next_wake(&self) -> Wake {
        let unit = self.next_unit();
        match &self.shifts {
            // Samples of the utilisation never end, so that they must not keep a run alive.
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
            queue_length: self.in_flight
                + self
                    .turns
                    .as_ref()
                    .map_or(0, |turns| turns.waiting.len() as u32),
            head: self.head,
            idle_since: self.idle_since,
            alive: self.answering,
            ..Gauge::default()
        }
    }
}
