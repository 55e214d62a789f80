//! The node that watches.

use crate::{Opportunity, Seen};
use fullstroke_contract::{
    Completion, Counters, Cx, Gauge, LayerReadings, Node, Port, Request, RequestId, Signal, Wake,
};
use fullstroke_units::{Duration, Sectors, Time};
use std::collections::{BTreeMap, VecDeque};

/// Everything on its way to an array and back passes it, unchanged; and at once, unless an
/// opportunity holds it.
///
/// - **Events in**: `submit`, `completed`, `wake`.
/// - **Effects out**: `issue` to the one member, `complete`, notice to the one
///   upper.
pub struct Watch {
    opportunities: Vec<Box<dyn Opportunity>>,
    inside: u32,
    idle_since: Time,
    /// Requests that an opportunity lets wait, and since when.
    held: VecDeque<(Request, Time)>,
    /// Those that have waited and are with the array now.
    late: BTreeMap<RequestId, Time>,
    /// The member, as it was last seen.
    member: Gauge,
    said: Said,
}

/// What was said since the beginning.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    pulls: u64,
    pulled: Sectors,
    pushes: u64,
    pushed: Sectors,
    /// How long requests were held, together.
    held: Duration,
}

impl Watch {
    /// For these opportunities, in the order in which they look.
    pub fn new(opportunities: Vec<Box<dyn Opportunity>>) -> Watch {
        let (member, said) = (Gauge::default(), Said::default());
        let (held, late) = (VecDeque::new(), BTreeMap::new());
        Watch { opportunities, inside: 0, idle_since: Time::ZERO, held, late, member, said }
    }

    fn seen(&self, now: Time) -> Seen {
        Seen { now, inside: self.inside }
    }

    fn look(&mut self, now: Time, cx: &mut Cx<'_>) {
        let seen = self.seen(now);
        for opportunity in &mut self.opportunities {
            if opportunity.next_look() <= now {
                opportunity.look(seen, &mut |signal| {
                    self.said.count(signal);
                    cx.out.signal(signal);
                });
            }
        }
        self.release(now, cx);
    }

    /// Those that waited go down in the order in which they came.
    fn release(&mut self, now: Time, cx: &mut Cx<'_>) {
        if self.held.is_empty() || self.opportunities.iter().any(|opportunity| opportunity.holding()) {
            return;
        }
        for (request, since) in self.held.drain(..) {
            self.late.insert(request.id, since);
            self.said.held += now.since(since);
            cx.out.issue(0, request);
        }
    }
}

impl Said {
    fn count(&mut self, signal: Signal) {
        match signal {
            Signal::Pull { sectors, .. } => {
                self.pulls += 1;
                self.pulled += sectors;
            }
            Signal::Push(extent) => {
                self.pushes += 1;
                self.pushed += extent.sectors;
            }
            _ => {}
        }
    }
}

impl Node for Watch {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut Cx<'_>) {
        self.look(now, cx);
        self.inside += 1;
        self.member = cx.below.gauge(0);
        let seen = self.seen(now);
        let mut waits = false;
        for opportunity in &mut self.opportunities {
            waits |= opportunity.arrived(seen, &request);
        }
        match waits {
            true => self.held.push_back((request, now)),
            false => cx.out.issue(0, request),
        }
        self.look(now, cx);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut Cx<'_>) {
        self.inside -= 1;
        self.member = cx.below.gauge(0);
        if self.inside == 0 {
            self.idle_since = now;
        }
        let seen = self.seen(now);
        for opportunity in &mut self.opportunities {
            opportunity.left(seen);
        }
        let completion = match self.late.remove(&completion.id) {
            Some(since) => completion.held_since(since, completion.id),
            None => completion,
        };
        cx.out.complete(completion);
        self.look(now, cx);
    }

    fn wake(&mut self, now: Time, cx: &mut Cx<'_>) {
        self.look(now, cx);
    }

    /// What storage looks out for goes on for ever; who is held by it does not.
    fn next_wake(&self) -> Wake {
        let looks = self.opportunities.iter().map(|opportunity| opportunity.next_look());
        let look = looks.min().unwrap_or(Time::NEVER);
        if self.held.is_empty() { Wake::Chore(look) } else { Wake::Work(look) }
    }

    fn gauge(&self) -> Gauge {
        let idle_since = (self.inside == 0).then_some(self.idle_since);
        Gauge { queue_length: self.inside, idle_since, ..self.member }
    }

    fn count(&self, _: Time, counters: &mut Counters) {
        let megabytes = |sectors: Sectors| sectors.bytes().0 as f64 / 1e6;
        counters.layers.push(LayerReadings::new(
            "pro-active storage",
            &[
                ("signals_pulls", self.said.pulls as f64),
                ("signals_pulled_mb", megabytes(self.said.pulled)),
                ("signals_pushes", self.said.pushes as f64),
                ("signals_pushed_mb", megabytes(self.said.pushed)),
                ("signals_held_ms", self.said.held.as_millis_f64()),
            ],
        ));
    }
}
