//! Arrays with gears lose power at the worst moments. Each possible fault of their machinery is
//! provoked on purpose, with and without the preventing piece.

use super::{Case, SECTOR, Simulated, SplitMix, content, dynamic, fill, simulated, some_bytes};
use crate::array::Sabotage;
use crate::assembly::assemble_without;
use crate::{
    Array, AssemblyReport, Device, GearDirection, JournalPolicy, RedundancyCheck, Repair,
    RequestScratch, create,
};
use fullstroke_contract::Gear;
use fullstroke_units::{Lbn, Sectors};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An array with gears on simulated devices, with data everywhere.
struct GearTrial {
    array: Array,
    devices: Vec<Arc<Simulated>>,
    power: Arc<super::DevicePower>,
    worker: RequestScratch,
    held: Vec<u8>,
    sabotage: Sabotage,
}

/// Content of the devices of an array stopped in a gear. One image serves many trials.
struct Image {
    members: Vec<Vec<u8>>,
    held: Vec<u8>,
}

impl Image {
    fn of(case: &Case, gear: Gear) -> Image {
        let (devices, _) = simulated(case.members, 1300 << 10);
        create(
            &super::design(case.layout, case.chunk, case.policy),
            &dynamic(&devices),
        )
        .unwrap();
        let (array, _) = assemble_without(&dynamic(&devices), false, Sabotage::Nothing).unwrap();
        let mut worker = RequestScratch::one_by_one();
        let held = some_bytes(array.capacity().bytes().0, 5);
        array.write(&mut worker, 0, &held).unwrap();
        if gear == Gear::Low {
            array.shift(GearDirection::Down).unwrap();
            while array.advance_maintenance(&mut worker).unwrap() {}
        }
        assert_eq!(array.gear(), Some(gear));
        array.stop().unwrap();
        Image {
            members: devices
                .iter()
                .map(|device| device.lock().current.clone())
                .collect(),
            held,
        }
    }

    fn trial(&self, sabotage: Sabotage) -> GearTrial {
        let (devices, power) = simulated(self.members.len(), 0);
        for (device, bytes) in devices.iter().zip(&self.members) {
            let mut media = device.lock();
            (media.durable, media.current) = (bytes.clone(), bytes.clone());
        }
        let (array, report) = assemble_without(&dynamic(&devices), false, sabotage).unwrap();
        assert!(report.clean);
        let held = self.held.clone();
        GearTrial {
            array,
            devices,
            power,
            worker: RequestScratch::one_by_one(),
            held,
            sabotage,
        }
    }
}

impl GearTrial {
    fn shift(&mut self, towards: GearDirection) {
        self.array.shift(towards).unwrap();
        while self.array.advance_maintenance(&mut self.worker).unwrap() {}
        let settled = if towards == GearDirection::Down {
            Gear::Low
        } else {
            Gear::High
        };
        assert_eq!(self.array.gear(), Some(settled));
    }

    fn write(&mut self, sector: u64, sectors: u64, tag: u64) {
        let mut bytes = vec![0; sectors as usize * SECTOR];
        fill(&mut bytes, tag);
        let at = sector as usize * SECTOR;
        self.held[at..at + bytes.len()].copy_from_slice(&bytes);
        self.array
            .write(&mut self.worker, at as u64, &bytes)
            .unwrap();
    }

    /// Loses power: each unflushed sector lands or not.
    fn lose_power(&mut self, random: &mut SplitMix, percent: u64) -> AssemblyReport {
        self.devices
            .iter()
            .for_each(|device| device.lose_power(random, percent));
        self.power.0.store(i64::MAX, Ordering::SeqCst);
        let (array, report) =
            assemble_without(&dynamic(&self.devices), true, self.sabotage).unwrap();
        self.array = array;
        report
    }

    fn mismatches(&mut self) -> u64 {
        let (mut found, mut next) = (RedundancyCheck::default(), Some(Lbn(0)));
        while let Some(from) = next {
            next = self
                .array
                .scrub_step(&mut self.worker, from, Repair::Nothing, &mut found)
                .unwrap();
        }
        found.mismatched_sectors
    }

