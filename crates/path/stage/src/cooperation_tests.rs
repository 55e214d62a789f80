//! Guarantees of co-operation, with model hosts.

use crate::fairness::REGISTRY;
use crate::properties::{Below, step};
use crate::{CooperationKeys, CostKeys, HostRegions, Stage};
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Completion, Counters, Effect, Effects, Extent, Hints, Node, NodeContext, Notice, Operation,
    Port, Request, RequestId, RequestStatus, Signal,
};
use fullstroke_units::{Bytes, Duration, Sectors, Time};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const HOSTS: usize = 3;
const PAGES: u64 = 24;
const PAGE_SECTORS: u64 = 8;
const ANSWER: RequestId = RequestId(u64::MAX);

/// Hosts with caches, a stage, and an array that answers in any order. The contents of a page, on
/// the medium and in caches, are the number of the last write.
struct Friends {
    stage: Stage,
    out: Effects,
    array: Below,
    went_down: u64,
    medium: BTreeMap<u64, u64>,
    caches: Vec<BTreeMap<u64, u64>>,
    /// Hosts that answer questions.
    answer: [bool; HOSTS],
    /// Requests by number, with the medium's contents at the arrival.
    came: Vec<(Port, Request, Vec<u64>)>,
    done: Vec<(Time, u64)>,
    asked: u64,
    speeds_us: Vec<u64>,
}

fn pages(extent: Extent) -> std::ops::Range<u64> {
    extent.start.0 / PAGE_SECTORS..extent.end().0.div_ceil(PAGE_SECTORS)
}

impl Friends {
    fn new(keys: &CooperationKeys, answer: [bool; HOSTS], speeds_us: Vec<u64>) -> Friends {
        let regions = HostRegions::whole(HOSTS, Sectors(PAGES * PAGE_SECTORS));
        let fairness = (REGISTRY[0].build)(&Keys::new(), &[1; HOSTS]).unwrap();
        let cost = CostKeys::Time(Duration::from_micros(10)).build().unwrap();
        Friends {
            stage: Stage::new(regions, fairness, cost, None).with_cooperation(keys),
            out: Effects::new(),
            array: Below::new(),
            went_down: 0,
            medium: BTreeMap::new(),
            caches: vec![BTreeMap::new(); HOSTS],
            answer,
            came: Vec::new(),
            done: Vec::new(),
            asked: 0,
            speeds_us,
        }
    }

    fn submit(&mut self, now: Time, host: u16, operation: Operation, extent: Extent, direct: bool) {
        let cached = operation == Operation::Read && !direct;
        if cached && self.is_inside(host, extent) {
            return;
        }
        // Before the host reads a page, the host has evicted the old copy.
        for page in pages(extent).filter(|_| cached) {
            self.caches[usize::from(host)].remove(&page);
        }
        let id = RequestId(self.came.len() as u64);
        let request = Request {
            id,
            operation,
            extent,
            hints: Hints {
                direct,
                ..Hints::default()
            },
            ..Request::default()
        };
        let held = pages(extent).map(|page| self.version(page)).collect();
        self.came.push((Port(host), request, held));
        self.stage.submit(
            now,
            Port(host),
            request,
            &mut NodeContext::alone(&mut self.out),
        );
        self.collect(now);
    }

    /// True if a request of the host overlaps the extent. The page cache then waits for the
    /// request.
    fn is_inside(&self, host: u16, extent: Extent) -> bool {
        let done: BTreeSet<u64> = self.done.iter().map(|&(_, number)| number).collect();
        let mut inside = (0..)
            .zip(&self.came)
            .filter(|(number, _)| !done.contains(number));
        inside.any(|(_, (port, request, _))| {
            let (other, own) = (pages(request.extent), pages(extent));
            port.0 == host && other.start < own.end && own.start < other.end
        })
    }

    fn version(&self, page: u64) -> u64 {
        self.medium.get(&page).copied().unwrap_or(0)
    }

