//! A device and closed loops for tests of an elevator.

use super::{Elevator, ElevatorBuilder, ElevatorSite, REGISTRY};
use crate::TickClock;
use crate::block::{BlockLayer, Flushing, HostTime, LayerSettings, Plugging, Tags};
use fullstroke_contract::registry::{Keys, PolicyEntry, find};
use fullstroke_contract::{
    Breakdown, Completion, Effect, Effects, Extent, Gauge, Hints, LayersBelow, Node, NodeContext,
    Operation, Port, PriorityClass, Request, RequestId, RequestStatus, TrackExtent, TrackTable,
};
use fullstroke_units::{Cylinder, Duration, Lbn, Sectors, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Number of addresses of the model device.
pub(crate) const CAPACITY: Sectors = Sectors(100_000_000);

/// Site for tests without a run of the elevator.
pub(crate) const SITE: ElevatorSite = ElevatorSite {
    queue_depth: 1,
    nr_requests: 128,
    capacity: CAPACITY,
    drive: true,
    clock: TickClock::EXACT,
};

/// One key of an elevator, with two values of the key. Under the load the two values must lead to
/// different orders or times.
pub(crate) struct Tunable {
    /// The key.
    pub(crate) key: &'static str,
    /// The two values, as JSON.
    pub(crate) values: [&'static str; 2],
    /// Other keys of the elevator, as a JSON object.
    pub(crate) others: &'static str,
    /// The load.
    pub(crate) load: Load,
}

/// Processes, and the queue depth of their common device.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Largest number of requests in flight.
    pub(crate) queue_depth: u32,
    /// The processes of the load.
    pub(crate) processes: Vec<LoopProcess>,
}

/// A closed loop with a fixed number of outstanding requests. A new request follows each completion
/// after the think time, `count` requests in all. Each request starts `stride` sectors after the
/// start of the one before. With `span`, requests start at scattered places within `span` sectors
/// from `start`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopProcess {
    pub(crate) process: u32,
    pub(crate) class: PriorityClass,
    pub(crate) level: u8,
    pub(crate) operation: Operation,
    pub(crate) synchronous: bool,
    pub(crate) stripe_queue: u32,
    pub(crate) begins: Time,
    pub(crate) start: u64,
    pub(crate) stride: i64,
    pub(crate) span: u64,
    pub(crate) sectors: u64,
    pub(crate) outstanding: u32,
    pub(crate) think: Duration,
    pub(crate) count: u32,
}

impl Default for LoopProcess {
    fn default() -> LoopProcess {
        LoopProcess {
            process: 1,
            class: PriorityClass::BestEffort,
            level: 4,
            operation: Operation::Read,
            synchronous: true,
            stripe_queue: 0,
            begins: Time::ZERO,
            start: 0,
            stride: 8,
            span: 0,
            sectors: 8,
            outstanding: 1,
            think: Duration::ZERO,
            count: 100,
        }
    }
}

impl LoopProcess {
    pub(crate) fn extent(&self, number: u32) -> Extent {
        if self.operation == Operation::Flush {
            // A flush has no address.
            return Extent::default();
        }
        let offset = match self.span {
            0 => i64::from(number) * self.stride,
            span => {
                ((scramble(u64::from(self.process) << 32 | u64::from(number)) % span) & !7) as i64
            }
        };
        Extent::new(
            self.start.saturating_add_signed(offset) % (CAPACITY.0 - self.sectors),
            self.sectors,
        )
    }

    fn request(&self, number: u32) -> Request {
        let LoopProcess {
            process,
            class,
            level,
            synchronous,
            stripe_queue,
            ..
        } = *self;
        Request {
            operation: self.operation,
            extent: self.extent(number),
            hints: Hints {
                process,
                class,
                level,
                synchronous,
                stripe_queue,
                ..Hints::default()
            },
            ..Request::default()
        }
    }
}

fn scramble(number: u64) -> u64 {
    // splitmix64 (Steele, Lea, Flood, 2014): scattered places without a state that the order of
    // calls would change.
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A dispatched request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) at: Time,
    pub(crate) extent: Extent,
    pub(crate) operation: Operation,
    /// Process of the first part.
    pub(crate) process: u32,
}

/// Record of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunRecord {
    /// Dispatched requests, in order.
    pub(crate) sent: Vec<Sent>,
    /// Completions, in order: process, number of its request, time.
    pub(crate) done: Vec<(u32, u32, Time)>,
    /// Number of submitted requests.
    pub(crate) submitted: usize,
}

