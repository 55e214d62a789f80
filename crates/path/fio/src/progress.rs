//! Progress of a worker, and its end.
//!
//! A job runs in iterations: one for each of `loops`, and further iterations while `io_size` is
//! larger than the I/O of its region.

use crate::job::{Blocks, FioJob};
use crate::region::CloneRegion;

/// Counters of a worker. Amounts are in bytes, except I/Os and loops.
#[derive(Clone, Debug)]
pub(crate) struct WorkerProgress {
    iteration_limit: u64,
    limit: u64,
    iteration: u64,
    in_loop: u64,
    total: u64,
    ios: u64,
    loops_left: u64,
    begun: bool,
}

impl WorkerProgress {
    pub(crate) fn new(job: &FioJob, region: &CloneRegion) -> WorkerProgress {
        WorkerProgress {
            iteration_limit: region.iteration,
            limit: region.limit,
            iteration: 0,
            in_loop: 0,
            total: 0,
            ios: 0,
            loops_left: job.loops,
            begun: false,
        }
    }

    /// Records that a block was issued.
    pub(crate) fn issued(&mut self, bytes: u64) {
        self.iteration += bytes;
        self.in_loop += bytes;
        self.total += bytes;
        self.ios += 1;
    }

    /// Ends the ramp. As in fio, I/Os are counted anew from here, but bytes are not.
    pub(crate) fn end_ramp(&mut self) {
        self.ios = 0;
    }

    /// Returns true if the iteration is over. Time limits are not considered.
    pub(crate) fn is_over(&self, job: &FioJob) -> bool {
        !job.time_based
            && (self.iteration >= self.iteration_limit
                || self.in_loop >= self.limit
                || self.has_all_ios(job))
    }

    fn has_all_ios(&self, job: &FioJob) -> bool {
        job.number_ios.is_some_and(|most| self.ios >= most)
    }

    /// Begins the next iteration. Returns true for the first iteration, and `None` if no iteration
    /// is left.
    pub(crate) fn begin_iteration(&mut self, job: &FioJob) -> Option<bool> {
        // If an iteration issued nothing, no later iteration can issue anything. Without this test
        // a time-based job would loop forever.
        if (self.begun && self.iteration == 0) || !self.goes_on(job) {
            return None;
        }
        let first = !self.begun;
        (self.iteration, self.begun) = (0, true);
        Some(first)
    }

    fn goes_on(&mut self, job: &FioJob) -> bool {
        if job.time_based {
            return true;
        }
        if self.loops_left > 0 {
            self.loops_left -= 1;
            (self.in_loop, self.ios) = (0, 0);
            return true;
        }
        let largest = job
            .used_blocks()
            .map(Blocks::largest)
            .max()
            .unwrap_or(0)
            .max(1);
        // fio begins no iteration for a rest smaller than its largest block (`keep_running` in
        // `backend.c`).
        job.io_size.is_some()
            && !self.has_all_ios(job)
            && self.limit.saturating_sub(self.total) >= largest
    }
}