    fn is_right(&mut self) -> bool {
        content(&self.array, &mut self.worker) == self.held
    }
}

const OF_4: Case = Case {
    layout: "paraid",
    members: 4,
    chunk: 4096,
    policy: JournalPolicy::Partial,
};
const OF_6: Case = Case {
    layout: "paraid, 4 turn",
    members: 6,
    chunk: 2048,
    policy: JournalPolicy::Partial,
};
const BESIDE: Case = Case {
    layout: "e-paraid, 4 turn",
    members: 6,
    chunk: 2048,
    policy: JournalPolicy::Partial,
};
const OF_RAID0: Case = Case {
    layout: "paraid of raid0",
    members: 4,
    chunk: 4096,
    policy: JournalPolicy::Partial,
};

/// Writes each unit alone in the low gear. Then power fails, and the array shifts up: only regions
/// marked as missed are copied home. Returns the number of lost units.
fn units_lost_behind_a_loss_in_the_low_gear(case: &Case, sabotage: Sabotage) -> u64 {
    let chunk = case.chunk / SECTOR as u64;
    let image = Image::of(case, Gear::Low);
    let lost = (0..20u64).filter(|unit| {
        let mut trial = image.trial(sabotage);
        trial.write(unit * chunk, chunk, 77);
        trial.array.flush().unwrap();
        trial.lose_power(&mut SplitMix(*unit), 0);
        assert_eq!(trial.array.gear(), Some(Gear::Low));
        trial.shift(GearDirection::Up);
        !trial.is_right()
    });
    lost.count() as u64
}

#[test]
fn what_was_written_in_the_low_gear_comes_home_and_nothing_else_is_copied() {
    for case in [&OF_4, &OF_6, &BESIDE, &OF_RAID0] {
        assert_eq!(
            units_lost_behind_a_loss_in_the_low_gear(case, Sabotage::Nothing),
            0,
            "{}",
            case.layout
        );
    }
    assert!(units_lost_behind_a_loss_in_the_low_gear(&OF_6, Sabotage::HomesUnmarked) > 0);
    let mut trial = Image::of(&OF_6, Gear::Low).trial(Sabotage::Nothing);
    trial.write(0, 1, 3);
    trial.array.flush().unwrap();
    trial.lose_power(&mut SplitMix(1), 0);
    trial.array.shift(GearDirection::Up).unwrap();
    let stale = trial.array.status().stale_rows.unwrap();
    assert!(
        (1..=2).contains(&stale),
        "{stale} rows are stale for one sector"
    );
}

/// Power fails at each write and flush of a shift. Returns how often members counted as failed, and
/// how often data was lost.
fn cut_a_shift(case: &Case, towards: GearDirection, sabotage: Sabotage) -> (u64, u64) {
    let image = Image::of(
        case,
        if towards == GearDirection::Down {
            Gear::High
        } else {
            Gear::Low
        },
    );
    let (mut failed, mut lost) = (0, 0);
    // All positions with FULLSTROKE_LIVES.
    let step = if super::lives() > 4 { 1 } else { 10 };
    for seed in (0..400).step_by(step) {
        let mut trial = image.trial(sabotage);
        trial.array.shift.set_step(Sectors(16));
        trial.write(3, 70, 9);
        trial.array.flush().unwrap();
        let mut random = SplitMix(seed);
        trial.power.0.store(seed as i64, Ordering::SeqCst);
        let ended = trial.array.shift(towards).is_ok()
            && loop {
                match trial.array.advance_maintenance(&mut trial.worker) {
                    Ok(true) => {}
                    Ok(false) => break trial.power.0.load(Ordering::SeqCst) >= 0,
                    Err(_) => break false,
                }
            };
        let report = trial.lose_power(&mut random, [0, 50, 100][seed as usize % 3]);
        failed += report.newly_failed.len() as u64;
        let whole = trial.is_right();
        let gear = trial.array.gear();
        assert!(matches!(gear, Some(Gear::High | Gear::Low)), "{gear:?}");
        // A shift to the other gear and back must not change anything either.
        if report.newly_failed.is_empty() {
            let other = if gear == Some(Gear::Low) {
                GearDirection::Up
            } else {
                GearDirection::Down
            };
            trial.shift(other);
        }
        lost += u64::from(!whole || !trial.is_right());
        if ended {
            assert!(seed > 8, "{seed} writes and flushes are no shift");
            return (failed, lost);
        }
    }
    panic!("a shift takes no more than 400 writes and flushes");
}

