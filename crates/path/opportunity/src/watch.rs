//! The node that watches.

use crate::{Opportunity, Own, Seen};
use fullstroke_contract::{
    Completion, Counters, Cx, Gauge, Hints, LayerReadings, Node, Notice, Order, Port, Refusal,
    Request, RequestId, Signal, Slots, Wake,
};
use fullstroke_units::{Duration, Sectors, Time};
use std::collections::VecDeque;

/// What an opportunity may have with the array at a time. One that asks for more waits until
/// something of its own is done: otherwise requests would gather below without end, and the
/// arms would serve nobody else. A scrub has one a member.
const OWN_MAX: u32 = 1024;

/// Everything on its way to an array and back passes it, unchanged; and at once, unless an
/// opportunity holds it. What opportunities do for themselves begins and ends here.
///
/// - **Events in**: `submit`, `completed`, `wake`.
/// - **Effects out**: `issue` to the one member, `complete`, notice to the one
///   upper.
pub struct Watch {
    opportunities: Vec<Box<dyn Opportunity>>,
    /// What each opportunity has with the array.
    own: Vec<Outstanding>,
    /// The workloads have ended: opportunities ask for nothing more, so that a run does.
    rests: bool,
    /// Requests from above that were not answered.
    inside: u32,
    idle_since: Time,
    slots: Slots<Flight>,
    /// Those that an opportunity lets wait, in the order in which they came.
    held: VecDeque<u32>,
    /// The member, as it was last seen.
    member: Gauge,
    /// Drives below whose platters stand.
    standing: u32,
    /// When a request came last, and the longest time behind it in which none did, if it ended
    /// with nothing inside.
    came: Time,
    quiet: Duration,
    said: Said,
}

/// What is here or with the array.
#[derive(Clone, Copy, Debug)]
enum Flight {
    /// A request from above, since when, and which opportunities let it wait, bit by bit.
    Above {
        request: Request,
        since: Time,
        held_by: u64,
    },
    /// What an opportunity does for itself.
    Own { opportunity: usize, own: Own },
}

/// What an opportunity does for itself.
#[derive(Clone, Copy, Debug, Default)]
struct Outstanding {
    requests: u32,
    /// It was not asked for all that it wants: it is once more when something is done.
    wants_more: bool,
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
    ///
    /// # Panics
    /// If there are more than 64.
    pub fn new(opportunities: Vec<Box<dyn Opportunity>>) -> Watch {
        assert!(
            opportunities.len() <= 64,
            "found {} opportunities; expected 64 at most",
            opportunities.len()
        );
        Watch {
            own: vec![Outstanding::default(); opportunities.len()],
            rests: false,
            opportunities,
            inside: 0,
            idle_since: Time::ZERO,
            slots: Slots::default(),
            held: VecDeque::new(),
            member: Gauge::default(),
            standing: 0,
            came: Time::ZERO,
            quiet: Duration::ZERO,
            said: Said::default(),
        }
    }

    fn seen(&self, now: Time) -> Seen {
        Seen {
            now,
            inside: self.inside,
            arm: self.member,
            standing: self.standing,
        }
    }

    /// The longest quiet time, with the one that goes on.
    fn quiet_until(&self, now: Time) -> Duration {
        if self.inside == 0 {
            self.quiet.max(now.since(self.came))
        } else {
            self.quiet
        }
    }

    /// Each looks whose time has come, and does what it can; who waited for that goes down.
    fn look(&mut self, now: Time, cx: &mut Cx<'_>) {
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
                let slot = self.slots.keep(Flight::Own {
                    opportunity: index,
                    own,
                });
                cx.out.issue(0, request_of(slot, &own));
            }
        }
        self.release(now, cx);
    }

    /// Those that waited go down in the order in which they came.
    fn release(&mut self, now: Time, cx: &mut Cx<'_>) {
        if self
            .opportunities
            .iter()
            .any(|opportunity| opportunity.holding())
        {
            return;
        }
        for slot in self.held.drain(..) {
            let Flight::Above {
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
            // Many are held at a time: their sum may exceed what can be counted.
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
        cx: &mut Cx<'_>,
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

/// What an opportunity does for itself, as a request.
fn request_of(slot: u32, own: &Own) -> Request {
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

impl Said {
    fn count(&mut self, signal: Signal) {
        match signal {
            Signal::Pull { sectors, .. } => {
                self.pulls += 1;
                // All of an array may be asked for, again and again.
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

impl Node for Watch {
    fn submit(&mut self, now: Time, _: Port, request: Request, cx: &mut Cx<'_>) {
        self.look(now, cx);
        self.quiet = self.quiet_until(now);
        self.came = now;
        self.inside += 1;
        self.member = cx.below.gauge(0);
        let seen = self.seen(now);
        let mut held_by = 0;
        for (index, opportunity) in self.opportunities.iter_mut().enumerate() {
            held_by |= u64::from(opportunity.arrived(seen, &request)) << index;
        }
        let slot = self.slots.keep(Flight::Above {
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
        self.look(now, cx);
    }

    fn completed(&mut self, now: Time, _: Port, completion: Completion, cx: &mut Cx<'_>) {
        self.member = cx.below.gauge(0);
        match self.slots.take(completion.id.0 as u32) {
            Flight::Above { request, since, .. } => {
                self.answer(now, completion, &request, since, cx)
            }
            Flight::Own { opportunity, own } => {
                self.own[opportunity].requests -= 1;
                let seen = self.seen(now);
                self.opportunities[opportunity].served(seen, &own, completion.status);
            }
        }
        self.look(now, cx);
    }

    fn wake(&mut self, now: Time, cx: &mut Cx<'_>) {
        self.look(now, cx);
    }

    fn noticed(&mut self, _: Time, from: Port, notice: Notice, cx: &mut Cx<'_>) {
        match notice.signal {
            Signal::SpunDown => self.standing += 1,
            Signal::SpunUp => self.standing = self.standing.saturating_sub(1),
            _ => {}
        }
        self.pass_on(from, notice, cx.out);
    }

    /// Nobody asks for anything any more.
    fn ordered(&mut self, _: Time, order: Order, _: &mut Cx<'_>) -> Result<(), Refusal> {
        match order {
            Order::Rest => {
                self.rests = true;
                Ok(())
            }
            _ => Err(Refusal("this layer does not manage members".into())),
        }
    }

    /// What storage looks out for goes on for ever; who is held by it does not.
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
