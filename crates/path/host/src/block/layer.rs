//! The layer.

use super::flushing::{Flushes, Flushing};
use super::gate::{Gate, Piece};
use super::neighbours::{MergeLimits, Neighbours};
use super::originals::Originals;
use super::plug::{Plug, Plugging};
use super::request::{Join, Queued, Requests};
use crate::Clock;
use crate::direction::{ByDirection, Direction};
use crate::elevator::{Context, Elevator};
use fullstroke_contract::{
    Below, Completion, Cx, Extent, Gauge, Hints, Node, Operation, Out, Port, Request, RequestId,
    Stripes, Wake,
};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Lbn, Sectors, Time};
use std::sync::Arc;

/// The id of a flush below; others are slots.
const FLUSH: RequestId = RequestId(u64::MAX);

/// What passes the elevator by has its original's number behind this bit.
const PASSED: u64 = 1 << 32;

/// What a block layer is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Requests that the device may have at once.
    pub queue_depth: u32,
    /// Requests that may wait or be with the device, in each direction.
    pub nr_requests: u32,
    /// The longest request.
    pub sectors_max: Sectors,
    /// How requests are held back.
    pub plug: Plugging,
    /// Requests that pull the plug.
    pub unplug_threshold: u32,
    /// The time after which the plug is pulled.
    pub unplug_delay: Duration,
    /// What elevator, plug and flushes tell time by.
    pub clock: Clock,
    /// Addresses of the device.
    pub capacity: Sectors,
    /// Whether requests that meet on the boundary of a stripe unit stay apart.
    pub stripe_aware_merging: bool,
    /// Whether the elevator is told which member an address lies on.
    pub per_member_anticipation: bool,
    /// What a flush does to other requests.
    pub flush: Flushing,
    /// Whether the device forces single writes to its medium.
    pub fua: bool,
}

/// The layer.
///
/// - **Events in**: `submit`, `completed`, `wake`.
/// - **Effects out**: `issue` to the one member, `complete`.
///
/// Every submitted request completes once, with the time from its own
/// submission on; if several were served as one, they end alike.
///
/// A flush counts as one of the device's requests. It passes the elevator by:
/// as a barrier (`gate.rs`) or, as a sequence of its own (`flushing.rs`), before
/// whatever waits there.
pub struct BlockLayer {
    elevator: Box<dyn Elevator>,
    clock: Clock,
    limits: MergeLimits,
    queue_depth: u32,
    stripes: Option<Box<dyn Stripes>>,
    gate: Gate,
    flushing: Flushing,
    flushes: Flushes,
    fua: bool,
    plug: Plug,
    originals: Originals,
    requests: Requests,
    neighbours: Neighbours,
    /// Requests in the elevator.
    waiting: u32,
    /// Requests with the device.
    issued: u32,
    idle_since: Time,
}

impl BlockLayer {
    /// A layer with nothing in it. `stripes` says how the device's addresses lie
    /// on its members; the two settings that go by it do nothing without.
    pub fn new(
        elevator: Box<dyn Elevator>,
        settings: &Settings,
        stripes: Option<Box<dyn Stripes>>,
    ) -> BlockLayer {
        let stripe_unit = stripes
            .as_ref()
            .filter(|_| settings.stripe_aware_merging)
            .map(|stripes| stripes.unit());
        BlockLayer {
            elevator,
            clock: settings.clock,
            limits: MergeLimits {
                sectors_max: settings.sectors_max,
                capacity: settings.capacity,
                stripe_unit,
                tracks: None,
            },
            queue_depth: settings.queue_depth,
            stripes: stripes.filter(|_| settings.per_member_anticipation),
            gate: Gate::new(settings.nr_requests),
            flushing: settings.flush,
            flushes: Flushes::default(),
            fua: settings.fua,
            plug: Plug::new(settings),
            originals: Originals::default(),
            requests: Requests::default(),
            neighbours: Neighbours::default(),
            waiting: 0,
            issued: 0,
            idle_since: Time::ZERO,
        }
    }

    /// The same layer, which cuts requests where one of these tracks ends, merges none
    /// across, and unplugs when a run has come to such an end (Qian & Wang, section
    /// 5.1).
    #[must_use]
    pub fn aligned_to(mut self, tracks: Option<Arc<Boundaries>>) -> BlockLayer {
        self.limits.tracks = tracks;
        self
    }

