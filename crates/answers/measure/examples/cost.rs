//! Cost of measuring a run: `cargo run --release -p fullstroke-measure --example cost`.

use fullstroke_contract::{Breakdown, Completion, Extent, Operation};
use fullstroke_engine::{Finished, Observer as _};
use fullstroke_measure::Measurement;
use fullstroke_units::{Duration, Seed, Time};
use std::time::Instant;

const REQUESTS: u64 = 10_000_000;

fn main() {
    let mut random = Seed(1).stream("cost");
    let mean = Duration::from_millis(5);
    let times: Vec<Duration> = (0..1 << 16).map(|_| random.exponential(mean)).collect();
    let mut measurement = Measurement::default();
    let began = Instant::now();
    for origin in 0..REQUESTS {
        let queue = times[origin as usize & 0xffff];
        let seek = times[(origin as usize + 1) & 0xffff];
        let arrived = Time::from_nanos(origin * 1_000_000);
        let breakdown = Breakdown {
            queue,
            seek,
            ..Breakdown::default()
        };
        let operation = if seek > mean {
            Operation::Write
        } else {
            Operation::Read
        };
        let completion = Completion {
            submitted: arrived,
            finished: arrived + queue + seek,
            breakdown,
            ..Completion::default()
        };
        let extent = Extent::new(0, 8);
        measurement.finished(&Finished {
            origin,
            operation,
            extent,
            process: 0,
            workload: 0,
            arrived,
            completion,
        });
    }
    let elapsed = began.elapsed();
    println!(
        "{:.1} ns a request ({REQUESTS} requests)",
        elapsed.as_nanos() as f64 / REQUESTS as f64
    );
    std::hint::black_box(measurement);
}
