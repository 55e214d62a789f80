//! A layout, with the states and the gear of its members.
//!
//! Arrays on devices and volumes in folders plan by this module alone: requests, the repair of
//! unreadable sectors, the filling of members, and the copies of a shift. The states of members and
//! the gear change here and nowhere else.

use fullstroke_contract::{
    Extent, Gear, LayersBelow, MemberState, Operation, Request, RequestStatus,
};
use fullstroke_units::{Lbn, Sectors};
use fullstroke_volume::{CopiedRows, Detail, Layout, MemberStates, ParityRows, Plan};
use std::ops::Range;

/// Progress of filling is recorded after each 1/64 of a member, because each record costs writes
/// and flushes.
const RECORDED_SHARE: u64 = 64;

/// A layout with the states of its members.
pub(crate) struct MemberLayout {
    layout: Box<dyn Layout>,
    /// Size of a row; `None` without parity.
    rows: Option<ParityRows>,
    /// Number of changes of states and of the gear. A plan of an earlier version is out of date.
    version: u64,
}

/// Reason why a request has no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanRefusal {
    /// More members have failed than the layout survives.
    Lost { extent: Extent },
    /// The request reaches behind the end, or is empty.
    OutOfRange { extent: Extent, capacity: Sectors },
}

impl MemberLayout {
    pub(crate) fn new(layout: Box<dyn Layout>) -> MemberLayout {
        MemberLayout {
            rows: layout.geometry().parity_rows(),
            layout,
            version: 0,
        }
    }

    /// The layout, for questions about its map.
    pub(crate) fn layout(&self) -> &dyn Layout {
        &*self.layout
    }

    /// Addresses `0..capacity`.
    pub(crate) fn capacity(&self) -> Sectors {
        self.layout.capacity()
    }

    /// Size of a row, the unit of discards and comparisons; `None` without parity.
    pub(crate) fn rows(&self) -> Option<ParityRows> {
        self.rows
    }

    /// Number of changes of states and of the gear.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Plans a request.
    #[inline]
    pub(crate) fn plan(
        &mut self,
        operation: Operation,
        extent: Extent,
        plan: &mut Plan,
    ) -> Result<(), PlanRefusal> {
        let request = Request {
            operation,
            extent,
            ..Request::default()
        };
        match self.layout.plan(&request, LayersBelow::NOTHING, plan) {
            // Only comparisons end in `Differs`, and only drives refuse requests. Planning has
            // neither.
            RequestStatus::Done | RequestStatus::Differs => Ok(()),
            RequestStatus::Lost | RequestStatus::Refused => Err(PlanRefusal::Lost { extent }),
            RequestStatus::OutOfRange => Err(PlanRefusal::OutOfRange {
                extent,
                capacity: self.layout.capacity(),
            }),
        }
    }

    // The states of members.

    /// State of a member.
    pub(crate) fn state(&self, member: usize) -> MemberState {
        self.layout.member_state(member)
    }

    /// States of all members, in order.
    pub(crate) fn states(&self) -> Vec<MemberState> {
        let members = 0..self.layout.members();
        members.map(|member| self.state(member)).collect()
    }

    /// Sets the state of a member. Plans from before are out of date.
    pub(crate) fn set_state(&mut self, member: usize, state: MemberState) {
        if let MemberState::Rebuilding { done } = state {
            let used = self.layout.member_used(member);
            assert!(
                done <= used,
                "member {member} is filled to {done}, beyond its {used}"
            );
        }
        self.layout.set_member_state(member, state);
        self.version += 1;
    }

    /// Sets the state of a member from a record, which may name more sectors than the member has.
    pub(crate) fn set_recorded_state(&mut self, member: usize, state: MemberState) {
        let used = self.layout.member_used(member);
        let state = match state {
            MemberState::Rebuilding { done } => MemberState::Rebuilding {
                done: done.min(used),
            },
            other => other,
        };
        self.set_state(member, state);
    }

    /// Fails a member, unless its data is needed. Returns false if it is needed: the state stays as
    /// it was then.
    pub(crate) fn fail_unless_needed(&mut self, member: usize) -> bool {
        let before = self.state(member);
        self.layout.set_member_state(member, MemberState::Failed);
        if self.layout.answers() {
            self.version += 1;
            return true;
        }
        self.layout.set_member_state(member, before);
        false
    }

