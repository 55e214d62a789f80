//! Writes and discards of rows: new data and the parity for this data.

use super::bands::{BandCut, BandCuts, RowBand};
use super::choice;
use super::map::ChunkContent;
use super::row::ParityRow;
use super::rows::{ChunkIo, RowPlanner, RowRequest, Term, content_of, rebuild_into_scratch};
use crate::gf256::power;
use crate::plan::{BufferPlace, Content, Method, ParityStep, PlanWriter};
use fullstroke_contract::{Extent, Operation, RequestStatus};
use fullstroke_units::Sectors;

/// Places of the new parities of a cut.
type NewParity = [BufferPlace; 2];

impl RowPlanner {
    pub(crate) fn write(
        &self,
        wanted: RowRequest,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) -> RequestStatus {
        if self.is_broken((wanted.end - 1) / self.map.row_sectors()) {
            return RequestStatus::Lost;
        }
        let mut at = wanted.begin;
        while at < wanted.end {
            let whole = self.whole_rows(wanted, at);
            if whole > 0 {
                let first = at / self.map.row_sectors();
                self.write_whole_rows(wanted, first, whole, writer);
                at += whole * self.map.row_sectors();
            } else {
                let span = self.span(wanted, at);
                self.write_part(wanted, span, terms, writer);
                at += span.to - span.from;
            }
        }
        RequestStatus::Done
    }

    /// True if a row up to `last` cannot be written. Members are filled from front to back: if a
    /// row is broken, all later rows are broken too. The check of the last row is therefore enough.
    fn is_broken(&self, last: u64) -> bool {
        !self.states.impaired().is_empty() && self.row_to_write(last).is_broken()
    }

    fn write_whole_rows(
        &self,
        wanted: RowRequest,
        first: u64,
        count: u64,
        writer: &mut PlanWriter<'_>,
    ) {
        let cut = BandCut {
            from: 0,
            to: self.map.chunk,
            first: 0,
            end: self.map.data(),
        };
        writer.begin_strand();
        for number in first..first + count {
            let row = self.row_to_write(number);
            writer.enter_row(number);
            writer.hold_row(number);
            let protected = row.parities().next().is_some();
            let method = if protected {
                Method::FullStripe
            } else {
                Method::Unprotected
            };
            let parity = self.sum_new_and_rest(wanted, &row, &cut, method, writer);
            self.write_cut(wanted, &row, &cut, parity, writer);
        }
    }

    fn write_part(
        &self,
        wanted: RowRequest,
        span: RowBand,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) {
        let row = self.row_to_write(span.row);
        let cuts = BandCuts::of(span, self.map.chunk);
        let methods = self.choose(&row, cuts.as_slice(), writer);
        let mut parities = [[BufferPlace::Scratch(Sectors::ZERO); 2]; BandCuts::MOST];
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
        // New data and parity must not overwrite old data or parity before all reads have
        // completed.
        writer.begin_second_phase();
        for (cut, parity) in cuts.as_slice().iter().zip(parities) {
            self.write_cut(wanted, &row, cut, parity, writer);
        }
    }

    fn choose(
        &self,
        row: &ParityRow,
        cuts: &[BandCut],
        writer: &PlanWriter<'_>,
    ) -> choice::Methods {
        match self.cache_for(writer) {
            None => choice::choose(row, cuts),
            Some(cache) => choice::choose_beside(row, cuts, |member, cut| {
                cache.missing_sectors(member as usize, self.extent(row, cut))
            }),
        }
    }

    /// Read-modify-write: reads old parity and old data.
    fn modify(
        &self,
        wanted: RowRequest,
        row: &ParityRow,
        cut: &BandCut,
        writer: &mut PlanWriter<'_>,
    ) -> NewParity {
        writer.band(row.number, cut.offsets(), Method::ReadModifyWrite);
        let mut parity = [BufferPlace::Scratch(Sectors::ZERO); 2];
        for ((cell, member), place) in row.parities().zip(&mut parity) {
            *place = self.read_parity(row, cut, cell, member, writer);
        }
        for index in cut.first..cut.end {
            let old = writer.scratch(cut.sectors());
            self.read_peer(row, cut, index, old, writer);
            let new = wanted.place(&self.map, row.number, index, cut.from);
            // In GF(2^8), the subtraction of old data is an addition.
            add_to_parities(row, cut, index, old, &parity, true, writer);
            add_to_parities(row, cut, index, new, &parity, true, writer);
        }
        parity
    }

