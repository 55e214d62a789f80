//! Arrays with gears: while the load is small, some members stand.
//!
//! The layout decides how gears work, and knows the stale rows (`fullstroke-volume`, `gears.rs`).
//! This file makes the gears durable, in the right order. Two facts are recorded. The superblocks
//! record the low gear ([`LowGear`]). The bitmap marks regions with writes in the low gear as
//! *missed*.
//!
//! | before this | this is durable |
//! |---|---|
//! | the low gear is recorded | all copies; markers with which every journal is empty |
//! | the first write to the soft state alone | the low gear, on all members |
//! | the high gear is recorded | all copies home; markers with which every journal is empty; the low gear and the count of events on the members that stood |
//! | the first write to a home alone | the high gear, on all members |
//!
//! So a loss of power finds a falling array in the high gear, and a rising array in the low gear.
//! In these gears the data is whole, whatever was copied. In the low gear the bitmap tells the
//! stale rows; in the high gear all rows count as stale.
//!
//! In the low gear, and while rising, the data of standing members follows from soft state and
//! parity alone. So every change is journalled, as in a degraded array. *Groups* of rows with
//! shared parity of soft rows ([`GearedRows`](fullstroke_volume::GearedRows)) are treated like one
//! row of other arrays: the rows are locked together, and their records go to the same two journals
//! of turning members. If a sector is changed twice, each of the two journals has both changes. So
//! no replay ends with the older one. If a member is lost, one of the two journals is left.
//!
//! In the low gear nothing is written to standing members: no marks, no superblocks. The standing
//! members miss the events counted meanwhile, and this is no failure.

use crate::ArrayError;
use crate::array::{Array, RequestScratch, Sabotage};
use crate::member_transfer::TransferDirection;
use crate::roster_record::RosterRecord;
use crate::superblock::LowGear;
use crate::transfer::Devices;
use fullstroke_contract::{Extent, Gear};
use fullstroke_volume::{CopiedRows, Detail, Plan};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Direction of a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GearDirection {
    /// To the low gear.
    Down,
    /// To the high gear.
    Up,
}

impl Array {
    /// Returns the gear; `None` without gears.
    pub fn gear(&self) -> Option<Gear> {
        self.facts
            .gears
            .as_ref()
            .and_then(|_| self.planner().gear())
    }

    pub(crate) fn reads_soft(&self) -> bool {
        self.gear().is_some_and(Gear::reads_soft)
    }

    /// Begins to shift; [`advance_maintenance`](Array::advance_maintenance) does the rest.
    ///
    /// # Errors
    /// There are no gears, the array is in that gear already or is shifting, or a member has failed
    /// or is being filled.
    pub fn shift(&self, towards: GearDirection) -> Result<(), ArrayError> {
        let _alone = self.order.alone();
        self.condition.check_changes()?;
        let refused = |why: &str| Err(ArrayError::Refused(format!("the array {why}")));
        match (towards, self.gear()) {
            (_, None) => {
                let layout = self.book().roster.layout.clone();
                refused(&format!(
                    "has no gears: found the layout {layout}; expected paraid or e-paraid"
                ))
            }
            (GearDirection::Down, Some(Gear::Low)) => refused("is in the low gear already"),
            (GearDirection::Up, Some(Gear::High)) => refused("is in the high gear already"),
            (_, Some(Gear::Falling)) => {
                refused("is shifting down; wait until it is in the low gear")
            }
            (_, Some(Gear::Rising)) => refused("is shifting up; wait until it is in the high gear"),
            (GearDirection::Down, Some(Gear::High)) => match self.begin_shift(Gear::Falling, "") {
                true => Ok(()),
                false => refused(
                    "lacks members: no member may go to standby until all members are filled",
                ),
            },
            (GearDirection::Up, Some(Gear::Low)) => {
                self.begin_shift(Gear::Rising, "by order");
                Ok(())
            }
        }
    }

    /// Begins a shift. The caller holds the gate exclusively. Returns true if the shift was
    /// possible.
    fn begin_shift(&self, to: Gear, why: &str) -> bool {
        if !self.planner().shift(to) {
            return false;
        }
        if to == Gear::Rising {
            self.shift.set_resting(false);
            self.each_standing(|slot, name| {
                self.happened("turns", slot, name, &format!("the array shifts up: {why}"));
            });
        }
        true
    }

    /// Leaves the low gear, because standing members are needed. The caller holds the gate
    /// exclusively.
    pub(crate) fn leave_low_gear(&self, why: &str) {
        if self.gear() == Some(Gear::Low) {
            self.begin_shift(Gear::Rising, why);
        }
    }

    fn each_standing(&self, mut tell: impl FnMut(usize, String)) {
        let devices = self.devices();
        for slot in self.transient() {
            if let Some(device) = &devices[slot] {
                tell(slot, device.name());
            }
        }
    }

