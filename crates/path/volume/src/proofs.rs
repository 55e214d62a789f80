//! Property tests of the address maps and of the plans, for all layouts. The tests carry out plans
//! on bytes.

use crate::bytes::{ByteArray, ByteDevice, SECTOR, build, range};
use crate::paired::paired_cases;
use crate::{Detail, Layout, ParityRows, Plan, Role};
use fullstroke_contract::{Extent, LayersBelow, Operation, Request, RequestStatus};
use fullstroke_units::{Lbn, Sectors};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A volume for property tests.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) keys: Value,
    pub(crate) members: Vec<u64>,
    /// Members in the order of their failures, as far as the layout survives.
    pub(crate) order: Vec<u32>,
}

/// A request, with its place as a share of the capacity.
#[derive(Clone, Debug)]
pub(crate) struct ProofRequest {
    pub(crate) operation: Operation,
    start: prop::sample::Index,
    sectors: u64,
    fill: u8,
}

impl Case {
    pub(crate) fn layout(&self, failed: &[u32]) -> Option<Box<dyn Layout>> {
        let mut keys = self.keys.clone();
        if !failed.is_empty() {
            keys["failed"] = json!(failed);
        }
        build(self.name, &keys, &self.members).ok()
    }

    /// Returns the members that fail: as many of the first `count` in the order as the layout
    /// survives.
    pub(crate) fn failing(&self, count: usize) -> Vec<u32> {
        let mut failed = Vec::new();
        for &member in &self.order {
            failed.push(member);
            if failed.len() > count || self.layout(&failed).is_none() {
                // This member would be one too many together with the earlier ones; a later one may
                // still be survived, as in RAID 10.
                failed.pop();
            }
        }
        failed
    }

    pub(crate) fn parity_rows(&self) -> Option<ParityRows> {
        self.layout(&[])?.geometry().parity_rows()
    }

    /// Returns the part of `extent` that a discard sets to zero.
    pub(crate) fn discarded(&self, extent: Extent) -> Extent {
        self.parity_rows()
            .map_or(extent, |rows| rows.within(extent))
    }
}

fn rotations() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "left-symmetric",
        "left-asymmetric",
        "right-symmetric",
        "right-asymmetric",
    ])
}

fn keys() -> impl Strategy<Value = (&'static str, Value, usize)> {
    let chunk = (1u64..10).prop_map(|sectors| sectors * 512);
    let policy = prop::sample::select(vec!["round-robin", "shortest-queue", "nearest-head"]);
    prop_oneof![
        1 => Just(("jbod", json!({}), 1)),
        1 => chunk.clone().prop_map(|chunk| ("raid0", json!({ "chunk": chunk }), 1)),
        1 => policy.clone().prop_map(|policy| ("raid1", json!({ "read_policy": policy }), 2)),
        2 => (chunk.clone(), policy, 2usize..4).prop_map(|(chunk, policy, copies)| {
            ("raid10", json!({ "chunk": chunk, "copies": copies, "read_policy": policy }), copies)
        }),
        1 => chunk.clone().prop_map(|chunk| ("raid4", json!({ "chunk": chunk, "stripe_cache": 8 }), 3)),
        3 => (chunk.clone(), rotations(), 0u32..9).prop_map(|(chunk, rotation, stripes)| {
            ("raid5", json!({ "chunk": chunk, "rotation": rotation, "stripe_cache": stripes }), 3)
        }),
        4 => (chunk, rotations(), 0u32..9).prop_map(|(chunk, rotation, stripes)| {
            ("raid6", json!({ "chunk": chunk, "rotation": rotation, "stripe_cache": stripes }), 4)
        }),
    ]
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    prop_oneof![7 => plain_cases(), 3 => paired_cases()]
}

fn plain_cases() -> impl Strategy<Value = Case> {
    keys()
        .prop_flat_map(|(name, keys, least)| {
            // Members of different sizes: the end of the larger ones stays unused.
            let members = prop::collection::vec(9u64..70, least..least + 6);
            (Just(name), Just(keys), members)
        })
        .prop_flat_map(|(name, keys, members)| {
            let order: Vec<u32> = (0..members.len() as u32).collect();
            (
                Just(name),
                Just(keys),
                Just(members),
                Just(order).prop_shuffle(),
            )
        })
        .prop_map(|(name, keys, members, order)| Case {
            name,
            keys,
            members,
            order,
        })
}