    /// Exchanges the states of all members, for a time in which plans are not carried out.
    pub(crate) fn exchange_states(&mut self, states: &mut MemberStates) {
        assert_eq!(
            states.members(),
            self.layout.members(),
            "the states are of a volume with other members"
        );
        std::mem::swap(self.layout.member_states_mut(), states);
    }

    /// True if the data of every address is available.
    pub(crate) fn answers(&self) -> bool {
        self.layout.answers()
    }

    /// True if a whole array survives the failure of a member.
    pub(crate) fn is_redundant(&self) -> bool {
        self.layout.failures_survived() > 0
    }

    /// True if members are missing or being filled.
    pub(crate) fn is_impaired(&self) -> bool {
        !self.layout.member_states().impaired().is_empty()
    }

    /// True if members are missing or being filled, or if soft state serves requests instead of
    /// members.
    pub(crate) fn lacks_members(&self) -> bool {
        self.is_impaired() || self.reads_soft()
    }

    /// True if redundancy can be compared with its data: the members that hold either are present.
    /// The members `standing` hold neither in the low gear.
    pub(crate) fn can_be_compared(&self, standing: &Range<usize>) -> bool {
        let mut impaired = self.layout.member_states().impaired().iter();
        impaired.all(|&member| self.reads_soft() && standing.contains(&(member as usize)))
    }

    /// Plans reads that give the data of `piece` of a member without the members `avoided`, which
    /// include the member itself. Returns a plan for each run of addresses, in the order of the
    /// member's addresses. `None` if the other members do not have the data: the piece holds
    /// parity, or too many members are avoided, missing or being filled.
    pub(crate) fn plan_around(
        &mut self,
        member: usize,
        piece: Extent,
        avoided: &[usize],
    ) -> Option<Vec<(Extent, Plan)>> {
        debug_assert!(
            avoided.contains(&member),
            "a read around member {member} avoids only {avoided:?}"
        );
        let mut owners = Vec::new();
        self.layout
            .owners(member, piece, &mut |owner| owners.push(owner));
        let owned = owners.iter().map(|owner| owner.sectors.0).sum::<u64>();
        // Parity belongs to no address.
        if owned != piece.sectors.0 {
            return None;
        }
        let before = self.layout.member_states().clone();
        for &member in avoided {
            let states = self.layout.member_states_mut();
            states.set(member, MemberState::Failed);
        }
        let plans = owners.into_iter().map(|owner| {
            let mut plan = Plan::new(Detail::Bytes);
            let planned = self.plan(Operation::Read, owner, &mut plan);
            planned.ok().map(|()| (owner, plan))
        });
        let plans = plans.collect();
        *self.layout.member_states_mut() = before;
        plans
    }

    // Repair and filling.

    /// Plans the computation of a piece of a member from the others, and its write. In an array with
    /// gears the plan reads the data of the present gear. Returns the sector behind the written
    /// piece; `None` if the piece cannot be computed.
    pub(crate) fn plan_repair(
        &mut self,
        member: usize,
        piece: Extent,
        plan: &mut Plan,
    ) -> Option<Lbn> {
        if let Some(gears) = self.layout.gears()
            && gears.plan_mend(member, piece, plan)
        {
            return Some(piece.end());
        }
        // Rebuild plans read the data of the high gear, which are out of date in the others.
        if self.gear().is_some_and(|gear| gear != Gear::High) {
            return None;
        }
        // A rebuild from the piece on reads everything that the piece needs, and nothing from the
        // member itself.
        let next = self.plan_rebuild(member, Sectors(piece.start.0), piece.sectors, plan);
        let fills = plan.ios().iter().any(|io| {
            let own = io.member as usize == member && io.operation == Operation::Write;
            own && io.extent.start <= piece.start && piece.start < io.extent.end()
        });
        fills.then_some(Lbn(next.0))
    }

    /// Plans to fill about `most` sectors of a member, from the sector `from` on. Returns the first
    /// sector behind them. Where only missed regions are filled, `from` may lie beyond the progress
    /// in the member's state.
    pub(crate) fn plan_fill(
        &mut self,
        member: usize,
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        let next = self.plan_rebuild(member, from, most, plan);
        assert!(
            next > from,
            "a step of a rebuild fills nothing behind {from}"
        );
        next
    }

