//! `kyber`, as in Linux 6: reads, writes and discards each have tokens for the device. The measured
//! latencies set the number of tokens.
//!
//! The requests of one kind form a domain. New requests wait in a list of the processor on which
//! they were submitted. When a domain has no other request, it takes the lists of all processors,
//! one after the other (`kyber_flush_busy_kcqs`). So a request of the last processor may wait for
//! nearly two rounds. The domains take turns in batches. At most ten times a second, the elevator checks the latencies
//! since the last check. The device is congested if a tenth of the latencies of any domain, counted
//! from dispatch, miss the target. Then the domains on target give tokens away. A domain off its
//! target gets tokens back.
//!
//! Names, defaults and fixed numbers are the kernel's (Documentation/block/kyber-iosched.rst and
//! the scheduler itself). The kernel's fourth domain, for flushes and the like, has no use here,
//! because flushes bypass the elevator. `kyber/domain.rs` has a domain and its latencies.

mod domain;

use super::fifos::Fifos;
use super::throttle::Throttle;
use super::{Context, Elevator, ElevatorSite};
use crate::block::{JoinKind, Queued, Requests};
use domain::Domain;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, Operation};
use fullstroke_units::{Duration, Random, Seed, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str =
    "Linux 6's kyber: tokens for reads, writes and discards, limited by their latencies";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Target latency of reads in nanoseconds; default 2000000 (2 ms).
    #[serde(default = "read_lat_nsec")]
    read_lat_nsec: u64,
    /// Target latency of writes in nanoseconds; default 10000000 (10 ms).
    #[serde(default = "write_lat_nsec")]
    write_lat_nsec: u64,
    /// Number of processors of the host, each with lists of new requests; 1 to 1024. Default 2.
    #[serde(default = "processors")]
    processors: u32,
}

fn processors() -> u32 {
    2
}

/// Probability that a process submits its next request on another processor. Linux 6.18 with two
/// processors moved fio's processes at 1.2 to 3.2 % of their requests.
const MOVES: f64 = 0.016;
/// Number of processes whose processors are remembered; the next one shares an entry.
const HOMES: usize = 256;

// Targets, tokens and batches are `kyber_latency_targets`, `kyber_depth` and
// `kyber_batch_size` of `block/kyber-iosched.c`.
fn read_lat_nsec() -> u64 {
    2_000_000
}

fn write_lat_nsec() -> u64 {
    10_000_000
}

const DISCARD_LATENCY_NS: u64 = 5_000_000_000;
/// Share of the layer's requests for asynchronous requests, in per cent. The rest stays free for
/// synchronous requests during a flood of asynchronous ones: `KYBER_ASYNC_PERCENT`.
const ASYNC_PERCENT: u32 = 75;
/// Time from the first completion to the check of the latencies (`timer_reduce` in
/// `kyber_completed_request`).
const INTERVAL: Duration = Duration::from_millis(100);
struct Kyber {
    /// Reads, writes, discards.
    domains: [Domain; 3],
    links: Fifos,
    /// Domain with the turn, and the number of requests in its batch.
    current: usize,
    batched: u32,
    throttle: Throttle,
    /// By slot: time at which the elevator took the request.
    since: Vec<Time>,
    /// By slot: list of the processor, counted from 1, or 0 for a list of the domain.
    lists: Vec<u32>,
    /// Processor of each process, by process number.
    homes: [u32; HOMES],
    processors: u32,
    random: Random,
    /// Time of the next check of the latencies.
    due: Time,
}

