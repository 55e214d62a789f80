//! Exact counts and times of the file server, above a file system that takes a fixed time.

use super::{FileServer, ServerKeys};
use crate::{CostKeys, HostRegions, fairness::REGISTRY};
use fullstroke_contract::registry::{Keys, find};
use fullstroke_contract::{
    Completion, Counters, Effect, Effects, Extent, Hints, Node, NodeContext, Operation, Port,
    Request, RequestId, RequestStatus,
};
use fullstroke_units::{Duration, Sectors, Time};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Time of the file system for each call.
const WORK: Duration = Duration::from_millis(10);

struct Bench {
    server: FileServer,
    now: Time,
    below: BTreeMap<(Time, u64), Time>,
    /// Requests that reached the file system.
    issued: Vec<Request>,
    done: Vec<(usize, Completion)>,
    most_below: usize,
}

fn keys(value: Value) -> ServerKeys {
    serde_json::from_value(value).unwrap()
}

impl Bench {
    fn new(value: Value, clients: usize) -> Bench {
        let rule = find("rule", REGISTRY, "fairness", "fifo").unwrap().build;
        let server = FileServer::new(
            HostRegions::whole(clients, Sectors(1 << 24)),
            rule(&Keys::new(), &vec![1; clients]).unwrap(),
            CostKeys::default().build().unwrap(),
            &keys(value),
        );
        Bench {
            server: server.unwrap(),
            now: Time::ZERO,
            below: BTreeMap::new(),
            issued: Vec::new(),
            done: Vec::new(),
            most_below: 0,
        }
    }

    fn collect(&mut self, out: &mut Effects) {
        let effects: Vec<Effect> = out.drain().collect();
        for effect in effects {
            match effect {
                Effect::Issue { request, .. } => {
                    self.below.insert((self.now + WORK, request.id.0), self.now);
                    self.issued.push(request);
                    self.most_below = self.most_below.max(self.below.len());
                }
                Effect::Complete { port, completion } => {
                    assert_eq!(
                        completion.breakdown.response(),
                        completion.finished.since(completion.submitted)
                    );
                    self.done.push((port.index(), completion));
                }
                Effect::Notice { .. } => {}
            }
        }
    }

    fn submit(&mut self, client: usize, operation: Operation, kib: u64, force: bool) {
        let request = Request {
            id: RequestId(self.done.len() as u64 + 1000),
            operation,
            extent: Extent::new(0, 2 * kib),
            hints: Hints {
                force_unit_access: force,
                ..Hints::default()
            },
            ..Request::default()
        };
        let mut out = Effects::new();
        let mut cx = NodeContext::alone(&mut out);
        self.server
            .submit(self.now, Port::of(client), request, &mut cx);
        self.collect(&mut out);
    }

    /// Runs until nothing is left to do.
    fn run(&mut self) {
        loop {
            let ends = self.below.keys().next().map_or(Time::NEVER, |key| key.0);
            let wakes = self.server.next_wake().at();
            if ends == Time::NEVER && wakes == Time::NEVER {
                return;
            }
            let mut out = Effects::new();
            let mut cx = NodeContext::alone(&mut out);
            self.now = ends.min(wakes);
            if ends <= wakes {
                let ((at, id), began) = self.below.pop_first().unwrap();
                let completion = Completion {
                    submitted: began,
                    finished: at,
                    ..Completion::at_once(RequestId(id), began, RequestStatus::Done)
                };
                self.server.completed(at, Port::FIRST, completion, &mut cx);
            } else {
                self.server.wake(wakes, &mut cx);
            }
            self.collect(&mut out);
        }
    }

    /// Runs one request to its end. Returns the response time in ms.
    fn one(&mut self, operation: Operation, kib: u64, force: bool) -> f64 {
        self.submit(0, operation, kib, force);
        self.run();
        let (_, completion) = self.done.last().unwrap();
        completion
            .finished
            .since(completion.submitted)
            .as_millis_f64()
    }

    fn counts(&self) -> [u64; 3] {
        let mut counters = Counters::default();
        self.server.count(self.now, &mut counters);
        let readings = &counters.layers[0].readings;
        ["server_reads", "server_writes", "server_commits"].map(|name| {
            let found = readings.iter().find(|reading| reading.name == name);
            found.unwrap().value as u64
        })
    }
}

#[test]
fn a_request_becomes_calls_of_the_negotiated_size() {
    for (protocol, rsize, reads) in [("nfs", "1MiB", 10), ("smb", "4MiB", 3), ("smb", "8MiB", 2)] {
        let mut bench = Bench::new(json!({ "protocol": protocol, "rsize": rsize }), 1);
        bench.one(Operation::Read, 10 * 1024, false);
        assert_eq!(bench.counts(), [reads, 0, 0], "{protocol} {rsize}");
        assert_eq!(bench.issued.len() as u64, reads);
        assert_eq!(bench.done.len(), 1, "the request ends once");
    }
}

