use super::*;
use fullstroke_contract::{Operation, PriorityClass, Request};
use proptest::prelude::*;
use serde_json::{Value, json};

const CAPACITY: Sectors = Sectors(1 << 21);

fn config(value: Value) -> ProcessesConfig {
    serde_json::from_value(value).unwrap()
}

fn processes(value: Value) -> ProcessSource {
    ProcessSource::new(&config(value), CAPACITY, Seed(9)).unwrap()
}

fn refused(value: Value) -> String {
    ProcessSource::new(&config(value), CAPACITY, Seed(9))
        .err()
        .unwrap()
        .key
}

fn woken(source: &mut ProcessSource, at_ns: u64) -> Vec<Request> {
    let mut out = Effects::new();
    source.wake(Time::from_nanos(at_ns), &mut NodeContext::alone(&mut out));
    out.requests().collect()
}

fn answered(source: &mut ProcessSource, request: &Request, at_ns: u64) -> Vec<Request> {
    let mut out = Effects::new();
    let completion = Completion {
        id: request.id,
        ..Completion::default()
    };
    source.completed(
        Time::from_nanos(at_ns),
        Port::FIRST,
        completion,
        &mut NodeContext::alone(&mut out),
    );
    out.requests().collect()
}

/// Requests of each process if each request takes `service_ns`.
fn all_requests(source: &mut ProcessSource, service_ns: u64) -> BTreeMap<u32, Vec<Request>> {
    let mut issued: BTreeMap<u32, Vec<Request>> = BTreeMap::new();
    let mut in_flight: Vec<(u64, Request)> = Vec::new();
    loop {
        let done = in_flight
            .iter()
            .map(|&(at, _)| at)
            .min()
            .unwrap_or(u64::MAX);
        let due = source.next_wake().at().as_nanos();
        let now = done.min(due);
        if now == u64::MAX {
            return issued;
        }
        let mut new = Vec::new();
        if done <= due {
            let index = in_flight.iter().position(|&(at, _)| at == done).unwrap();
            let (_, request) = in_flight.remove(index);
            new = answered(source, &request, now);
        } else {
            new.extend(woken(source, now));
        }
        for request in new {
            issued
                .entry(request.hints.process)
                .or_default()
                .push(request);
            in_flight.push((now + service_ns, request));
        }
    }
}

#[test]
fn each_process_has_its_depth_outstanding_and_no_more() {
    let mut source = processes(json!({ "requests": 1000, "processes": [
        { "name": "one", "count": 3 }, { "name": "deep", "depth": 4, "read_share": 0.0 },
    ]}));
    let first = woken(&mut source, 0);
    let of = |process| {
        first
            .iter()
            .filter(|request| request.hints.process == process)
            .count()
    };
    assert_eq!([of(1), of(2), of(3), of(4)], [1, 1, 1, 4]);
    let next = answered(&mut source, &first[1], 10);
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].hints.process, first[1].hints.process);
    assert_eq!(source.next_wake().at(), Time::NEVER);
}

#[test]
fn a_process_thinks_from_the_completion_on() {
    let mut source = processes(json!({ "duration": "1s", "processes": [{ "think_time": "2ms" }] }));
    let first = woken(&mut source, 0);
    assert!(answered(&mut source, &first[0], 7).is_empty());
    assert_eq!(source.next_wake().at(), Time::from_nanos(2_000_007));
    assert!(woken(&mut source, 2_000_006).is_empty());
    assert_eq!(woken(&mut source, 2_000_007).len(), 1);
}

#[test]
fn exponential_think_times_have_their_mean() {
    let mut source = processes(
        json!({ "requests": 20000, "processes": [{ "think_time": "2ms", "exponential": true }] }),
    );
    let (mut now, mut sum) = (0, 0);
    let mut request = woken(&mut source, 0)[0];
    for _ in 0..10_000 {
        answered(&mut source, &request, now);
        sum += source.next_wake().at().as_nanos() - now;
        now = source.next_wake().at().as_nanos();
        request = woken(&mut source, now)[0];
    }
    let mean_ms = sum as f64 / 10_000.0 / 1e6;
    assert!((mean_ms - 2.0).abs() < 0.1, "{mean_ms}");
}

#[test]
fn readers_at_an_increment_read_on_where_they_began() {
    let mut source = processes(json!({ "requests": 30, "processes": [{
        "count": 10, "size": "16KiB", "region_increment": "64MiB",
        "addresses": { "pattern": "sequential" },
    }]}));
    for (process, requests) in all_requests(&mut source, 1000) {
        let begin = u64::from(process - 1) * (64 << 20) / 512;
        for (index, request) in requests.iter().enumerate() {
            assert_eq!(request.extent.start.0, begin + 32 * index as u64);
        }
    }
}

