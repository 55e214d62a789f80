//! The node with the opportunities of an array.

use crate::{Opportunity, OpportunityView, OwnRequest};
use fullstroke_contract::{
    Completion, Counters, Gauge, Hints, LayerOrder, LayerReadings, Node, NodeContext, Notice, Port,
    Refusal, Request, RequestId, Signal, Slots, Wake,
};
use fullstroke_units::{Duration, Sectors, Time};
use std::collections::VecDeque;

/// Largest number of own requests of one opportunity in flight. An opportunity that wants more
/// waits until an own request is done. Otherwise requests would gather below without end, and the
/// arms would serve no other requests. A scrub has one request per member.
const OWN_MAX: u32 = 1024;

/// Layer above an array. All requests and completions pass unchanged. A request passes at once,
/// unless an opportunity holds the request. Own requests of the opportunities begin and end in this
/// layer.
///
/// - **Events in**: `submit`, `completed`, `wake`.
/// - **Effects out**: `issue` to the one member, `complete`, notice to the one upper layer.
pub struct OpportunityLayer {
    opportunities: Vec<Box<dyn Opportunity>>,
    /// Own requests of each opportunity.
    own: Vec<Outstanding>,
    /// True after the end of the workloads. Opportunities then issue no further requests, so that
    /// the run can end.
    rests: bool,
    /// Number of unanswered requests from above.
    inside: u32,
    idle_since: Time,
    slots: Slots<PendingRequest>,
    /// Requests held by an opportunity, in order of arrival.
    held: VecDeque<u32>,
    /// Last gauge of the member.
    member: Gauge,
    /// Number of drives below with standing platters.
    standing: u32,
    /// Number of drives below that clean bands.
    cleaning: u32,
    /// Time of the last arrival, and the longest time between two arrivals without a request inside
    /// at the end.
    came: Time,
    quiet: Duration,
    said: SignalTotals,
}

/// A request in this layer or in the array.
#[derive(Clone, Copy, Debug)]
enum PendingRequest {
    /// A request from above, with the time of arrival. Bit n of `held_by` is set if opportunity n
    /// holds the request.
    Above {
        request: Request,
        since: Time,
        held_by: u64,
    },
    /// An own request of an opportunity.
    Own { opportunity: usize, own: OwnRequest },
}

/// Own requests of an opportunity.
#[derive(Clone, Copy, Debug, Default)]
struct Outstanding {
    requests: u32,
    /// True if the opportunity may want more requests. The watch asks again when an own request is
    /// done.
    wants_more: bool,
}

/// Totals of the signals since the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct SignalTotals {
    pulls: u64,
    pulled: Sectors,
    pushes: u64,
    pushed: Sectors,
    /// Total time for which requests were held.
    held: Duration,
}

impl OpportunityLayer {
    /// Creates a watch with these opportunities, in the order of their looks.
    ///
    /// # Panics
    /// Panics if there are more than 64 opportunities.
    pub fn new(opportunities: Vec<Box<dyn Opportunity>>) -> OpportunityLayer {
        // `held_by` is a word with one bit for each opportunity.
        assert!(
            opportunities.len() <= 64,
            "found {} opportunities; expected 64 at most",
            opportunities.len()
        );
        OpportunityLayer {
            own: vec![Outstanding::default(); opportunities.len()],
            rests: false,
            opportunities,
            inside: 0,
            idle_since: Time::ZERO,
            slots: Slots::default(),
            held: VecDeque::new(),
            member: Gauge::default(),
            standing: 0,
            cleaning: 0,
            came: Time::ZERO,
            quiet: Duration::ZERO,
            said: SignalTotals::default(),
        }
    }

    fn seen(&self, now: Time) -> OpportunityView {
        OpportunityView {
            now,
            inside: self.inside,
            arm: self.member,
            standing: self.standing,
            cleaning: self.cleaning,
        }
    }

    /// Returns the longest quiet time, including the current one.
    fn quiet_until(&self, now: Time) -> Duration {
        if self.inside == 0 {
            self.quiet.max(now.since(self.came))
        } else {
            self.quiet
        }
    }

