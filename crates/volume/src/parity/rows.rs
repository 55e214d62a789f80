//! Plans rows: which member I/O a request needs in each, and the sums between.

use super::bands::{Cut, Cuts, Span};
use super::choice;
use super::geometry::{Cell, Geometry};
use super::recovery::Recovery;
use super::row::Row;
use crate::gf256::power;
use crate::members::Failed;
use crate::plan::{Content, Method, Place, PlanWriter, Step};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::Sectors;

/// A surviving chunk's cut, and where its bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    cell: Cell,
    place: Place,
}

/// Plans rows.
#[derive(Debug)]
pub(crate) struct RowPlanner {
    pub(crate) geometry: Geometry,
    pub(crate) failed: Failed,
}

/// A request, as the planning of rows needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) operation: Operation,
    /// The first of the volume's sectors.
    pub(crate) begin: u64,
    /// The sector behind the last.
    pub(crate) end: u64,
}

/// Where the new parities of a cut are.
type NewParity = [Place; 2];

impl Wanted {
    /// Where the sector `offset` of the data chunk `index` of a row is in the
    /// request's buffer.
    #[inline]
    fn place(&self, geometry: &Geometry, row: u64, index: u64, offset: u64) -> Place {
        let lbn = row * geometry.row_sectors() + index * geometry.chunk + offset;
        Place::Request(Sectors(lbn - self.begin))
    }
}

impl RowPlanner {
    fn row(&self, number: u64) -> Row {
        Row::new(&self.geometry, &self.failed, number)
    }

    /// The part of the request from `at` that lies in one row.
    fn span(&self, wanted: Wanted, at: u64) -> Span {
        let row_sectors = self.geometry.row_sectors();
        let (row, from) = (at / row_sectors, at % row_sectors);
        Span { row, from, to: row_sectors.min(from + (wanted.end - at)) }
    }

    /// Whole rows from `at`.
    fn whole_rows(&self, wanted: Wanted, at: u64) -> u64 {
        let row_sectors = self.geometry.row_sectors();
        if at.is_multiple_of(row_sectors) { (wanted.end - at) / row_sectors } else { 0 }
    }

    /// The cut's extent on the member of a cell.
    #[inline]
    fn extent(&self, row: &Row, cut: &Cut) -> Extent {
        Extent::new(row.number * self.geometry.chunk + cut.from, cut.sectors())
    }

    /// The cut of the data chunk `index`.
    #[inline]
    fn data_io(&self, row: &Row, cut: &Cut, index: u64, place: Place, io: Io, writer: &mut PlanWriter<'_>) {
        let member = row.shape.data_member(index) as usize;
        writer.io(member, io.operation, self.extent(row, cut), place, io.content);
    }

    // Reads.

    pub(crate) fn read(&self, wanted: Wanted, terms: &mut Vec<Term>, writer: &mut PlanWriter<'_>) {
        writer.begin_strand();
        let mut at = wanted.begin;
        while at < wanted.end {
            let span = self.span(wanted, at);
            let row = self.row(span.row);
            writer.enter_row(span.row);
            for cut in Cuts::of(span, self.geometry.chunk).as_slice() {
                if row.lost().iter().any(|&index| cut.covers(index)) {
                    writer.hold_row(span.row);
                    self.read_and_rebuild(wanted, &row, cut, terms, writer);
                } else {
                    self.read_covered(wanted, &row, cut, writer);
                }
            }
            at += span.to - span.from;
        }
    }

    fn read_covered(&self, wanted: Wanted, row: &Row, cut: &Cut, writer: &mut PlanWriter<'_>) {
        for index in cut.first..cut.end {
            let place = wanted.place(&self.geometry, row.number, index, cut.from);
            self.data_io(row, cut, index, place, Io::READ_DATA, writer);
        }
    }

    /// Reads what is left of the row: what the request asks for into its own
    /// buffer, whence the sum for the lost chunks takes it too.
    fn read_and_rebuild(
        &self,
        wanted: Wanted,
        row: &Row,
        cut: &Cut,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) {
        writer.band(row.number, cut.offsets(), Method::Recover);
        terms.clear();
        for index in (0..row.data).filter(|&index| !row.has_lost(index)) {
            let (place, io) = if cut.covers(index) {
                (wanted.place(&self.geometry, row.number, index, cut.from), Io::READ_DATA)
            } else {
                (writer.scratch(cut.sectors()), Io::READ_PEER)
            };
            self.data_io(row, cut, index, place, io, writer);
            terms.push(Term { cell: Cell::Data(index), place });
        }
        self.read_recovering_parities(row, cut, terms, writer);
        for &index in row.lost().iter().filter(|&&index| cut.covers(index)) {
            let place = wanted.place(&self.geometry, row.number, index, cut.from);
            rebuild(row, cut, index, place, terms, writer);
        }
    }

