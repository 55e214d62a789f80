//! Store and layers have the same members alive, whatever comes in between.

use crate::world::World;
use fullstroke_bytes::{Location, MemberStatus, Opening, Store};
use fullstroke_engine::Machine;
use fullstroke_stack::{Overrides, Stack};
use fullstroke_units::Time;
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

/// A RAID-5 of four disks, its bytes in memory.
fn raid5() -> World {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("disk.toml"), DISK).unwrap();
    let file = folder.path().join("raid5.toml");
    let volume = "layout = \"raid5\"\nchunk = \"16KiB\"\ndrive = \"disk.toml\"\ndrives = 4\n";
    fs::write(&file, format!("seed = 7\n[volume]\n{volume}")).unwrap();
    let stack =
        Stack::load_for_clients(&file, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    let service = stack.serve().unwrap_or_else(|error| panic!("{error}"));
    let (store, _) = Store::open(service.shape, &Location::Memory, "0123", Opening::default()).unwrap();
    World::new("raid5".into(), "raid5 of 4".into(), Machine::new(service.graph), store, None)
}

/// Lets the layers go on until nothing is left to do in them.
fn run_layers(world: &mut World) {
    while world.machine.next_wake() != Time::NEVER {
        world.hurry();
    }
}

fn carry(world: &mut World) {
    world.carry_signals(Instant::now() + Duration::from_secs(60));
}

/// The layers run ahead of the bytes. When these lost a second member while they
/// filled the first, the layers had the first whole, the bytes never.
#[test]
fn a_member_that_is_whole_in_the_layers_only_is_filled_after_all() {
    let mut world = raid5();
    world.fail(Time::ZERO, &[1]).unwrap();
    world.restore(Time::ZERO, &[1], None, false).unwrap();
    run_layers(&mut world);
    assert!(!world.store.status()[1].is_alive(), "nothing is filled yet");
    // As if the host's storage had failed.
    world.store.fail_member(&[3]).unwrap();
    world.tell_layers(&[3], None).unwrap();
    carry(&mut world);
    assert!(world.store.status()[1].filled().is_some() && world.store.has_failed());
    world.restore(Time::ZERO, &[3], None, true).unwrap();
    run_layers(&mut world);
    carry(&mut world);
    assert!(world.store.status().iter().all(MemberStatus::is_alive), "{:?}", world.store.status());
    // Had one of the two another state, it would refuse.
    for member in 0..4 {
        world.fail(Time::ZERO, &[member]).unwrap();
        world.restore(Time::ZERO, &[member], None, false).unwrap();
        run_layers(&mut world);
        carry(&mut world);
    }
}