    /// Returns the slots of the members that stand in the low gear and get no requests.
    fn standing(&self) -> Range<usize> {
        match self.shift.is_resting() {
            true => self.transient(),
            false => 0..0,
        }
    }

    /// Returns the slots of the members that stand in the low gear, in any gear.
    pub(crate) fn transient(&self) -> Range<usize> {
        let gears = self.facts.gears.as_ref();
        gears.map_or(0..0, |gears| gears.transient.clone())
    }

    /// Returns the devices without the standing members, for writes.
    pub(crate) fn turning(&self) -> Arc<Devices> {
        let (standing, devices) = (self.standing(), self.devices());
        if standing.is_empty() {
            return devices;
        }
        let all = devices.iter().enumerate();
        let turning =
            all.map(|(slot, device)| device.clone().filter(|_| !standing.contains(&slot)));
        Arc::new(turning.collect())
    }

    /// True if the member in the slot stands in the low gear and gets no requests.
    pub(crate) fn is_in_standby(&self, slot: usize) -> bool {
        self.standing().contains(&slot)
    }

    /// Returns the addresses to lock together with `extent`.
    pub(crate) fn held_with(&self, extent: Extent) -> Extent {
        let around = self.around(extent);
        let rows = self.facts.gears.as_ref().and_then(|gears| gears.rows);
        match rows.filter(|_| self.sabotage != Sabotage::GroupsUnlocked) {
            Some(rows) if self.gear() != Some(Gear::High) => rows.around(around),
            _ => around,
        }
    }

    /// True if each row needs a plan of its own, because several rows share the parity of a soft
    /// row.
    pub(crate) fn goes_row_by_row(&self) -> bool {
        let shares = self
            .facts
            .gears
            .as_ref()
            .is_some_and(|gears| gears.rows.is_some());
        shares && self.gear() != Some(Gear::High)
    }

    /// Returns the run of members' addresses with the native rows of `part`. In the low gear the
    /// bytes of a write go elsewhere, but this home must be marked.
    pub(crate) fn native_run(&self, part: Extent) -> Option<Extent> {
        let rows = self.facts.gears.as_ref()?.rows?;
        (self.sabotage != Sabotage::HomesUnmarked).then(|| rows.on_members(part))
    }

    /// Returns the members whose journals take the changes of `part`; `None` if the plan decides.
    pub(crate) fn shared_journals(&self, part: Extent) -> Option<[usize; 2]> {
        let gears = self
            .facts
            .gears
            .as_ref()
            .filter(|_| self.sabotage != Sabotage::JournalsApart)?;
        let rows = gears.rows.filter(|_| self.reads_soft())?;
        Some(gears.journals(rows, part))
    }

    /// Marks all rows as stale, because only one of two copies may have been written.
    pub(crate) fn distrust_copies(&self) {
        self.planner().distrust_copies();
    }

    /// Determines the stale rows of the low gear from the bitmap's missed regions.
    pub(crate) fn find_stale(&self) {
        let missed = self
            .bitmap
            .as_ref()
            .map(|bitmap| bitmap.missed())
            .unwrap_or_default();
        let (Some(bitmap), true) = (&self.bitmap, self.reads_soft()) else {
            return;
        };
        let was_missed = |extent: Extent| {
            bitmap
                .regions_of(extent)
                .any(|region| missed.binary_search(&region).is_ok())
        };
        self.planner().narrow_stale(&was_missed);
    }

    /// Continues a shift, if there is something to do. Returns true if there was.
    pub(crate) fn tend_gears(&self, worker: &mut RequestScratch) -> Result<bool, ArrayError> {
        match self.gear() {
            None | Some(Gear::High) => Ok(false),
            Some(Gear::Low) if !self.must_rise() => Ok(false),
            Some(Gear::Low) => {
                let _alone = self.order.alone();
                self.leave_low_gear("a member has failed");
                Ok(true)
            }
            Some(Gear::Falling | Gear::Rising) => self.copy_some(worker).map(|()| true),
        }
    }

    /// True if a shift is in progress or needed, so
    /// [`advance_maintenance`](Array::advance_maintenance) must be called.
    pub(crate) fn is_to_be_shifted(&self) -> bool {
        match self.gear().filter(|_| !self.is_read_only()) {
            None | Some(Gear::High) => false,
            Some(Gear::Low) => self.must_rise(),
            Some(Gear::Falling | Gear::Rising) => true,
        }
    }

    /// A failure in the low gear leaves no redundancy there; members are filled in the high gear.
    fn must_rise(&self) -> bool {
        self.facts.survived > 0 && self.planner().is_impaired()
    }

    /// Least time between two steps of a shift, if the layout bounds the rate of copying.
    pub(crate) fn copy_time(&self) -> Option<Duration> {
        let rate = self.facts.gears.as_ref()?.rules.rate?;
        Some(Duration::from_secs_f64(
            self.shift.step().bytes().0 as f64 / rate.0 as f64,
        ))
    }

