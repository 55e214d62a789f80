//! The caches beside those of a running kernel, as `tools/kernel-lab.py --cache` recorded them.

use crate::flight::{FLASH, ORIGIN};
use crate::rule::CacheSite;
use crate::{BlockCache, CACHE_REGISTRY};
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Completion, Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request, RequestId,
};
use fullstroke_units::{Duration, SECTOR_BYTES, Sectors, Seed, Time};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

#[path = "../../../../samples/oracle/kernel_lab.rs"]
mod kernel_lab;
use kernel_lab::{number, random};

const ORACLE: &str = include_str!("../../../../samples/oracle/cache/caches.txt");

/// Lines with an amount that is more than a tenth from the kernel's. VALIDATION.md explains them.
const FAR: [&str; 11] = [
    "cache bcache writethrough 512 congested_read_threshold_us=0 congested_write_threshold_us=0: load r seq 1048576 1 64 134217728 0 0",
    "cache bcache writethrough 512 congested_read_threshold_us=0 congested_write_threshold_us=0: load r seq 1048576 1 64 134217728 0 0",
    "cache bcache writethrough 512 congested_read_threshold_us=0 congested_write_threshold_us=0: load r rand 16384 8 1000 0 67108864 4",
    "cache dm-cache writeback 256: load w rand 16384 8 4000 0 67108864 2",
    "cache dm-cache writeback 256: rest 20000",
    "cache dm-cache writeback 256: load w rand 16384 8 4000 0 67108864 3",
    "cache dm-cache writeback 64: load m rand 16384 8 8000 0 268435456 1",
    "cache dm-cache writeback 64: load m rand 16384 8 8000 0 268435456 2",
    "cache dm-writecache writeback 64: load w rand 4096 8 12000 0 268435456 3",
    "cache dm-writecache writeback 64: rest 10000",
    "cache dm-writecache writeback 64: load w rand 16384 8 4000 0 268435456 4",
];

/// Size of the origin: `--gib 4`.
const ORIGIN_SECTORS: u64 = 4 << 21;
/// Number of the host's requests at a time on a device (`hw_queue_depth`).
const QUEUE: usize = 64;

/// Time of the emulated processor for a KiB of a request. From lines whose reads all hit: 4,000 reads of
/// 16 KiB, 8 at a time, of 10 ms each take 6.5 to 6.9 s in place of 5.
const PROCESSOR: Duration = Duration::from_nanos(30_000);

/// Number of writes that nobody waits for, at a time on a device: half of three quarters of the queue
/// (`calc_wb_limits` in `block/blk-wbt.c` and `rq_depth_scale_up`, Linux 6.12).
const BACKGROUND: usize = 24;

fn is_background(request: &Request) -> bool {
    request.operation == Operation::Write && !request.hints.synchronous
}

/// Requests and KiB that a device read and wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    reads: u64,
    read_kib: u64,
    writes: u64,
    written_kib: u64,
}

/// A device with one time for each request.
struct Device {
    time: Duration,
    /// Number of requests in the device.
    busy: usize,
    /// Numbers of the background writes in the device.
    background: HashSet<u64>,
    waiting: Vec<Request>,
    sums: Sums,
}

/// End of a request: time, number, device, identity, and the time of its begin.
type RequestEnd = (Time, u64, usize, u64, Time);

/// A cache, its two devices, and a host.
struct Laboratory {
    node: BlockCache,
    devices: [Device; 2],
    now: Time,
    /// Requests in the devices, by their ends.
    ends: BinaryHeap<Reverse<RequestEnd>>,
    number: u64,
    done: u64,
    out: Effects,
    /// Time from which the guest's processor is free.
    processor: Time,
}

