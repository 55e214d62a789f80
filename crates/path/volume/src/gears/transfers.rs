//! Translates a plan of the array of all members to the places of its units in the present gear.

use super::Gear;
use super::map::{GearMap, SoftUnit};
use super::stale::StaleRows;
use crate::plan::{
    BufferPlace, Content, MemoryPiece, Method, OpenIos, ParityStep, Plan, PlanWriter,
};
use crate::states::MemberStates;
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::Sectors;

/// A run of sectors within one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitRun {
    /// Number of sectors from the beginning of the unit.
    pub(super) offset: u64,
    pub(super) sectors: u64,
    pub(super) place: BufferPlace,
    pub(super) content: Content,
}

/// A write of a transient member's unit.
#[derive(Clone, Copy, Debug)]
struct Write {
    soft: u64,
    index: u64,
    part: UnitRun,
    /// Place of the old content of the soft state.
    old: Option<BufferPlace>,
}

/// The new parity of a soft row.
#[derive(Clone, Copy, Debug)]
struct SoftParity {
    soft: u64,
    from: u64,
    end: u64,
    place: BufferPlace,
}

/// Working memory for the translation of a strand.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// Parts of the soft state in the read phase: row, index, part.
    reads: Vec<(u64, u64, UnitRun)>,
    writes: Vec<Write>,
    parities: Vec<SoftParity>,
}

/// The translation of one plan; see the module.
pub(super) struct Transfers<'a> {
    map: GearMap,
    chunk: u64,
    gear: Gear,
    stale: &'a mut StaleRows,
    states: &'a MemberStates,
    notes: &'a mut Notes,
    pub(super) writer: PlanWriter<'a>,
}

