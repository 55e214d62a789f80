//! Compares the cost of row plans with an exhaustive enumeration.

use super::bands::{BandCut, BandCuts, RowBand};
use super::row::ParityRow;
use super::{ChunkContent, Placement, Rotation, RowMap};
use crate::bytes::build;
use crate::layout::{Layout, Role};
use crate::plan::{Detail, Method, Plan};
use fullstroke_contract::{Extent, LayersBelow, MemberState, Operation, Request, RequestStatus};
use fullstroke_units::Lbn;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

/// Returns true if `method` reads `cell` in `cut`, from the definition of the methods. Returns
/// `None` if the method is impossible.
fn reads(row: &ParityRow, cut: &BandCut, method: Method, cell: ChunkContent) -> Option<bool> {
    let lost = row.lost();
    let covered_lost = lost.iter().filter(|&&index| cut.covers(index)).count();
    let needs_all = match method {
        Method::ReadModifyWrite if covered_lost > 0 => return None,
        Method::ReconstructWrite if covered_lost < lost.len() => return None,
        Method::Recover if covered_lost == lost.len() => return None,
        Method::Recover => true,
        _ => false,
    };
    Some(match cell {
        ChunkContent::Data(index) if lost.contains(&index) => false,
        ChunkContent::Data(index) => {
            needs_all || cut.covers(index) == (method == Method::ReadModifyWrite)
        }
        parity if needs_all => row.recovering_parities().any(|(cell, _)| cell == parity),
        parity => {
            method == Method::ReadModifyWrite && row.parities().any(|(cell, _)| cell == parity)
        }
    })
}

/// Returns the lowest (reads, sectors read) over all assignments of methods to cuts.
fn cheapest(row: &ParityRow, cuts: &[BandCut]) -> Option<(usize, u64)> {
    let methods = [
        Method::ReadModifyWrite,
        Method::ReconstructWrite,
        Method::Recover,
    ];
    let cells: Vec<ChunkContent> = (0..row.data)
        .map(ChunkContent::Data)
        .chain([ChunkContent::P, ChunkContent::Q])
        .collect();
    let cost = |number: usize| {
        let method = |at: usize| methods[number / 3usize.pow(at as u32) % 3];
        let (mut count, mut sectors) = (0, 0);
        for &cell in &cells {
            let mut wanted = Vec::new();
            for (at, cut) in cuts.iter().enumerate() {
                if reads(row, cut, method(at), cell)? {
                    wanted.extend(cut.from..cut.to);
                }
            }
            sectors += wanted.len() as u64;
            count += wanted.len()
                - wanted
                    .windows(2)
                    .filter(|pair| pair[0] + 1 == pair[1])
                    .count()
                    .min(wanted.len());
        }
        Some((count, sectors))
    };
    (0..3usize.pow(cuts.len() as u32)).filter_map(cost).min()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn a_partial_write_costs_the_fewest_reads_of_all_combinations(
        second_parity: bool, data in 2u64..9, chunk in 1u64..9, from_share: prop::sample::Index,
        to_share: prop::sample::Index, row_number in 0u64..12, failed in prop::collection::btree_set(0u32..11, 0..=2),
    ) {
        let parities = 1 + u64::from(second_parity);
        let members = data + parities;
        let failed: Vec<u32> =
            failed.into_iter().filter(|&member| u64::from(member) < members).take(parities as usize).collect();
        let sectors = data * chunk;
        let from = from_share.index(sectors as usize) as u64;
        let to = from + 1 + to_share.index((sectors - from) as usize) as u64;
        prop_assume!(to - from < sectors);

        let name = if second_parity { "raid6" } else { "raid5" };
        let keys = json!({ "chunk": chunk * 512, "failed": failed });
        let mut layout = build(name, &keys, &vec![chunk * 12; members as usize]).unwrap();
        let extent = Extent::new(row_number * sectors + from, to - from);
        let request = Request { operation: Operation::Write, extent, ..Request::default() };
        let mut plan = Plan::new(Detail::Bytes);
        prop_assert_eq!(layout.plan(&request, LayersBelow::NOTHING, &mut plan), RequestStatus::Done);

        let placement = Placement::Rotating(Rotation::LeftSymmetric);
        let map = RowMap { members, parities, placement, chunk, rows: 12 };
        let row = ParityRow::new(&map, row_number, failed.iter().copied());
        let cuts = BandCuts::of(RowBand { row: row_number, from, to }, chunk);
        let read = plan.ios().iter().filter(|io| io.operation == Operation::Read);
        let found = (read.clone().count(), read.map(|io| io.extent.sectors.0).sum::<u64>());
        let expected = match row.parities().next() {
            None => (0, 0),
            Some(_) => cheapest(&row, cuts.as_slice()).unwrap(),
        };
        prop_assert_eq!(found, expected, "{:?}", plan.bands());
    }
}