    /// Lets each due opportunity look and issue own requests, then releases held requests.
    fn look(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        let seen = self.seen(now);
        for (index, opportunity) in self.opportunities.iter_mut().enumerate() {
            let outstanding = &mut self.own[index];
            let looks = opportunity.next_look() <= now;
            if looks {
                opportunity.look(seen, &mut |signal| {
                    self.said.count(signal);
                    cx.out.signal(signal);
                });
            }
            if self.rests || !(looks || outstanding.wants_more) {
                continue;
            }
            loop {
                // An opportunity at the limit is asked again when an own request is done. Otherwise
                // its wish would be lost until the next look.
                outstanding.wants_more = outstanding.requests >= OWN_MAX;
                if outstanding.wants_more {
                    break;
                }
                let Some(own) = opportunity.next_request(seen) else {
                    break;
                };
                outstanding.requests += 1;
                assert!(
                    own.extent.sectors > Sectors::ZERO || own.operation.is_of_all(),
                    "opportunity {index} does something of no sectors: {own:?}"
                );
                let slot = self.slots.keep(PendingRequest::Own {
                    opportunity: index,
                    own,
                });
                cx.out.issue(0, request_of(slot, &own));
            }
        }
        self.release(now, cx);
    }

    /// Sends held requests down in order of arrival, unless an opportunity is still holding.
    fn release(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        if self
            .opportunities
            .iter()
            .any(|opportunity| opportunity.holding())
        {
            return;
        }
        for slot in self.held.drain(..) {
            let PendingRequest::Above {
                request,
                since,
                held_by,
            } = self.slots[slot]
            else {
                continue;
            };
            assert!(
                held_by != 0 && since <= now,
                "a request of {since:?} waits at {now:?}, and nobody holds it"
            );
            for (index, opportunity) in self.opportunities.iter_mut().enumerate() {
                if held_by >> index & 1 == 1 {
                    opportunity.released(&request);
                }
            }
            // Many requests are held at a time, so the sum of the waits may exceed the range of the
            // counter.
            self.said.held = self.said.held.saturating_add(now.since(since));
            cx.out.issue(
                0,
                Request {
                    id: RequestId(u64::from(slot)),
                    ..request
                },
            );
        }
    }

    fn answer(
        &mut self,
        now: Time,
        completion: Completion,
        request: &Request,
        since: Time,
        cx: &mut NodeContext<'_>,
    ) {
        assert!(
            self.inside > 0,
            "a request of {since:?} ends at {now:?}, and none is inside"
        );
        self.inside -= 1;
        if self.inside == 0 {
            self.idle_since = now;
        }
        let seen = self.seen(now);
        for opportunity in &mut self.opportunities {
            opportunity.left(seen, request, completion.status);
        }
        cx.out.complete(completion.held_since(since, request.id));
    }
}

/// Returns the request for an own request of an opportunity.
fn request_of(slot: u32, own: &OwnRequest) -> Request {
    Request {
        id: RequestId(u64::from(slot)),
        origin: Request::BACKGROUND,
        operation: own.operation,
        extent: own.extent,
        hints: Hints {
            synchronous: false,
            verify: own.verify,
            members: own.members,
            ..Hints::default()
        },
        ..Request::default()
    }
}

impl SignalTotals {
    fn count(&mut self, signal: Signal) {
        match signal {
            Signal::Pull { sectors, .. } => {
                self.pulls += 1;
                // Opportunities may ask for the whole array again and again, so the sum may exceed
                // the range of the counter.
                self.pulled = Sectors(self.pulled.0.saturating_add(sectors.0));
            }
            Signal::Push(extent) => {
                self.pushes += 1;
                self.pushed = Sectors(self.pushed.0.saturating_add(extent.sectors.0));
            }
            _ => {}
        }
    }
}

