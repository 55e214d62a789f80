//! Fingerprint of a trace: a summary, computed once for all layouts.
//!
//! A *run* is a sequential block as a disk sees it. Within a window, requests are sorted by
//! address, and adjacent requests are joined, as by a disk's scheduler. (This follows the modelled
//! thesis, sections 7.3.2 and 7.5: 16 consecutive requests of 8 KB are one run of 128 KB.)

use fullstroke_contract::{Operation, Request};
use fullstroke_units::Time;
use std::collections::BTreeMap;

/// Length of a window in the published validation, in seconds.
pub const WINDOW_S: f64 = 0.1;

/// A request in the form for a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictArrival {
    /// Arrival time in seconds since the beginning of the trace.
    pub at_s: f64,
    /// First sector.
    pub start: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// True for a write.
    pub write: bool,
}

impl PredictArrival {
    /// Makes the arrival of a read or write.
    pub fn of(at: Time, request: &Request) -> PredictArrival {
        PredictArrival {
            at_s: at.as_nanos() as f64 / 1e9,
            start: request.extent.start.0,
            sectors: request.extent.sectors.0,
            write: request.operation == Operation::Write,
        }
    }
}

/// One window of a trace with at least one arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceWindow {
    /// Number of the window, from the beginning of the trace.
    pub index: u64,
    /// Lengths of runs in sectors, ascending, with the number of runs of each length.
    pub runs: Vec<(u64, u64)>,
    /// Distances in sectors between consecutive runs, in the order of arrival. The first distance
    /// starts at the last run of the window before.
    pub distances: Vec<u64>,
    /// Lengths of requests in sectors, ascending, with the number of requests of each length.
    pub requests: Vec<(u64, u64)>,
    /// Number of sectors written.
    pub written: u64,
}

/// Totals of a busy window, for the equations. They suffice if no run must be cut, and fit into a
/// cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Number of the window.
    pub index: u64,
    /// Number of requests.
    pub requests: f64,
    /// Number of sectors read or written.
    pub sectors: f64,
    /// Number of sectors written.
    pub written: f64,
    /// Longest request in sectors.
    pub longest: u64,
    /// Number of runs.
    pub runs: f64,
    /// Number of sectors in runs.
    pub run_sectors: f64,
    /// Longest run in sectors.
    pub longest_run: u64,
}

/// Windows of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Fingerprint {
    /// Length of a window in seconds.
    pub window_s: f64,
    /// Number of windows of the trace, including windows without arrivals.
    pub windows: u64,
    /// Windows with arrivals.
    pub busy: Vec<TraceWindow>,
    /// Totals of the busy windows, in the same order.
    pub totals: Vec<Totals>,
}

impl TraceWindow {
    /// Returns the number of requests.
    pub fn count(&self) -> u64 {
        count(&self.requests)
    }

    /// Returns the number of runs.
    pub fn run_count(&self) -> u64 {
        count(&self.runs)
    }

    fn totals(&self) -> Totals {
        let sectors = |lengths: &[(u64, u64)]| {
            lengths
                .iter()
                .map(|(length, count)| length * count)
                .sum::<u64>()
        };
        let longest = |lengths: &[(u64, u64)]| lengths.last().map_or(0, |(length, _)| *length);
        Totals {
            index: self.index,
            requests: self.count() as f64,
            sectors: sectors(&self.requests) as f64,
            written: self.written as f64,
            longest: longest(&self.requests),
            runs: self.run_count() as f64,
            run_sectors: sectors(&self.runs) as f64,
            longest_run: longest(&self.runs),
        }
    }

    /// Returns the share of requests longer than `sectors`.
    pub fn longer(&self, sectors: u64) -> f64 {
        let longer = self.requests.iter().filter(|(length, _)| *length > sectors);
        longer.map(|(_, count)| count).sum::<u64>() as f64 / self.count().max(1) as f64
    }
}

fn count(lengths: &[(u64, u64)]) -> u64 {
    lengths.iter().map(|(_, count)| count).sum()
}

/// Builds a fingerprint from requests in order of arrival.
#[derive(Clone, Debug)]
pub struct FingerprintBuilder {
    window_s: f64,
    index: u64,
    waiting: Vec<PredictArrival>,
    /// End of the last run of the window before.
    last_end: Option<u64>,
    busy: Vec<TraceWindow>,
}

impl FingerprintBuilder {
    /// Makes a gatherer for windows of `window_s` seconds; `None` if this is not a positive length.
    pub fn new(window_s: f64) -> Option<FingerprintBuilder> {
        let usable = window_s.is_finite() && window_s > 0.0;
        usable.then(|| FingerprintBuilder {
            window_s,
            index: 0,
            waiting: Vec::new(),
            last_end: None,
            busy: Vec::new(),
        })
    }

    /// Adds a request. If a request is earlier than the current window, it counts in the current
    /// window.
    pub fn add(&mut self, arrival: PredictArrival) {
        // A trace may begin before its time 0; such requests count in the first window.
        let index = (arrival.at_s.max(0.0) / self.window_s) as u64;
        if index > self.index {
            self.close();
            self.index = index;
        }
        self.waiting.push(arrival);
    }

    /// Returns the fingerprint of all added requests.
    pub fn finish(mut self) -> Fingerprint {
        self.close();
        let windows = self.busy.last().map_or(0, |window| window.index + 1);
        let totals = self.busy.iter().map(TraceWindow::totals).collect();
        Fingerprint {
            window_s: self.window_s,
            windows,
            busy: self.busy,
            totals,
        }
    }

