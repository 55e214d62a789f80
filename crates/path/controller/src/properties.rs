//! A controller under random commands, above an array that answers in any order. Each write has a
//! version. The model knows the version of each sector in memory and on the medium.

use super::*;
use fullstroke_contract::{Breakdown, Effect, Extent, NodeContext, Port, RequestId, RequestStatus};
use fullstroke_units::{Random, Seed};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;

const CAPACITY: u64 = 256;

#[derive(Clone, Copy, Debug)]
struct SpacedRequest {
    gap_ns: u64,
    operation: Operation,
    start: u64,
    sectors: u64,
}

/// A write of the host. The version is the number of the write.
#[derive(Clone, Copy, Debug)]
struct HostWrite {
    extent: Extent,
    submitted: Time,
    completed: Option<Time>,
}

/// An I/O in flight, with the versions of its sectors.
struct OnItsWay {
    due: Time,
    submitted: Time,
    request: Request,
    versions: Vec<usize>,
}

struct ControllerModel {
    controller: Controller,
    out: Effects,
    random: Random,
    requests: Vec<Request>,
    writes: BTreeMap<usize, HostWrite>,
    on_their_way: Vec<OnItsWay>,
    medium: Vec<usize>,
    memory: Vec<Option<usize>>,
    completed: usize,
    strict: bool,
}

fn contains(extent: Extent, sector: u64) -> bool {
    extent.start.0 <= sector && sector < extent.end().0
}

impl ControllerModel {
    /// Returns the version of a sector that memory took last. Completed writes count, and so does
    /// the write being taken.
    fn taken(&self, sector: u64) -> usize {
        let completed = self
            .writes
            .iter()
            .rev()
            .find(|(_, write)| write.completed.is_some() && contains(write.extent, sector));
        let partly = self.controller.waits.writer().and_then(|slot| {
            let command = &self.controller.commands[slot];
            let extent = Extent::new(command.request.extent.start.0, command.taken);
            contains(extent, sector).then_some(command.request.id.0 as usize)
        });
        partly
            .unwrap_or(0)
            .max(completed.map_or(0, |(&version, _)| version))
    }

    fn effects(&mut self, now: Time) {
        let effects: Vec<Effect> = self.out.drain().collect();
        for effect in effects {
            match effect {
                Effect::Complete {
                    completion: done, ..
                } => {
                    assert_eq!(
                        done.breakdown.response(),
                        done.finished.since(done.submitted)
                    );
                    assert_eq!(done.status, RequestStatus::Done);
                    self.completed += 1;
                    if let Some(write) = self.writes.get_mut(&(done.id.0 as usize)) {
                        assert_eq!(write.completed.replace(done.finished), None);
                    }
                }
                Effect::Issue { request, .. } => self.begin(now, request),
                Effect::Notice { .. } => {}
            }
        }
    }

    fn begin(&mut self, now: Time, request: Request) {
        let sectors = request.extent.start.0..request.extent.end().0;
        let through = request.origin != Request::BACKGROUND;
        let versions = sectors.map(|sector| match request.operation {
            Operation::Write if through => request.origin as usize,
            Operation::Write => self.taken(sector),
            _ => self.medium[sector as usize],
        });
        let versions = versions.collect();
        if request.operation == Operation::Write && !through {
            let overlap = self.on_their_way.iter().any(|other| {
                other.request.operation == Operation::Write
                    && other.request.extent.start < request.extent.end()
                    && request.extent.start < other.request.extent.end()
            });
            assert!(
                !overlap,
                "two writes of one sector are on their way at once"
            );
        }
        let due = now + Duration::from_nanos(1 + self.random.below(3_000));
        self.on_their_way.push(OnItsWay {
            due,
            submitted: now,
            request,
            versions,
        });
    }