/// Returns the dispatches of `name` with these keys (a JSON object) under a load.
pub(crate) fn run(name: &str, keys: &str, load: &Load) -> Vec<Sent> {
    run_entry(
        find("elevator", REGISTRY, "elevator", name).unwrap(),
        keys,
        load,
    )
    .sent
}

/// Returns the starts of the dispatches of `name`, in order. A first request ends at `here`. The
/// others arrive while it is in flight.
pub(crate) fn order(name: &str, keys: &str, starts: &[u64], here: u64) -> Vec<u64> {
    let one = |start: u64, begins: u64| LoopProcess {
        start,
        sectors: 8,
        count: 1,
        begins: Time::from_nanos(begins),
        ..LoopProcess::default()
    };
    let first = one(here - 8, 0);
    let others = starts.iter().map(|&start| one(start, 1));
    let load = Load {
        queue_depth: 1,
        processes: std::iter::once(first).chain(others).collect(),
    };
    run(name, keys, &load)
        .iter()
        .skip(1)
        .map(|sent| sent.extent.start.0)
        .collect()
}

/// Runs an elevator with these keys to the end of the load.
pub(crate) fn run_entry(
    entry: &PolicyEntry<ElevatorBuilder>,
    keys: &str,
    load: &Load,
) -> RunRecord {
    run_flushing(entry, keys, load, Flushing::Drain)
}

/// As [`run_entry`], with this effect of flushes on other requests.
pub(crate) fn run_flushing(
    entry: &PolicyEntry<ElevatorBuilder>,
    keys: &str,
    load: &Load,
    flush: Flushing,
) -> RunRecord {
    // The kernels with barriers have one plug for the queue. The processes of a load begin at the
    // same instant, and the elevator sees all of them before the first dispatch.
    let plug = match flush {
        Flushing::Drain => Plugging::Queue,
        Flushing::Sequence => Plugging::Task,
    };
    let settings = LayerSettings {
        flush,
        plug,
        ..settings(load.queue_depth)
    };
    let layer = BlockLayer::new(build(entry, keys, load.queue_depth), &settings, None);
    ElevatorBench {
        flush,
        ..ElevatorBench::new(layer, load)
    }
    .run(Time::NEVER)
}

/// Builds an elevator with these keys for the model device.
pub(crate) fn build(
    entry: &PolicyEntry<ElevatorBuilder>,
    keys: &str,
    queue_depth: u32,
) -> Box<dyn Elevator> {
    build_at(TickClock::EXACT, entry, keys, queue_depth)
}

/// As [`build`], in a host with this clock.
pub(crate) fn build_at(
    clock: TickClock,
    entry: &PolicyEntry<ElevatorBuilder>,
    keys: &str,
    queue_depth: u32,
) -> Box<dyn Elevator> {
    let keys: Keys = serde_json::from_str(keys).unwrap();
    let site = ElevatorSite {
        queue_depth,
        clock,
        ..SITE
    };
    (entry.build.build)(&keys, &site).unwrap_or_else(|error| panic!("{}: {error}", entry.name))
}

/// Returns the settings of a layer above the model device.
pub(crate) fn settings(queue_depth: u32) -> LayerSettings {
    LayerSettings {
        queue_depth,
        tags: Tags::PerDirection(128),
        sectors_max: Sectors(1024),
        plug: Plugging::Task,
        unplug_threshold: 32,
        unplug_delay: Duration::ZERO,
        clock: TickClock::EXACT,
        capacity: CAPACITY,
        stripe_aware_merging: false,
        per_member_anticipation: false,
        flush: Flushing::Drain,
        fua: true,
        read_target: None,
        time: HostTime::default(),
        ahead: false,
    }
}

/// Track table of the model device: tracks of a thousand sectors, one track a cylinder, one
/// revolution in 6 ms.
pub(crate) struct ModelTracks;

const TRACK: u64 = 1000;
const REVOLUTION_NS: u64 = 6_000_000;

/// Returns the seek time: up to 8 ms, in proportion to the square root of the distance.
fn seek(sectors: u64) -> Duration {
    Duration::from_millis_f64((sectors as f64 / CAPACITY.0 as f64).sqrt() * 8.0)
}