impl<'a> Transfers<'a> {
    pub(super) fn new(
        (map, chunk, gear): (GearMap, u64, Gear),
        stale: &'a mut StaleRows,
        states: &'a MemberStates,
        notes: &'a mut Notes,
        plan: &'a mut Plan,
        open: &'a mut OpenIos,
    ) -> Transfers<'a> {
        Transfers {
            map,
            chunk,
            gear,
            stale,
            states,
            notes,
            writer: PlanWriter::new(plan, open),
        }
    }

    /// Translates all strands of the array's plan. Its scratch buffer comes first in the new
    /// scratch buffer.
    pub(super) fn translate(&mut self, plan: &Plan) {
        self.writer.scratch(plan.scratch().0);
        let mut pieces = plan.pieces();
        for (index, strand) in plan.strands().iter().enumerate() {
            let end =
                pieces.partition_point(|piece| (piece.io as usize) < strand.second_phase().end);
            let (own, rest) = pieces.split_at(end);
            self.strand(plan, index, own);
            pieces = rest;
        }
    }

    fn strand(&mut self, plan: &Plan, index: usize, pieces: &[MemoryPiece]) {
        self.writer.begin_strand();
        self.hold_rows(plan, pieces);
        self.notes.reads.clear();
        self.notes.writes.clear();
        self.notes.parities.clear();
        let is_read =
            |piece: &&MemoryPiece| plan.ios()[piece.io as usize].operation == Operation::Read;
        for piece in pieces.iter().filter(is_read) {
            self.each_part(plan, piece, Transfers::read);
        }
        for piece in pieces.iter().filter(|piece| !is_read(piece)) {
            self.each_part(plan, piece, Transfers::note_write);
        }
        self.read_what_parity_needs();
        // The array's arithmetic turns old parity into new parity in place. The old content must
        // therefore leave the soft parity before this arithmetic, and the new content enters after
        // it.
        self.change_parities(|write| write.old);
        for band in plan
            .bands()
            .iter()
            .filter(|band| band.strand as usize == index)
        {
            self.writer.band(
                band.row,
                band.from.0..band.from.0 + band.sectors.0,
                band.method,
            );
            plan.steps(band)
                .iter()
                .for_each(|step| self.writer.step(*step));
        }
        self.change_parities(|write| Some(write.part.place));
        self.writer.begin_second_phase();
        for piece in pieces.iter().filter(|piece| !is_read(piece)) {
            self.each_part(plan, piece, Transfers::write_native);
        }
        self.write_soft();
    }

    /// Reserves the soft rows of a writing strand. Two strands that share a native row also share
    /// its soft rows; the reservation keeps them apart.
    fn hold_rows(&mut self, plan: &Plan, pieces: &[MemoryPiece]) {
        let writes =
            |piece: &MemoryPiece| plan.ios()[piece.io as usize].operation != Operation::Read;
        let first = pieces.iter().map(|piece| piece.lbn.0 / self.chunk).min();
        let last = pieces
            .iter()
            .map(|piece| (piece.lbn.0 + piece.sectors.0 - 1) / self.chunk)
            .max();
        if let (Some(first), Some(last), true) = (first, last, pieces.iter().any(writes)) {
            let (first_soft, last_soft) = self.map.soft_rows_of(first, last);
            self.writer.enter_row(first);
            self.writer.hold_row(first_soft);
            self.writer.hold_row(last_soft);
        }
    }

    /// Cuts a piece at the ends of units and calls `take` with member, row and part.
    fn each_part(
        &mut self,
        plan: &Plan,
        piece: &MemoryPiece,
        mut take: impl FnMut(&mut Self, u64, u64, UnitRun),
    ) {
        let member = u64::from(plan.ios()[piece.io as usize].member);
        let (mut at, end) = (piece.lbn.0, piece.lbn.0 + piece.sectors.0);
        while at < end {
            let (row, offset) = (at / self.chunk, at % self.chunk);
            let sectors = (self.chunk - offset).min(end - at);
            let place = piece.place.behind(Sectors(at - piece.lbn.0));
            take(
                self,
                member,
                row,
                UnitRun {
                    offset,
                    sectors,
                    place,
                    content: piece.content,
                },
            );
            at += sectors;
        }
    }

    fn native(&self, row: u64, part: &UnitRun) -> Extent {
        Extent::new(
            self.map.native(row) * self.chunk + part.offset,
            part.sectors,
        )
    }

    fn slot(&self, soft: u64, offset: u64, sectors: u64) -> Extent {
        Extent::new(self.map.slot(soft) * self.chunk + offset, sectors)
    }

    fn soft_of(&self, member: u64, row: u64) -> Option<(u64, u64)> {
        let transient = member.checked_sub(self.map.active)?;
        Some(self.map.soft(row, transient))
    }

    pub(super) fn read(&mut self, member: u64, row: u64, part: UnitRun) {
        match self.soft_of(member, row) {
            Some((soft, index)) if self.gear.reads_soft() => self.read_soft(soft, index, part),
            _ => {
                let extent = self.native(row, &part);
                self.writer.io(
                    member as usize,
                    Operation::Read,
                    extent,
                    part.place,
                    part.content,
                );
            }
        }
    }

    /// Reads a unit of the soft state, or computes the unit from the rest of its row.
    pub(super) fn read_soft(&mut self, soft: u64, index: u64, part: UnitRun) {
        let member = self.map.member(soft, index);
        let lost = self.map.parities > 0 && !self.holds(member);
        if lost {
            self.recover(soft, member, part);
        } else {
            let extent = self.slot(soft, part.offset, part.sectors);
            self.writer.io(
                member as usize,
                Operation::Read,
                extent,
                part.place,
                part.content,
            );
        }
        self.notes.reads.push((soft, index, part));
    }

    fn holds(&self, member: u64) -> bool {
        self.states.readable(member as usize) == u64::MAX
    }

    pub(super) fn recover(&mut self, soft: u64, lost: u64, part: UnitRun) {
        let mut sum = Vec::with_capacity(self.map.active as usize);
        for member in (0..self.map.active).filter(|&member| member != lost) {
            let content = match self.map.unit_on(soft, member) {
                SoftUnit::Parity => Content::Parity,
                SoftUnit::Data(index) if self.map.home(soft, index).is_some() => Content::Peer,
                SoftUnit::Data(_) => continue,
            };
            let place = self.writer.scratch(part.sectors);
            let extent = self.slot(soft, part.offset, part.sectors);
            self.writer
                .io(member as usize, Operation::Read, extent, place, content);
            sum.push(place);
        }
        self.writer.band(
            soft,
            part.offset..part.offset + part.sectors,
            Method::Recover,
        );
        for (at, from) in sum.into_iter().enumerate() {
            self.writer
                .step(sum_step(from, part.place, part.sectors, at > 0));
        }
    }

    /// Returns the targets of a write of a transient member: true for its home, true for the soft
    /// state.
    fn goes(&self, soft: u64) -> (bool, bool) {
        let stale = self.stale.contains(soft);
        match self.gear {
            Gear::High => (true, false),
            Gear::Falling => (true, !stale),
            Gear::Low => (false, true),
            Gear::Rising => (!stale, true),
        }
    }

    fn note_write(&mut self, member: u64, row: u64, part: UnitRun) {
        let Some((soft, index)) = self.soft_of(member, row) else {
            return;
        };
        if self.goes(soft).1 {
            self.notes.writes.push(Write {
                soft,
                index,
                part,
                old: None,
            });
        }
        if matches!(self.gear, Gear::High | Gear::Low) {
            self.stale.insert(soft);
        }
    }

    /// Reads old soft data and old parity, for soft rows with a whole parity member.
    fn read_what_parity_needs(&mut self) {
        for at in 0..self.notes.writes.len() {
            let Write {
                soft, index, part, ..
            } = self.notes.writes[at];
            let Some(parity) = self.map.parity(soft).filter(|&parity| self.holds(parity)) else {
                continue;
            };
            self.notes.writes[at].old = Some(self.old(soft, index, &part));
            let (from, end) = (part.offset, part.offset + part.sectors);
            match self
                .notes
                .parities
                .iter_mut()
                .find(|other| other.soft == soft)
            {
                Some(other) => (other.from, other.end) = (other.from.min(from), other.end.max(end)),
                None => {
                    // A placeholder: the scratch buffer is reserved below, when the whole range is
                    // known.
                    let place = BufferPlace::Scratch(Sectors(parity));
                    self.notes.parities.push(SoftParity {
                        soft,
                        from,
                        end,
                        place,
                    });
                }
            }
        }
        for at in 0..self.notes.parities.len() {
            let SoftParity {
                soft, from, end, ..
            } = self.notes.parities[at];
            let place = self.writer.scratch(end - from);
            let Some(member) = self.map.parity(soft) else {
                continue;
            };
            let extent = self.slot(soft, from, end - from);
            self.writer.io(
                member as usize,
                Operation::Read,
                extent,
                place,
                Content::Parity,
            );
            self.notes.parities[at].place = place;
        }
    }

    /// Returns the place of a part's old soft data. If the array's own parity needed the data, it
    /// has been read already; otherwise this call reads it.
    fn old(&mut self, soft: u64, index: u64, part: &UnitRun) -> BufferPlace {
        let covers = |read: &UnitRun| {
            read.offset <= part.offset && part.offset + part.sectors <= read.offset + read.sectors
        };
        let found = self
            .notes
            .reads
            .iter()
            .find(|(row, at, read)| (*row, *at) == (soft, index) && covers(read));
        if let Some((_, _, read)) = found {
            return read.place.behind(Sectors(part.offset - read.offset));
        }
        let place = self.writer.scratch(part.sectors);
        self.read_soft(
            soft,
            index,
            UnitRun {
                place,
                content: Content::Peer,
                ..*part
            },
        );
        place
    }

    /// Adds one place of each write to the parity of its soft row. `what` returns the place.
    fn change_parities(&mut self, what: impl Fn(&Write) -> Option<BufferPlace>) {
        for write in &self.notes.writes {
            let parity = self
                .notes
                .parities
                .iter()
                .find(|parity| parity.soft == write.soft);
            let (Some(parity), Some(from)) = (parity, what(write)) else {
                continue;
            };
            let UnitRun {
                offset, sectors, ..
            } = write.part;
            let into = parity.place.behind(Sectors(offset - parity.from));
            self.writer.band(
                write.soft,
                offset..offset + sectors,
                Method::ReadModifyWrite,
            );
            self.writer.step(sum_step(from, into, sectors, true));
        }
    }

    fn write_native(&mut self, member: u64, row: u64, part: UnitRun) {
        let goes = self
            .soft_of(member, row)
            .is_none_or(|(soft, _)| self.goes(soft).0);
        // A transient member that failed in the low gear is missing after the shift.
        let gone = self.gear == Gear::Rising
            && member >= self.map.active
            && self.states.has_failed(member as usize);
        if goes && !gone {
            let extent = self.native(row, &part);
            self.writer.io(
                member as usize,
                Operation::Write,
                extent,
                part.place,
                part.content,
            );
        }
    }

    /// Writes a whole unit of parity to its place in this gear.
    pub(super) fn write_where_it_serves(&mut self, member: u64, row: u64, place: BufferPlace) {
        let part = UnitRun {
            offset: 0,
            sectors: self.chunk,
            place,
            content: Content::Parity,
        };
        let (member, extent) = match self.soft_of(member, row).filter(|_| self.gear.reads_soft()) {
            Some((soft, index)) => (self.map.member(soft, index), self.slot(soft, 0, self.chunk)),
            None => (member, self.native(row, &part)),
        };
        self.writer.io(
            member as usize,
            Operation::Write,
            extent,
            place,
            part.content,
        );
    }

    fn write_soft(&mut self) {
        for at in 0..self.notes.writes.len() {
            let Write {
                soft, index, part, ..
            } = self.notes.writes[at];
            let member = self.map.member(soft, index);
            let protected = self
                .map
                .parity(soft)
                .is_some_and(|parity| self.holds(parity));
            // The parity represents the data of a member that does not hold its soft state. Without
            // such parity the write is planned nevertheless, and the request ends as lost.
            if self.holds(member) || !protected {
                let extent = self.slot(soft, part.offset, part.sectors);
                self.writer.io(
                    member as usize,
                    Operation::Write,
                    extent,
                    part.place,
                    part.content,
                );
            }
        }
        for at in 0..self.notes.parities.len() {
            let SoftParity {
                soft,
                from,
                end,
                place,
            } = self.notes.parities[at];
            let Some(member) = self.map.parity(soft) else {
                continue;
            };
            let extent = self.slot(soft, from, end - from);
            self.writer.io(
                member as usize,
                Operation::Write,
                extent,
                place,
                Content::Parity,
            );
        }
    }
}

/// Returns the step `into = from`, or `into += from`.
pub(super) fn sum_step(
    from: BufferPlace,
    into: BufferPlace,
    sectors: u64,
    accumulate: bool,
) -> ParityStep {
    ParityStep {
        coefficient: 1,
        from,
        into,
        sectors: Sectors(sectors),
        accumulate,
    }
}