    /// Cuts a request into pieces that are not too long, and lets them in.
    fn arrive(&mut self, now: Time, request: Request) {
        let extent = request.extent;
        // What lies beyond the device is left whole for the device to refuse.
        let cut = request.operation.transfers() && extent.within(self.limits.capacity);
        let pieces = if cut { self.pieces(extent) } else { 1 };
        let then_flush = self.is_forced_by_flush(&request);
        let original = self
            .originals
            .open(now, request, pieces + u32::from(then_flush));
        if then_flush {
            self.flushes.begin_forced_write();
        }
        let mut rest = extent;
        for _ in 1..pieces {
            let (piece, behind) = self.limits.split(rest);
            self.let_in(now, original, piece);
            rest = behind;
        }
        self.let_in(now, original, rest);
    }

    /// How many requests an extent is cut into.
    fn pieces(&self, extent: Extent) -> u32 {
        let (_, mut rest) = self.limits.split(extent);
        let mut pieces = 1;
        while rest.sectors > Sectors::ZERO {
            let before = rest.sectors;
            (_, rest) = self.limits.split(rest);
            assert!(rest.sectors < before, "a piece of {extent:?} is empty");
            pieces += 1;
        }
        pieces
    }

    /// Whether a flush behind the write is what makes it durable, because the
    /// device cannot force it.
    fn is_forced_by_flush(&self, request: &Request) -> bool {
        !self.fua && request.operation == Operation::Write && request.hints.force_unit_access
    }

    fn let_in(&mut self, now: Time, original: u32, extent: Extent) {
        let direction =
            Direction::of_writes(self.originals.request(original).operation != Operation::Read);
        let piece = self.gate.piece(original, extent);
        if !self.gate.is_open(direction) || !self.admit(now, piece) {
            self.gate.wait(direction, piece);
            // Who waits wants the others to be served.
            self.plug.pull();
        }
    }

    /// Lets in whoever has waited and need not any more.
    fn admit_waiting(&mut self, now: Time) {
        let mut which = ByDirection {
            read: true,
            write: true,
        };
        while let Some((direction, piece)) = self.gate.first(which) {
            which[direction] = self.admit(now, piece);
            if which[direction] {
                self.gate.pass(direction);
            }
        }
    }

    /// A piece joins a waiting request or becomes one; `false` if it must wait.
    fn admit(&mut self, now: Time, piece: Piece) -> bool {
        let arrival = self.queued(now, &piece);
        if Neighbours::concern(&arrival) && self.join(now, &piece, &arrival) {
            return true;
        }
        if !self.gate.take(arrival.direction()) {
            return false;
        }
        if arrival.operation == Operation::Flush {
            self.flushes.wait(self.clock.read(now), piece.original);
            return true;
        }
        let arrival = Queued {
            parts: self.originals.part(piece.original),
            ..arrival
        };
        let slot = self.requests.keep(arrival);
        self.neighbours.insert(slot, &arrival);
        self.elevator
            .add(self.clock.read(now), slot, &self.requests);
        self.plug.added(now, self.waiting, arrival.synchronous);
        self.unplug_at(arrival.extent.end());
        self.waiting += 1;
        true
    }

    fn queued(&self, now: Time, piece: &Piece) -> Queued {
        let Request {
            operation, hints, ..
        } = self.originals.request(piece.original);
        Queued {
            extent: piece.extent,
            operation: *operation,
            process: hints.process,
            class: hints.class,
            level: hints.level,
            synchronous: *operation == Operation::Read || hints.synchronous,
            force_unit_access: hints.force_unit_access,
            stripe_queue: hints.stripe_queue,
            queued: self.clock.read(now),
            dispatched: Time::NEVER,
            parts: (0, 0),
        }
    }

    /// Makes a piece part of a waiting request, if there is one that it can
    /// join: one that ends where it begins, else one that begins where it ends
    /// (the order of `elv_merge` in Linux's `block/elevator.c`).
    fn join(&mut self, now: Time, piece: &Piece, arrival: &Queued) -> bool {
        let behind = self
            .neighbours
            .ending_at(arrival.extent.start, arrival.operation);
        if let Some(slot) = behind.filter(|&slot| self.may_join(slot, arrival, Join::Back)) {
            self.grow(now, slot, piece, arrival, Join::Back);
            let end = self.requests[slot].extent.end();
            self.coalesce(
                now,
                Some(slot),
                self.neighbours.starting_at(end, arrival.operation),
            );
            return true;
        }
        let before = self
            .neighbours
            .starting_at(arrival.extent.end(), arrival.operation);
        if let Some(slot) = before.filter(|&slot| self.may_join(slot, arrival, Join::Front)) {
            self.grow(now, slot, piece, arrival, Join::Front);
            let start = self.requests[slot].extent.start;
            self.coalesce(
                now,
                self.neighbours.ending_at(start, arrival.operation),
                Some(slot),
            );
            return true;
        }
        false
    }