fn methods(name: &str, members: usize, extent: Extent, failed: &[u32]) -> (Vec<Method>, usize) {
    let mut layout = build(name, &json!({ "failed": failed }), &vec![12_800; members]).unwrap();
    let mut plan = Plan::new(Detail::Bytes);
    let request = Request {
        operation: Operation::Write,
        extent,
        ..Request::default()
    };
    assert_eq!(
        layout.plan(&request, LayersBelow::NOTHING, &mut plan),
        RequestStatus::Done
    );
    (
        plan.bands().iter().map(|band| band.method).collect(),
        plan.ios().len(),
    )
}

#[test]
fn small_writes_modify_large_ones_reconstruct_and_whole_rows_read_nothing() {
    let seven = 7 * 128;
    assert_eq!(
        methods("raid5", 8, Extent::new(0, 8), &[]),
        (vec![Method::ReadModifyWrite], 4)
    );
    assert_eq!(
        methods("raid5", 8, Extent::new(0, 3 * 128), &[]),
        (vec![Method::ReadModifyWrite], 8)
    );
    assert_eq!(
        methods("raid5", 8, Extent::new(0, 4 * 128), &[]),
        (vec![Method::ReconstructWrite], 8)
    );
    assert_eq!(
        methods("raid5", 8, Extent::new(0, seven), &[]),
        (vec![Method::FullStripe], 8)
    );
    assert_eq!(
        methods("raid6", 8, Extent::new(0, 8), &[]),
        (vec![Method::ReadModifyWrite], 6)
    );
    let (bands, ios) = methods("raid5", 8, Extent::new(seven, 5 * seven), &[]);
    assert_eq!(
        (bands, ios),
        (vec![Method::FullStripe; 5], 8),
        "a run of whole rows is one I/O a member"
    );
}

#[test]
fn a_tie_is_read_modify_write() {
    // Three data chunks: both methods read two.
    assert_eq!(
        methods("raid5", 4, Extent::new(0, 8), &[]),
        (vec![Method::ReadModifyWrite], 4)
    );
}

#[test]
fn degraded_writes_take_the_way_that_is_left() {
    // Left-symmetric, row 0 of five members: data on 0 to 3, parity on 4.
    let write = Extent::new(0, 8);
    assert_eq!(
        methods("raid5", 5, write, &[4]),
        (vec![Method::Unprotected], 1)
    );
    assert_eq!(
        methods("raid5", 5, write, &[0]),
        (vec![Method::ReconstructWrite], 4)
    );
    assert_eq!(
        methods("raid5", 5, write, &[1]),
        (vec![Method::ReadModifyWrite], 4)
    );
    // Row 0 of six members with two parities: Q on 0, data on 1 to 4, P on 5.
    assert_eq!(
        methods("raid6", 6, write, &[1, 2]),
        (vec![Method::Recover], 4 + 2)
    );
    assert_eq!(
        methods("raid6", 6, write, &[0, 5]),
        (vec![Method::Unprotected], 1)
    );
}

/// Returns the member I/O of a request, planned for timing.
fn timed(layout: &mut dyn Layout, operation: Operation, extent: Extent) -> Plan {
    let request = Request {
        operation,
        extent,
        ..Request::default()
    };
    let mut plan = Plan::new(Detail::Timing);
    assert_eq!(
        layout.plan(&request, LayersBelow::NOTHING, &mut plan),
        RequestStatus::Done
    );
    plan
}

fn reads_of(plan: &Plan) -> usize {
    plan.ios()
        .iter()
        .filter(|io| io.operation == Operation::Read)
        .count()
}

