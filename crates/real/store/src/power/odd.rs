//! Sectors with wrong bytes: the tests check the findings and repairs of scrubs.

use super::{SECTOR, Simulated, content, made, scrubbed, some_bytes};
use crate::{
    Array, Design, JournalPolicy, MemberName, RedundancyCheck, Repair, RequestScratch, assemble,
    create,
};
use fullstroke_units::Lbn;
use std::sync::Arc;

/// An array with data everywhere.
struct Odd {
    array: Array,
    devices: Vec<Arc<Simulated>>,
    worker: RequestScratch,
    bytes: Vec<u8>,
}

impl Odd {
    fn new(layout: &str, members: usize) -> Odd {
        let (array, devices, worker) = made(layout, members, 0);
        Odd::filled(array, devices, worker)
    }

    fn filled(array: Array, devices: Vec<Arc<Simulated>>, mut worker: RequestScratch) -> Odd {
        let bytes = some_bytes(array.capacity().bytes().0, 9);
        array.write(&mut worker, 0, &bytes).unwrap();
        array.flush().unwrap();
        Odd {
            array,
            devices,
            worker,
            bytes,
        }
    }

    /// A mirror of three copies of each chunk.
    fn raid10_of_3_copies() -> Odd {
        let (devices, _) = super::simulated(4, 1300 << 10);
        let mut keys = serde_json::Map::new();
        keys.insert("chunk".into(), 4096.into());
        keys.insert("copies".into(), 3.into());
        let design = Design {
            keys,
            ..super::design("raid10", 4096, JournalPolicy::Partial)
        };
        create(&design, &super::dynamic(&devices)).unwrap();
        let (array, _) = assemble(&super::dynamic(&devices), false).unwrap();
        Odd::filled(array, devices, RequestScratch::one_by_one())
    }

    fn data_at(&self, slot: usize, sector: usize) -> (&Simulated, usize) {
        let at = self.array.facts.data_at as usize + sector * SECTOR;
        (&self.devices[slot], at)
    }

    /// Spoils some bytes of a sector of a member's data.
    fn spoil(&self, slot: usize, sector: usize, tag: u8) {
        let (device, at) = self.data_at(slot, sector);
        let mut media = device.lock();
        for (index, byte) in (0..SECTOR).step_by(3).enumerate() {
            media.current[at + byte] ^= tag.wrapping_add((index as u8).wrapping_mul(29)) | 1;
        }
        let spoilt = media.current[at..at + SECTOR].to_vec();
        media.durable[at..at + SECTOR].copy_from_slice(&spoilt);
    }

    fn media(&self) -> Vec<Vec<u8>> {
        let all = |device: &Arc<Simulated>| device.lock().current.clone();
        self.devices.iter().map(all).collect()
    }

    fn scrub(&mut self, repair: Repair) -> RedundancyCheck {
        scrubbed(&self.array, &mut self.worker, repair)
    }

    /// Checks two things: a scrub without repair changes nothing, and a repair restores the former
    /// state.
    fn is_repaired(&mut self, before: &[Vec<u8>], slots: &[usize], what: &str) {
        let spoilt = self.media();
        let found = self.scrub(Repair::Nothing);
        assert_eq!(self.media(), spoilt, "{what}: only looked at");
        let told: Vec<MemberName> = found.first.iter().map(|one| one.member.clone()).collect();
        let wrong: Vec<MemberName> = slots.iter().map(|&slot| MemberName::Slot(slot)).collect();
        assert!(wrong.starts_with(&told), "{what}: {found:?}");
        assert_eq!(told.len(), slots.len().min(16), "{what}: {found:?}");
        assert_eq!(
            (
                found.mismatched_sectors,
                found.undecided_sectors,
                found.repaired_sectors
            ),
            (slots.len() as u64, 0, 0),
            "{what}: {found:?}"
        );
        let found = self.scrub(Repair::Proven);
        assert_eq!(found.repaired_sectors, slots.len() as u64, "{what}");
        assert_eq!(self.media(), before, "{what}: as it was");
        assert_eq!(self.scrub(Repair::Nothing).mismatched_sectors, 0, "{what}");
        assert_eq!(content(&self.array, &mut self.worker), self.bytes, "{what}");
    }