    fn may_join(&self, slot: u32, other: &Queued, join: Join) -> bool {
        let kept = &self.requests[slot];
        let allowed = match join {
            Join::Front => self.limits.allow(other, kept),
            Join::Back | Join::Coalesce => self.limits.allow(kept, other),
        };
        allowed && self.elevator.may_join(kept, other, join)
    }

    fn grow(&mut self, now: Time, slot: u32, piece: &Piece, arrival: &Queued, join: Join) {
        let before = self.requests[slot];
        let part = self.originals.part(piece.original);
        let mut after = before;
        after.extent.sectors += arrival.extent.sectors;
        if join == Join::Front {
            after.extent.start = arrival.extent.start;
            after.parts = self.originals.concatenate(part, before.parts);
        } else {
            after.parts = self.originals.concatenate(before.parts, part);
        }
        assert!(
            after.extent.sectors <= self.limits.sectors_max,
            "a request has grown to {}, of at most {}",
            after.extent.sectors,
            self.limits.sectors_max
        );
        self.replace(slot, &before, after);
        self.elevator.grown(
            self.clock.read(now),
            slot,
            join,
            &before,
            arrival,
            &self.requests,
        );
        self.plug.joined(now, arrival.synchronous);
        self.unplug_at(after.extent.end());
    }

    /// A run that has come to the end of a track goes.
    fn unplug_at(&mut self, end: Lbn) {
        if self.limits.ends_track(end) {
            self.plug.pull();
        }
    }

    /// Makes two waiting requests that have become neighbours one
    /// (`attempt_back_merge` and `attempt_front_merge` of `block/blk-merge.c`).
    fn coalesce(&mut self, now: Time, first: Option<u32>, second: Option<u32>) {
        let (Some(kept), Some(gone)) = (first, second) else {
            return;
        };
        let second = self.requests[gone];
        if !self.may_join(kept, &second, Join::Coalesce) {
            return;
        }
        let before = self.requests[kept];
        assert!(
            kept != gone && before.extent.end() == second.extent.start,
            "{:?} and {:?} are no neighbours",
            before.extent,
            second.extent
        );
        let mut after = before;
        after.extent.sectors += second.extent.sectors;
        after.parts = self.originals.concatenate(before.parts, second.parts);
        self.neighbours.remove(gone, &second);
        self.replace(kept, &before, after);
        self.elevator
            .coalesced(self.clock.read(now), kept, gone, &self.requests);
        self.requests.take(gone);
        self.gate.release(second.direction());
        self.plug.coalesced();
        self.waiting -= 1;
    }

    fn replace(&mut self, slot: u32, before: &Queued, after: Queued) {
        self.neighbours.remove(slot, before);
        self.neighbours.insert(slot, &after);
        self.requests[slot] = after;
    }

    /// Gives the device what it has room for: flushes first, as those bypass
    /// the elevator.
    fn dispatch(&mut self, now: Time, below: Below<'_>, out: &mut Out) {
        if self.gate.has_barrier() {
            self.plug.pull();
        }
        if self.issued < self.queue_depth && self.flushes.wants_to_go(self.clock.read(now)) {
            let first = self.flushes.send();
            self.issue_flush(first, out);
        }
        while self.waiting > 0 && self.issued < self.queue_depth && self.plug.due().is_none() {
            let context = Context {
                requests: &self.requests,
                waiting: self.waiting,
                issued: self.issued,
                queue_depth: self.queue_depth,
                device: below.gauge(0),
                tracks: below.tracks(0),
                stripes: self.stripes.as_deref(),
            };
            let Some(slot) = self.elevator.dispatch(self.clock.read(now), &context) else {
                debug_assert!(
                    self.will_ask_again(now),
                    "an elevator declined, and named no later instant"
                );
                return;
            };
            self.issue(now, slot, out);
        }
        let barrier = self.gate.flush();
        self.issue_flush(barrier, out);
    }

    fn issue_flush(&mut self, original: Option<u32>, out: &mut Out) {
        let Some(original) = original else { return };
        self.issued += 1;
        let Request { origin, hints, .. } = *self.originals.request(original);
        // A write that is forced by a flush carries the hint still.
        let hints = Hints {
            force_unit_access: false,
            ..hints
        };
        let operation = Operation::Flush;
        out.issue(
            0,
            Request {
                id: FLUSH,
                origin,
                operation,
                extent: Extent::default(),
                hints,
                ..Request::default()
            },
        );
    }

