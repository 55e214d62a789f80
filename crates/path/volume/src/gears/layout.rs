//! The layout with gears: an array of all members above, native data and soft state below.

use super::stale::StaleRows;
use super::transfers::{Notes, Transfers};
use super::{CopiedRows, Gear, GearMap, GearedRows, Gears, ShiftRules};
use crate::geometry::Geometry;
use crate::layout::{Layout, Location, Role, longest};
use crate::paraid::BESIDE;
use crate::plan::{Detail, OpenIos, Plan};
use crate::states::MemberStates;
use fullstroke_contract::registry::Keys;
use fullstroke_contract::{Extent, LayersBelow, MemberState, Operation, Request, RequestStatus};
use fullstroke_units::{Lbn, Sectors};
use std::ops::Range;

/// A layout with two gears; see [`gears`](super).
pub(crate) struct GearedLayout {
    pub(super) name: &'static str,
    capacities: Vec<Sectors>,
    pub(super) map: GearMap,
    /// Chunk size in sectors.
    pub(super) chunk: u64,
    rules: ShiftRules,
    /// The array of all members. Its addresses are native units only.
    base: Box<dyn Layout>,
    /// A plan of `base`. The plan is translated before it is carried out.
    planned: Plan,
    pub(super) states: MemberStates,
    pub(super) gear: Gear,
    pub(super) stale: StaleRows,
    pub(super) open: OpenIos,
    pub(super) notes: Notes,
    /// Members that get no operation of whole members.
    left_out: Vec<u32>,
}

impl GearedLayout {
    /// Returns the layout in the high gear. `base` has as many members as `capacities`, each with
    /// the native units of `map`.
    pub(crate) fn new(
        name: &'static str,
        base: Box<dyn Layout>,
        map: GearMap,
        chunk: u64,
        rules: ShiftRules,
        capacities: &[Sectors],
    ) -> GearedLayout {
        let mut geared = GearedLayout {
            name,
            capacities: capacities.to_vec(),
            stale: StaleRows::none(map.soft_rows()),
            map,
            chunk,
            rules,
            // The translation needs the pieces of the plan, also in a simulation of times.
            planned: Plan::new(Detail::Bytes),
            states: base.member_states().clone(),
            base,
            gear: Gear::High,
            open: OpenIos::new(capacities.len()),
            notes: Notes::default(),
            left_out: Vec::new(),
        };
        // A failed member has taken its soft state with it.
        if !geared.states.impaired().is_empty() {
            geared.stale.insert_all();
        }
        geared.follow();
        geared
    }

    pub(super) fn capacities(&self) -> &[Sectors] {
        &self.capacities
    }

    pub(super) fn is_transient(&self, member: usize) -> bool {
        member as u64 >= self.map.active
    }

    /// Sets the states of the members of `base` to the states of the places that serve the members'
    /// data. In the low gear, the soft state serves a transient member.
    fn follow(&mut self) {
        self.left_out.clear();
        for member in 0..self.capacities.len() {
            let soft = self.gear.reads_soft() && self.is_transient(member);
            let state = if soft {
                MemberState::Alive
            } else {
                self.native_state(member)
            };
            self.base.set_member_state(member, state);
            let stands = self.gear == Gear::Low && self.is_transient(member);
            // A standing member is left out of requests to all members, because a flush would spin
            // the member up.
            if stands || self.states.has_failed(member) {
                self.left_out.push(member as u32);
            }
        }
    }

    /// Returns the state of a member in the array of native units.
    fn native_state(&self, member: usize) -> MemberState {
        match self.states.get(member) {
            MemberState::Rebuilding { done } => MemberState::Rebuilding {
                done: self.native_below(done.0),
            },
            state => state,
        }
    }

    /// Returns the number of native sectors of a member before the sector `sectors`.
    fn native_below(&self, sectors: u64) -> Sectors {
        Sectors(self.map.rows_below(sectors / self.chunk) * self.chunk)
    }

    /// Passes the progress of running rebuilds to the array of native units.
    fn count_on_filling(&mut self) {
        for at in 0..self.states.impaired().len() {
            let member = self.states.impaired()[at] as usize;
            let end = self.states.writable(member);
            if matches!(
                self.base.member_state(member),
                MemberState::Rebuilding { .. }
            ) {
                let end = self.native_below(end);
                self.base.member_states_mut().fill(member, end.0);
            }
        }
    }
}

