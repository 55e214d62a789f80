//! Upkeep: members are filled, and spares replace failed members.

use crate::array::{Array, RequestScratch};
use crate::buffers::{Buffers, RequestBytes};
use crate::member_layout::is_worth_recording;
use crate::member_transfer::{FailedTransfer, TransferDirection};
use crate::superblock::SlotState;
use crate::{ArrayError, Device};
use fullstroke_contract::Gear;
use fullstroke_contract::{MemberState, Operation};
use fullstroke_units::{SECTOR_BYTES, Sectors};
use fullstroke_volume::{Detail, Plan};
use std::sync::Arc;

/// Size of a rebuild step, 2 MiB. Requests wait during a step.
const FILLED_AT_ONCE: Sectors = Sectors((2 << 20) / SECTOR_BYTES);

impl Array {
    /// Continues a shift, or else a rebuild, by one step. Without either, a spare takes the place
    /// of a failed member. Returns true if there is more to do.
    ///
    /// # Errors
    /// The array has halted.
    pub fn advance_maintenance(&self, worker: &mut RequestScratch) -> Result<bool, ArrayError> {
        self.settle()?;
        self.condition.check_changes()?;
        if self.tend_gears(worker)? {
            return Ok(true);
        }
        if let Some(slot) = self.filling() {
            return self.fill_some(worker, slot).map(|()| true);
        }
        let _alone = self.order.alone();
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
        let _alone = self.order.alone();
        if self.gear().is_some_and(|gear| gear != Gear::High) {
            return Ok(());
        }
        let MemberState::Rebuilding { done } = self.states()[slot] else {
            return Ok(());
        };
        let used = self.planner().layout().member_used(slot);
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
        assert!(
            next.0 >= from.min(used.0) && next <= used,
            "slot {slot} is filled from {from} to {next}, of {used}"
        );
        let ended = next >= used;
        // The member counts as filled only when its data is durable.
        if ended && !self.flush_devices() {
            return self.condition.check_running();
        }
        let mut planner = self.planner();
        if planner.state(slot) == MemberState::Failed {
            return Ok(());
        }
        let state = if ended {
            MemberState::Alive
        } else {
            MemberState::Rebuilding { done: next }
        };
        planner.set_state(slot, state);
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
        if ended || is_worth_recording(done_sectors, next.0, used.0) {
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
        // A fill of missed regions skips others, so it may begin beyond the recorded progress.
        let next = self
            .planner()
            .plan_fill(slot, from, FILLED_AT_ONCE, &mut plan);
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
}