pub(crate) fn asks(most: usize) -> impl Strategy<Value = Vec<ProofRequest>> {
    let operation = prop_oneof![
        8 => Just(Operation::Write),
        2 => Just(Operation::Read),
        1 => Just(Operation::Discard),
    ];
    let sectors = prop_oneof![1u64..12, 1u64..120];
    let ask = (
        operation,
        any::<prop::sample::Index>(),
        sectors,
        any::<u8>(),
    );
    prop::collection::vec(
        ask.prop_map(|(operation, start, sectors, fill)| ProofRequest {
            operation,
            start,
            sectors,
            fill,
        }),
        1..most,
    )
}

impl ProofRequest {
    pub(crate) fn extent(&self, capacity: u64) -> Extent {
        let start = self.start.index(capacity as usize) as u64;
        Extent::new(start, self.sectors.min(capacity - start))
    }
    pub(crate) fn bytes(&self, extent: Extent) -> Vec<u8> {
        (0..extent.sectors.0 as usize * SECTOR)
            .map(|at| self.fill.wrapping_add((at * 31) as u8))
            .collect()
    }
}

/// Carries out the requests on the array and on plain memory, and compares.
fn replay(array: &mut ByteArray, plain: &mut [u8], case: &Case, asks: &[ProofRequest]) {
    for ask in asks {
        let extent = ask.extent(array.layout.capacity().0);
        let own = range(extent.start.0, extent.sectors.0);
        match ask.operation {
            Operation::Read => assert_eq!(array.read(extent.start.0, extent.sectors.0), plain[own]),
            Operation::Discard => {
                array.perform(Operation::Discard, extent, &mut []);
                let gone = case.discarded(extent);
                plain[range(gone.start.0, gone.sectors.0)].fill(0);
            }
            _ => {
                let mut bytes = ask.bytes(extent);
                plain[own].copy_from_slice(&bytes);
                array.perform(Operation::Write, extent, &mut bytes);
            }
        }
    }
    let whole = array.layout.capacity().0;
    assert!(
        array.read(0, whole) == plain,
        "the array holds what was written"
    );
}

/// Returns twice `byte` in the field of RAID 6, x^8 + x^4 + x^3 + x^2 + 1 (H. P. Anvin, "The
/// mathematics of RAID-6", section 2). The tests share no table with the plans.
fn doubled(byte: u8) -> u8 {
    let carry = if byte & 0x80 == 0 { 0 } else { 0x1d };
    byte << 1 ^ carry
}

/// Checks P and Q of every row against their definitions.
pub(crate) fn check_parity(array: &mut ByteArray) {
    let members = array.layout.members();
    let used = array.layout.member_used(0).0;
    for lbn in 0..used {
        let roles: Vec<Role> = (0..members)
            .map(|member| array.layout.role_of(member, Lbn(lbn)))
            .collect();
        let is_data = |member: usize| matches!(roles[member], Role::Data(_));
        let Some(p) = roles
            .iter()
            .position(|role| matches!(role, Role::Parity { .. }))
        else {
            return;
        };
        let mut sum = array.member_sector(p, lbn);
        for member in (0..members).filter(|&member| is_data(member)) {
            let bytes = array.member_sector(member, lbn);
            sum.iter_mut()
                .zip(bytes)
                .for_each(|(sum, byte)| *sum ^= byte);
        }
        assert_eq!(sum, [0; SECTOR], "P at {lbn}");
        let Some(q) = roles
            .iter()
            .position(|role| matches!(role, Role::SecondParity { .. }))
        else {
            continue;
        };
        // The sum of 2^i D_i by Horner's rule, from the last data member down.
        let mut sum = vec![0; SECTOR];
        let behind = (1..members).rev().map(|step| (q + step) % members);
        for member in behind.filter(|&member| is_data(member)) {
            let bytes = array.member_sector(member, lbn);
            sum.iter_mut()
                .zip(bytes)
                .for_each(|(sum, byte)| *sum = doubled(*sum) ^ byte);
        }
        assert_eq!(sum, array.member_sector(q, lbn), "Q at {lbn}");
    }
}

