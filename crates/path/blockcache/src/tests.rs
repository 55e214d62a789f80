//! The caches on devices that keep the version of each sector: no write is lost or older than
//! promised, in any order of writes, write-back, reuse of space and answers.

use crate::flight::{CacheIo, FLASH, IoPurpose, ORIGIN};
use crate::rule::CacheSite;
use crate::{BlockCache, CACHE_REGISTRY};
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{
    Completion, Counters, Effect, Effects, Extent, Node, NodeContext, Operation, Port, Request,
    RequestId, RequestStatus,
};
use fullstroke_units::{Duration, Sectors, Seed, Time};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ORIGIN_SECTORS: u64 = 9000;
const FLASH_SECTORS: u64 = 1024;
/// Sectors of the flash device for bcache: 513 buckets of 4 KiB, the fewest that bcache takes.
const FLASH_SECTORS_BUCKETS: u64 = 513 * 8;
/// Sectors of the flash device for dm-cache: metadata and 64 blocks.
const FLASH_SECTORS_MORE: u64 = 12_400;

fn cache(name: &str, keys: Value, lost_at: Time) -> BlockCache {
    let entry = CACHE_REGISTRY.iter().find(|entry| entry.name == name);
    let Value::Object(keys) = keys else {
        unreachable!("keys are an object")
    };
    let cache = match name {
        "dm-cache" => FLASH_SECTORS_MORE,
        "bcache" => FLASH_SECTORS_BUCKETS,
        _ => FLASH_SECTORS,
    };
    let site = CacheSite {
        cache: Sectors(cache),
        ..site()
    };
    let rule = (entry.unwrap().build)(&keys, site).unwrap();
    BlockCache::new(entry.unwrap().name, rule, Sectors(ORIGIN_SECTORS), lost_at)
}

fn site() -> CacheSite {
    CacheSite {
        origin: Sectors(ORIGIN_SECTORS),
        cache: Sectors(FLASH_SECTORS),
        seed: Seed(1),
    }
}

/// An I/O on a device.
#[derive(Clone, Debug)]
struct DeviceIo {
    port: usize,
    request: Request,
    io: CacheIo,
    submitted: Time,
    /// Data of a write, by sector.
    data: Vec<u64>,
    /// True once the device has the data of a write.
    applied: bool,
}

/// A request of the host in flight.
#[derive(Clone, Debug)]
struct HostIo {
    operation: Operation,
    start: u64,
    sectors: u64,
    version: u64,
    /// Least versions of the sectors, known when a read came.
    least: Vec<u64>,
    /// Versions of the read so far.
    found: Vec<u64>,
}

/// A host, a cache and two devices with versions.
struct Bench {
    node: BlockCache,
    now: Time,
    /// Versions on the origin and on the flash device.
    devices: [Vec<u64>; 2],
    /// Version of each sector that the host was promised, and the newest version of a write.
    promised: Vec<u64>,
    newest: Vec<u64>,
    version: u64,
    ios: Vec<DeviceIo>,
    hosts: BTreeMap<u64, HostIo>,
    next_id: u64,
    out: Effects,
    flash_written: u64,
    statuses: Vec<RequestStatus>,
}

impl Bench {
    fn new(node: BlockCache) -> Bench {
        let (origin, flash) = (ORIGIN_SECTORS as usize, FLASH_SECTORS_MORE as usize);
        Bench {
            node,
            now: Time::ZERO,
            devices: [vec![0; origin], vec![u64::MAX; flash]],
            promised: vec![0; origin],
            newest: vec![0; origin],
            version: 0,
            ios: Vec::new(),
            hosts: BTreeMap::new(),
            next_id: 0,
            out: Effects::new(),
            flash_written: 0,
            statuses: Vec::new(),
        }
    }

    fn submit(&mut self, operation: Operation, start: u64, sectors: u64, synchronous: bool) {
        let range = start as usize..(start + sectors) as usize;
        let changes =
            |io: &HostIo| io.operation != Operation::Read && io.operation != Operation::Flush;
        let overlaps = |io: &HostIo| io.start < start + sectors && start < io.start + io.sectors;
        // The order of overlapping writes in flight is open on every device.
        if operation != Operation::Read && self.hosts.values().any(|io| changes(io) && overlaps(io))
        {
            return;
        }
        self.version += 1;
        let version = self.version;
        if operation == Operation::Write {
            self.newest[range.clone()].fill(version);
        }
        self.next_id += 1;
        let host = HostIo {
            operation,
            start,
            sectors,
            version,
            least: self.promised[range].to_vec(),
            found: vec![0; sectors as usize],
        };
        self.hosts.insert(self.next_id, host);
        let mut request = Request {
            id: RequestId(self.next_id),
            operation,
            extent: Extent::new(start, sectors),
            ..Request::default()
        };
        request.hints.synchronous = synchronous;
        let mut out = std::mem::take(&mut self.out);
        let cx = &mut NodeContext::alone(&mut out);
        self.node.submit(self.now, Port::FIRST, request, cx);
        self.out = out;
        self.take(&[]);
    }

