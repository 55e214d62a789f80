//! Prints the response times of random requests of 4 KiB on a drive file by queue depth.
//!
//! `cargo run --release -p fullstroke-calibrate --example by_depth -- drives/samsung-f1-1tb.toml`
//!
//! Further arguments replace keys of the drive file: `queue.margin_ms=1`. `depths=64,1024` replaces
//! the depths and leaves the writes out, for a count of instructions by a profiler.

use fullstroke_contract::{
    Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_drive::{DriveConfig, DriveModel};
use fullstroke_units::{Duration, Time};

/// Number of requests for each depth.
const REQUESTS: u64 = 12_000;
/// Time from an answer to the next request of the host.
const HOST: Duration = Duration::from_micros(20);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a drive file");
    let text = std::fs::read_to_string(&path).expect("a readable file");
    let mut table: toml::Table = toml::from_str(&text).expect("a TOML file");
    let mut depths = vec![1, 2, 4, 8, 16, 32];
    let mut operations = vec![Operation::Read, Operation::Write];
    for setting in arguments {
        let (key, value) = setting.split_once('=').expect("KEY=VALUE");
        if key == "depths" {
            let depth = |text: &str| text.parse().expect("numbers with commas");
            depths = value.split(',').map(depth).collect();
            operations.truncate(1);
            continue;
        }
        set(&mut table, key, value);
    }
    let config: DriveConfig = table.try_into().expect("a drive file");
    let model = DriveModel::new(config).expect("a valid drive");
    for operation in operations {
        for &depth in &depths {
            report(&model, operation, depth);
        }
    }
}

fn set(table: &mut toml::Table, key: &str, value: &str) {
    match key.split_once('.') {
        Some((head, rest)) => {
            let below = table
                .entry(head)
                .or_insert_with(|| toml::Table::new().into());
            set(below.as_table_mut().expect("a table"), rest, value);
        }
        None if value == "-" => _ = table.remove(key),
        None => {
            let parsed: toml::Table = toml::from_str(&format!("x = {value}"))
                .or_else(|_| toml::from_str(&format!("x = \"{value}\"")))
                .expect("a value");
            table.insert(key.to_owned(), parsed["x"].clone());
        }
    }
}

fn report(model: &DriveModel, operation: Operation, depth: u64) {
    let mut times = closed(model, operation, depth);
    let skipped = times.len() / 6;
    let seconds = times[skipped..]
        .last()
        .map_or(0.0, |last| last.0 - times[skipped].0);
    let count = times.len() - skipped;
    let mut ms: Vec<f64> = times.drain(skipped..).map(|(_, ms)| ms).collect();
    ms.sort_by(f64::total_cmp);
    let mean = ms.iter().sum::<f64>() / ms.len() as f64;
    let square = ms.iter().map(|ms| (ms - mean).powi(2)).sum::<f64>() / ms.len() as f64;
    let at = |share: f64| ms[((ms.len() - 1) as f64 * share) as usize];
    println!(
        "{operation:?} {depth:2}: {:7.1} a second, mean {mean:7.2} sd {:6.1} p1 {:5.1} p10 {:5.1} p50 {:6.1} p90 {:6.1} p99 {:7.1} p99.9 {:7.1} most {:7.1}",
        count as f64 / seconds,
        square.sqrt(),
        at(0.01),
        at(0.1),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

/// Returns the end in s and the response time in ms of each request, with `depth` outstanding.
fn closed(model: &DriveModel, operation: Operation, depth: u64) -> Vec<(f64, f64)> {
    let pages = model.config().capacity_sectors.0 / u64::from(model.config().actuators) / 8;
    let mut drive = model.drive().expect("a checked drive");
    let (mut out, mut state, mut submitted) = (Effects::new(), 7u64, 0u64);
    let mut due: Vec<Time> = (0..depth).map(|_| Time::ZERO).collect();
    let mut times = Vec::new();
    while (times.len() as u64) < REQUESTS {
        due.sort();
        let event = drive.next_wake().at();
        if due.first().is_some_and(|&first| first <= event) {
            let now = due.remove(0);
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let page = (u128::from(state) * u128::from(pages)) >> 64;
            let request = Request {
                id: RequestId(submitted),
                operation,
                extent: Extent::new(page as u64 * 8, 8),
                ..Request::default()
            };
            submitted += 1;
            drive.submit(now, Port::FIRST, request, &mut NodeContext::alone(&mut out));
        } else {
            drive.wake(event, &mut NodeContext::alone(&mut out));
        }
        for effect in out.drain() {
            if let Effect::Complete { completion, .. } = effect {
                let took = completion.finished.since(completion.submitted);
                let end = completion.finished.since(Time::ZERO);
                times.push((end.as_millis_f64() / 1e3, took.as_millis_f64()));
                due.push(completion.finished + HOST);
            }
        }
    }
    times
}
