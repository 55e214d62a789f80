//! The block layer as a node of the simulation.

use super::flushing::{Flushes, Flushing};
use super::gate::{RequestGate, SubmittedPiece, Submitter, Tags};
use super::neighbours::{MergeLimits, Neighbours};
use super::originals::{HostTime, Originals};
use super::plug::{Plug, Plugging};
use super::request::{JoinKind, Queued, Requests};
use super::runs::QueueRuns;
use super::throttling::WriteBackThrottle;
use crate::TickClock;
use crate::direction::{ByDirection, Direction};
use crate::elevator::{Context, Elevator};
use fullstroke_contract::{
    Completion, Counters, Effects, Extent, Gauge, Hints, LayerReadings, LayersBelow, Node,
    NodeContext, Operation, Port, Request, RequestId, Stripes, Wake,
};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Duration, Lbn, Sectors, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Id of a flush below. Other ids are slots.
const FLUSH: RequestId = RequestId(u64::MAX);

/// Bit in the id of a request that bypasses the elevator. The lower bits are the number of the
/// submitted request.
const PASSED: u64 = 1 << 32;

/// Settings of a block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerSettings {
    /// Largest number of requests in flight.
    pub queue_depth: u32,
    /// The requests, waiting and in flight, and the rule by which submitters wait for them.
    pub tags: Tags,
    /// Longest request.
    pub sectors_max: Sectors,
    /// How requests are held back.
    pub plug: Plugging,
    /// Limit of held requests; the plug is pulled there.
    pub unplug_threshold: u32,
    /// Longest time for which the plug holds.
    pub unplug_delay: Duration,
    /// Clock of the elevator, the plug and the flushes.
    pub clock: TickClock,
    /// Number of addresses of the device.
    pub capacity: Sectors,
    /// True if two requests stay separate where they meet on the boundary of a stripe unit.
    pub stripe_aware_merging: bool,
    /// True if the elevator learns which member holds an address.
    pub per_member_anticipation: bool,
    /// Effect of a flush on other requests.
    pub flush: Flushing,
    /// True if the device itself serves forced writes (FUA).
    pub fua: bool,
    /// Longest time of the fastest read, above which asynchronous writes are throttled. `None` =
    /// never.
    pub read_target: Option<Duration>,
    /// Time that the host takes for each request.
    pub time: HostTime,
    /// True if one request leaves the elevator although the device has no room: the driver reserves
    /// no command beforehand.
    pub ahead: bool,
}

/// The layer.
///
/// - **Events in**: `submit`, `completed`, `wake`.
/// - **Effects out**: `issue` to the one member, `complete`.
///
/// Every submitted request completes once. Its response time begins at its own submission. Merged
/// requests complete together, with the same status.
///
/// A flush counts as one of the requests in flight, but bypasses the elevator. A flush is either a
/// barrier (`gate.rs`) or a sequence of its own (`flushing.rs`). A sequence goes before all
/// requests in the elevator.
pub struct BlockLayer {
    elevator: Box<dyn Elevator>,
    clock: TickClock,
    limits: MergeLimits,
    queue_depth: u32,
    stripes: Option<Box<dyn Stripes>>,
    gate: RequestGate,
    throttle: Option<WriteBackThrottle>,
    flushing: Flushing,
    flushes: Flushes,
    /// Number of flushes sent to the device.
    flushed: u64,
    fua: bool,
    plug: Plug,
    runs: QueueRuns,
    /// Time from a submission to the arrival at the elevator.
    submission: Duration,
    /// Submitted requests before their arrival, with the times of the arrivals.
    arriving: VecDeque<(Time, Request)>,
    originals: Originals,
    requests: Requests,
    neighbours: Neighbours,
    /// Number of requests in the elevator.
    waiting: u32,
    /// Number of requests in flight.
    issued: u32,
    /// True if a request leaves the elevator although the device has no room.
    takes_ahead: bool,
    /// The request that has left the elevator and waits for the device.
    ahead: Option<u32>,
    idle_since: Time,
}