#[test]
fn power_may_fail_at_any_write_of_a_shift() {
    for case in [&OF_4, &OF_6, &BESIDE, &OF_RAID0] {
        for towards in [GearDirection::Down, GearDirection::Up] {
            assert_eq!(
                cut_a_shift(case, towards, Sabotage::Nothing),
                (0, 0),
                "{} {towards:?}",
                case.layout
            );
        }
    }
}

/// Standing members learn of no event before the high gear is recorded: such members count as
/// failed after a loss of power.
#[test]
fn without_the_standing_members_having_caught_up_they_are_out_of_date() {
    let behind = |sabotage: Sabotage| {
        let (mut failed, image) = (0, Image::of(&OF_6, Gear::Low));
        for cut in 0..400 {
            let mut trial = image.trial(sabotage);
            let spare: Arc<dyn Device> = simulated(1, 1300 << 10).0.remove(0);
            // More events that only the turning members have recorded.
            trial.array.add(Arc::clone(&spare), false).unwrap();
            trial.array.add(simulated_named("another"), false).unwrap();
            trial.array.shift(GearDirection::Up).unwrap();
            trial.power.0.store(cut, Ordering::SeqCst);
            while trial
                .array
                .advance_maintenance(&mut trial.worker)
                .unwrap_or(false)
            {}
            let ended = trial.power.0.load(Ordering::SeqCst) >= 0;
            trial
                .devices
                .iter()
                .for_each(|device| device.lose_power(&mut SplitMix(1), 0));
            trial.power.0.store(i64::MAX, Ordering::SeqCst);
            match assemble_without(&dynamic(&trial.devices), true, sabotage) {
                Ok((_, report)) => failed += report.newly_failed.len(),
                Err(_) => failed += 1,
            }
            if ended {
                return failed;
            }
        }
        panic!("a shift takes no more than 400 writes and flushes");
    };
    assert_eq!(behind(Sabotage::Nothing), 0);
    assert!(behind(Sabotage::StandingBehind) > 0);
}

fn simulated_named(name: &str) -> Arc<dyn Device> {
    let mut device = simulated(1, 1300 << 10).0.remove(0);
    Arc::get_mut(&mut device).unwrap().name = name.to_owned();
    device
}

/// Two rows with shared parity of a soft row are changed one after the other and flushed. Power
/// fails before the markers are durable; then a member is missing. Returns how often data was lost.
fn lost_behind_two_changes(sabotage: Sabotage) -> u64 {
    let (mut random, image) = (SplitMix(3), Image::of(&OF_4, Gear::Low));
    let lost = (0..100).filter(|_| {
        let mut trial = image.trial(sabotage);
        let row = trial.array.facts.rows.unwrap().data.0;
        let first = random.below(trial.array.capacity().0 / row / 2) * 2;
        for (number, tag) in [(first, 50), (first + 1, 51), (first, 52), (first + 1, 53)] {
            // Data of the standing member, if the member holds data of the row.
            let is_there =
                |sector: &u64| trial.array.planner().layout().locate(Lbn(*sector)).member == 3;
            let sector = (number * row..(number + 1) * row)
                .find(is_there)
                .unwrap_or(number * row);
            trial.write(sector + random.below(3), 1, tag);
        }
        trial.array.flush().unwrap();
        trial
            .devices
            .iter()
            .for_each(|device| device.lose_power(&mut random, 50));
        let mut present = dynamic(&trial.devices);
        present.remove(random.below(3) as usize);
        trial.array = assemble_without(&present, true, sabotage).unwrap().0;
        !trial.is_right()
    });
    lost.count() as u64
}