    fn read_recovering_parities(
        &self,
        row: &Row,
        cut: &Cut,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) {
        for (cell, member) in row.recovering_parities() {
            let place = self.read_parity(row, cut, cell, member, writer);
            terms.push(Term { cell, place });
        }
    }

    fn read_parity(
        &self,
        row: &Row,
        cut: &Cut,
        cell: Cell,
        member: u64,
        writer: &mut PlanWriter<'_>,
    ) -> Place {
        let place = writer.scratch(cut.sectors());
        writer.io(member as usize, Operation::Read, self.extent(row, cut), place, content_of(cell));
        place
    }

    // Writes.

    pub(crate) fn write(&self, wanted: Wanted, terms: &mut Vec<Term>, writer: &mut PlanWriter<'_>) {
        let mut at = wanted.begin;
        while at < wanted.end {
            let whole = self.whole_rows(wanted, at);
            if whole > 0 {
                let first = at / self.geometry.row_sectors();
                self.write_whole_rows(wanted, first, whole, writer);
                at += whole * self.geometry.row_sectors();
            } else {
                let span = self.span(wanted, at);
                self.write_part(wanted, span, terms, writer);
                at += span.to - span.from;
            }
        }
    }

    fn write_whole_rows(&self, wanted: Wanted, first: u64, count: u64, writer: &mut PlanWriter<'_>) {
        let cut = Cut { from: 0, to: self.geometry.chunk, first: 0, end: self.geometry.data() };
        writer.begin_strand();
        for number in first..first + count {
            let row = self.row(number);
            writer.enter_row(number);
            writer.hold_row(number);
            let protected = row.parities().next().is_some();
            let method = if protected { Method::FullStripe } else { Method::Unprotected };
            let parity = self.sum_new_and_rest(wanted, &row, &cut, method, writer);
            self.write_cut(wanted, &row, &cut, parity, writer);
        }
    }

    fn write_part(&self, wanted: Wanted, span: Span, terms: &mut Vec<Term>, writer: &mut PlanWriter<'_>) {
        let row = self.row(span.row);
        let cuts = Cuts::of(span, self.geometry.chunk);
        let methods = choice::choose(&row, cuts.as_slice());
        let mut parities = [[Place::Scratch(Sectors::ZERO); 2]; Cuts::MOST];
        writer.begin_strand();
        writer.enter_row(span.row);
        writer.hold_row(span.row);
        for ((cut, method), parity) in cuts.as_slice().iter().zip(methods).zip(&mut parities) {
            *parity = match method {
                Method::ReadModifyWrite => self.modify(wanted, &row, cut, writer),
                Method::Recover => self.recover_and_sum(wanted, &row, cut, terms, writer),
                _ => self.sum_new_and_rest(wanted, &row, cut, method, writer),
            };
        }
        writer.begin_second_phase();
        for (cut, parity) in cuts.as_slice().iter().zip(parities) {
            self.write_cut(wanted, &row, cut, parity, writer);
        }
    }

    /// Read-modify-write: reads old parity and old data.
    fn modify(&self, wanted: Wanted, row: &Row, cut: &Cut, writer: &mut PlanWriter<'_>) -> NewParity {
        writer.band(row.number, cut.offsets(), Method::ReadModifyWrite);
        let mut parity = [Place::Scratch(Sectors::ZERO); 2];
        for ((cell, member), place) in row.parities().zip(&mut parity) {
            *place = self.read_parity(row, cut, cell, member, writer);
        }
        for index in cut.first..cut.end {
            let old = writer.scratch(cut.sectors());
            self.data_io(row, cut, index, old, Io::READ_PEER, writer);
            let new = wanted.place(&self.geometry, row.number, index, cut.from);
            add_to_parities(row, cut, index, old, &parity, true, writer);
            add_to_parities(row, cut, index, new, &parity, true, writer);
        }
        parity
    }

    /// Full-stripe and reconstruct-write: reads the data that stays, if any.
    /// Unprotected: reads and sums nothing.
    fn sum_new_and_rest(
        &self,
        wanted: Wanted,
        row: &Row,
        cut: &Cut,
        method: Method,
        writer: &mut PlanWriter<'_>,
    ) -> NewParity {
        writer.band(row.number, cut.offsets(), method);
        let parity = new_parities(cut, writer);
        if method == Method::Unprotected {
            return parity;
        }
        for index in 0..row.data {
            let place = if cut.covers(index) {
                wanted.place(&self.geometry, row.number, index, cut.from)
            } else {
                let rest = writer.scratch(cut.sectors());
                self.data_io(row, cut, index, rest, Io::READ_PEER, writer);
                rest
            };
            add_to_parities(row, cut, index, place, &parity, index > 0, writer);
        }
        parity
    }

