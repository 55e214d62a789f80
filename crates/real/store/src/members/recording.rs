//! The records of members' states on all members.

use crate::ArrayError;
use crate::array::Array;
use crate::roster_record::{RosterRecord, note_states};
use crate::superblock::{self, Superblock};
use std::sync::Arc;

impl Array {
    /// Records the members' states on all members. The data and the bitmap behind the states are
    /// made durable first.
    pub(crate) fn commit(&self, book: &mut RosterRecord) -> Result<(), ArrayError> {
        loop {
            let failures = self.condition.failures();
            let states = self.states();
            if !self.flush_devices() {
                self.condition.check_running()?;
            }
            if let Some(bitmap) = &self.bitmap {
                bitmap.write_all(|granules| {
                    self.write_granules(granules, true);
                    true
                });
            }
            self.condition.check_running()?;
            // First every member learns of the change, then every member learns that all others
            // know: a member that is one number behind has missed no data then (see
            // `superblock.rs`).
            let before = book.roster.event_id();
            book.next_event(false)?;
            note_states(&mut book.roster, &states, before);
            self.write_superblocks(book)?;
            book.next_event(true)?;
            self.write_superblocks(book)?;
            debug_assert!(
                book.roster.stamp.is_some_and(|stamp| stamp.is_known_to_all),
                "an event ends before all members know of it"
            );
            self.condition.note_settled(failures);
            // A member may fail while the states are written. The new failure is not on record
            // then.
            if self.condition.failures() == failures {
                return Ok(());
            }
        }
    }

    pub(crate) fn write_superblocks(&self, book: &mut RosterRecord) -> Result<(), ArrayError> {
        assert_eq!(
            book.roster.spares.len(),
            book.spares.len(),
            "each spare of the roster has a device"
        );
        let devices = self.turning();
        let members = book.roster.slots.iter().map(|slot| slot.member);
        let present = members.enumerate().zip(devices.iter());
        let present: Vec<_> = present
            .filter_map(|((slot, uuid), device)| Some((Some(slot), uuid, device.clone()?)))
            .collect();
        let spares = book.roster.spares.iter().zip(&book.spares);
        let spares: Vec<_> = spares
            .map(|(spare, device)| (None, spare.member, Arc::clone(device)))
            .collect();
        let mut lost_spares = Vec::new();
        for (slot, member, device) in present.into_iter().chain(spares) {
            // The older copy is overwritten, so a torn write leaves the newer one.
            let copy = 1 - book.newest.get(&member).copied().unwrap_or(1);
            let superblock = Superblock {
                array: self.uuid,
                member,
                own: None,
                roster: book.roster.clone(),
            };
            let encoded = superblock.on(&*device, copy).encode()?;
            let written = superblock::COPIES
                .write(&*device, copy, &encoded)
                .and_then(|()| device.flush());
            match (written, slot) {
                (Ok(()), _) => {
                    book.newest.insert(member, copy);
                }
                (Err(error), Some(slot)) => {
                    let why = format!("write of the superblock failed: {error}");
                    self.drop_member(slot, &why, error)?;
                }
                (Err(_), None) => lost_spares.push(member),
            }
        }
        for lost in lost_spares {
            if let Some(index) = book
                .roster
                .spares
                .iter()
                .position(|spare| spare.member == lost)
            {
                book.roster.spares.remove(index);
                book.spares.remove(index);
            }
        }
        Ok(())
    }
}