#[test]
fn changes_of_rows_that_share_parity_go_to_the_same_journals() {
    assert_eq!(lost_behind_two_changes(Sabotage::Nothing), 0);
    assert!(lost_behind_two_changes(Sabotage::JournalsApart) > 0);
}

/// A sector is written in one gear, and again in the other, and flushed. Power fails before the
/// markers are durable. Returns how often the sector did not hold the latest data.
fn older_behind_a_shift(towards: GearDirection, sabotage: Sabotage) -> u64 {
    let mut random = SplitMix(8);
    let image = Image::of(
        &OF_6,
        if towards == GearDirection::Down {
            Gear::High
        } else {
            Gear::Low
        },
    );
    let older = (0..60).filter(|_| {
        let mut trial = image.trial(sabotage);
        let sector = random.below(trial.array.capacity().0);
        trial.write(sector, 1, 1);
        trial.shift(towards);
        trial.write(sector, 1, 2);
        trial.array.flush().unwrap();
        trial.lose_power(&mut random, 50);
        !trial.is_right() || trial.mismatches() > 0
    });
    older.count() as u64
}

#[test]
fn journals_of_one_gear_undo_nothing_of_the_other() {
    for towards in [GearDirection::Down, GearDirection::Up] {
        assert_eq!(
            older_behind_a_shift(towards, Sabotage::Nothing),
            0,
            "{towards:?}"
        );
    }
    assert!(older_behind_a_shift(GearDirection::Up, Sabotage::JournalsKept) > 0);
}

#[test]
fn a_member_that_fails_in_any_gear_is_done_without_and_filled_again() {
    for case in [&OF_4, &OF_6, &BESIDE] {
        let images = [Gear::High, Gear::Low].map(|gear| Image::of(case, gear));
        for gear in [Gear::High, Gear::Falling, Gear::Low, Gear::Rising] {
            let image = &images[usize::from(gear.reads_soft())];
            for slot in 0..case.members {
                let what = format!("{} {gear:?} {slot}", case.layout);
                let mut trial = image.trial(Sabotage::Nothing);
                trial.array.shift.set_step(Sectors(16));
                trial.write(11, 90, 4);
                match gear {
                    Gear::Falling => trial.array.shift(GearDirection::Down).unwrap(),
                    Gear::Rising => trial.array.shift(GearDirection::Up).unwrap(),
                    _ => {}
                }
                if matches!(gear, Gear::Falling | Gear::Rising) {
                    trial.array.advance_maintenance(&mut trial.worker).unwrap();
                }
                assert_eq!(trial.array.gear(), Some(gear));
                // The member dies while it is used, or it is failed by command.
                if trial.array.is_in_standby(slot) {
                    trial.array.fail(slot).unwrap();
                } else {
                    trial.devices[slot].dead.store(true, Ordering::SeqCst);
                    trial.write(40, 200, 6);
                    trial.array.flush().unwrap();
                }
                assert!(trial.is_right(), "{what}");
                while trial.array.advance_maintenance(&mut trial.worker).unwrap() {}
                assert_eq!(trial.array.gear(), Some(Gear::High), "{what}");
                assert_eq!(trial.array.status().state, "degraded", "{what}");
                trial.write(0, 30, 7);
                assert!(trial.is_right(), "{what}");
                assert!(trial.array.shift(GearDirection::Down).is_err(), "{what}");
                // The member comes back with its content.
                trial.devices[slot].dead.store(false, Ordering::SeqCst);
                let device = Arc::clone(&trial.devices[slot]) as Arc<dyn Device>;
                let how = trial.array.add(device, false).unwrap();
                assert!(how.starts_with("filling"), "{what}: {how}");
                while trial.array.advance_maintenance(&mut trial.worker).unwrap() {}
                assert_eq!(trial.array.status().state, "whole", "{what}");
                assert!(trial.is_right() && trial.mismatches() == 0, "{what}");
                trial.shift(GearDirection::Down);
                assert!(trial.is_right() && trial.mismatches() == 0, "{what}");
                trial.shift(GearDirection::Up);
                assert!(trial.is_right() && trial.mismatches() == 0, "{what}");
            }
        }
    }
}

