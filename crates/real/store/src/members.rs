//! Members fail, come back, are replaced and filled.

mod filling;
mod mending;
mod recording;
mod tending;

use crate::array::Array;
use crate::condition::ArrayEvent;
use crate::label::{self, Label};
use crate::roster_record::{RosterRecord, knows_what_it_missed, new_uuid};
use crate::superblock::{self, Roster, SlotState, Spare};
use crate::transfer::Devices;
use crate::uuid::Uuid;
use crate::vacant::{allocate, refuse_owned, wipe};
use crate::{ArrayError, Device, signatures};
use fullstroke_contract::MemberState;
use fullstroke_units::Sectors;
use std::io;
use std::sync::{Arc, PoisonError};

impl Array {
    /// Returns the events since the last call.
    pub fn take_happenings(&self) -> Vec<ArrayEvent> {
        self.condition.take_events()
    }

    pub(crate) fn happened(&self, kind: &'static str, slot: usize, device: String, why: &str) {
        self.condition.happened(ArrayEvent {
            kind,
            slot,
            device,
            why: why.to_owned(),
        });
    }

    /// Fails the member in `slot`, if the array survives the failure. A thread that answers a write
    /// afterwards [records the failure](Array::settle) first.
    ///
    /// # Errors
    /// The array does not survive the failure. An array with redundancy halts then.
    pub(crate) fn drop_member(
        &self,
        slot: usize,
        why: &str,
        error: io::Error,
    ) -> Result<(), ArrayError> {
        let device = self.devices()[slot].clone();
        let Some(device) = device else { return Ok(()) };
        self.condition.note_error(&error);
        if self.try_to_drop(slot) {
            self.happened("failed", slot, device.name(), why);
            return Ok(());
        }
        if self.facts.survived == 0 {
            self.distrust_copies();
            return Err(ArrayError::device(device.name(), "use", error));
        }
        let why = format!(
            "`{}`: {why}, and the array does not survive its failure",
            device.name()
        );
        if self.halted().is_none() {
            self.happened("halted", slot, device.name(), &why);
        }
        Err(self.condition.halt(&why))
    }

    /// Fails the member. Returns false if the array needs the member's data.
    fn try_to_drop(&self, slot: usize) -> bool {
        let mut planner = self.planner();
        if !planner.fail_unless_needed(slot) {
            return false;
        }
        if let Some(bitmap) = &self.bitmap {
            bitmap.miss_dirty();
        }
        // This comes before any thread can plan or flush without the member. Such a thread then
        // sees the failure as unsettled, and waits until it is recorded before it answers. Linux md
        // does the same: raid10d ends a write that failed on a member only when
        // `MD_SB_CHANGE_PENDING` is clear.
        self.condition.note_failure();
        // The slot is empty before another thread can see the failure and fill the slot again.
        self.replace_device(slot, None);
        drop(planner);
        true
    }

    fn replace_device(&self, slot: usize, device: Option<Arc<dyn Device>>) {
        let mut devices = self.devices.write().unwrap_or_else(PoisonError::into_inner);
        let mut all: Devices = devices.to_vec();
        all[slot] = device;
        *devices = Arc::new(all);
    }

    /// Closes all devices. The array must not be used any more.
    pub(crate) fn release(&self) {
        let none: Devices = self.devices().iter().map(|_| None).collect();
        *self.devices.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(none);
        self.book().spares.clear();
    }

    pub(crate) fn states(&self) -> Vec<MemberState> {
        self.planner().states()
    }

    /// Fails the member in `slot`.
    ///
    /// # Errors
    /// There is no such slot, its member has failed already, or the array does not survive the
    /// failure.
    pub fn fail(&self, slot: usize) -> Result<(), ArrayError> {
        let _alone = self.order.alone();
        self.condition.check_changes()?;
        let device = self.slot_device(slot)?;
        let Some(device) = device else {
            return Err(ArrayError::Refused(format!(
                "the member in place {slot} has failed already"
            )));
        };
        if !self.try_to_drop(slot) {
            return Err(ArrayError::Refused(format!(
                "the member in place {slot} is needed: without it the array would lose data"
            )));
        }
        self.happened("failed", slot, device.name(), "by order");
        self.settle()
    }

    fn slot_device(&self, slot: usize) -> Result<Option<Arc<dyn Device>>, ArrayError> {
        let devices = self.devices();
        devices.get(slot).cloned().ok_or_else(|| {
            let last = devices.len() - 1;
            ArrayError::Refused(format!(
                "there is no place {slot}: they are counted from 0 to {last}"
            ))
        })
    }

