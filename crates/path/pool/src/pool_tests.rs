//! Pools above drives that take 10 ms for each request, one after the other.

use super::*;
use crate::keys::Kind;
use crate::place::Dva;
use fullstroke_contract::{
    Effect, Hints, LayerOrder, Node, NodeContext, Operation, Port, RequestId, Signal,
};
use fullstroke_units::{Sectors, Seed};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const SERVICE: Duration = Duration::from_millis(10);

#[path = "files_tests.rs"]
mod files;
#[path = "l2arc_tests.rs"]
mod l2arc;
#[path = "laboratory_tests.rs"]
mod laboratory;
#[path = "metadata_tests.rs"]
mod metadata;
#[path = "processor_tests.rs"]
mod processor;
#[path = "special_tests.rs"]
mod special;
#[path = "trim_tests.rs"]
mod trim;

/// A pool and its drives.
struct Bench {
    pool: Pool,
    now: Time,
    /// Completions under way, by time and by order of issue.
    due: BTreeMap<(Time, u64), (usize, Completion)>,
    free: Vec<Time>,
    issued: u64,
    /// Requests to drives: drive and request.
    sent: Vec<(usize, Request)>,
    done: BTreeMap<u64, Completion>,
    rebuilt: Vec<(u32, bool)>,
    /// Time of a request of drives that serve any number of requests at a time.
    parallel: Option<Duration>,
}

impl Bench {
    fn new(kind: Kind, keys: Value, drives: usize) -> Bench {
        let members = vec![Sectors(20_000_000); drives];
        let settings = PoolSettings::read(kind, keys.as_object().unwrap(), &members).unwrap();
        Bench::of(settings)
    }

    fn of(settings: PoolSettings) -> Bench {
        let drives = settings.members.len();
        Bench {
            pool: Pool::new("raidz", settings),
            now: Time::ZERO,
            due: BTreeMap::new(),
            free: vec![Time::ZERO; drives],
            issued: 0,
            sent: Vec::new(),
            done: BTreeMap::new(),
            rebuilt: Vec::new(),
            parallel: None,
        }
    }

