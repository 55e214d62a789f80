//! Writes in the volatile buffer, in the order of their arrival.

use fullstroke_units::Time;
use std::collections::VecDeque;

/// Consecutive written sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenRun {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Arrival of the latest sectors.
    pub(super) latest: Time,
    /// Consecutive sectors up to the end of the run, since the last flush. Earlier ones may be on
    /// the medium.
    pub(super) stream: u64,
    /// True if the run begins at the write pointer of its zone, on a host-aware drive. No valid data
    /// lie behind the run in its band.
    pub(super) in_order: bool,
}

/// The writes that have not reached the medium.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingWrites {
    runs: VecDeque<WrittenRun>,
    sectors: u64,
    /// Sectors that came in and went out since the beginning.
    pub(super) came: u64,
    pub(super) went: u64,
    /// End and length of the present stream.
    stream_end: u64,
    stream: u64,
}

impl PendingWrites {
    /// Number of sectors.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the oldest run, and true if no other run has come since.
    pub(super) fn oldest(&self) -> Option<(WrittenRun, bool)> {
        Some((*self.runs.front()?, self.runs.len() == 1))
    }

    /// Adds a write. A write of the same kind that continues the latest run lengthens the run.
    pub(super) fn add(&mut self, start: u64, sectors: u64, in_order: bool, now: Time) {
        self.sectors += sectors;
        self.came += sectors;
        let end = start + sectors;
        self.stream = match self.stream_end == start {
            true => self.stream + sectors,
            false => sectors,
        };
        self.stream_end = end;
        match self.runs.back_mut() {
            Some(run) if run.end == start && run.in_order == in_order => {
                (run.end, run.latest, run.stream) = (end, now, self.stream);
            }
            _ => self.runs.push_back(WrittenRun {
                start,
                end,
                latest: now,
                stream: self.stream,
                in_order,
            }),
        }
    }

    /// Ends the present stream: a flush has come.
    pub(super) fn end_stream(&mut self) {
        self.stream = 0;
        self.stream_end = u64::MAX;
    }

    /// Removes the first `sectors` sectors of the oldest run.
    pub(super) fn remove(&mut self, sectors: u64) {
        let Some(run) = self.runs.front_mut() else {
            return;
        };
        assert!(
            sectors <= run.end - run.start,
            "{sectors} sectors of {run:?} are on the medium"
        );
        run.start += sectors;
        self.sectors -= sectors;
        self.went += sectors;
        if run.start == run.end {
            self.runs.pop_front();
        }
    }

    /// Calls `each` with the parts of an extent that no pending write covers, in order.
    pub(super) fn uncovered(&self, start: u64, end: u64, each: &mut dyn FnMut(u64, u64)) {
        let mut covered: Vec<(u64, u64)> = self
            .runs
            .iter()
            .filter(|run| run.start < end && start < run.end)
            .map(|run| (run.start, run.end))
            .collect();
        covered.sort_unstable();
        let mut at = start;
        for (from, to) in covered {
            if at < from {
                each(at, from);
            }
            at = at.max(to);
        }
        if at < end {
            each(at, end);
        }
    }
}
