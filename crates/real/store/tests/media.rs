//! Media of both kinds against plain memory.

mod common;

use common::folder;
use fullstroke_contract::Extent;
use fullstroke_store::{Device, MemoryDevice, SparseFile};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Capacity of more than one directory of pages.
const CAPACITY: u64 = (150 << 20) / 512;

#[derive(Clone, Debug)]
enum Act {
    Write(Extent, u8),
    Zero(Extent, bool),
    Clear,
}

fn extents() -> impl Strategy<Value = Extent> {
    let start = prop_oneof![
        0..600u64,
        (64u64 << 11) - 300..(64 << 11) + 300,
        0..CAPACITY
    ];
    let sectors = prop_oneof![4 => 1u64..20, 2 => 1u64..600, 1 => 1..CAPACITY];
    (start, sectors).prop_map(|(start, sectors)| Extent::new(start, sectors.min(CAPACITY - start)))
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let short = |extent: Extent| Extent::new(extent.start.0, extent.sectors.0.min(600));
    let act = prop_oneof![
        8 => (extents(), any::<u8>()).prop_map(move |(extent, fill)| Act::Write(short(extent), fill)),
        // Zeros that take room are written out by hosts without a better way.
        2 => extents().prop_map(move |extent| Act::Zero(short(extent), false)),
        3 => extents().prop_map(|extent| Act::Zero(extent, true)),
        1 => Just(Act::Clear),
    ];
    prop::collection::vec(act, 1..25)
}

fn check(medium: &dyn Device, acts: &[Act]) {
    // The sectors that are not zero.
    let mut model: BTreeMap<u64, u8> = BTreeMap::new();
    for act in acts {
        match *act {
            Act::Write(extent, fill) => {
                medium
                    .write(
                        extent.start.0 * 512,
                        &vec![fill; extent.sectors.bytes().0 as usize],
                    )
                    .unwrap();
                model.extend((extent.start.0..extent.end().0).map(|lbn| (lbn, fill)));
                model.retain(|_, &mut fill| fill != 0);
            }
            Act::Zero(extent, hole) => {
                medium
                    .zero(extent.start.0 * 512, extent.sectors.0 * 512, hole)
                    .unwrap();
                model.retain(|lbn, _| !(extent.start.0..extent.end().0).contains(lbn));
            }
            Act::Clear => {
                medium.clear().unwrap();
                model.clear();
                assert_eq!(
                    medium.next_data(0, CAPACITY * 512).unwrap(),
                    None,
                    "what is cleared takes no room"
                );
            }
        }
    }
    let mut sector = [0xEE; 512];
    for (&lbn, &fill) in &model {
        medium.read(lbn * 512, &mut sector).unwrap();
        assert_eq!(sector, [fill; 512], "LBN {lbn}");
    }
    check_runs(medium, &model);
}

/// Runs with data are in order, and contain all nonzero sectors.
fn check_runs(medium: &dyn Device, model: &BTreeMap<u64, u8>) {
    let (mut at, mut covered) = (0, 0);
    while let Some(run) = medium.next_data(at * 512, (CAPACITY - at) * 512).unwrap() {
        let run = Extent::new(run.start / 512, (run.end - run.start) / 512);
        assert!(run.start.0 >= at && run.sectors.0 > 0 && run.end().0 <= CAPACITY);
        covered += model.range(run.start.0..run.end().0).count();
        at = run.end().0;
        if at == CAPACITY {
            break;
        }
    }
    assert_eq!(covered, model.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_holds_what_was_written_and_knows_its_holes(acts in acts()) {
        check(&MemoryDevice::new(CAPACITY * 512), &acts);
    }

    #[test]
    fn a_file_holds_what_was_written_and_knows_its_holes(acts in acts()) {
        let folder = folder();
        let file = SparseFile::open(&folder.path().join("drive"), CAPACITY * 512, 0).unwrap();
        check(&file, &acts);
    }
}

#[test]
fn a_part_of_a_run_is_cut_at_what_was_asked_for() {
    let memory = MemoryDevice::new(1 << 20);
    memory.write(100 * 512, &[1; 512 * 50]).unwrap();
    let run = memory.next_data(110 * 512, 5 * 512).unwrap().unwrap();
    assert_eq!(run, 110 * 512..115 * 512);
}