    fn plan_rebuild(
        &mut self,
        member: usize,
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        plan.clear();
        // The layout plans from the state, which is changed for that time.
        let before = self.state(member);
        let from_here = MemberState::Rebuilding { done: from };
        self.layout.set_member_state(member, from_here);
        let next = self.layout.plan_rebuild(&[member], from, most, plan);
        self.layout.set_member_state(member, before);
        next
    }

    // Gears.

    /// The gear; `None` without gears.
    pub(crate) fn gear(&self) -> Option<Gear> {
        self.layout.present_gear()
    }

    /// True in a gear in which the soft state of standing members serves requests instead of their
    /// own data.
    pub(crate) fn reads_soft(&self) -> bool {
        self.gear().is_some_and(Gear::reads_soft)
    }

    /// Begins a shift, to falling or rising. Returns true if the shift was possible.
    pub(crate) fn shift(&mut self, to: Gear) -> bool {
        let has_begun = self.layout.gears().is_some_and(|gears| gears.shift(to));
        self.version += u64::from(has_begun);
        has_begun
    }

    /// Plans the copy of the next stale rows: about `most` sectors, but at least one row. `None` if
    /// no row is stale.
    pub(crate) fn plan_copy(&mut self, most: Sectors, plan: &mut Plan) -> Option<CopiedRows> {
        self.layout.gears()?.plan_copy(most, plan)
    }

    /// Marks rows as stale again whose copy has failed.
    pub(crate) fn copy_failed(&mut self, rows: CopiedRows) {
        if let Some(gears) = self.layout.gears() {
            gears.again(rows);
        }
    }

    /// Marks all rows as stale, because only one of two copies may have been written.
    pub(crate) fn distrust_copies(&mut self) {
        if let Some(gears) = self.layout.gears() {
            gears.mark_all_stale();
        }
    }

    /// Sets the gear in which the members were left. All rows count as stale.
    pub(crate) fn found(&mut self, is_low: bool) {
        if is_low && let Some(gears) = self.layout.gears() {
            gears.found_low();
        } else {
            self.distrust_copies();
        }
    }

    /// Keeps rows stale only if `is_stale` returns true for one of their runs of members' addresses.
    pub(crate) fn narrow_stale(&mut self, is_stale: &dyn Fn(Extent) -> bool) {
        if let Some(gears) = self.layout.gears() {
            gears.narrow_stale(is_stale);
        }
    }

    /// Number of stale rows; `None` without gears.
    pub(crate) fn stale(&mut self) -> Option<u64> {
        self.layout.gears().map(|gears| gears.stale())
    }

    /// Ends the shift, if one is in progress: all rows are copied, and the gear is on record.
    /// Returns the gear.
    pub(crate) fn settle(&mut self) -> Option<Gear> {
        self.version += 1;
        if let Some(Gear::Falling | Gear::Rising) = self.gear()
            && let Some(gears) = self.layout.gears()
        {
            gears.settle();
        }
        self.gear()
    }

    /// Plans a comparison of about `most` sectors of rows in the present gear. Returns the next row;
    /// `None` at the end.
    pub(crate) fn plan_check(&mut self, from: u64, most: Sectors, plan: &mut Plan) -> Option<u64> {
        plan.clear();
        self.layout.gears()?.plan_check(from, most, plan)
    }
}

/// True if the progress of filling from the sector `recorded` to `done` is to be recorded, for a
/// member of `sectors`. A flush that another thread began earlier may end late, and brings older
/// progress than is recorded.
pub(crate) fn is_worth_recording(recorded: u64, done: u64, sectors: u64) -> bool {
    done.checked_sub(recorded)
        .is_some_and(|more| more >= sectors / RECORDED_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_recorded_in_steps_and_never_taken_back() {
        for (recorded, done, is_worth) in [
            (0, 99, false),
            (0, 100, true),
            (100, 150, false),
            (100, 200, true),
            (200, 100, false),
        ] {
            let found = is_worth_recording(recorded, done, 6400);
            assert_eq!(found, is_worth, "from {recorded} to {done}");
        }
    }
}
