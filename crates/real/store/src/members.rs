//! Members fail, come back, are replaced and filled.

use crate::array::{Array, RequestScratch};
use crate::assembly::write_label;
use crate::buffers::{Buffers, RequestBytes};
use crate::device::Aligned;
use crate::error::is_out_of_space;
use crate::standby::Standby;
use crate::superblock::{self, MemberSlot, Roster, SlotState, Spare, Superblock, Uuid};
use crate::transfer::{Devices, FailedTransfer, TransferDirection};
use crate::{ArrayError, Device, signatures};
use fullstroke_contract::Gear;
use fullstroke_contract::{Extent, MemberState, Operation};
use fullstroke_units::{Lbn, SECTOR_BYTES, Sectors};
use fullstroke_volume::{Detail, Plan};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Size of a rebuild step, 2 MiB. Requests wait during a step.
const FILLED_AT_ONCE: Sectors = Sectors((2 << 20) / SECTOR_BYTES);
/// Progress is recorded after each 1/32 of a member.
const RECORDED_SHARE: u64 = 32;

/// The recorded description of the array, and the devices with the record.
pub(crate) struct RosterRecord {
    pub(crate) roster: Roster,
    /// Index of the newest copy of the superblock on each member.
    pub(crate) newest: BTreeMap<Uuid, usize>,
    pub(crate) spares: Vec<Arc<dyn Device>>,
}

/// An event for the operator of the array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArrayEvent {
    /// `failed`, `degraded`, `halted`, `mismatch`, `spare`, `filled`; `mended`, `filling`; `stands`
    /// and `turns` of members in the low gear and out of it; `standby`, or `refused` if a device
    /// refused standby.
    pub kind: &'static str,
    /// Slot of the member; spares are counted behind the members.
    pub slot: usize,
    /// Name of the device.
    pub device: String,
    /// Description for people.
    pub why: String,
}

/// State of an array.
#[derive(Clone, Debug, Serialize)]
pub struct ArrayStatus {
    /// Name of the array.
    pub name: String,
    /// Identifier of the array.
    pub array: Uuid,
    /// Layout: `raid5 of 4`.
    pub layout: String,
    /// Size in bytes.
    pub capacity_bytes: u64,
    /// `whole`, `filling`, `degraded`, `failed` or `halted`.
    pub state: &'static str,
    /// Reason why the array changes nothing any more; `None` before.
    pub halted: Option<String>,
    /// Reason why the array is served read-only; absent for an array with changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<&'static str>,
    /// Number of assemblies, stops and changes of members, each counted twice.
    pub events: u64,
    /// Size of a region of the bitmap, in bytes of a member.
    pub region_bytes: u64,
    /// Number of regions with present or recent writes.
    pub dirty_regions: u64,
    /// Gear: `high`, `falling`, `low` or `rising`; `None` without gears.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gear: Option<&'static str>,
    /// Number of rows of the soft state still to copy in a shift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_rows: Option<u64>,
    /// Reason why a shift cannot continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift_trouble: Option<String>,
    /// Slots, in order.
    pub slots: Vec<SlotStatus>,
    /// Devices of the spares.
    pub spares: Vec<String>,
}

/// State of a slot of an array.
#[derive(Clone, Debug, Serialize)]
pub struct SlotStatus {
    /// Name of its device.
    pub device: String,
    /// Identifier of the member.
    pub member: Uuid,
    /// `alive`, `failed` or `filling`.
    pub state: &'static str,
    /// Filled share, from 0 to 1.
    pub filled: f64,
    /// True if only missed regions are filled.
    pub missed_only: bool,
    /// True if the member was put to standby and not used since.
    pub standby: bool,
    /// True if the member gets no requests, because the array is in the low gear.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stands: bool,
}