    /// Commands that move no data go to the device at once, as Linux executes
    /// them (`blk_execute_rq`).
    fn pass_by(&mut self, now: Time, request: Request, out: &mut Out) {
        let original = self.originals.open(now, request, 1);
        self.issued += 1;
        out.issue(
            0,
            Request {
                id: RequestId(PASSED | u64::from(original)),
                ..request
            },
        );
    }

    fn will_ask_again(&self, now: Time) -> bool {
        let wake = self.elevator.next_wake();
        wake > now && (self.issued > 0 || wake != Time::NEVER)
    }

    fn issue(&mut self, now: Time, slot: u32, out: &mut Out) {
        let request = &mut self.requests[slot];
        request.dispatched = self.clock.read(now);
        let Queued {
            extent,
            operation,
            parts,
            ..
        } = *request;
        self.neighbours.remove(slot, &self.requests[slot]);
        assert!(
            self.waiting > 0 && self.issued < self.queue_depth,
            "slot {slot} is sent, of {} that wait, beside {} of {}",
            self.waiting,
            self.issued,
            self.queue_depth
        );
        self.waiting -= 1;
        self.issued += 1;
        let (mut hints, origin) = self.originals.hints(parts);
        hints.force_unit_access &= self.fua;
        out.issue(
            0,
            Request {
                id: RequestId(u64::from(slot)),
                origin,
                operation,
                extent,
                hints,
                ..Request::default()
            },
        );
    }

    fn finish(&mut self, now: Time, completion: &Completion, out: &mut Out) {
        assert!(
            self.issued > 0,
            "request {} comes back, and the device has none",
            completion.id.0
        );
        self.issued -= 1;
        self.plug.completed();
        if completion.id == FLUSH {
            return self.flushed(completion, out);
        }
        if completion.id.0 & PASSED != 0 {
            return self
                .originals
                .piece_finished(completion.id.0 as u32, completion, out);
        }
        let slot = completion.id.0 as u32;
        self.elevator
            .completed(self.clock.read(now), slot, &self.requests);
        let request = self.requests.take(slot);
        self.gate.release(request.direction());
        if request.force_unit_access && !self.fua {
            // It is of one part, since it joins none.
            let original = self.originals.of(request.parts);
            self.originals.finish(request.parts, completion, out);
            if self.originals.pieces_left(original) == 1 {
                self.flushes
                    .end_forced_write(self.clock.read(now), original);
            }
        } else {
            self.originals.finish(request.parts, completion, out);
        }
    }

    /// A flush has come back.
    fn flushed(&mut self, completion: &Completion, out: &mut Out) {
        if self.flushing == Flushing::Drain {
            let original = self.gate.flushed();
            return self.originals.piece_finished(original, completion, out);
        }
        while let Some(original) = self.flushes.completed() {
            if self.originals.request(original).operation == Operation::Flush {
                self.gate.release(Direction::Write);
            }
            self.originals.piece_finished(original, completion, out);
        }
    }
}

impl Node for BlockLayer {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut Cx<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        if request.operation == Operation::Flush && self.flushing == Flushing::Drain {
            let original = self.originals.open(now, request, 1);
            self.gate.close(original);
        } else if matches!(
            request.operation,
            Operation::Standby | Operation::Start | Operation::Answer
        ) {
            self.pass_by(now, request, out);
        } else {
            self.arrive(now, request);
            // A join may have set a request free.
            self.admit_waiting(now);
        }
        self.dispatch(now, below, out);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut Cx<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        self.finish(now, &completion, out);
        self.admit_waiting(now);
        if self.originals.len() == 0 {
            assert!(
                self.waiting == 0 && self.issued == 0,
                "nobody waits for the {} requests in the elevator and {} with the device",
                self.waiting,
                self.issued
            );
            self.idle_since = now;
        }
        self.dispatch(now, below, out);
    }

    fn wake(&mut self, now: Time, cx: &mut Cx<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        self.plug.wake(now);
        self.dispatch(now, below, out);
    }

    fn next_wake(&self) -> Wake {
        let due = match self.plug.due() {
            Some(due) => due,
            None if self.waiting > 0 && self.issued < self.queue_depth => self.elevator.next_wake(),
            None => Time::NEVER,
        };
        due.into()
    }

    fn gauge(&self) -> Gauge {
        let held = self.originals.len() as u32;
        Gauge {
            queue_length: held,
            idle_since: (held == 0).then_some(self.idle_since),
            ..Gauge::default()
        }
    }
}
