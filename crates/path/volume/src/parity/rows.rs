//! The common planning of requests on rows, and the planning of reads: the member I/O in each row,
//! and the sums for the recovery of lost data.

use super::bands::{BandCut, BandCuts, RowBand};
use super::map::{ChunkContent, RowMap};
use super::recovery::Recovery;
use super::row::ParityRow;
use super::stripe_cache::StripeCache;
use crate::plan::{BufferPlace, Content, Detail, Method, ParityStep, PlanWriter};
use crate::states::MemberStates;
use fullstroke_contract::{Extent, Operation, RequestStatus};
use fullstroke_units::Sectors;

/// The cut of a surviving chunk, and the place of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub(super) cell: ChunkContent,
    pub(super) place: BufferPlace,
}

/// Plans the member I/O of rows.
#[derive(Debug)]
pub(crate) struct RowPlanner {
    pub(crate) map: RowMap,
    pub(crate) states: MemberStates,
    /// Stripe cache, if configured. Plans for timing leave out reads of sectors in the cache.
    pub(crate) cache: Option<StripeCache>,
    /// True if reads of all data of a row also read its parities.
    pub(crate) dummy_reads: bool,
}

/// A request in the form for the planning of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRequest {
    pub(crate) operation: Operation,
    /// First sector of the volume.
    pub(crate) begin: u64,
    /// Sector after the last sector.
    pub(crate) end: u64,
}

impl RowRequest {
    /// Returns the place in the request's buffer of the sector `offset` of the data chunk `index`
    /// of a row.
    #[inline]
    pub(super) fn place(&self, map: &RowMap, row: u64, index: u64, offset: u64) -> BufferPlace {
        debug_assert!(
            index < map.data() && offset < map.chunk,
            "chunk {index} of {} in row {row}, at {offset} of {}",
            map.data(),
            map.chunk
        );
        let lbn = row * map.row_sectors() + index * map.chunk + offset;
        BufferPlace::Request(Sectors(lbn - self.begin))
    }
}

impl RowPlanner {
    /// Returns a row in the state for reads. Reads may run at any time; only filled chunks count.
    pub(super) fn row_to_read(&self, number: u64) -> ParityRow {
        self.row(number, MemberStates::readable)
    }

    /// Returns a row in the state for writes. Writes reserve the row and run after an earlier
    /// rebuild of the row.
    pub(super) fn row_to_write(&self, number: u64) -> ParityRow {
        self.row(number, MemberStates::writable)
    }

    /// Returns a row. The chunk of a member is lost if the member is not `filled` up to the end of
    /// the row.
    #[inline]
    fn row(&self, number: u64, filled: fn(&MemberStates, usize) -> u64) -> ParityRow {
        let end = (number + 1) * self.map.chunk;
        // Only impaired members are looked at, because a healthy array has none and plans a row for
        // every request.
        let impaired = self.states.impaired().iter().copied();
        let lost = impaired.filter(|&member| filled(&self.states, member as usize) < end);
        ParityRow::new(&self.map, number, lost)
    }

    /// Returns the part of the request from `at` on in one row.
    pub(super) fn span(&self, wanted: RowRequest, at: u64) -> RowBand {
        debug_assert!(
            wanted.begin <= at && at < wanted.end,
            "sector {at} is not asked for: {wanted:?}"
        );
        let row_sectors = self.map.row_sectors();
        let (row, from) = (at / row_sectors, at % row_sectors);
        RowBand {
            row,
            from,
            to: row_sectors.min(from + (wanted.end - at)),
        }
    }

    /// Returns the number of whole rows from `at` on; 0 if `at` is inside a row.
    pub(super) fn whole_rows(&self, wanted: RowRequest, at: u64) -> u64 {
        let row_sectors = self.map.row_sectors();
        if at.is_multiple_of(row_sectors) {
            (wanted.end - at) / row_sectors
        } else {
            0
        }
    }

    /// Returns the extent of the cut on a member.
    #[inline]
    pub(super) fn extent(&self, row: &ParityRow, cut: &BandCut) -> Extent {
        Extent::new(row.number * self.map.chunk + cut.from, cut.sectors())
    }

    /// Adds the I/O for the cut of the data chunk `index`.
    #[inline]
    pub(super) fn data_io(
        &self,
        row: &ParityRow,
        cut: &BandCut,
        index: u64,
        place: BufferPlace,
        io: ChunkIo,
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
        wanted: RowRequest,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) -> RequestStatus {
        // One strand for all rows, because reads need no order among each other.
        writer.begin_strand();
        let mut at = wanted.begin;
        while at < wanted.end {
            let span = self.span(wanted, at);
            let row = self.row_to_read(span.row);
            writer.enter_row(span.row);
            for cut in BandCuts::of(span, self.map.chunk).as_slice() {
                // Lost chunks of a broken row cannot be computed, but its remaining chunks can be
                // read.
                if row.is_broken() {
                    if !self.is_left(&row, cut) {
                        return RequestStatus::Lost;
                    }
                    self.read_covered(wanted, &row, cut, writer);
                } else if row.lost().iter().any(|&index| cut.covers(index)) {
                    // A write between the reads of this row would make the sum wrong.
                    writer.hold_row(span.row);
                    self.read_and_rebuild(wanted, &row, cut, terms, writer);
                } else {
                    self.read_covered(wanted, &row, cut, writer);
                }
            }
            at += span.to - span.from;
        }
        RequestStatus::Done
    }

    /// True if the data inside the cut of a broken row can be read.
    fn is_left(&self, row: &ParityRow, cut: &BandCut) -> bool {
        let end = self.extent(row, cut).end().0;
        let mut members = (cut.first..cut.end).map(|index| row.shape.data_member(index) as usize);
        members.all(|member| end <= self.states.readable(member))
    }