/// Returns the same bytes under the same layout with `failed` members, whose contents become noise.
fn fail(array: ByteArray, case: &Case, failed: &[u32]) -> ByteArray {
    let layout = case.layout(failed).unwrap();
    let mut degraded = ByteArray::new(layout, array.members);
    degraded.reversed = array.reversed;
    for &member in failed {
        // Noise, so that a read of a failed member cannot pass unnoticed.
        degraded.scramble(member as usize);
    }
    degraded
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_address_map_is_one_to_one_and_onto(case in cases()) {
        let layout = case.layout(&[]).unwrap();
        let capacity = layout.capacity().0;
        for lbn in 0..capacity {
            let place = layout.locate(Lbn(lbn));
            prop_assert_eq!(layout.role_of(place.member, place.lbn), Role::Data(Lbn(lbn)));
        }
        let mut data = 0;
        let mut redundant = std::collections::BTreeSet::new();
        let mut unused = 0;
        for member in 0..layout.members() {
            let mut used = 0;
            for lbn in 0..layout.member_capacity(member).0 {
                let role = layout.role_of(member, Lbn(lbn));
                match role {
                    Role::Data(_) => data += 1,
                    Role::Unused => unused += 1,
                    role => prop_assert!(redundant.insert(role), "{:?} twice", role),
                }
                if role != Role::Unused {
                    used += 1;
                    prop_assert!(lbn < layout.member_used(member).0, "what is used lies in front");
                }
            }
            prop_assert_eq!(used, layout.member_used(member).0);
        }
        prop_assert_eq!(data, capacity);
        prop_assert_eq!(unused, layout.unused().0);
        if case.name == "raid1" || case.name == "raid10" {
            let further = u64::from(layout.failures_survived());
            prop_assert_eq!(redundant.len() as u64, capacity * further, "every sector has its copies");
        }
    }

    #[test]
    fn owners_are_found_run_by_run(case in cases(), place in any::<(usize, u64, u64)>()) {
        let layout = case.layout(&[]).unwrap();
        let member = place.0 % layout.members();
        let capacity = layout.member_capacity(member).0;
        let (start, most) = (place.1 % capacity, 1 + place.2 % 200);
        // Sector by sector; consecutive sectors are joined.
        let mut plain: Vec<(Extent, u64)> = Vec::new();
        for lbn in start..(start + most).min(capacity) {
            let (Role::Data(of) | Role::Copy { of, .. }) = layout.role_of(member, Lbn(lbn)) else { continue };
            match plain.last_mut() {
                Some((extent, next)) if extent.end() == of && *next == lbn => {
                    extent.sectors += Sectors(1);
                    *next += 1;
                }
                _ => plain.push((Extent::new(of.0, 1), lbn + 1)),
            }
        }
        let mut found = Vec::new();
        layout.owners(member, Extent::new(start, most), &mut |extent| found.push(extent));
        prop_assert_eq!(found, plain.into_iter().map(|(extent, _)| extent).collect::<Vec<_>>());
    }

    #[test]
    fn reads_return_what_was_written_and_parity_is_right(
        case in cases(), asks in asks(25), reversed: bool,
    ) {
        let mut array = ByteArray::of_memory(case.layout(&[]).unwrap());
        array.reversed = reversed;
        let mut plain = vec![0; array.layout.capacity().0 as usize * SECTOR];
        replay(&mut array, &mut plain, &case, &asks);
        check_parity(&mut array);
    }

    #[test]
    fn any_survivable_failure_loses_nothing_before_or_after_further_writes(
        case in cases(), before in asks(12), between in asks(12), after in asks(12), reversed: bool,
    ) {
        let mut array = ByteArray::of_memory(case.layout(&[]).unwrap());
        array.reversed = reversed;
        let mut plain = vec![0; array.layout.capacity().0 as usize * SECTOR];
        replay(&mut array, &mut plain, &case, &before);
        for (count, asks) in [(1, &between), (case.members.len(), &after)] {
            let failed = case.failing(count);
            prop_assert!(failed.len() >= count.min(array.layout.failures_survived() as usize));
            if !failed.is_empty() {
                array = fail(array, &case, &failed);
                replay(&mut array, &mut plain, &case, &[]);
                replay(&mut array, &mut plain, &case, asks);
            }
        }
    }

    #[test]
    fn every_pair_of_failures_of_a_raid6_is_survived(
        chunk in 1u64..5, rotation in rotations(), members in 4usize..8, before in asks(8), after in asks(8),
    ) {
        let keys = json!({ "chunk": chunk * 512, "rotation": rotation });
        for pair in 0..members * members {
            let (a, b) = ((pair / members) as u32, (pair % members) as u32);
            if a < b {
                let case = Case { name: "raid6", keys: keys.clone(), members: vec![40; members], order: vec![a, b] };
                let mut array = ByteArray::of_memory(case.layout(&[]).unwrap());
                let mut plain = vec![0; array.layout.capacity().0 as usize * SECTOR];
                replay(&mut array, &mut plain, &case, &before);
                let mut array = fail(array, &case, &[a, b]);
                replay(&mut array, &mut plain, &case, &after);
            }
        }
    }

    #[test]
    fn layouts_nest(
        outer in cases(), inner in cases(), writes in asks(12), after in asks(12),
    ) {
        let writes: Vec<ProofRequest> =
            // A discard of the outer volume reaches the inner ones in parts of rows, which stay as
            // they are.
            writes.into_iter().filter(|ask| ask.operation != Operation::Discard).collect();
        let after: Vec<ProofRequest> = after.into_iter().filter(|ask| ask.operation != Operation::Discard).collect();
        let inner_capacity = inner.layout(&[]).unwrap().capacity().0;
        let outer = Case { members: vec![inner_capacity; outer.members.len()], ..outer };
        let Some(layout) = outer.layout(&[]) else { return Ok(()) };
        let failed = inner.failing(1);
        let members = (0..layout.members()).map(|member| {
            // One of the inner arrays is degraded.
            let failed = if member == 0 { &failed[..] } else { &[] };
            Box::new(ByteArray::of_memory(inner.layout(failed).unwrap())) as Box<dyn ByteDevice>
        });
        let mut array = ByteArray::new(layout, members.collect());
        let mut plain = vec![0; array.layout.capacity().0 as usize * SECTOR];
        replay(&mut array, &mut plain, &outer, &writes);
        let failed = outer.failing(2);
        if !failed.is_empty() {
            let mut array = fail(array, &outer, &failed);
            replay(&mut array, &mut plain, &outer, &after);
        }
    }

    #[test]
    fn a_plan_for_timing_has_the_same_io(mut case in cases(), asks in asks(20), failures in 0usize..3) {
        // A timed plan may only leave out sectors in a stripe cache; see `parity/tests.rs`.
        case.keys.as_object_mut().unwrap().remove("stripe_cache");
        let failed = case.failing(failures);
        let (mut timed, mut full) = (case.layout(&failed).unwrap(), case.layout(&failed).unwrap());
        let (mut short, mut long) = (Plan::new(Detail::Timing), Plan::new(Detail::Bytes));
        for ask in &asks {
            let extent = ask.extent(timed.capacity().0);
            let request = Request { operation: ask.operation, extent, ..Request::default() };
            prop_assert_eq!(timed.plan(&request, LayersBelow::NOTHING, &mut short), RequestStatus::Done);
            prop_assert_eq!(full.plan(&request, LayersBelow::NOTHING, &mut long), RequestStatus::Done);
            prop_assert_eq!(short.ios(), long.ios());
            prop_assert_eq!(short.strands(), long.strands());
            prop_assert!(short.pieces().is_empty() && short.bands().is_empty());
        }
    }

    #[test]
    fn extents_that_are_empty_or_beyond_the_capacity_are_refused(
        case in cases(), start: u64, sectors: u64, write: bool,
    ) {
        let mut layout = case.layout(&[]).unwrap();
        let capacity = layout.capacity().0;
        let operation = if write { Operation::Write } else { Operation::Read };
        let mut plan = Plan::new(Detail::Bytes);
        let mut status = |extent| {
            let request = Request { operation, extent, ..Request::default() };
            (layout.plan(&request, LayersBelow::NOTHING, &mut plan), plan.ios().is_empty())
        };
        prop_assert_eq!(status(Extent::new(start % capacity, 0)), (RequestStatus::OutOfRange, true));
        prop_assert_eq!(status(Extent::new(capacity - 1, 2)), (RequestStatus::OutOfRange, true));
        prop_assert_eq!(status(Extent::new(start.max(capacity), sectors.max(1))), (RequestStatus::OutOfRange, true));
        prop_assert_eq!(status(Extent::new(u64::MAX, u64::MAX)), (RequestStatus::OutOfRange, true));
    }
}

