//! Measures the machine time of one request on drives with few and with many segments, in
//! nanoseconds: `cargo run --release -p fullstroke-drive --example buffer_speed`.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "it measures the machine's time"
)]

use fullstroke_contract::{
    Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_drive::{DriveConfig, DriveModel};
use fullstroke_units::Time;
use std::time::Instant;

const FILE: &str = include_str!("../../../../drives/seagate-exos-x24-24tb.toml");
const REQUESTS: u64 = 300_000;

fn model(segments: u32, change: &[(&str, toml::Value)]) -> DriveModel {
    let mut table: toml::Table = toml::from_str(FILE).expect("the library's drives are sound");
    let buffer = table
        .get_mut("buffer")
        .and_then(toml::Value::as_table_mut)
        .expect("it has a buffer");
    buffer.insert("segments".into(), i64::from(segments).into());
    buffer.insert("write_segments".into(), i64::from(segments / 2).into());
    for (key, value) in change {
        buffer.insert((*key).into(), value.clone());
    }
    let config: DriveConfig = table.try_into().expect("the library's drives are sound");
    DriveModel::new(config).expect("the library's drives are sound")
}

/// Returns nanoseconds per request. Requests come one after the other, with addresses from `next`.
fn measure(model: &DriveModel, operation: Operation, mut next: impl FnMut() -> u64) -> f64 {
    let mut drive = model.drive().expect("the library's drives are sound");
    let (mut out, mut now, mut began) = (Effects::new(), Time::ZERO, Instant::now());
    for id in 0..REQUESTS {
        if id == REQUESTS / 3 {
            began = Instant::now();
        }
        let extent = Extent::new(next(), 8);
        let request = Request {
            id: RequestId(id),
            operation,
            extent,
            ..Request::default()
        };
        drive.submit(now, Port::FIRST, request, &mut NodeContext::alone(&mut out));
        while out.drain().count() == 0 {
            now = drive.next_wake().at();
            drive.wake(now, &mut NodeContext::alone(&mut out));
        }
    }
    began.elapsed().as_nanos() as f64 / (REQUESTS - REQUESTS / 3) as f64
}

fn random() -> impl FnMut() -> u64 {
    let mut state = 1u64;
    move || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) * 40_000 % 46_875_000_000 / 8 * 8
    }
}

fn sequential() -> impl FnMut() -> u64 {
    let mut at = 0;
    move || {
        at += 8;
        at
    }
}

fn main() {
    println!(
        "{:>8} {:>14} {:>18} {:>15}",
        "segments", "random reads", "sequential reads", "random writes"
    );
    let through = [("write_back", toml::Value::from(false))];
    for segments in [8, 64, 512, 1024, 16_384] {
        let reads = measure(&model(segments, &[]), Operation::Read, random());
        let stream = measure(&model(segments, &[]), Operation::Read, sequential());
        let writes = measure(&model(segments, &through), Operation::Write, random());
        println!("{segments:>8} {reads:>14.0} {stream:>18.0} {writes:>15.0}");
    }
}
