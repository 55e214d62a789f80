//! Fills a new member, row by row, from what is left of each.

use super::bands::Cut;
use super::geometry::Cell;
use super::row::Row;
use super::rows::{RowPlanner, Term, content_of, rebuild, rebuild_into_scratch};
use crate::gf256::power;
use crate::plan::{Method, Place, PlanWriter, Step};
use fullstroke_contract::{Extent, Operation};
use fullstroke_units::Sectors;
use std::ops::Range;

impl RowPlanner {
    /// The rows from the sector `from` of a member on, about `most` sectors of
    /// them, of which enough is left. Empty if there are none behind either.
    pub(crate) fn refillable(&self, from: Sectors, most: Sectors) -> Range<u64> {
        let chunk = self.geometry.chunk;
        let first = from.0 / chunk;
        let end = self.geometry.rows.min(first.saturating_add((most.0 / chunk).max(1)));
        // Members are filled from front to back: behind a broken row all are.
        let broken = (first..end).find(|&row| self.row_to_read(row).is_broken());
        first..broken.unwrap_or(end)
    }

    /// Fills `rows` of `member`, of each of which enough is left: all are read,
    /// then all are written.
    pub(crate) fn refill(
        &self,
        member: usize,
        rows: Range<u64>,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) {
        let chunk = self.geometry.chunk;
        let filling = writer.scratch((rows.end - rows.start) * chunk);
        writer.begin_strand();
        let mut into = filling;
        for number in rows.clone() {
            let row = self.row_to_read(number);
            writer.enter_row(number);
            writer.hold_row(number);
            self.compute(&row, row.shape.cell(member as u64), into, terms, writer);
            into = into.behind(Sectors(chunk));
        }
        writer.begin_second_phase();
        let mut from = filling;
        for number in rows {
            let content = content_of(self.geometry.shape(number).cell(member as u64));
            writer.enter_row(number);
            writer.io(member, Operation::Write, Extent::new(number * chunk, chunk), from, content);
            from = from.behind(Sectors(chunk));
        }
    }

    /// Computes a whole lost chunk of the row, whatever it holds.
    fn compute(
        &self,
        row: &Row,
        cell: Cell,
        into: Place,
        terms: &mut Vec<Term>,
        writer: &mut PlanWriter<'_>,
    ) {
        let cut = Cut { from: 0, to: self.geometry.chunk, first: 0, end: row.data };
        writer.band(row.number, cut.offsets(), Method::Recover);
        self.read_what_is_left(row, &cut, terms, writer);
        if let Cell::Data(index) = cell {
            return rebuild(row, &cut, index, into, terms, writer);
        }
        rebuild_into_scratch(row, &cut, |_| true, terms, writer);
        sum_parity(row, &cut, cell, into, terms, writer);
    }
}

/// Computes a parity of the row from all of its data, which is among `terms`.
fn sum_parity(row: &Row, cut: &Cut, parity: Cell, into: Place, terms: &[Term], writer: &mut PlanWriter<'_>) {
    let data = terms.iter().filter_map(|term| match term.cell {
        Cell::Data(index) => Some((index, term.place)),
        _ => None,
    });
    for (count, (index, from)) in data.enumerate() {
        let coefficient = if parity == Cell::Q { power(row.shape.exponent(index)) } else { 1 };
        let sectors = Sectors(cut.sectors());
        writer.step(Step { coefficient, from, into, sectors, accumulate: count > 0 });
    }
}
