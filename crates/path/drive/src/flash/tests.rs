//! A flash device against the numbers of its data sheet.

use super::{FlashConfig, complete_flash};
use crate::config::DriveConfig;
use crate::drive::DriveModel;
use fullstroke_contract::{
    Completion, Counters, Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request,
    RequestId, RequestStatus,
};
use fullstroke_units::{Bytes, Duration, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

fn described(change: fn(&mut FlashConfig)) -> DriveConfig {
    let mut values = json!({
        "title": "a flash device",
        "capacity_sectors": 20_000_000,
        "flash": {
            "read_latency": "80us", "write_latency": "20us", "parallelism": 8,
            "read_mb_per_s": 500.0, "write_mb_per_s": 400.0, "read_iops": 50_000.0,
            "write_cache": "10MB", "behind_mb_per_s": 100.0, "flush_latency": "1ms",
            "endurance_tb": 100.0, "idle_w": 1.0, "read_w": 3.0, "write_w": 4.0,
        },
        "sources": {},
    });
    let Value::Object(values) = &mut values else {
        unreachable!("an object was written")
    };
    complete_flash(values);
    let mut config: DriveConfig = serde_json::from_value(json!(values)).unwrap();
    change(config.flash.as_mut().unwrap());
    config
}

fn device(change: fn(&mut FlashConfig)) -> Box<dyn Node> {
    let model = DriveModel::new(described(change)).unwrap();
    model.branch().unwrap().node
}

/// Submits requests, each at its time, and returns the completions in the order of their ends.
fn run(node: &mut dyn Node, requests: &[(u64, Operation, u64, u64)]) -> Vec<Completion> {
    let mut out = Effects::new();
    for (id, &(at, operation, start, sectors)) in (0..).zip(requests) {
        let now = Time::from_nanos(at);
        let request = Request {
            id: RequestId(id),
            operation,
            extent: Extent::new(start, sectors),
            ..Request::default()
        };
        node.submit(now, Port::FIRST, request, &mut NodeContext::alone(&mut out));
    }
    while node.next_wake().is_work() {
        let now = node.next_wake().at();
        node.wake(now, &mut NodeContext::alone(&mut out));
    }
    let completion = |effect| match effect {
        Effect::Complete { completion, .. } => Some(completion),
        _ => None,
    };
    out.drain().filter_map(completion).collect()
}

fn reading(node: &dyn Node, now: Time, name: &str) -> f64 {
    let mut counters = Counters::default();
    node.count(now, &mut counters);
    let all = counters.layers.iter().flat_map(|layer| &layer.readings);
    all.filter(|reading| reading.name == name)
        .map(|reading| reading.value)
        .sum()
}

#[test]
fn one_read_takes_its_latency_and_many_reach_the_rate_of_the_data_sheet() {
    let one = run(&mut *device(|_| {}), &[(0, Operation::Read, 0, 8)]);
    // 80 us, and 4096 bytes at 500 MB/s.
    assert_eq!(one[0].finished, Time::from_nanos(80_000 + 8_192));
    let small: Vec<_> = (0..1000)
        .map(|at| (0, Operation::Read, at * 8, 8))
        .collect();
    let end = run(&mut *device(|_| {}), &small).last().unwrap().finished;
    // 50,000 reads a second.
    assert!((end.as_secs_f64() - 0.02).abs() < 0.0002, "{end:?}");
    let large: Vec<_> = (0..100)
        .map(|at| (0, Operation::Read, at * 2048, 2048))
        .collect();
    let end = run(&mut *device(|_| {}), &large).last().unwrap().finished;
    let rate = 100.0 * 1_048_576.0 / 1e6 / end.as_secs_f64();
    assert!((rate - 500.0).abs() < 5.0, "{rate}");
}

#[test]
fn units_limit_the_reads_at_once() {
    let reads: Vec<_> = (0..16).map(|at| (0, Operation::Read, at * 8, 8)).collect();
    let done = run(&mut *device(|flash| flash.read_iops = None), &reads);
    // Two rounds of eight; the transfers of the first hide behind the latency of the second.
    let end = done.last().unwrap().finished;
    assert_eq!(end, Time::from_nanos(160_000 + 8 * 8_192));
}

#[test]
fn writes_fall_to_the_rate_behind_a_full_cache_and_idle_time_empties_the_cache() {
    let mut node = device(|_| {});
    // 20 MB; the cache takes 10.
    let writes: Vec<_> = (0..20)
        .map(|at| (0, Operation::Write, at * 1954, 1954))
        .collect();
    let end = run(&mut *node, &writes).last().unwrap().finished;
    let expected = 10.0 / 400.0 + 10.0 / 100.0;
    assert!(
        (end.as_secs_f64() - expected).abs() < 0.01 * expected,
        "{end:?}"
    );
    let past = reading(&*node, end, "flash_past_cache_mb");
    assert!((past - 10.0).abs() < 0.01, "{past}");
    // A second before the device begins, and 50 ms for 5 MB.
    let later = end + Duration::from_millis(1050);
    let more: Vec<_> = (0..10)
        .map(|at| (later.as_nanos(), Operation::Write, at * 1954, 1954))
        .collect();
    let took = run(&mut *node, &more).last().unwrap().finished.since(later);
    let expected = 5.0 / 400.0 + 5.0 / 100.0;
    assert!(
        (took.as_secs_f64() - expected).abs() < 0.02 * expected,
        "{took:?}"
    );
}

#[test]
fn a_flush_waits_for_the_writes_before() {
    let requests = [
        (0, Operation::Write, 0, 8),
        (0, Operation::Flush, 0, 0),
        (0, Operation::Discard, 0, 8),
    ];
    let done = run(&mut *device(|_| {}), &requests);
    let of = |id| done.iter().find(|one| one.id == RequestId(id)).unwrap();
    assert_eq!(of(1).finished, of(0).finished + Duration::from_millis(1));
    assert_eq!(of(2).finished, Time::ZERO);
}

#[test]
fn power_is_counted_by_reading_writing_and_rest() {
    let mut node = device(|_| {});
    run(&mut *node, &[(0, Operation::Read, 0, 2048)]);
    let mut counters = Counters::default();
    let second = Time::ZERO + Duration::from_secs(1);
    node.count(second, &mut counters);
    let power = counters.drives[0].power.unwrap();
    let busy = 0.000_08 + 1_048_576.0 / 500e6;
    let expected = busy * 3.0 + (1.0 - busy) * 1.0;
    assert!(
        (power.energy().0 - expected).abs() < 1e-6,
        "{:?}",
        power.energy()
    );
}

#[test]
fn impossible_keys_are_refused_by_name() {
    let key = |change: fn(&mut FlashConfig)| {
        let model = DriveModel::new(described(change));
        model.err().map(|error| error.key)
    };
    let of = |key: &str| Some(format!("flash.{key}"));
    assert_eq!(key(|_| {}), None);
    assert_eq!(key(|flash| flash.parallelism = 0), of("parallelism"));
    assert_eq!(key(|flash| flash.read_mb_per_s = 0.0), of("read_mb_per_s"));
    assert_eq!(key(|flash| flash.write_iops = Some(-1.0)), of("write_iops"));
    assert_eq!(
        key(|flash| flash.behind_mb_per_s = None),
        of("behind_mb_per_s")
    );
    assert_eq!(key(|flash| flash.write_cache = None), of("behind_mb_per_s"));
    assert_eq!(
        key(|flash| flash.behind_mb_per_s = Some(500.0)),
        of("behind_mb_per_s")
    );
    let large = |flash: &mut FlashConfig| flash.write_cache = Some(Bytes(1 << 50));
    assert_eq!(key(large), of("write_cache"));
    assert_eq!(
        key(|flash| flash.endurance_tb = Some(0.0)),
        of("endurance_tb")
    );
}

fn operations() -> impl Strategy<Value = Operation> {
    prop_oneof![
        Just(Operation::Read),
        Just(Operation::Write),
        Just(Operation::Flush),
        Just(Operation::Discard)
    ]
}

proptest! {
    #[test]
    fn parts_add_up_and_wear_equals_written_bytes(
        requests in prop::collection::vec((0u64..2_000_000, operations(), 0u64..19_999_000, 1u64..1000), 1..200)
    ) {
        let mut now = 0;
        let requests: Vec<_> = requests.into_iter().map(|(gap, operation, start, sectors)| {
            now += gap;
            (now, operation, start, sectors)
        }).collect();
        let mut node = device(|_| {});
        let done = run(&mut *node, &requests);
        prop_assert_eq!(done.len(), requests.len());
        for completion in &done {
            prop_assert_eq!(completion.status, RequestStatus::Done);
            prop_assert_eq!(completion.finished.since(completion.submitted), completion.breakdown.response());
        }
        let written = requests.iter().filter(|request| request.1 == Operation::Write);
        let bytes = written.map(|request| request.3 * 512).sum::<u64>() as f64;
        let end = done.last().unwrap().finished;
        prop_assert_eq!(reading(&*node, end, "flash_written_mb"), bytes / 1e6);
        prop_assert_eq!(reading(&*node, end, "flash_wear_share"), bytes / 1e14);
    }
}