pub(super) fn build(keys: &Keys, site: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    // `block/kyber-iosched.c` reads the time with `ktime_get_ns`.
    site.clock.must_be_exact("kyber")?;
    let Config {
        read_lat_nsec,
        write_lat_nsec,
        processors,
    } = read(keys)?;
    if !(1..=1024).contains(&processors) {
        let message = format!("found {processors}; expected a number of processors, 1 to 1024");
        return Err(ConfigError::new("processors", message));
    }
    for (key, target) in [
        ("read_lat_nsec", read_lat_nsec),
        ("write_lat_nsec", write_lat_nsec),
    ] {
        if target == 0 {
            return Err(ConfigError::new(
                key,
                "found 0; expected a latency in nanoseconds, as 2000000",
            ));
        }
    }
    Ok(Box::new(Kyber {
        domains: [
            Domain::new(256, 16, read_lat_nsec, processors),
            Domain::new(128, 8, write_lat_nsec, processors),
            Domain::new(64, 1, DISCARD_LATENCY_NS, processors),
        ],
        links: Fifos::default(),
        current: 0,
        batched: 0,
        throttle: Throttle::new((site.nr_requests * ASYNC_PERCENT / 100).max(1)),
        since: Vec::new(),
        lists: Vec::new(),
        homes: std::array::from_fn(|process| process as u32 % processors),
        processors,
        random: Seed(0).stream("kyber"),
        due: Time::NEVER,
    }))
}

fn domain_of(request: &Queued) -> usize {
    match request.operation {
        Operation::Read => 0,
        Operation::Discard => 2,
        _ => 1,
    }
}

impl Kyber {
    fn take_in(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.since[slot as usize] = now;
        let home = &mut self.homes[requests[slot].process as usize % HOMES];
        if self.processors > 1 && self.random.chance(MOVES) {
            let others = u64::from(self.processors - 1);
            *home = (*home + 1 + self.random.below(others) as u32) % self.processors;
        }
        let home = *home;
        self.lists[slot as usize] = home + 1;
        let domain = &mut self.domains[domain_of(&requests[slot])];
        self.links
            .push_back(&mut domain.staged[home as usize], slot);
    }

    /// Moves the requests of all processors into the list of a domain without requests.
    fn flush(&mut self, turn: usize) {
        let domain = &mut self.domains[turn];
        for list in &mut domain.staged {
            while let Some(slot) = self.links.pop_front(list) {
                self.lists[slot as usize] = 0;
                self.links.push_back(&mut domain.waiting, slot);
            }
        }
    }

    fn release(&mut self, now: Time, slot: u32, requests: &Requests) {
        if let Some(next) = self.throttle.leaves(slot) {
            self.take_in(now, next, requests);
        }
    }

    /// Checks the latencies if the time has come: `kyber_timer_fn`.
    fn tick(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        let due = std::mem::replace(&mut self.due, Time::NEVER);
        let mut congested = false;
        for domain in &mut self.domains {
            congested |= domain.is_congested(due);
        }
        for domain in &mut self.domains {
            domain.adjust(due, congested);
        }
    }

    /// Returns the domain of the next request: the present one until its batch is complete, then
    /// the next ready domain (`kyber_dispatch_request`).
    fn turn(&mut self) -> Option<usize> {
        let present = &self.domains[self.current];
        if self.batched < present.batch && present.is_ready() {
            return Some(self.current);
        }
        self.batched = 0;
        for _ in 0..self.domains.len() {
            self.current = (self.current + 1) % self.domains.len();
            if self.domains[self.current].is_ready() {
                return Some(self.current);
            }
        }
        None
    }
}

impl Elevator for Kyber {
    /// Lets a request join one that waits in the list of its own processor (`kyber_bio_merge`).
    fn may_join(&self, slot: u32, _: &Queued, other: &Queued, join: JoinKind) -> bool {
        let home = self.homes[other.process as usize % HOMES];
        join != JoinKind::Coalesce && self.lists[slot as usize] == home + 1
    }

    fn add(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.tick(now);
        if self.since.len() <= slot as usize {
            self.since.resize(slot as usize + 1, Time::ZERO);
            self.lists.resize(slot as usize + 1, 0);
        }
        self.lists[slot as usize] = 0;
        if self.throttle.enters(slot, !requests[slot].synchronous) {
            self.take_in(now, slot, requests);
        }
    }

    fn grown(&mut self, _: Time, _: u32, _: JoinKind, _: &Queued, _: &Queued, _: &Requests) {}