    fn close(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let runs = runs(&self.waiting);
        let mut distances = Vec::with_capacity(runs.len());
        for run in &runs {
            distances.extend(self.last_end.map(|end| end.abs_diff(run.start)));
            self.last_end = Some(run.end);
        }
        let window = TraceWindow {
            index: self.index,
            runs: counted(runs.iter().map(|run| run.end - run.start)),
            distances,
            requests: counted(self.waiting.iter().map(|arrival| arrival.sectors)),
            written: self
                .waiting
                .iter()
                .filter(|arrival| arrival.write)
                .map(|arrival| arrival.sectors)
                .sum(),
        };
        self.busy.push(window);
        self.waiting.clear();
    }
}

/// A run of adjacent addresses.
struct AddressRun {
    /// Index of the earliest request of the run, by order of arrival.
    first: usize,
    start: u64,
    end: u64,
}

/// Returns the runs of a window, in the order of their first requests.
fn runs(arrivals: &[PredictArrival]) -> Vec<AddressRun> {
    let mut order: Vec<usize> = (0..arrivals.len()).collect();
    // By index among equal starts, so that a run begins with the request that came first.
    order.sort_by_key(|&index| (arrivals[index].start, index));
    let mut runs: Vec<AddressRun> = Vec::new();
    for index in order {
        let PredictArrival { start, sectors, .. } = arrivals[index];
        // The sum is only compared, so the top value means "to the end".
        let end = start.saturating_add(sectors);
        match runs.last_mut() {
            Some(run) if start <= run.end => {
                run.end = run.end.max(end);
                run.first = run.first.min(index);
            }
            _ => runs.push(AddressRun {
                first: index,
                start,
                end,
            }),
        }
    }
    // The order of arrival, because a seek leads from each run to the next.
    runs.sort_by_key(|run| run.first);
    runs
}

/// Returns each length with its number of occurrences, ascending.
fn counted(lengths: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut counts = BTreeMap::new();
    lengths.for_each(|length| *counts.entry(length).or_insert(0) += 1);
    counts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fingerprint(requests: &[(f64, u64, u64)]) -> Fingerprint {
        let mut gatherer = FingerprintBuilder::new(WINDOW_S).unwrap();
        for &(at_s, start, sectors) in requests {
            gatherer.add(PredictArrival {
                at_s,
                start,
                sectors,
                write: false,
            });
        }
        gatherer.finish()
    }

    #[test]
    fn p_53_example_one_requests_of_8_12_8_and_32_are_two_runs_of_8_and_one_each_of_12_and_32() {
        let found = fingerprint(&[
            (0.0, 0, 8),
            (0.01, 1000, 12),
            (0.02, 500, 8),
            (0.03, 3000, 32),
        ]);
        assert_eq!(found.busy[0].runs, [(8, 2), (12, 1), (32, 1)]);
    }

    #[test]
    fn p_53_example_two_one_request_of_128_is_one_run_of_128() {
        assert_eq!(fingerprint(&[(0.0, 640, 128)]).busy[0].runs, [(128, 1)]);
    }

    #[test]
    fn p_53_example_three_sixteen_requests_of_8_in_a_row_are_one_run_of_128() {
        let many: Vec<_> = (0..16)
            .map(|index| (0.001 * index as f64, 640 + 8 * index, 8))
            .collect();
        assert_eq!(fingerprint(&many).busy[0].runs, [(128, 1)]);
        // The requests are not joined: sixteen of them wait and are answered.
        assert_eq!(fingerprint(&many).busy[0].requests, [(8, 16)]);
    }

    #[test]
    fn runs_do_not_reach_beyond_their_window_but_distances_do() {
        let found = fingerprint(&[(0.05, 0, 8), (0.35, 8, 8), (0.36, 100, 4)]);
        assert_eq!((found.windows, found.busy.len()), (4, 2));
        assert_eq!((found.busy[0].index, found.busy[1].index), (0, 3));
        assert_eq!(
            (&found.busy[0].distances[..], &found.busy[1].distances[..]),
            (&[][..], &[0, 84][..])
        );
    }

    #[test]
    fn nothing_has_no_windows_and_no_window_is_refused() {
        assert_eq!(fingerprint(&[]).windows, 0);
        assert!(
            [0.0, -1.0, f64::NAN, f64::INFINITY]
                .into_iter()
                .all(|window| FingerprintBuilder::new(window).is_none())
        );
    }

    proptest! {
        #[test]
        fn runs_cover_what_requests_do_and_do_not_touch(
            requests in prop::collection::vec((0u64..300, 1u64..20), 1..40),
        ) {
            let arrivals: Vec<PredictArrival> = requests.iter()
                .map(|&(start, sectors)| PredictArrival { at_s: 0.0, start, sectors, write: false }).collect();
            let mut covered = vec![false; 400];
            arrivals.iter().for_each(|one| {
                covered[one.start as usize..(one.start + one.sectors) as usize].fill(true);
            });
            let mut found = runs(&arrivals);
            found.sort_by_key(|run| run.start);
            prop_assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start));
            let mut by_runs = vec![false; 400];
            found.iter().for_each(|run| by_runs[run.start as usize..run.end as usize].fill(true));
            prop_assert_eq!(covered, by_runs);
        }
    }
}
