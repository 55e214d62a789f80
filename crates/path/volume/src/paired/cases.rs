//! Volumes of paired members for property tests.

use crate::bytes::build;
use crate::proofs::Case;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Layouts by name, with keys for members of 60 sectors or more.
pub(crate) fn paired_cases() -> impl Strategy<Value = Case> {
    let members = (1usize..4).prop_flat_map(|pairs| prop::collection::vec(60u64..200, 2 * pairs));
    members
        .prop_flat_map(|members| {
            let layouts = prop_oneof![
                2 => logical_zones(),
                2 => real_zones(members.clone(), Just(Vec::new()).boxed()),
                2 => real_zones(members.clone(), prop::collection::vec((1u64..8, 0u64..16), 1..4).boxed()),
                1 => (1u64..10).prop_map(|blocking| ("lzvs-naive", json!({ "blocking": blocking * 512 }))),
            ];
            let order: Vec<u32> = (0..members.len() as u32).collect();
            let case = (layouts, Just(members), Just(order).prop_shuffle());
            case.prop_map(|((name, keys), members, order)| Case { name, keys, members, order })
        })
        // Floors that no pair of zones can keep are refused; such cases are left out.
        .prop_filter("a layout that can be built", |case| case.layout(&[]).is_some())
}

fn logical_zones() -> impl Strategy<Value = (&'static str, Value)> {
    (2u32..5, 1u64..4, 1u32..50, 1u32..100).prop_map(|(half, blocking, inner, more)| {
        let ratio = format!("{}/{inner}", inner + more.min(2 * inner));
        (
            "lzvs",
            json!({ "zones": 2 * half, "blocking": blocking * 512, "ratio": ratio }),
        )
    })
}

/// Members with some zones of any rate from 8 to 32 KB/s, and parts with sizes in sectors and
/// floors in KB/s.
fn real_zones(
    members: Vec<u64>,
    parts: BoxedStrategy<Vec<(u64, u64)>>,
) -> impl Strategy<Value = (&'static str, Value)> {
    let zones = prop::collection::vec(
        prop::collection::vec((1u64..40, 8_000u64..32_000), 0..6),
        members.len(),
    );
    (zones, 1u64..4, parts).prop_map(move |(zones, blocking, parts)| {
        let table = |(zones, &sectors): (&Vec<(u64, u64)>, &u64)| {
            let mut left = sectors;
            let mut table: Vec<Value> = Vec::new();
            for &(length, rate) in zones {
                let length = length.min(left - 1);
                left -= length;
                table.push(json!({ "sectors": length, "bytes_per_s": rate }));
            }
            table.push(json!({ "sectors": left, "bytes_per_s": 8_000 }));
            table
        };
        let member_zones: Vec<Vec<Value>> = zones.iter().zip(&members).map(table).collect();
        // The slowest possible pair has 16 KB/s.
        let part = |&(sectors, rate): &(u64, u64)| {
            json!({ "size": sectors * 512, "floor_mb_per_s": rate as f64 / 1e3 })
        };
        let zones: Vec<Value> = parts.iter().map(part).collect();
        ("lzvs-geo", json!({ "blocking": blocking * 512, "zones": zones, "member_zones": member_zones }))
    })
}

proptest! {
    #[test]
    fn every_case_can_be_built(case in paired_cases()) {
        let layout = build(case.name, &case.keys, &case.members);
        prop_assert!(layout.is_ok(), "{}", layout.err().unwrap());
    }
}