/// Found when the end of a shift became one step with the check of the gear: a request came for the
/// end of a shift already ended by a member's failure.
#[test]
fn a_member_that_dies_while_the_low_gear_is_written_down_keeps_the_array_in_the_high_one() {
    let image = Image::of(&OF_4, Gear::High);
    for slot in 0..4 {
        let mut trial = image.trial(Sabotage::Nothing);
        trial.array.shift(GearDirection::Down).unwrap();
        // All rows are copied; the next step records the gear.
        let is_stale =
            |trial: &GearTrial| trial.array.status().stale_rows.is_some_and(|rows| rows > 0);
        while is_stale(&trial) {
            trial.array.advance_maintenance(&mut trial.worker).unwrap();
        }
        trial.devices[slot].dead.store(true, Ordering::SeqCst);
        while trial.array.advance_maintenance(&mut trial.worker).unwrap() {}
        assert_eq!(
            (trial.array.gear(), trial.array.status().state),
            (Some(Gear::High), "degraded")
        );
        assert_eq!(trial.array.book().roster.low_gear, None);
        trial.write(5, 200, 6);
        assert!(trial.is_right());
        trial.devices[slot].dead.store(false, Ordering::SeqCst);
        trial.array.flush().unwrap();
        trial.lose_power(&mut SplitMix(2), 50);
        assert_eq!(trial.array.gear(), Some(Gear::High));
        assert!(trial.is_right(), "{slot}");
    }
}

#[test]
fn a_spare_takes_the_place_of_a_member_that_stands_and_is_found_there() {
    let (devices, _) = simulated(5, 1300 << 10);
    let design = crate::Design {
        spares: 1,
        ..super::design("paraid", 4096, JournalPolicy::Partial)
    };
    create(&design, &dynamic(&devices)).unwrap();
    let (array, _) = assemble_without(&dynamic(&devices), false, Sabotage::Nothing).unwrap();
    let mut worker = RequestScratch::one_by_one();
    let held = some_bytes(array.capacity().bytes().0, 5);
    array.write(&mut worker, 0, &held).unwrap();
    array.shift(GearDirection::Down).unwrap();
    while array.advance_maintenance(&mut worker).unwrap() {}
    array.fail(3).unwrap();
    while array.advance_maintenance(&mut worker).unwrap() {}
    assert_eq!(
        (array.gear(), array.status().state),
        (Some(Gear::High), "whole")
    );
    assert_eq!(content(&array, &mut worker), held);
    array.stop().unwrap();
    let present = [0, 1, 2, 4].map(|slot| Arc::clone(&devices[slot]) as Arc<dyn Device>);
    let (array, report) = assemble_without(&present, false, Sabotage::Nothing).unwrap();
    assert!(report.clean && report.newly_failed.is_empty());
    assert_eq!(content(&array, &mut worker), held);
}

#[test]
fn a_sector_that_cannot_be_read_is_computed_and_written_again_in_each_gear() {
    for case in [&OF_4, &OF_6, &BESIDE] {
        for low in [false, true] {
            let image = Image::of(case, if low { Gear::Low } else { Gear::High });
            let mut trial = image.trial(Sabotage::Nothing);
            let data = trial.array.facts.data_at as usize / SECTOR;
            // Native units and soft ones, of a turning member.
            for sector in [1, 22, 98, 107] {
                trial.devices[1].corrupt_sector(data + sector);
            }
            assert!(trial.is_right(), "{}", case.layout);
            assert_eq!(trial.array.status().state, "whole", "{}", case.layout);
            // Sectors that a shift reads are mended, too; sectors that nothing reads stay
            // unreadable.
            trial.shift(if low {
                GearDirection::Up
            } else {
                GearDirection::Down
            });
            trial.devices[1].lock().bad.clear();
            assert!(
                trial.is_right() && trial.mismatches() == 0,
                "{}",
                case.layout
            );
            assert_eq!(trial.array.status().state, "whole", "{}", case.layout);
        }
    }
}

