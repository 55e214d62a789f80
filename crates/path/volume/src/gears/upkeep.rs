//! Checks of redundancy, and repair of unreadable sectors.

use super::CopiedRows;
use super::layout::GearedLayout;
use super::map::SoftUnit;
use super::transfers::{Transfers, UnitRun, sum_step};
use crate::layout::{Layout as _, Role};
use crate::plan::{BufferPlace, Content, Method, Plan};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::{Lbn, Sectors};

impl GearedLayout {
    fn transfers<'a>(&'a mut self, plan: &'a mut Plan) -> Transfers<'a> {
        let place = (self.map, self.chunk, self.gear);
        Transfers::new(
            place,
            &mut self.stale,
            &self.states,
            &mut self.notes,
            plan,
            &mut self.open,
        )
    }

    /// Plans a check; see [`Gears::plan_check`](super::Gears::plan_check). Native rows come first,
    /// soft rows after them.
    pub(super) fn check(&mut self, from: u64, most: Sectors, plan: &mut Plan) -> Option<u64> {
        plan.clear();
        let (rows, all) = (self.map.rows, self.map.rows + self.map.soft_rows());
        if self.map.parities == 0 || from >= all {
            return None;
        }
        let count = (most.0 / (self.capacities().len() as u64 * self.chunk)).max(1);
        if from < rows {
            let end = (from + count).min(rows);
            (from..end).for_each(|row| self.check_native(row, plan));
            return Some(end);
        }
        let (soft, end) = (from - rows, (from - rows + count).min(all - rows));
        if self.gear.reads_soft() {
            (soft..end).for_each(|soft| self.check_soft(soft, plan));
            return Some(rows + end);
        }
        // In the other gears, the soft state follows from the data of the transient members, except
        // for stale rows.
        let Some(first) = (soft..all - rows).find(|&soft| !self.stale.contains(soft)) else {
            return Some(all);
        };
        let run = (first..all - rows)
            .take(count as usize)
            .take_while(|&soft| !self.stale.contains(soft))
            .count();
        let count = run as u64;
        self.copy(
            CopiedRows {
                first,
                count,
                sectors: Sectors(count * self.map.width() * self.chunk),
            },
            plan,
        );
        Some(rows + first + count)
    }

    fn check_native(&mut self, row: u64, plan: &mut Plan) {
        let (chunk, members) = (self.chunk, self.capacities().len() as u64);
        let unit = Lbn(self.map.native(row) * chunk);
        let is_parity =
            |&member: &u64| matches!(self.role_of(member as usize, unit), Role::Parity { .. });
        let Some(parity) = (0..members).find(is_parity) else {
            return;
        };
        let mut transfers = self.transfers(plan);
        transfers.writer.begin_strand();
        let sum = transfers.sum_of_others(row, parity, 0, chunk, members);
        transfers.writer.begin_second_phase();
        transfers.write_where_it_serves(parity, row, sum);
    }

    fn check_soft(&mut self, soft: u64, plan: &mut Plan) {
        let (chunk, map) = (self.chunk, self.map);
        let Some(parity) = map.parity(soft) else {
            return;
        };
        let mut transfers = self.transfers(plan);
        transfers.writer.begin_strand();
        let place = transfers.writer.scratch(chunk);
        let part = UnitRun {
            offset: 0,
            sectors: chunk,
            place,
            content: Content::Parity,
        };
        transfers.recover(soft, parity, part);
        transfers.writer.begin_second_phase();
        let extent = Extent::new(map.slot(soft) * chunk, chunk);
        transfers.writer.io(
            parity as usize,
            Operation::Write,
            extent,
            place,
            Content::Parity,
        );
    }

    /// Plans a repair; see [`Gears::plan_mend`](super::Gears::plan_mend).
    pub(super) fn mend(&mut self, member: usize, extent: Extent, plan: &mut Plan) -> bool {
        plan.clear();
        let serves = |other: usize| !(self.gear.reads_soft() && self.is_transient(other));
        let mut impaired = self.states.impaired().iter().map(|&other| other as usize);
        if self.map.parities == 0
            || !serves(member)
            || impaired.any(|other| other != member && serves(other))
        {
            return false;
        }
        let mut at = extent.start.0;
        while at < extent.end().0 {
            let (unit, offset) = (at / self.chunk, at % self.chunk);
            let sectors = (self.chunk - offset).min(extent.end().0 - at);
            if !self.mend_unit(member, unit, [offset, sectors], plan) {
                return false;
            }
            at += sectors;
        }
        true
    }

    fn mend_unit(
        &mut self,
        member: usize,
        unit: u64,
        [offset, sectors]: [u64; 2],
        plan: &mut Plan,
    ) -> bool {
        let members = self.capacities().len() as u64;
        let native = self.map.row_at(unit);
        // The last units of a bucket can be without data.
        let holds = |&soft: &u64| match self.map.unit_on(soft, member as u64) {
            SoftUnit::Data(index) => self.map.home(soft, index).is_some(),
            SoftUnit::Parity => true,
        };
        let soft = self
            .map
            .soft_at(unit)
            .filter(|_| !self.is_transient(member))
            .filter(holds);
        let extent = Extent::new(unit * self.chunk + offset, sectors);
        let mut transfers = self.transfers(plan);
        transfers.writer.begin_strand();
        let place = match (native, soft) {
            (Some(row), _) => transfers.sum_of_others(row, member as u64, offset, sectors, members),
            (None, Some(soft)) => {
                let place = transfers.writer.scratch(sectors);
                let part = UnitRun {
                    offset,
                    sectors,
                    place,
                    content: Content::Peer,
                };
                transfers.recover(soft, member as u64, part);
                place
            }
            (None, None) => return false,
        };
        transfers.writer.begin_second_phase();
        transfers
            .writer
            .io(member, Operation::Write, extent, place, Content::Peer);
        true
    }
}

impl Transfers<'_> {
    /// Returns the sum of a native row's units on all members but one. Each unit is read from its
    /// place in this gear.
    fn sum_of_others(
        &mut self,
        row: u64,
        but: u64,
        offset: u64,
        sectors: u64,
        members: u64,
    ) -> BufferPlace {
        let sum = self.writer.scratch(sectors);
        let mut all = Vec::with_capacity(members as usize);
        for member in (0..members).filter(|&member| member != but) {
            let place = self.writer.scratch(sectors);
            self.read(
                member,
                row,
                UnitRun {
                    offset,
                    sectors,
                    place,
                    content: Content::Peer,
                },
            );
            all.push(place);
        }
        self.writer
            .band(row, offset..offset + sectors, Method::Recover);
        for (at, from) in all.into_iter().enumerate() {
            self.writer.step(sum_step(from, sum, sectors, at > 0));
        }
        sum
    }
}
