//! What the planning of all requests to rows shares, and reads: which member
//! I/O is needed in each row, and the sums that bring lost data back.

use super::bands::{Cut, Cuts, Span};
use super::map::{Cell, RowMap};
use super::recovery::Recovery;
use super::row::Row;
use super::stripe_cache::StripeCache;
use crate::plan::{Content, Detail, Method, Place, PlanWriter, Step};
use crate::states::MemberStates;
use fullstroke_contract::{Extent, Operation, Status};
use fullstroke_units::Sectors;

/// A surviving chunk's cut, and where its bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub(super) cell: Cell,
    pub(super) place: Place,
}

/// Plans rows.
#[derive(Debug)]
pub(crate) struct RowPlanner {
    pub(crate) map: RowMap,
    pub(crate) states: MemberStates,
    /// What plans that are timed need not read, if there is such a cache.
    pub(crate) cache: Option<StripeCache>,
    /// Whether reads of all data of a row read its parities too.
    pub(crate) dummy_reads: bool,
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

impl Wanted {
    /// Where the sector `offset` of the data chunk `index` of a row is in the
    /// request's buffer.
    #[inline]
    pub(super) fn place(&self, map: &RowMap, row: u64, index: u64, offset: u64) -> Place {
        debug_assert!(
            index < map.data() && offset < map.chunk,
            "chunk {index} of {} in row {row}, at {offset} of {}",
            map.data(),
            map.chunk
        );
        let lbn = row * map.row_sectors() + index * map.chunk + offset;
        Place::Request(Sectors(lbn - self.begin))
    }
}

impl RowPlanner {
    /// A row as reads see it, which may come at any time.
    pub(super) fn row_to_read(&self, number: u64) -> Row {
        self.row(number, MemberStates::readable)
    }

    /// A row as writes see it, which have it to themselves and come behind what
    /// fills it.
    pub(super) fn row_to_write(&self, number: u64) -> Row {
        self.row(number, MemberStates::writable)
    }

    /// A row that is lost where members are not `filled` up to its end.
    #[inline]
    fn row(&self, number: u64, filled: fn(&MemberStates, usize) -> u64) -> Row {
        let end = (number + 1) * self.map.chunk;
        let impaired = self.states.impaired().iter().copied();
        let lost = impaired.filter(|&member| filled(&self.states, member as usize) < end);
        Row::new(&self.map, number, lost)
    }

    /// The part of the request from `at` that lies in one row.
    pub(super) fn span(&self, wanted: Wanted, at: u64) -> Span {
        debug_assert!(
            wanted.begin <= at && at < wanted.end,
            "sector {at} is not asked for: {wanted:?}"
        );
        let row_sectors = self.map.row_sectors();
        let (row, from) = (at / row_sectors, at % row_sectors);
        Span {
            row,
            from,
            to: row_sectors.min(from + (wanted.end - at)),
        }
    }

    /// Whole rows from `at`.
    pub(super) fn whole_rows(&self, wanted: Wanted, at: u64) -> u64 {
        let row_sectors = self.map.row_sectors();
        if at.is_multiple_of(row_sectors) {
            (wanted.end - at) / row_sectors
        } else {
            0
        }
    }

    /// The cut's extent on the member of a cell.
    #[inline]
    pub(super) fn extent(&self, row: &Row, cut: &Cut) -> Extent {
        Extent::new(row.number * self.map.chunk + cut.from, cut.sectors())
    }

    /// The cut of the data chunk `index`.
    #[inline]
    pub(super) fn data_io(
        &self,
        row: &Row,
        cut: &Cut,
        index: u64,
        place: Place,
        io: Io,
        writer: &mut PlanWriter<'_>,
    ) {
        let member = row.shape.data_member(index) as usize;
        writer.io(
            member,
            io.operation,
            self.extent(row, cut),
            place,
            io.content,
        );
    }

    pub(crate) fn read(
        &self,
        wanted: Wanted,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) -> Status {
        writer.begin_strand();
        let mut at = wanted.begin;
        while at < wanted.end {
            let span = self.span(wanted, at);
            let row = self.row_to_read(span.row);
            writer.enter_row(span.row);
            for cut in Cuts::of(span, self.map.chunk).as_slice() {
                if row.is_broken() {
                    if !self.is_left(&row, cut) {
                        return Status::Lost;
                    }
                    self.read_covered(wanted, &row, cut, writer);
                } else if row.lost().iter().any(|&index| cut.covers(index)) {
                    writer.hold_row(span.row);
                    self.read_and_rebuild(wanted, &row, cut, terms, writer);
                } else {
                    self.read_covered(wanted, &row, cut, writer);
                }
            }
            at += span.to - span.from;
        }
        Status::Done
    }

    /// Whether the data that is covered by the cut of a broken row can be read.
    fn is_left(&self, row: &Row, cut: &Cut) -> bool {
        let end = self.extent(row, cut).end().0;
        let mut members = (cut.first..cut.end).map(|index| row.shape.data_member(index) as usize);
        members.all(|member| end <= self.states.readable(member))
    }

    fn read_covered(&self, wanted: Wanted, row: &Row, cut: &Cut, writer: &mut PlanWriter<'_>) {
        for index in cut.first..cut.end {
            let place = wanted.place(&self.map, row.number, index, cut.from);
            self.data_io(row, cut, index, place, Io::READ_DATA, writer);
        }
        let whole = cut.first == 0 && cut.end == row.data;
        if self.dummy_reads && whole && writer.detail() == Detail::Timing {
            self.read_for_nothing(row, cut, writer);
        }
    }

