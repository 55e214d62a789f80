//! The write-intent bitmap.

use super::laboratory::{LATENCY, Laboratory, MemberIo};
use fullstroke_contract::Operation;
use fullstroke_units::Duration;
use serde_json::json;

/// Returns the writes of the bitmap's first page.
fn bits(ios: &[MemberIo]) -> usize {
    let is_bit = |io: &&MemberIo| io.0 == Operation::Write && io.2 == 0 && io.3 == 4096;
    ios.iter().filter(is_bit).count()
}

#[test]
fn the_bit_is_on_all_members_before_the_first_write_of_a_clean_region() {
    for (layout, members) in [("raid1", 2), ("raid10", 4), ("raid5", 5)] {
        let keys = match layout {
            "raid1" => json!({ "like": "md" }),
            "raid10" => json!({ "like": "md", "chunk": "64KiB" }),
            _ => json!({ "like": "md", "chunk": "64KiB", "stripe_cache": 256 }),
        };
        let mut laboratory = Laboratory::with_bitmap(layout, &keys, members);
        let write =
            |laboratory: &mut Laboratory, offset| laboratory.single(Operation::Write, offset, 4096);
        let first = write(&mut laboratory, 1 << 20);
        assert_eq!(bits(&first[..members]), members, "{layout}: {first:?}");
        let first_took = laboratory.done[0].breakdown.response();
        let second = write(&mut laboratory, 1 << 20);
        assert_eq!(bits(&second), 0, "{layout}: the region is not clean yet");
        let second_took = laboratory.done[0].breakdown.response();
        assert!(first_took >= second_took + LATENCY, "{layout}");
        laboratory.rest(Duration::from_nanos(30_000_000_000));
        let third = write(&mut laboratory, 1 << 20);
        assert_eq!(bits(&third), members, "{layout}: the region became clean");
    }
}