#[test]
fn reads_are_waited_for_and_writes_unless_they_are_asynchronous() {
    let waits = |entry: Value| {
        let mut source = processes(json!({ "requests": 400, "processes": [entry] }));
        let requests = all_requests(&mut source, 10).remove(&1).unwrap();
        let of = |operation| {
            let mut hints = requests
                .iter()
                .filter(|request| request.operation == operation);
            let first = hints.next().unwrap().hints.synchronous;
            assert!(hints.all(|request| request.hints.synchronous == first));
            first
        };
        (of(Operation::Read), of(Operation::Write))
    };
    assert_eq!(waits(json!({ "read_share": 0.5 })), (true, true));
    assert_eq!(
        waits(json!({ "read_share": 0.5, "depth": 8 })),
        (true, false)
    );
    assert_eq!(
        waits(json!({ "read_share": 0.5, "synchronous": false })),
        (true, false)
    );
}

#[test]
fn hints_name_process_stream_and_priority() {
    let mut source = processes(json!({ "requests": 12, "processes": [
        { "name": "random", "count": 2, "class": "idle", "level": 7 },
        { "name": "copy", "addresses": { "pattern": "sequential", "streams": 2 } },
        { "name": "runs", "addresses": { "pattern": "sequential-runs" }, "class": "real-time", "level": 0 },
    ]}));
    let issued = all_requests(&mut source, 10);
    let hints = |process: u32, index: usize| issued[&process][index].hints;
    assert_eq!((hints(1, 0).stream, hints(2, 0).stream), (0, 0));
    assert_eq!(
        (hints(1, 0).class, hints(1, 0).level),
        (PriorityClass::Idle, 7)
    );
    assert_eq!(
        [hints(3, 0).stream, hints(3, 1).stream, hints(3, 2).stream],
        [1, 2, 1]
    );
    assert_eq!(
        (hints(4, 0).stream, hints(4, 0).class),
        (3, PriorityClass::RealTime)
    );
}

#[test]
fn a_further_entry_leaves_the_requests_of_the_others_as_they_are() {
    let readers = json!({ "name": "reader", "count": 3, "read_share": 0.7 });
    let writer = json!({ "name": "writer", "read_share": 0.0 });
    let alone = all_requests(
        &mut processes(json!({ "duration": "1ms", "processes": [readers.clone()] })),
        10_000,
    );
    let beside = all_requests(
        &mut processes(json!({ "duration": "1ms", "processes": [writer, readers] })),
        10_000,
    );
    for process in 1..=3u32 {
        let extents = |issued: &BTreeMap<u32, Vec<Request>>, process: u32| -> Vec<_> {
            issued[&process]
                .iter()
                .map(|request| (request.operation, request.extent))
                .collect()
        };
        assert_eq!(extents(&alone, process), extents(&beside, process + 1));
    }
}

#[test]
fn the_load_ends_after_its_requests_or_its_duration() {
    let total = |issued: BTreeMap<u32, Vec<Request>>| issued.values().map(Vec::len).sum::<usize>();
    let load = |value: Value| total(all_requests(&mut processes(value), 1_000_000));
    let kinds = json!([{ "count": 4, "think_time": "1ms" }]);
    assert_eq!(load(json!({ "requests": 101, "processes": kinds })), 101);
    // One request per process every two milliseconds, from 0 to below 9.
    assert_eq!(
        load(json!({ "duration": "9ms", "processes": kinds })),
        4 * 5
    );
    assert_eq!(
        load(json!({ "requests": 7, "duration": "9ms", "processes": kinds })),
        7
    );
}

#[test]
fn what_contradicts_itself_is_refused_at_its_key() {
    let entry = |entry: Value| refused(json!({ "requests": 1, "processes": [{}, entry] }));
    for (key, keys) in [
        ("count", json!({ "count": 0 })),
        ("depth", json!({ "depth": 0 })),
        ("read_share", json!({ "read_share": 1.5 })),
        ("level", json!({ "level": 8 })),
        ("synchronous", json!({ "synchronous": true, "depth": 2 })),
        ("size", json!({ "size": 100 })),
        ("name", json!({ "name": "" })),
        (
            "region_increment",
            json!({ "count": 4, "region_increment": "512MiB" }),
        ),
        ("region_start", json!({ "region_start": "2GiB" })),
        (
            "addresses.pattern",
            json!({ "addresses": { "pattern": "sequental" } }),
        ),
    ] {
        assert_eq!(entry(keys), format!("processes[1].{key}"));
    }
    assert_eq!(refused(json!({ "processes": [{}] })), "requests");
    assert_eq!(
        refused(json!({ "requests": 1, "processes": [] })),
        "processes"
    );
}

proptest! {
    #[test]
    fn ids_in_flight_are_never_shared(depth in 1u32..9, count in 1u32..9, service in 1u64..100) {
        let mut source = processes(json!({ "requests": 300, "processes": [
            { "count": count, "depth": depth, "synchronous": false }] }));
        let issued = all_requests(&mut source, service);
        let mut ids: Vec<u64> = issued.values().flatten().map(|request| request.id.0).collect();
        let total = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!((ids.len(), total), (300, 300));
    }
}