    /// Adds a device. A failed member comes back, and only the missed regions are filled if these
    /// are known. Another device takes the place of a failed member and is filled, or becomes a
    /// spare. Returns a description of the result.
    ///
    /// # Errors
    /// The device has another owner and `force` is false, is too small, or is part of the array
    /// already.
    pub fn add(&self, device: Arc<dyn Device>, force: bool) -> Result<&'static str, ArrayError> {
        let _alone = self.order.alone();
        self.condition.check_changes()?;
        let mut book = self.book();
        let found = superblock::read(&*device)?;
        let own = found.filter(|found| found.superblock.array == self.uuid);
        if own.is_none() && !force {
            refuse_owned(&*device)?;
        }
        let states = self.states();
        if let Some(own) = &own {
            let member = own.superblock.member;
            let mut spares = book.roster.spares.iter();
            let taken = spares.any(|spare| spare.member == member);
            let mut slots = book.roster.slots.iter();
            let slot = slots.position(|slot| slot.member == member);
            let alive = slot.is_some_and(|slot| states[slot] != MemberState::Failed);
            if taken || alive {
                let message = format!("`{}` is part of the array already", device.name());
                return Err(ArrayError::Refused(message));
            }
            if let Some(slot) = slot {
                // A device that was cut or overwritten does not hold the data that it had when it
                // failed.
                let missed_only = own.doubts.is_empty()
                    && knows_what_it_missed(&book.roster, slot, &own.superblock);
                self.check_size(&*device, slot, &book.roster)?;
                allocate(&*device)?;
                self.begin_to_fill(&mut book, slot, device, member, missed_only)?;
                return Ok(if missed_only {
                    "filling the missed changes"
                } else {
                    "filling"
                });
            }
        }
        let failed = (0..states.len()).find(|&slot| states[slot] == MemberState::Failed);
        self.check_size(&*device, failed.unwrap_or(0), &book.roster)?;
        let spare = Spare {
            member: new_uuid()?,
            device: device.name(),
        };
        if failed.is_none() {
            self.check_spare(&book.roster, &spare)?;
        }
        // All checks are done: from here on the device is written to.
        allocate(&*device)?;
        wipe(&*device, signatures::LOOKED_AT_BYTES)?;
        if let Some(slot) = failed {
            self.begin_to_fill(&mut book, slot, device, spare.member, false)?;
            return Ok("filling");
        }
        let label = Label::of_device(self.uuid, spare.member);
        label::write_unless_there(&*device, book.roster.label_at(), &label)?;
        book.roster.spares.push(spare);
        book.spares.push(device);
        self.commit(&mut book)?;
        Ok("waiting for a member to fail")
    }

    /// Returns an error if one more spare has no use, or no room in the superblocks.
    fn check_spare(&self, roster: &Roster, spare: &Spare) -> Result<(), ArrayError> {
        if self.facts.survived == 0 {
            let message = "the array has no redundancy: a spare would never be filled";
            return Err(ArrayError::Refused(message.to_owned()));
        }
        let mut roster = roster.clone();
        roster.spares.push(spare.clone());
        let may_fail = match self.facts.rows {
            Some(_) => self.facts.survived as usize,
            None => roster.slots.len() - 1,
        };
        roster.check_room(may_fail, self.facts.gears.is_some())
    }

    fn check_size(
        &self,
        device: &dyn Device,
        slot: usize,
        roster: &Roster,
    ) -> Result<(), ArrayError> {
        let used = self.planner().layout().member_used(slot).bytes().0;
        let needed = self.facts.data_at + used + superblock::SUPERBLOCK_BYTES;
        if device.bytes() < needed {
            return Err(ArrayError::Refused(format!(
                "`{}` has {} bytes; expected at least {needed}, as a member of `{}` has",
                device.name(),
                device.bytes(),
                roster.name
            )));
        }
        if device.block_bytes() > self.facts.block_bytes {
            return Err(ArrayError::Refused(format!(
                "`{}` has blocks of {} bytes; expected at most {}, which the array was made for",
                device.name(),
                device.block_bytes(),
                self.facts.block_bytes
            )));
        }
        Ok(())
    }

    /// Puts the device into the slot. With `missed_only` its data counts except in missed regions,
    /// otherwise the device counts as empty.
    fn begin_to_fill(
        &self,
        book: &mut RosterRecord,
        slot: usize,
        device: Arc<dyn Device>,
        member: Uuid,
        missed_only: bool,
    ) -> Result<(), ArrayError> {
        let name = device.name();
        assert!(
            self.devices()[slot].is_none(),
            "slot {slot} gets `{name}` while it has a member"
        );
        let label = Label::of_device(self.uuid, member);
        label::write_unless_there(&*device, book.roster.label_at(), &label)?;
        // Standing members are not written to, but this member is. Members are filled in the high
        // gear.
        self.leave_low_gear("a member is to be filled");
        // The device may hold records of its earlier time in the array. An assembly must not repeat
        // these.
        let events = book.roster.events + 1;
        let started = self.journals.start(slot, &*device, events);
        started.map_err(|error| ArrayError::device(name.clone(), "write the journal of", error))?;
        let record = &mut book.roster.slots[slot];
        (record.member, record.device) = (member, name.clone());
        record.state = SlotState::Filling {
            done_sectors: 0,
            missed_only,
        };
        let empty = MemberState::Rebuilding {
            done: Sectors::ZERO,
        };
        self.planner().set_state(slot, empty);
        self.replace_device(slot, Some(device));
        self.happened(
            "filling",
            slot,
            name,
            if missed_only {
                "the missed changes"
            } else {
                "all of it"
            },
        );
        self.commit(book)
    }
}