#[test]
fn parity_that_rots_is_found_and_mended_in_each_gear() {
    for case in [&OF_4, &OF_6, &BESIDE] {
        for low in [false, true] {
            let mut trial = Image::of(case, Gear::Low).trial(Sabotage::Nothing);
            if !low {
                trial.shift(GearDirection::Up);
            }
            assert_eq!(trial.mismatches(), 0);
            let data = trial.array.facts.data_at as usize;
            let slots = if low {
                trial.array.facts.gears.as_ref().unwrap().transient.start
            } else {
                case.members
            };
            for slot in 0..slots {
                trial.devices[slot].lock().current[data + 100 + slot] ^= 1;
            }
            let found = trial.mismatches();
            assert!(found > 0, "{} low: {low}", case.layout);
            let (mut ignored, mut next) = (RedundancyCheck::default(), Some(Lbn(0)));
            while let Some(from) = next {
                next = trial
                    .array
                    .scrub_step(&mut trial.worker, from, Repair::Data, &mut ignored)
                    .unwrap();
            }
            assert_eq!(trial.mismatches(), 0, "{} low: {low}", case.layout);
        }
    }
}

#[test]
fn a_gear_is_kept_when_the_array_is_stopped_and_who_stands_is_not_told() {
    for case in [&OF_4, &OF_RAID0] {
        let mut trial = Image::of(case, Gear::Low).trial(Sabotage::Nothing);
        trial.write(8, 40, 2);
        let standing = trial.devices.last().unwrap();
        let before = standing.touched.load(Ordering::SeqCst);
        for _ in 0..6 {
            trial.array.tidy().unwrap();
        }
        trial.array.stop().unwrap();
        assert_eq!(
            standing.touched.load(Ordering::SeqCst),
            before,
            "{}",
            case.layout
        );
        let report = trial.lose_power(&mut SplitMix(0), 0);
        assert!(report.clean && report.newly_failed.is_empty());
        assert_eq!(trial.array.gear(), Some(Gear::Low));
        assert!(trial.is_right());
        let status = trial.array.status();
        assert_eq!(
            (status.gear, status.slots.last().unwrap().stands),
            (Some("low"), true)
        );
        assert!(
            trial
                .array
                .shift(GearDirection::Down)
                .unwrap_err()
                .to_string()
                .contains("in the low gear already")
        );
        trial.shift(GearDirection::Up);
        assert!(
            trial
                .array
                .shift(GearDirection::Up)
                .unwrap_err()
                .to_string()
                .contains("in the high gear already")
        );
        assert!(trial.is_right());
    }
    let (array, ..) = super::made("raid5", 4, 0);
    let error = array.shift(GearDirection::Down).unwrap_err().to_string();
    assert!(
        error.contains("no gears: found the layout raid5"),
        "{error}"
    );
}

#[test]
fn a_standing_member_that_is_dead_keeps_an_array_without_redundancy_low_and_says_why() {
    let mut trial = Image::of(&OF_RAID0, Gear::Low).trial(Sabotage::Nothing);
    trial.write(0, 300, 3);
    trial.devices[3].dead.store(true, Ordering::SeqCst);
    trial.array.shift(GearDirection::Up).unwrap();
    assert!(trial.array.advance_maintenance(&mut trial.worker).is_err());
    assert_eq!(trial.array.gear(), Some(Gear::Rising));
    assert!(trial.array.status().shift_trouble.is_some());
    assert!(trial.is_right());
    trial.devices[3].dead.store(false, Ordering::SeqCst);
    while trial.array.advance_maintenance(&mut trial.worker).unwrap() {}
    assert_eq!(
        (trial.array.gear(), trial.array.status().shift_trouble),
        (Some(Gear::High), None)
    );
    assert!(trial.is_right());
}