    fn read_covered(
        &self,
        wanted: RowRequest,
        row: &ParityRow,
        cut: &BandCut,
        writer: &mut PlanWriter<'_>,
    ) {
        for index in cut.first..cut.end {
            let place = wanted.place(&self.map, row.number, index, cut.from);
            self.data_io(row, cut, index, place, ChunkIo::READ_DATA, writer);
        }
        // Only in this case is the parity member the only member without a read.
        let whole = cut.first == 0 && cut.end == row.data;
        if self.dummy_reads && whole && writer.detail() == Detail::Timing {
            self.read_for_nothing(row, cut, writer);
        }
    }

    /// Reads the parities of a row together with all its data. The member of each parity then
    /// continues into the next row without a gap. Plans for bytes do not need these reads.
    fn read_for_nothing(&self, row: &ParityRow, cut: &BandCut, writer: &mut PlanWriter<'_>) {
        let extent = self.extent(row, cut);
        for (cell, member) in row.parities() {
            writer.io_for_nothing(member as usize, extent, content_of(cell));
        }
    }

    /// Reads the remaining chunks of the row. Requested data goes into the request's own buffer;
    /// the sum for the lost chunks uses this buffer too.
    fn read_and_rebuild(
        &self,
        wanted: RowRequest,
        row: &ParityRow,
        cut: &BandCut,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) {
        writer.band(row.number, cut.offsets(), Method::Recover);
        terms.clear();
        for index in (0..row.data).filter(|&index| !row.has_lost(index)) {
            let (place, io) = if cut.covers(index) {
                (
                    wanted.place(&self.map, row.number, index, cut.from),
                    ChunkIo::READ_DATA,
                )
            } else {
                (writer.scratch(cut.sectors()), ChunkIo::READ_PEER)
            };
            match io.content {
                Content::Peer => self.read_peer(row, cut, index, place, writer),
                _ => self.data_io(row, cut, index, place, io, writer),
            }
            terms.push(Term {
                cell: ChunkContent::Data(index),
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
        row: &ParityRow,
        cut: &BandCut,
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
        row: &ParityRow,
        cut: &BandCut,
        cell: ChunkContent,
        member: u64,
        writer: &mut PlanWriter<'_>,
    ) -> BufferPlace {
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

    /// Reads the cut of the data chunk `index` for the arithmetic of the row.
    pub(super) fn read_peer(
        &self,
        row: &ParityRow,
        cut: &BandCut,
        index: u64,
        place: BufferPlace,
        writer: &mut PlanWriter<'_>,
    ) {
        let member = row.shape.data_member(index) as usize;
        self.fetch(member, self.extent(row, cut), place, Content::Peer, writer);
    }

    /// Reads sectors for the arithmetic, except sectors in the stripe cache.
    fn fetch(
        &self,
        member: usize,
        extent: Extent,
        place: BufferPlace,
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

    /// Returns the stripe cache for a plan for timing. A plan for bytes has no cache, because every
    /// byte must be read.
    pub(super) fn cache_for(&self, writer: &PlanWriter<'_>) -> Option<&StripeCache> {
        self.cache
            .as_ref()
            .filter(|_| writer.detail() == Detail::Timing)
    }

    /// Reads the remaining data of the row, and the parities for the recovery.
    pub(super) fn read_what_is_left(
        &self,
        row: &ParityRow,
        cut: &BandCut,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) {
        terms.clear();
        for index in (0..row.data).filter(|&index| !row.has_lost(index)) {
            let place = writer.scratch(cut.sectors());
            self.read_peer(row, cut, index, place, writer);
            terms.push(Term {
                cell: ChunkContent::Data(index),
                place,
            });
        }
        self.read_recovering_parities(row, cut, terms, writer);
    }
}

/// Direction and content of a data chunk's I/O.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkIo {
    operation: Operation,
    content: Content,
}

impl ChunkIo {
    const READ_DATA: ChunkIo = ChunkIo {
        operation: Operation::Read,
        content: Content::Data,
    };
    const READ_PEER: ChunkIo = ChunkIo {
        operation: Operation::Read,
        content: Content::Peer,
    };
    pub(super) const WRITE_DATA: ChunkIo = ChunkIo {
        operation: Operation::Write,
        content: Content::Data,
    };
}

pub(super) fn content_of(cell: ChunkContent) -> Content {
    match cell {
        ChunkContent::Data(_) => Content::Peer,
        ChunkContent::P => Content::Parity,
        ChunkContent::Q => Content::SecondParity,
    }
}

/// Computes the lost data chunks for which `wanted` is true from all `terms`, and appends them to
/// `terms`.
pub(super) fn rebuild_into_scratch(
    row: &ParityRow,
    cut: &BandCut,
    wanted: impl Fn(u64) -> bool,
    terms: &mut Vec<Term>,
    writer: &mut PlanWriter<'_>,
) {
    let left = terms.len();
    for &index in row.lost().iter().filter(|&&index| wanted(index)) {
        let place = writer.scratch(cut.sectors());
        rebuild(row, cut, index, place, &terms[..left], writer);
        terms.push(Term {
            cell: ChunkContent::Data(index),
            place,
        });
    }
}

/// Computes the lost data chunk `index` from all `terms`.
pub(super) fn rebuild(
    row: &ParityRow,
    cut: &BandCut,
    index: u64,
    into: BufferPlace,
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
        writer.step(ParityStep {
            coefficient,
            from: term.place,
            into,
            sectors,
            accumulate: count > 0,
        });
    }
}
