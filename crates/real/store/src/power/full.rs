//! Full file systems of members during an assembly.

use super::{Simulated, SplitMix, content, dynamic, made, some_bytes};
use crate::{Allowances, Array, Device, GearDirection, RequestScratch, assemble, assemble_with};
use fullstroke_contract::Gear;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn fill(devices: &[Arc<Simulated>], is_full: bool) {
    for device in devices {
        device.is_full.store(is_full, Ordering::SeqCst);
    }
}

#[test]
fn an_array_without_room_is_read_alone_and_is_whole_again_when_there_is_room() {
    for (layout, members) in [
        ("raid0", 2),
        ("raid1", 2),
        ("raid5", 3),
        ("raid6", 4),
        ("raid10", 4),
    ] {
        for is_stopped in [true, false] {
            let what = format!("{layout}, stopped: {is_stopped}");
            let (array, devices, mut worker) = made(layout, members, 0);
            let bytes = some_bytes(array.capacity().bytes().0, 5);
            array.write(&mut worker, 0, &bytes).unwrap();
            array.flush().unwrap();
            if is_stopped {
                array.stop().unwrap();
            }
            drop(array);
            for device in &devices {
                device.lose_power(&mut SplitMix(3), 50);
            }
            fill(&devices, true);
            let before: Vec<Vec<u8>> = devices
                .iter()
                .map(|one| one.lock().current.clone())
                .collect();
            let (array, report) = assemble(&dynamic(&devices), false).unwrap();
            assert!(
                report.remarks.concat().contains("read-only"),
                "{what}: {report:?}"
            );
            assert!(array.is_read_only(), "{what}");
            assert!(
                content(&array, &mut RequestScratch::one_by_one()) == bytes,
                "{what}"
            );
            let refused = array.write(&mut worker, 0, &bytes[..4096]).unwrap_err();
            assert!(
                refused.to_string().contains("file system is full"),
                "{what}: {refused}"
            );
            array.flush().unwrap();
            array.stop().unwrap();
            let after = devices.iter().map(|one| one.lock().current.clone());
            assert!(after.eq(before), "{what}: nothing was written");
            fill(&devices, false);
            let (array, report) = assemble(&dynamic(&devices), false).unwrap();
            assert!(
                report.newly_failed.is_empty() && !array.is_read_only(),
                "{what}"
            );
            array.write(&mut worker, 0, &bytes[..4096]).unwrap();
            assert!(content(&array, &mut worker) == bytes, "{what}");
            assert_eq!(array.status().state, "whole", "{what}");
        }
    }
}

fn contents(devices: &[Arc<Simulated>]) -> Vec<Vec<u8>> {
    let contents = devices.iter().map(|one| one.lock().current.clone());
    contents.collect()
}

fn assembled_read_only(devices: &[Arc<dyn Device>]) -> Array {
    let allowances = Allowances {
        degraded: true,
        read_only: true,
        ..Allowances::default()
    };
    assemble_with(devices, &allowances).unwrap().0
}

/// Kills an array with unflushed writes. Then the array is read, by order and on full file systems,
/// with and without the last member. Expects the data that a usual assembly finds, and unchanged
/// members.
fn reads_as_if_mended(layout: &str, members: usize, gear: Option<Gear>, seed: u64) {
    let what = format!("{layout}, {gear:?}, seed {seed}");
    let (array, devices, mut worker) = made(layout, members, 0);
    let mut bytes = some_bytes(array.capacity().bytes().0, seed);
    array.write(&mut worker, 0, &bytes).unwrap();
    if gear == Some(Gear::Low) {
        array.shift(GearDirection::Down).unwrap();
        while array.advance_maintenance(&mut worker).unwrap() {}
    }
    assert_eq!(array.gear(), gear, "{what}");
    array.flush().unwrap();
    // Parts of rows and whole rows; power fails before they are durable.
    let mut random = SplitMix(seed);
    let sectors = array.capacity().0;
    for index in 0..12 {
        let first = random.below(sectors - 40);
        let new = some_bytes((1 + random.below(39)) * 512, 100 + index);
        array.write(&mut worker, first * 512, &new).unwrap();
        bytes[first as usize * 512..][..new.len()].copy_from_slice(&new);
    }
    drop(array);
    for device in &devices {
        device.lose_power(&mut random, 50);
    }
    let redundant = !layout.ends_with("raid0");
    for missing in [false, true] {
        if missing && !redundant {
            continue;
        }
        let present = &devices[..members - usize::from(missing)];
        let before = contents(present);
        let by_order = assembled_read_only(&dynamic(present));
        fill(present, true);
        let (without_room, _) = assemble(&dynamic(present), true).unwrap();
        for array in [&by_order, &without_room] {
            assert!(array.is_read_only() && array.halted().is_none(), "{what}");
            assert_eq!(array.gear(), gear, "{what}");
            // The second reading finds the same data in all copies.
            let first = content(array, &mut worker);
            assert!(first == content(array, &mut worker), "{what}");
            array.tidy().unwrap();
            assert!(!array.is_to_be_tended() && !array.is_to_be_shifted());
            array.write(&mut worker, 0, &bytes[..4096]).unwrap_err();
            array.fail(0).unwrap_err();
            array.flush().unwrap();
        }
        let read = content(&by_order, &mut worker);
        assert!(read == content(&without_room, &mut worker), "{what}");
        by_order.stop().unwrap();
        without_room.stop().unwrap();
        assert!(contents(present) == before, "{what}: a member was written");
        fill(present, false);
        let images: Vec<_> = devices.iter().map(|device| device.backup()).collect();
        let (array, _) = assemble(&dynamic(present), missing).unwrap();
        assert!(
            content(&array, &mut worker) == read,
            "{what}: another assembly finds other data"
        );
        drop(array);
        for (device, image) in devices.iter().zip(&images) {
            device.restore(image);
        }
    }
}

#[test]
fn an_array_without_room_is_read_with_a_missing_member_and_in_each_gear() {
    for (layout, members, gears) in [
        ("raid0", 2, &[None][..]),
        ("raid1", 3, &[None]),
        ("raid5", 4, &[None]),
        ("raid6", 5, &[None]),
        ("raid10", 4, &[None]),
        ("paraid", 4, &[Some(Gear::High), Some(Gear::Low)]),
        ("paraid of raid0", 4, &[Some(Gear::High), Some(Gear::Low)]),
        ("e-paraid, 4 turn", 6, &[Some(Gear::High), Some(Gear::Low)]),
    ] {
        for &gear in gears {
            for seed in 0..4 {
                reads_as_if_mended(layout, members, gear, seed);
            }
        }
    }
}

#[test]
fn an_unreadable_sector_of_an_array_that_is_only_read_is_computed_and_not_written() {
    let (array, devices, mut worker) = made("raid5", 3, 0);
    let bytes = some_bytes(array.capacity().bytes().0, 5);
    array.write(&mut worker, 0, &bytes).unwrap();
    array.stop().unwrap();
    drop(array);
    let bad = devices[1].bytes() as usize / 512 / 2;
    let last = devices[1].bytes() as usize / 512 - 40;
    (bad..last).for_each(|sector| devices[1].corrupt_sector(sector));
    let before = contents(&devices);
    let array = assembled_read_only(&dynamic(&devices));
    assert!(content(&array, &mut worker) == bytes);
    let events = array.take_happenings();
    assert!(
        events
            .iter()
            .any(|event| event.why.contains("kept in memory")),
        "{events:?}"
    );
    assert!(contents(&devices) == before);
    let mut read = [0; 512];
    assert!(devices[1].read(bad as u64 * 512, &mut read).is_err());
}