    fn copy_some(&self, worker: &mut RequestScratch) -> Result<(), ArrayError> {
        let _alone = self.order.alone();
        self.condition.check_running()?;
        let mut plan = Plan::new(Detail::Bytes);
        let mut planner = self.planner();
        let rows = planner.plan_copy(self.shift.step(), &mut plan);
        let gear = planner.gear();
        drop(planner);
        let copied = match (rows, gear) {
            (Some(rows), _) => self.copy(worker, &plan, rows),
            (None, Some(Gear::Falling)) => self.settle_low(),
            (None, Some(Gear::Rising)) => self.settle_high(),
            (None, _) => Ok(()),
        };
        self.shift
            .note_trouble(copied.as_ref().err().map(ToString::to_string));
        copied
    }

    fn copy(
        &self,
        worker: &mut RequestScratch,
        plan: &Plan,
        rows: CopiedRows,
    ) -> Result<(), ArrayError> {
        let Err((direction, failed)) = self.carry_out_alone(worker, plan) else {
            self.shift.unread().take();
            return Ok(());
        };
        self.planner().copy_failed(rows);
        for failed in failed {
            if direction == TransferDirection::Read {
                let mut last = self.shift.unread();
                self.mend_or_drop(worker, failed, &mut last)?;
                break;
            }
            let why = format!("write failed: {}", failed.error);
            self.drop_member(failed.transfer.slot, &why, failed.error)?;
        }
        self.settle()
    }

    /// Empties the journals, because later changes may write the data to other places.
    fn empty_journals(&self) -> Result<(), ArrayError> {
        if self.journals.are_absent() || self.sabotage == Sabotage::JournalsKept {
            return Ok(());
        }
        self.give_up_records()?;
        if self.journals.hold_any() {
            return Err(ArrayError::Refused(
                "changes that have not ended are in the journals".to_owned(),
            ));
        }
        Ok(())
    }

    /// Enters the low gear: all rows are in the soft state.
    fn settle_low(&self) -> Result<(), ArrayError> {
        self.empty_journals()?;
        let mut book = self.book();
        let standing: Vec<usize> = self.transient().collect();
        assert!(!standing.is_empty(), "no member stands in the low gear");
        book.roster.low_gear = Some(LowGear {
            // A commit counts two events; the second is the number of this state.
            since: book.roster.events + 2,
            standing,
        });
        if let Err(error) = self.commit_gear(&mut book) {
            // Some members may have recorded the low gear. Later writes would go to other places
            // than these members expect.
            return Err(self
                .condition
                .halt(&format!("the low gear could not be written down: {error}")));
        }
        if self.planner().settle() != Some(Gear::Low) {
            // A member has failed meanwhile, perhaps in a flush of another thread.
            book.roster.low_gear = None;
            return self.commit(&mut book).map_err(|error| {
                self.condition
                    .halt(&format!("the gear could not be written down: {error}"))
            });
        }
        drop(book);
        self.shift.set_resting(true);
        self.each_standing(|slot, name| {
            self.happened("stands", slot, name, "the array is in the low gear")
        });
        Ok(())
    }

    /// Enters the high gear: all rows are home.
    fn settle_high(&self) -> Result<(), ArrayError> {
        self.empty_journals()?;
        let mut book = self.book();
        if self.sabotage != Sabotage::StandingBehind {
            // The members that stood learn of all earlier events before any member knows the high
            // gear. Otherwise they would be out of date in the high gear.
            self.commit(&mut book)?;
        }
        if let Some(bitmap) = self
            .bitmap
            .as_ref()
            .filter(|_| !self.planner().is_impaired())
        {
            bitmap.forget_missed();
        }
        let low = book.roster.low_gear.take();
        if let Err(error) = self.commit_gear(&mut book) {
            // The array is still rising: all writes go to both places, so either gear may be found.
            book.roster.low_gear = low;
            return Err(error);
        }
        drop(book);
        self.planner().settle();
        Ok(())
    }

    fn commit_gear(&self, book: &mut RosterRecord) -> Result<(), ArrayError> {
        if self.sabotage == Sabotage::GearUnrecorded {
            return Ok(());
        }
        if self.sabotage == Sabotage::CopiesUnflushed {
            book.next_event(true)?;
            return self.write_superblocks(book);
        }
        self.commit(book)
    }

    /// Stops the platters of standing members, where possible.
    pub(crate) fn stop_standing(&self) {
        let devices = self.devices();
        for (slot, device) in devices
            .iter()
            .enumerate()
            .filter(|(slot, _)| self.is_in_standby(*slot))
        {
            let Some((device, standby)) =
                device.as_ref().and_then(|one| Some((one, one.standby()?)))
            else {
                continue;
            };
            if let Err(error) = standby.stop(None) {
                self.happened(
                    "refused",
                    slot,
                    device.name(),
                    &format!("standby failed: {error}"),
                );
            }
        }
    }
}
