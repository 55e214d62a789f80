//! Random requests, with members that fail.

use super::super::bitmap::WriteIntent;
use super::super::journal::JournalDevice;
use super::super::records::MdRecords;
use super::laboratory::Laboratory;
use fullstroke_contract::{LayerOrder, Operation, RequestStatus};
use fullstroke_units::{Bytes, Duration, Random, Sectors, Seed};
use serde_json::{Value, json};

/// The records of an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Nothing,
    Bitmap,
    PartialParity,
    Journal,
}

/// Carries out random requests, many at a time, on an array with few stripes. With records, the
/// array has superblocks and a bitmap of small regions, a partial parity log, or a journal of few blocks;
/// requests lie far apart, and pauses let the array and its regions become clean.
fn storm(seed: u64, kept: Kept) {
    let recorded = kept != Kept::Nothing;
    let mut random = Seed(seed).stream("storm");
    let mut arrays = [("raid4", 1), ("raid5", 1), ("raid6", 2)];
    if kept == Kept::PartialParity {
        arrays = [("raid5", 1); 3];
    }
    let (layout, parities) = arrays[random.below(3) as usize];
    let members = parities + 2 + random.below(5) as usize;
    let chunk = 4096_u64 << random.below(5);
    let updates = ["reconstruct", "fewer", "modify"][random.below(3) as usize];
    let kernel = ["2.6.16", "2.6.23", "6.12"][random.below(3) as usize];
    let keys = json!({
        "like": "md", "chunk": chunk, "stripe_cache": 17 + random.below(40), "parity_updates": updates,
        "preread_bypass_threshold": random.below(3), "largest_member_io": 4096_u64 << random.below(8),
        "kernel": kernel,
    });
    let mut laboratory = match kept {
        Kept::Nothing => Laboratory::new(layout, &keys, members),
        _ => recorded_laboratory(layout, &keys, members, kept, &mut random),
    };
    let span = if recorded { 64 << 20 } else { 1 << 20 };
    let (requests, depth) = (400, 1 + random.below(40));
    let (mut submitted, mut failed) = (0, 0);
    while (laboratory.done.len() as u64) < requests {
        let in_flight = submitted - laboratory.done.len() as u64;
        let idle = in_flight == 0;
        if recorded && idle && random.below(4) == 0 {
            laboratory.rest(Duration::from_nanos(1 << random.below(35)));
        }
        if submitted < requests && in_flight < depth && (idle || random.below(3) > 0) {
            let operation = match random.below(if recorded { 20 } else { 3 }) {
                0 | 3..=8 => Operation::Read,
                9 => Operation::Flush,
                _ => Operation::Write,
            };
            // Most requests meet in a small region, and some are whole pages.
            let unit = if random.below(2) == 0 { 512 } else { 4096 };
            let offset = random.below(span / unit) * unit;
            let most = 1 << random.below(10);
            let bytes = (1 + random.below(most)) * unit;
            match operation {
                Operation::Flush => laboratory.submit(submitted, operation, 0, 0),
                _ => laboratory.submit(submitted, operation, offset, bytes),
            }
            submitted += 1;
        } else {
            // A run ends when nothing but chores is left.
            assert!(
                laboratory.has_work(),
                "seed {seed}: {in_flight} requests wait for ever"
            );
            laboratory.step();
        }
        if failed < parities && submitted > 100 * (failed as u64 + 1) {
            let member = (failed * 2) % members;
            laboratory.order(LayerOrder::Fail { member });
            failed += 1;
        }
    }
    assert!(
        laboratory
            .done
            .iter()
            .all(|done| done.status == RequestStatus::Done),
        "seed {seed}: {layout} of {members} survives {failed} failures"
    );
    for done in &laboratory.done {
        let whole = done.finished.since(done.submitted);
        assert_eq!(whole, done.breakdown.response(), "seed {seed}");
    }
}

/// Returns an array with superblocks and a bitmap of small regions. The flushes of half of the
/// arrays take no time.
fn recorded_laboratory(
    layout: &str,
    keys: &Value,
    members: usize,
    kept: Kept,
    random: &mut Random,
) -> Laboratory {
    let delays = [0, 1_000_000, 201_000_000];
    let records = MdRecords {
        bitmap: Some(match kept {
            Kept::Bitmap => WriteIntent::Internal,
            _ => WriteIntent::None,
        }),
        region: Bytes(4096 << random.below(9)),
        safe_mode_delay: Duration::from_nanos(delays[random.below(3) as usize]),
        partial_parity: kept == Kept::PartialParity,
        journal: (kept == Kept::Journal).then(|| JournalDevice {
            sectors: Sectors(4096 + 8 * (40 + random.below(400))),
            volatile: random.below(2) == 0,
        }),
    };
    let mut laboratory = Laboratory::recorded(layout, keys, members, records);
    if random.below(2) == 0 {
        laboratory.flush_latency = Duration::ZERO;
    }
    laboratory
}

#[test]
fn every_request_ends_once_while_members_fail() {
    for seed in 0..60 {
        storm(seed, Kept::Nothing);
    }
}

#[test]
fn every_request_ends_once_above_a_bitmap_while_members_fail() {
    for seed in 0..120 {
        storm(seed, Kept::Bitmap);
    }
}

#[test]
fn every_request_ends_once_above_a_partial_parity_log_while_members_fail() {
    for seed in 0..120 {
        storm(seed, Kept::PartialParity);
    }
}

#[test]
fn every_request_ends_once_above_a_full_journal_while_members_fail() {
    for seed in 0..120 {
        storm(seed, Kept::Journal);
    }
}

#[test]
fn without_its_journal_an_array_reads_and_refuses_writes() {
    let keys = json!({ "like": "md", "chunk": "64KiB", "stripe_cache": 17 });
    let records = MdRecords {
        journal: Some(JournalDevice {
            sectors: Sectors(1 << 20),
            volatile: true,
        }),
        ..MdRecords::default()
    };
    let mut laboratory = Laboratory::recorded("raid5", &keys, 4, records);
    laboratory.single(Operation::Write, 0, 4096);
    laboratory.refuses = Some(4);
    let mut status = |operation, offset| {
        laboratory.single(operation, offset, 4096);
        laboratory.done[0].status
    };
    // The stripe of the first refused write goes on to its members.
    status(Operation::Write, 1 << 20);
    assert_eq!(status(Operation::Write, 1 << 24), RequestStatus::Lost);
    assert_eq!(status(Operation::Read, 1 << 24), RequestStatus::Done);
}

#[test]
fn requests_beyond_the_redundancy_are_lost_and_end() {
    let keys = json!({ "like": "md", "chunk": "64KiB", "stripe_cache": 17 });
    let mut laboratory = Laboratory::new("raid5", &keys, 4);
    laboratory.order(LayerOrder::Fail { member: 0 });
    laboratory.order(LayerOrder::Fail { member: 1 });
    for (id, operation) in [(0, Operation::Read), (1, Operation::Write)] {
        laboratory.submit(id, operation, 0, 192 * 1024);
    }
    while laboratory.done.len() < 2 {
        laboratory.step();
    }
    assert!(
        laboratory
            .done
            .iter()
            .all(|done| done.status == RequestStatus::Lost)
    );
}
