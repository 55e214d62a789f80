//! TRIM of free space.

use super::Bench;
use crate::capacity::{FRONT, PARTITION};
use crate::config::PoolSettings;
use crate::keys::Kind;
use fullstroke_contract::Operation;
use fullstroke_units::{SECTOR_BYTES, Sectors, Seed};
use serde_json::{Value, json};

const RECORDS: u64 = 400;

fn bench(kind: Kind, keys: Value, drives: usize) -> Bench {
    let members = vec![Sectors(20_000_000); drives];
    let settings = PoolSettings::read(kind, keys.as_object().unwrap(), &members).unwrap();
    Bench::of(settings.trimming(vec![true; drives]).unwrap())
}

/// Returns the parts of the vdev that a TRIM of a mirror covers.
fn trims(bench: &Bench, from: usize) -> Vec<(u64, u64)> {
    let sent = bench.sent[from..].iter();
    let trims =
        sent.filter(|(drive, request)| *drive == 0 && request.operation == Operation::Discard);
    trims
        .map(|(_, request)| {
            let start = (request.extent.start.0 - PARTITION) * SECTOR_BYTES - FRONT;
            (start, start + request.extent.sectors.0 * SECTOR_BYTES)
        })
        .collect()
}

/// No TRIM reaches a record in use.
#[test]
fn a_trim_never_meets_data() {
    let keys = json!({
        "autotrim": true, "volsize": "50MiB", "txg_timeout_s": 1, "dirty_data_max": "8MiB",
        "trim": true, "trim_rate": "200MB"
    });
    let mut bench = bench(Kind::Mirror, keys, 2);
    let mut random = Seed(4).stream("records");
    let (mut seen, mut trimmed) = (0, 0);
    for id in 0..2000 {
        let record = random.below(RECORDS);
        bench.submit(id, Operation::Write, record * 256, 256, false);
        bench.run(bench.now + fullstroke_units::Duration::from_millis(50));
        for (start, end) in trims(&bench, seen) {
            trimmed += end - start;
            for record in 0..RECORDS {
                let (dva, psize, _) = bench.pool.place_of(record);
                let apart = dva.offset + psize <= start || end <= dva.offset;
                assert!(
                    apart,
                    "record {record} at {dva:?}, TRIM of {start} to {end}"
                );
            }
        }
        seen = bench.sent.len();
    }
    bench.seconds(200);
    assert!(trimmed > 9 << 30, "{trimmed} bytes");
}

#[test]
fn freed_space_is_trimmed_once_and_all_of_it() {
    let keys = json!({ "autotrim": true, "volsize": "50MiB", "txg_timeout_s": 1 });
    let mut bench = bench(Kind::Raidz(1), keys, 3);
    for id in 0..RECORDS {
        bench.submit(id, Operation::Write, id * 256, 256, false);
    }
    bench.seconds(20);
    assert_eq!(
        bench.bytes(Operation::Discard),
        0,
        "two groups later at the earliest"
    );
    // Further groups let the freed space become free, and give each metaslab its turn.
    for id in 0..60 {
        bench.submit(1000 + id, Operation::Write, 0, 256, false);
        bench.seconds(2);
    }
    let freed = RECORDS * bench.pool.settings.vdevs[0].0.asize(128 << 10);
    let trimmed = bench.bytes(Operation::Discard);
    // The pool's metadata and the record that is written again add a quarter.
    assert!(
        (freed..freed + freed / 4).contains(&trimmed),
        "{trimmed} of {freed} bytes"
    );
    assert_eq!(bench.pool.trim.counts.1, trimmed);
}

#[test]
fn a_trim_on_demand_tells_all_free_space_at_its_rate() {
    let keys = json!({ "trim": true, "volsize": "50MiB", "txg_timeout_s": 1 });
    let free = |bench: &Bench| bench.pool.space.fragments().1;
    let mut fast = bench(Kind::Mirror, keys.clone(), 2);
    let before = free(&fast);
    fast.submit(0, Operation::Read, 0, 8, false);
    fast.seconds(100);
    assert_eq!(fast.pool.trim.counts.1, before);
    assert_eq!(free(&fast), before, "all space is free again");
    let mut slow = keys;
    slow["trim_rate"] = "100MB".into();
    let mut slow = bench(Kind::Mirror, slow, 2);
    slow.submit(0, Operation::Read, 0, 8, false);
    slow.seconds(10);
    let trimmed = slow.pool.trim.counts.1;
    assert!((900_000_000..1_300_000_000).contains(&trimmed), "{trimmed}");
}

#[test]
fn a_pool_without_a_drive_that_takes_trim_is_refused() {
    let members = vec![Sectors(20_000_000); 2];
    for key in ["autotrim", "trim"] {
        let keys = json!({ key: true });
        let keys = keys.as_object().unwrap();
        let settings = PoolSettings::read(Kind::Mirror, keys, &members).unwrap();
        let error = settings.trimming(vec![false; 2]).unwrap_err();
        assert_eq!(error.key, key);
        assert!(error.message.contains("cannot trim"), "{error}");
    }
    let keys = json!({ "trim_rate": "1MB" });
    let error = PoolSettings::read(Kind::Mirror, keys.as_object().unwrap(), &members).unwrap_err();
    assert_eq!(error.key, "trim_rate");
}
