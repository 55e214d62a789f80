//! Cost of mapping an address in layouts for a constant transfer rate, and in RAID 0 for
//! comparison: random addresses, one core.
//!
//! `cargo run --release -p fullstroke-volume --example map_speed`

// The example measures the real time of the host, which the layers must not use.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use fullstroke_contract::registry::find;
use fullstroke_units::{Lbn, Random, Sectors, Seed};
use fullstroke_volume::{Layout, REGISTRY};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::Instant;

const ADDRESSES: usize = 1 << 16;
const ROUNDS: u32 = 1000;
const MEMBER: u64 = 46_875_000_000;

fn main() {
    let zone = |index: u64| json!({ "sectors": MEMBER / 30, "bytes_per_s": (290 - 5 * index) * 1_000_000 });
    let zones: Vec<Value> = (0..30).map(zone).collect();
    let parts = json!([
        { "size": "2TB", "floor_mb_per_s": 450 },
        { "size": "100GB", "floor_mb_per_s": 480 },
        { "size": "20TB", "floor_mb_per_s": 420 },
    ]);
    for (name, members, keys) in [
        ("raid0", 2, json!({})),
        ("lzvs", 2, json!({ "zones": 30, "ratio": "290/145" })),
        ("lzvs", 8, json!({ "zones": 30, "ratio": "290/145" })),
        ("lzvs", 2, json!({ "zones": 2000, "ratio": "290/145" })),
        (
            "lzvs-geo",
            2,
            json!({ "member_zones": vec![zones.clone(); 2] }),
        ),
        (
            "lzvs-geo",
            8,
            json!({ "member_zones": vec![zones.clone(); 8] }),
        ),
        (
            "lzvs-geo",
            2,
            json!({ "member_zones": vec![zones.clone(); 2], "zones": parts }),
        ),
        ("lzvs-naive", 2, json!({})),
        ("lzvs-naive", 8, json!({})),
    ] {
        let entry = find("layout", REGISTRY, "layout", name).expect("a known layout");
        let keys = keys.as_object().cloned().unwrap_or_default();
        let begin = Instant::now();
        let layout =
            (entry.build)(&keys, &vec![Sectors(MEMBER); members]).expect("a possible layout");
        let built_ms = begin.elapsed().as_secs_f64() * 1e3;
        println!(
            "{name} of {members}: {:.0} M maps/s, built in {built_ms:.1} ms",
            rate(&*layout) / 1e6
        );
    }
}

/// Returns the number of maps per second in the fastest round.
fn rate(layout: &dyn Layout) -> f64 {
    let mut random: Random = Seed(1).stream("addresses");
    let addresses: Vec<Lbn> = (0..ADDRESSES)
        .map(|_| Lbn(random.below(layout.capacity().0)))
        .collect();
    let round = |_| {
        let begin = Instant::now();
        for &address in &addresses {
            black_box(layout.locate(address));
        }
        begin.elapsed().as_secs_f64()
    };
    ADDRESSES as f64 / (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}