#[test]
fn nfs_commits_unstable_data_once_and_smb_flushes_each_time() {
    let mut nfs = Bench::new(json!({ "protocol": "nfs" }), 1);
    nfs.one(Operation::Flush, 0, false);
    assert_eq!(nfs.counts(), [0, 0, 0], "nothing is unstable");
    nfs.one(Operation::Write, 3 * 1024, false);
    nfs.one(Operation::Flush, 0, false);
    nfs.one(Operation::Flush, 0, false);
    assert_eq!(nfs.counts(), [0, 3, 1]);
    // A forced write is FILE_SYNC, and needs no COMMIT.
    nfs.one(Operation::Write, 4, true);
    nfs.one(Operation::Flush, 0, false);
    assert_eq!(nfs.counts(), [0, 4, 1]);
    assert!(nfs.issued.last().unwrap().hints.force_unit_access);
    let flushes = |bench: &Bench| {
        let below = bench.issued.iter();
        below
            .filter(|one| one.operation == Operation::Flush)
            .count()
    };
    for (strict, below) in [(true, 2), (false, 0)] {
        let mut smb = Bench::new(json!({ "protocol": "smb", "strict_sync": strict }), 1);
        smb.one(Operation::Write, 4, false);
        smb.one(Operation::Flush, 0, false);
        smb.one(Operation::Flush, 0, false);
        assert_eq!(smb.counts(), [0, 1, 2]);
        assert_eq!(flushes(&smb), below, "strict_sync = {strict}");
    }
}

#[test]
fn a_commit_does_not_cover_later_writes() {
    let mut nfs = Bench::new(json!({ "protocol": "nfs" }), 1);
    nfs.one(Operation::Write, 4, false);
    nfs.submit(0, Operation::Flush, 0, false);
    nfs.submit(0, Operation::Write, 4, false);
    nfs.run();
    nfs.one(Operation::Flush, 0, false);
    assert_eq!(nfs.counts(), [0, 2, 2]);
}

#[test]
fn a_call_takes_its_time_on_the_wires() {
    let value = json!({
        "protocol": "nfs", "client_mb_per_s": 125.0, "server_mb_per_s": 1250.0, "latency": "1ms",
    });
    let mut bench = Bench::new(value, 1);
    let read = bench.one(Operation::Read, 1024, false);
    // The call, 10 ms of work, 1 MiB and a header at 125 MB/s with framing, and two latencies.
    let wire = (1_048_576.0 + 2.0 * 240.0) * 1538.0 / 1448.0 / 125e6 * 1e3;
    assert!(
        (read - (wire + 12.0)).abs() < 0.01,
        "{read} ms, {wire} ms on the wire"
    );
    let write = bench.one(Operation::Write, 1024, false);
    assert!((write - read).abs() < 0.01, "{write} ms");
}

#[test]
fn clients_share_the_wire_of_the_server() {
    let value = json!({ "protocol": "smb", "client_mb_per_s": 125.0, "server_mb_per_s": 125.0 });
    let mut bench = Bench::new(value, 4);
    for client in 0..4 {
        bench.submit(client, Operation::Write, 4096, false);
    }
    bench.run();
    let last = bench.done.iter().map(|done| done.1.finished).max().unwrap();
    let wire = 4.0 * 4096.0 * 1024.0 * 1538.0 / 1448.0 / 125e6 * 1e3;
    let took = last.since(Time::ZERO).as_millis_f64();
    assert!(
        (took - wire - 10.0).abs() < 1.0,
        "{took} ms, {wire} ms on the wire"
    );
}

#[test]
fn threads_and_slots_limit_the_calls_at_once() {
    let work = |value: Value, clients: usize| {
        let mut bench = Bench::new(value, clients);
        for _ in 0..20 {
            for client in 0..clients {
                bench.submit(client, Operation::Read, 4, false);
            }
        }
        bench.run();
        assert_eq!(bench.done.len(), 20 * clients);
        bench.most_below
    };
    assert_eq!(work(json!({ "protocol": "nfs", "threads": 8 }), 2), 8);
    assert_eq!(work(json!({ "protocol": "nfs", "slots": 3 }), 2), 6);
    // A read of 4 KiB takes one credit.
    assert_eq!(work(json!({ "protocol": "smb", "credits": 5 }), 1), 5);
    assert_eq!(work(json!({ "protocol": "smb", "threads": 4 }), 3), 12);
}

#[test]
fn an_impossible_key_is_refused_by_name() {
    for (value, key) in [
        (json!({ "protocol": "nfs", "rsize": "2MiB" }), "rsize"),
        (json!({ "protocol": "smb", "wsize": "5000" }), "wsize"),
        (json!({ "protocol": "nfs", "credits": 8 }), "credits"),
        (
            json!({ "protocol": "nfs", "strict_sync": true }),
            "strict_sync",
        ),
        (json!({ "protocol": "smb", "slots": 8 }), "slots"),
        (json!({ "protocol": "nfs", "threads": 0 }), "threads"),
        (
            json!({ "protocol": "nfs", "client_mb_per_s": 0.0 }),
            "client_mb_per_s",
        ),
        (json!({ "protocol": "smb", "latency": "1h" }), "latency"),
    ] {
        assert_eq!(keys(value).rules().unwrap_err().key, key);
    }
}