    fn collect(&mut self, now: Time) {
        while let Some((_, effect)) = self.out.take_first() {
            match effect {
                Effect::Issue { request, .. } => {
                    let speed = self.speeds_us[self.went_down as usize % self.speeds_us.len()];
                    self.went_down += 1;
                    self.array.push(Reverse((
                        now + Duration::from_micros(speed),
                        request.id.0,
                        now,
                    )));
                }
                Effect::Notice {
                    port,
                    notice:
                        Notice {
                            signal: Signal::Ask(extent),
                            ..
                        },
                } => {
                    self.ask(now, port, extent);
                }
                Effect::Notice { .. } => {}
                Effect::Complete { port, completion } => self.complete(port, &completion),
            }
        }
    }

    fn ask(&mut self, now: Time, port: Port, extent: Extent) {
        self.asked += 1;
        if !self.answer[port.index()] {
            return;
        }
        let cache = &self.caches[port.index()];
        let held = pages(extent).all(|page| cache.contains_key(&page));
        for page in pages(extent).filter(|_| held) {
            assert_eq!(
                cache[&page],
                self.version(page),
                "page {page} of host {} is sent",
                port.0
            );
        }
        let extent = if held {
            extent
        } else {
            Extent::new(extent.start.0, 0)
        };
        let answer = Request {
            id: ANSWER,
            operation: Operation::Answer,
            extent,
            ..Request::default()
        };
        self.stage
            .submit(now, port, answer, &mut NodeContext::alone(&mut self.out));
    }

    fn complete(&mut self, port: Port, completion: &Completion) {
        assert_eq!(
            completion.breakdown.response(),
            completion.finished.since(completion.submitted)
        );
        if completion.id == ANSWER {
            return;
        }
        let number = completion.id.0;
        let (host, request, held) = self.came[number as usize].clone();
        assert_eq!((host, completion.status), (port, RequestStatus::Done));
        self.done.push((completion.finished, number));
        let cache = &mut self.caches[port.index()];
        // The array's read may be older than a write completed by the array meanwhile.
        for (page, held) in pages(request.extent).zip(held) {
            if request.operation != Operation::Read {
                self.medium.insert(page, number + 1);
            }
            match (request.operation, request.hints.direct) {
                (Operation::Read, true) => {}
                (Operation::Read, false) => {
                    cache.insert(page, held);
                }
                (Operation::Write, false) => {
                    cache.insert(page, number + 1);
                }
                _ => {
                    cache.remove(&page);
                }
            }
        }
    }

    /// Lets events due before `until` happen.
    fn run(&mut self, until: Time) {
        while let Some(now) = step(&mut self.stage, &mut self.array, &mut self.out, until) {
            self.collect(now);
        }
    }

    fn reading(&self, name: &str) -> f64 {
        let mut counters = Counters::default();
        self.stage.count(Time::ZERO, &mut counters);
        let mut readings = counters.layers.iter().flat_map(|layer| &layer.readings);
        readings.find(|reading| reading.name == name).unwrap().value
    }
}

fn keys(log_pages: u64) -> CooperationKeys {
    let (latency, mb_per_s) = (Duration::from_micros(200), 40.96);
    CooperationKeys {
        log: Bytes(log_pages * 4096),
        latency,
        mb_per_s,
    }
}

/// Host, microseconds since the last request, operation, first sector, sectors, direct, and a page
/// that the host evicts at this time.
type Step = (u16, u64, u8, u64, u64, bool, u64);