    /// Lets the I/O at `index` end.
    fn end(&mut self, index: usize) {
        let OnItsWay {
            due,
            submitted,
            request,
            mut versions,
        } = self.on_their_way.remove(index);
        let (start, end) = (
            request.extent.start.0 as usize,
            request.extent.end().0 as usize,
        );
        match request.operation {
            Operation::Write => self.medium[start..end].copy_from_slice(&versions),
            // The array may have read early or late.
            Operation::Read if self.random.chance(0.5) => {
                versions.copy_from_slice(&self.medium[start..end])
            }
            _ => {}
        }
        let breakdown = Breakdown {
            seek: due.since(submitted),
            ..Breakdown::default()
        };
        let completion = Completion {
            id: request.id,
            submitted,
            finished: due,
            status: RequestStatus::Done,
            breakdown,
        };
        self.controller.completed(
            due,
            Port::FIRST,
            completion,
            &mut NodeContext::alone(&mut self.out),
        );
        let brought = (request.operation == Operation::Read).then_some((request.extent, versions));
        self.after(due, brought);
    }

    /// Follows the effects of the controller, and checks the invariants.
    fn after(&mut self, now: Time, brought: Option<(Extent, Vec<usize>)>) {
        self.effects(now);
        assert!(
            self.controller.memory.buffered()
                <= self.controller.config.resolve(None).unwrap().write_blocks
        );
        for sector in 0..CAPACITY {
            let here = self
                .controller
                .memory
                .missing(Extent::new(sector, 1))
                .is_none();
            let taken = if self.controller.constants.write_back {
                self.taken(sector)
            } else {
                0
            };
            let place = &mut self.memory[sector as usize];
            match (&brought, here) {
                (_, false) => *place = None,
                (Some((extent, versions)), true)
                    if place.is_none() && contains(*extent, sector) =>
                {
                    *place = Some(versions[(sector - extent.start.0) as usize]);
                }
                _ => {}
            }
            if here {
                let newest = place.unwrap_or(0).max(taken);
                assert!(
                    place.is_some() || taken > 0,
                    "sector {sector} came from nowhere"
                );
                self.memory[sector as usize] = Some(newest);
            }
            if self.strict {
                self.check_fresh(sector);
            }
        }
    }

    /// Checks that a read of the sector now sees every completed write.
    fn check_fresh(&self, sector: u64) {
        let seen = self.memory[sector as usize].unwrap_or(self.medium[sector as usize]);
        let seen_until = match self.writes.get(&seen) {
            None => Some(Time::ZERO),
            Some(write) => write.completed,
        };
        let newer = self
            .writes
            .range(seen + 1..)
            .filter(|(_, write)| contains(write.extent, sector));
        for (version, write) in newer {
            let was_over = seen_until.is_some_and(|end| end < write.submitted || seen == 0);
            assert!(
                write.completed.is_none() || !was_over,
                "sector {sector}: version {version} has completed, but {seen} is seen"
            );
        }
    }

    fn submit(&mut self, now: Time, ask: SpacedRequest) {
        let version = self.requests.len() + 1;
        let extent = match ask.operation {
            Operation::Flush => Extent::default(),
            _ => Extent::new(ask.start, ask.sectors.min(CAPACITY - ask.start)),
        };
        let request = Request {
            id: RequestId(version as u64),
            origin: version as u64,
            operation: ask.operation,
            extent,
            ..Request::default()
        };
        self.requests.push(request);
        if ask.operation == Operation::Write {
            self.writes.insert(
                version,
                HostWrite {
                    extent,
                    submitted: now,
                    completed: None,
                },
            );
        }
        self.controller.submit(
            now,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut self.out),
        );
        self.after(now, None);
    }

    fn run(&mut self, asks: &[SpacedRequest]) {
        let (mut arrival, mut next) = (Time::ZERO, 0);
        loop {
            let asked = if next < asks.len() {
                arrival
            } else {
                Time::NEVER
            };
            let answered = self
                .on_their_way
                .iter()
                .map(|io| io.due)
                .min()
                .unwrap_or(Time::NEVER);
            let woken = self.controller.next_wake().at();
            let now = asked.min(answered).min(woken);
            if now == Time::NEVER {
                break;
            }
            if answered == now {
                let index = self
                    .on_their_way
                    .iter()
                    .position(|io| io.due == now)
                    .unwrap();
                self.end(index);
            } else if woken == now {
                self.controller
                    .wake(now, &mut NodeContext::alone(&mut self.out));
                self.after(now, None);
            } else {
                self.submit(now, asks[next]);
                next += 1;
                arrival = asks
                    .get(next)
                    .map_or(Time::NEVER, |ask| now + Duration::from_nanos(ask.gap_ns));
            }
        }
    }
}

