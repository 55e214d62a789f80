//! Cost of planning and bookkeeping: an eight-member RAID-5, 66 % reads of 4 KiB at random, 32
//! requests in flight, members with immediate completions.
//!
//! `cargo run --release -p fullstroke-volume --example volume_speed`

// The example measures the real time of the host, which the layers must not use.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use fullstroke_contract::registry::{Keys, find};
use fullstroke_contract::{
    Breakdown, Completion, Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request,
    RequestId, RequestStatus,
};
use fullstroke_units::{Duration, Random, Sectors, Seed, Time};
use fullstroke_volume::{REGISTRY, Volume};
use std::collections::VecDeque;
use std::time::Instant;

const REQUESTS: u64 = 2_000_000;
const IN_FLIGHT: u64 = 32;

fn main() {
    for (name, sectors) in [
        ("raid0", 8),
        ("raid10", 8),
        ("raid5", 8),
        ("raid6", 8),
        ("raid5", 512),
    ] {
        let entry = find("layout", REGISTRY, "layout", name).expect("a known layout");
        let layout =
            (entry.build)(&Keys::new(), &[Sectors(17_783_240); 8]).expect("a possible layout");
        let begin = Instant::now();
        let member_ios = run(Volume::new(layout), sectors);
        let nanoseconds = begin.elapsed().as_nanos() as f64 / REQUESTS as f64;
        println!(
            "{name}: {sectors} sectors, {:.2} member I/Os and {nanoseconds:.0} ns a request",
            member_ios as f64 / REQUESTS as f64
        );
    }
}

/// Returns the number of member I/Os.
fn run(mut volume: Volume, sectors: u64) -> u64 {
    let mut random = Seed(1).stream("addresses");
    let mut pending: VecDeque<(usize, Completion)> = VecDeque::new();
    let mut out = Effects::new();
    let (mut submitted, mut completed, mut member_ios) = (0, 0, 0);
    while completed < REQUESTS {
        let now = Time::from_nanos(completed);
        if submitted < REQUESTS && submitted - completed < IN_FLIGHT {
            let request = draw(&mut random, submitted, sectors, volume.layout().capacity());
            volume.submit(now, Port::FIRST, request, &mut NodeContext::alone(&mut out));
            submitted += 1;
        } else if let Some((member, completion)) = pending.pop_front() {
            volume.completed(
                now,
                Port::of(member),
                completion,
                &mut NodeContext::alone(&mut out),
            );
        }
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => {
                    member_ios += 1;
                    pending.push_back((port.index(), answer(now, &request)));
                }
                Effect::Complete { completion: _, .. } => completed += 1,
                Effect::Notice { .. } => {}
            }
        }
    }
    member_ios
}

fn draw(random: &mut Random, number: u64, sectors: u64, capacity: Sectors) -> Request {
    let operation = if random.chance(0.66) {
        Operation::Read
    } else {
        Operation::Write
    };
    let extent = Extent::new(random.below((capacity.0 - sectors) / 8) * 8, sectors);
    Request {
        id: RequestId(number),
        origin: number,
        operation,
        extent,
        ..Request::default()
    }
}

fn answer(now: Time, request: &Request) -> Completion {
    let transfer = Duration::from_nanos(1);
    let breakdown = Breakdown {
        transfer,
        ..Breakdown::default()
    };
    Completion {
        id: request.id,
        submitted: now,
        finished: now + transfer,
        status: RequestStatus::Done,
        breakdown,
    }
}
