//! The node where hosts meet.

use crate::cooperation::{Cooperation, CooperationKeys, ReadContinuation};
use crate::cost::RequestCost;
use crate::fairness::Fairness;
use crate::regions::HostRegions;
use crate::statistics::StageStatistics;
use crate::turns::PullTurns;
use fullstroke_contract::{
    Completion, Counters, Effects, Extent, Gauge, Node, NodeContext, Notice, Operation, Port,
    Request, RequestId, RequestStatus, Signal, Slots, Wake,
};
use fullstroke_units::{Sectors, Time};

/// A host's share of the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostShare {
    /// Size of the host's addresses. Default: an equal part of the rest.
    pub size: Option<Sectors>,
    /// Weight, for rules with weights.
    pub weight: u32,
}

/// The node: one upper port per host, one lower port.
///
/// - **Events in**: `submit`, `completed`, `noticed`, `wake`.
/// - **Effects out**: `issue`, `complete`, notice to its owners.
///
/// Requests wait in the order of the fairness rule. When the stage's processor is free and the
/// array has room, the processor takes the next request. The processor works for the time of the
/// cost model and then issues the request. With co-operation, a read counts as in flight while
/// another host is asked for its data. Hosts cannot stop or start platters: such commands complete
/// at once.
pub struct Stage {
    regions: HostRegions,
    fairness: Box<dyn Fairness>,
    cost: Box<dyn RequestCost>,
    depth: u32,
    slots: Slots<HostRequest>,
    /// The request on the processor, with the end of the processing.
    working: Option<(Time, u32)>,
    /// Earliest time at which the processor can take the next request.
    free: Time,
    /// Number of requests in flight to the array.
    issued: u32,
    idle_since: Time,
    turns: PullTurns,
    cooperation: Option<Cooperation>,
    statistics: StageStatistics,
}

#[derive(Clone, Copy, Debug)]
struct HostRequest {
    host: Port,
    request: Request,
    submitted: Time,
    /// Start of the processing of the request.
    taken: Time,
}

impl Stage {
    /// An empty stage.
    pub fn new(
        regions: HostRegions,
        fairness: Box<dyn Fairness>,
        cost: Box<dyn RequestCost>,
        depth: Option<u32>,
    ) -> Stage {
        Stage {
            regions,
            fairness,
            cost,
            depth: depth.unwrap_or(u32::MAX),
            slots: Slots::default(),
            working: None,
            free: Time::ZERO,
            issued: 0,
            idle_since: Time::ZERO,
            turns: PullTurns::default(),
            cooperation: None,
            statistics: StageStatistics::default(),
        }
    }

    /// The stage with co-operation. Each host must have all addresses.
    #[must_use]
    pub fn with_cooperation(mut self, keys: &CooperationKeys) -> Stage {
        self.cooperation = Some(Cooperation::new(keys.clone(), self.regions.hosts()));
        self
    }

    /// Issues the processed requests, and lets the processor take further requests, up to `now`,
    /// each at the right instant.
    fn advance(&mut self, now: Time, out: &mut Effects) {
        loop {
            if let Some((ready, slot)) = self.working.filter(|&(ready, _)| ready <= now) {
                self.working = None;
                self.free = ready;
                debug_assert!(
                    self.slots[slot].taken <= ready,
                    "the processor is done at {ready:?} with a request of {:?}",
                    self.slots[slot].taken
                );
                self.take(ready, slot, out);
            }
            if self.working.is_some() || self.issued >= self.depth {
                return;
            }
            let Some(slot) = self.fairness.next() else {
                return;
            };
            let place = &mut self.slots[slot];
            // Either the request came while the processor was free, or the array has room only now.
            place.taken = self.free.max(place.submitted);
            assert!(
                place.taken >= place.submitted,
                "the processor takes a request of {:?} at {:?}",
                place.submitted,
                place.taken
            );
            self.working = Some((place.taken + self.cost.take(place.taken), slot));
        }
    }

    /// Ends the processing of a request. The request goes to a host with the data, or down.
    fn take(&mut self, now: Time, slot: u32, out: &mut Effects) {
        let HostRequest {
            host,
            request,
            submitted,
            taken,
        } = self.slots[slot];
        self.issued += 1;
        self.statistics
            .passed(taken.since(submitted), now.since(taken));
        let holder = self
            .cooperation
            .as_mut()
            .and_then(|others| others.ask(now, slot, host, &request));
        match holder {
            Some(holder) => out.notice(holder, Notice::new(Signal::Ask(request.extent))),
            None => self.issue(slot, out),
        }
    }

    fn issue(&self, slot: u32, out: &mut Effects) {
        let HostRequest { host, request, .. } = self.slots[slot];
        let extent = self.regions.below(host, request.extent).unwrap_or_default();
        out.issue(
            0,
            Request {
                id: RequestId(u64::from(slot)),
                extent,
                ..request
            },
        );
    }

