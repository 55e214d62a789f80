//! Tests of guests' disks in files: guarantees for every order of requests, with PULL and with
//! failures.

use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Completion, Counters, Effect, Effects, Extent, Hints, Node, NodeContext, Notice, Operation,
    Port, Request, RequestId, RequestStatus, Signal,
};
use fullstroke_files::FileSystemSite;
use fullstroke_memory::{MemoryKeys, PageCache, QueueLimits};
use fullstroke_units::{Bytes, Duration, Lbn, Sectors, Seed, Time};
use fullstroke_vfs::{Backing, DiskKeys, FileBacked, GuestDisk};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const DEVICE: u64 = (64 << 20) / 512;
/// Number of sectors of each of two disks. The second disk begins at the end of the first.
const DISK: u64 = (4 << 20) / 512 + 8;

fn disks(files: &Value, pages: u64) -> FileBacked {
    let (keys, files) = DiskKeys::read(files.as_object().unwrap()).unwrap();
    let disk = |name: &str, start| GuestDisk {
        name: name.into(),
        start: Lbn(start),
        sectors: Sectors(DISK),
    };
    let cache =
        PageCache::new(&MemoryKeys::of(Bytes(pages * 4096)), QueueLimits::default()).unwrap();
    let site = FileSystemSite {
        capacity: Sectors(DEVICE),
        seed: Seed(1),
        stripe: None,
        tracks: None,
    };
    let backing = Backing {
        files: &files,
        keys: &keys,
        cache,
        site,
        aged: true,
    };
    FileBacked::new(vec![disk("one", 0), disk("two", DISK)], backing).unwrap()
}

/// The guests' view: for each sector of all disks, the number of its write.
struct GuestView {
    node: FileBacked,
    now: Time,
    device: BTreeMap<(Time, u64), Request>,
    count: u64,
    service_us: Vec<u64>,
    fails: Vec<bool>,
    /// Newest version: written, completed, and on the device.
    written: Vec<u32>,
    answered: Vec<u32>,
    durable: Vec<u32>,
    /// Newest version with a failed write, and newest version with a failure reported by a flush.
    failed: Vec<u32>,
    told: Vec<u32>,
    /// Content of requests to the device: guests' sectors and their versions.
    carries: BTreeMap<u64, Vec<(usize, u32)>>,
    /// Requests of guests, with the completed versions at the arrival of each.
    asked: BTreeMap<u64, (Request, Vec<u32>, Time)>,
    /// Place on the device of each sector of guests, when it was last seen.
    seen: BTreeMap<usize, u64>,
}

