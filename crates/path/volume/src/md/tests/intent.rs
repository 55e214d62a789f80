//! Superblocks and the write-intent bitmap on the members.

use super::super::bitmap::WriteIntent;
use super::super::records::MdRecords;
use super::laboratory::{LATENCY, Laboratory, MemberIo};
use fullstroke_contract::Operation;
use fullstroke_units::{Bytes, Duration};
use serde_json::{Value, json};

/// The arrays of the tests: layout, members, keys.
fn arrays() -> [(&'static str, usize, Value); 3] {
    [
        ("raid1", 2, json!({ "like": "md" })),
        ("raid10", 4, json!({ "like": "md", "chunk": "64KiB" })),
        (
            "raid5",
            4,
            json!({ "like": "md", "chunk": "64KiB", "stripe_cache": 256 }),
        ),
    ]
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_nanos(seconds * 1_000_000_000)
}

/// Returns the records in the order of their writes, one letter each: `s` for the superblock, `b`
/// for the first page of the bitmap.
fn records(ios: &[MemberIo]) -> String {
    let letter = |io: &MemberIo| match io {
        (Operation::Write, _, 0, 512) => Some('s'),
        (Operation::Write, _, 4096, 512) => Some('b'),
        _ => None,
    };
    ios.iter().filter_map(letter).collect()
}

/// Returns `text` with each letter `members` times.
fn of_all(text: &str, members: usize) -> String {
    let each = |letter: char| std::iter::repeat_n(letter, members);
    text.chars().flat_map(each).collect()
}

fn with(bitmap: WriteIntent) -> MdRecords {
    MdRecords {
        bitmap: Some(bitmap),
        ..MdRecords::default()
    }
}

#[test]
fn superblocks_are_written_before_the_first_write_and_after_the_last() {
    // The kernel, in samples/kernel-lab/records.txt: a write of 4 KiB, another soon after, a rest,
    // a write.
    for (layout, members, keys) in arrays() {
        let records_of = with(WriteIntent::None);
        let mut laboratory = Laboratory::recorded(layout, &keys, members, records_of);
        laboratory.rest(seconds(2));
        let first = laboratory.single(Operation::Write, 1 << 20, 4096);
        let first_took = laboratory.done[0].breakdown.response();
        assert_eq!(records(&first[..members]), of_all("s", members), "{layout}");
        let second = laboratory.single(Operation::Write, 1 << 20, 4096);
        let second_took = laboratory.done[0].breakdown.response();
        assert_eq!(records(&second), "", "{layout}: the array is active");
        assert!(first_took >= second_took + LATENCY, "{layout}");
        laboratory.issued.clear();
        laboratory.rest(Duration::from_nanos(150_000_000));
        assert_eq!(records(&laboratory.issued), "", "{layout}: not clean yet");
        laboratory.rest(Duration::from_nanos(300_000_000));
        let written = records(&laboratory.issued);
        assert_eq!(written, of_all("s", members), "{layout}: clean");
        laboratory.issued.clear();
        laboratory.rest(seconds(30));
        assert!(laboratory.issued.is_empty(), "{layout}: nothing more");
        let third = laboratory.single(Operation::Write, 1 << 20, 4096);
        assert_eq!(records(&third), of_all("s", members), "{layout}");
    }
}

#[test]
fn the_bit_is_on_all_members_before_the_first_write_of_a_clean_region() {
    // The kernel: bitmap, superblocks, bitmap, then the data.
    for (layout, members, keys) in arrays() {
        let records_of = with(WriteIntent::Internal);
        let mut laboratory = Laboratory::recorded(layout, &keys, members, records_of);
        laboratory.rest(seconds(2));
        let write =
            |laboratory: &mut Laboratory, offset| laboratory.single(Operation::Write, offset, 4096);
        let first = write(&mut laboratory, 1 << 20);
        let before = &first[..3 * members];
        assert_eq!(records(before), of_all("bsb", members), "{layout}");
        let first_took = laboratory.done[0].breakdown.response();
        let second = write(&mut laboratory, 1 << 20);
        assert_eq!(
            records(&second),
            "",
            "{layout}: the region is not clean yet"
        );
        let second_took = laboratory.done[0].breakdown.response();
        assert!(
            first_took >= second_took + LATENCY + LATENCY + LATENCY,
            "{layout}"
        );
        // Another region of the active array: the bit alone.
        let other = write(&mut laboratory, 400 << 20);
        assert_eq!(records(&other), of_all("b", members), "{layout}");
        laboratory.rest(seconds(1));
        // The array has become clean, but the region has not.
        let third = write(&mut laboratory, 1 << 20);
        assert_eq!(records(&third), of_all("bs", members), "{layout}");
        laboratory.rest(seconds(30));
        let fourth = write(&mut laboratory, 1 << 20);
        assert_eq!(records(&fourth), of_all("bsb", members), "{layout}");
    }
}

#[test]
fn an_array_without_a_delay_stays_active_and_large_regions_become_dirty_once() {
    let (layout, members, keys) = &arrays()[1];
    let records_of = MdRecords {
        region: Bytes(1 << 30),
        safe_mode_delay: Duration::ZERO,
        ..with(WriteIntent::Internal)
    };
    let mut laboratory = Laboratory::recorded(layout, keys, *members, records_of);
    laboratory.single(Operation::Write, 0, 4096);
    laboratory.rest(seconds(2));
    let far = laboratory.single(Operation::Write, 800 << 20, 4096);
    assert_eq!(records(&far), "", "one region, and the array is active");
}

#[test]
fn a_write_in_a_clean_region_takes_a_flush_and_a_forced_page_longer() {
    // The scheme of `md_super_write`, as arithmetic: the data waits for a flush and for the page of
    // the bitmap on all members, which work side by side. A region that is dirty costs nothing.
    let flush = Duration::from_nanos(15_000_000);
    for (layout, members, keys) in arrays() {
        let records_of = MdRecords {
            safe_mode_delay: Duration::ZERO,
            ..with(WriteIntent::Internal)
        };
        let mut laboratory = Laboratory::recorded(layout, &keys, members, records_of);
        laboratory.flush_latency = flush;
        let took = |laboratory: &mut Laboratory, offset| {
            laboratory.single(Operation::Write, offset, 4096);
            laboratory.done[0].breakdown.response()
        };
        took(&mut laboratory, 1 << 20);
        let dirty = took(&mut laboratory, 2 << 20);
        let clean = took(&mut laboratory, 400 << 20);
        let expected = dirty + flush + LATENCY;
        // The thread wakes up once more.
        let wake_ups = Duration::from_nanos(20_000);
        assert!(
            clean >= expected && clean <= expected + wake_ups,
            "{layout}: {clean:?} instead of {expected:?}"
        );
    }
}

#[test]
fn pages_with_bits_that_became_clean_are_written_behind_a_flush_too() {
    for (layout, members, keys) in arrays() {
        let records_of = MdRecords {
            safe_mode_delay: Duration::ZERO,
            ..with(WriteIntent::Internal)
        };
        let mut laboratory = Laboratory::recorded(layout, &keys, members, records_of);
        laboratory.single(Operation::Write, 1 << 20, 4096);
        (laboratory.issued, laboratory.flushes) = (Vec::new(), 0);
        laboratory.rest(seconds(30));
        let written = records(&laboratory.issued);
        assert_eq!(written, of_all("b", members), "{layout}");
        assert_eq!(laboratory.flushes, members as u64, "{layout}");
    }
}

#[test]
fn small_members_have_no_bitmap_unless_told() {
    let (layout, members, keys) = &arrays()[0];
    let mut laboratory = Laboratory::recorded(layout, keys, *members, MdRecords::default());
    let first = laboratory.single(Operation::Write, 0, 4096);
    assert_eq!(records(&first), "ss", "less than 100 GiB of each member");
}

#[test]
fn regions_that_a_missing_member_missed_stay_dirty() {
    let (layout, members, keys) = &arrays()[2];
    let mut laboratory = Laboratory::recorded(layout, keys, *members, with(WriteIntent::Internal));
    laboratory.order(fullstroke_contract::LayerOrder::Fail { member: 3 });
    laboratory.single(Operation::Write, 1 << 20, 4096);
    laboratory.rest(seconds(60));
    let again = laboratory.single(Operation::Write, 1 << 20, 4096);
    assert_eq!(
        records(&again),
        of_all("bs", members - 1),
        "no bit is written"
    );
}