impl TrackTable for ModelTracks {
    fn capacity(&self) -> Sectors {
        CAPACITY
    }
    fn track_at(&self, lbn: Lbn) -> TrackExtent {
        let first = Lbn(lbn.0 / TRACK * TRACK);
        TrackExtent {
            first,
            sectors: Sectors(TRACK),
            cylinder: self.cylinder_of(lbn),
            surface: 0,
        }
    }
    fn cylinder_of(&self, lbn: Lbn) -> Cylinder {
        Cylinder((lbn.0.min(CAPACITY.0 - 1) / TRACK) as u32)
    }
    fn positioning(&self, now: Time, arm: &Gauge, lbn: Lbn, _: bool) -> Duration {
        let seek = self.seek_at_least(self.cylinder_of(lbn).0.abs_diff(arm.head.0));
        let landing = (now + seek).as_nanos() % REVOLUTION_NS;
        let start = lbn.0 % TRACK * REVOLUTION_NS / TRACK;
        seek + Duration::from_nanos((start + REVOLUTION_NS - landing) % REVOLUTION_NS)
    }
    fn seek_at_least(&self, cylinders: u32) -> Duration {
        seek(u64::from(cylinders) * TRACK)
    }
}

/// A layer, the device below and the processes above.
///
/// The device has one arm and serves its requests in order of arrival. The time of a request is 0.2
/// ms, a seek of up to 8 ms in proportion to the square root of the distance, and 5 us a sector.
pub(crate) struct ElevatorBench {
    layer: BlockLayer,
    processes: Vec<LoopProcess>,
    next_number: Vec<u32>,
    /// Arrivals by time and order, with the process.
    arrivals: BTreeMap<(Time, u64), usize>,
    order: u64,
    /// By id: the index of the process, and the number of its request.
    open: BTreeMap<u64, (usize, u32)>,
    device: VecDeque<(Request, Time)>,
    /// The request in service, with the start and the end of its service.
    serving: Option<(Request, Time, Time)>,
    head: u64,
    tables: [Option<Arc<dyn TrackTable>>; 1],
    /// Process whose completion ends the run.
    awaited: Option<u32>,
    /// Effect of a flush on other requests.
    flush: Flushing,
    /// Largest number of requests in flight.
    queue_depth: u32,
    ran: RunRecord,
}

impl ElevatorBench {
    pub(crate) fn new(layer: BlockLayer, load: &Load) -> ElevatorBench {
        let mut bench = ElevatorBench {
            layer,
            processes: load.processes.clone(),
            next_number: vec![0; load.processes.len()],
            arrivals: BTreeMap::new(),
            order: 0,
            open: BTreeMap::new(),
            device: VecDeque::new(),
            serving: None,
            head: 0,
            tables: [Some(Arc::new(ModelTracks))],
            awaited: None,
            flush: Flushing::Drain,
            queue_depth: load.queue_depth,
            ran: RunRecord::default(),
        };
        for (index, process) in load.processes.iter().enumerate() {
            for _ in 0..process.outstanding {
                bench.plan(index, process.begins);
            }
        }
        bench
    }

    /// Runs until all requests are done, or until `end`. Returns true if a request of `process` was
    /// done by then.
    pub(crate) fn serves(mut self, process: u32, end: Time) -> bool {
        self.awaited = Some(process);
        self.run(end).done.iter().any(|&(done, ..)| done == process)
    }

    /// Runs until all requests are done, or until `end`.
    pub(crate) fn run(mut self, end: Time) -> RunRecord {
        let mut out = Effects::new();
        loop {
            let arrival = self
                .arrivals
                .keys()
                .next()
                .map_or(Time::NEVER, |&(at, _)| at);
            let device = self.serving.map_or(Time::NEVER, |(_, _, until)| until);
            let wake = self.layer.next_wake().at();
            let now = arrival.min(device).min(wake);
            let served = |process| {
                self.ran
                    .done
                    .last()
                    .is_some_and(|&(done, ..)| done == process)
            };
            if now == Time::NEVER || now > end || self.awaited.is_some_and(served) {
                break;
            }
            // One event at a time, in a fixed order among events of one instant, so that a run
            // repeats.
            if arrival == now {
                self.submit(now, &mut out);
            } else if wake == now {
                let gauges = self.gauges();
                self.layer.wake(
                    now,
                    &mut NodeContext {
                        below: LayersBelow::new(&gauges, &self.tables),
                        out: &mut out,
                    },
                );
            } else {
                self.serve(now, &mut out);
            }
            self.collect(now, &mut out);
        }
        // A run that was cut off may leave requests behind.
        if end == Time::NEVER {
            assert_eq!(
                self.layer.gauge().queue_length,
                0,
                "the layer has lost a request"
            );
        }
        self.ran
    }

    fn gauges(&self) -> [Gauge; 1] {
        let head = ModelTracks.cylinder_of(Lbn(self.head));
        [Gauge {
            queue_length: self.device.len() as u32,
            head,
            ..Gauge::default()
        }]
    }