impl GuestView {
    fn new(files: &Value, pages: u64) -> GuestView {
        let none = || vec![0; 2 * DISK as usize];
        GuestView {
            node: disks(files, pages),
            now: Time::ZERO,
            device: BTreeMap::new(),
            count: 0,
            service_us: vec![1000],
            fails: vec![false],
            written: none(),
            answered: none(),
            durable: none(),
            failed: none(),
            told: none(),
            carries: BTreeMap::new(),
            asked: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    fn call(&mut self, event: impl FnOnce(&mut FileBacked, Time, &mut NodeContext<'_>)) {
        let mut out = Effects::new();
        event(&mut self.node, self.now, &mut NodeContext::alone(&mut out));
        for effect in out.drain() {
            match effect {
                Effect::Issue { request, .. } => self.begin(request),
                Effect::Complete { completion, .. } => self.ended(completion),
                Effect::Notice { .. } => {}
            }
        }
    }

    /// Returns the guests' sectors in an extent of the device, and records their places.
    fn owned(&mut self, extent: Extent) -> Vec<usize> {
        let mut owned = Vec::new();
        self.node.owners(Port::FIRST, extent, &mut |port, above| {
            assert_eq!(port, Port::FIRST);
            owned.extend(above.start.0 as usize..above.end().0 as usize);
        });
        owned
    }

    fn begin(&mut self, request: Request) {
        let number = self.count;
        self.count += 1;
        assert!(request.extent.within(Sectors(DEVICE)), "{request:?}");
        assert!(
            !request.hints.direct,
            "what is below has no cache to pass by"
        );
        if request.operation == Operation::Write {
            for other in self
                .device
                .values()
                .filter(|other| other.operation == Operation::Write)
            {
                let apart = other.extent.end() <= request.extent.start
                    || request.extent.end() <= other.extent.start;
                assert!(
                    apart,
                    "two writes at once, which may end in any order: {other:?}, {request:?}"
                );
            }
            let owned = self.owned(request.extent);
            for &sector in &owned {
                let mut place = None;
                for at in request.extent.start.0..request.extent.end().0 {
                    if self.owned(Extent::new(at, 1)) == [sector] {
                        place = Some(at);
                    }
                }
                assert_eq!(
                    *self.seen.entry(sector).or_insert(place.unwrap()),
                    place.unwrap(),
                    "it moved"
                );
            }
            let carried = owned
                .into_iter()
                .map(|sector| (sector, self.written[sector]))
                .collect();
            self.carries.insert(number, carried);
        }
        let service = self.service_us[number as usize % self.service_us.len()];
        self.device
            .insert((self.now + Duration::from_micros(service), number), request);
    }

    fn ended(&mut self, completion: Completion) {
        let (request, answered, submitted) = self.asked.remove(&completion.id.0).expect("once");
        assert_eq!(completion.submitted, submitted);
        let took = completion.finished.since(submitted);
        assert_eq!(completion.breakdown.response(), took, "the parts add up");
        let range = request.extent.start.0 as usize..request.extent.end().0 as usize;
        let forced = request.hints.force_unit_access;
        match request.operation {
            Operation::Write if completion.status == RequestStatus::Done => {
                for sector in range.clone() {
                    self.answered[sector] = self.answered[sector].max(self.written[sector]);
                    if forced {
                        let there = self.durable[sector].max(self.told[sector]);
                        assert!(
                            there >= self.written[sector] || self.overlaps(&range),
                            "forced, and lost"
                        );
                    }
                }
            }
            Operation::Flush => {
                let disk = request.extent.start.0 as usize;
                for (sector, answered) in answered.iter().enumerate().skip(disk).take(DISK as usize)
                {
                    if completion.status != RequestStatus::Done {
                        self.told[sector] = self.told[sector].max(self.failed[sector]);
                    }
                    let known = self.durable[sector].max(self.told[sector]);
                    assert!(
                        known >= *answered,
                        "sector {sector}: version {answered} was acknowledged, {known} is known"
                    );
                }
            }
            _ => {}
        }
        // The guest knows of the failure of its own write.
        if request.operation == Operation::Write && completion.status != RequestStatus::Done {
            for sector in range {
                self.told[sector] = self.told[sector].max(self.written[sector]);
            }
        }
    }

    /// True if another write of these sectors is in flight.
    fn overlaps(&self, range: &std::ops::Range<usize>) -> bool {
        self.asked.values().any(|(other, ..)| {
            other.operation == Operation::Write
                && (other.extent.start.0 as usize) < range.end
                && range.start < other.extent.end().0 as usize
        })
    }

    /// Lets the device complete the next due request, or lets time pass.
    fn advance(&mut self, until: Time) {
        loop {
            let first = self.device.first_key_value().map(|(&key, _)| key);
            let wake = self.node.next_wake().at();
            let due = first.map_or(Time::NEVER, |(at, _)| at);
            let next = due.min(wake);
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            let Some(key) = first.filter(|_| due <= wake) else {
                self.call(|node, now, cx| node.wake(now, cx));
                continue;
            };
            let request = self.device.remove(&key).unwrap();
            let fails = request.operation != Operation::Flush
                && self.fails[key.1 as usize % self.fails.len()];
            for (sector, version) in self.carries.remove(&key.1).into_iter().flatten() {
                let place = if fails {
                    &mut self.failed
                } else {
                    &mut self.durable
                };
                place[sector] = place[sector].max(version);
            }
            let completion = Completion {
                id: request.id,
                submitted: self.now,
                finished: self.now,
                status: if fails {
                    RequestStatus::Lost
                } else {
                    RequestStatus::Done
                },
                ..Completion::default()
            };
            self.call(|node, now, cx| node.completed(now, Port::FIRST, completion, cx));
        }
    }

    fn ask(&mut self, operation: Operation, extent: Extent, hints: Hints) {
        let id = self.count + (self.asked.len() as u64) * 1_000_000 + self.now.as_nanos() % 999;
        let id = (id..).find(|id| !self.asked.contains_key(id)).unwrap();
        if operation == Operation::Write {
            // Two simultaneous writes of a sector may complete in any order.
            let range = extent.start.0 as usize..extent.end().0 as usize;
            if self.overlaps(&range) {
                return;
            }
            range.for_each(|sector| self.written[sector] += 1);
        }
        let request = Request {
            id: RequestId(id),
            origin: id,
            operation,
            extent,
            hints,
            ..Request::default()
        };
        self.asked
            .insert(id, (request, self.answered.clone(), self.now));
        self.call(|node, now, cx| node.submit(now, Port::FIRST, request, cx));
    }
}

#[derive(Clone, Debug)]
enum GuestStep {
    Read(u64, u64),
    Write {
        at: u64,
        sectors: u64,
        forced: bool,
        pulled: bool,
    },
    Flush(bool),
    PullAny(u64),
    Pull(u64, u64),
    Sleep(u64),
}

fn steps() -> impl Strategy<Value = Vec<GuestStep>> {
    let at = 0..2 * DISK - 64;
    let step = prop_oneof![
        3 => (at.clone(), 1..60u64).prop_map(|(at, sectors)| GuestStep::Read(at, sectors)),
        6 => (at, 1..60u64, prop::bool::weighted(0.2), prop::bool::weighted(0.2)).prop_map(
            |(at, sectors, forced, pulled)| GuestStep::Write { at, sectors, forced, pulled }
        ),
        2 => any::<bool>().prop_map(GuestStep::Flush),
        1 => (1..200u64).prop_map(GuestStep::PullAny),
        1 => (0..DEVICE - 4096, 1..4096u64).prop_map(|(at, sectors)| GuestStep::Pull(at, sectors)),
        3 => (0..40_000u64).prop_map(GuestStep::Sleep),
    ];
    prop::collection::vec(step, 1..60)
}

/// Returns an extent within one disk.
fn of_a_disk(at: u64, sectors: u64) -> Extent {
    let end = if at < DISK { DISK } else { 2 * DISK };
    Extent::new(at, sectors.min(end - at))
}

fn play(bench: &mut GuestView, steps: &[GuestStep]) {
    // The node learns the places of files.
    let notice = Notice::new(Signal::Push(Extent::new(0, 8)));
    bench.call(|node, now, cx| node.noticed(now, Port::FIRST, notice, cx));
    for step in steps {
        match *step {
            GuestStep::Read(at, sectors) => {
                bench.ask(Operation::Read, of_a_disk(at, sectors), Hints::default())
            }
            GuestStep::Write {
                at,
                sectors,
                forced,
                pulled,
            } => {
                let hints = Hints {
                    force_unit_access: forced,
                    pulled,
                    ..Hints::default()
                };
                bench.ask(Operation::Write, of_a_disk(at, sectors), hints);
            }
            GuestStep::Flush(second) => {
                let disk = Extent::new(u64::from(second) * DISK, 0);
                bench.ask(Operation::Flush, disk, Hints::default());
            }
            GuestStep::PullAny(sectors) => {
                let signal = Signal::Pull {
                    extent: None,
                    sectors: Sectors(sectors),
                };
                bench.call(|node, now, cx| node.noticed(now, Port::FIRST, Notice::new(signal), cx));
            }
            GuestStep::Pull(at, sectors) => {
                let extent = Extent::new(at, sectors);
                let signal = Signal::Pull {
                    extent: Some(extent),
                    sectors: extent.sectors,
                };
                bench.call(|node, now, cx| node.noticed(now, Port::FIRST, Notice::new(signal), cx));
            }
            GuestStep::Sleep(us) => {
                let until = bench.now + Duration::from_micros(us);
                bench.advance(until);
            }
        }
    }
    let until = bench.now + Duration::from_secs(20);
    bench.advance(until);
    assert!(
        bench.asked.is_empty(),
        "requests that nobody has answered: {:?}",
        bench.asked.keys()
    );
    for disk in 0..2 {
        bench.ask(
            Operation::Flush,
            Extent::new(disk * DISK, 0),
            Hints::default(),
        );
    }
    let until = bench.now + Duration::from_secs(20);
    bench.advance(until);
    assert!(bench.asked.is_empty(), "a flush that nobody has answered");
}

fn kinds() -> impl Strategy<Value = (&'static str, &'static str)> {
    let kind = prop::sample::select(vec!["ext2", "ext4", "xfs"]);
    (kind, prop::sample::select(vec!["none", "writeback"]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Every request completes once, and its parts add up. Data of a completed flush is on the
    /// device, or the guest was told of the failure.
    #[test]
    fn nothing_is_lost_between_a_guest_and_its_file(
        steps in steps(),
        (kind, cache) in kinds(),
        pages in 64u64..400,
        service_us in prop::collection::vec(50..20_000u64, 1..8),
        fails in prop::collection::vec(prop::bool::weighted(0.1), 1..40),
        failing in any::<bool>(),
    ) {
        let mut bench = GuestView::new(&json!({ "kind": kind, "cache": cache }), pages);
        bench.service_us = service_us;
        if failing {
            bench.fails = fails;
        }
        play(&mut bench, &steps);
    }
}

#[test]
fn a_page_that_nobody_wrote_is_nowhere_and_costs_no_request() {
    let mut bench = GuestView::new(&json!({ "kind": "ext2", "preallocation": "off" }), 400);
    bench.ask(Operation::Read, Extent::new(800, 8), Hints::default());
    bench.advance(Time::ZERO + Duration::from_secs(1));
    let data = |bench: &GuestView| {
        let mut counters = Counters::default();
        bench.node.count(bench.now, &mut counters);
        let layer = counters
            .layers
            .into_iter()
            .find(|layer| layer.layer.contains("guests"))
            .unwrap();
        layer
            .readings
            .iter()
            .find(|reading| reading.name == "files_data_requests")
            .unwrap()
            .value
    };
    assert_eq!(data(&bench), 0.0);
    bench.ask(Operation::Write, Extent::new(800, 8), Hints::default());
    bench.advance(Time::ZERO + Duration::from_secs(2));
    bench.ask(Operation::Read, Extent::new(800, 8), Hints::default());
    bench.advance(Time::ZERO + Duration::from_secs(3));
    assert_eq!(data(&bench), 2.0, "the write and the read behind it");
}

/// Returns the results of requests, in the order of their ends. `fails` tells the device's failures.
fn results(
    node: &mut FileBacked,
    now: &mut Time,
    asked: &[Request],
    fails: &mut dyn FnMut(&Request) -> bool,
) -> (Vec<RequestStatus>, Vec<Request>) {
    let (mut ended, mut below, mut out) = (Vec::new(), Vec::new(), Effects::new());
    for &request in asked {
        node.submit(
            *now,
            Port::FIRST,
            request,
            &mut NodeContext::alone(&mut out),
        );
        let before = ended.len();
        let until = *now + Duration::from_secs(90);
        let mut flying = Vec::new();
        loop {
            for effect in out.drain() {
                match effect {
                    Effect::Issue { request, .. } => flying.push(request),
                    Effect::Complete { completion, .. } => ended.push(completion.status),
                    Effect::Notice { .. } => {}
                }
            }
            if let Some(request) = flying.pop() {
                below.push(request);
                let completion = Completion {
                    id: request.id,
                    submitted: *now,
                    finished: *now,
                    status: if fails(&request) {
                        RequestStatus::Lost
                    } else {
                        RequestStatus::Done
                    },
                    ..Completion::default()
                };
                let mut cx = NodeContext::alone(&mut out);
                node.completed(*now, Port::FIRST, completion, &mut cx);
                continue;
            }
            let wake = node.next_wake().at();
            if wake > until {
                break;
            }
            *now = (*now).max(wake);
            node.wake(*now, &mut NodeContext::alone(&mut out));
        }
        *now = until;
        assert_eq!(ended.len(), before + 1, "{request:?} is answered once");
    }
    (ended, below)
}

fn guest_request(id: u64, operation: Operation, extent: Extent, hints: Hints) -> Request {
    Request {
        id: RequestId(id),
        origin: id,
        operation,
        extent,
        hints,
        ..Request::default()
    }
}

#[test]
fn a_flush_tells_the_guest_of_a_failed_write_back_once() {
    for kind in ["ext2", "ext4"] {
        let mut node = disks(&json!({ "kind": kind, "cache": "writeback" }), 400);
        let mut now = Time::ZERO;
        let write =
            |id, at| guest_request(id, Operation::Write, Extent::new(at, 64), Hints::default());
        let flush = |id, disk| {
            let disk = Extent::new(disk * DISK, 0);
            guest_request(id, Operation::Flush, disk, Hints::default())
        };
        let mut fails_data = |request: &Request| {
            request.operation == Operation::Write && request.extent.sectors.0 >= 64
        };
        let (written, _) = results(&mut node, &mut now, &[write(1, 0)], &mut fails_data);
        assert_eq!(written, [RequestStatus::Done], "{kind}: it is in memory");
        let mut never = |_: &Request| false;
        let asked = [
            flush(2, 1),
            flush(3, 0),
            flush(4, 0),
            write(5, 640),
            flush(6, 0),
        ];
        let (ended, _) = results(&mut node, &mut now, &asked, &mut never);
        use RequestStatus::{Done, Lost};
        assert_eq!(
            ended,
            [Done, Lost, Done, Done, Done],
            "{kind}: the flush of the other disk, the first own flush, and the later requests"
        );
    }
}

#[test]
fn a_write_back_has_the_workload_of_the_last_writer_of_its_file() {
    let mut node = disks(&json!({ "kind": "ext2", "cache": "writeback" }), 400);
    let mut now = Time::ZERO;
    let write = |id, at, workload| {
        let hints = Hints {
            workload,
            ..Hints::default()
        };
        guest_request(id, Operation::Write, Extent::new(at, 64), hints)
    };
    // Each write is written back before the next: the helper lets 90 s pass.
    let asked = [write(1, 0, 3), write(2, DISK, 7), write(3, 640, 5)];
    let (_, below) = results(&mut node, &mut now, &asked, &mut |_| false);
    let data = below
        .iter()
        .filter(|request| request.operation == Operation::Write && request.extent.sectors.0 >= 64);
    let workloads: Vec<u16> = data.map(|request| request.hints.workload).collect();
    assert_eq!(workloads, [3, 7, 5]);
}

#[test]
fn what_cannot_be_is_refused_with_its_key() {
    for (files, key, part) in [
        (json!({ "kind": "raw" }), "kind", "a file system"),
        (
            json!({ "kind": "ext2", "align": "tracks" }),
            "align",
            "guests",
        ),
        (
            json!({ "kind": "ext2", "call_cost": "1ms" }),
            "call_cost",
            "`cost` of [shared]",
        ),
        (
            json!({ "kind": "ext2", "cache": "some" }),
            "cache",
            "writeback",
        ),
        (
            json!({ "kind": "ext2", "prealloc": "off" }),
            "prealloc",
            "unknown key",
        ),
    ] {
        let table: Keys = files.as_object().cloned().unwrap();
        let error = DiskKeys::read(&table).unwrap_err();
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(part), "{error}");
    }
    let (keys, files) = DiskKeys::read(json!({ "kind": "ext2" }).as_object().unwrap()).unwrap();
    let cache = PageCache::new(&MemoryKeys::of(Bytes(400 * 4096)), QueueLimits::default()).unwrap();
    let site = FileSystemSite {
        capacity: Sectors(DEVICE),
        seed: Seed(1),
        stripe: None,
        tracks: None,
    };
    let backing = Backing {
        files: &files,
        keys: &keys,
        cache,
        site,
        aged: false,
    };
    let disk = GuestDisk {
        name: "one".into(),
        start: Lbn(0),
        sectors: Sectors(DEVICE),
    };
    let error = FileBacked::new(vec![disk], backing).err().unwrap();
    assert!(error.message.contains("16384 pages are needed"), "{error}");
}