#[test]
fn a_write_reads_nothing_that_the_stripe_cache_holds() {
    for (stripes, expected) in [
        (0, [2, 2, 2, 2, 2]),
        (256, [2, 0, 1, 0, 2]),
        (1, [2, 0, 1, 2, 2]),
    ] {
        let keys = json!({ "stripe_cache": stripes });
        let mut layout = build("raid5", &keys, &[12_800; 5]).unwrap();
        // The same page twice, its neighbour in the row, the page with the next page, and a page
        // far away.
        let writes = [(0, 8), (0, 8), (128, 8), (0, 16), (5_120, 8)];
        let plans = writes.map(|(start, sectors)| {
            timed(&mut *layout, Operation::Write, Extent::new(start, sectors))
        });
        let counts = [&plans[0], &plans[1], &plans[2], &plans[4]].map(reads_of);
        assert_eq!(
            counts,
            [expected[0], expected[1], expected[2], expected[4]],
            "{stripes} stripes"
        );
        let writes_of = |plan: &Plan| plan.ios().len() - reads_of(plan);
        assert!(
            plans.iter().all(|plan| writes_of(plan) == 2),
            "data and parity are written as ever"
        );
    }
}

#[test]
fn what_is_cached_decides_how_parity_is_made() {
    // Four data chunks. The first write covers three, so that the rest of the row is one read. The
    // second write covers one of the three; its old data and parity are held.
    let mut layout = build("raid5", &json!({ "stripe_cache": 256 }), &[12_800; 5]).unwrap();
    assert_eq!(
        reads_of(&timed(
            &mut *layout,
            Operation::Write,
            Extent::new(0, 3 * 128)
        )),
        1
    );
    assert_eq!(
        reads_of(&timed(
            &mut *layout,
            Operation::Write,
            Extent::new(0, 2 * 128)
        )),
        0
    );
    assert_eq!(
        reads_of(&timed(
            &mut *layout,
            Operation::Write,
            Extent::new(3 * 128, 8)
        )),
        0
    );
}

#[test]
fn plain_reads_and_plans_for_bytes_pass_the_stripe_cache_by() {
    let mut layout = build("raid5", &json!({ "stripe_cache": 256 }), &[12_800; 5]).unwrap();
    let write = Extent::new(0, 8);
    timed(&mut *layout, Operation::Read, write);
    assert_eq!(
        reads_of(&timed(&mut *layout, Operation::Write, write)),
        2,
        "a read of it is not held"
    );
    assert_eq!(
        reads_of(&timed(&mut *layout, Operation::Read, write)),
        1,
        "nor is it read from there"
    );
    let request = Request {
        operation: Operation::Write,
        extent: write,
        ..Request::default()
    };
    let mut plan = Plan::new(Detail::Bytes);
    assert_eq!(
        layout.plan(&request, LayersBelow::NOTHING, &mut plan),
        RequestStatus::Done
    );
    assert_eq!(reads_of(&plan), 2, "bytes come from the members");
}

#[test]
fn a_failure_and_a_discard_empty_the_stripe_cache() {
    let mut layout = build("raid5", &json!({ "stripe_cache": 256 }), &[12_800; 5]).unwrap();
    let (row, write) = (Extent::new(0, 512), Extent::new(0, 8));
    timed(&mut *layout, Operation::Write, write);
    timed(&mut *layout, Operation::Discard, row);
    assert_eq!(reads_of(&timed(&mut *layout, Operation::Write, write)), 2);
    layout.set_member_state(1, MemberState::Failed);
    assert_eq!(reads_of(&timed(&mut *layout, Operation::Write, write)), 2);
    assert_eq!(reads_of(&timed(&mut *layout, Operation::Write, write)), 0);
}

/// True if the parity of each sector that `plan` writes can be computed from memory. Memory must
/// contain either all old data and old parity of the overwritten sectors, or all unchanged data.
fn can_be_carried_out(layout: &dyn Layout, plan: &Plan, known: &BTreeSet<(usize, u64)>) -> bool {
    let written: BTreeSet<(usize, u64)> = sectors(plan, Operation::Write).collect();
    let offsets: BTreeSet<u64> = written.iter().map(|&(_, lbn)| lbn).collect();
    offsets.iter().all(|&lbn| {
        let members = 0..layout.members();
        let is_written = |&member: &usize| written.contains(&(member, lbn));
        let is_data = |&member: &usize| matches!(layout.role_of(member, Lbn(lbn)), Role::Data(_));
        let held = |member: usize| known.contains(&(member, lbn));
        members.clone().filter(is_written).all(held)
            || members
                .filter(is_data)
                .filter(|member| !is_written(member))
                .all(held)
    })
}

fn sectors(plan: &Plan, operation: Operation) -> impl Iterator<Item = (usize, u64)> {
    let ios = plan
        .ios()
        .iter()
        .filter(move |io| io.operation == operation);
    ios.flat_map(|io| (io.extent.start.0..io.extent.end().0).map(|lbn| (io.member as usize, lbn)))
}

