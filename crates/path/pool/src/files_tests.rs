//! Pools with files of a file system in place of a volume.

use super::Bench;
use crate::config::PoolSettings;
use crate::keys::Kind;
use fullstroke_contract::{
    DatasetObject, DatasetStart, Hints, Object, Operation, Port, Request, RequestId, RequestStatus,
};
use fullstroke_contract::{Extent, Node};
use fullstroke_units::Sectors;
use serde_json::{Value, json};

const RECORD: u64 = 256;

pub(super) fn object(number: u32) -> DatasetObject {
    DatasetObject {
        number,
        is_metadata: false,
    }
}

fn settings(keys: Value, drives: usize, files: &[(u32, u64)]) -> PoolSettings {
    let members = vec![Sectors(20_000_000); drives];
    let read = PoolSettings::read(Kind::Mirror, keys.as_object().unwrap(), &members).unwrap();
    let files = files
        .iter()
        .map(|(number, bytes)| (Object(*number), *bytes));
    let start = DatasetStart {
        files: files.collect(),
        directories: vec![(Object(1), 16 << 10)],
    };
    read.holding(start).unwrap()
}

pub(super) fn bench(keys: Value, drives: usize, files: &[(u32, u64)]) -> Bench {
    Bench::of(settings(keys, drives, files))
}

impl Bench {
    fn write(&mut self, id: u64, number: u32, sector: u64, sectors: u64) {
        let start = object(number).start().0 + sector;
        self.submit(id, Operation::Write, start, sectors, false);
    }

    fn remove(&mut self, id: u64, number: u32) {
        let extent = object(number).from(0);
        self.submit(
            id,
            Operation::Discard,
            extent.start.0,
            extent.sectors.0,
            false,
        );
    }

    fn fsync(&mut self, id: u64, number: u32) {
        let request = Request {
            id: RequestId(id),
            operation: Operation::Flush,
            hints: Hints {
                stream: number,
                ..Hints::default()
            },
            ..Request::default()
        };
        self.call(|pool, now, cx| pool.submit(now, Port::FIRST, request, cx));
    }

    pub(super) fn moved(&self, operation: Operation, drives: std::ops::Range<usize>) -> u64 {
        let of = self
            .sent
            .iter()
            .filter(|(drive, request)| request.operation == operation && drives.contains(drive));
        of.map(|(_, request)| request.extent.sectors.0 * 512).sum()
    }
}

#[test]
fn a_small_file_is_a_small_block_and_a_new_record_is_not_read() {
    let mut bench = bench(json!({ "txg_timeout_s": 1 }), 2, &[]);
    bench.write(0, 5, 0, 6);
    bench.seconds(20);
    assert_eq!(bench.moved(Operation::Read, 0..2), 0);
    assert_eq!(bench.pool.counts.written, 6 * 512);
    let record = bench.pool.units_of(object(5).from(0)).start;
    let (_, psize) = bench.pool.records.moved[&record];
    assert_eq!(psize, 4096, "a sector of the pool");
    // The file grows within its record, which is in memory.
    bench.write(1, 5, 6, 100);
    bench.seconds(20);
    assert_eq!(bench.moved(Operation::Read, 0..2), 0);
    assert_eq!(bench.pool.counts.written, (6 + 106) * 512);
}

#[test]
fn a_partial_write_reads_a_record_that_is_not_in_memory() {
    let mut bench = bench(json!({ "txg_timeout_s": 1 }), 2, &[(3, 10 << 20)]);
    bench.write(0, 3, 4 * RECORD + 8, 8);
    bench.seconds(20);
    assert_eq!(bench.pool.counts.read_for_writes, 1);
    let metadata = bench.pool.counts.metadata_bytes;
    assert_eq!(metadata, 4096 + 8192, "the inode and 80 pointers");
    let read = bench.moved(Operation::Read, 0..2);
    assert_eq!(read - metadata, 128 << 10);
    assert_eq!(
        bench.pool.counts.written,
        128 << 10,
        "the whole record moves"
    );
    // A whole record, and a record behind the end of the file.
    bench.write(1, 3, 6 * RECORD, RECORD);
    bench.write(2, 3, 80 * RECORD, 8);
    bench.seconds(20);
    assert_eq!(bench.pool.counts.read_for_writes, 1);
    assert!(
        bench
            .done
            .values()
            .all(|done| done.status == RequestStatus::Done)
    );
}