    /// Reads parity where it is the only one of a row that is not asked for: its
    /// member goes on to the next row without a gap. Bytes need it not.
    fn read_for_nothing(&self, row: &Row, cut: &Cut, writer: &mut PlanWriter<'_>) {
        let extent = self.extent(row, cut);
        for (cell, member) in row.parities() {
            writer.io_for_nothing(member as usize, extent, content_of(cell));
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
                (
                    wanted.place(&self.map, row.number, index, cut.from),
                    Io::READ_DATA,
                )
            } else {
                (writer.scratch(cut.sectors()), Io::READ_PEER)
            };
            match io.content {
                Content::Peer => self.read_peer(row, cut, index, place, writer),
                _ => self.data_io(row, cut, index, place, io, writer),
            }
            terms.push(Term {
                cell: Cell::Data(index),
                place,
            });
        }
        self.read_recovering_parities(row, cut, terms, writer);
        for &index in row.lost().iter().filter(|&&index| cut.covers(index)) {
            let place = wanted.place(&self.map, row.number, index, cut.from);
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

    pub(super) fn read_parity(
        &self,
        row: &Row,
        cut: &Cut,
        cell: Cell,
        member: u64,
        writer: &mut PlanWriter<'_>,
    ) -> Place {
        let place = writer.scratch(cut.sectors());
        self.fetch(
            member as usize,
            self.extent(row, cut),
            place,
            content_of(cell),
            writer,
        );
        place
    }

    /// Reads the cut of the data chunk `index`, which the row's arithmetic needs.
    pub(super) fn read_peer(
        &self,
        row: &Row,
        cut: &Cut,
        index: u64,
        place: Place,
        writer: &mut PlanWriter<'_>,
    ) {
        let member = row.shape.data_member(index) as usize;
        self.fetch(member, self.extent(row, cut), place, Content::Peer, writer);
    }

    /// Reads what the arithmetic needs, as far as the stripe cache does not hold
    /// it.
    fn fetch(
        &self,
        member: usize,
        extent: Extent,
        place: Place,
        content: Content,
        writer: &mut PlanWriter<'_>,
    ) {
        match self.cache_for(writer) {
            None => writer.io(member, Operation::Read, extent, place, content),
            Some(cache) => {
                for part in cache.missing(member, extent) {
                    writer.io(member, Operation::Read, part, place, content);
                }
            }
        }
    }

    /// The stripe cache, where a plan goes by it: a plan for bytes has none but
    /// those that it reads.
    pub(super) fn cache_for(&self, writer: &PlanWriter<'_>) -> Option<&StripeCache> {
        self.cache
            .as_ref()
            .filter(|_| writer.detail() == Detail::Timing)
    }

    /// Reads the row's surviving data, and the parities that bring back the
    /// rest.
    pub(super) fn read_what_is_left(
        &self,
        row: &Row,
        cut: &Cut,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) {
        terms.clear();
        for index in (0..row.data).filter(|&index| !row.has_lost(index)) {
            let place = writer.scratch(cut.sectors());
            self.read_peer(row, cut, index, place, writer);
            terms.push(Term {
                cell: Cell::Data(index),
                place,
            });
        }
        self.read_recovering_parities(row, cut, terms, writer);
    }
}

/// The direction and content of a data chunk's I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct Io {
    operation: Operation,
    content: Content,
}

impl Io {
    const READ_DATA: Io = Io {
        operation: Operation::Read,
        content: Content::Data,
    };
    const READ_PEER: Io = Io {
        operation: Operation::Read,
        content: Content::Peer,
    };
    pub(super) const WRITE_DATA: Io = Io {
        operation: Operation::Write,
        content: Content::Data,
    };
}

pub(super) fn content_of(cell: Cell) -> Content {
    match cell {
        Cell::Data(_) => Content::Peer,
        Cell::P => Content::Parity,
        Cell::Q => Content::SecondParity,
    }
}

/// Computes those of the lost data chunks that are `wanted` from all `terms`,
/// and adds them to these.
pub(super) fn rebuild_into_scratch(
    row: &Row,
    cut: &Cut,
    wanted: impl Fn(u64) -> bool,
    terms: &mut Vec<Term>,
    writer: &mut PlanWriter<'_>,
) {
    let left = terms.len();
    for &index in row.lost().iter().filter(|&&index| wanted(index)) {
        let place = writer.scratch(cut.sectors());
        rebuild(row, cut, index, place, &terms[..left], writer);
        terms.push(Term {
            cell: Cell::Data(index),
            place,
        });
    }
}

/// Computes the lost data chunk `index` from all `terms`.
pub(super) fn rebuild(
    row: &Row,
    cut: &Cut,
    index: u64,
    into: Place,
    terms: &[Term],
    writer: &mut PlanWriter<'_>,
) {
    let recovery = Recovery::of(row, index);
    debug_assert!(
        row.has_lost(index) && !terms.is_empty(),
        "chunk {index} of row {} is computed, and is not lost, or from nothing",
        row.number
    );
    for (count, term) in terms.iter().enumerate() {
        let coefficient = recovery.coefficient(row, term.cell);
        let sectors = Sectors(cut.sectors());
        writer.step(Step {
            coefficient,
            from: term.place,
            into,
            sectors,
            accumulate: count > 0,
        });
    }
}
