//! Traces whose times begin anew: logs of several runs in one file, a system that was started again.
//!
//! Rows may be late: several processors write, or a tool writes a row at the completion. A late row is
//! followed by rows at the present again. Behind a restart, all rows lie in the past. A restart needs
//! all of these:
//!
//! 1. the row arrives before the latest row, and so do the next [`AHEAD`] rows;
//! 2. the row completes before the latest arrival, if its completion is known;
//! 3. the row is near the beginning of its run: in the first half, or in the first rows of the run if
//!    the run has few rows;
//! 4. the time does not count from 1970 or 1601, because such a clock never begins anew.
//!
//! The rows behind a restart follow the latest row, as blkreplay reads loads that stand one behind the
//! other.

use crate::fault::{TraceFault, TracePlace};
use crate::formats::PlaceUnit;
use crate::input::Input;
use crate::restarts::{EPOCH_NS, Restarts};
use crate::row::{Parser, TraceRow};

/// Number of following rows that must lie in the past too.
const AHEAD: usize = 4;
/// Smallest number of rows of a run whose restart is recognised by rule 3's first half. A shorter run
/// begins anew at or before its first time.
const ROWS_MIN: u64 = 16;
/// Smallest number of rows of a run. Fewer rows in the wrong order are late rows.
const FEW: u64 = 3;

/// A parser whose rows follow each other although the times of the trace begin anew.
pub(crate) struct JoinedParser {
    parser: Box<dyn Parser>,
    counted: PlaceUnit,
    /// Rows that wait for the rows behind them.
    waiting: Vec<TraceRow>,
    run: Run,
    /// Time added to the times of the current run.
    offset: u64,
    restarts: Restarts,
}

/// Rows since the latest restart, on the clock of the file.
#[derive(Default)]
struct Run {
    rows: u64,
    first: u64,
    latest: u64,
}

impl JoinedParser {
    pub(crate) fn new(parser: Box<dyn Parser>, counted: PlaceUnit) -> JoinedParser {
        JoinedParser {
            parser,
            counted,
            waiting: Vec::new(),
            run: Run::default(),
            offset: 0,
            restarts: Restarts::default(),
        }
    }

    /// Moves the rows of `rows` from `from` on to the clock of the first run. Returns the number of
    /// rows that are final. The last rows are not final until the rows behind them are known, unless
    /// `all`.
    fn join(&mut self, rows: &mut [TraceRow], all: bool) -> usize {
        let mut latest = self.run.latest;
        let ordered = rows.iter().take_while(|row| {
            let ordered = row.arrival >= latest;
            latest = row.arrival;
            ordered
        });
        // Rows in order need no decision, and nearly all batches are in order.
        if self.offset == 0 && self.run.rows > 0 && ordered.count() == rows.len() {
            self.run.rows += rows.len() as u64;
            self.run.latest = rows.last().map_or(self.run.latest, |row| row.arrival);
            return rows.len();
        }
        for at in 0..rows.len() {
            let row = rows[at];
            let ahead = &rows[at + 1..rows.len().min(at + 1 + AHEAD)];
            // The rows that decide are not read yet.
            if row.arrival < self.run.latest && !all && ahead.len() < AHEAD {
                return at;
            }
            if self.run.restarts_at(&row, ahead) {
                self.restart(row.place);
            }
            self.run.add(row.arrival);
            if self.offset > 0 {
                let later = |time: u64| time.saturating_add(self.offset);
                rows[at] = TraceRow {
                    arrival: later(row.arrival),
                    issued: row.issued.map(later),
                    completed: row.completed.map(later),
                    ..row
                };
            }
        }
        rows.len()
    }

    #[cold]
    fn restart(&mut self, place: u64) {
        self.offset = self.offset.saturating_add(self.run.latest);
        self.run = Run::default();
        self.restarts.add(Some(place));
    }
}

impl Run {
    fn restarts_at(&self, row: &TraceRow, ahead: &[TraceRow]) -> bool {
        let past = |row: &TraceRow| {
            row.arrival <= self.latest
                && row
                    .completed
                    .is_none_or(|completed| completed <= self.latest)
        };
        if row.arrival == self.latest
            || !past(row)
            || self.latest > EPOCH_NS
            || !ahead.iter().all(past)
        {
            return false;
        }
        let half = self.first + (self.latest - self.first) / 2;
        let early = match self.rows {
            0..FEW => false,
            FEW..ROWS_MIN => row.arrival <= self.first,
            _ => row.arrival <= half,
        };
        // One row in the past at the end of the file is late or damaged.
        early && !ahead.is_empty()
    }

