//! A link above members with answers on command.

#![allow(
    clippy::too_many_lines,
    reason = "a test tells one story from its beginning to its end"
)]

use super::*;
use crate::REGISTRY;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{Breakdown, Effect, Notice, Signal};
use fullstroke_units::{Bytes, Duration};
use proptest::prelude::*;
use std::collections::VecDeque;

const MEMBERS: usize = 4;

/// Longer than any wait for the link.
const SERVICE: Duration = Duration::from_millis(400);

/// Records the time of a call; calls come in order of time.
fn pass(now: &mut Time, at: Time) {
    assert!(*now <= at, "called at {at:?} after {now:?}");
    *now = at;
}

/// A link that requires calls in order of time.
struct Strict(Box<dyn Link>, Time);

impl Link for Strict {
    fn offer(&mut self, now: Time, transfer: LinkTransfer) {
        pass(&mut self.1, now);
        self.0.offer(now, transfer);
    }
    fn next_wake(&self) -> Time {
        self.0.next_wake()
    }
    fn advance(&mut self, now: Time, delivered: &mut Vec<DeliveredTransfer>) {
        pass(&mut self.1, now);
        self.0.advance(now, delivered);
    }
    fn statistics(&self) -> crate::LinkStatistics {
        self.0.statistics()
    }
}

fn linked(kind: usize) -> LinkNode {
    let entry = &REGISTRY[kind];
    let link = Strict((entry.build)(&Keys::new(), MEMBERS).unwrap(), Time::ZERO);
    LinkNode::new(Box::new(link), entry.name)
}

/// Gap, address, sectors, operation.
type Ask = (u64, u64, u64, usize);

fn request(id: usize, &(_, start, sectors, operation): &Ask) -> Request {
    let operation = Operation::ALL[operation];
    let sectors = if operation == Operation::Flush {
        0
    } else {
        sectors
    };
    Request {
        id: RequestId(id as u64),
        operation,
        extent: Extent::new(start, sectors),
        ..Request::default()
    }
}

/// A request at a member. The answer's instant does not depend on the arrival.
struct MemberRequest {
    due: Time,
    port: Port,
    submitted: Time,
    request: Request,
}

/// Runs all requests. Each wake-up comes `late` ns after the due time.
fn run(kind: usize, asks: &[Ask], late: u64) -> Vec<Completion> {
    let late = Duration::from_nanos(late);
    let mut layer = linked(kind);
    let mut out = Effects::new();
    let mut arrivals = VecDeque::new();
    let mut now = Time::ZERO;
    for (id, ask) in asks.iter().enumerate() {
        now += Duration::from_nanos(ask.0);
        arrivals.push_back((now, request(id, ask)));
    }
    let arrived: Vec<Time> = arrivals.iter().map(|&(at, _)| at).collect();
    let (mut served, mut done): (Vec<MemberRequest>, Vec<Completion>) = Default::default();
    loop {
        let asked = arrivals.front().map_or(Time::NEVER, |&(at, _)| at);
        let answered = served
            .iter()
            .map(|one| one.due)
            .min()
            .unwrap_or(Time::NEVER);
        let due = layer.next_wake().at();
        let woken = if due == Time::NEVER {
            Time::NEVER
        } else {
            due + late
        };
        let now = asked.min(answered).min(woken);
        if now == Time::NEVER {
            return done;
        }
        if asked == now {
            let (_, request) = arrivals.pop_front().unwrap();
            let port = Port::of(request.extent.start.0 as usize % MEMBERS);
            layer.submit(now, port, request, &mut NodeContext::alone(&mut out));
        } else if answered == now {
            let index = served.iter().position(|one| one.due == now).unwrap();
            let MemberRequest {
                port,
                submitted,
                request,
                ..
            } = served.remove(index);
            let breakdown = Breakdown {
                seek: now.since(submitted),
                ..Breakdown::default()
            };
            let answer = Completion {
                id: request.id,
                submitted,
                finished: now,
                breakdown,
                ..Completion::default()
            };
            layer.completed(now, port, answer, &mut NodeContext::alone(&mut out));
        } else {
            layer.wake(now, &mut NodeContext::alone(&mut out));
        }
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => {
                    assert_eq!(port.index(), request.extent.start.0 as usize % MEMBERS);
                    let due = arrived[request.extent.start.0 as usize / MEMBERS] + SERVICE;
                    assert!(due > now);
                    served.push(MemberRequest {
                        due,
                        port,
                        submitted: now,
                        request,
                    });
                }
                Effect::Complete { port, completion } => {
                    assert_eq!(
                        port.index(),
                        asks[completion.id.0 as usize].1 as usize % MEMBERS
                    );
                    done.push(completion);
                }
                Effect::Notice { notice, .. } => panic!("nobody gave {notice:?}"),
            }
        }
    }
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let one = (
        1u64..300_000,
        0..MEMBERS as u64,
        1u64..64,
        0..Operation::ALL.len(),
    );
    prop::collection::vec(one, 1..80).prop_map(|mut asks| {
        // An address names the request and the member.
        let number = |(index, ask): (usize, &mut Ask)| ask.1 += (index * MEMBERS) as u64;
        asks.iter_mut().enumerate().for_each(number);
        asks
    })
}