    /// Continues the reads whose answer has come by `now`.
    fn go_on(&mut self, now: Time, out: &mut Effects) {
        while let Some(outcome) = self
            .cooperation
            .as_mut()
            .and_then(|others| others.take_due(now))
        {
            let ReadContinuation { slot, at, served } = outcome;
            if served {
                self.end(
                    at,
                    slot,
                    Completion::at_once(RequestId::default(), at, RequestStatus::Done),
                    out,
                );
            } else {
                self.issue(slot, out);
            }
        }
    }

    /// Ends a request with `completion` from below or from a host. The time of the processor is
    /// added to the overhead.
    fn end(&mut self, now: Time, slot: u32, completion: Completion, out: &mut Effects) {
        let HostRequest {
            host,
            request,
            submitted,
            taken,
        } = self.slots.take(slot);
        assert!(
            self.issued > 0 && taken >= submitted && completion.submitted >= taken,
            "a request of {submitted:?}, taken at {taken:?}, went down at {:?}; {} are out",
            completion.submitted,
            self.issued
        );
        self.issued -= 1;
        let mut breakdown = completion.breakdown;
        breakdown.overhead += completion.submitted.since(taken);
        let worked_on = Completion {
            submitted: taken,
            breakdown,
            ..completion
        };
        if let Some(others) = &mut self.cooperation {
            others.ended(
                slot,
                host,
                &request,
                completion.status == RequestStatus::Done,
            );
        }
        out.complete_to(host, worked_on.held_since(submitted, request.id));
        if self.slots.is_empty() {
            self.idle_since = now;
            assert_eq!(self.issued, 0, "nobody waits for what the array has");
        }
        // If the array had no room, the processor can continue from now.
        if self.working.is_none() {
            self.free = self.free.max(now);
        }
    }
}

impl Node for Stage {
    fn submit(&mut self, now: Time, from: Port, request: Request, cx: &mut NodeContext<'_>) {
        let out = &mut *cx.out;
        if request.operation == Operation::Answer {
            if let Some(others) = &mut self.cooperation {
                others.answered(now, from, request.extent);
            }
            return out.complete_to(
                from,
                Completion::at_once(request.id, now, RequestStatus::Done),
            );
        }
        let of_platters = matches!(request.operation, Operation::Standby | Operation::Start);
        let status = match self.regions.below(from, request.extent) {
            _ if of_platters => Some(RequestStatus::Done),
            Some(_) => None,
            None => Some(RequestStatus::OutOfRange),
        };
        if let Some(status) = status {
            return out.complete_to(from, Completion::at_once(request.id, now, status));
        }
        if request.operation == Operation::Write {
            self.turns.wrote(from, request.extent.sectors);
        }
        let slot = self.slots.keep(HostRequest {
            host: from,
            request,
            submitted: now,
            taken: now,
        });
        if let Some(others) = &mut self.cooperation {
            others.note_arrival(slot, &request);
        }
        self.fairness
            .add(from.index(), slot, request.extent.sectors);
        self.advance(now, out);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        // The end comes first, because it frees the place below that the next request takes.
        self.end(now, completion.id.0 as u32, completion, cx.out);
        self.advance(now, cx.out);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.go_on(now, cx.out);
        self.advance(now, cx.out);
    }

    fn next_wake(&self) -> Wake {
        let worked = self.working.map_or(Time::NEVER, |(ready, _)| ready);
        let answered = self
            .cooperation
            .as_ref()
            .map_or(Time::NEVER, Cooperation::next_due);
        worked.min(answered).into()
    }

    /// A PULL of any data goes to one host at a time, in turn. All hosts hear that a drive cleans.
    fn noticed(&mut self, _: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        match notice.signal {
            Signal::Pull {
                extent: None,
                sectors,
            } => {
                let host = self.turns.next(self.regions.hosts(), sectors);
                cx.out.notice(host, notice);
            }
            Signal::CleaningBegan | Signal::CleaningEnded => {
                let hosts = self.regions.hosts() as u16;
                (0..hosts).for_each(|host| cx.out.notice(Port(host), notice));
            }
            _ => self.pass_on(from, notice, cx.out),
        }
    }

    fn owners(&self, _: Port, extent: Extent, owner: &mut dyn FnMut(Port, Extent)) {
        self.regions.owners(extent, owner);
    }

    fn gauge(&self) -> Gauge {
        let held = self.slots.len() as u32;
        Gauge {
            queue_length: held,
            idle_since: (held == 0).then_some(self.idle_since),
            ..Gauge::default()
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        counters
            .layers
            .push(self.statistics.readings(now, &self.cost.readings(now)));
        counters
            .layers
            .extend(self.cooperation.as_ref().map(Cooperation::readings));
    }
}
