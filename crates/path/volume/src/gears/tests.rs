//! Maps are one-to-one, and no order of writes, shifts and failures loses data.

use super::{Gear, GearMap};
use crate::Role;
use crate::bytes::{ByteArray, SECTOR, build, range};
use crate::proofs::{ProofRequest, asks};
use fullstroke_contract::{Extent, MemberState, Operation};
use fullstroke_units::{Lbn, Sectors};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MEMBERS: u64 = 60;

fn maps() -> impl Strategy<Value = GearMap> {
    (
        0u64..2,
        1u64..6,
        1u64..6,
        1u64..80,
        prop::option::of(1u64..40),
    )
        .prop_map(|(parities, more, transient, rows, cluster)| {
            let active = more + 2 * parities;
            let of = cluster.unwrap_or(rows);
            let mut map = GearMap {
                active,
                transient,
                parities,
                rows,
                cluster: of,
                bucket: 0,
                pitch: 1 << 40,
                offset: of + cluster.map_or(17, |_| 0),
            };
            map.bucket = map.bucket_for(of);
            if cluster.is_some() {
                map.pitch = of + map.bucket;
            }
            map
        })
}

/// Layouts with gears: name, keys and number of members.
fn arrays() -> impl Strategy<Value = (&'static str, Value, u64)> {
    let keys = (
        5u64..9,
        1u64..4,
        1u64..3,
        any::<bool>(),
        any::<bool>(),
        1u64..9,
    );
    keys.prop_map(|(members, chunk, transient, raid5, beside, cluster)| {
        let level = if raid5 { "raid5" } else { "raid0" };
        let mut keys =
            json!({ "chunk": chunk * 512, "level": level, "active": members - transient });
        keys["native_percent"] = json!(35);
        if beside {
            keys["cluster"] = json!(cluster);
        }
        (if beside { "e-paraid" } else { "paraid" }, keys, members)
    })
}

#[derive(Clone, Debug)]
enum GearEvent {
    Ask(ProofRequest),
    /// Begins a shift to the other gear, unless a shift is running.
    Shift,
    /// Carries out at most this many copies of at most this many sectors.
    Copy(u32, u64),
    Fail(u32),
    /// Replaces the failed member. In the high gear, the member is filled.
    Restore,
}

fn events() -> impl Strategy<Value = Vec<GearEvent>> {
    let ask = asks(2).prop_map(|mut asks| GearEvent::Ask(asks.remove(0)));
    let event = prop_oneof![
        10 => ask,
        3 => Just(GearEvent::Shift),
        6 => (1u32..20, 1u64..40).prop_map(|(times, most)| GearEvent::Copy(times, most)),
        1 => any::<u32>().prop_map(GearEvent::Fail),
        1 => Just(GearEvent::Restore),
    ];
    prop::collection::vec(event, 1..60)
}