    /// Reads everything that is left, computes the lost data that stays, and
    /// sums up.
    fn recover_and_sum(
        &self,
        wanted: Wanted,
        row: &Row,
        cut: &Cut,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) -> NewParity {
        writer.band(row.number, cut.offsets(), Method::Recover);
        terms.clear();
        for index in (0..row.data).filter(|&index| !row.has_lost(index)) {
            let place = writer.scratch(cut.sectors());
            self.data_io(row, cut, index, place, Io::READ_PEER, writer);
            terms.push(Term { cell: Cell::Data(index), place });
        }
        self.read_recovering_parities(row, cut, terms, writer);
        let surviving = terms.len();
        for &index in row.lost().iter().filter(|&&index| !cut.covers(index)) {
            let place = writer.scratch(cut.sectors());
            rebuild(row, cut, index, place, &terms[..surviving], writer);
            terms.push(Term { cell: Cell::Data(index), place });
        }
        self.sum_terms_and_new(wanted, row, cut, terms, writer)
    }

    fn sum_terms_and_new(
        &self,
        wanted: Wanted,
        row: &Row,
        cut: &Cut,
        terms: &[Term],
        writer: &mut PlanWriter<'_>,
    ) -> NewParity {
        let parity = new_parities(cut, writer);
        let staying = terms.iter().filter_map(|term| match term.cell {
            Cell::Data(index) if !cut.covers(index) => Some((index, term.place)),
            _ => None,
        });
        let new = (cut.first..cut.end)
            .map(|index| (index, wanted.place(&self.geometry, row.number, index, cut.from)));
        for (count, (index, place)) in staying.chain(new).enumerate() {
            add_to_parities(row, cut, index, place, &parity, count > 0, writer);
        }
        parity
    }

    /// Writes new data and parity to the members that are left.
    fn write_cut(
        &self,
        wanted: Wanted,
        row: &Row,
        cut: &Cut,
        parity: NewParity,
        writer: &mut PlanWriter<'_>,
    ) {
        for index in (cut.first..cut.end).filter(|&index| !row.has_lost(index)) {
            let place = wanted.place(&self.geometry, row.number, index, cut.from);
            self.data_io(row, cut, index, place, Io::WRITE_DATA, writer);
        }
        for ((cell, member), place) in row.parities().zip(parity) {
            writer.io(member as usize, Operation::Write, self.extent(row, cut), place, content_of(cell));
        }
    }

    // Discards.

    /// Discards whole rows with their parity: zeros are a consistent row.
    /// Forgetting part of a row would make its parity a lie.
    pub(crate) fn discard(&self, wanted: Wanted, writer: &mut PlanWriter<'_>) {
        let row_sectors = self.geometry.row_sectors();
        let (first, end) = (wanted.begin.div_ceil(row_sectors), wanted.end / row_sectors);
        if first >= end {
            return;
        }
        writer.begin_strand();
        writer.enter_row(first);
        writer.hold_row(first);
        writer.hold_row(end - 1);
        let chunk = self.geometry.chunk;
        let extent = Extent::new(first * chunk, (end - first) * chunk);
        for member in (0..self.geometry.members as usize).filter(|&member| !self.failed.has(member)) {
            writer.io(member, wanted.operation, extent, Place::Scratch(Sectors::ZERO), Content::Data);
        }
    }
}

/// The direction and content of a data chunk's I/O.
#[derive(Clone, Copy, Debug)]
struct Io {
    operation: Operation,
    content: Content,
}

impl Io {
    const READ_DATA: Io = Io { operation: Operation::Read, content: Content::Data };
    const READ_PEER: Io = Io { operation: Operation::Read, content: Content::Peer };
    const WRITE_DATA: Io = Io { operation: Operation::Write, content: Content::Data };
}

fn content_of(cell: Cell) -> Content {
    match cell {
        Cell::Data(_) => Content::Peer,
        Cell::P => Content::Parity,
        Cell::Q => Content::SecondParity,
    }
}

fn new_parities(cut: &Cut, writer: &mut PlanWriter<'_>) -> NewParity {
    [writer.scratch(cut.sectors()), writer.scratch(cut.sectors())]
}

/// Adds the data chunk `index`, whose bytes are at `from`, to the parities that
/// are left; in the order of [`Row::parities`].
fn add_to_parities(
    row: &Row,
    cut: &Cut,
    index: u64,
    from: Place,
    parity: &NewParity,
    accumulate: bool,
    writer: &mut PlanWriter<'_>,
) {
    for ((cell, _), &into) in row.parities().zip(parity) {
        let coefficient = if cell == Cell::Q { power(row.shape.exponent(index)) } else { 1 };
        writer.step(Step { coefficient, from, into, sectors: Sectors(cut.sectors()), accumulate });
    }
}

/// Computes the lost data chunk `index` from all `terms`.
fn rebuild(row: &Row, cut: &Cut, index: u64, into: Place, terms: &[Term], writer: &mut PlanWriter<'_>) {
    let recovery = Recovery::of(row, index);
    for (count, term) in terms.iter().enumerate() {
        let coefficient = recovery.coefficient(row, term.cell);
        let sectors = Sectors(cut.sectors());
        writer.step(Step { coefficient, from: term.place, into, sectors, accumulate: count > 0 });
    }
}