impl Laboratory {
    fn new(words: &[&str], times: [Duration; 2]) -> Laboratory {
        let [kind, mode, mib, more @ ..] = words else {
            panic!("{words:?}")
        };
        let mut keys = json!({});
        if *kind != "dm-writecache" {
            keys["mode"] = json!(mode);
        }
        if *kind == "dm-cache" {
            // The laboratory makes the table itself; LVM sets a larger threshold.
            keys["migration_threshold"] = json!(2048);
        }
        for (key, value) in more.iter().map(|word| word.split_once('=').unwrap()) {
            match key {
                "congested_read_threshold_us" | "congested_write_threshold_us" => {
                    keys[key.trim_end_matches("_us")] = json!(format!("{value}us"));
                }
                _ => {
                    keys[key] = value
                        .parse::<u64>()
                        .map_or(json!(value), |value| json!(value))
                }
            }
        }
        let entry = CACHE_REGISTRY
            .iter()
            .find(|entry| entry.name == *kind)
            .unwrap();
        let site = CacheSite {
            origin: Sectors(ORIGIN_SECTORS),
            cache: Sectors(mib.parse::<u64>().unwrap() << 11),
            seed: Seed(1),
        };
        let keys: Keys = keys.as_object().unwrap().clone();
        let rule = (entry.build)(&keys, site).unwrap();
        let device = |time| Device {
            time,
            busy: 0,
            background: HashSet::new(),
            waiting: Vec::new(),
            sums: Sums::default(),
        };
        Laboratory {
            node: BlockCache::new(entry.name, rule, Sectors(ORIGIN_SECTORS), Time::NEVER),
            devices: times.map(device),
            now: Time::ZERO,
            ends: BinaryHeap::new(),
            number: 0,
            done: 0,
            out: Effects::new(),
            processor: Time::ZERO,
        }
    }

    fn take(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => {
                    self.devices[port.index()].waiting.push(request);
                    self.begin(port.index());
                }
                Effect::Complete { .. } => self.done += 1,
                Effect::Notice { .. } => {}
            }
        }
        self.out = out;
    }

    /// Begins waiting requests of a device, as far as it has room.
    fn begin(&mut self, port: usize) {
        let device = &mut self.devices[port];
        while device.busy < QUEUE {
            let may =
                |request: &Request| !is_background(request) || device.background.len() < BACKGROUND;
            let Some(place) = device.waiting.iter().position(may) else {
                return;
            };
            let request = device.waiting.remove(place);
            let kib = request.extent.sectors.0 * SECTOR_BYTES / 1024;
            let (count, sum) = match request.operation {
                Operation::Read => (&mut device.sums.reads, &mut device.sums.read_kib),
                Operation::Write => (&mut device.sums.writes, &mut device.sums.written_kib),
                _ => (&mut 0, &mut 0),
            };
            (*count, *sum) = (*count + 1, *sum + kib);
            device.busy += 1;
            self.number += 1;
            if is_background(&request) {
                device.background.insert(self.number);
            }
            self.processor = self.processor.max(self.now) + PROCESSOR * kib;
            let end = self.processor + device.time;
            let one = (end, self.number, port, request.id.0, self.now);
            self.ends.push(Reverse(one));
        }
    }

    /// Goes on to the next event.
    fn step(&mut self, most: Time) {
        let next = self.ends.peek().map_or(Time::NEVER, |Reverse(end)| end.0);
        let wake = self.node.next_wake().at();
        if next.min(wake) > most {
            self.now = most;
            return;
        }
        self.now = self.now.max(next.min(wake));
        let mut out = std::mem::take(&mut self.out);
        let cx = &mut NodeContext::alone(&mut out);
        if wake < next {
            self.node.wake(self.now, cx);
        } else if let Some(Reverse((finished, number, port, id, submitted))) = self.ends.pop() {
            self.devices[port].busy -= 1;
            self.devices[port].background.remove(&number);
            let completion = Completion {
                id: RequestId(id),
                submitted,
                finished,
                ..Completion::default()
            };
            self.node
                .completed(self.now, Port::of(port), completion, cx);
            self.out = out;
            self.take();
            return self.begin(port);
        }
        self.out = out;
        self.take();
    }

    fn rest(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.step(end);
        }
    }

    /// Carries out a line `load KIND ORDER BYTES DEPTH COUNT OFFSET SPAN SEED`.
    fn load(&mut self, words: &[&str]) {
        let numbers: Vec<u64> = words[2..]
            .iter()
            .map(|word| word.parse().unwrap())
            .collect();
        let [bytes, depth, count, offset, span, mut state] = numbers[..] else {
            panic!("{words:?}")
        };
        self.done = 0;
        let mut submitted = 0;
        while self.done < count {
            if submitted == count || submitted >= self.done + depth {
                self.step(Time::NEVER);
                continue;
            }
            let index = match words[1] {
                "rand" => random(&mut state) % (span / bytes),
                _ => submitted,
            };
            let writes = words[0] == "w" || (words[0] == "m" && random(&mut state) & 1 == 1);
            let mut request = Request {
                id: RequestId(submitted),
                operation: if writes {
                    Operation::Write
                } else {
                    Operation::Read
                },
                extent: Extent::new(
                    (offset + index * bytes) / SECTOR_BYTES,
                    bytes / SECTOR_BYTES,
                ),
                ..Request::default()
            };
            // O_DIRECT: `REQ_SYNC`.
            request.hints.synchronous = true;
            submitted += 1;
            let mut out = std::mem::take(&mut self.out);
            let cx = &mut NodeContext::alone(&mut out);
            self.node.submit(self.now, Port::FIRST, request, cx);
            self.out = out;
            self.take();
        }
    }
}

