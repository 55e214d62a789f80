//! Changed devices: restored from a backup, cut, written over, copied, replaced. None of them may
//! count as the former member.

use super::{Simulated, content, design, dynamic, made, simulated, some_bytes};
use crate::Repair;
use crate::copies::START_BYTES;
use crate::superblock::{self, COPIES, SUPERBLOCK_BYTES};
use crate::{
    Allowances, Array, ArrayError, Device, GearDirection, JournalPolicy, RequestScratch, assemble,
    assemble_with, create,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Layouts, their number of members here, and true for those with redundancy.
const LAYOUTS: &[(&str, usize, bool)] = &[
    ("raid1", 2, true),
    ("raid1", 3, true),
    ("raid4", 4, true),
    ("raid5", 3, true),
    ("raid6", 4, true),
    ("raid10", 4, true),
    ("paraid", 4, true),
    ("raid0", 3, false),
    ("jbod", 3, false),
    ("lzvs", 4, false),
];

/// Returns the content of each device.
fn backups(devices: &[Arc<Simulated>]) -> Vec<super::Media> {
    devices.iter().map(|device| device.backup()).collect()
}

fn assembled(devices: &[Arc<Simulated>]) -> Array {
    let (array, report) = assemble(&dynamic(devices), false).unwrap();
    assert!(report.newly_failed.is_empty(), "{report:?}");
    array
}

/// Returns the reason why the array is not assembled with all devices.
fn missing(devices: &[Arc<Simulated>], what: &str) -> String {
    match assemble(&dynamic(devices), false) {
        Err(error @ (ArrayError::Missing(_) | ArrayError::Refused(_))) => error.to_string(),
        Err(error) => panic!("{what}: {error}"),
        Ok((array, _)) => panic!("{what}: it counts as {}", array.status().state),
    }
}

/// One session: everything is written, flushed, and the array stopped, or its server killed.
fn write_all(devices: &[Arc<Simulated>], tag: u64, stops: bool) -> Vec<u8> {
    let array = assembled(devices);
    let bytes = some_bytes(array.capacity().bytes().0, tag);
    array
        .write(&mut RequestScratch::one_by_one(), 0, &bytes)
        .unwrap();
    array.flush().unwrap();
    if stops {
        array.stop().unwrap();
    }
    bytes
}

/// Checks that the array has the `expected` data without the member in `slot`, or is not assembled.
fn goes_on_without(
    (layout, survives): (&str, bool),
    devices: &[Arc<Simulated>],
    slot: usize,
    expected: &[u8],
) {
    let result = assemble(&dynamic(devices), true);
    if !survives {
        let error = result.map(drop).unwrap_err();
        assert!(matches!(error, ArrayError::Refused(_)), "{layout}: {error}");
        return;
    }
    let (array, report) = result.unwrap();
    assert_eq!(report.newly_failed.len(), 1, "{layout}: {report:?}");
    assert_eq!(array.status().slots[slot].state, "failed", "{layout}");
    let mut worker = RequestScratch::one_by_one();
    assert!(content(&array, &mut worker) == expected, "{layout}");
    // The member comes back, and is filled.
    let device = Arc::clone(&devices[slot]) as Arc<dyn Device>;
    array.add(device, true).unwrap();
    while array.advance_maintenance(&mut worker).unwrap() {}
    assert_eq!(array.status().state, "whole", "{layout}");
    let found = super::scrubbed(&array, &mut worker, Repair::Nothing);
    assert_eq!(found.mismatched_sectors, 0, "{layout}");
    assert!(content(&array, &mut worker) == expected, "{layout}");
}

#[test]
fn a_member_that_was_rolled_back_by_one_assembly_or_more_is_out_of_date() {
    for &(layout, members, survives) in LAYOUTS {
        for assemblies in 1..=3 {
            for (stopped_before, stopped_after) in
                [(true, true), (true, false), (false, false), (false, true)]
            {
                let what = format!("{layout}, {assemblies}, {stopped_before}, {stopped_after}");
                let (array, devices, _) = made(layout, members, 0);
                array.stop().unwrap();
                write_all(&devices, 1, stopped_before);
                // Another member each time, because the first member has a part of its own in some
                // layouts.
                let slot = (assemblies as usize) % members;
                let backup = devices[slot].backup();
                let mut expected = Vec::new();
                for tag in 0..assemblies {
                    expected = write_all(&devices, 2 + tag, stopped_after);
                }
                devices[slot].restore(&backup);
                let why = missing(&devices, &what);
                assert!(
                    why.contains(&format!("`device {slot}` is out of date")),
                    "{what}: {why}"
                );
                goes_on_without((layout, survives), &devices, slot, &expected);
            }
        }
    }
}

#[test]
fn members_that_were_rolled_back_together_are_what_they_were() {
    for &(layout, members, _) in LAYOUTS {
        let (array, devices, _) = made(layout, members, 0);
        array.stop().unwrap();
        let expected = write_all(&devices, 1, true);
        let backups = backups(&devices);
        // A session between, so that the rolled-back superblocks differ from the latest ones on
        // every member.
        write_all(&devices, 2, false);
        for (device, backup) in devices.iter().zip(&backups) {
            device.restore(backup);
        }
        let array = assembled(&devices);
        assert!(content(&array, &mut RequestScratch::one_by_one()) == expected);
    }
}

#[test]
fn a_member_that_was_rolled_back_while_another_is_missing_is_out_of_date() {
    for (layout, members) in [("raid1", 3), ("raid5", 4), ("raid6", 5)] {
        let (array, devices, mut worker) = made(layout, members, 0);
        array.write(&mut worker, 0, &some_bytes(4096, 1)).unwrap();
        array.flush().unwrap();
        // The member fails while the array is in use: the failure is recorded one event later.
        let backup = devices[0].backup();
        array.fail(1).unwrap();
        let bytes = some_bytes(array.capacity().bytes().0, 2);
        array.write(&mut worker, 0, &bytes).unwrap();
        array.flush().unwrap();
        drop(array);
        devices[0].restore(&backup);
        let why = missing(&devices, layout);
        assert!(why.contains("`device 0` is out of date"), "{why}");
        let result = assemble(&dynamic(&devices), true);
        if layout == "raid5" {
            assert!(matches!(result, Err(ArrayError::Refused(_))), "{layout}");
        } else {
            assert!(
                content(&result.unwrap().0, &mut worker) == bytes,
                "{layout}"
            );
        }
    }
}

#[test]
fn a_member_that_stood_in_the_low_gear_and_was_rolled_back_is_out_of_date() {
    let (array, devices, mut worker) = made("paraid", 4, 0);
    let backup = devices[3].backup();
    let bytes = some_bytes(array.capacity().bytes().0, 2);
    array.write(&mut worker, 0, &bytes).unwrap();
    array.shift(GearDirection::Down).unwrap();
    while array.advance_maintenance(&mut worker).unwrap() {}
    assert!(array.is_in_standby(3));
    drop(array);
    // The device as it is in standby: its old event count is right there, unlike that of the
    // restored one.
    let standing = devices[3].backup();
    devices[3].restore(&backup);
    let why = missing(&devices, "paraid");
    assert!(why.contains("`device 3` is out of date"), "{why}");
    devices[3].restore(&standing);
    assert!(content(&assembled(&devices), &mut worker) == bytes);
}

#[test]
fn two_copies_of_an_array_that_were_used_apart_do_not_mix() {
    for &(layout, members, _) in LAYOUTS {
        let (array, devices, _) = made(layout, members, 0);
        array.stop().unwrap();
        let originals = backups(&devices);
        write_all(&devices, 1, true);
        let first = backups(&devices);
        for (device, original) in devices.iter().zip(&originals) {
            device.restore(original);
        }
        // The count of events is that of the other copy.
        write_all(&devices, 2, true);
        devices[0].restore(&first[0]);
        let why = missing(&devices, layout);
        assert!(why.contains("two histories"), "{layout}: {why}");
        assert!(assemble(&dynamic(&devices), true).is_err(), "{layout}");
    }
}

/// Power fails at every write and flush of an assembly, and again at one of the next. Nothing
/// relies on an event before all members have its record, so no member counts as out of date.
#[test]
fn an_assembly_that_is_interrupted_leaves_no_member_behind() {
    for &(layout, members, _) in LAYOUTS {
        let (array, devices, _) = made(layout, members, 0);
        array.stop().unwrap();
        let expected = write_all(&devices, 1, false);
        let before = backups(&devices);
        let mut random = super::SplitMix(members as u64);
        for cut in 0.. {
            for (device, before) in devices.iter().zip(&before) {
                device.restore(before);
            }
            let mut was_cut = false;
            // Twice: the second assembly meets what the first one left half done.
            for supply in [cut, random.below(1 + cut as u64) as i64] {
                devices[0].power.0.store(supply, Ordering::SeqCst);
                let result = assemble(&dynamic(&devices), false);
                was_cut |= result.is_err();
                drop(result);
                let percent = [0, 50, 100][random.below(3) as usize];
                for device in &devices {
                    device.lose_power(&mut random, percent);
                }
                devices[0].power.0.store(i64::MAX, Ordering::SeqCst);
            }
            let (array, report) = match assemble(&dynamic(&devices), false) {
                Ok(found) => found,
                Err(error) => panic!("{layout}, {cut}: {error}"),
            };
            assert!(report.newly_failed.is_empty(), "{layout}, {cut}");
            assert!(content(&array, &mut RequestScratch::one_by_one()) == expected);
            // The assembly needed fewer writes than were allowed, so every earlier point has been
            // cut.
            if !was_cut {
                break;
            }
        }
    }
}

#[test]
fn a_member_that_was_cut_or_written_over_is_not_taken_for_whole() {
    type Harm = fn(&Simulated);
    let harms: [(&str, Harm); 6] = [
        ("it was cut", |device| device.resize(device.bytes() / 2)),
        ("it was cut", |device| device.resize(device.bytes() - 4096)),
        ("it was cut, or", |device| {
            let bytes = device.bytes();
            device.resize(bytes / 2);
            device.resize(bytes);
        }),
        ("it was cut, or", |device| {
            let bytes = device.bytes();
            device.resize(bytes / 2);
            device.resize(2 * bytes);
        }),
        ("overwritten the beginning", |device| {
            device.scribble(0, &some_bytes(1 << 20, 9));
        }),
        ("overwritten the end", |device| {
            device.scribble(device.bytes() - (64 << 10), &some_bytes(64 << 10, 9));
        }),
    ];
    for &(layout, members, survives) in LAYOUTS {
        for (expected, harm) in harms {
            let (array, devices, _) = made(layout, members, 0);
            array.stop().unwrap();
            let bytes = write_all(&devices, 1, true);
            let size = devices[1].bytes();
            harm(&devices[1]);
            let why = missing(&devices, layout);
            assert!(
                why.contains("`device 1`") && why.contains(expected),
                "{layout}, {expected}: {why}"
            );
            // A device of another size cannot be added again to the slot.
            if devices[1].bytes() == size {
                goes_on_without((layout, survives), &devices, 1, &bytes);
            }
        }
    }
}

#[test]
fn a_device_that_has_grown_is_the_member_that_it_was() {
    for &(layout, members, _) in LAYOUTS {
        let (array, devices, mut worker) = made(layout, members, 0);
        array.stop().unwrap();
        let bytes = write_all(&devices, 1, true);
        devices[1].resize(devices[1].bytes() + (1 << 20));
        let (array, report) = assemble(&dynamic(&devices), false).unwrap();
        assert!(report.remarks[0].contains("`device 1` has grown"));
        assert!(content(&array, &mut worker) == bytes);
        array.stop().unwrap();
        // From then on the new size counts.
        let (array, report) = assemble(&dynamic(&devices), false).unwrap();
        assert!(report.remarks.is_empty() && report.torn_superblocks == 0);
        assert!(content(&array, &mut worker) == bytes);
    }
}

#[test]
fn what_is_trusted_is_assembled_all_the_same() {
    let (array, devices, mut worker) = made("raid0", 3, 0);
    array.stop().unwrap();
    let bytes = write_all(&devices, 1, true);
    devices[1].scribble(0, &[9; 4096 + 512]);
    assert!(missing(&devices, "raid0").contains("overwritten the beginning"));
    let allowances = Allowances {
        trusted: vec!["device 1".into()],
        ..Allowances::default()
    };
    let (array, report) = assemble_with(&dynamic(&devices), &allowances).unwrap();
    assert!(report.remarks[0].contains("is trusted"), "{report:?}");
    assert!(content(&array, &mut worker) == bytes);
    array.stop().unwrap();
    assert!(content(&assembled(&devices), &mut worker) == bytes);
}

/// Writes superblocks of version 1: without ids of events and sizes.
fn write_version_1(device: &Simulated, events: [u64; 2]) {
    let found = superblock::read(device).unwrap().unwrap().superblock;
    for (copy, events) in events.into_iter().enumerate() {
        let mut old = found.clone();
        // Version 1 has neither, and the reader must take their absence for age and not for damage.
        old.own = None;
        (old.roster.stamp, old.roster.events) = (None, events);
        superblock::COPIES
            .write(device, copy, &old.encode().unwrap())
            .unwrap();
        device.flush().unwrap();
    }
}

#[test]
fn arrays_of_version_1_are_assembled_and_a_member_that_may_be_behind_is_named() {
    for &(layout, members, survives) in LAYOUTS {
        let (array, devices, mut worker) = made(layout, members, 0);
        array.stop().unwrap();
        let bytes = write_all(&devices, 1, true);
        for device in &devices {
            write_version_1(device, [20, 21]);
        }
        let backups = backups(&devices);
        let array = assembled(&devices);
        assert!(content(&array, &mut worker) == bytes);
        array.stop().unwrap();
        assert!(content(&assembled(&devices), &mut worker) == bytes);
        for (device, backup) in devices.iter().zip(&backups) {
            device.restore(backup);
        }
        // One copy is ahead of the other, as after a write of superblocks that power cut.
        write_version_1(&devices[1], [20, 19]);
        let why = missing(&devices, layout);
        assert!(why.contains("`device 1` is out of date"), "{why}");
        goes_on_without((layout, survives), &devices, 1, &bytes);
        for (device, backup) in devices.iter().zip(&backups) {
            device.restore(backup);
        }
        devices[1].resize(devices[1].bytes() / 2);
        assert!(missing(&devices, layout).contains("it was cut"));
    }
}

/// Returns the bytes of all devices, to prove the absence of writes.
fn all_bytes(devices: &[Arc<Simulated>]) -> Vec<Vec<u8>> {
    let bytes = |device: &Arc<Simulated>| device.lock().current.clone();
    devices.iter().map(bytes).collect()
}

#[test]
fn an_array_of_too_many_members_is_refused_before_anything_is_written() {
    for layout in ["raid0", "raid1", "raid5", "raid10"] {
        let (devices, _) = simulated(150, 1300 << 10);
        for device in &devices {
            device.scribble(500_000, b"PRECIOUS");
        }
        let before = all_bytes(&devices);
        let mut design = design(layout, 4096, JournalPolicy::None);
        // Force lifts the checks of contents, so that the limit of members is the only reason left
        // to refuse.
        design.force = true;
        let error = create(&design, &dynamic(&devices)).unwrap_err().to_string();
        assert!(
            error.contains("150 members") && error.contains("expected at most 16384"),
            "{error}"
        );
        assert!(all_bytes(&devices) == before, "{layout}");
    }
}

#[test]
fn a_spare_that_an_array_has_no_use_for_is_not_written_to() {
    let (array, _, _) = made("raid0", 3, 0);
    let (others, _) = simulated(1, 1300 << 10);
    others[0].scribble(0, &some_bytes(1300 << 10, 3));
    let before = all_bytes(&others);
    let device = Arc::clone(&others[0]) as Arc<dyn Device>;
    let error = array.add(device, true).unwrap_err().to_string();
    assert!(error.contains("no redundancy"), "{error}");
    assert!(all_bytes(&others) == before);
}

#[test]
fn a_device_that_holds_anything_is_taken_only_by_force() {
    // The first and the last byte, and places that no signature of a known owner uses.
    for at in [0, 512, 100_000, 700_000, (1300 << 10) - 1] {
        let (devices, _) = simulated(2, 1300 << 10);
        devices[1].scribble(at, &[1]);
        let before = all_bytes(&devices);
        let mut design = design("raid1", 4096, JournalPolicy::None);
        let error = create(&design, &dynamic(&devices)).unwrap_err().to_string();
        assert!(
            error.contains("`device 1` holds unknown data")
                && error.contains(&format!("byte {at};")),
            "{error}"
        );
        assert!(all_bytes(&devices) == before);
        design.force = true;
        create(&design, &dynamic(&devices)).unwrap();
        // The device is not accepted as a spare either, nor in the slot of a failed member.
        let (array, _) = assemble(&dynamic(&devices), false).unwrap();
        while array
            .advance_maintenance(&mut RequestScratch::one_by_one())
            .unwrap()
        {}
        for fails in [false, true] {
            if fails {
                array.fail(0).unwrap();
            }
            let (others, _) = simulated(1, 1300 << 10);
            others[0].scribble(at, &[1]);
            let before = all_bytes(&others);
            let device = Arc::clone(&others[0]) as Arc<dyn Device>;
            let error = array.add(device, false).unwrap_err().to_string();
            assert!(error.contains("holds unknown data"), "{error}");
            assert!(all_bytes(&others) == before);
        }
    }
}

#[test]
fn a_device_that_is_no_member_counts_as_missing_where_members_may_be_missing() {
    for (layout, members) in [("raid1", 2), ("raid5", 3), ("raid6", 4), ("raid10", 4)] {
        let (array, devices, mut worker) = made(layout, members, 0);
        array.stop().unwrap();
        let bytes = write_all(&devices, 1, true);
        let (_, of_another, _) = made("raid1", 2, 0);
        let (blank, _) = simulated(1, 1300 << 10);
        let (with_ext, _) = simulated(1, 1300 << 10);
        // `s_magic` of ext2: byte 56 of the superblock, which begins at byte 1024
        // (`fs/ext2/ext2.h`).
        with_ext[0].scribble(1080, &[0x53, 0xEF]);
        let strangers = [
            (&blank[0], "found no superblock"),
            (&with_ext[0], "ext2, ext3 or ext4"),
            (&of_another[0], "is of another array"),
        ];
        for (stranger, expected) in strangers {
            let backups = backups(&devices);
            let before = stranger.lock().current.clone();
            let mut named = dynamic(&devices);
            let renamed = Renamed(Arc::clone(stranger));
            named[1] = Arc::new(renamed);
            assert!(assemble(&named, false).is_err());
            let result = assemble(&named, true);
            if layout == "raid1" && expected == "is of another array" {
                // One device of each array: the intended array is not known.
                assert!(matches!(result, Err(ArrayError::Refused(_))));
                continue;
            }
            let (array, report) = result.unwrap();
            assert!(report.gone[0].contains(expected), "{report:?}");
            assert!(report.gone[0].contains("counts as missing"), "{report:?}");
            assert_eq!(array.status().state, "degraded");
            assert!(content(&array, &mut worker) == bytes);
            array.stop().unwrap();
            assert!(stranger.lock().current == before);
            for (device, backup) in devices.iter().zip(&backups) {
                device.restore(backup);
            }
        }
    }
}

/// A device with another name.
struct Renamed(Arc<Simulated>);

impl Device for Renamed {
    fn name(&self) -> String {
        "replaced".into()
    }
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
    fn read(&self, at: u64, into: &mut [u8]) -> std::io::Result<()> {
        self.0.read(at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> std::io::Result<()> {
        self.0.write(at, from)
    }
    fn flush(&self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// A whole disk ends where its last partition ends. The last superblock of the partition is no
/// superblock of the disk.
#[test]
fn a_superblock_at_a_wrong_place_is_none() {
    let (array, devices, _) = made("raid1", 2, 0);
    array.stop().unwrap();
    let bytes = devices[0].bytes();
    let mut end = vec![0; SUPERBLOCK_BYTES as usize];
    devices[0].read(COPIES.place(1, bytes), &mut end).unwrap();
    let (disk, _) = simulated(1, 2600 << 10);
    disk[0].scribble(COPIES.place(1, disk[0].bytes()), &end);
    assert!(superblock::read(&*disk[0]).unwrap().is_none());
    disk[0].scribble(START_BYTES, &end);
    assert!(superblock::read(&*disk[0]).unwrap().is_none());
}

/// Data is lost if its only member fails, too. The next flush reports the loss, and no other flush.
#[test]
fn a_flush_fails_once_after_data_were_lost() {
    for (layout, members, failures) in [
        ("raid1", 2, 1),
        ("raid5", 3, 1),
        ("raid4", 4, 1),
        ("raid6", 4, 2),
        ("raid10", 4, 1),
        ("paraid", 4, 1),
    ] {
        let (array, devices, mut worker) = made(layout, members, 0);
        let bytes = some_bytes(array.capacity().bytes().0, 1);
        array.write(&mut worker, 0, &bytes).unwrap();
        for slot in 0..failures {
            array.fail(slot).unwrap();
        }
        array.flush().unwrap();
        array.write(&mut worker, 0, &bytes).unwrap();
        let data = array.facts.data_at as usize / 512;
        // The last holders of the data.
        for device in &devices[failures..] {
            (data..data + 64).for_each(|sector| device.corrupt_sector(sector));
        }
        let read = array.read(&mut worker, 0, &mut vec![0; bytes.len()]);
        assert!(matches!(read, Err(ArrayError::Device { .. })), "{layout}");
        // As `fsync` does since Linux 4.13: an error is reported once to each opening (`errseq_t`).
        let flushed = array.flush();
        assert!(
            matches!(flushed, Err(ArrayError::LostBefore)),
            "{layout}: {flushed:?}"
        );
        array.flush().unwrap();
        array.stop().unwrap();
    }
}

/// Exchanges both copies of the superblocks of two members.
fn exchange(devices: &[Arc<Simulated>], one: usize, other: usize) {
    let mut taken = Vec::new();
    for slot in [one, other] {
        let bytes = devices[slot].bytes();
        let copies = [0, 1].map(|copy| {
            let mut copied = vec![0; SUPERBLOCK_BYTES as usize];
            devices[slot]
                .read(COPIES.place(copy, bytes), &mut copied)
                .unwrap();
            copied
        });
        taken.push(copies);
    }
    for (slot, copies) in [other, one].into_iter().zip(taken) {
        let bytes = devices[slot].bytes();
        for (copy, copied) in copies.iter().enumerate() {
            devices[slot].scribble(COPIES.place(copy, bytes), copied);
        }
    }
}

#[test]
fn superblocks_that_were_exchanged_are_found_and_both_devices_are_named() {
    for &(layout, members, _) in LAYOUTS {
        let (array, devices, mut worker) = made(layout, members, 0);
        array.stop().unwrap();
        let bytes = write_all(&devices, 1, true);
        exchange(&devices, 0, 1);
        let before = backups(&devices);
        for degraded in [false, true] {
            let said = match assemble(&dynamic(&devices), degraded) {
                Ok(_) => panic!("{layout}: assembled"),
                Err(error) => error.to_string(),
            };
            assert!(
                said.contains("`device 0`") && said.contains("`device 1`"),
                "{layout}: {said}"
            );
        }
        let untouched = devices.iter().zip(&before);
        for (device, before) in untouched {
            assert!(device.lock().current == before.current, "{layout}");
        }
        // Alone, the device does not hold the data that its superblocks promise.
        let alone: Vec<Arc<dyn Device>> = dynamic(&devices[1..]);
        let said = match assemble(&alone, false) {
            Ok(_) => panic!("{layout}: assembled"),
            Err(error) => error.to_string(),
        };
        assert!(said.contains("label"), "{layout}: {said}");
        exchange(&devices, 0, 1);
        assert!(
            content(&assembled(&devices), &mut worker) == bytes,
            "{layout}"
        );
    }
}

#[test]
fn an_array_without_labels_gets_them_when_it_is_assembled() {
    let (array, devices, mut worker) = made("raid5", 3, 1);
    array.stop().unwrap();
    let bytes = write_all(&devices, 1, true);
    let label = |device: &Simulated| superblock::read(device).unwrap().unwrap().label;
    for device in &devices {
        assert!(label(device).is_some(), "a new array has labels");
        let roster = superblock::read(&**device).unwrap().unwrap();
        crate::label::wipe(&**device, roster.superblock.roster.label_at()).unwrap();
        assert_eq!(label(device), None);
    }
    let array = assembled(&devices);
    assert!(content(&array, &mut worker) == bytes);
    array.stop().unwrap();
    for device in &devices[..3] {
        let found = superblock::read(&**device).unwrap().unwrap();
        assert_eq!(found.label, Some(found.superblock.member));
    }
}
