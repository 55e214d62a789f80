//! Times of the processor in pools above drives that take 10 ms for each request.

use super::{Bench, SERVICE, raidz2};
use fullstroke_contract::Operation;
use fullstroke_units::{Duration, Time};
use serde_json::json;

/// 128 KiB at 10^6 bytes a second.
const RECORD: Duration = Duration::from_nanos(131_072_000);

fn with(processor: serde_json::Value) -> Bench {
    raidz2(json!({ "processor": processor, "txg_timeout_s": 1 }))
}

#[test]
fn threads_decrypt_records_from_the_drives_side_by_side() {
    for (threads, both) in [(1, RECORD * 2), (2, RECORD)] {
        let mut bench = with(json!({ "threads": threads, "encryption_mb_per_s": 1 }));
        // Two records that are no sequence: nothing is read ahead.
        bench.submit(1, Operation::Read, 0, 8, false);
        bench.submit(2, Operation::Read, 25_600, 8, false);
        bench.seconds(2);
        let last = bench.done[&1].finished.max(bench.done[&2].finished);
        let drives = last.since(Time::ZERO + both);
        assert!(
            drives >= SERVICE && drives <= SERVICE * 2,
            "{threads}: {last:?}"
        );
    }
}

#[test]
fn a_copy_delays_its_own_request_only() {
    let mut bench = with(json!({ "threads": 1, "copy_mb_per_s": 1 }));
    bench.submit(1, Operation::Read, 0, 256, false);
    bench.seconds(1);
    assert_eq!(bench.done[&1].finished, Time::ZERO + SERVICE + RECORD);
    // From memory, two callers at a time.
    let now = bench.now;
    bench.submit(2, Operation::Read, 0, 256, false);
    bench.submit(3, Operation::Read, 0, 256, false);
    bench.seconds(1);
    assert_eq!(bench.done[&2].finished, now + RECORD);
    assert_eq!(bench.done[&3].finished, now + RECORD);
    // A write enters the transaction group after the copy.
    let now = bench.now;
    bench.submit(4, Operation::Write, 0, 256, false);
    bench.seconds(1);
    assert_eq!(bench.done[&4].finished, now + RECORD);
}

#[test]
fn a_written_record_is_decrypted_at_its_first_read_by_the_caller() {
    let mut bench = with(json!({ "threads": 64, "encryption_mb_per_s": 1 }));
    bench.submit(1, Operation::Write, 0, 256, false);
    bench.seconds(5);
    assert!(bench.pool.txg.groups > 0, "the record is on the drives");
    for (id, expected) in [(2, RECORD), (3, Duration::ZERO)] {
        let now = bench.now;
        bench.submit(id, Operation::Read, 0, 8, false);
        bench.seconds(1);
        assert_eq!(bench.done[&id].finished, now + expected);
    }
}

#[test]
fn compressed_records_in_memory_are_decompressed_by_the_caller() {
    let mut bench = raidz2(json!({
        "compression": 2,
        "processor": { "decompress_mb_per_s": 1 },
        "prefetch": false
    }));
    bench.submit(1, Operation::Read, 0, 8, false);
    bench.seconds(1);
    assert_eq!(bench.done[&1].finished, Time::ZERO + SERVICE + RECORD);
    // The decompressed record stays in the small cache.
    let now = bench.now;
    bench.submit(2, Operation::Read, 8, 8, false);
    assert_eq!(bench.done[&2].finished, now);
}

#[test]
fn a_transaction_group_waits_for_the_processor() {
    let groups = |processor| {
        let mut bench = with(processor);
        for record in 0..16 {
            bench.submit(record, Operation::Write, record * 256, 256, false);
        }
        bench.seconds(3);
        bench.pool.txg.groups
    };
    // 16 records of 131 ms each: 2.1 s with one thread, 0.13 s with 16.
    assert_eq!(groups(json!({ "threads": 1, "parity_mb_per_s": 1 })), 0);
    assert_eq!(groups(json!({ "threads": 16, "parity_mb_per_s": 1 })), 1);
}
