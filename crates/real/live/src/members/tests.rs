//! Store and layers have the same members alive, in any sequence of events.

use crate::served_stack::ServedStack;
use fullstroke_engine::Machine;
use fullstroke_stack::{Overrides, Stack};
use fullstroke_store::bytes::{MemberStatus, Opening, Store, StoreLocation};
use fullstroke_units::Time;
use proptest::prelude::*;
use proptest::sample::Index;
use std::fs;
use std::time::{Duration, Instant};

const DISK: &str = r#"
title = "a small disk"
capacity_sectors = 4096
rpm = 10000
surfaces = 2
zones = [{ first_cylinder = 0, last_cylinder = 31, sectors_per_track = 64, track_skew = 8, cylinder_skew = 12 }]
seek = { form = "points", points = [[1, 0.8], [31, 8.0]] }
[sources]
capacity_sectors = "chosen"
rpm = "chosen"
surfaces = "chosen"
zones = "chosen"
seek = "chosen"
queue = "chosen"
"#;

pub(crate) const RAID5: &str =
    "layout = \"raid5\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 4\n";
const RAID6: &str = "layout = \"raid6\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 5\n";
const RAID10: &str = "layout = \"raid10\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 4\n";
const RAID1_OF_RAID5: &str = "layout = \"raid1\"\n[[volume.members]]\nlayout = \"raid5\"\nchunk = \"16KiB\"\n\
     drive = \"disk.toml\"\ndrives = 3\ncount = 2\n";

/// Returns a volume of small disks with its data in memory.
pub(crate) fn world(volume: &str) -> ServedStack {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("disk.toml"), DISK).unwrap();
    let file = folder.path().join("volume.toml");
    fs::write(&file, format!("seed = 7\n[volume]\n{volume}")).unwrap();
    let stack = Stack::load_for_clients(&file, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let service = stack.serve().unwrap_or_else(|error| panic!("{error}"));
    let (store, _) = Store::open(
        service.shape,
        &StoreLocation::Memory,
        "0123",
        Opening::default(),
    )
    .unwrap();
    ServedStack::new(
        "volume".into(),
        service.summary.layout,
        Machine::new(service.graph),
        store,
        None,
    )
}

/// Runs the layers until nothing is left to do.
fn run_layers(world: &mut ServedStack) {
    while world.machine.next_wake() != Time::NEVER {
        world.run_next_event();
    }
}

fn carry(world: &mut ServedStack) {
    world.carry_signals(Instant::now() + Duration::from_secs(60));
}

/// The layers run ahead of the data. When the data lost a second member during the rebuild of the
/// first, the layers had the first member whole, but the data did not.
#[test]
fn a_member_that_is_whole_in_the_layers_only_is_filled_after_all() {
    let mut world = world(RAID5);
    world.fail(Time::ZERO, &[1]).unwrap();
    world.restore(Time::ZERO, &[1], None, false).unwrap();
    run_layers(&mut world);
    assert!(!world.store.status()[1].is_alive(), "nothing is filled yet");
    // Simulates a failure of the host's storage.
    world.store.fail_member(&[3]).unwrap();
    world.tell_failure(&[3]).unwrap();
    carry(&mut world);
    assert!(world.store.status()[1].filled().is_some() && world.store.has_failed());
    world.restore(Time::ZERO, &[3], None, true).unwrap();
    run_layers(&mut world);
    carry(&mut world);
    assert!(
        world.store.status().iter().all(MemberStatus::is_alive),
        "{:?}",
        world.store.status()
    );
    // If store and layers disagreed, one of them would refuse.
    check_agreement(&mut world);
}

/// Checks that store and layers agree: otherwise one of them would refuse.
fn check_agreement(world: &mut ServedStack) {
    for drive in drives(world) {
        world.fail(Time::ZERO, &drive).unwrap();
        world.restore(Time::ZERO, &drive, None, false).unwrap();
        run_layers(world);
        carry(world);
        assert!(all_alive(world), "{:?}", world.store.status());
    }
}

fn drives(world: &ServedStack) -> Vec<Vec<usize>> {
    let graph = world.machine.graph();
    graph
        .drive_names()
        .filter_map(|name| graph.drive_path(name))
        .map(<[usize]>::to_vec)
        .collect()
}

fn all_alive(world: &ServedStack) -> bool {
    world.store.status().iter().all(MemberStatus::is_alive)
}

/// An event of the test.
#[derive(Clone, Debug)]
enum MemberStep {
    Fail(Index),
    Restore(Index, bool),
    ReAdd(Index),
    /// The host's storage fails.
    Lose(Index),
    /// The layers go on by this number of events.
    Layers(u8),
    /// The data follow the layers.
    Bytes,
}

fn steps() -> impl Strategy<Value = Vec<MemberStep>> {
    let step = prop_oneof![
        2 => any::<Index>().prop_map(MemberStep::Fail),
        3 => (any::<Index>(), any::<bool>()).prop_map(|(drive, accept)| MemberStep::Restore(drive, accept)),
        1 => any::<Index>().prop_map(MemberStep::ReAdd),
        1 => any::<Index>().prop_map(MemberStep::Lose),
        3 => any::<u8>().prop_map(MemberStep::Layers),
        2 => Just(MemberStep::Bytes),
    ];
    prop::collection::vec(step, 1..30)
}

fn take(world: &mut ServedStack, step: &MemberStep) {
    let drives = drives(world);
    let path = |drive: &Index| drive.get(&drives).as_slice();
    // Orders that make no sense are refused.
    let _ = match step {
        MemberStep::Fail(drive) => world.fail(Time::ZERO, path(drive)),
        MemberStep::Restore(drive, accept) => world.restore(Time::ZERO, path(drive), None, *accept),
        MemberStep::ReAdd(drive) => world.re_add(Time::ZERO, path(drive)),
        MemberStep::Lose(drive) => match world.store.fail_member(path(drive)) {
            Ok(()) => world.tell_failure(path(drive)),
            Err(_) => Ok(()),
        },
        MemberStep::Layers(events) => {
            for _ in 0..*events {
                if world.machine.next_wake() != Time::NEVER {
                    world.run_next_event();
                }
            }
            Ok(())
        }
        MemberStep::Bytes => {
            carry(world);
            Ok(())
        }
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_to_members_layers_and_bytes_agree_in_the_end(
        volume in prop::sample::select(vec![RAID5, RAID6, RAID10, RAID1_OF_RAID5]), steps in steps(),
    ) {
        let mut world = world(volume);
        steps.iter().for_each(|step| take(&mut world, step));
        // In nested volumes the outer volumes are filled last.
        for _ in 0..4 {
            for drive in drives(&world) {
                let _ = world.restore(Time::ZERO, &drive, None, true);
            }
            run_layers(&mut world);
            carry(&mut world);
        }
        prop_assert!(all_alive(&world), "{:?}", world.store.status());
        check_agreement(&mut world);
    }
}