    /// Takes the effects of the node. `read` are the data of the latest read.
    fn take(&mut self, read: &[u64]) {
        let mut out = std::mem::take(&mut self.out);
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => self.issued(port.index(), request, read),
                Effect::Complete { completion, .. } => self.completed(&completion),
                Effect::Notice { .. } => {}
            }
        }
        self.out = out;
    }

    fn issued(&mut self, port: usize, request: Request, read: &[u64]) {
        let (io, host) = self.node.io(request.id);
        let sectors = request.extent.sectors.0;
        let data = match (io.purpose, host) {
            _ if request.operation != Operation::Write => Vec::new(),
            (IoPurpose::Host(_), Some(host)) => {
                vec![self.hosts[&host.0].version; sectors as usize]
            }
            (IoPurpose::Fill | IoPurpose::CopyWrite(_), _) => read[..sectors as usize].to_vec(),
            _ => vec![u64::MAX; sectors as usize],
        };
        if port == FLASH && request.operation == Operation::Write {
            self.flash_written += sectors;
        }
        self.ios.push(DeviceIo {
            port,
            request,
            io,
            submitted: self.now,
            data,
            applied: false,
        });
    }

    /// Carries a write out on its device.
    fn apply(&mut self, index: usize) {
        let io = &mut self.ios[index];
        if io.request.operation == Operation::Write && !io.applied {
            let at = io.request.extent.start.0 as usize;
            self.devices[io.port][at..at + io.data.len()].copy_from_slice(&io.data);
            io.applied = true;
        }
    }

    /// Lets the I/O `index` end.
    fn end(&mut self, index: usize) {
        self.apply(index);
        let DeviceIo {
            port,
            request,
            io,
            submitted,
            ..
        } = self.ios.swap_remove(index);
        let mut read = Vec::new();
        if request.operation == Operation::Read {
            let at = request.extent.start.0 as usize;
            read = self.devices[port][at..at + request.extent.sectors.0 as usize].to_vec();
            if let (_, Some(host)) = self.node.io(request.id)
                && let Some(host) = self.hosts.get_mut(&host.0)
            {
                let from = (io.part.start - host.start) as usize;
                host.found[from..from + read.len()].copy_from_slice(&read);
            }
        }
        let completion = Completion {
            id: request.id,
            submitted,
            finished: self.now,
            ..Completion::default()
        };
        let mut out = std::mem::take(&mut self.out);
        let cx = &mut NodeContext::alone(&mut out);
        self.node
            .completed(self.now, Port::of(port), completion, cx);
        self.out = out;
        self.take(&read);
    }

    fn completed(&mut self, completion: &Completion) {
        let host = self.hosts.remove(&completion.id.0).unwrap();
        self.statuses.push(completion.status);
        if completion.status != RequestStatus::Done {
            return;
        }
        let start = host.start as usize;
        for at in 0..host.sectors as usize {
            match host.operation {
                Operation::Write => self.promised[start + at] = host.version,
                Operation::Read => {
                    let (found, newest) = (host.found[at], self.newest[start + at]);
                    assert!(
                        (host.least[at]..=newest).contains(&found),
                        "sector {}: found version {found}, promised {}, newest {newest}",
                        start + at,
                        host.least[at]
                    );
                }
                _ => {}
            }
        }
    }

    fn pass(&mut self, span: Duration) {
        self.now += span;
        if self.node.next_wake().at() <= self.now {
            let mut out = std::mem::take(&mut self.out);
            self.node.wake(self.now, &mut NodeContext::alone(&mut out));
            self.out = out;
            self.take(&[]);
        }
    }

    /// Ends everything in flight.
    fn settle(&mut self) {
        for _ in 0..100_000 {
            if self.ios.is_empty() {
                return;
            }
            self.pass(Duration::from_micros(100));
            self.end(0);
        }
        panic!("the cache does not come to rest");
    }

    fn reading(&self, name: &str) -> f64 {
        let mut counters = Counters::default();
        self.node.count(self.now, &mut counters);
        let all = counters.layers.iter().flat_map(|layer| &layer.readings);
        all.filter(|reading| reading.name == name)
            .map(|reading| reading.value)
            .sum()
    }
}