impl Node for OpportunityLayer {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut NodeContext<'_>) {
        // Looks that were due before the request come first, with the state before the request.
        self.look(now, cx);
        // The quiet time ends with this arrival, so it is read before the arrival counts.
        self.quiet = self.quiet_until(now);
        self.came = now;
        self.inside += 1;
        // The gauge is read before the request goes down, and so leaves the request out.
        self.member = cx.below.gauge(0);
        let seen = self.seen(now);
        let mut held_by = 0;
        for (index, opportunity) in self.opportunities.iter_mut().enumerate() {
            held_by |= u64::from(opportunity.arrived(seen, &request)) << index;
        }
        let slot = self.slots.keep(PendingRequest::Above {
            request,
            since: now,
            held_by,
        });
        match held_by {
            0 => cx.out.issue(
                0,
                Request {
                    id: RequestId(u64::from(slot)),
                    ..request
                },
            ),
            _ => self.held.push_back(slot),
        }
        // The opportunities may want to look because of this request, for example to read before
        // it.
        self.look(now, cx);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut NodeContext<'_>) {
        self.member = cx.below.gauge(0);
        match self.slots.take(completion.id.0 as u32) {
            PendingRequest::Above { request, since, .. } => {
                self.answer(now, completion, &request, since, cx)
            }
            PendingRequest::Own { opportunity, own } => {
                self.own[opportunity].requests -= 1;
                let seen = self.seen(now);
                self.opportunities[opportunity].served(seen, &own, completion.status);
            }
        }
        self.look(now, cx);
    }

    fn wake(&mut self, now: Time, cx: &mut NodeContext<'_>) {
        self.look(now, cx);
    }

    fn noticed(&mut self, _: Time, from: Port, notice: Notice, cx: &mut NodeContext<'_>) {
        match notice.signal {
            Signal::SpunDown => self.standing += 1,
            Signal::SpunUp => self.standing = self.standing.saturating_sub(1),
            Signal::CleaningBegan => self.cleaning += 1,
            Signal::CleaningEnded => self.cleaning = self.cleaning.saturating_sub(1),
            _ => {}
        }
        self.pass_on(from, notice, cx.out);
    }

    /// After `LayerOrder::Rest`, opportunities issue no further requests.
    fn ordered(
        &mut self,
        _: Time,
        order: LayerOrder,
        _: &mut NodeContext<'_>,
    ) -> Result<(), Refusal> {
        match order {
            LayerOrder::Rest => {
                self.rests = true;
                Ok(())
            }
            _ => Err(Refusal("this layer does not manage members".into())),
        }
    }

    /// Looks go on for ever and are chores. If a request is held, the look counts as work, because
    /// the look may release the request.
    fn next_wake(&self) -> Wake {
        let looks = self
            .opportunities
            .iter()
            .map(|opportunity| opportunity.next_look());
        let look = looks.min().unwrap_or(Time::NEVER);
        if self.held.is_empty() {
            Wake::Chore(look)
        } else {
            Wake::Work(look)
        }
    }

    fn gauge(&self) -> Gauge {
        let idle_since = (self.inside == 0).then_some(self.idle_since);
        Gauge {
            queue_length: self.inside,
            idle_since,
            ..self.member
        }
    }

    fn count(&self, now: Time, counters: &mut Counters) {
        let megabytes = |sectors: Sectors| sectors.saturating_bytes().0 as f64 / 1e6;
        let said = [
            ("signals_pulls", self.said.pulls as f64),
            ("signals_pulled_mb", megabytes(self.said.pulled)),
            ("signals_pushes", self.said.pushes as f64),
            ("signals_pushed_mb", megabytes(self.said.pushed)),
            ("signals_held_ms", self.said.held.as_millis_f64()),
        ];
        let waits = self
            .opportunities
            .iter()
            .any(|opportunity| opportunity.waits_for_quiet());
        let quiet = waits.then(|| ("quiet_ms_max", self.quiet_until(now).as_millis_f64()));
        let own = self
            .opportunities
            .iter()
            .flat_map(|opportunity| opportunity.readings());
        let readings: Vec<_> = said.into_iter().chain(quiet).chain(own).collect();
        counters
            .layers
            .push(LayerReadings::new("pro-active storage", &readings));
    }
}

#[cfg(test)]
mod tests;
