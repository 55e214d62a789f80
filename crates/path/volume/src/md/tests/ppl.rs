//! The partial parity log is written before data and parity. Afterwards the members are flushed.

use super::super::bitmap::WriteIntent;
use super::super::records::MdRecords;
use super::laboratory::{LATENCY, Laboratory, MemberIo};
use fullstroke_contract::Operation;
use fullstroke_units::{Duration, Time};
use serde_json::json;

const KIB: u64 = 1024;

/// Returns a RAID 5 of four with a chunk, with or without the log. The array stays active.
fn array(chunk: u64, partial_parity: bool) -> Laboratory {
    let keys = json!({ "like": "md", "chunk": chunk, "stripe_cache": 256 });
    let records = MdRecords {
        bitmap: Some(WriteIntent::None),
        safe_mode_delay: Duration::ZERO,
        partial_parity,
        ..MdRecords::default()
    };
    let mut laboratory = Laboratory::recorded("raid5", &keys, 4, records);
    // The superblocks say that the array is active.
    laboratory.single(Operation::Write, 600 << 20, 4096);
    laboratory.flushes = 0;
    laboratory
}

/// Returns member and length in KiB of the writes to logs, and the number of I/Os before the first.
fn logged(ios: &[MemberIo]) -> (Vec<(usize, u64)>, usize) {
    let is_log = |io: &&MemberIo| io.0 == Operation::Write && io.2 < (1 << 20) && io.2 >= 4096;
    let before = ios.iter().position(|io| is_log(&io)).unwrap_or(ios.len());
    let logs = ios.iter().filter(is_log);
    (logs.map(|io| (io.1, io.3 / KIB)).collect(), before)
}

#[test]
fn partial_parity_is_on_the_member_with_the_parity_before_data_and_parity() {
    // Row 100 of chunks of 64 KiB has its parity on member 3, and its first chunk on member 0.
    let offset = 100 * 192 * KIB;
    let (mut plain, mut log) = (array(64 * KIB, false), array(64 * KIB, true));
    let without = plain.single(Operation::Write, offset, 8 * KIB);
    let with = log.single(Operation::Write, offset, 8 * KIB);
    let (logs, before) = logged(&with);
    assert_eq!(logs, [(3, 12)], "a header and two pages: {with:?}");
    let reads = without.iter().filter(|io| io.0 == Operation::Read).count();
    assert_eq!(before, reads, "between the reads and the writes: {with:?}");
    assert_eq!(with.len(), without.len() + 1);
    let took = |laboratory: &Laboratory| laboratory.done[0].breakdown.response();
    let (least, most) = (took(&plain) + LATENCY, Duration::from_nanos(20_000));
    assert!(
        took(&log) >= least && took(&log) <= least + most,
        "{:?} instead of {least:?}",
        took(&log)
    );
    assert_eq!(log.flushes, 2, "the member with the data, and the parity");
}

#[test]
fn rows_that_are_overwritten_as_a_whole_need_the_header_alone() {
    let mut log = array(64 * KIB, true);
    let ios = log.single(Operation::Write, 100 * 192 * KIB, 192 * KIB);
    let (logs, before) = logged(&ios);
    assert_eq!(before, 0, "no reads: {ios:?}");
    let members: Vec<_> = logs.iter().map(|&(member, _)| member).collect();
    assert!(members.iter().all(|&member| member == 3), "{ios:?}");
    assert!(logs.iter().all(|&(_, kib)| kib == 4), "{ios:?}");
    assert_eq!(log.flushes, 4 * logs.len() as u64);
}

#[test]
fn a_log_has_one_unit_on_its_way_until_the_members_are_flushed() {
    let mut log = array(64 * KIB, true);
    log.flush_latency = Duration::from_nanos(50_000_000);
    let offset = 100 * 192 * KIB;
    // The pages are in memory, so that no write has to read first.
    for page in [0, 8] {
        log.single(Operation::Write, offset + page * 4 * KIB, 4 * KIB);
    }
    log.done.clear();
    let begun = log.now;
    log.submit(1, Operation::Write, offset, 4 * KIB);
    log.rest(Duration::from_nanos(1_000_000));
    log.submit(2, Operation::Write, offset + 32 * KIB, 4 * KIB);
    while log.done.len() < 2 {
        log.step();
    }
    let took = |at: usize| log.done[at].finished.since(begun);
    assert!(took(0) < LATENCY * 3, "{:?}", took(0));
    // The log, data and parity, the flush; then the log, data and parity of the second write.
    let least = LATENCY * 4 + log.flush_latency;
    assert!(
        took(1) >= least && took(1) < least + LATENCY,
        "{:?}",
        took(1)
    );
    assert!(log.now > Time::ZERO);
}

#[test]
fn large_chunks_use_the_room_of_a_log_in_turns() {
    let mut log = array(512 * KIB, true);
    let row = 3 * 512 * KIB;
    let mut places = Vec::new();
    for write in 0..40 {
        let ios = log.single(Operation::Write, 100 * row + write * 12 * KIB, 4 * KIB);
        let of_log = ios
            .iter()
            .find(|io| io.0 == Operation::Write && io.2 < (1 << 20));
        places.extend(of_log.map(|io| io.2 / KIB));
    }
    assert_eq!(places.len(), 40);
    let is_behind = |pair: &[u64]| pair[1] == pair[0] + 8;
    assert!(places[..3].windows(2).all(is_behind), "{places:?}");
    let wrapped = places.windows(2).any(|pair| pair[1] < pair[0]);
    assert!(!wrapped, "40 units of 8 KiB fit into 516 KiB: {places:?}");
    // mdadm's smallest log has 1 MiB, so that small chunks have several units, too.
    let mut small = array(64 * KIB, true);
    let mut places = Vec::new();
    for write in 0..200 {
        let ios = small.single(Operation::Write, 100 * 192 * KIB + write * 8 * KIB, 4 * KIB);
        let of_log = ios
            .iter()
            .find(|io| io.0 == Operation::Write && io.1 == 3 && (4096..1 << 20).contains(&io.2));
        places.extend(of_log.map(|io| io.2 / KIB));
    }
    assert!(places[..3].windows(2).all(is_behind), "{places:?}");
}