/// The caches under test: small, so that space is reused all the time.
fn caches() -> impl Strategy<Value = (&'static str, Value)> {
    let mode = prop_oneof![Just("writeback"), Just("writethrough"), Just("writearound")];
    let bcache = (mode, 0u64..3, 0u32..=40, 0u64..2).prop_map(|(mode, cutoff, percent, delay)| {
        let keys = json!({
            "mode": mode,
            "bucket": 4096,
            "sequential_cutoff": cutoff * 32 * 512,
            "writeback_percent": percent,
            "writeback_delay": format!("{delay}s"),
            "congested_read_threshold": "300us",
        });
        ("bcache", keys)
    });
    let writecache = (0u32..60, 0u32..40).prop_map(|(low, more)| {
        let keys = json!({ "low_watermark": low, "high_watermark": low + more });
        ("dm-writecache", keys)
    });
    let mode = prop_oneof![Just("writeback"), Just("writethrough")];
    let dmcache = mode.prop_map(|mode| ("dm-cache", json!({ "mode": mode, "block": 32768 })));
    prop_oneof![2 => bcache, 1 => writecache, 2 => dmcache]
}

/// A step: what happens, where, how much.
type Step = (u8, u64, u64, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let start = prop_oneof![2 => 0..ORIGIN_SECTORS / 10, 1 => 0..ORIGIN_SECTORS];
    // Long ones fill a bcache, so that its space is reused.
    let sectors = prop_oneof![3 => 1u64..60, 1 => 60u64..400];
    let one = (0u8..12, start, sectors, any::<bool>());
    prop::collection::vec(one, 50..600)
}

