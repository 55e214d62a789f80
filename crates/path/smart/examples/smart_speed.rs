//! Measures the machine time of one command, and the results of the disciplines on the base model
//! of Chang & Du: eight Ultrastar XP, 768 updates of 4 KiB in flight.
//!
//! `cargo run --release -p fullstroke-smart --example smart_speed [SEGMENTS]`

// The example measures the time of the machine, which the layers must not know.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Counters, Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_drive::DriveModel;
use fullstroke_smart::{SmartArray, discipline};
use fullstroke_units::{Random, Seed, Time};
use serde_json::json;
use std::time::Instant;

const DISKS: usize = 8;
const OUTSTANDING: u64 = 768;
const REQUESTS: u64 = 500_000;
/// Approximate number of data sectors of the array.
const CAPACITY: u64 = 8_813_000 * 7;

fn main() {
    let segments: u32 = std::env::args()
        .nth(1)
        .and_then(|argument| argument.parse().ok())
        .unwrap_or(8);
    let text = include_str!("../../../../drives/ibm-ultrastar-xp-4.51gb.toml");
    let model =
        DriveModel::new(toml::from_str(text).expect("a drive file")).expect("a possible drive");
    for entry in discipline::REGISTRY {
        let keys = json!({ "discipline": entry.name, "segments": segments });
        let keys: Keys = serde_json::from_value(keys).expect("keys");
        let loops = &fullstroke_link::REGISTRY[0];
        let link = (
            loops.name,
            (loops.build)(&Keys::new(), DISKS).expect("a link"),
        );
        let array = SmartArray::new(&keys, &vec![model.clone(); DISKS], link).expect("an array");
        let begin = Instant::now();
        let (array, end) = run(array);
        let each = begin.elapsed().as_nanos() as f64 / (2 * REQUESTS) as f64;
        println!(
            "{}: {:.2} M commands a second, {each:.0} ns each",
            entry.name,
            1e3 / each
        );
        let mut counters = Counters::default();
        array.count(end, &mut counters);
        for reading in counters.layers.into_iter().flat_map(|layer| layer.readings) {
            println!("    {:<28} {:>14.3}", reading.name, reading.value);
        }
    }
}

fn run(mut array: SmartArray) -> (SmartArray, Time) {
    let mut random = Seed(1).stream("addresses");
    let mut out = Effects::new();
    for id in 0..OUTSTANDING {
        array.submit(
            Time::ZERO,
            Port::FIRST,
            draw(&mut random, id),
            &mut NodeContext::alone(&mut out),
        );
    }
    let (mut completed, mut end) = (0, Time::ZERO);
    while completed < REQUESTS {
        array.wake(array.next_wake().at(), &mut NodeContext::alone(&mut out));
        let finished: Vec<Effect> = out.drain().collect();
        for effect in finished {
            let Effect::Complete { completion, .. } = effect else {
                continue;
            };
            completed += 1;
            end = completion.finished;
            let next = draw(&mut random, completion.id.0);
            array.submit(
                completion.finished,
                Port::FIRST,
                next,
                &mut NodeContext::alone(&mut out),
            );
        }
    }
    (array, end)
}

fn draw(random: &mut Random, id: u64) -> Request {
    let extent = Extent::new(random.below(CAPACITY / 8) * 8, 8);
    Request {
        id: RequestId(id),
        operation: Operation::Write,
        extent,
        ..Request::default()
    }
}