impl Layout for GearedLayout {
    fn name(&self) -> &'static str {
        self.name
    }
    fn capacity(&self) -> Sectors {
        self.base.capacity()
    }
    fn member_capacity(&self, member: usize) -> Sectors {
        self.capacities[member]
    }
    fn member_used(&self, member: usize) -> Sectors {
        let end = if self.is_transient(member) {
            self.map.native(self.map.rows - 1) + 1
        } else {
            self.map.end()
        };
        Sectors(end * self.chunk)
    }
    fn geometry(&self) -> Geometry {
        self.base.geometry()
    }
    fn failures_survived(&self) -> u32 {
        self.base.failures_survived()
    }
    fn member_states(&self) -> &MemberStates {
        &self.states
    }
    fn member_states_mut(&mut self) -> &mut MemberStates {
        &mut self.states
    }

    /// If a member fails in the high gear, its soft state is lost, and a shift down is given up. In
    /// the low gear, stale rows stay stale, because their newest data is only in the soft state.
    fn set_member_state(&mut self, member: usize, state: MemberState) {
        self.states.set(member, state);
        if state != MemberState::Alive && !self.gear.reads_soft() {
            self.gear = Gear::High;
            self.stale.insert_all();
        }
        self.follow();
    }

    fn locate(&self, lbn: Lbn) -> Location {
        let Location { member, lbn } = self.base.locate(lbn);
        let (row, offset) = (lbn.0 / self.chunk, lbn.0 % self.chunk);
        Location {
            member,
            lbn: Lbn(self.map.native(row) * self.chunk + offset),
        }
    }

    fn role_of(&self, member: usize, lbn: Lbn) -> Role {
        assert!(
            lbn.0 < self.capacities[member].0,
            "{lbn} is not below the member's capacity"
        );
        let row = self.map.row_at(lbn.0 / self.chunk);
        row.map_or(Role::Unused, |row| {
            self.base
                .role_of(member, Lbn(row * self.chunk + lbn.0 % self.chunk))
        })
    }

    fn owners(&self, member: usize, extent: Extent, owner: &mut dyn FnMut(Extent)) {
        // Sectors behind the used part hold nothing, so a notice about them has no owner.
        let end = extent.end().0.min(self.member_used(member).0);
        let mut lbn = extent.start.0;
        while lbn < end {
            let next = ((lbn / self.chunk + 1) * self.chunk).min(end);
            if let Role::Data(of) = self.role_of(member, Lbn(lbn)) {
                owner(Extent {
                    start: of,
                    sectors: Sectors(next - lbn),
                });
            }
            lbn = next;
        }
    }

    fn left_out(&self) -> &[u32] {
        &self.left_out
    }

    /// A discard has no member I/O, because the soft state would have to follow the discard.
    fn plan_transfer(
        &mut self,
        request: &Request,
        below: LayersBelow<'_>,
        plan: &mut Plan,
    ) -> RequestStatus {
        if request.operation == Operation::Discard {
            return RequestStatus::Done;
        }
        self.count_on_filling();
        let status = self.base.plan(request, below, &mut self.planned);
        // The array of native units plans first, because its rules for parity and failures hold in
        // each gear. Only the places change.
        if status == RequestStatus::Done {
            self.translate(self.gear, plan);
        }
        status
    }

    /// Plans a rebuild from the native units of the other members, in the high gear only. The soft
    /// state is stale then.
    fn plan_rebuild(
        &mut self,
        members: &[usize],
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        self.plan_native_rebuild(members, from, most, plan)
    }

    fn present_gear(&self) -> Option<Gear> {
        Some(self.gear)
    }

    fn gears(&mut self) -> Option<&mut dyn Gears> {
        Some(self)
    }
}

impl Gears for GearedLayout {
    fn rules(&self) -> ShiftRules {
        self.rules
    }
    fn transient(&self) -> Range<usize> {
        self.map.active as usize..self.capacities.len()
    }

    fn shift(&mut self, to: Gear) -> bool {
        let possible = match to {
            Gear::Falling => self.gear == Gear::High && self.states.impaired().is_empty(),
            Gear::Rising => self.gear == Gear::Low,
            Gear::High | Gear::Low => false,
        };
        if possible {
            self.gear = to;
            self.follow();
        }
        possible
    }