fn play(bench: &mut Bench, steps: &[Step], synchronous_writes: bool) {
    for &(step, start, sectors, flag) in steps {
        let sectors = sectors.min(ORIGIN_SECTORS - start);
        let aligned = |number: u64| number / 8 * 8;
        let count = bench.ios.len() as u64;
        match step {
            0..=2 => bench.submit(Operation::Write, start, sectors, flag || synchronous_writes),
            3 => {
                let (start, sectors) = (aligned(start), aligned(sectors).max(8));
                if start + sectors <= ORIGIN_SECTORS {
                    bench.submit(Operation::Write, start, sectors, flag);
                }
            }
            4 | 5 => bench.submit(Operation::Read, start, sectors, flag),
            6 => bench.submit(Operation::Flush, 0, 0, flag),
            7 if count > 0 => bench.apply((start % count) as usize),
            8..=10 if count > 0 => bench.end((start % count) as usize),
            _ => bench.pass(Duration::from_micros(sectors * sectors * 500)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_write_is_lost_or_served_older_in_any_order(
        (name, keys) in caches(),
        steps in steps(),
        synchronous in any::<bool>(),
    ) {
        let mut bench = Bench::new(cache(name, keys, Time::NEVER));
        play(&mut bench, &steps, synchronous);
        bench.settle();
        for start in (0..ORIGIN_SECTORS).step_by(100) {
            bench.submit(Operation::Read, start, 100, false);
            bench.settle();
        }
        prop_assert!(bench.hosts.is_empty(), "each request is answered");
        // bcache and dm-cache write dirty data back in the end; dm-writecache above its watermark only.
        if name != "dm-writecache" {
            for _ in 0..4000 {
                bench.pass(Duration::from_millis(500));
                bench.settle();
            }
            prop_assert_eq!(bench.reading("ssd_dirty_mb"), 0.0);
            prop_assert_eq!(&bench.devices[ORIGIN], &bench.promised);
        }
    }

    /// A flash device that is lost without dirty data costs nothing but time.
    #[test]
    fn without_its_device_a_cache_that_writes_through_goes_on(
        steps in steps(),
        lost_ms in 0u64..2000,
        around in any::<bool>(),
    ) {
        let mode = if around { "writearound" } else { "writethrough" };
        let keys = json!({ "mode": mode, "bucket": 4096 });
        let lost_at = Time::ZERO + Duration::from_millis(lost_ms);
        let mut bench = Bench::new(cache("bcache", keys, lost_at));
        play(&mut bench, &steps, true);
        bench.settle();
        prop_assert!(bench.hosts.is_empty(), "each request is answered");
        // A write that the lost device had to itself was over data in a copy; there is none here.
        prop_assert!(bench.statuses.iter().all(|status| *status == RequestStatus::Done));
        prop_assert_eq!(&bench.devices[ORIGIN], &bench.promised);
    }

    /// Wear: the flash device gets what the cache says that the flash device got.
    #[test]
    fn written_bytes_of_the_flash_device_add_up((name, keys) in caches(), steps in steps()) {
        let mut bench = Bench::new(cache(name, keys, Time::NEVER));
        play(&mut bench, &steps, true);
        bench.settle();
        let host: u64 = (bench.flash_written as f64 * 512.0 / 1e6
            - bench.reading("ssd_filled_mb")
            - bench.reading("ssd_map_mb"))
            .mul_add(1e6 / 512.0, 0.5) as u64;
        let (kept, bypassed) = (bench.reading("ssd_written_mb"), bench.reading("ssd_bypassed_mb"));
        prop_assert!((host as f64 * 512.0 / 1e6 - kept).abs() < 1e-6, "{} {} {}", host, kept, bypassed);
    }
}

#[test]
fn a_lost_device_with_dirty_data_takes_the_data_along() {
    let keys = json!({ "mode": "writeback", "bucket": 4096 });
    let lost_at = Time::ZERO + Duration::from_millis(5);
    let mut bench = Bench::new(cache("bcache", keys, lost_at));
    bench.submit(Operation::Write, 0, 8, true);
    // The copy to the array has begun, and has not ended.
    let write = bench
        .ios
        .iter()
        .position(|io| io.request.operation == Operation::Write);
    bench.end(write.unwrap());
    bench.pass(Duration::from_millis(10));
    bench.submit(Operation::Read, 100, 8, true);
    bench.settle();
    assert_eq!(
        bench.statuses,
        [RequestStatus::Done, RequestStatus::Lost],
        "bcache stops a device without its dirty data"
    );
    assert!(bench.reading("ssd_lost_mb") > 0.0);
}

#[test]
fn a_second_read_hits_and_a_long_stream_passes_by() {
    let mut bench = Bench::new(cache(
        "bcache",
        json!({ "bucket": 4096, "sequential_cutoff": "32KiB" }),
        Time::NEVER,
    ));
    for _ in 0..2 {
        bench.submit(Operation::Read, 800, 8, true);
        bench.settle();
    }
    assert_eq!(bench.reading("ssd_hit_share"), 0.5);
    for start in (0..640).step_by(8) {
        bench.submit(Operation::Read, start, 8, true);
        bench.settle();
    }
    // The first 28 KiB of the stream are kept: the stream is as long as the cut-off from then on.
    let filled = (8 + 7 * 8) as f64 * 512.0 / 1e6;
    assert!((bench.reading("ssd_filled_mb") - filled).abs() < 1e-9);
    let bypassed = (640 - 7 * 8) as f64 * 512.0 / 1e6;
    assert!((bench.reading("ssd_bypassed_mb") - bypassed).abs() < 1e-9);
}

/// smq copies a block to the flash device when reads of its neighbourhood go on for some ticks, and
/// a quiet second lets a dirty block go home.
#[test]
fn dm_cache_promotes_a_popular_block_and_writes_back_when_idle() {
    let keys = json!({ "mode": "writeback", "block": 32768 });
    let mut bench = Bench::new(cache("dm-cache", keys, Time::NEVER));
    for _ in 0..40 {
        bench.submit(Operation::Read, 8, 8, true);
        bench.settle();
        bench.pass(Duration::from_millis(200));
    }
    assert_eq!(bench.reading("ssd_filled_mb"), 64.0 * 512.0 / 1e6);
    assert!(bench.reading("ssd_hit_share") > 0.5);
    // A read that misses keeps the array busy. Hits do not.
    bench.submit(Operation::Read, 4000, 8, true);
    bench.settle();
    bench.submit(Operation::Write, 8, 8, true);
    bench.settle();
    assert_eq!(bench.reading("ssd_dirty_mb"), 64.0 * 512.0 / 1e6);
    assert_eq!(bench.devices[ORIGIN][8], 0, "the array has the old data");
    bench.pass(Duration::from_millis(1500));
    bench.settle();
    assert_eq!(bench.reading("ssd_dirty_mb"), 0.0);
    assert_eq!(bench.devices[ORIGIN][8], bench.promised[8]);
}

/// A warm cache answers the first read of its data, and takes no more data than it has room for.
#[test]
fn a_warm_cache_answers_the_first_reads() {
    for (name, keys) in [
        ("bcache", json!({ "bucket": 4096 })),
        ("dm-cache", json!({ "block": 32768 })),
    ] {
        let mut warm = cache(name, keys.clone(), Time::NEVER);
        assert_eq!(warm.warm(Sectors(200)), Sectors(200), "{name}");
        let mut bench = Bench::new(warm);
        // The flash device has the data of the array.
        bench.devices[FLASH].fill(0);
        bench.submit(Operation::Read, 8, 8, true);
        bench.submit(Operation::Read, 100, 80, true);
        bench.settle();
        assert_eq!(bench.reading("ssd_hit_share"), 1.0, "{name}");
        bench.submit(Operation::Read, 4000, 8, true);
        bench.settle();
        assert!(bench.reading("ssd_hit_share") < 1.0, "{name}");
        let mut small = cache(name, keys, Time::NEVER);
        let room = small.warm(Sectors(ORIGIN_SECTORS));
        assert!(
            room < Sectors(ORIGIN_SECTORS) && room > Sectors(200),
            "{name}: {room}"
        );
    }
    let mut none = cache("dm-writecache", json!({}), Time::NEVER);
    assert_eq!(none.warm(Sectors(8)), Sectors::ZERO);
}

#[test]
fn impossible_keys_are_refused_by_name() {
    for (name, keys, key) in [
        ("bcache", json!({ "bucket": 5000 }), "bucket"),
        ("bcache", json!({ "bucket": "512KiB" }), "size"),
        (
            "bcache",
            json!({ "bucket": 4096, "writeback_percent": 41 }),
            "writeback_percent",
        ),
        (
            "bcache",
            json!({ "bucket": 4096, "writeback_rate_minimum": 1 }),
            "writeback_rate_minimum",
        ),
        ("dm-cache", json!({ "block": 40_960 }), "block"),
        ("dm-cache", json!({}), "size"),
        ("dm-writecache", json!({ "block": 8192 }), "block"),
        (
            "dm-writecache",
            json!({ "high_watermark": 101 }),
            "high_watermark",
        ),
        (
            "dm-writecache",
            json!({ "high_watermark": 40 }),
            "low_watermark",
        ),
        (
            "dm-writecache",
            json!({ "autocommit_blocks": 0 }),
            "autocommit_blocks",
        ),
    ] {
        let entry = CACHE_REGISTRY.iter().find(|entry| entry.name == name);
        let keys: Keys = keys.as_object().unwrap().clone();
        let cache = match name {
            "bcache" => FLASH_SECTORS_BUCKETS,
            _ => FLASH_SECTORS,
        };
        let site = CacheSite {
            cache: Sectors(cache),
            ..site()
        };
        let error = (entry.unwrap().build)(&keys, site).err();
        assert_eq!(
            error.map(|error| error.key).as_deref(),
            Some(key),
            "{keys:?}"
        );
    }
}

#[test]
fn a_cache_of_more_blocks_than_memory_is_refused_and_unused_blocks_take_none() {
    let large = |tib: u64| CacheSite {
        cache: Sectors(tib << 31),
        ..site()
    };
    let build = |name: &str, keys: Value, tib: u64| {
        let entry = CACHE_REGISTRY.iter().find(|entry| entry.name == name);
        let keys: Keys = keys.as_object().unwrap().clone();
        let error = (entry.unwrap().build)(&keys, large(tib)).err();
        error.map(|error| error.key)
    };
    let small = json!({ "bucket": 4096 });
    assert_eq!(build("bcache", small, 1).as_deref(), Some("bucket"));
    assert_eq!(build("bcache", json!({ "bucket": "512KiB" }), 1), None);
    let small = json!({ "block": 32768 });
    assert_eq!(build("dm-cache", small, 2).as_deref(), Some("block"));
    let small = json!({ "block": 512 });
    assert_eq!(
        build("dm-writecache", small.clone(), 4).as_deref(),
        Some("block")
    );
    // 2^31 blocks.
    assert_eq!(build("dm-writecache", small, 1), None);
}