    fn add(&mut self, arrival: u64) {
        if self.rows == 0 {
            self.first = arrival;
        }
        self.rows += 1;
        self.latest = self.latest.max(arrival);
    }
}

impl Parser for JoinedParser {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        rows: &mut Vec<TraceRow>,
        limit: usize,
    ) -> Result<bool, TraceFault> {
        if self.parser.is_of_events() {
            return self.parser.read(input, rows, limit);
        }
        let from = rows.len();
        rows.append(&mut self.waiting);
        let outcome = self.parser.read(input, rows, limit);
        // Behind a damaged row the caller may end, so no row may wait.
        let all = !matches!(outcome, Ok(true));
        let fixed = self.join(&mut rows[from..], all);
        self.waiting.extend(rows.drain(from + fixed..));
        outcome
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.parser.notes();
        let place = |place| match self.counted {
            PlaceUnit::Lines => TracePlace::Line {
                line: place,
                column: 0,
            },
            PlaceUnit::Bytes => TracePlace::Byte(place),
            PlaceUnit::Rows => TracePlace::Row(place),
        };
        notes.extend(self.restarts.note(place, "rows"));
        notes
    }

    fn lacks_addresses(&self) -> Option<&'static str> {
        self.parser.lacks_addresses()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::Operation;

    struct Rows(Vec<TraceRow>, usize);

    impl Parser for Rows {
        fn read(
            &mut self,
            _: &mut Input<'_>,
            rows: &mut Vec<TraceRow>,
            limit: usize,
        ) -> Result<bool, TraceFault> {
            let end = self.0.len().min(self.1 + limit);
            rows.extend_from_slice(&self.0[self.1..end]);
            self.1 = end;
            Ok(end < self.0.len())
        }
    }

    /// Returns the arrivals of a trace with these arrivals, and the number of restarts. Reads `limit`
    /// rows at a time.
    fn joined(arrivals: &[u64], limit: usize) -> (Vec<u64>, u64) {
        let rows = arrivals
            .iter()
            .enumerate()
            .map(|(place, &arrival)| TraceRow {
                place: place as u64,
                ..TraceRow::new(arrival, Operation::Read, 0, 8)
            })
            .collect();
        let mut joined = JoinedParser::new(Box::new(Rows(rows, 0)), PlaceUnit::Rows);
        let mut input = crate::source::unpack(&b"x"[..], None, 64).unwrap();
        let mut out = Vec::new();
        while joined.read(&mut input, &mut out, limit).unwrap() {}
        assert_eq!(
            joined.notes().len(),
            usize::from(joined.restarts.count() > 0)
        );
        (
            out.iter().map(|row| row.arrival).collect(),
            joined.restarts.count(),
        )
    }

    #[test]
    fn parts_follow_each_other_whatever_the_batches() {
        let run: Vec<u64> = (0..100).map(|row| row * 10).collect();
        let arrivals = [run.clone(), run.clone(), run].concat();
        for limit in [1, 3, 100, 1000] {
            let (times, restarts) = joined(&arrivals, limit);
            assert_eq!(restarts, 2, "{limit}");
            assert!(times.is_sorted());
            assert_eq!(times.last(), Some(&(3 * 990)));
        }
    }

    #[test]
    fn a_log_that_begins_anew_at_1_is_joined() {
        let mut arrivals: Vec<u64> = (0..50).map(|row| row * 10).collect();
        arrivals.extend((0..50).map(|row| 1 + row * 10));
        let (times, restarts) = joined(&arrivals, 7);
        assert_eq!((restarts, times[99]), (1, 490 + 491));
    }

    #[test]
    fn late_rows_are_no_restart() {
        let mut arrivals: Vec<u64> = (0..200).map(|row| row * 10).collect();
        // The first row again among later ones, pairs in the wrong order, one late row at the end.
        arrivals[150] = 0;
        arrivals.swap(80, 81);
        arrivals.push(3);
        for limit in [1, 5, 512] {
            assert_eq!(joined(&arrivals, limit), (arrivals.clone(), 0));
        }
        assert_eq!(joined(&[3, 1, 2], 10).1, 0);
        assert_eq!(joined(&[0, 10, 20, 0, 10, 20], 10).1, 1);
        assert_eq!(joined(&[30, 10, 40, 50], 10).1, 0);
    }

    #[test]
    fn clocks_that_count_from_an_epoch_do_not_begin_anew() {
        let base = 1_600_000_000_000_000_000;
        let arrivals: Vec<u64> = [0, 10, 20, 30, 40, 0, 10, 20, 30, 40]
            .map(|time| base + time)
            .to_vec();
        assert_eq!(joined(&arrivals, 3), (arrivals.clone(), 0));
    }
}
