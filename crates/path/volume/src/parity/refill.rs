//! The rebuild of members, row by row, from the remaining chunks of each row.

use super::bands::BandCut;
use super::map::ChunkContent;
use super::row::ParityRow;
use super::rows::{RowPlanner, Term, content_of, rebuild};
use crate::gf256::power;
use crate::plan::{BufferPlace, Method, ParityStep, PlanWriter};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::Sectors;
use std::ops::Range;

impl RowPlanner {
    /// Returns the rows from the sector `from` of a member on, about `most` sectors. The range ends
    /// before the first broken row. The range is empty if the first row is broken; then all later
    /// rows are broken too.
    pub(crate) fn refillable(&self, from: Sectors, most: Sectors) -> Range<u64> {
        let chunk = self.map.chunk;
        let first = from.0 / chunk;
        let end = self
            .map
            .rows
            .min(first.saturating_add((most.0 / chunk).max(1)));
        // Members are filled from front to back. If a row is broken, all later rows are broken too.
        let broken = (first..end).find(|&row| self.row_to_read(row).is_broken());
        first..broken.unwrap_or(end)
    }

    /// Fills `part` of each chunk of `rows` of `members`. None of the rows may be broken. All sources
    /// are read first, each chunk once, and then all chunks are written.
    pub(crate) fn refill(
        &self,
        members: &[usize],
        rows: Range<u64>,
        part: Range<u64>,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) {
        let sectors = part.end - part.start;
        let of_each = (rows.end - rows.start) * sectors;
        let filling = writer.scratch(members.len() as u64 * of_each);
        writer.begin_strand();
        for number in rows.clone() {
            let row = self.row_to_read(number);
            writer.enter_row(number);
            // No write of the row may run between the reads and the writes of the rebuild. A unit of
            // pages belongs to md, whose stripes lock single pages (`raid5_get_active_stripe` in
            // `drivers/md/raid5.c`, 6.12), so that pages of one row do not wait for each other.
            if sectors == self.map.chunk {
                writer.hold_row(number);
            }
            let into = filling.behind(Sectors((number - rows.start) * sectors));
            let cells = (0u64..).zip(members).map(|(place, &member)| {
                (
                    row.shape.cell(member as u64),
                    into.behind(Sectors(place * of_each)),
                )
            });
            self.compute(&row, part.clone(), cells, terms, writer);
        }
        writer.begin_second_phase();
        let mut from = filling;
        for &member in members {
            for number in rows.clone() {
                let content = content_of(self.map.shape(number).cell(member as u64));
                writer.enter_row(number);
                writer.io(
                    member,
                    Operation::Write,
                    Extent::new(number * self.map.chunk + part.start, sectors),
                    from,
                    content,
                );
                from = from.behind(Sectors(sectors));
            }
        }
    }

    /// Computes `part` of lost chunks of the row, data or parity.
    fn compute(
        &self,
        row: &ParityRow,
        part: Range<u64>,
        cells: impl Iterator<Item = (ChunkContent, BufferPlace)> + Clone,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) {
        let cut = BandCut {
            from: part.start,
            to: part.end,
            first: 0,
            end: row.data,
        };
        writer.band(row.number, cut.offsets(), Method::Recover);
        self.read_what_is_left(row, &cut, terms, writer);
        let left = terms.len();
        for (cell, into) in cells.clone() {
            if let ChunkContent::Data(index) = cell {
                rebuild(row, &cut, index, into, &terms[..left], writer);
                terms.push(Term { cell, place: into });
            }
        }
        let mut parities = cells
            .filter(|(cell, _)| !matches!(cell, ChunkContent::Data(_)))
            .peekable();
        if parities.peek().is_none() {
            return;
        }
        // Parity is the sum of all data. Lost data that is not filled now must therefore be
        // computed as well.
        let known = terms.len();
        for &index in row.lost() {
            if terms[left..known]
                .iter()
                .any(|term| term.cell == ChunkContent::Data(index))
            {
                continue;
            }
            let place = writer.scratch(cut.sectors());
            rebuild(row, &cut, index, place, &terms[..left], writer);
            terms.push(Term {
                cell: ChunkContent::Data(index),
                place,
            });
        }
        for (parity, into) in parities {
            sum_parity(row, &cut, parity, into, terms, writer);
        }
    }
}

/// Computes a parity of the row from all data of the row. `terms` must contain all this data.
fn sum_parity(
    row: &ParityRow,
    cut: &BandCut,
    parity: ChunkContent,
    into: BufferPlace,
    terms: &[Term],
    writer: &mut PlanWriter<'_>,
) {
    let data = terms.iter().filter_map(|term| match term.cell {
        ChunkContent::Data(index) => Some((index, term.place)),
        _ => None,
    });
    for (count, (index, from)) in data.enumerate() {
        let coefficient = if parity == ChunkContent::Q {
            power(row.shape.exponent(index))
        } else {
            1
        };
        let sectors = Sectors(cut.sectors());
        writer.step(ParityStep {
            coefficient,
            from,
            into,
            sectors,
            accumulate: count > 0,
        });
    }
}