    fn coalesced(&mut self, now: Time, _: u32, gone: u32, requests: &Requests) {
        if !self.throttle.keeps_out(gone) {
            let domain = &mut self.domains[domain_of(&requests[gone])];
            let list = match self.lists[gone as usize].checked_sub(1) {
                Some(home) => &mut domain.staged[home as usize],
                None => &mut domain.waiting,
            };
            self.links.remove(list, gone);
        }
        self.release(now, gone, requests);
    }

    fn dispatch(&mut self, now: Time, _: &Context<'_>) -> Option<u32> {
        self.tick(now);
        let turn = self.turn()?;
        if self.domains[turn].waiting.is_empty() {
            self.flush(turn);
        }
        let domain = &mut self.domains[turn];
        let slot = self.links.pop_front(&mut domain.waiting)?;
        domain.issued += 1;
        debug_assert!(
            domain.issued <= 256,
            "more requests than tokens are with the device"
        );
        self.batched += 1;
        Some(slot)
    }

    fn completed(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.tick(now);
        let request = &requests[slot];
        let latency = now.since(self.since[slot as usize]);
        self.domains[domain_of(request)].completed(now.since(request.dispatched), latency);
        if self.due == Time::NEVER {
            self.due = now + INTERVAL;
        }
        self.release(now, slot, requests);
    }

    fn next_wake(&self) -> Time {
        self.due
    }