    fn call(&mut self, call: impl FnOnce(&mut Pool, Time, &mut NodeContext<'_>)) {
        let mut out = Effects::new();
        call(&mut self.pool, self.now, &mut NodeContext::alone(&mut out));
        for effect in out.drain() {
            match effect {
                Effect::Issue { port, request } => {
                    let drive = port.index();
                    let end = match self.parallel {
                        Some(service) => self.now + service,
                        None => self.free[drive].max(self.now) + SERVICE,
                    };
                    self.free[drive] = end;
                    let mut completion =
                        Completion::at_once(request.id, self.now, RequestStatus::Done);
                    completion.finished = end;
                    completion.breakdown.transfer = end.since(self.now);
                    self.due.insert((end, self.issued), (drive, completion));
                    self.issued += 1;
                    self.sent.push((drive, request));
                }
                Effect::Complete { completion, .. } => {
                    let parts = completion.breakdown.response();
                    let whole = completion.finished.since(completion.submitted);
                    assert_eq!(parts, whole, "parts add up: {completion:?}");
                    assert!(self.done.insert(completion.id.0, completion).is_none());
                }
                Effect::Notice { notice, .. } => {
                    if let Signal::Rebuilt { member, whole, .. } = notice.signal {
                        self.rebuilt.push((member, whole));
                    }
                }
            }
        }
    }

    fn submit(&mut self, id: u64, operation: Operation, start: u64, sectors: u64, forced: bool) {
        let request = Request {
            id: RequestId(id),
            operation,
            extent: Extent::new(start, sectors),
            hints: Hints {
                force_unit_access: forced,
                ..Hints::default()
            },
            ..Request::default()
        };
        self.call(|pool, now, cx| pool.submit(now, Port::FIRST, request, cx));
    }

    /// Runs until `until`.
    fn run(&mut self, until: Time) {
        loop {
            let wake = self.pool.next_wake().at().max(self.now);
            let due = self.due.keys().next().map_or(Time::NEVER, |(at, _)| *at);
            let next = wake.min(due);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            if due <= wake {
                let ((_, _), (drive, completion)) = self.due.pop_first().unwrap();
                self.call(|pool, now, cx| pool.completed(now, Port::of(drive), completion, cx));
            } else {
                self.call(|pool, now, cx| pool.wake(now, cx));
            }
        }
    }

    fn seconds(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        self.run(until);
    }

    fn bytes(&self, operation: Operation) -> u64 {
        let of = self
            .sent
            .iter()
            .filter(|(_, request)| request.operation == operation);
        of.map(|(_, request)| request.extent.sectors.0 * 512).sum()
    }

    fn drives(&self, operation: Operation) -> BTreeSet<usize> {
        let of = self
            .sent
            .iter()
            .filter(|(_, request)| request.operation == operation);
        of.map(|(drive, _)| *drive).collect()
    }
}

fn raidz2(keys: Value) -> Bench {
    Bench::new(Kind::Raidz(2), keys, 8)
}

#[test]
fn a_read_of_one_sector_reads_all_data_columns_of_its_record() {
    let mut bench = raidz2(json!({}));
    bench.submit(1, Operation::Read, 1000, 1, false);
    bench.seconds(1);
    assert_eq!(bench.drives(Operation::Read).len(), 6);
    assert_eq!(bench.bytes(Operation::Read), 128 << 10);
    assert_eq!(bench.done[&1].finished, Time::ZERO + SERVICE);
    // The record is in memory now.
    bench.submit(2, Operation::Read, 1001, 1, false);
    assert_eq!(bench.done[&2].finished, bench.now);

    let mut bench = Bench::new(Kind::Mirror, json!({}), 8);
    bench.submit(1, Operation::Read, 1000, 1, false);
    bench.seconds(1);
    assert_eq!(bench.sent.len(), 1, "a mirror reads one copy");
}

#[test]
fn a_write_is_in_memory_at_once_and_on_the_drives_after_five_seconds() {
    let mut bench = raidz2(json!({}));
    bench.submit(1, Operation::Write, 256 * 7, 256, false);
    assert_eq!(bench.done[&1].finished, Time::ZERO);
    bench.run(Time::ZERO + Duration::from_millis(4999));
    assert!(bench.sent.is_empty());
    bench.seconds(10);
    assert_eq!(bench.pool.txg.groups, 1);
    assert_eq!(bench.pool.txg.dirty, 0);
    // 32 data, 12 parity and 1 of padding at most; two copies of indirect blocks; labels.
    let record = bench.pool.settings.vdevs[0].0.asize(128 << 10);
    assert!(bench.bytes(Operation::Write) > record);
    let flushes = bench
        .sent
        .iter()
        .filter(|(_, r)| r.operation == Operation::Flush);
    assert_eq!(flushes.count(), 16, "two flushes of eight drives");
    let labels = 4 * 8;
    assert!(bench.sent.len() > labels + 16);
    assert_eq!(bench.bytes(Operation::Read), 0);
    // The record has a new place.
    assert!(bench.pool.records.moved.contains_key(&7));
}

#[test]
fn a_write_of_a_part_reads_the_record_first() {
    let mut bench = raidz2(json!({}));
    bench.submit(1, Operation::Write, 300, 8, false);
    assert!(!bench.done.contains_key(&1));
    bench.seconds(1);
    assert_eq!(bench.done[&1].finished, Time::ZERO + SERVICE);
    assert_eq!(bench.bytes(Operation::Read), 128 << 10);
    bench.submit(2, Operation::Write, 320, 8, false);
    assert!(bench.done.contains_key(&2), "a dirty record is in memory");
}

#[test]
fn a_forced_write_waits_for_the_log_and_the_flush() {
    for (keys, log_only) in [
        (json!({ "logs": 1, "recordsize": "16KiB" }), true),
        (json!({ "recordsize": "16KiB" }), false),
    ] {
        let mut bench = Bench::new(Kind::Raidz(2), keys, 9);
        bench.submit(1, Operation::Write, 32, 32, true);
        bench.run(Time::ZERO + Duration::from_millis(500));
        assert_eq!(bench.done[&1].finished, Time::ZERO + SERVICE + SERVICE);
        let log: BTreeSet<usize> = [8].into();
        assert_eq!(bench.drives(Operation::Write) == log, log_only);
        assert_eq!(bench.drives(Operation::Flush) == log, log_only);
    }
}

#[test]
fn a_forced_whole_record_goes_to_its_place_and_is_not_written_again() {
    let mut bench = raidz2(json!({}));
    bench.submit(1, Operation::Write, 256, 256, true);
    bench.run(Time::ZERO + Duration::from_millis(500));
    assert!(bench.done.contains_key(&1));
    let logged = bench.bytes(Operation::Write);
    assert!(logged >= 44 * 4096, "the record with its parity: {logged}");
    bench.seconds(10);
    assert_eq!(bench.pool.txg.groups, 1);
    assert_eq!(bench.pool.counts.written, 0);
    assert!(bench.pool.records.moved.contains_key(&1));
}

#[test]
fn a_flush_writes_the_log_once_and_nothing_without_news() {
    let mut bench = raidz2(json!({ "recordsize": "16KiB" }));
    bench.submit(1, Operation::Flush, 0, 0, false);
    assert!(bench.done.contains_key(&1) && bench.sent.is_empty());
    bench.submit(2, Operation::Write, 0, 32, false);
    bench.submit(3, Operation::Flush, 0, 0, false);
    bench.submit(4, Operation::Flush, 0, 0, false);
    bench.seconds(1);
    assert_eq!(bench.pool.zil.commits, 1);
    assert!(bench.done.contains_key(&3) && bench.done.contains_key(&4));
}

#[test]
fn dirty_data_stays_within_its_limit_and_writers_wait() {
    let mut bench = raidz2(json!({ "dirty_data_max": "16MiB", "volsize": "4GiB" }));
    for id in 0..400 {
        bench.submit(id, Operation::Write, 256 * (id * 37 % 20_000), 256, false);
        assert!(bench.pool.txg.dirty <= 16 << 20);
    }
    assert!(bench.done.len() < 140);
    bench.seconds(60);
    assert_eq!(bench.done.len(), 400);
    assert!(bench.pool.counts.delayed > Duration::from_millis(0));
}

#[test]
fn sequential_reads_are_read_ahead() {
    let ahead = |prefetch: bool| {
        let mut bench = raidz2(json!({ "prefetch": prefetch }));
        for id in 0..20 {
            bench.submit(id, Operation::Read, 256 * id, 256, false);
            bench.seconds(1);
        }
        (bench.pool.counts.fetched, bench.pool.counts.hits)
    };
    assert_eq!(ahead(false), (0, 0));
    let (fetched, hits) = ahead(true);
    assert!(fetched > 20 && hits >= 18, "{fetched} {hits}");
}

#[test]
fn a_lost_drive_is_read_around_and_too_many_lose_the_record() {
    let mut bench = raidz2(json!({ "failed": [3] }));
    for id in 0..8 {
        bench.submit(id, Operation::Read, 2560 * id, 8, false);
    }
    bench.seconds(2);
    assert!(
        bench
            .done
            .values()
            .all(|done| done.status == RequestStatus::Done)
    );
    assert!(!bench.drives(Operation::Read).contains(&3));
    for member in [4, 5] {
        bench.call(|pool, now, cx| pool.ordered(now, LayerOrder::Fail { member }, cx).unwrap());
    }
    assert!(!bench.pool.gauge().alive);
    bench.submit(100, Operation::Read, 256 * 5000, 8, false);
    bench.seconds(1);
    assert_eq!(bench.done[&100].status, RequestStatus::Lost);
}

#[test]
fn a_resilver_fills_the_new_drive_and_reports_its_end() {
    for (kind, keys, drives) in [
        (Kind::Raidz(2), json!({ "volsize": "1GiB" }), 6),
        (Kind::Mirror, json!({ "volsize": "1GiB", "width": 2 }), 4),
        (
            Kind::Mirror,
            json!({ "volsize": "1GiB", "resilver": "sequential" }),
            4,
        ),
        (Kind::Draid(1), json!({ "volsize": "1GiB", "data": 3 }), 8),
    ] {
        let mut bench = Bench::new(kind, keys, drives);
        let order = LayerOrder::Fail { member: 1 };
        bench.call(|pool, now, cx| pool.ordered(now, order, cx).unwrap());
        let order = LayerOrder::Restore {
            member: 1,
            done: Sectors::ZERO,
            rate: None,
            accept_data_loss: false,
        };
        bench.call(|pool, now, cx| pool.ordered(now, order, cx).unwrap());
        bench.seconds(2000);
        assert_eq!(bench.rebuilt.last(), Some(&(1, true)), "{kind:?}");
        // Groups write the progress to all drives, in small blocks.
        let is_data = |request: &Request| request.extent.sectors.0 >= 64;
        bench.sent.retain(|(_, request)| is_data(request));
        assert_eq!(bench.drives(Operation::Write), [1].into());
        // The drive gets its share of the data, with parity.
        let share = bench.bytes(Operation::Write);
        let settings = &bench.pool.settings;
        let whole = settings.vdevs[0].0.asize(131_072) * (1 << 30) / 131_072;
        let expected = match kind {
            Kind::Mirror => (1 << 30) / 2,
            _ => whole / drives as u64,
        };
        let ratio = share as f64 / expected as f64;
        assert!((0.9..1.1).contains(&ratio), "{kind:?}: {ratio}");
        assert!(bench.pool.gauge().alive);
    }
}

#[test]
fn a_distributed_spare_takes_the_lost_columns_on_all_drives() {
    let keys = json!({ "volsize": "2GiB", "data": 3, "spares": 1, "resilver": "spare" });
    let mut bench = Bench::new(Kind::Draid(1), keys, 9);
    let pool = std::mem::replace(&mut bench.pool, Bench::new(Kind::Mirror, json!({}), 2).pool);
    bench.pool = pool.resilvering(1, Sectors::ZERO);
    bench.seconds(2000);
    assert_eq!(bench.rebuilt.last(), Some(&(1, true)));
    let written = bench.drives(Operation::Write);
    assert!(!written.contains(&1) && !bench.drives(Operation::Read).contains(&1));
    assert!(written.len() >= 4, "{written:?}");
    let bytes = bench.bytes(Operation::Write) as f64;
    let share = (2u64 << 30) as f64 / 3.0 * 4.0 / 8.0;
    assert!((0.7..1.3).contains(&(bytes / share)), "{bytes} of {share}");
}

#[test]
fn after_an_expansion_old_records_lie_in_the_old_width() {
    let mut bench = raidz2(json!({ "expanded_from": 5 }));
    bench.submit(1, Operation::Read, 0, 8, false);
    bench.seconds(1);
    // 32 data sectors on rows of 3 data: the sectors lie on all eight drives.
    assert_eq!(bench.drives(Operation::Read).len(), 8);
    bench.sent.clear();
    bench.submit(2, Operation::Write, 2560, 256, false);
    bench.seconds(10);
    bench.pool.records.arc.forget(10);
    bench.sent.clear();
    bench.submit(3, Operation::Read, 2560, 8, false);
    bench.seconds(1);
    assert_eq!(
        bench.drives(Operation::Read).len(),
        6,
        "a new record has the new width"
    );
}

#[test]
fn random_loads_end_and_records_never_share_a_place() {
    for (kind, keys, drives) in [
        (
            Kind::Raidz(1),
            json!({ "width": 3, "volsize": "2GB", "recordsize": "32KiB", "dirty_data_max": "8MiB" }),
            6,
        ),
        (
            Kind::Draid(2),
            json!({ "data": 3, "spares": 1, "volsize": "2GB", "dirty_data_max": "8MiB", "compression": 1.7 }),
            9,
        ),
        (
            Kind::Mirror,
            json!({ "volsize": "2GB", "logs": 1, "arc": "4MiB", "sync": "always" }),
            5,
        ),
    ] {
        let mut bench = Bench::new(kind, keys, drives);
        let mut random = Seed(9).stream("requests");
        let sectors = bench.pool.settings.volsize / 512;
        for id in 0..1500 {
            let length = 1 + random.below(600);
            let start = random.below(sectors - length);
            let operation = [
                Operation::Read,
                Operation::Write,
                Operation::Write,
                Operation::Flush,
            ][random.below(4) as usize];
            let (start, length) = match operation {
                Operation::Flush => (0, 0),
                _ => (start, length),
            };
            bench.submit(id, operation, start, length, random.below(9) == 0);
            let pause = Duration::from_millis(random.below(40));
            let until = bench.now + pause;
            bench.run(until);
        }
        bench.seconds(600);
        assert_eq!(bench.done.len(), 1500, "{kind:?}: every request ends");
        assert!(
            bench
                .done
                .values()
                .all(|done| done.status == RequestStatus::Done)
        );
        assert_eq!(bench.pool.txg.dirty, 0);
        assert!(bench.pool.txg.groups > 2 && bench.pool.counts.in_place == 0);
        let records = sectors * 512 / bench.pool.settings.record;
        let mut places: Vec<(Dva, u64)> = (0..records)
            .map(|record| {
                let (dva, psize, old) = bench.pool.place_of(record);
                (dva, bench.pool.io.asize(dva.vdev as usize, psize, old))
            })
            .collect();
        places.sort();
        for pair in places.windows(2) {
            let ((a, size), (b, _)) = (pair[0], pair[1]);
            assert!(
                a.vdev != b.vdev || a.offset + size <= b.offset,
                "{kind:?}: {a:?} {b:?}"
            );
        }
    }
}

#[test]
fn a_scrub_reads_every_record_with_its_parity_or_copies_and_writes_its_progress() {
    for (kind, keys, drives) in [
        (Kind::Raidz(2), json!({}), 8),
        (Kind::Mirror, json!({ "width": 3 }), 6),
        (Kind::Draid(1), json!({ "data": 3, "scattered": 0.2 }), 8),
    ] {
        let mut keys = keys;
        keys["volsize"] = json!("256MiB");
        keys["scrub"] = json!(true);
        let mut bench = Bench::new(kind, keys, drives);
        bench.seconds(300);
        assert!(!bench.pool.resilver.scrubs, "{kind:?}: the scrub ends");
        // Groups write the progress in blocks of 4 KiB.
        let is_write = |request: &&(usize, Request)| request.1.operation == Operation::Write;
        let longest = bench.sent.iter().filter(is_write);
        let longest = longest.map(|(_, request)| request.extent.sectors.0).max();
        assert!((1..128).contains(&longest.unwrap()), "{longest:?}");
        let settings = &bench.pool.settings;
        let mut map = crate::BlockMap::default();
        let records = settings.volsize / settings.record;
        let columns = |record: u64| -> u64 {
            let place = bench.pool.place_of(record).0;
            settings.vdevs[0]
                .0
                .map(place.offset, settings.psize, &mut map);
            read_by_a_scan(kind, &map)
        };
        let expected: u64 = (0..records).map(columns).sum();
        // 80 blocks of the pool's own objects, each in three copies with parity.
        settings.vdevs[0].0.map(0, 1 << settings.ashift, &mut map);
        let metadata = 240 * read_by_a_scan(kind, &map);
        // One copy of two blocks of 1,024 pointers, without parity.
        let pointers = 2 * (84 << 10);
        assert_eq!(
            bench.pool.io.moved.0,
            expected + metadata + pointers,
            "{kind:?}"
        );
    }
}

/// Returns the bytes that a scrub reads for a block: the columns, and the skipped sectors of a dRAID.
fn read_by_a_scan(kind: Kind, map: &crate::BlockMap) -> u64 {
    let skips = map.skips().iter().map(|skip| skip.size).sum::<u64>();
    let columns = map.columns().iter().map(|column| column.size).sum::<u64>();
    columns + skips * u64::from(matches!(kind, Kind::Draid(_)))
}

/// A column of a dRAID and its skipped sector are one I/O (`vdev_draid_map_alloc_write`).
#[test]
fn a_small_write_of_a_draid_is_one_write_of_equal_length_on_each_drive_of_its_group() {
    let keys = json!({ "data": 3, "recordsize": "16KiB", "volsize": "16MiB" });
    let mut bench = Bench::new(Kind::Draid(1), keys, 8);
    bench.submit(1, Operation::Write, 0, 32, false);
    bench.run(Time::ZERO + Duration::from_millis(5000));
    let sizes: Vec<u64> = bench.sent.iter().map(|(_, r)| r.extent.sectors.0).collect();
    assert_eq!(
        sizes, [16; 4],
        "four sectors of data in two rows, with two skipped sectors"
    );
}

/// `zfs_vdev_mirror_non_rotating_seek_inc` is 1. A disk counts 2 for a near place and 5 for a far one, so that
/// near reads stay on one disk.
#[test]
fn near_reads_stay_on_one_disk_and_spread_over_flash_devices() {
    let drives = |is_flash: bool| {
        let members = vec![Sectors(20_000_000); 2];
        let keys = json!({ "prefetch": false });
        let keys = keys.as_object().unwrap();
        let settings = PoolSettings::read(Kind::Mirror, keys, &members).unwrap();
        let mut bench = Bench::of(settings.on_flash(vec![is_flash; 2]));
        for id in 0..3 {
            bench.submit(id, Operation::Read, id * 512, 8, false);
        }
        let drives = bench.sent.iter().map(|(drive, _)| *drive);
        drives.collect::<Vec<usize>>()
    };
    assert_eq!(drives(false), [0, 0, 0]);
    assert_eq!(drives(true), [0, 1, 0]);
}

/// A scan knows a record only by its pointer (`dsl_scan_visit`).
#[test]
fn a_scan_reads_the_pointers_before_the_records() {
    let sent = |keys: Value| {
        let mut keys = keys;
        keys["volsize"] = json!("1GiB");
        keys["recordsize"] = json!("16KiB");
        let mut bench = Bench::new(Kind::Mirror, keys, 3);
        bench.submit(1, Operation::Read, 0, 1, false);
        bench.seconds(2);
        bench.sent
    };
    let walk = |sent: &[(usize, Request)], drives: std::ops::Range<usize>| {
        let is_pointers = |(drive, request): &&(usize, Request)| {
            drives.contains(drive) && request.extent.sectors.0 == 168
        };
        sent.iter().filter(is_pointers).count()
    };
    let scrub = sent(json!({ "scrub": true, "width": 3 }));
    // One copy of 64 blocks of pointers in two walks. The second walk follows the records of the first.
    assert_eq!(walk(&scrub[..33], 0..3), 32);
    assert_eq!(walk(&scrub, 0..3), 32);
    let none = sent(json!({ "width": 3 }));
    assert_eq!(walk(&none, 0..3), 0);
}

/// `dsl_scan_sync` issues nothing behind the end of its turn, and waits for all I/O of the turn.
#[test]
fn a_group_waits_for_the_reads_of_a_scrub() {
    let mut bench = raidz2(json!({ "volsize": "1GiB", "scrub": true }));
    bench.parallel = Some(Duration::from_secs(4));
    bench.run(Time::ZERO + Duration::from_millis(5001));
    assert!(bench.pool.resilver.is_busy());
    while bench.pool.txg.step == crate::txg::Step::Scan {
        assert!(bench.now < Time::ZERO + Duration::from_secs(100));
        bench.run(bench.now + Duration::from_millis(10));
    }
    assert!(!bench.pool.resilver.is_busy());
    assert!(bench.now >= Time::ZERO + Duration::from_secs(8));
    assert_eq!(
        bench.pool.txg.groups, 0,
        "the metadata of the group follows"
    );
    bench.seconds(100);
    assert!(bench.pool.txg.groups >= 1);
}

/// The limit counts drives without parity (`scan_io_queues_run_one`).
#[test]
fn a_scan_keeps_to_its_limit_for_each_data_drive() {
    for (kind, keys, drives, data) in [
        (Kind::Raidz(2), json!({}), 8, 6),
        (Kind::Mirror, json!({ "width": 3 }), 3, 1),
        (Kind::Draid(1), json!({ "data": 3, "spares": 1 }), 9, 7),
    ] {
        let mut keys = keys;
        keys["scrub"] = json!(true);
        let bench = Bench::new(kind, keys, drives);
        let most = bench.pool.units_in_flight(128 << 10);
        assert_eq!(most, data * 128, "{kind:?}: 16 MiB for each data drive");
    }
}

#[test]
fn a_scrub_that_begins_late_reads_the_rest() {
    let mut bench = raidz2(json!({ "volsize": "1GiB", "scrub": true, "scrub_from": 0.75 }));
    bench.seconds(300);
    let (read, _) = bench.pool.resilver.scrubbed().unwrap();
    assert_eq!(read, 2048);
}

/// A group with a scrub ends after the turn of the scrub: 5 s after its start, or after 1 s if much
/// data is dirty again.
#[test]
fn a_scrub_delays_the_end_of_each_group() {
    let groups = |bench: &Bench| bench.pool.txg.groups;
    let mut alone = raidz2(json!({ "volsize": "40GiB" }));
    let mut bench = raidz2(json!({ "volsize": "40GiB", "scrub": true }));
    for bench in [&mut alone, &mut bench] {
        bench.submit(1, Operation::Write, 0, 256, false);
        bench.run(Time::ZERO + Duration::from_millis(4500));
    }
    assert_eq!((groups(&alone), groups(&bench)), (0, 0));
    for bench in [&mut alone, &mut bench] {
        bench.run(Time::ZERO + Duration::from_millis(11_500));
    }
    assert_eq!(
        (groups(&alone), groups(&bench)),
        (1, 2),
        "a scrub has groups without data"
    );

    let keys = json!({ "volsize": "40GiB", "scrub": true, "dirty_data_max": "1MiB" });
    let mut bench = raidz2(keys);
    bench.submit(1, Operation::Write, 0, 1024, false);
    bench.seconds(2);
    assert_eq!(
        groups(&bench),
        0,
        "half of the dirty data begins a group at once"
    );
    bench.submit(2, Operation::Write, 10_240, 1024, false);
    bench.seconds(1);
    assert_eq!(groups(&bench), 1);
    bench.seconds(600);
    assert_eq!(bench.done.len(), 2);
    assert_eq!(bench.pool.txg.dirty, 0);
}

#[test]
fn a_sequential_resilver_keeps_to_its_limit_and_to_half_of_the_arc() {
    let most = |keys: Value| {
        let mut all = json!({ "volsize": "2GiB", "data": 3, "spares": 1, "resilver": "spare" });
        let more = keys.as_object().unwrap().clone();
        all.as_object_mut().unwrap().extend(more);
        let bench = Bench::new(Kind::Draid(1), all, 9);
        let pool = bench.pool.resilvering(1, Sectors::ZERO);
        pool.units_in_flight(3 << 20)
    };
    assert_eq!(most(json!({})), 9 * 64 / 3);
    assert_eq!(most(json!({ "rebuild_limit": "32MiB" })), 9 * 32 / 3);
    assert_eq!(most(json!({ "arc": "100MiB" })), 50u64.div_ceil(3));
}
