//! Copies of stale rows, in the direction of a shift.

use super::layout::GearedLayout;
use super::map::SoftUnit;
use super::transfers::{Notes, Transfers, UnitRun, sum_step};
use super::{CopiedRows, Gear};
use crate::plan::{BufferPlace, Content, Method, Plan};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::Sectors;

impl GearedLayout {
    /// Plans the copy of whole rows. Parity is then computed without the old parity.
    pub(super) fn copy(&mut self, rows: CopiedRows, plan: &mut Plan) {
        let (map, chunk, gear) = (self.map, self.chunk, self.gear);
        let mut notes = Notes::default();
        let transfers = Transfers::new(
            (map, chunk, gear),
            &mut self.stale,
            &self.states,
            &mut notes,
            plan,
            &mut self.open,
        );
        let mut copy = Copy {
            map,
            chunk,
            rows,
            states: &self.states,
            transfers,
            data: 0,
            parity: 0,
        };
        copy.run(gear);
    }
}

struct Copy<'a> {
    map: super::GearMap,
    chunk: u64,
    rows: CopiedRows,
    states: &'a crate::MemberStates,
    transfers: Transfers<'a>,
    /// Offset in the scratch buffer of the rows' data. The field `parity` is the offset of the
    /// rows' parities.
    data: u64,
    parity: u64,
}

impl Copy<'_> {
    fn run(&mut self, gear: Gear) {
        let last = self.last();
        let writer = &mut self.transfers.writer;
        writer.begin_strand();
        // Writes to these soft rows must wait until the copy is complete.
        writer.hold_row(self.rows.first);
        writer.hold_row(last);
        self.data = at(writer.scratch(self.rows.count * self.map.width() * self.chunk));
        self.parity = at(writer.scratch(self.rows.count * self.map.parities * self.chunk));
        match gear {
            Gear::Rising => {
                self.soft(Operation::Read);
                self.transfers.writer.begin_second_phase();
                self.home(Operation::Write);
            }
            _ => {
                self.home(Operation::Read);
                self.sum();
                self.transfers.writer.begin_second_phase();
                self.soft(Operation::Write);
            }
        }
    }

    fn last(&self) -> u64 {
        self.rows.first + self.rows.count - 1
    }

    fn place(&self, soft: u64, index: u64) -> BufferPlace {
        BufferPlace::Scratch(Sectors(
            self.data + ((soft - self.rows.first) * self.map.width() + index) * self.chunk,
        ))
    }

    fn parity_place(&self, soft: u64) -> BufferPlace {
        BufferPlace::Scratch(Sectors(self.parity + (soft - self.rows.first) * self.chunk))
    }

    fn unit(&self, unit: u64) -> Extent {
        Extent::new(unit * self.chunk, self.chunk)
    }

    /// Adds the I/O of the transient members that are alive, each from front to back.
    fn home(&mut self, operation: Operation) {
        for transient in 0..self.map.transient {
            let member = (self.map.active + transient) as usize;
            // A failed member gets its data later, from the rebuild.
            if operation == Operation::Write && self.states.has_failed(member) {
                continue;
            }
            for row in self.map.rows_of(self.rows.first, self.last()) {
                let (soft, index) = self.map.soft(row, transient);
                if (self.rows.first..=self.last()).contains(&soft) {
                    let (extent, place) =
                        (self.unit(self.map.native(row)), self.place(soft, index));
                    self.transfers
                        .writer
                        .io(member, operation, extent, place, Content::Peer);
                }
            }
        }
    }

    /// Adds the I/O of the active members, each from front to back. Lost units are computed.
    fn soft(&mut self, operation: Operation) {
        for member in 0..self.map.active {
            for soft in self.rows.first..=self.last() {
                let extent = self.unit(self.map.slot(soft));
                match self.map.unit_on(soft, member) {
                    // The last soft row of a bucket may have units without data.
                    SoftUnit::Data(index) if self.map.home(soft, index).is_none() => {}
                    SoftUnit::Data(index) if operation == Operation::Read => {
                        let place = self.place(soft, index);
                        let part = UnitRun {
                            offset: 0,
                            sectors: self.chunk,
                            place,
                            content: Content::Peer,
                        };
                        self.transfers.read_soft(soft, index, part);
                    }
                    SoftUnit::Data(index) => {
                        let place = self.place(soft, index);
                        self.transfers.writer.io(
                            member as usize,
                            operation,
                            extent,
                            place,
                            Content::Peer,
                        );
                    }
                    SoftUnit::Parity if operation == Operation::Write => {
                        let place = self.parity_place(soft);
                        self.transfers.writer.io(
                            member as usize,
                            operation,
                            extent,
                            place,
                            Content::Parity,
                        );
                    }
                    SoftUnit::Parity => {}
                }
            }
        }
    }

    fn sum(&mut self) {
        for soft in self.rows.first..=self.last() {
            if self.map.parities == 0 {
                return;
            }
            let held = (0..self.map.width()).filter(|&index| self.map.home(soft, index).is_some());
            let held: Vec<u64> = held.collect();
            self.transfers
                .writer
                .band(soft, 0..self.chunk, Method::FullStripe);
            for (at, index) in held.into_iter().enumerate() {
                let (from, into) = (self.place(soft, index), self.parity_place(soft));
                self.transfers
                    .writer
                    .step(sum_step(from, into, self.chunk, at > 0));
            }
        }
    }
}

fn at(place: BufferPlace) -> u64 {
    match place {
        BufferPlace::Request(at) | BufferPlace::Scratch(at) => at.0,
    }
}
