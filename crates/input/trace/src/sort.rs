//! Sorting of rows by arrival, in bounded memory.

use crate::row::{TraceRow, is_sound};

/// Smallest number of released rows that are removed together.
const REMOVED_MIN: usize = 1024;

/// Holds the latest rows back, so that a row written a little late is still sorted in. Rows with
/// the same arrival keep the order of the file.
///
/// The parser appends its rows to the list of the window, where most rows stay in place until they
/// are released: a row in order is admitted without a copy.
#[derive(Debug, Default)]
pub(crate) struct SortWindow {
    /// Released rows up to `head`, held rows up to `admitted`, free places up to `raw`, and parsed
    /// rows.
    rows: Vec<TraceRow>,
    head: usize,
    admitted: usize,
    raw: usize,
    capacity: usize,
    released: u64,
}

impl SortWindow {
    pub(crate) fn new(capacity: usize) -> SortWindow {
        SortWindow {
            capacity,
            ..SortWindow::default()
        }
    }

    /// Returns the list to which a parser appends rows. No parsed row may be left.
    pub(crate) fn space(&mut self) -> &mut Vec<TraceRow> {
        assert!(self.raw == self.rows.len(), "parsed rows are left");
        // Skipped rows have left free places.
        self.rows.truncate(self.admitted);
        // A move of the held rows follows the release of at least twice as many rows.
        if self.head >= (2 * self.capacity).max(REMOVED_MIN) || self.head == self.admitted {
            self.rows.drain(..self.head);
            self.admitted -= self.head;
            self.head = 0;
        }
        self.raw = self.admitted;
        &mut self.rows
    }

    /// Returns the next parsed row. The caller pushes the row, or drops a damaged row.
    #[inline]
    pub(crate) fn next_parsed(&mut self) -> Option<TraceRow> {
        let row = *self.rows.get(self.raw)?;
        self.raw += 1;
        Some(row)
    }

    /// Adds a `row` that [`next_parsed`](Self::next_parsed) returned. Returns the row as an error
    /// if a row with a later arrival has already been released.
    #[inline]
    pub(crate) fn push(&mut self, row: TraceRow) -> Result<(), TraceRow> {
        assert!(self.admitted < self.raw, "a row was not parsed");
        if row.arrival < self.released {
            return Err(row);
        }
        let place = if row.arrival >= self.latest() {
            self.admitted
        } else {
            self.make_room(row.arrival)
        };
        self.rows[place] = row;
        self.admitted += 1;
        Ok(())
    }

    /// Returns the arrival of the latest row, held or released.
    #[inline]
    fn latest(&self) -> u64 {
        match self.rows[self.head..self.admitted].last() {
            Some(row) => row.arrival,
            None => self.released,
        }
    }

    /// Moves the rows behind `arrival` by one place. Returns the free place.
    #[cold]
    fn make_room(&mut self, arrival: u64) -> usize {
        let held = &self.rows[self.head..self.admitted];
        // Behind rows with the same arrival, so that these stay in the order of the file.
        let place = self.head + held.partition_point(|other| other.arrival <= arrival);
        assert!(
            self.rows[place].arrival > arrival,
            "the window is not in order of arrival"
        );
        self.rows.copy_within(place..self.admitted, place + 1);
        place
    }

    /// Admits parsed rows, so that at most `count` rows can be released. Ends before the first row
    /// that is damaged or out of order.
    pub(crate) fn admit_sound(&mut self, count: usize) {
        // A skipped row has left a free place, so that the next rows move.
        if self.admitted != self.raw {
            return;
        }
        let most = self
            .capacity
            // At most as many rows as fill the window, so that memory does not grow with the file.
            .saturating_add(count)
            .saturating_sub(self.admitted - self.head);
        let mut latest = self.latest();
        let parsed = self.rows[self.raw..].iter().take(most);
        let admitted = parsed
            .take_while(|row| {
                let sound = row.arrival >= latest && is_sound(row);
                latest = row.arrival;
                sound
            })
            .count();
        self.admitted += admitted;
        self.raw += admitted;
    }

    /// Returns true if no row is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.admitted
    }

    /// Returns true if no parsed row is left.
    pub(crate) fn is_parsed_empty(&self) -> bool {
        self.raw == self.rows.len()
    }

    /// Returns the earliest row, if more rows are held than the size of the window.
    #[inline]
    pub(crate) fn pop_excess(&mut self) -> Option<TraceRow> {
        if self.admitted - self.head > self.capacity {
            self.pop()
        } else {
            None
        }
    }

    /// Returns the earliest row.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<TraceRow> {
        let row = *self.rows[self.head..self.admitted].first()?;
        self.release(1);
        Some(row)
    }

    /// Returns the rows that can be released, the earliest first. At the `end` of the trace these
    /// are all rows.
    #[inline]
    pub(crate) fn ready(&self, end: bool) -> &[TraceRow] {
        let kept = if end && self.is_parsed_empty() {
            0
        } else {
            self.capacity
        };
        let held = &self.rows[self.head..self.admitted];
        // The newest `kept` rows stay: an earlier row may still come.
        &held[..held.len().saturating_sub(kept)]
    }

    /// Releases the earliest `count` rows.
    #[inline]
    pub(crate) fn release(&mut self, count: usize) {
        let Some(last) = count.checked_sub(1) else {
            return;
        };
        let arrival = self.rows[self.head..self.admitted][last].arrival;
        assert!(
            arrival >= self.released,
            "a row at {arrival} ns is released after one at {} ns",
            self.released
        );
        self.head += count;
        self.released = arrival;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Operation;
    use proptest::prelude::*;

    fn row(arrival: u64, place: u64) -> TraceRow {
        TraceRow {
            place,
            ..TraceRow::new(arrival, Operation::Read, 0, 8)
        }
    }

    fn add(window: &mut SortWindow, row: TraceRow) -> Result<(), TraceRow> {
        window.space().push(row);
        let row = window.next_parsed().unwrap();
        window.push(row)
    }

    proptest! {
        #[test]
        fn rows_displaced_within_the_window_come_out_sorted(
            arrivals in prop::collection::vec(0u64..50, 1..200),
        ) {
            let mut window = SortWindow::new(arrivals.len());
            let mut out = Vec::new();
            for (place, &arrival) in arrivals.iter().enumerate() {
                add(&mut window, row(arrival, place as u64)).unwrap();
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
        add(&mut window, row(10, 1)).unwrap();
        add(&mut window, row(20, 2)).unwrap();
        assert_eq!(window.pop_excess().map(|row| row.arrival), Some(10));
        assert_eq!(add(&mut window, row(9, 3)), Err(row(9, 3)));
        assert_eq!(add(&mut window, row(10, 4)), Ok(()));
    }
}