#[test]
fn a_file_that_is_removed_in_its_group_is_never_written() {
    let mut bench = bench(json!({ "txg_timeout_s": 1 }), 2, &[]);
    for number in 5..15 {
        bench.write(number, number as u32, 0, 64);
    }
    for number in 5..14 {
        bench.remove(100 + number, number as u32);
    }
    assert_eq!(bench.pool.txg.dirty, 64 * 512);
    bench.seconds(20);
    assert_eq!(bench.pool.counts.written, 64 * 512);
    assert_eq!(bench.pool.txg.dirty, 0);
}

#[test]
fn a_removed_file_frees_its_records_unless_a_snapshot_holds_them() {
    for (snapshot, freed) in [(false, 10u64 << 20), (true, 0)] {
        let keys = json!({ "txg_timeout_s": 1, "snapshot": snapshot });
        let mut bench = bench(keys, 2, &[(3, 10 << 20)]);
        let free = |bench: &Bench| bench.pool.space.fragments().1;
        let before = free(&bench);
        bench.remove(0, 3);
        // Freed space is free again two groups later.
        for group in 0..6 {
            bench.write(1 + group, 9, 0, 8);
            bench.seconds(20);
        }
        let after = free(&bench);
        let gained = after as i64 - before as i64;
        let metadata = 2 << 20;
        assert!(
            (gained - freed as i64).abs() < metadata,
            "snapshot {snapshot}: {gained} bytes"
        );
    }
}

#[test]
fn an_fsync_logs_the_writes_of_its_file_only() {
    let mut bench = bench(json!({}), 2, &[]);
    bench.write(0, 5, 0, 8);
    bench.write(1, 6, 0, 48);
    bench.fsync(2, 5);
    bench.run(bench.now + fullstroke_units::Duration::from_millis(500));
    // A block of 12 KiB on both copies holds 4 KiB and the headers.
    assert_eq!(bench.moved(Operation::Write, 0..2), 2 * (12 << 10));
    bench.fsync(3, 0);
    bench.run(bench.now + fullstroke_units::Duration::from_millis(500));
    let both = 2 * ((12 << 10) + (36 << 10));
    assert_eq!(bench.moved(Operation::Write, 0..2), both);
    assert!(bench.done.contains_key(&3));
}

#[test]
fn logbias_throughput_writes_records_to_their_places() {
    for (logbias, in_place) in [("latency", false), ("throughput", true)] {
        let keys = json!({ "logbias": logbias, "logs": 1 });
        let mut bench = bench(keys, 3, &[]);
        bench.write(0, 5, 0, 48);
        bench.fsync(1, 5);
        bench.run(bench.now + fullstroke_units::Duration::from_millis(500));
        assert_eq!(
            bench.moved(Operation::Write, 2..3) == 0,
            in_place,
            "{logbias}"
        );
        assert_eq!(bench.pool.txg.logged.len(), usize::from(in_place));
        assert!(bench.done.contains_key(&1));
    }
}

#[test]
fn small_blocks_lie_on_the_special_vdev() {
    let keys = json!({ "special": 2, "special_small_blocks": "32KiB", "txg_timeout_s": 1 });
    let mut bench = bench(keys, 4, &[]);
    bench.write(0, 5, 0, 64);
    bench.write(1, 6, 0, 72);
    bench.seconds(20);
    let vdev = |number: u32| {
        let record = bench.pool.units_of(object(number).from(0)).start;
        bench.pool.records.moved[&record].0.vdev
    };
    assert_eq!((vdev(5), vdev(6)), (1, 0), "32 KiB and 36 KiB");
    // The block is read from the special vdev.
    let record = bench.pool.units_of(object(5).from(0)).start;
    bench.pool.records.arc.forget(record);
    bench.submit(2, Operation::Read, object(5).start().0, 64, false);
    bench.seconds(1);
    assert_eq!(bench.moved(Operation::Read, 0..2), 0);
    assert_eq!(bench.moved(Operation::Read, 2..4), 32 << 10);
}

