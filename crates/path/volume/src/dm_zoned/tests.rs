//! dm-zoned above a drive that keeps the version of each block and refuses writes out of order.

use super::config::BLOCK;
use super::{DmZoned, DmZonedConfig, DriveZones};
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Completion, Counters, Effect, Effects, Extent, Hints, Node, NodeContext, Operation, Port,
    Request, RequestId, RequestStatus,
};
use fullstroke_units::{Duration, Sectors, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Blocks of a zone. More than a word, so that bitmaps have several.
const BLOCKS: u64 = 96;
const ZONES: u32 = 20;
const CONVENTIONAL: u32 = 8;

fn keys(change: impl FnOnce(&mut DmZonedConfig)) -> Keys {
    let mut config = DmZonedConfig {
        reserved: 2,
        zones: Some(DriveZones {
            sectors: BLOCKS * BLOCK,
            count: ZONES,
            conventional: CONVENTIONAL,
            full: 0,
        }),
        ..DmZonedConfig::default()
    };
    change(&mut config);
    let Value::Object(keys) = json!(config) else {
        unreachable!("a table was written")
    };
    keys
}

fn drive_sectors() -> Sectors {
    Sectors(u64::from(ZONES) * BLOCKS * BLOCK)
}

/// dm-zoned above a drive with bytes: one version a block.
struct Bench {
    node: DmZoned,
    out: Effects,
    now: Time,
    /// Version of each block of the drive.
    medium: Vec<u64>,
    /// Write pointer of each zone in blocks.
    pointers: Vec<u64>,
    /// Requests of the drive in flight, with the versions that a read has found at its begin.
    flying: Vec<(Request, Vec<u64>)>,
    /// Versions of copies, by block in the zone, between the read and the write.
    copied: Vec<(u64, u64)>,
    done: Vec<Completion>,
    /// Newest version written to each block of the device.
    written: Vec<u64>,
    /// Results of reads: (block of the device, version) by request.
    reads: Vec<(u64, u64, Vec<u64>)>,
    next: u64,
}

impl Bench {
    fn new(change: impl FnOnce(&mut DmZonedConfig)) -> Bench {
        let keys = keys(change);
        let node = DmZoned::new(&keys, drive_sectors()).unwrap();
        let all = (node.map.format.capacity.0 / BLOCK) as usize;
        let full = u64::from(node.map.format.full);
        let mut medium = vec![0; (u64::from(ZONES) * BLOCKS) as usize];
        let mut pointers = vec![0; ZONES as usize];
        let mut written = vec![0; all];
        for block in 0..full * BLOCKS {
            // Full zones begin with version 1.
            medium[(u64::from(CONVENTIONAL) * BLOCKS + block) as usize] = 1;
            written[block as usize] = 1;
        }
        for zone in 0..full as usize {
            pointers[CONVENTIONAL as usize + zone] = BLOCKS;
        }
        Bench {
            node,
            out: Effects::new(),
            now: Time::ZERO,
            medium,
            pointers,
            flying: Vec::new(),
            copied: Vec::new(),
            done: Vec::new(),
            written,
            reads: Vec::new(),
            next: 10,
        }
    }

    /// Submits a request for blocks of the device.
    fn submit(&mut self, operation: Operation, block: u64, blocks: u64) -> u64 {
        let id = self.next;
        self.next += 1;
        let range = block as usize..(block + blocks) as usize;
        match operation {
            Operation::Write => self.written[range].fill(id),
            Operation::Discard => self.written[range].fill(0),
            Operation::Read => {
                let expected = self.written[range].to_vec();
                self.reads.push((id, block, expected));
            }
            _ => {}
        }
        let request = Request {
            id: RequestId(id),
            origin: id,
            operation,
            extent: Extent::new(block * BLOCK, blocks * BLOCK),
            hints: Hints::default(),
            ..Request::default()
        };
        let mut cx = NodeContext::alone(&mut self.out);
        self.node.submit(self.now, Port::FIRST, request, &mut cx);
        self.take();
        id
    }

    /// Takes the effects: I/Os reach the drive in order.
    fn take(&mut self) {
        let effects: Vec<Effect> = self.out.drain().collect();
        for effect in effects {
            match effect {
                Effect::Issue { request, .. } => self.reach(request),
                Effect::Complete { completion, .. } => self.done.push(completion),
                Effect::Notice { .. } => {}
            }
        }
        self.node.map.check();
    }

    /// The drive takes a request.
    fn reach(&mut self, request: Request) {
        let (start, end) = (
            request.extent.start.0 / BLOCK,
            request.extent.end().0 / BLOCK,
        );
        let zone = start / BLOCKS;
        let mut found = Vec::new();
        match request.operation {
            Operation::Read => {
                found = self.medium[start as usize..end as usize].to_vec();
                let of_data = zone >= u64::from(self.node.map.format.first());
                if of_data && request.origin == Request::BACKGROUND {
                    let versions =
                        (start..end).map(|block| (block % BLOCKS, self.medium[block as usize]));
                    self.copied.extend(versions);
                }
            }
            Operation::Write => {
                assert_eq!(
                    zone,
                    (end - 1) / BLOCKS,
                    "a write crosses the border of a zone"
                );
                if zone >= u64::from(CONVENTIONAL) {
                    assert_eq!(start % BLOCKS, self.pointers[zone as usize], "zone {zone}");
                    self.pointers[zone as usize] += end - start;
                }
                if zone >= u64::from(self.node.map.format.first()) {
                    for block in start..end {
                        self.medium[block as usize] = match request.origin {
                            Request::BACKGROUND => self.copy_of(block % BLOCKS),
                            id => id,
                        };
                    }
                }
            }
            Operation::Discard => {
                assert_eq!((start % BLOCKS, end - start), (0, BLOCKS), "no whole zone");
                self.pointers[zone as usize] = 0;
                for block in start..end {
                    // A read in flight must not lose its data.
                    let read = |other: &(Request, Vec<u64>)| {
                        let extent = other.0.extent;
                        other.0.operation.transfers()
                            && (extent.start.0 / BLOCK..extent.end().0 / BLOCK).contains(&block)
                    };
                    assert!(!self.flying.iter().any(read), "zone {zone} is in use");
                    self.medium[block as usize] = u64::MAX;
                }
            }
            _ => {}
        }
        self.flying.push((request, found));
    }

    /// Version of a copied block: of the newest read. Zeros of gaps have no read.
    fn copy_of(&mut self, block: u64) -> u64 {
        let at = self.copied.iter().rposition(|copied| copied.0 == block);
        at.map_or(0, |at| self.copied.remove(at).1)
    }

    /// Ends an I/O of the drive.
    fn end(&mut self, index: usize) {
        let (request, found) = self.flying.remove(index);
        self.now += Duration::from_millis(1);
        if request.operation == Operation::Read {
            let start = request.extent.start.0 / BLOCK;
            for (block, &version) in (start..).zip(&found) {
                let now = self.medium[block as usize];
                assert!(now == version || request.origin != Request::BACKGROUND);
                self.check_read(&request, block, version);
            }
        }
        let completion = Completion {
            id: request.id,
            submitted: self.now,
            finished: self.now,
            status: RequestStatus::Done,
            ..Completion::default()
        };
        let mut cx = NodeContext::alone(&mut self.out);
        self.node
            .completed(self.now, Port::FIRST, completion, &mut cx);
        self.take();
    }

    /// Compares a block that a read of the host has found with the newest write before the read.
    fn check_read(&mut self, request: &Request, block: u64, version: u64) {
        let Some(read) = self.reads.iter_mut().find(|read| read.0 == request.origin) else {
            return;
        };
        let place = block % BLOCKS;
        // The same place in the zone belongs to the same place in the chunk.
        let first = read.1;
        let at = (0..read.2.len() as u64).filter(|at| (first + at) % BLOCKS == place);
        let expected: Vec<u64> = at.map(|at| read.2[at as usize]).collect();
        assert!(
            expected.contains(&version),
            "read {} found version {version} of block {place} of a chunk; expected one of {expected:?}",
            read.0
        );
    }

    /// Lets time pass until nothing is in flight.
    fn settle(&mut self, order: &mut dyn FnMut(usize) -> usize) {
        for _ in 0..200_000 {
            if !self.flying.is_empty() {
                let index = order(self.flying.len());
                self.end(index);
                continue;
            }
            let wake = self.node.next_wake();
            if !wake.is_work() {
                return;
            }
            self.wake(wake.at());
        }
        panic!(
            "dm-zoned does not come to rest: {} requests wait",
            self.node.waiting.len()
        );
    }

    fn wake(&mut self, at: Time) {
        self.now = self.now.max(at);
        let mut cx = NodeContext::alone(&mut self.out);
        self.node.wake(self.now, &mut cx);
        self.take();
    }

    /// Lets the device be idle.
    fn idle(&mut self, until: Duration) {
        let until = self.now + until;
        loop {
            self.settle(&mut |_| 0);
            let at = self.node.next_wake().at();
            if at > until {
                break;
            }
            self.wake(at);
        }
        self.now = self.now.max(until);
    }

    /// Reads the whole device, block by block, and compares.
    fn verify(&mut self) {
        for chunk in 0..self.node.map.format.chunks {
            for block in 0..BLOCKS {
                let lbn = u64::from(chunk) * BLOCKS + block;
                let flown = self.flying.len();
                self.submit(Operation::Read, lbn, 1);
                let found: Vec<u64> = self.flying[flown..]
                    .iter()
                    .filter(|flying| flying.0.origin != Request::BACKGROUND)
                    .flat_map(|flying| flying.1.clone())
                    .collect();
                // Metadata may be read first.
                if found.is_empty() && self.written[lbn as usize] != 0 {
                    let before = self.done.len();
                    self.settle(&mut |_| 0);
                    assert!(self.done.len() > before, "block {lbn} has no data");
                } else if !found.is_empty() {
                    assert_eq!(found, [self.written[lbn as usize]], "block {lbn}");
                }
                self.settle(&mut |_| 0);
            }
        }
    }

    fn reading(&self, name: &str) -> f64 {
        let mut counters = Counters::default();
        self.node.count(self.now, &mut counters);
        let layer = &counters.layers[0];
        let mut readings = layer.readings.iter();
        readings.find(|reading| reading.name == name).unwrap().value
    }
}

#[test]
fn a_stream_goes_to_a_random_zone_first_and_later_to_sequential_zones() {
    let mut bench = Bench::new(|_| ());
    bench.submit(Operation::Write, 0, 8);
    bench.settle(&mut |_| 0);
    assert!(bench.reading("dmzoned_random_mb") > 0.0);
    // Idle time moves the chunk to a sequential zone. The stream goes on at its write pointer.
    bench.idle(Duration::from_secs(60));
    assert_eq!(bench.reading("dmzoned_reclaimed_zones"), 1.0);
    assert_eq!(bench.reading("dmzoned_free_random_share"), 1.0);
    bench.submit(Operation::Write, 8, 8);
    bench.settle(&mut |_| 0);
    assert_eq!(bench.reading("dmzoned_direct_mb"), 8.0 * 4096.0 / 1e6);
    // A write behind the write pointer goes to a buffer, and idle time fills the gap with zeros.
    bench.submit(Operation::Write, 40, 8);
    bench.settle(&mut |_| 0);
    bench.idle(Duration::from_secs(60));
    assert_eq!(bench.reading("dmzoned_zeroed_mb"), 24.0 * 4096.0 / 1e6);
    assert_eq!(bench.reading("dmzoned_free_random_share"), 1.0);
    bench.verify();
}

#[test]
fn a_write_into_a_full_zone_is_merged_with_the_zone_in_the_buffer() {
    let mut bench = Bench::new(|config| {
        if let Some(zones) = &mut config.zones {
            zones.full = 3;
        }
    });
    bench.submit(Operation::Write, 5, 2);
    bench.settle(&mut |_| 0);
    bench.verify();
    bench.idle(Duration::from_secs(100));
    // The zone goes to the buffer, and the buffer to another sequential zone.
    assert_eq!(bench.reading("dmzoned_reclaimed_zones"), 2.0);
    assert_eq!(bench.reading("dmzoned_free_random_share"), 1.0);
    bench.verify();
}

#[test]
fn writes_wait_for_reclaim_when_no_random_zone_is_free() {
    let mut bench = Bench::new(|_| ());
    let chunks = u64::from(bench.node.map.format.chunks);
    for chunk in 0..chunks {
        bench.submit(Operation::Write, chunk * BLOCKS + 7, 4);
    }
    assert!(bench.reading("dmzoned_waits") > 0.0);
    bench.settle(&mut |_| 0);
    assert_eq!(bench.done.len() as u64, chunks);
    bench.verify();
}

#[test]
fn requests_of_parts_of_blocks_are_refused() {
    let mut bench = Bench::new(|_| ());
    let request = Request {
        extent: Extent::new(1, 8),
        ..Request::default()
    };
    let mut cx = NodeContext::alone(&mut bench.out);
    bench.node.submit(Time::ZERO, Port::FIRST, request, &mut cx);
    bench.take();
    assert_eq!(bench.done[0].status, RequestStatus::OutOfRange);
}

#[test]
fn keys_that_cannot_hold_are_refused_by_name() {
    let error = |change: fn(&mut DmZonedConfig)| {
        DmZoned::new(&keys(change), drive_sectors()).err().unwrap()
    };
    assert_eq!(error(|config| config.reserved = 0).key, "reserved");
    assert_eq!(error(|config| config.reserved = 12).key, "reserved");
    assert_eq!(error(|config| config.low = 101).key, "low");
    assert_eq!(error(|config| config.throttle = 0).key, "throttle");
    assert_eq!(error(|config| config.idle = Duration::ZERO).key, "idle");
    assert_eq!(error(|config| config.zones = None).key, "members");
    let few = error(|config| {
        if let Some(zones) = &mut config.zones {
            zones.conventional = 2;
        }
    });
    assert_eq!(few.key, "members");
    assert!(few.message.contains("the metadata need 2"), "{few}");
    let full = error(|config| {
        if let Some(zones) = &mut config.zones {
            zones.full = 11;
        }
    });
    assert_eq!(full.key, "reserved");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Request(Operation, u64, u64),
    End(usize),
    Pause(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Capacity: 20 zones less two of metadata and two reserved ones.
    let all = 16 * BLOCKS;
    let place = prop_oneof![3 => 0..4 * BLOCKS, 1 => 0..all - 40];
    let operation = prop_oneof![
        5 => Just(Operation::Write),
        3 => Just(Operation::Read),
        1 => Just(Operation::Discard),
        1 => Just(Operation::Flush),
    ];
    let step = prop_oneof![
        4 => (operation, place, 1..40u64).prop_map(|(operation, place, blocks)| match operation {
            Operation::Flush => Step::Request(operation, 0, 0),
            _ => Step::Request(operation, place, blocks),
        }),
        6 => any::<usize>().prop_map(Step::End),
        1 => (1u64..15_000).prop_map(Step::Pause),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Reads find the newest write before them, in any order of requests, answers of the drive,
    /// idle times and reclaim. The drive refuses no write. Each request ends.
    #[test]
    fn no_write_is_lost_and_no_older_data_are_served(
        steps in steps(),
        full in 0u32..10,
        low in 0u32..101,
    ) {
        let mut bench = Bench::new(|config| {
            config.low = low;
            if let Some(zones) = &mut config.zones {
                zones.full = full;
            }
        });
        let mut requests = 0;
        for step in steps {
            match step {
                Step::Request(operation, block, blocks) => {
                    requests += 1;
                    bench.submit(operation, block, blocks);
                }
                Step::End(index) if !bench.flying.is_empty() => bench.end(index % bench.flying.len()),
                Step::End(_) => {
                    let at = bench.node.next_wake().at();
                    if at < Time::NEVER {
                        bench.wake(at);
                    }
                }
                Step::Pause(ms) => {
                    let at = bench.now + Duration::from_millis(ms);
                    bench.wake(at);
                }
            }
        }
        let mut turn = 0usize;
        bench.settle(&mut |flying| { turn = turn.wrapping_add(7); turn % flying });
        prop_assert_eq!(bench.done.len(), requests);
        bench.verify();
        bench.idle(Duration::from_secs(200));
        bench.verify();
    }
}