proptest! {
    #[test]
    fn nobody_is_sent_what_the_medium_does_not_hold(
        steps in prop::collection::vec(
            (0..HOSTS as u16, 0u64..900, 0u8..12, 0..PAGES * PAGE_SECTORS - 40, 1u64..40, any::<bool>(), 0..PAGES),
            1..150,
        ),
        answer in any::<[bool; HOSTS]>(),
        log_pages in prop_oneof![Just(0), 1..200u64],
        speeds_us in prop::collection::vec(0u64..3000, 1..8),
    ) {
        let mut friends = Friends::new(&keys(log_pages), answer, speeds_us);
        let mut now = Time::ZERO;
        let steps: Vec<Step> = steps;
        for &(host, gap_us, operation, start, sectors, direct, evicted) in &steps {
            now += Duration::from_micros(gap_us);
            friends.run(now);
            friends.caches[usize::from(host)].remove(&evicted);
            let operation = match operation {
                0..9 => Operation::Read,
                9..11 => Operation::Write,
                _ => Operation::Discard,
            };
            friends.submit(now, host, operation, Extent::new(start, sectors), direct && start % 3 == 0);
        }
        friends.run(Time::NEVER);
        let mut done: Vec<u64> = friends.done.iter().map(|&(_, number)| number).collect();
        done.sort_unstable();
        prop_assert_eq!(done, (0..friends.came.len() as u64).collect::<Vec<_>>());
        let [served, refused, silent] =
            ["served", "refused", "silent"].map(|what| friends.reading(&format!("cooperation_{what}")));
        prop_assert_eq!(served + refused + silent, friends.asked as f64);
        prop_assert_eq!(friends.went_down as f64, friends.came.len() as f64 - served);
        prop_assert!(log_pages > 0 || friends.asked == 0);
    }
}

#[test]
fn what_one_host_has_read_another_gets_from_it() {
    let mut friends = Friends::new(&keys(100), [true; HOSTS], vec![8000]);
    let extent = Extent::new(16, 16);
    let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
    friends.submit(at(0), 0, Operation::Read, extent, false);
    friends.run(at(100));
    friends.submit(at(100), 1, Operation::Read, extent, false);
    friends.run(at(200));
    // 10 µs of work, 8 KiB at 40.96 MB/s, round trip.
    assert_eq!(
        friends.done[1].0,
        at(100) + Duration::from_micros(10 + 200 + 200)
    );
    assert_eq!(
        (friends.went_down, friends.reading("cooperation_served")),
        (1, 1.0)
    );
    // The page was written since then, so the data come from the medium.
    friends.submit(at(200), 2, Operation::Write, Extent::new(24, 8), false);
    friends.run(at(300));
    friends.submit(at(300), 0, Operation::Read, extent, false);
    friends.run(at(400));
    assert_eq!((friends.went_down, friends.asked), (3, 1));
}

#[test]
fn who_does_not_answer_is_asked_once() {
    let mut friends = Friends::new(&keys(100), [false, true, true], vec![8000]);
    let mut now = Time::ZERO;
    for number in 0..6 {
        let host = u16::from(number % 2 == 1);
        friends.submit(
            now,
            host,
            Operation::Read,
            Extent::new(8 * (number / 2), 8),
            false,
        );
        now += Duration::from_millis(100);
        friends.run(now);
    }
    assert_eq!(
        (friends.asked, friends.reading("cooperation_silent")),
        (1, 1.0)
    );
    // A question without success delays the read by the round trip.
    let took: Vec<u64> = friends
        .done
        .iter()
        .map(|(at, _)| at.as_nanos() / 1000 % 100_000)
        .collect();
    assert_eq!(took, [8010, 8210, 8010, 8010, 8010, 8010]);
}

#[test]
fn a_host_sends_one_after_the_other() {
    let mut friends = Friends::new(&keys(100), [true; HOSTS], vec![8000]);
    friends.submit(Time::ZERO, 0, Operation::Read, Extent::new(0, 160), false);
    let later = Time::ZERO + Duration::from_millis(100);
    friends.run(later);
    for host in [1, 2] {
        friends.submit(later, host, Operation::Read, Extent::new(0, 160), false);
    }
    friends.run(Time::NEVER);
    // 80 KiB take 2 ms.
    let took: Vec<u64> = friends.done[1..]
        .iter()
        .map(|(at, _)| at.since(later).as_nanos() / 1000)
        .collect();
    assert_eq!(took, [2210, 4210]);
}