impl Array {
    /// Returns the events since the last call.
    pub fn take_happenings(&self) -> Vec<ArrayEvent> {
        std::mem::take(
            &mut self
                .happenings
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    pub(crate) fn happened(&self, kind: &'static str, slot: usize, device: String, why: &str) {
        let happening = ArrayEvent {
            kind,
            slot,
            device,
            why: why.to_owned(),
        };
        self.happenings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(happening);
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
        self.lacks_room
            .fetch_or(is_out_of_space(&error), Ordering::SeqCst);
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
        Err(self.halt(&why))
    }

    /// Fails the member. Returns false if the array needs the member's data.
    fn try_to_drop(&self, slot: usize) -> bool {
        let mut planner = self.planner();
        let before = planner.layout.member_state(slot);
        planner.layout.set_member_state(slot, MemberState::Failed);
        if !planner.layout.answers() {
            planner.layout.set_member_state(slot, before);
            return false;
        }
        planner.version += 1;
        if let Some(bitmap) = &self.bitmap {
            bitmap.miss_dirty();
        }
        // This comes before any thread can plan or flush without the member. Such a thread then
        // sees the failure as unsettled, and waits until it is recorded before it answers. Linux md
        // does the same: raid10d ends a write that failed on a member only when
        // `MD_SB_CHANGE_PENDING` is clear.
        self.failures.fetch_add(1, Ordering::SeqCst);
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

    /// Records the members' states on all members. The data and the bitmap behind the states are
    /// made durable first.
    pub(crate) fn commit(&self, book: &mut RosterRecord) -> Result<(), ArrayError> {
        loop {
            let failures = self.failures.load(Ordering::SeqCst);
            let states = self.states();
            if !self.flush_devices() {
                self.check_running()?;
            }
            if let Some(bitmap) = &self.bitmap {
                bitmap.write_all(|granules| {
                    self.write_granules(granules, true);
                    true
                });
            }
            self.check_running()?;
            // First every member learns of the change, then every member learns that all others
            // know: a member that is one number behind has missed no data then (see
            // `superblock.rs`).
            let before = book.roster.event_id();
            next_event(book, false)?;
            note_states(&mut book.roster, &states, before);
            self.write_superblocks(book)?;
            next_event(book, true)?;
            self.write_superblocks(book)?;
            debug_assert!(
                book.roster.stamp.is_some_and(|stamp| stamp.is_known_to_all),
                "an event ends before all members know of it"
            );
            self.settled.fetch_max(failures, Ordering::SeqCst);
            // A member may fail while the states are written. The new failure is not on record
            // then.
            if self.failures.load(Ordering::SeqCst) == failures {
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

    /// Closes all devices. The array must not be used any more.
    pub(crate) fn release(&self) {
        let none: Devices = self.devices().iter().map(|_| None).collect();
        *self.devices.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(none);
        self.book().spares.clear();
    }

    pub(crate) fn states(&self) -> Vec<MemberState> {
        let planner = self.planner();
        (0..planner.layout.members())
            .map(|slot| planner.layout.member_state(slot))
            .collect()
    }

    /// Fails the member in `slot`.
    ///
    /// # Errors
    /// There is no such slot, its member has failed already, or the array does not survive the
    /// failure.
    pub fn fail(&self, slot: usize) -> Result<(), ArrayError> {
        let _alone = self.alone();
        self.check_changes()?;
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
        let _alone = self.alone();
        self.check_changes()?;
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
        write_label(&*device, self.uuid, spare.member, &book.roster)?;
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
        let used = self.planner().layout.member_used(slot).bytes().0;
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
        write_label(&*device, self.uuid, member, &book.roster)?;
        // Standing members are not written to, but this member is. Members are filled in the high
        // gear.
        self.leave_low_gear("a member is to be filled");
        if let Some(log) = self.logs.get(slot) {
            // The device may hold records of its earlier time in the array. An assembly must not
            // repeat these.
            let started = log.start(&*device, book.roster.events + 1);
            started
                .map_err(|error| ArrayError::device(name.clone(), "write the journal of", error))?;
        }
        let record = &mut book.roster.slots[slot];
        (record.member, record.device) = (member, name.clone());
        record.state = SlotState::Filling {
            done_sectors: 0,
            missed_only,
        };
        let mut planner = self.planner();
        planner.layout.set_member_state(
            slot,
            MemberState::Rebuilding {
                done: Sectors::ZERO,
            },
        );
        planner.version += 1;
        drop(planner);
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

    /// Continues a shift, or else a rebuild, by one step. Without either, a spare takes the place
    /// of a failed member. Returns true if there is more to do.
    ///
    /// # Errors
    /// The array has halted.
    pub fn advance_maintenance(&self, worker: &mut RequestScratch) -> Result<bool, ArrayError> {
        self.settle()?;
        self.check_changes()?;
        if self.tend_gears(worker)? {
            return Ok(true);
        }
        if let Some(slot) = self.filling() {
            return self.fill_some(worker, slot).map(|()| true);
        }
        let _alone = self.alone();
        let failed = self
            .states()
            .iter()
            .position(|&state| state == MemberState::Failed);
        let mut book = self.book();
        let Some(slot) = failed.filter(|_| !book.spares.is_empty()) else {
            return Ok(false);
        };
        let fits =
            |device: &Arc<dyn Device>| self.check_size(&**device, slot, &book.roster).is_ok();
        let Some(index) = book.spares.iter().position(fits) else {
            return Ok(false);
        };
        let device = book.spares.remove(index);
        let spare = book.roster.spares.remove(index);
        self.happened(
            "spare",
            slot,
            device.name(),
            "the spare takes the place of a member that has failed",
        );
        self.begin_to_fill(&mut book, slot, device, spare.member, false)?;
        Ok(true)
    }

    /// True if a member is being filled, a spare can replace a failed member, or a shift is in
    /// progress.
    pub fn is_to_be_tended(&self) -> bool {
        if self.is_read_only() {
            return false;
        }
        if self.is_to_be_shifted() {
            return true;
        }
        let states = self.states();
        let spares = || !self.book().spares.is_empty();
        states
            .iter()
            .any(|state| matches!(state, MemberState::Rebuilding { .. }))
            || states.contains(&MemberState::Failed) && spares()
    }

    fn filling(&self) -> Option<usize> {
        self.states()
            .iter()
            .position(|state| matches!(state, MemberState::Rebuilding { .. }))
    }

    fn fill_some(&self, worker: &mut RequestScratch, slot: usize) -> Result<(), ArrayError> {
        let _alone = self.alone();
        if self.gear().is_some_and(|gear| gear != Gear::High) {
            return Ok(());
        }
        let MemberState::Rebuilding { done } = self.states()[slot] else {
            return Ok(());
        };
        let used = self.planner().layout.member_used(slot);
        let recorded = self.book().roster.slots[slot].state;
        let SlotState::Filling {
            done_sectors,
            missed_only,
        } = recorded
        else {
            return Ok(());
        };
        let missed = || self.bitmap.as_ref()?.next_missed(done.0);
        let from = match missed_only {
            true => missed().map_or(used.0, |sector| {
                done.0.max(sector / self.facts.unit * self.facts.unit)
            }),
            false => done.0,
        };
        let mut next = used;
        if from < used.0 {
            match self.fill_from(worker, slot, Sectors(from)) {
                Ok(filled) => next = filled,
                Err(failed) => {
                    let why = format!("filling failed: {}", failed.error);
                    self.drop_member(slot, &why, failed.error)?;
                    return self.settle();
                }
            }
        }
        let ended = next >= used;
        // The member counts as filled only when its data is durable.
        if ended && !self.flush_devices() {
            return self.check_running();
        }
        let mut planner = self.planner();
        if planner.layout.member_state(slot) == MemberState::Failed {
            return Ok(());
        }
        let state = if ended {
            MemberState::Alive
        } else {
            MemberState::Rebuilding { done: next }
        };
        planner.layout.set_member_state(slot, state);
        planner.version += 1;
        let whole = !planner.is_impaired();
        drop(planner);
        if let Some(bitmap) = self.bitmap.as_ref().filter(|_| whole) {
            if self.facts.survived > 1 && self.facts.rows.is_some() {
                // The rebuild computed the member from one parity. The other parity is made to
                // follow from the result, because rows that were being written whole at the failure
                // may not match it.
                self.mend_regions(worker, &bitmap.missed())?;
            }
            bitmap.forget_missed();
        }
        assert!(
            next.0 >= done_sectors && next <= used,
            "slot {slot} is filled to {next}, behind {done_sectors} on record or beyond {used}"
        );
        let much = next.0 - done_sectors >= used.0 / RECORDED_SHARE;
        if ended || much {
            self.commit(&mut self.book())?;
        }
        if ended && let Some(device) = &self.devices()[slot] {
            self.happened("filled", slot, device.name(), "all its data is current");
        }
        Ok(())
    }

    /// Fills one piece. Returns the first sector of the next.
    fn fill_from(
        &self,
        worker: &mut RequestScratch,
        slot: usize,
        from: Sectors,
    ) -> Result<Sectors, FailedTransfer> {
        let mut plan = Plan::new(Detail::Bytes);
        let mut planner = self.planner();
        // A fill of missed regions skips others, so it may begin beyond the recorded progress. The
        // layout plans from the state, which is changed for that time.
        let before = planner.layout.member_state(slot);
        planner
            .layout
            .set_member_state(slot, MemberState::Rebuilding { done: from });
        let next = planner
            .layout
            .plan_rebuild(&[slot], from, FILLED_AT_ONCE, &mut plan);
        planner.layout.set_member_state(slot, before);
        drop(planner);
        assert!(
            next > from,
            "a step of a rebuild fills nothing behind {from}"
        );
        match self.carry_out_alone(worker, &plan) {
            Ok(()) => Ok(next),
            Err((_, mut failed)) => Err(failed.swap_remove(0)),
        }
    }

    /// Carries out a plan without request data, while no other request is in progress. Returns the
    /// failed transfers, at least one, in an error.
    pub(crate) fn carry_out_alone(
        &self,
        worker: &mut RequestScratch,
        plan: &Plan,
    ) -> Result<(), (TransferDirection, Vec<FailedTransfer>)> {
        let devices = self.devices();
        let mut scratch = vec![0; plan.scratch().bytes().0 as usize + 4096];
        let start = scratch.as_ptr().align_offset(4096);
        let length = scratch.len() - 4096;
        let scratch = &mut scratch[start..start + length];
        let mut buffers = Buffers {
            request: RequestBytes::From(&[]),
            scratch,
        };
        for (operation, direction) in [
            (Operation::Read, TransferDirection::Read),
            (Operation::Write, TransferDirection::Write),
        ] {
            let transfers = self.transfers(plan, operation);
            let failed = worker
                .carrier
                .carry(direction, &transfers, &devices, &mut buffers);
            if !failed.is_empty() {
                return Err((direction, failed));
            }
            if direction == TransferDirection::Read {
                buffers.run_steps(plan);
            }
        }
        Ok(())
    }

    /// Computes an unreadable piece from the other members and repeats its write, as md does
    /// (`fix_read_error` of Linux's raid1.c). If this does not help, the member has failed.
    ///
    /// # Errors
    /// The piece cannot be computed: the device's error.
    pub(crate) fn mend_read(
        &self,
        worker: &mut RequestScratch,
        failed: FailedTransfer,
        last: &mut Option<(usize, u64)>,
    ) -> Result<(), ArrayError> {
        let _alone = self.alone();
        self.mend_or_drop(worker, failed, last)
    }

    /// As [`mend_read`](Array::mend_read), for callers with the gate held exclusively.
    pub(crate) fn mend_or_drop(
        &self,
        worker: &mut RequestScratch,
        failed: FailedTransfer,
        last: &mut Option<(usize, u64)>,
    ) -> Result<(), ArrayError> {
        let slot = failed.transfer.slot;
        let Some(device) = self.devices()[slot].clone() else {
            return Ok(());
        };
        let lbn = (failed.transfer.at - self.facts.data_at) / SECTOR_BYTES;
        let place = (slot, failed.transfer.at);
        let again = last.replace(place) == Some(place);
        // A device that is shorter than before has no bad sector; it has failed.
        let shrunk = failed.error.kind() == io::ErrorKind::UnexpectedEof;
        if !again && !shrunk && self.mend(worker, slot, Extent::new(lbn, failed.transfer.sectors.0))
        {
            let mended = if self.is_read_only() {
                "is kept in memory"
            } else {
                "was written again"
            };
            self.happened(
                "mended",
                slot,
                device.name(),
                &format!("sector {lbn} could not be read, and {mended}"),
            );
            return Ok(());
        }
        if self.facts.survived == 0 || !self.try_to_drop(slot) {
            // Without redundancy no client expects another copy, so the next flush reports nothing.
            self.lost
                .fetch_or(self.facts.survived > 0, Ordering::SeqCst);
            return Err(ArrayError::device(device.name(), "read", failed.error));
        }
        let why = format!("read failed: {}", failed.error);
        self.happened("failed", slot, device.name(), &why);
        self.settle()
    }

    /// Mends block by block, and only unreadable blocks: the other members may have unreadable
    /// sectors nearby.
    fn mend(&self, worker: &mut RequestScratch, slot: usize, extent: Extent) -> bool {
        let Some(device) = self.devices()[slot].clone() else {
            return false;
        };
        // With gears, the source of a block may be beside it on the same member, so smaller pieces
        // are mended.
        let whole_unit = self.facts.gears.is_none();
        let step = if whole_unit {
            self.facts.unit
        } else {
            self.facts.block_bytes / SECTOR_BYTES
        };
        let mut buffer = Aligned::default();
        let mut plan = Plan::new(Detail::Bytes);
        let mut at = extent.start.0 / step * step;
        while at < extent.end().0 {
            let piece = Extent::new(at, step.min(extent.end().0 - at));
            let bytes = buffer.of(piece.sectors.bytes().0 as usize);
            if device
                .read(self.facts.data_at + at * SECTOR_BYTES, bytes)
                .is_ok()
            {
                at = piece.end().0;
                continue;
            }
            match self.plan_mend(slot, piece, &mut plan) {
                Some(next) if self.carry_out_alone(worker, &plan).is_ok() => at = next.0,
                _ => return false,
            }
        }
        true
    }

    /// Plans the computation of a piece of a member from the others, and its write. Returns the
    /// sector behind the written piece; `None` if the piece cannot be computed.
    fn plan_mend(&self, slot: usize, piece: Extent, plan: &mut Plan) -> Option<Lbn> {
        let mut planner = self.planner();
        if let Some(gears) = planner.layout.gears() {
            return gears.plan_mend(slot, piece, plan).then(|| piece.end());
        }
        plan.clear();
        let start = Sectors(piece.start.0);
        let before = planner.layout.member_state(slot);
        planner
            .layout
            .set_member_state(slot, MemberState::Rebuilding { done: start });
        let next = planner
            .layout
            .plan_rebuild(&[slot], start, piece.sectors, plan);
        planner.layout.set_member_state(slot, before);
        let fills = plan.ios().iter().any(|io| {
            let own = io.member as usize == slot && io.operation == Operation::Write;
            own && io.extent.start <= piece.start && piece.start < io.extent.end()
        });
        fills.then_some(Lbn(next.0))
    }

    /// Returns the state of the array.
    pub fn status(&self) -> ArrayStatus {
        let states = self.states();
        let mut planner = self.planner();
        let gear = planner.gear();
        let shifts = matches!(gear, Some(Gear::Falling | Gear::Rising));
        let stale_rows = planner
            .layout
            .gears()
            .filter(|_| shifts)
            .map(|gears| gears.stale());
        let used: Vec<u64> = (0..states.len())
            .map(|slot| planner.layout.member_used(slot).0)
            .collect();
        let layout = format!("{} of {}", planner.layout.name(), states.len());
        let answers = planner.layout.answers();
        drop(planner);
        let book = self.book();
        let slots = book.roster.slots.iter().zip(&states).zip(used);
        let devices = self.devices();
        let slots = slots.zip(devices.iter()).enumerate();
        let slots = slots.map(|(index, (((slot, &state), used), device))| {
            let standby = device.as_ref().and_then(|device| device.standby());
            let standby = standby.is_some_and(Standby::is_in_standby);
            let stands = device.is_some() && self.is_in_standby(index);
            SlotStatus {
                standby,
                stands,
                ..slot_status(slot, state, used)
            }
        });
        let slots = slots.collect();
        let filling = states
            .iter()
            .any(|state| matches!(state, MemberState::Rebuilding { .. }));
        let state = match () {
            () if self.halted().is_some() => "halted",
            () if !answers => "failed",
            () if states.contains(&MemberState::Failed) => "degraded",
            () if filling => "filling",
            () => "whole",
        };
        ArrayStatus {
            name: book.roster.name.clone(),
            array: self.uuid,
            layout,
            capacity_bytes: self.facts.capacity.bytes().0,
            state,
            halted: self.halted().map(str::to_owned),
            read_only: self.read_only.get().copied(),
            events: book.roster.events,
            region_bytes: book.roster.region_sectors * SECTOR_BYTES,
            dirty_regions: self
                .bitmap
                .as_ref()
                .map_or(0, |bitmap| bitmap.dirty().len() as u64),
            gear: gear.map(Gear::name),
            stale_rows,
            shift_trouble: self
                .shift_trouble
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
            slots,
            spares: book
                .roster
                .spares
                .iter()
                .map(|spare| spare.device.clone())
                .collect(),
        }
    }
}

/// The states of [`ArrayStatus`], and of [`SlotStatus`].
pub(crate) const STATES: [&str; 5] = ["whole", "filling", "degraded", "failed", "halted"];
pub(crate) const SLOT_STATES: [&str; 3] = ["alive", "filling", "failed"];

fn slot_status(slot: &MemberSlot, state: MemberState, used: u64) -> SlotStatus {
    let (state, filled) = match state {
        MemberState::Alive => ("alive", 1.0),
        MemberState::Failed => ("failed", 0.0),
        MemberState::Rebuilding { done } => ("filling", done.0 as f64 / used.max(1) as f64),
    };
    let missed_only = matches!(
        slot.state,
        SlotState::Filling {
            missed_only: true,
            ..
        }
    );
    let (device, member) = (slot.device.clone(), slot.member);
    SlotStatus {
        device,
        member,
        state,
        filled,
        missed_only,
        standby: false,
        stands: false,
    }
}

/// Makes a new identifier for an array, a member or an event.
pub(crate) fn new_uuid() -> Result<Uuid, ArrayError> {
    Uuid::new().map_err(no_randomness)
}

fn no_randomness(error: io::Error) -> ArrayError {
    ArrayError::device("/dev/urandom".into(), "read", error)
}

pub(crate) fn next_event(book: &mut RosterRecord, is_known_to_all: bool) -> Result<(), ArrayError> {
    book.roster
        .next_event(is_known_to_all)
        .map_err(no_randomness)
}

/// Allocates all room of the device from its file system.
pub(crate) fn allocate(device: &dyn Device) -> Result<(), ArrayError> {
    let action = "take its room from the file system of";
    device
        .allocate()
        .map_err(|error| ArrayError::device(device.name(), action, error))
}

/// Copies the members' states to the roster. `before` identifies the latest event known to the
/// members that fail in this one.
pub(crate) fn note_states(roster: &mut Roster, states: &[MemberState], before: Option<Uuid>) {
    let events = roster.events;
    for (slot, &state) in roster.slots.iter_mut().zip(states) {
        let missed_only = matches!(
            slot.state,
            SlotState::Filling {
                missed_only: true,
                ..
            }
        );
        let next = match state {
            MemberState::Alive => SlotState::Alive,
            MemberState::Failed => SlotState::Failed,
            MemberState::Rebuilding { done } => SlotState::Filling {
                done_sectors: done.0,
                missed_only,
            },
        };
        if next == SlotState::Failed && slot.state != SlotState::Failed {
            (slot.failed_at, slot.failed_after) = (events, before);
        }
        if next == SlotState::Alive {
            (slot.failed_at, slot.failed_after) = (0, None);
        }
        slot.state = next;
    }
    let whole = roster
        .slots
        .iter()
        .all(|slot| slot.state == SlotState::Alive)
        && roster.low_gear.is_none();
    roster.missed_since = if whole {
        None
    } else {
        roster.missed_since.or(Some(events))
    };
}

/// True if the bitmap has all missed regions of the member. For this, the member must have been
/// alive until it failed, and the bitmap must have recorded missed regions from then on.
pub(crate) fn knows_what_it_missed(roster: &Roster, slot: usize, own: &Superblock) -> bool {
    let (failed_at, failed_after) = (
        roster.slots[slot].failed_at,
        roster.slots[slot].failed_after,
    );
    let alive = own
        .roster
        .slots
        .get(slot)
        .is_some_and(|slot| slot.state == SlotState::Alive);
    let since = roster.missed_since.is_some_and(|since| since <= failed_at);
    let to_the_end = own.roster.events + 1 == failed_at && own.roster.event_id() == failed_after;
    alive && since && to_the_end
}

/// Returns an error if the device has an owner, or holds any data.
pub(crate) fn refuse_owned(device: &dyn Device) -> Result<(), ArrayError> {
    let looked = |error| ArrayError::device(device.name(), "look for signatures on", error);
    let owners = signatures::owners(device).map_err(looked)?;
    if !owners.is_empty() {
        return Err(ArrayError::Refused(format!(
            "`{}` is in use: found {}; expected a device without signatures, or --force, which destroys its data",
            device.name(),
            owners.join(", ")
        )));
    }
    match signatures::first_data(device).map_err(looked)? {
        None => Ok(()),
        Some(at) => Err(ArrayError::Refused(format!(
            "`{}` holds unknown data: found other bytes than zeros at byte {at}; expected zeros, or --force, which destroys the data",
            device.name()
        ))),
    }
}

/// Writes zeros to both ends of the device, where signatures may stand. The places of own records
/// are always written. Further blocks, up to `each` bytes from each end, are written only over
/// other data, so a sparse file stays sparse.
pub(crate) fn wipe(device: &dyn Device, each: u64) -> Result<(), ArrayError> {
    let mut buffer = crate::device::Aligned::default();
    let bytes = device.bytes() / 4096 * 4096;
    let length = signatures::OWN_BYTES.min(bytes);
    let all = buffer.of(length as usize);
    let mut wipe = || {
        for done in (0..each.min(bytes)).step_by(length.max(1) as usize) {
            let (start, end) = (
                done.min(bytes - length),
                (bytes - length).saturating_sub(done),
            );
            for at in [start, end] {
                let is_zero =
                    done > 0 && device.read(at, all).is_ok() && all.iter().all(|&byte| byte == 0);
                if !is_zero {
                    all.fill(0);
                    device.write(at, all)?;
                }
            }
        }
        device.flush()
    };
    wipe().map_err(|error| ArrayError::device(device.name(), "write to", error))
}