    fn plan(&mut self, index: usize, at: Time) {
        if self.next_number[index] < self.processes[index].count {
            self.next_number[index] += 1;
            self.order += 1;
            self.arrivals.insert((at, self.order), index);
        }
    }

    fn submit(&mut self, now: Time, out: &mut Effects) {
        let (_, index) = self.arrivals.pop_first().unwrap();
        let id = self.ran.submitted as u64;
        let number = self.open_number(index);
        self.open.insert(id, (index, number));
        self.ran.submitted += 1;
        let request = Request {
            id: RequestId(id),
            origin: id,
            ..self.processes[index].request(number)
        };
        let gauges = self.gauges();
        self.layer.submit(
            now,
            Port::FIRST,
            request,
            &mut NodeContext {
                below: LayersBelow::new(&gauges, &self.tables),
                out,
            },
        );
    }

    /// Returns the number of the next request: requests of one process arrive in the order of their
    /// numbers.
    fn open_number(&self, index: usize) -> u32 {
        let ahead = self
            .arrivals
            .values()
            .filter(|&&other| other == index)
            .count() as u32;
        self.next_number[index] - 1 - ahead
    }

    fn serve(&mut self, now: Time, out: &mut Effects) {
        let (request, since, _) = self.serving.take().unwrap();
        let (_, submitted) = self.device.pop_front().unwrap();
        let breakdown = Breakdown {
            queue: since.since(submitted),
            transfer: now.since(since),
            ..Breakdown::default()
        };
        let completion = Completion {
            id: request.id,
            submitted,
            finished: now,
            status: RequestStatus::Done,
            breakdown,
        };
        let gauges = self.gauges();
        self.layer.completed(
            now,
            Port::FIRST,
            completion,
            &mut NodeContext {
                below: LayersBelow::new(&gauges, &self.tables),
                out,
            },
        );
        self.start(now);
    }

    fn start(&mut self, now: Time) {
        if let (None, Some(&(request, _))) = (self.serving, self.device.front()) {
            let distance = self.head.abs_diff(request.extent.start.0);
            let transfer = Duration::from_micros(5) * request.extent.sectors.0;
            self.head = request.extent.end().0;
            self.serving = Some((
                request,
                now,
                now + Duration::from_micros(200) + seek(distance) + transfer,
            ));
        }
    }

    /// Checks the order of flushes. One flush is in flight at a time and counts in the queue depth.
    /// A barrier has the device for itself: all earlier requests have completed, and no later one
    /// has begun.
    fn check_order(&self, request: &Request) {
        assert!(
            self.device.len() < self.queue_depth as usize,
            "more than the depth"
        );
        if self.flush == Flushing::Sequence {
            let another = self
                .device
                .iter()
                .any(|(other, _)| other.operation == Operation::Flush);
            assert!(
                request.operation != Operation::Flush || !another,
                "two flushes at once"
            );
            return;
        }
        if request.operation == Operation::Flush {
            assert!(self.device.is_empty(), "a flush met requests in the device");
            assert!(
                self.open.range(..request.origin).next().is_none(),
                "a flush passed a request"
            );
            let behind = self.ran.submitted as u64 - request.origin;
            assert_eq!(
                self.open.range(request.origin..).count() as u64,
                behind,
                "a request passed a flush"
            );
        } else {
            let flushing = |(other, _): &(Request, Time)| other.operation == Operation::Flush;
            assert!(
                !self.device.iter().any(flushing),
                "a request was sent while a flush was under way"
            );
        }
    }

    fn collect(&mut self, now: Time, out: &mut Effects) {
        for effect in out.drain().collect::<Vec<_>>() {
            match effect {
                Effect::Issue { request, .. } => {
                    self.check_order(&request);
                    self.device.push_back((request, now));
                    let Request {
                        extent,
                        operation,
                        hints,
                        ..
                    } = request;
                    self.ran.sent.push(Sent {
                        at: now,
                        extent,
                        operation,
                        process: hints.process,
                    });
                }
                Effect::Complete { completion, .. } => {
                    let (index, number) =
                        self.open.remove(&completion.id.0).expect("completed once");
                    let process = self.processes[index];
                    assert_eq!(
                        completion.breakdown.response(),
                        now.since(completion.submitted)
                    );
                    self.ran.done.push((process.process, number, now));
                    self.plan(index, now + process.think);
                }
                Effect::Notice { notice, .. } => panic!("{notice:?}"),
            }
        }
        self.start(now);
    }
}