#[test]
fn a_few_hundred_members_are_addressed_one_to_one() {
    for (name, members) in [
        ("raid0", 300),
        ("raid10", 301),
        ("raid5", 300),
        ("raid6", 257),
        ("lzvs", 300),
    ] {
        let keys = if name == "lzvs" {
            json!({ "zones": 4, "blocking": 512 })
        } else {
            json!({ "chunk": 1024 })
        };
        let layout = build(name, &keys, &vec![6; members]).unwrap();
        for lbn in 0..layout.capacity().0 {
            let place = layout.locate(Lbn(lbn));
            assert_eq!(
                layout.role_of(place.member, place.lbn),
                Role::Data(Lbn(lbn)),
                "{name}"
            );
        }
    }
}

/// The property tests use few members, to keep plans small. Coefficients and positions of parity
/// depend on the width. This test therefore covers each width, with rows of one sector. The whole
/// array is written at once, and again in single sectors. Then two members fail; the pair changes
/// from width to width.
#[test]
fn parity_is_right_and_failures_are_survived_at_every_width() {
    for (name, least) in [("raid4", 3), ("raid5", 3), ("raid6", 4)] {
        for width in (least..=48).chain([64, 96, 128]) {
            let first = width * 7 % (width - 1);
            let case = Case {
                name,
                keys: json!({ "chunk": 512 }),
                // The parity of RAID 6 is then on each pair of members once.
                members: vec![if width <= 48 { width as u64 } else { 3 }; width],
                order: vec![
                    first as u32,
                    (first + 1 + width / 3 % (width - first - 1)) as u32,
                ],
            };
            let mut array = ByteArray::of_memory(case.layout(&[]).unwrap());
            let sectors = array.layout.capacity().0;
            let mut plain: Vec<u8> = (0..sectors as usize * SECTOR)
                .map(|at| (at * 7 + at / SECTOR) as u8)
                .collect();
            array.perform(
                Operation::Write,
                Extent::new(0, sectors),
                &mut plain.clone(),
            );
            check_parity(&mut array);
            for lbn in (0..sectors).step_by(width - 1) {
                let own = range(lbn, 1);
                plain[own.clone()].fill(lbn as u8 ^ 0x5a);
                array.perform(
                    Operation::Write,
                    Extent::new(lbn, 1),
                    &mut plain[own].to_vec(),
                );
            }
            check_parity(&mut array);
            let failed = case.failing(2);
            assert_eq!(failed.len(), array.layout.failures_survived() as usize);
            let mut array = fail(array, &case, &failed);
            assert!(
                array.read(0, sectors) == plain,
                "{name} of {width} without {failed:?}"
            );
        }
    }
}

