//! Reads of inodes, directories and pointers.

use super::Bench;
use super::files::{bench, object};
use fullstroke_contract::{DatasetObject, Operation};
use serde_json::json;

const RECORD: u64 = 256;

fn read(bench: &mut Bench, id: u64, number: u32, record: u64) {
    let start = object(number).start().0 + record * RECORD;
    bench.submit(id, Operation::Read, start, 8, false);
    bench.seconds(2);
    assert!(bench.done.contains_key(&id));
}

#[test]
fn the_first_read_of_a_file_reads_its_inode_and_its_pointers() {
    let files = [(3, 1 << 30), (4, 64 << 10), (100, 64 << 10)];
    let mut bench = bench(json!({ "prefetch": false }), 2, &files);
    let counts = |bench: &Bench| {
        let counts = &bench.pool.counts;
        (counts.metadata_read, counts.metadata_bytes)
    };
    read(&mut bench, 0, 3, 0);
    assert_eq!(counts(&bench), (2, 4096 + (84 << 10)));
    // One request after the other: inode, pointers, record.
    let response = bench.done[&0].finished.as_nanos() / 1_000_000;
    assert_eq!(response, 30, "ms");
    read(&mut bench, 1, 3, 5);
    assert_eq!(counts(&bench).0, 2, "in memory");
    // 1,024 records of 128 KiB are 128 MiB.
    read(&mut bench, 2, 3, 1024);
    assert_eq!(counts(&bench).0, 3);
    // The inode of file 4 lies in the same block; the file has no pointers of its own.
    read(&mut bench, 3, 4, 0);
    assert_eq!(counts(&bench).0, 3);
    read(&mut bench, 4, 100, 0);
    assert_eq!(counts(&bench).0, 4);
    // A hole behind the end needs no pointers, and a new file none that would lie on a drive.
    read(&mut bench, 5, 4, 77);
    bench.submit(6, Operation::Write, object(5).start().0, 8, false);
    bench.seconds(20);
    assert_eq!(counts(&bench).0, 4);
}

#[test]
fn a_change_of_an_inode_on_the_drives_reads_its_block_first() {
    let mut bench = bench(json!({ "txg_timeout_s": 1 }), 2, &[(40, 1 << 20)]);
    let table = DatasetObject::TABLE.start().0;
    bench.submit(0, Operation::Write, table + 32, 32, false);
    bench.seconds(5);
    assert_eq!(bench.pool.counts.metadata_read, 1, "objects 32 to 63");
    bench.submit(1, Operation::Write, table + 64, 32, false);
    bench.seconds(5);
    assert_eq!(bench.pool.counts.metadata_read, 1, "a new block");
    bench.submit(2, Operation::Read, table + 64, 32, false);
    bench.seconds(5);
    assert_eq!(bench.pool.counts.metadata_read, 1, "in memory since");
}

#[test]
fn a_special_vdev_serves_metadata() {
    let keys = json!({ "special": 2, "prefetch": false });
    let mut bench = bench(keys, 4, &[(3, 1 << 30)]);
    read(&mut bench, 0, 3, 0);
    assert_eq!(bench.moved(Operation::Read, 2..4), 4096 + (84 << 10));
    assert_eq!(bench.moved(Operation::Read, 0..2), 128 << 10);
}

#[test]
fn primarycache_keeps_metadata_or_nothing() {
    let reads = |cache: &str| {
        let keys = json!({ "primarycache": cache, "prefetch": false });
        let mut bench = bench(keys, 2, &[(3, 1 << 30)]);
        for id in 0..4 {
            read(&mut bench, id, 3, 7);
        }
        let data = bench.moved(Operation::Read, 0..2) - bench.pool.counts.metadata_bytes;
        (data >> 17, bench.pool.counts.metadata_read)
    };
    assert_eq!(reads("all"), (1, 2));
    assert_eq!(reads("metadata"), (4, 2));
    assert_eq!(reads("none"), (4, 5), "pointers each time, the inode once");
}

#[test]
fn records_that_were_read_ahead_are_read_once_without_a_cache() {
    let mut bench = bench(json!({ "primarycache": "metadata" }), 2, &[(3, 8 << 20)]);
    for record in 0..64 {
        let start = object(3).start().0 + record * RECORD;
        bench.submit(record, Operation::Read, start, RECORD, false);
        bench.seconds(1);
    }
    let data = bench.moved(Operation::Read, 0..2) - bench.pool.counts.metadata_bytes;
    assert_eq!(data, 8 << 20);
}