/// Reads `NAME=READS/KIB+WRITES/KIB`.
fn sums_of(line: &str, name: &str) -> Sums {
    let found = line.split_once(&format!(" {name}=")).unwrap().1;
    let found = found.split_whitespace().next().unwrap();
    let numbers: Vec<u64> = found
        .split(['/', '+'])
        .map(|one| one.parse().unwrap())
        .collect();
    Sums {
        reads: numbers[0],
        read_kib: numbers[1],
        writes: numbers[2],
        written_kib: numbers[3],
    }
}

/// True if two amounts differ by at most a tenth, or by a bucket and a block of metadata.
fn is_near(kernel: u64, model: u64) -> bool {
    let difference = kernel.abs_diff(model);
    difference * 10 <= kernel || difference <= 600
}

/// Time that the guest needs between two lines, for the sums over its trace.
const BETWEEN: Duration = Duration::from_secs(2);

/// Carries out the lines of a file. Returns the number of amounts in KiB (read and written on both
/// devices, for each line), the lines with an amount that is not near, and a table.
fn compare(oracle: &str, times: [Duration; 2]) -> (u32, Vec<String>, String) {
    let (mut laboratory, mut cache, mut table) = (None, "", String::new());
    let (mut amounts, mut far) = (0, Vec::new());
    for line in oracle.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "cache" {
            laboratory = Some(Laboratory::new(&words[1..], times));
            cache = line;
            continue;
        }
        let laboratory: &mut Laboratory = laboratory.as_mut().unwrap();
        (laboratory.devices.iter_mut()).for_each(|device| device.sums = Sums::default());
        let began = laboratory.now;
        match words[0] {
            "rest" => laboratory.rest(Duration::from_millis(words[1].parse().unwrap())),
            _ => laboratory.load(&words[1..9]),
        }
        let took = laboratory.now.since(began).as_millis_f64();
        let name = line.split_once(" ->").unwrap().0;
        table += &format!("{cache}: {name}\n  ms {} {took:.0}\n", number(line, "ms"));
        let mut is_far = false;
        for (device, name) in [(ORIGIN, "origin"), (FLASH, "flash")] {
            let (kernel, model) = (sums_of(line, name), laboratory.devices[device].sums);
            table += &format!("  {name}\n    {kernel:?}\n    {model:?}\n");
            is_far |= !is_near(kernel.read_kib, model.read_kib);
            is_far |= !is_near(kernel.written_kib, model.written_kib);
            amounts += 4;
        }
        if is_far {
            table += "  FAR\n";
            far.push(format!("{cache}: {name}"));
        }
        if words[0] != "rest" {
            laboratory.rest(BETWEEN);
        }
    }
    (amounts, far, table)
}

#[test]
fn caches_move_the_data_that_the_kernels_move() {
    let times = [100, 10].map(Duration::from_millis);
    let (amounts, far, table) = compare(ORACLE, times);
    println!("{table}{amounts} amounts");
    far.iter().for_each(|line| println!("far: {line}"));
    assert_eq!(far, FAR, "{table}");
}