    fn may_starve(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(super) fn tunables() -> Vec<super::testing::Tunable> {
    use super::testing::{Load, Tunable};
    let load = || Load {
        queue_depth: 64,
        processes: tests::reader_and_writer(),
    };
    let values = ["1000", "10000000000"];
    vec![
        Tunable {
            key: "read_lat_nsec",
            values,
            others: "{}",
            load: load(),
        },
        Tunable {
            key: "write_lat_nsec",
            values,
            others: "{}",
            load: load(),
        },
        Tunable {
            key: "processors",
            values: ["1", "2"],
            others: "{}",
            load: load(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::REGISTRY;
    use super::super::testing::{Load, LoopProcess, SITE, Sent, run, run_entry};
    use super::*;
    use fullstroke_contract::registry::find;

    pub(super) fn reader_and_writer() -> Vec<LoopProcess> {
        let reader = LoopProcess {
            span: 90_000_000,
            outstanding: 32,
            count: 3000,
            ..LoopProcess::default()
        };
        let writer = LoopProcess {
            process: 2,
            operation: Operation::Write,
            synchronous: false,
            ..reader
        };
        vec![reader, writer]
    }

    fn lengths(sent: &[Sent]) -> Vec<(Operation, usize)> {
        sent.chunk_by(|one, other| one.operation == other.operation)
            .map(|run| (run[0].operation, run.len()))
            .collect()
    }

    #[test]
    fn domains_take_turns_in_batches_of_16_8_and_1() {
        let [reader, writer]: [LoopProcess; 2] = reader_and_writer().try_into().unwrap();
        let discarder = LoopProcess {
            process: 3,
            operation: Operation::Discard,
            ..writer
        };
        let load = Load {
            queue_depth: 1,
            processes: vec![reader, writer, discarder],
        };
        let runs = lengths(&run("kyber", "{}", &load));
        let round = [
            (Operation::Read, 16),
            (Operation::Write, 8),
            (Operation::Discard, 1),
        ];
        assert_eq!(runs[..6], [round, round].concat());
    }

    /// Returns the mean time in ms between the submission and the completion of a read. One process
    /// sends 400 reads, one at a time, beside a flood of writes. The mean covers the second half.
    fn read_latency_ms(keys: &str) -> f64 {
        let reader = LoopProcess {
            span: 90_000_000,
            count: 400,
            ..LoopProcess::default()
        };
        let writer = LoopProcess {
            process: 2,
            operation: Operation::Write,
            synchronous: false,
            outstanding: 64,
            count: 100_000,
            ..reader
        };
        let entry = find("elevator", REGISTRY, "elevator", "kyber").unwrap();
        let load = Load {
            queue_depth: 64,
            processes: vec![reader, writer],
        };
        let layer = crate::block::BlockLayer::new(
            super::super::testing::build(entry, keys, 64),
            &super::super::testing::settings(64),
            None,
        );
        let ran = super::super::testing::ElevatorBench::new(layer, &load)
            .run(Time::from_nanos(40_000_000_000));
        let done: Vec<Time> = ran
            .done
            .iter()
            .filter(|done| done.0 == 1)
            .map(|done| done.2)
            .collect();
        let half = done.len() / 2;
        done[done.len() - 1].since(done[half]).as_millis_f64() / (done.len() - 1 - half) as f64
    }

    #[test]
    fn writes_that_have_time_leave_the_device_to_reads() {
        let patient = read_latency_ms(r#"{ "write_lat_nsec": 10000000000 }"#);
        let both_late = read_latency_ms("{}");
        assert!(
            patient < 20.0,
            "one write at a time in front of a read: {patient} ms"
        );
        assert!(
            both_late > 100.0,
            "both miss their targets, nobody is throttled: {both_late} ms"
        );
    }

    #[test]
    fn a_quarter_of_the_requests_is_kept_for_synchronous_ones() {
        let flood = LoopProcess {
            operation: Operation::Write,
            synchronous: false,
            span: 90_000_000,
            outstanding: 120,
            count: 120,
            ..LoopProcess::default()
        };
        let sync = LoopProcess {
            process: 2,
            synchronous: true,
            outstanding: 1,
            count: 1,
            begins: Time::from_nanos(1),
            ..flood
        };
        let entry = find("elevator", REGISTRY, "elevator", "kyber").unwrap();
        let ran = run_entry(
            entry,
            r#"{ "processors": 1 }"#,
            &Load {
                queue_depth: 1,
                processes: vec![flood, sync],
            },
        );
        // Asynchronous requests may take 96 of the 128 requests. The first of them has been
        // dispatched.
        assert_eq!(ran.sent.iter().position(|sent| sent.process == 2), Some(96));
    }

    /// Returns the processes of the first requests that go to a device without a queue. Each of two
    /// processes on their own processors has eight reads in flight.
    fn order_of_processes(keys: &str) -> Vec<u32> {
        let reader = LoopProcess {
            span: 90_000_000,
            outstanding: 8,
            count: 8,
            ..LoopProcess::default()
        };
        let other = LoopProcess {
            process: 2,
            ..reader
        };
        let entry = find("elevator", REGISTRY, "elevator", "kyber").unwrap();
        let load = Load {
            queue_depth: 1,
            processes: vec![reader, other],
        };
        let ran = run_entry(entry, keys, &load);
        ran.sent.iter().map(|sent| sent.process).collect()
    }

    #[test]
    fn requests_of_one_processor_go_before_those_of_the_next() {
        let before_2 = |keys: &str| {
            let order = order_of_processes(keys);
            order.iter().take_while(|&&process| process == 1).count()
        };
        assert_eq!(before_2(r#"{ "processors": 1 }"#), 8);
        // Process 2 submits on processor 0, whose list goes first.
        assert!(before_2(r#"{ "processors": 2 }"#) < 8);
    }

    #[test]
    fn a_number_of_processors_out_of_range_is_refused() {
        let keys: Keys = serde_json::from_str(r#"{ "processors": 0 }"#).unwrap();
        assert_eq!(build(&keys, &SITE).err().unwrap().key, "processors");
    }

    #[test]
    fn a_target_of_0_is_refused() {
        let site = SITE;
        for key in ["read_lat_nsec", "write_lat_nsec"] {
            let keys: Keys = serde_json::from_str(&format!(r#"{{ "{key}": 0 }}"#)).unwrap();
            assert_eq!(build(&keys, &site).err().unwrap().key, key);
        }
    }
}