#[test]
fn small_files_of_the_start_lie_on_the_special_vdev() {
    let keys = json!({ "special": 2, "special_small_blocks": "32KiB" });
    let mut bench = bench(keys, 4, &[(3, 20_000), (4, 60_000), (5, 1 << 20)]);
    bench.submit(0, Operation::Read, object(3).start().0, 40, false);
    bench.seconds(1);
    let special =
        |bench: &Bench| bench.moved(Operation::Read, 2..4) - bench.pool.counts.metadata_bytes;
    let before = special(&bench);
    assert_eq!(before, 20_000u64.next_multiple_of(4096));
    assert_eq!(bench.moved(Operation::Read, 0..2), 0);
    bench.submit(1, Operation::Read, object(4).start().0, 8, false);
    bench.submit(2, Operation::Read, object(5).start().0, 8, false);
    bench.seconds(1);
    assert_eq!(special(&bench), before);
}

#[test]
fn metadata_of_files_has_two_copies() {
    let mut bench = bench(json!({ "txg_timeout_s": 1 }), 2, &[]);
    let table = DatasetObject::TABLE.start().0;
    bench.submit(0, Operation::Write, table, 32, false);
    bench.submit(1, Operation::Write, table, 32, false);
    bench.seconds(20);
    let once = bench.pool.counts.metadata;
    assert_eq!(bench.pool.counts.written, 0, "no data");
    bench.submit(2, Operation::Write, table + 32, 64, false);
    bench.seconds(20);
    let further = bench.pool.counts.metadata - once;
    // Two blocks of the table instead of one.
    assert_eq!(further - once, 2 * 4096);
}

#[test]
fn an_extent_across_two_objects_is_refused() {
    let mut bench = bench(json!({}), 2, &[]);
    let last = DatasetObject::SECTORS - 8;
    bench.submit(0, Operation::Read, object(5).start().0 + last, 16, false);
    assert_eq!(bench.done[&0].status, RequestStatus::OutOfRange);
}

#[test]
fn keys_without_meaning_for_files_are_refused() {
    let members = vec![Sectors(20_000_000); 4];
    let refusal = |keys: Value| {
        let read = PoolSettings::read(Kind::Mirror, keys.as_object().unwrap(), &members);
        let start = DatasetStart {
            files: vec![(Object(2), 1 << 40)],
            ..DatasetStart::default()
        };
        let held = read.and_then(|settings| settings.holding(start));
        held.unwrap_err().to_string()
    };
    assert!(refusal(json!({ "processor": {} })).contains("processor"));
    assert!(
        refusal(json!({})).contains("need 1TiB"),
        "{}",
        refusal(json!({}))
    );
    for small in ["128KiB", "3KiB", "64KiB"] {
        let keys = json!({ "special_small_blocks": small, "recordsize": "64KiB", "special": 2 });
        assert!(refusal(keys).contains("special_small_blocks"));
    }
    let keys = json!({ "special_small_blocks": "4KiB" });
    assert!(refusal(keys).contains("no special vdev"));
    let keys = json!({ "special_small_blocks": "4KiB", "special": 2 });
    let volume = PoolSettings::read(Kind::Mirror, keys.as_object().unwrap(), &members).unwrap();
    assert!(
        volume.check_volume().is_err(),
        "a volume has no small blocks"
    );
    let extent = Extent::new(0, 8);
    assert_eq!(DatasetObject::at(extent.start).0.number, 0);
}

#[test]
fn a_sequential_read_reads_ahead_up_to_the_end_of_the_file() {
    let mut bench = bench(json!({}), 2, &[(3, 4 << 20), (4, 4 << 20)]);
    for record in 0..32 {
        let start = object(3).start().0 + record * RECORD;
        bench.submit(record, Operation::Read, start, RECORD, false);
        bench.seconds(1);
    }
    assert!(bench.pool.counts.fetched > 24);
    let data = bench.moved(Operation::Read, 0..2) - bench.pool.counts.metadata_bytes;
    assert_eq!(data, 4 << 20, "no other file");
    // A hole has no I/O.
    let hole = object(3).start().0 + 500 * RECORD;
    bench.submit(100, Operation::Read, hole, RECORD, false);
    assert_eq!(bench.done[&100].status, RequestStatus::Done);
}