#[test]
fn the_widest_raid6_survives_two_failures() {
    let keys = json!({ "chunk": 512 });
    let case = Case {
        name: "raid6",
        keys,
        members: vec![3; 257],
        order: vec![3, 250],
    };
    let mut array = ByteArray::of_memory(case.layout(&[]).unwrap());
    let mut plain: Vec<u8> = (0..array.layout.capacity().0 as usize * SECTOR)
        .map(|at| (at * 7) as u8)
        .collect();
    array.perform(
        Operation::Write,
        Extent::new(0, 3 * 255),
        &mut plain.clone(),
    );
    check_parity(&mut array);
    let mut array = fail(array, &case, &[3, 250]);
    replay(&mut array, &mut plain, &case, &[]);
}

#[test]
fn the_largest_members_are_addressed_without_overflow() {
    for (name, members) in [
        ("jbod", 1),
        ("raid0", 1),
        ("raid1", 2),
        ("raid10", 2),
        ("raid5", 3),
        ("raid6", 4),
        ("lzvs", 4),
        ("lzvs-geo", 2),
        ("lzvs-naive", 2),
    ] {
        let largest = if name == "lzvs-geo" {
            // The zones of this layout are keys, and a key can hold at most 2^64 bytes.
            u64::MAX / 512
        } else {
            u64::MAX / members as u64
        };
        let zones = [2_000_000, 1_000_000]
            .map(|rate| json!({ "sectors": largest / 2, "bytes_per_s": rate }));
        let rest = json!({ "sectors": largest - largest / 2 * 2, "bytes_per_s": 1_000_000 });
        let zones = [&zones[..], &[rest]].concat();
        let keys = if name == "lzvs-geo" {
            json!({ "member_zones": [zones.clone(), zones] })
        } else {
            json!({})
        };
        let mut layout = build(name, &keys, &vec![largest; members]).unwrap();
        let last = layout.capacity().0 - 1;
        let place = layout.locate(Lbn(last));
        assert_eq!(
            layout.role_of(place.member, place.lbn),
            Role::Data(Lbn(last)),
            "{name}"
        );
        let request = Request {
            operation: Operation::Write,
            extent: Extent::new(last, 1),
            ..Request::default()
        };
        assert_eq!(
            layout.plan(
                &request,
                LayersBelow::NOTHING,
                &mut Plan::new(Detail::Bytes)
            ),
            RequestStatus::Done
        );
        assert!(layout.member_capacity(0) == Sectors(largest));
    }
}