fn array_of((name, keys, members): &(&'static str, Value, u64)) -> ByteArray {
    ByteArray::of_memory(build(name, keys, &vec![MEMBERS; *members as usize]).unwrap())
}

fn gear(array: &mut ByteArray) -> Gear {
    array.layout.present_gear().unwrap()
}

/// An array with plain memory for comparison.
struct GearTrial {
    array: ByteArray,
    plain: Vec<u8>,
    survives: bool,
    failed: Option<usize>,
}

impl GearTrial {
    fn new(case: &(&'static str, Value, u64), reversed: bool) -> GearTrial {
        let mut array = array_of(case);
        array.reversed = reversed;
        let plain = vec![0; array.layout.capacity().0 as usize * SECTOR];
        let survives = array.layout.failures_survived() > 0;
        GearTrial {
            array,
            plain,
            survives,
            failed: None,
        }
    }

    fn take(&mut self, event: &GearEvent) {
        match event {
            GearEvent::Ask(ask) => self.ask(ask),
            GearEvent::Shift => self.shift(),
            GearEvent::Copy(times, most) => {
                let _ = (0..*times)
                    .take_while(|_| self.shifting() && self.array.copy(*most))
                    .count();
            }
            GearEvent::Fail(member) if self.survives && self.failed.is_none() => {
                let member = *member as usize % self.array.layout.members();
                self.array
                    .layout
                    .set_member_state(member, MemberState::Failed);
                self.array.scramble(member);
                self.failed = Some(member);
            }
            GearEvent::Restore => self.restore(),
            GearEvent::Fail(_) => {}
        }
    }

    fn shifting(&mut self) -> bool {
        matches!(gear(&mut self.array), Gear::Falling | Gear::Rising)
    }

    fn shift(&mut self) {
        let to = if gear(&mut self.array) == Gear::Low {
            Gear::Rising
        } else {
            Gear::Falling
        };
        let whole = self.failed.is_none();
        let possible =
            gear(&mut self.array) == Gear::Low || gear(&mut self.array) == Gear::High && whole;
        assert_eq!(self.array.layout.gears().unwrap().shift(to), possible);
    }

    fn restore(&mut self) {
        let Some(member) = self.failed.filter(|_| gear(&mut self.array) == Gear::High) else {
            return;
        };
        let done = Sectors::ZERO;
        self.array
            .layout
            .set_member_state(member, MemberState::Rebuilding { done });
        while self.array.layout.member_state(member) != MemberState::Alive {
            self.array.fill(member, 7);
        }
        self.failed = None;
    }

    fn ask(&mut self, ask: &ProofRequest) {
        let extent = ask.extent(self.array.layout.capacity().0);
        let own = range(extent.start.0, extent.sectors.0);
        match ask.operation {
            Operation::Read => assert_eq!(
                self.array.read(extent.start.0, extent.sectors.0),
                self.plain[own]
            ),
            Operation::Discard => {}
            _ => {
                let mut bytes = ask.bytes(extent);
                self.plain[own].copy_from_slice(&bytes);
                assert_eq!(
                    self.array.attempt(Operation::Write, extent, &mut bytes),
                    fullstroke_contract::RequestStatus::Done
                );
            }
        }
    }

    fn check(&mut self) {
        let whole = self.array.layout.capacity().0;
        assert!(
            self.array.read(0, whole) == self.plain,
            "the array holds what was written"
        );
    }

    fn settle(&mut self) {
        while self.shifting() && self.array.copy(11) {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn native_and_soft_units_lie_one_to_one(map in maps()) {
        let mut places = BTreeSet::new();
        for row in 0..map.rows {
            prop_assert_eq!(map.row_at(map.native(row)), Some(row));
            prop_assert_eq!(map.rows_below(map.native(row)), row);
            for member in 0..map.active {
                prop_assert!(places.insert((member, map.native(row))));
            }
        }
        let mut soft_rows = BTreeSet::new();
        for row in 0..map.rows {
            for transient in 0..map.transient {
                let (soft, index) = map.soft(row, transient);
                prop_assert!(soft < map.soft_rows() && index < map.width());
                prop_assert_eq!(map.home(soft, index), Some((row, transient)));
                prop_assert!(map.rows_of(soft, soft).contains(&row));
                prop_assert_eq!(map.unit_on(soft, map.member(soft, index)), super::map::SoftUnit::Data(index));
                prop_assert!(places.insert((map.member(soft, index), map.slot(soft))));
                prop_assert_eq!(map.soft_at(map.slot(soft)), Some(soft));
                soft_rows.insert(soft);
            }
        }
        for &soft in soft_rows.iter().filter(|_| map.parities > 0) {
            prop_assert!(places.insert((map.parity(soft).unwrap(), map.slot(soft))), "parity is apart");
        }
        prop_assert_eq!(soft_rows.len() as u64, map.soft_rows());
        prop_assert!(places.iter().all(|&(_, unit)| unit < map.end().max(map.native(map.rows - 1) + 1)));
    }

    #[test]
    fn nothing_is_lost_whatever_the_order_of_writes_shifts_and_failures(
        case in arrays(), events in events(), reversed: bool,
    ) {
        let mut trial = GearTrial::new(&case, reversed);
        events.iter().for_each(|event| trial.take(event));
        trial.check();
        trial.settle();
        trial.check();
    }

    #[test]
    fn redundancy_follows_from_the_data_in_each_gear_and_what_does_not_is_found(
        case in arrays(), events in events(), most in 1u64..40, flipped: u64, unit: u64,
    ) {
        let mut case = case;
        case.1["level"] = json!("raid5");
        let mut trial = GearTrial::new(&case, false);
        events.iter().filter(|event| !matches!(event, GearEvent::Fail(_))).for_each(|event| trial.take(event));
        prop_assert_eq!(trial.array.make_redundant(most), 0);
        trial.check();
        // Every sector that is in use, data or parity, can be computed from the other sectors.
        let members = trial.array.layout.members() as u64;
        let (member, lbn) = ((flipped % members) as usize, unit % (MEMBERS - 1));
        let before = trial.array.member_sector(member, lbn);
        let can = trial.array.mend(member, Extent::new(lbn, 1));
        if can {
            let held = trial.array.all_members();
            trial.array.corrupt_sector(member, lbn);
            prop_assert!(trial.array.mend(member, Extent::new(lbn, 1)));
            prop_assert_eq!(trial.array.all_members(), held);
            // Without a repair, the check finds the change wherever the sector is in use.
            trial.array.corrupt_sector(member, lbn);
            let is_native = !matches!(trial.array.layout.role_of(member, Lbn(lbn)), Role::Unused);
            let is_soft = gear(&mut trial.array).reads_soft();
            prop_assert!(trial.array.make_redundant(most) > 0 || !is_native && !is_soft);
        }
        let native = !matches!(trial.array.layout.role_of(member, Lbn(lbn)), Role::Unused);
        let stands = gear(&mut trial.array).reads_soft() && trial.array.layout.gears().unwrap().transient().contains(&member);
        prop_assert!(can || !native || stands, "{:?} {:?}", before, case);
    }

    #[test]
    fn what_was_not_written_in_the_low_gear_need_not_be_copied_home(
        case in arrays(), before in asks(6), between in asks(6),
    ) {
        let mut trial = GearTrial::new(&case, false);
        before.iter().for_each(|ask| trial.ask(ask));
        trial.shift();
        trial.settle();
        let rows = trial.array.layout.gears().unwrap().rows();
        let mut written = BTreeSet::new();
        for ask in &between {
            trial.ask(ask);
            let extent = ask.extent(trial.array.layout.capacity().0);
            if let Some(rows) = rows.filter(|_| extent.sectors.0 > 0) {
                let on = rows.on_members(extent);
                written.extend(on.start.0..on.end().0);
            }
        }
        let gears = trial.array.layout.gears().unwrap();
        gears.found_low();
        if rows.is_some() {
            gears.narrow_stale(&|extent| (extent.start.0..extent.end().0).any(|lbn| written.contains(&lbn)));
        }
        trial.shift();
        trial.settle();
        prop_assert_eq!(gear(&mut trial.array), Gear::High);
        trial.check();
    }

    #[test]
    fn one_failure_is_survived_in_each_gear_and_between(
        case in arrays(), before in asks(6), between in asks(6), after in asks(6), member: u32, copies in 0u32..6, at in 0usize..4,
    ) {
        let mut case = case;
        case.1["level"] = json!("raid5");
        prop_assume!(case.2 - case.1["active"].as_u64().unwrap() >= 1 && case.1["active"].as_u64().unwrap() >= 3);
        let mut trial = GearTrial::new(&case, false);
        before.iter().for_each(|ask| trial.ask(ask));
        if at > 0 {
            trial.shift();
            trial.take(&GearEvent::Copy(copies, 3));
        }
        if at > 1 {
            trial.settle();
        }
        between.iter().for_each(|ask| trial.ask(ask));
        if at > 2 && gear(&mut trial.array) == Gear::Low {
            trial.shift();
            trial.take(&GearEvent::Copy(copies, 3));
        }
        trial.take(&GearEvent::Fail(member));
        trial.check();
        after.iter().for_each(|ask| trial.ask(ask));
        trial.check();
        if gear(&mut trial.array) == Gear::Low {
            trial.shift();
        }
        trial.settle();
        trial.check();
        trial.restore();
        trial.check();
    }
}

#[test]
fn in_the_low_gear_nothing_is_asked_of_members_that_stand() {
    let case = (
        "paraid",
        json!({ "chunk": 512, "active": 4, "native_percent": 35 }),
        6,
    );
    let mut array = array_of(&case);
    array.layout.gears().unwrap().shift(Gear::Falling);
    while array.copy(100) {}
    assert_eq!(gear(&mut array), Gear::Low);
    let before = array.member_sector(5, 3);
    let whole = array.layout.capacity().0;
    let mut bytes = vec![0xA5; whole as usize * SECTOR];
    let extent = Extent::new(0, whole);
    assert_eq!(
        array.attempt(Operation::Write, extent, &mut bytes),
        fullstroke_contract::RequestStatus::Done
    );
    assert_eq!(array.member_sector(5, 3), before);
    assert_eq!(array.layout.left_out(), [4, 5]);
    array.layout.gears().unwrap().shift(Gear::Rising);
    while array.copy(100) {}
    assert_ne!(array.member_sector(5, 3), before, "copied home");
}

#[test]
fn gears_that_cannot_be_are_refused_at_their_keys() {
    let refused = |name: &str, keys: Value, key: &str, said: &str| {
        let error = build(name, &keys, &[4096; 8]).err().unwrap();
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(said), "{error}");
    };
    refused(
        "paraid",
        json!({ "active": 2 }),
        "active",
        "leaves no redundancy",
    );
    refused(
        "paraid",
        json!({ "active": 0, "level": "raid0" }),
        "active",
        "at least 1 active member",
    );
    refused("paraid", json!({ "active": 8 }), "active", "none stops");
    refused(
        "paraid",
        json!({ "shift_down": 0.3, "shift_up": 0.3 }),
        "shift_down",
        "to and fro",
    );
    refused(
        "paraid",
        json!({ "shift_down": -0.1 }),
        "shift_down",
        "shares of time",
    );
    refused(
        "paraid",
        json!({ "native_percent": 90 }),
        "native_percent",
        "the reserve",
    );
    refused(
        "e-paraid",
        json!({ "native_percent": 90 }),
        "native_percent",
        "buckets",
    );
    refused(
        "paraid",
        json!({ "active": 3, "native_percent": 50 }),
        "native_percent",
        "the reserve",
    );
    refused("paraid", json!({ "cluster": 32 }), "cluster", "one reserve");
    refused(
        "paraid",
        json!({ "window_s": 0 }),
        "window_s",
        "length of the window",
    );
    refused(
        "paraid",
        json!({ "copy_rate": 0 }),
        "copy_rate",
        "no shift would end",
    );
    refused(
        "paraid",
        json!({ "level": "raid0", "failed": [1] }),
        "failed",
        "survives no failure",
    );
}