    fn plan_copy(&mut self, most: Sectors, plan: &mut Plan) -> Option<CopiedRows> {
        plan.clear();
        if !matches!(self.gear, Gear::Falling | Gear::Rising) {
            return None;
        }
        let row = self.map.width() * self.chunk;
        // Runs of rows, because one long copy costs fewer seeks than many short ones.
        let (first, count) = self.stale.take_run((most.0 / row).max(1))?;
        let rows = CopiedRows {
            first,
            count,
            sectors: Sectors(count * row),
        };
        self.copy(rows, plan);
        Some(rows)
    }

    fn again(&mut self, rows: CopiedRows) {
        (rows.first..rows.first + rows.count).for_each(|row| self.stale.insert(row));
    }

    fn settle(&mut self) {
        debug_assert_eq!(self.stale.count(), 0, "a shift ends when all is copied");
        match self.gear {
            Gear::Falling => self.gear = Gear::Low,
            Gear::Rising => {
                self.gear = Gear::High;
                if !self.states.impaired().is_empty() {
                    self.stale.insert_all();
                }
            }
            Gear::High | Gear::Low => return,
        }
        self.follow();
    }

    fn stale(&self) -> u64 {
        self.stale.count()
    }

    fn mark_all_stale(&mut self) {
        self.stale.insert_all();
    }

    fn found_low(&mut self) {
        self.gear = Gear::Low;
        self.stale.insert_all();
        self.follow();
    }

    fn narrow_stale(&mut self, is_stale: &dyn Fn(Extent) -> bool) {
        for soft in (0..self.map.soft_rows())
            .filter(|&soft| self.stale.contains(soft))
            .collect::<Vec<u64>>()
        {
            let mut rows = self.map.rows_of(soft, soft);
            let native = |row: u64| Extent::new(self.map.native(row) * self.chunk, self.chunk);
            if !rows.any(|row| is_stale(native(row))) {
                self.stale.remove(soft);
            }
        }
    }

    fn rows(&self) -> Option<GearedRows> {
        let row = self.base.geometry().parity_rows()?.data.0;
        Some(GearedRows {
            map: self.map,
            chunk: self.chunk,
            row,
        })
    }

    fn settled_keys(&self) -> Keys {
        let mut keys = Keys::new();
        keys.insert("active".into(), self.map.active.into());
        if self.name == BESIDE {
            keys.insert("cluster".into(), self.map.cluster.into());
        }
        keys
    }

    fn plan_check(&mut self, from: u64, most: Sectors, plan: &mut Plan) -> Option<u64> {
        self.check(from, most, plan)
    }

    fn plan_mend(&mut self, member: usize, extent: Extent, plan: &mut Plan) -> bool {
        self.mend(member, extent, plan)
    }
}

impl GearedLayout {
    /// Translates the rebuild plan of `base` to the addresses of the native units.
    fn plan_native_rebuild(
        &mut self,
        members: &[usize],
        from: Sectors,
        most: Sectors,
        plan: &mut Plan,
    ) -> Sectors {
        plan.clear();
        let end = longest(self, members);
        // A unit outside the native rows is soft state, which the next shift writes, or unused. The
        // rebuild continues at the next native unit.
        let Some(row) = self.map.row_at(from.0 / self.chunk) else {
            let native = (from.0 / self.chunk..end.0 / self.chunk)
                .find(|&unit| self.map.row_at(unit).is_some());
            return native.map_or(end, |unit| Sectors(unit * self.chunk));
        };
        let native = Sectors(row * self.chunk);
        let filled = self
            .base
            .plan_rebuild(members, native, most, &mut self.planned);
        // Rebuild plans address native units, as in the high gear.
        self.translate(Gear::High, plan);
        if filled.0 >= self.map.rows * self.chunk {
            return end;
        }
        let done = Sectors(self.map.native(filled.0 / self.chunk) * self.chunk);
        members
            .iter()
            .for_each(|&member| self.states.fill(member, done.0));
        done
    }

    fn translate(&mut self, gear: Gear, plan: &mut Plan) {
        let place = (self.map, self.chunk, gear);
        let (stale, states, notes) = (&mut self.stale, &self.states, &mut self.notes);
        Transfers::new(place, stale, states, notes, plan, &mut self.open).translate(&self.planned);
    }
}
