//! Full file systems of members during an assembly.

use super::{Simulated, SplitMix, content, dynamic, made, some_bytes};
use crate::{RequestScratch, assemble};
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

#[test]
fn a_degraded_array_without_room_is_refused() {
    let (array, devices, mut worker) = made("raid5", 3, 0);
    let bytes = some_bytes(array.capacity().bytes().0, 5);
    array.write(&mut worker, 0, &bytes).unwrap();
    array.fail(2).unwrap();
    array.flush().unwrap();
    drop(array);
    fill(&devices, true);
    assert!(assemble(&dynamic(&devices[..2]), true).is_err());
}