impl BlockLayer {
    /// Returns an empty layer. `stripes` maps the addresses of the device to its members. Without
    /// `stripes` the two settings for members have no effect.
    pub fn new(
        elevator: Box<dyn Elevator>,
        settings: &LayerSettings,
        stripes: Option<Box<dyn Stripes>>,
    ) -> BlockLayer {
        let stripe_unit = stripes
            .as_ref()
            .filter(|_| settings.stripe_aware_merging)
            .map(|stripes| stripes.unit());
        let least = elevator.least_depth(settings.tags.request_limit());
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
            gate: RequestGate::new(settings.tags, least, settings.time.turnaround()),
            throttle: settings
                .read_target
                .map(|target| WriteBackThrottle::new(target, settings.queue_depth)),
            flushing: settings.flush,
            flushes: Flushes::default(),
            flushed: 0,
            fua: settings.fua,
            plug: Plug::new(settings),
            runs: QueueRuns::new(settings.time),
            submission: settings.time.submission,
            arriving: VecDeque::new(),
            originals: Originals::new(settings.time),
            requests: Requests::default(),
            neighbours: Neighbours::default(),
            waiting: 0,
            issued: 0,
            takes_ahead: settings.ahead,
            ahead: None,
            idle_since: Time::ZERO,
        }
    }

    /// Aligns the layer to tracks. The layer then splits requests at track ends and merges none
    /// across tracks. It unplugs when a run reaches the end of a track (Qian & Wang, section 5.1).
    #[must_use]
    pub fn aligned_to(mut self, tracks: Option<Arc<Boundaries>>) -> BlockLayer {
        self.limits.tracks = tracks;
        self
    }

    /// Carries out the arrivals that are due by `now`, at their own times, and completes the
    /// requests whose submitters run again.
    fn catch_up(&mut self, now: Time, below: LayersBelow<'_>, out: &mut Effects) {
        while let Some(&(at, request)) = self.arriving.front().filter(|&&(at, _)| at <= now) {
            self.arriving.pop_front();
            self.enter(at, request, below, out);
        }
        self.originals.leave(now, out);
    }

    fn enter(&mut self, now: Time, request: Request, below: LayersBelow<'_>, out: &mut Effects) {
        // A task's plug holds the requests of one task only. The other task's plug is elsewhere, so
        // this one ends.
        if self.plug.is_of_another(request.hints.process) {
            self.plug.pull();
            self.dispatch(now, below, out);
        }
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
            // A merge may have freed a request.
            self.admit_waiting(now, below, out);
            if request.operation == Operation::Flush {
                // The first flush of several goes alone, and the others share the next
                // (`blk_insert_flush` calls `blk_kick_flush` at once).
                self.send_flush(now, out);
            }
            if request.hints.direct && self.plug.is_of_submission() {
                // A direct request is a system call of its own, and the plug ends with the call
                // (`blk_finish_plug` in `__submit_bio` and in `io_submit`).
                self.plug.pull();
                self.dispatch(now, below, out);
            }
        }
    }

    /// Splits a request into pieces within the limits, and lets the pieces in.
    fn arrive(&mut self, now: Time, request: Request) {
        let extent = request.extent;
        // A request beyond the end of the device stays whole, so that the device refuses it.
        let cut = request.operation.transfers() && extent.within(self.limits.capacity);
        let pieces = if cut { self.pieces(extent) } else { 1 };
        let then_flush = self.is_forced_by_flush(&request);
        // The flush that follows a forced write counts as one more piece.
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

    /// Returns the number of pieces of an extent.
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

    /// True if a flush after the write makes the data durable, because the device does not support
    /// FUA.
    fn is_forced_by_flush(&self, request: &Request) -> bool {
        !self.fua && request.operation == Operation::Write && request.hints.force_unit_access
    }

    fn let_in(&mut self, now: Time, original: u32, extent: Extent) {
        let Request {
            operation, hints, ..
        } = *self.originals.request(original);
        let direction = Direction::of_writes(operation != Operation::Read);
        // Dirty pages are written back by a thread of the kernel.
        let submitter = if direction == Direction::Write && !hints.synchronous {
            Submitter::Flusher
        } else {
            Submitter::Process(hints.process)
        };
        let mut piece = self.gate.piece(original, extent, direction, submitter);
        if !self.gate.is_open(&piece) || !self.admit(now, &mut piece, true) {
            self.gate.wait(piece);
            // A waiting submitter needs the requests before its own to be served.
            self.plug.pull();
        }
    }

    /// Lets in the waiting pieces as far as possible.
    fn admit_waiting(&mut self, now: Time, below: LayersBelow<'_>, out: &mut Effects) {
        let mut which = ByDirection {
            read: true,
            write: true,
        };
        while let Some(mut piece) = self.gate.first(which) {
            which[piece.direction] = self.admit(now, &mut piece, true);
            if which[piece.direction] {
                self.gate.pass(piece.direction);
            }
        }
        self.admit_blocked(now, below, out);
    }

    /// Wakes blocked submitters for the requests that were given back, and lets those run whose time
    /// has come. A submitter goes on with its submission as long as it finds free requests, and then
    /// blocks again.
    fn admit_blocked(&mut self, now: Time, below: LayersBelow<'_>, out: &mut Effects) {
        self.gate.wake(now);
        let mut line = 0;
        for _ in 0..self.gate.blocked() {
            if !self.gate.runs(line, now) {
                line += 1;
                continue;
            }
            let mut entered = false;
            while let Some(mut piece) = self.gate.next_of(line) {
                if !self.admit(now, &mut piece, self.elevator.joins_blocked()) {
                    self.gate.remember(line, piece);
                    break;
                }
                self.gate.pass_of(line);
                entered = true;
                if self.ends_submission(&piece, line) {
                    self.plug.pull();
                    self.run(now, below, out);
                }
            }
            if !self.gate.ends_turn(line, entered) {
                line += 1;
            }
        }
    }

    /// True if a direct request of a blocked submitter is complete with this piece. Its submission
    /// runs the queue before the submitter goes on with its next request, so that the next one finds
    /// nothing to join (`blk_finish_plug` in `__submit_bio` and in `io_submit`).
    fn ends_submission(&self, piece: &SubmittedPiece, line: usize) -> bool {
        let next = self.gate.next_of(line);
        let is_last = next.is_none_or(|next| next.original != piece.original);
        is_last && self.originals.request(piece.original).hints.direct
    }

    /// Merges a piece into a waiting request, if it `may_join` one, or makes it a request. Returns
    /// false if the piece must wait.
    fn admit(&mut self, now: Time, piece: &mut SubmittedPiece, may_join: bool) -> bool {
        let arrival = self.queued(now, piece);
        // A merge needs no free request, so the attempt comes before the throttle and the tags
        // (`blk_mq_attempt_bio_merge`).
        if may_join && Neighbours::concern(&arrival) && self.join(now, piece, &arrival) {
            return true;
        }
        // The order is that of `blk_mq_submit_bio`: first the throttle, then a free request.
        if !self.passes_throttle(now, &arrival) {
            piece.depth = None;
            return false;
        }
        let most = self.gate.request_limit();
        let depth = match piece.depth {
            Some(depth) => depth,
            None if arrival.operation == Operation::Flush => most,
            None => self.elevator.depth(&arrival, most),
        };
        piece.depth = Some(depth);
        let Some(tag) = self.gate.take(arrival.direction(), depth) else {
            // The throttle has counted the write already, and counts again on the next attempt.
            self.withdraw(&arrival);
            return false;
        };
        let arrival = Queued { tag, ..arrival };
        if arrival.operation == Operation::Flush {
            self.originals.keep_tag(piece.original, tag);
            self.flushes.wait(self.clock.read(now), piece.original);
            return true;
        }
        // The part is made only now: a piece that must wait comes back to this function, and has no
        // part yet.
        let arrival = Queued {
            parts: self.originals.part(piece.original),
            ..arrival
        };
        let slot = self.requests.keep(arrival);
        self.neighbours.insert(slot, &arrival);
        self.elevator
            .add(self.clock.read(now), slot, &self.requests);
        self.plug
            .added(now, self.waiting, arrival.synchronous, arrival.process);
        self.unplug_at(arrival.extent.end());
        self.waiting += 1;
        // The submitter runs the queue (`blk_mq_submit_bio`). A merge runs nothing.
        self.runs.ask();
        true
    }

    /// True if write-back throttling lets the request in. The throttle counts asynchronous writes
    /// and discards, but no direct writes (`wbt_should_throttle`).
    fn passes_throttle(&mut self, now: Time, arrival: &Queued) -> bool {
        match &mut self.throttle {
            Some(throttle) if arrival.is_throttled() => throttle.admits(now),
            _ => true,
        }
    }

    fn withdraw(&mut self, arrival: &Queued) {
        if let Some(throttle) = &mut self.throttle
            && arrival.is_throttled()
        {
            throttle.withdraw();
        }
    }

    fn queued(&self, now: Time, piece: &SubmittedPiece) -> Queued {
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
            tag: 0,
            parts: (0, 0),
        }
    }

    /// Merges a piece into a waiting request, if one can take the piece. A request that ends where
    /// the piece begins goes before a request that begins where the piece ends (the order of
    /// `elv_merge` in Linux's `block/elevator.c`).
    fn join(&mut self, now: Time, piece: &SubmittedPiece, arrival: &Queued) -> bool {
        let behind = self
            .neighbours
            .ending_at(arrival.extent.start, arrival.operation);
        if let Some(slot) = behind.filter(|&slot| self.may_join(slot, arrival, JoinKind::Back)) {
            self.grow(now, slot, piece, arrival, JoinKind::Back);
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
        if let Some(slot) = before.filter(|&slot| self.may_join(slot, arrival, JoinKind::Front)) {
            self.grow(now, slot, piece, arrival, JoinKind::Front);
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

    fn may_join(&self, slot: u32, other: &Queued, join: JoinKind) -> bool {
        let kept = &self.requests[slot];
        let allowed = match join {
            JoinKind::Front => self.limits.allow(other, kept),
            JoinKind::Back | JoinKind::Coalesce => self.limits.allow(kept, other),
        };
        allowed && self.elevator.may_join(slot, kept, other, join)
    }

    fn grow(
        &mut self,
        now: Time,
        slot: u32,
        piece: &SubmittedPiece,
        arrival: &Queued,
        join: JoinKind,
    ) {
        let before = self.requests[slot];
        let part = self.originals.part(piece.original);
        let mut after = before;
        after.extent.sectors += arrival.extent.sectors;
        if join == JoinKind::Front {
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

    /// Pulls the plug when a run of requests has reached the end of a track.
    fn unplug_at(&mut self, end: Lbn) {
        if self.limits.ends_track(end) {
            self.plug.pull();
        }
    }

    /// Merges two waiting requests that have become neighbours (`attempt_back_merge` and
    /// `attempt_front_merge` of `block/blk-merge.c`).
    fn coalesce(&mut self, now: Time, first: Option<u32>, second: Option<u32>) {
        let (Some(kept), Some(gone)) = (first, second) else {
            return;
        };
        let second = self.requests[gone];
        if !self.may_join(kept, &second, JoinKind::Coalesce) {
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
        // After the elevator has seen both: the elevator reads the request that goes.
        self.requests.take(gone);
        self.withdraw(&second);
        self.gate.release(second.direction(), second.tag);
        self.plug.coalesced();
        self.waiting -= 1;
    }

    fn replace(&mut self, slot: u32, before: &Queued, after: Queued) {
        self.neighbours.remove(slot, before);
        self.neighbours.insert(slot, &after);
        self.requests[slot] = after;
    }

    /// Sends a flush, if one waits and may go.
    fn send_flush(&mut self, now: Time, out: &mut Effects) {
        if self.issued < self.queue_depth && self.flushes.wants_to_go(now, self.clock.read(now)) {
            let first = self.flushes.send();
            self.issue_flush(first, out);
        }
    }

    /// Fills the device up to the queue depth. Flushes go first, because they bypass the elevator.
    fn dispatch(&mut self, now: Time, below: LayersBelow<'_>, out: &mut Effects) {
        // A barrier waits for all earlier requests. The plug would hold these requests back.
        if self.gate.has_barrier() {
            self.plug.pull();
        }
        // Flushes do not pass through the elevator, so they go before the elevator is asked.
        self.send_flush(now, out);
        self.run(now, below, out);
        let barrier = self.gate.flush();
        self.issue_flush(barrier, out);
    }

    /// Runs the queue, if the time has come: asks the elevator for requests until the device is
    /// full.
    fn run(&mut self, now: Time, below: LayersBelow<'_>, out: &mut Effects) {
        if !self.runs.is_asked() {
            return;
        }
        if self.issued < self.queue_depth
            && let Some(slot) = self.ahead.take()
        {
            self.issue(now, slot, out);
        }
        if self.plug.due().is_some() {
            return;
        }
        while self.waiting > 0 && self.has_room() {
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
                if self.elevator.is_asked_again() {
                    self.runs.declined(now);
                } else {
                    self.runs.postponed(now);
                }
                debug_assert!(
                    self.will_ask_again(now),
                    "an elevator declined, and named no later instant"
                );
                return;
            };
            self.neighbours.remove(slot, &self.requests[slot]);
            assert!(self.waiting > 0, "slot {slot} leaves the empty elevator");
            self.waiting -= 1;
            if self.issued < self.queue_depth {
                self.issue(now, slot, out);
            } else {
                // blk-mq takes a request out of the elevator before the driver accepts the request
                // (`blk_mq_do_dispatch_sched`).
                self.ahead = Some(slot);
            }
        }
        self.runs.ends(self.ahead.is_some() || self.waiting > 0);
    }

    /// True if a request may leave the elevator. A driver that reserves no command beforehand takes
    /// one request more than the device has room for (`__blk_mq_do_dispatch_sched` of
    /// `block/blk-mq-sched.c` asks the elevator first, and then for the command).
    fn has_room(&self) -> bool {
        self.issued < self.queue_depth || (self.takes_ahead && self.ahead.is_none())
    }

    fn issue_flush(&mut self, original: Option<u32>, out: &mut Effects) {
        let Some(original) = original else { return };
        self.issued += 1;
        self.flushed += 1;
        let Request { origin, hints, .. } = *self.originals.request(original);
        // The hint of a forced write is still set here, although the request below is a flush.
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

    /// Issues a command without data at once, as Linux does (`blk_execute_rq`).
    fn pass_by(&mut self, now: Time, request: Request, out: &mut Effects) {
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

    /// Returns the time at which the elevator wants to be asked. Its timer goes off at a tick.
    /// Earlier the elevator's clock would show a time before the instant, and the elevator would
    /// decline forever.
    fn elevator_wake(&self) -> Time {
        self.clock.timer(self.elevator.next_wake())
    }

    fn will_ask_again(&self, now: Time) -> bool {
        let wake = self.elevator_wake().min(self.runs.due());
        wake > now && (self.issued > 0 || wake != Time::NEVER)
    }

    fn issue(&mut self, now: Time, slot: u32, out: &mut Effects) {
        let request = &mut self.requests[slot];
        request.dispatched = self.clock.read(now);
        let Queued {
            extent,
            operation,
            parts,
            ..
        } = *request;
        if let Some(throttle) = &mut self.throttle {
            let counted = self.requests[slot].is_throttled();
            throttle.issued(now, slot, operation == Operation::Read, counted);
        }
        assert!(
            self.issued < self.queue_depth,
            "slot {slot} is dispatched with {} of {} in flight",
            self.issued,
            self.queue_depth
        );
        self.issued += 1;
        let (mut hints, origin) = self.originals.hints(parts);
        // If the device does not support FUA, a flush follows the write instead.
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

    fn finish(&mut self, now: Time, completion: &Completion, out: &mut Effects) {
        assert!(
            self.issued > 0,
            "request {} comes back, and the device has none",
            completion.id.0
        );
        self.issued -= 1;
        self.plug.completed();
        if completion.id == FLUSH {
            self.runs.ask();
            return self.flushed(now, completion, out);
        }
        if completion.id.0 & PASSED != 0 {
            self.runs.ask();
            return self
                .originals
                .piece_finished(completion.id.0 as u32, completion, out);
        }
        let slot = completion.id.0 as u32;
        self.elevator
            .completed(self.clock.read(now), slot, &self.requests);
        self.runs
            .completed(now, self.waiting > 0 && self.elevator.runs_again());
        let request = self.requests.take(slot);
        if let Some(throttle) = &mut self.throttle {
            let read = request.operation == Operation::Read;
            let counted = request.is_throttled();
            throttle.completed(now, slot, request.dispatched, read, counted);
        }
        self.gate.release(request.direction(), request.tag);
        if request.synchronous {
            self.gate.completed_for(Submitter::Process(request.process));
        }
        if request.force_unit_access && !self.fua {
            // A forced write has one part, because it joins no other request.
            let original = self.originals.of(request.parts);
            self.originals.finish(request.parts, completion, out);
            // The last piece is the flush: `arrive` has counted the flush as a piece.
            if self.originals.pieces_left(original) == 1 {
                self.flushes
                    .end_forced_write(self.clock.read(now), original);
            }
        } else {
            self.originals.finish(request.parts, completion, out);
        }
    }

    /// Finishes the requests of a completed flush.
    fn flushed(&mut self, now: Time, completion: &Completion, out: &mut Effects) {
        if self.flushing == Flushing::Drain {
            let original = self.gate.flushed(now);
            return self.originals.piece_finished(original, completion, out);
        }
        while let Some(original) = self.flushes.completed() {
            let request = self.originals.request(original);
            let operation = request.operation;
            if request.hints.before_forced_write && !self.fua {
                self.flushes
                    .announce_forced_write(now + self.originals.turnaround());
            }
            // A forced write has given its request back already, when its own completion arrived.
            if operation == Operation::Flush {
                self.gate
                    .release(Direction::Write, self.originals.tag(original));
            }
            self.originals.piece_finished(original, completion, out);
        }
    }
}

impl Node for BlockLayer {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        self.catch_up(now, below, out);
        if self.submission == Duration::ZERO {
            self.enter(now, request, below, out);
        } else {
            self.arriving.push_back((now + self.submission, request));
        }
        self.dispatch(now, below, out);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        self.catch_up(now, below, out);
        // Freed requests first, then waiting submitters, then the device: a submitter may add a
        // better choice.
        self.finish(now, &completion, out);
        self.admit_waiting(now, below, out);
        if self.originals.len() == 0 {
            assert!(
                self.waiting == 0 && self.issued == 0,
                "no submitted request is open, but {} requests are in the elevator and {} in flight",
                self.waiting,
                self.issued
            );
            self.idle_since = now;
        }
        self.dispatch(now, below, out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        let (below, out) = (cx.below, &mut *cx.out);
        self.catch_up(now, below, out);
        self.plug.wake(now);
        self.runs.wake(now);
        if self.elevator_wake() <= now {
            self.runs.ask();
        }
        if let Some(throttle) = &mut self.throttle
            && throttle.wake(now)
        {
            self.admit_waiting(now, below, out);
        }
        if self.gate.runs_at() <= now {
            self.admit_blocked(now, below, out);
        }
        self.dispatch(now, below, out);
    }

    fn next_wake(&self) -> Wake {
        let due = match self.plug.due() {
            Some(due) => due,
            None if self.waiting > 0 && self.has_room() => {
                self.elevator_wake().min(self.runs.due())
            }
            None if self.ahead.is_some() => self.runs.due(),
            None => Time::NEVER,
        };
        let due = match self.arriving.front() {
            Some(&(arrival, _)) => due.min(arrival),
            None => due,
        };
        let due = due.min(self.originals.leaves_at()).min(self.gate.runs_at());
        let due = match self.issued < self.queue_depth {
            true => due.min(self.flushes.due()),
            false => due,
        };
        match &self.throttle {
            // A run does not wait for the throttle alone. A completion on its way to the submitter
            // is work, even if the throttle's window ends before the completion arrives.
            Some(throttle) if due == Time::NEVER && throttle.is_idle() => {
                Wake::Chore(throttle.due())
            }
            Some(throttle) => due.min(throttle.due()).into(),
            None => due.into(),
        }
    }

    fn gauge(&self) -> Gauge {
        let held = self.originals.len() as u32;
        Gauge {
            queue_length: held,
            idle_since: (held == 0).then_some(self.idle_since),
            ..Gauge::default()
        }
    }

    /// Counts the flushes, if the device has no FUA: the device gets more flushes than the file
    /// system asks for.
    fn count(&self, _: Time, counters: &mut Counters) {
        if !self.fua {
            counters.layers.push(LayerReadings::new(
                "block layer".to_owned(),
                &[("device_flushes", self.flushed as f64)],
            ));
        }
    }
}
