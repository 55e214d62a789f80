//! Pools with a cache of records on a flash device, the ninth drive.

use super::{Bench, SERVICE};
use crate::keys::Kind;
use fullstroke_contract::Operation;
use fullstroke_units::Time;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The drive with the cache.
const CACHE: usize = 8;

fn with(mut keys: Value) -> Bench {
    let more =
        json!({ "caches": 1, "arc": "2MiB", "l2arc": { "size": "8MiB" }, "prefetch": false });
    let keys = keys.as_object_mut().unwrap();
    for (key, value) in more.as_object().unwrap() {
        keys.entry(key.clone()).or_insert(value.clone());
    }
    Bench::new(Kind::Raidz(2), Value::Object(keys.clone()), 9)
}

/// Reads the first sector of each record, one after the other.
fn read(bench: &mut Bench, id: &mut u64, records: impl Iterator<Item = u64>) {
    for record in records {
        *id += 1;
        bench.submit(*id, Operation::Read, record * 256, 1, false);
        let until = bench.now + SERVICE * 2;
        bench.run(until);
    }
}

fn count(bench: &Bench, operation: Operation, cache: bool) -> usize {
    let of = bench
        .sent
        .iter()
        .filter(|(drive, request)| request.operation == operation && (*drive == CACHE) == cache);
    of.count()
}

#[test]
fn records_that_leave_the_memory_are_read_from_the_cache() {
    let mut bench = with(json!({}));
    let mut id = 0;
    // 2 MiB of memory hold 16 records. The thread comes once a second.
    for _ in 0..20 {
        read(&mut bench, &mut id, 0..32);
    }
    assert!(count(&bench, Operation::Write, true) > 0);
    let before = (count(&bench, Operation::Read, false), bench.sent.len());
    read(&mut bench, &mut id, 0..32);
    let vdevs = count(&bench, Operation::Read, false) - before.0;
    assert_eq!(vdevs, 0, "all records are in memory or in the cache");
    assert!(
        bench.sent.len() > before.1,
        "the memory does not hold all records"
    );
    let (hits, misses) = (bench.pool.l2arc.hits, bench.pool.l2arc.misses);
    assert!(hits > misses / 2, "{hits} of {misses}");
    // The device has no longer the data of a record that is written anew.
    let kept = (0..32).find(|&record| bench.pool.l2arc.find(record, false).is_some());
    let kept = kept.expect("a record is on the device");
    bench.submit(9_000, Operation::Write, kept * 256, 256, false);
    assert_eq!(bench.pool.l2arc.find(kept, false), None);
}

#[test]
fn the_cache_is_a_ring_and_writes_no_more_than_its_limit() {
    let keys = json!({ "l2arc": { "size": "2MiB", "write_max": "256KiB" } });
    let mut bench = with(keys);
    let mut id = 0;
    let begin = bench.now;
    read(&mut bench, &mut id, 0..400);
    let seconds = bench.now.since(begin).as_millis_f64() / 1000.0;
    // Two records each second, twice as many before the first eviction; 200 ms after a full write.
    let written = bench.pool.l2arc.fed >> 17;
    assert!(
        written as f64 <= 2.0 * 5.0 * seconds + 4.0,
        "{written} in {seconds} s"
    );
    assert!(written > 16, "{written}");
    assert!(bench.pool.l2arc.headers() <= 16 * 96, "16 records fit");
    let places: BTreeMap<u64, u64> = bench
        .sent
        .iter()
        .filter(|(drive, _)| *drive == CACHE)
        .map(|(_, request)| (request.extent.start.0, request.extent.sectors.0))
        .collect();
    let (first, last) = (places.first_key_value(), places.last_key_value());
    let bytes = (last.unwrap().0 + last.unwrap().1 - first.unwrap().0) * 512;
    assert_eq!(bytes, 2 << 20);
}

#[test]
fn records_that_were_only_read_ahead_stay_out_of_the_cache() {
    let written = |noprefetch: bool| {
        let mut bench = with(json!({
            "prefetch": true,
            "arc": "64MiB",
            "l2arc": { "size": "8MiB", "noprefetch": noprefetch }
        }));
        // Four records are read; those behind are read ahead.
        let mut id = 0;
        read(&mut bench, &mut id, 0..4);
        bench.seconds(3);
        bench.pool.l2arc.fed >> 17
    };
    assert_eq!(written(true), 4);
    assert!(written(false) > 4);
}

#[test]
fn a_run_does_not_wait_for_the_cache_and_its_loss_costs_nothing() {
    let mut bench = with(json!({ "sync": "always" }));
    assert!(matches!(
        fullstroke_contract::Node::next_wake(&bench.pool),
        fullstroke_contract::Wake::Chore(_)
    ));
    let mut id = 0;
    for _ in 0..4 {
        read(&mut bench, &mut id, 0..32);
    }
    bench.pool.io.set(CACHE, true, false);
    let before = bench.sent.len();
    read(&mut bench, &mut id, 0..32);
    assert!(
        bench.sent[before..]
            .iter()
            .all(|(drive, _)| *drive != CACHE)
    );
    // A flush of the log does not go to the cache.
    bench.pool.io.set(CACHE, false, false);
    bench.submit(9_000, Operation::Write, 0, 256, false);
    bench.seconds(20);
    assert_eq!(count(&bench, Operation::Flush, true), 0);
    assert!(count(&bench, Operation::Flush, false) > 0);
    assert!(bench.done.values().all(|done| done.finished > Time::ZERO));
}
