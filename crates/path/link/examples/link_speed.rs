//! Cost of a link alone: eight members that always have 4 KiB for the host, two transfers each.
//! `cargo run --release -p fullstroke-link --example link_speed`

// The example measures the time of the machine, which layers must not read.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use fullstroke_contract::registry::Keys;
use fullstroke_link::{LinkTransfer, Payload, REGISTRY, Station};
use fullstroke_units::{Bytes, Time};
use std::time::Instant;

const TRANSFERS: u64 = 10_000_000;
const MEMBERS: u32 = 8;

fn main() {
    for entry in REGISTRY {
        let mut link =
            (entry.build)(&Keys::new(), MEMBERS as usize).expect("defaults can be built");
        let transfer = |token: u64| LinkTransfer {
            token,
            from: Station(token as u32 % MEMBERS + 1),
            to: Station::HOST,
            payload: Payload::Data(Bytes(4096)),
        };
        let began = Instant::now();
        let mut delivered = Vec::new();
        (0..2 * u64::from(MEMBERS)).for_each(|token| link.offer(Time::ZERO, transfer(token)));
        let mut count = 0;
        while count < TRANSFERS {
            link.advance(link.next_wake(), &mut delivered);
            for one in delivered.drain(..) {
                count += 1;
                link.offer(one.finished, transfer(one.token + 2 * u64::from(MEMBERS)));
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "{:<8} {:>6.1} million transfers a second",
            entry.name,
            count as f64 / seconds / 1e6
        );
    }
}