proptest! {
    #[test]
    fn every_io_completes_once_and_its_parts_add_up(kind in 0..REGISTRY.len(), asks in asks()) {
        let done = run(kind, &asks, 0);
        let mut ids: Vec<u64> = done.iter().map(|completion| completion.id.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..asks.len() as u64).collect::<Vec<_>>());
        for completion in done {
            prop_assert_eq!(completion.finished.since(completion.submitted), completion.breakdown.response());
            prop_assert!(completion.breakdown.overhead > Duration::ZERO);
        }
    }

    #[test]
    fn late_wake_ups_do_not_move_the_timeline(
        kind in 0..REGISTRY.len(), asks in asks(), late in 0u64..5_000_000,
    ) {
        let timeline = |late| {
            let done = run(kind, &asks, late).into_iter();
            done.map(|completion| (completion.id, completion.submitted, completion.finished)).collect::<Vec<_>>()
        };
        prop_assert_eq!(timeline(0), timeline(late));
    }
}

#[test]
fn what_passes_over_the_link_is_counted_by_direction() {
    let mut layer = linked(0);
    let mut out = Effects::new();
    for (id, operation) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
        let request = request(id, &(0, 0, 8, operation));
        layer.submit(
            Time::ZERO,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut out),
        );
    }
    let mut at = Time::ZERO;
    while layer.next_wake().is_work() {
        at = layer.next_wake().at();
        layer.wake(at, &mut NodeContext::alone(&mut out));
        let issued: Vec<Effect> = out.drain().collect();
        for effect in issued {
            if let Effect::Issue { port, request } = effect {
                let answer = Completion {
                    id: request.id,
                    submitted: at,
                    finished: at,
                    ..Completion::default()
                };
                layer.completed(at, port, answer, &mut NodeContext::alone(&mut out));
            }
        }
    }
    let counted = layer.link.statistics();
    // Four commands and the data of a write; a readiness, the data of a read, four statuses, of
    // which one shares the data's circuit.
    assert_eq!(
        (counted.to_members.transfers, counted.to_members.payload),
        (5, Bytes(4096))
    );
    assert_eq!(
        (counted.to_host.transfers, counted.to_host.payload),
        (6, Bytes(4096))
    );
    assert_eq!(counted.tenancies, 10);
    let mut counters = Counters::default();
    layer.count(at, &mut counters);
    let readings = counters.layers;
    assert_eq!(readings[0].layer, "link fc-al");
    let reading = |name| {
        readings[0]
            .readings
            .iter()
            .find(|reading| reading.name == name)
            .unwrap()
            .value
    };
    assert_eq!(reading("link_payload_mb"), 0.008_192);
    assert!(reading("link_utilisation") > 0.5 && reading("link_utilisation") <= 1.0);
}

#[test]
fn notice_passes_to_the_port_above_the_one_below_in_the_same_addresses() {
    let mut layer = linked(0);
    let mut out = Effects::new();
    let push = Notice::new(Signal::Push(Extent::new(1000, 8)));
    layer.noticed(Time::ZERO, Port(2), push, &mut NodeContext::alone(&mut out));
    let effects: Vec<Effect> = out.drain().collect();
    assert_eq!(
        effects,
        [Effect::Notice {
            port: Port(2),
            notice: push
        }]
    );
}

#[test]
fn a_read_takes_the_sum_of_its_steps() {
    let done = run(2, &[(0, 0, 8, 0)], 0)[0];
    // The member answers at 400 ms. A word takes 40/3 ns: 11 words and three times 100 ns to open;
    // 1024 and four times 9; 6 and 9.
    let (opening, data, status) = (
        147 + 300,
        (1060 * 40_u64).div_ceil(3),
        (15 * 40_u64).div_ceil(3),
    );
    let after = Duration::from_nanos(opening + data + status);
    assert_eq!(done.finished, Time::ZERO + SERVICE + after);
    assert_eq!(done.submitted, Time::ZERO);
    // Seven words of a command, with a frame around them.
    let before = Duration::from_nanos(opening + (16 * 40_u64).div_ceil(3));
    assert_eq!(done.breakdown.overhead, before + after);
}
