//! Pools with a special vdev behind eight data drives.

use super::Bench;
use crate::keys::Kind;
use fullstroke_contract::Operation;
use serde_json::json;

fn written(special: u32) -> Bench {
    let keys = json!({ "special": special, "txg_timeout_s": 1 });
    let mut bench = Bench::new(Kind::Raidz(2), keys, 8 + special as usize);
    // Records far apart, each below an indirect block of its own.
    for record in 0..6 {
        bench.submit(record, Operation::Write, record * 2000 * 256, 256, false);
    }
    bench.seconds(30);
    assert_eq!(bench.pool.txg.groups, 1);
    bench
}

fn bytes(bench: &Bench, drives: std::ops::Range<usize>) -> u64 {
    let of = bench
        .sent
        .iter()
        .filter(|(drive, request)| request.operation == Operation::Write && drives.contains(drive));
    of.map(|(_, request)| request.extent.sectors.0 * 512).sum()
}

#[test]
fn metadata_lies_on_the_special_vdev_and_data_on_the_others() {
    let (without, with) = (written(0), written(3));
    let metadata = with.pool.counts.metadata;
    assert_eq!(metadata, without.pool.counts.metadata);
    // Three drives with a copy of each block.
    assert_eq!(bytes(&with, 8..11), 3 * metadata);
    let (all, data) = (bytes(&without, 0..8), bytes(&with, 0..8));
    assert!(
        all > data + metadata,
        "{all} and {data}, {metadata} of metadata"
    );
}

#[test]
fn places_of_metadata_on_the_special_vdev_are_freed() {
    let mut bench = written(3);
    for group in 1..60 {
        bench.submit(100 + group, Operation::Write, 0, 256, false);
        bench.seconds(10);
    }
    let places: std::collections::BTreeSet<u64> = bench
        .sent
        .iter()
        .filter(|(drive, request)| *drive == 8 && request.operation == Operation::Write)
        .map(|(_, request)| request.extent.start.0)
        .collect();
    let special = bench.pool.special.as_ref().unwrap();
    let (runs, free) = special.fragments();
    let used = (20_000_000 * 512u64).saturating_sub(free);
    assert!(
        used < 1 << 30,
        "{used} bytes are in use, {runs} runs are free"
    );
    assert!(places.len() > 60);
}

#[test]
fn a_pool_without_its_special_vdev_does_not_answer() {
    let mut bench = written(3);
    for drive in 8..10 {
        bench.pool.io.set(drive, true, false);
        assert!(bench.pool.io.answers());
    }
    bench.pool.io.set(10, true, false);
    assert!(!bench.pool.io.answers());
}