proptest! {
    #[test]
    fn what_the_stripe_cache_lets_a_plan_leave_out_was_read_or_written_before(
        second_parity: bool, data in 2u64..6, chunk in 1u64..30, stripes in 1u32..12,
        asks in prop::collection::vec((any::<prop::sample::Index>(), 1u64..80, 0u32..12), 1..60),
    ) {
        let name = if second_parity { "raid6" } else { "raid5" };
        let members = vec![chunk * 6; (data + 1 + u64::from(second_parity)) as usize];
        let keys = |stripes: u32| json!({ "chunk": chunk * 512, "stripe_cache": stripes });
        let mut cached = build(name, &keys(stripes), &members).unwrap();
        let mut plain = build(name, &keys(0), &members).unwrap();
        let mut known = BTreeSet::new();
        for (start, length, kind) in asks {
            let capacity = cached.capacity().0;
            let start = start.index(capacity as usize) as u64;
            let extent = Extent::new(start, length.min(capacity - start));
            if kind == 0 {
                let gone = timed(&mut *cached, Operation::Discard, extent);
                sectors(&gone, Operation::Discard).for_each(|sector| { known.remove(&sector); });
                continue;
            }
            let plan = timed(&mut *cached, Operation::Write, extent);
            let without = timed(&mut *plain, Operation::Write, extent);
            let written = |plan: &Plan| sectors(plan, Operation::Write).collect::<BTreeSet<_>>();
            prop_assert_eq!(written(&plan), written(&without));
            known.extend(sectors(&plan, Operation::Read));
            prop_assert!(can_be_carried_out(&*cached, &plan, &known));
            known.extend(sectors(&plan, Operation::Write));
        }
    }
}

#[test]
fn dummy_reads_of_parity_close_the_gaps_of_whole_rows() {
    // Left-symmetric: the parity of rows 0, 1, 2 is on members 4, 3, 2.
    let reads = |keys: serde_json::Value, extent: Extent| {
        let mut layout = build("raid5", &keys, &[12_800; 5]).unwrap();
        let plan = timed(&mut *layout, Operation::Read, extent);
        let mut ios: Vec<(u32, u64, u64)> = plan
            .ios()
            .iter()
            .map(|io| (io.member, io.extent.start.0, io.extent.sectors.0))
            .collect();
        ios.sort_unstable();
        (ios, plan.read_for_nothing().0)
    };
    let (on, off) = (
        json!({ "chunk": 4096, "dummy_parity_reads": true }),
        json!({ "chunk": 4096 }),
    );
    let three_rows = Extent::new(0, 3 * 32);
    let (with, nothing) = reads(on.clone(), three_rows);
    assert_eq!(
        with,
        (0..5).map(|member| (member, 0, 24)).collect::<Vec<_>>()
    );
    assert_eq!(nothing, 24);
    let (without, nothing) = reads(off, three_rows);
    assert_eq!(
        without,
        [
            (0, 0, 24),
            (1, 0, 24),
            (2, 0, 16),
            (3, 0, 8),
            (3, 16, 8),
            (4, 8, 16)
        ]
    );
    assert_eq!(nothing, 0);
    // A row that is requested in part also leaves out another member, so that a parity read would
    // close no gap.
    assert_eq!(reads(on.clone(), Extent::new(0, 31)).1, 7);
    assert_eq!(reads(on, Extent::new(0, 24)).1, 0);
}

#[test]
fn no_dummy_read_is_planned_for_bytes_or_where_parity_is_lost() {
    let keys = json!({ "chunk": 4096, "dummy_parity_reads": true, "failed": [4] });
    let mut layout = build("raid5", &keys, &[12_800; 5]).unwrap();
    assert_eq!(
        timed(&mut *layout, Operation::Read, Extent::new(0, 32))
            .read_for_nothing()
            .0,
        0
    );
    let mut layout = build(
        "raid5",
        &json!({ "chunk": 4096, "dummy_parity_reads": true }),
        &[12_800; 5],
    )
    .unwrap();
    let request = Request {
        extent: Extent::new(0, 32),
        ..Request::default()
    };
    let mut plan = Plan::new(Detail::Bytes);
    assert_eq!(
        layout.plan(&request, LayersBelow::NOTHING, &mut plan),
        RequestStatus::Done
    );
    assert_eq!(plan.ios().len(), 4);
}
