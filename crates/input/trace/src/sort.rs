//! Sorting of rows by arrival, in bounded memory.

use crate::row::Row;
use std::collections::VecDeque;

/// Holds the latest rows back, so that a row written a little late is still sorted in. Rows with
/// the same arrival keep the order of the file.
#[derive(Debug)]
pub(crate) struct SortWindow {
    rows: VecDeque<Row>,
    capacity: usize,
    released: u64,
}

impl SortWindow {
    pub(crate) fn new(capacity: usize) -> SortWindow {
        SortWindow {
            rows: VecDeque::with_capacity(capacity + 1),
            capacity,
            released: 0,
        }
    }

    /// Adds `row`. Returns the row as an error if a row with a later arrival has already been
    /// released.
    #[inline]
    pub(crate) fn push(&mut self, row: Row) -> Result<(), Row> {
        if self
            .rows
            .back()
            .is_none_or(|last| last.arrival <= row.arrival)
            && row.arrival >= self.released
        {
            self.rows.push_back(row);
            return Ok(());
        }
        self.insert(row)
    }

    #[cold]
    fn insert(&mut self, row: Row) -> Result<(), Row> {
        if row.arrival < self.released {
            return Err(row);
        }
        let place = self
            .rows
            .partition_point(|other| other.arrival <= row.arrival);
        assert!(
            self.rows
                .get(place)
                .is_none_or(|next| next.arrival > row.arrival),
            "the window is not in order of arrival"
        );
        self.rows.insert(place, row);
        Ok(())
    }

    /// Returns true if no row is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the earliest row, if more rows are held than the size of the window.
    #[inline]
    pub(crate) fn pop_excess(&mut self) -> Option<Row> {
        if self.rows.len() > self.capacity {
            self.pop()
        } else {
            None
        }
    }

    /// Returns the earliest row.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Row> {
        let row = self.rows.pop_front()?;
        assert!(
            row.arrival >= self.released,
            "a row at {} ns is released after one at {} ns",
            row.arrival,
            self.released
        );
        self.released = row.arrival;
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Operation;
    use proptest::prelude::*;

    fn row(arrival: u64, place: u64) -> Row {
        Row {
            place,
            ..Row::new(arrival, Operation::Read, 0, 8)
        }
    }

    proptest! {
        #[test]
        fn rows_displaced_within_the_window_come_out_sorted(
            arrivals in prop::collection::vec(0u64..50, 1..200),
        ) {
            let mut window = SortWindow::new(arrivals.len());
            let mut out = Vec::new();
            for (place, &arrival) in arrivals.iter().enumerate() {
                window.push(row(arrival, place as u64)).unwrap();
                out.extend(window.pop_excess());
            }
            out.extend(std::iter::from_fn(|| window.pop()));
            let mut expected: Vec<(u64, u64)> =
                arrivals.iter().enumerate().map(|(place, &arrival)| (arrival, place as u64)).collect();
            expected.sort_unstable();
            let found: Vec<(u64, u64)> = out.iter().map(|row| (row.arrival, row.place)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_row_later_than_the_window_allows_is_given_back() {
        let mut window = SortWindow::new(1);
        window.push(row(10, 1)).unwrap();
        window.push(row(20, 2)).unwrap();
        assert_eq!(window.pop_excess().map(|row| row.arrival), Some(10));
        assert_eq!(window.push(row(9, 3)), Err(row(9, 3)));
        assert_eq!(window.push(row(10, 4)), Ok(()));
    }
}