fn asks(discards: bool) -> impl Strategy<Value = Vec<SpacedRequest>> {
    let last = if discards { 21 } else { 20 };
    let one =
        (0u64..3_000, 0..last, 0..CAPACITY, 1u64..48).prop_map(|(gap_ns, kind, start, sectors)| {
            SpacedRequest {
                gap_ns,
                operation: match kind {
                    0..9 => Operation::Read,
                    9..19 => Operation::Write,
                    19 => Operation::Flush,
                    _ => Operation::Discard,
                },
                start,
                sectors,
            }
        });
    prop::collection::vec(one, 1..120)
}

prop_compose! {
    fn configs()(
        blocks in 2u64..40, read_share in 0.0f64..1.0, block in prop::sample::select(vec![1u64, 4, 8, 64]),
        battery: bool, write_back in prop::option::of(any::<bool>()), depth in 1u32..40, array_depth in 1u32..20,
        discipline in prop::sample::select(vec!["fcfs", "sstf", "c-look"]), ahead in 0u64..3,
        overhead in 0u64..200, link in prop::option::of(50.0f64..5000.0), destage_depth in 1u32..5,
        unit in 1u64..5, high in 0.5f64..1.0, idle in 1u64..20_000,
    ) -> ControllerConfig {
        let mut keys = json!({
            "memory": blocks * block * 512, "read_share": read_share, "block": block * 512,
            "battery": battery, "queue_depth": depth, "array_depth": array_depth,
            "discipline": discipline, "command_overhead": format!("{overhead}ns"),
            "read_ahead": ahead * 8 * 512,
            "destage": { "depth": destage_depth, "unit": unit * block * 512, "high_watermark": high,
                         "low_watermark": 0.3, "idle_delay": format!("{idle}ns") },
        });
        if let Some(write_back) = write_back {
            keys["write_back"] = json!(write_back);
        }
        if let Some(link) = link {
            keys["link_mb_per_s"] = json!(link);
        }
        serde_json::from_value(keys).unwrap()
    }
}

fn model(config: &ControllerConfig, seed: u64, strict: bool) -> Option<ControllerModel> {
    Some(ControllerModel {
        controller: Controller::new(config, Sectors(CAPACITY), None).ok()?,
        out: Effects::new(),
        random: Seed(seed).stream("array"),
        requests: Vec::new(),
        writes: BTreeMap::new(),
        on_their_way: Vec::new(),
        medium: vec![0; CAPACITY as usize],
        memory: vec![None; CAPACITY as usize],
        completed: 0,
        strict,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_write_is_lost_and_reads_see_what_completed_before(
        config in configs(), asks in asks(false), seed: u64,
    ) {
        let Some(mut model) = model(&config, seed, true) else { return Err(TestCaseError::reject("refused")) };
        model.run(&asks);
        prop_assert_eq!(model.completed, asks.len());
        // All dirty data are destaged in the end.
        prop_assert_eq!(model.controller.memory.buffered(), 0);
        model.memory.fill(None);
        (0..CAPACITY).for_each(|sector| model.check_fresh(sector));
    }

    #[test]
    fn discards_leave_nothing_behind(config in configs(), asks in asks(true), seed: u64) {
        let Some(mut model) = model(&config, seed, false) else { return Err(TestCaseError::reject("refused")) };
        model.run(&asks);
        prop_assert_eq!(model.completed, asks.len());
        prop_assert_eq!(model.controller.memory.buffered(), 0);
        prop_assert_eq!(model.controller.gauge().queue_length, 0);
    }
}