    /// Full-stripe write and reconstruct-write: reads the unchanged data, if any. Unprotected:
    /// reads nothing and sums nothing.
    fn sum_new_and_rest(
        &self,
        wanted: RowRequest,
        row: &ParityRow,
        cut: &BandCut,
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
                wanted.place(&self.map, row.number, index, cut.from)
            } else {
                let rest = writer.scratch(cut.sectors());
                self.read_peer(row, cut, index, rest, writer);
                rest
            };
            add_to_parities(row, cut, index, place, &parity, index > 0, writer);
        }
        parity
    }

    /// Reads all remaining chunks, computes the unchanged lost data, and sums up.
    fn recover_and_sum(
        &self,
        wanted: RowRequest,
        row: &ParityRow,
        cut: &BandCut,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) -> NewParity {
        writer.band(row.number, cut.offsets(), Method::Recover);
        self.read_what_is_left(row, cut, terms, writer);
        // Covered chunks need no recovery, because the request brings their new data.
        rebuild_into_scratch(row, cut, |index| !cut.covers(index), terms, writer);
        self.sum_terms_and_new(wanted, row, cut, terms, writer)
    }

    fn sum_terms_and_new(
        &self,
        wanted: RowRequest,
        row: &ParityRow,
        cut: &BandCut,
        terms: &[Term],
        writer: &mut PlanWriter<'_>,
    ) -> NewParity {
        let parity = new_parities(cut, writer);
        let staying = terms.iter().filter_map(|term| match term.cell {
            ChunkContent::Data(index) if !cut.covers(index) => Some((index, term.place)),
            _ => None,
        });
        let new = (cut.first..cut.end)
            .map(|index| (index, wanted.place(&self.map, row.number, index, cut.from)));
        for (count, (index, place)) in staying.chain(new).enumerate() {
            add_to_parities(row, cut, index, place, &parity, count > 0, writer);
        }
        parity
    }

    /// Writes new data and parity to the remaining members.
    fn write_cut(
        &self,
        wanted: RowRequest,
        row: &ParityRow,
        cut: &BandCut,
        parity: NewParity,
        writer: &mut PlanWriter<'_>,
    ) {
        // The new data of a lost chunk exists only in the parity.
        for index in (cut.first..cut.end).filter(|&index| !row.has_lost(index)) {
            let place = wanted.place(&self.map, row.number, index, cut.from);
            self.data_io(row, cut, index, place, ChunkIo::WRITE_DATA, writer);
        }
        for ((cell, member), place) in row.parities().zip(parity) {
            writer.io(
                member as usize,
                Operation::Write,
                self.extent(row, cut),
                place,
                content_of(cell),
            );
        }
    }

    /// Discards whole rows with their parity, because rows of zeros have consistent parity. A
    /// discard of a part of a row would make the parity wrong.
    pub(crate) fn discard(&self, wanted: RowRequest, writer: &mut PlanWriter<'_>) -> RequestStatus {
        let row_sectors = self.map.row_sectors();
        let (first, end) = (wanted.begin.div_ceil(row_sectors), wanted.end / row_sectors);
        if first >= end {
            return RequestStatus::Done;
        }
        if self.is_broken(end - 1) {
            return RequestStatus::Lost;
        }
        writer.begin_strand();
        writer.enter_row(first);
        writer.hold_row(first);
        writer.hold_row(end - 1);
        let chunk = self.map.chunk;
        for member in 0..self.map.members as usize {
            // A failed member gets no discard. A member that is being filled holds nothing to
            // discard after the filled part.
            let end = end.min(self.states.writable(member) / chunk);
            if first < end {
                let extent = Extent::new(first * chunk, (end - first) * chunk);
                writer.io(
                    member,
                    wanted.operation,
                    extent,
                    BufferPlace::Scratch(Sectors::ZERO),
                    Content::Data,
                );
            }
        }
        RequestStatus::Done
    }
}

fn new_parities(cut: &BandCut, writer: &mut PlanWriter<'_>) -> NewParity {
    [writer.scratch(cut.sectors()), writer.scratch(cut.sectors())]
}

/// Adds the data chunk `index` at `from` to the remaining parities, in the order of
/// [`ParityRow::parities`].
fn add_to_parities(
    row: &ParityRow,
    cut: &BandCut,
    index: u64,
    from: BufferPlace,
    parity: &NewParity,
    accumulate: bool,
    writer: &mut PlanWriter<'_>,
) {
    for ((cell, _), &into) in row.parities().zip(parity) {
        let coefficient = if cell == ChunkContent::Q {
            power(row.shape.exponent(index))
        } else {
            1
        };
        writer.step(ParityStep {
            coefficient,
            from,
            into,
            sectors: Sectors(cut.sectors()),
            accumulate,
        });
    }
}