    /// Checks the sectors after all repairs: only a repair of undecided sectors changes something.
    fn is_left(&mut self, undecided: u64, address: u64, what: &str) {
        let spoilt = self.media();
        for repair in [Repair::Nothing, Repair::Proven] {
            let found = self.scrub(repair);
            assert_eq!(
                (found.undecided_sectors, found.repaired_sectors),
                (undecided, 0),
                "{what}: {found:?}"
            );
            assert!(found.first[0].undecided, "{what}: {found:?}");
            assert_eq!(found.first[0].address, Some(Lbn(address)), "{what}");
            assert_eq!(self.media(), spoilt, "{what}: nothing was touched");
        }
        let found = self.scrub(Repair::Data);
        assert_eq!(
            (found.undecided_sectors, found.repaired_sectors),
            (0, undecided),
            "{what}: {found:?}"
        );
        assert_eq!(self.scrub(Repair::Nothing).mismatched_sectors, 0, "{what}");
    }
}

#[test]
fn of_three_copies_the_odd_one_is_written_again_whichever_it_is() {
    for slot in 0..3 {
        let mut odd = Odd::new("raid1", 3);
        let before = odd.media();
        odd.spoil(slot, 21, 0x40);
        odd.is_repaired(&before, &[slot], &format!("raid1, copy {slot}"));
    }
    for slot in 0..4 {
        let mut odd = Odd::raid10_of_3_copies();
        let before = odd.media();
        odd.spoil(slot, 21, 0x40);
        odd.is_repaired(&before, &[slot], &format!("raid10, member {slot}"));
    }
}

#[test]
fn where_nothing_decides_a_scrub_touches_nothing_without_the_operators_word() {
    let mut odd = Odd::new("raid1", 2);
    odd.spoil(0, 21, 1);
    odd.is_left(1, 21, "two copies");
    let mut odd = Odd::new("raid1", 3);
    odd.spoil(0, 21, 1);
    odd.spoil(1, 21, 2);
    odd.is_left(2, 21, "three copies, all of them different");
    let mut odd = Odd::new("raid1", 4);
    for slot in [0, 1] {
        odd.spoil(slot, 21, 1);
    }
    odd.is_left(2, 21, "two copies against two");
    for layout in ["raid4", "raid5"] {
        let mut odd = Odd::new(layout, 4);
        odd.spoil(0, 3, 1);
        odd.is_left(1, 3, layout);
    }
}

#[test]
fn p_and_q_name_the_member_that_is_wrong_at_any_number_of_members() {
    for members in [4, 9, 20] {
        for slot in 0..members {
            let mut odd = Odd::new("raid6", members);
            let before = odd.media();
            // Rows in which the member holds data, P or Q.
            let sectors: Vec<usize> = (0..members).map(|row| row * 8 + slot % 8).collect();
            for &sector in &sectors {
                odd.spoil(slot, sector, sector as u8);
            }
            let what = format!("raid6 of {members}, member {slot}");
            odd.is_repaired(&before, &vec![slot; sectors.len()], &what);
            if members > 9 && slot > 2 {
                break;
            }
        }
    }
}

#[test]
fn two_wrong_members_of_a_raid6_row_are_undecided() {
    for (first, second) in [(0, 1), (0, 3), (1, 2), (2, 4)] {
        let mut odd = Odd::new("raid6", 5);
        odd.spoil(first, 2, 7);
        odd.spoil(second, 2, 91);
        let found = odd.scrub(Repair::Proven);
        assert_eq!(
            (found.repaired_sectors, found.undecided_sectors),
            (0, 2),
            "{first} and {second}: {found:?}"
        );
    }
}

#[test]
fn one_parity_that_cannot_be_read_is_written_again_and_disagreement_beside_it_is_undecided() {
    let mut odd = Odd::new("raid6", 4);
    let before = odd.media();
    let at = odd.array.facts.data_at as usize / SECTOR;
    for slot in 0..4 {
        odd.devices[slot].corrupt_sector(at + 8 * slot);
    }
    let found = odd.scrub(Repair::Proven);
    assert_eq!(found.undecided_sectors, 0, "{found:?}");
    assert_eq!(odd.media(), before);
    assert_eq!(odd.scrub(Repair::Nothing).mismatched_sectors, 0);
}
