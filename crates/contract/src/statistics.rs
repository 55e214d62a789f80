//! What a drive has counted, for reports.

use fullstroke_units::{Duration, Sectors};

/// Totals of one drive since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberStatistics {
    /// Reads served.
    pub reads: u64,
    /// Writes served.
    pub writes: u64,
    /// Sectors read.
    pub sectors_read: Sectors,
    /// Sectors written.
    pub sectors_written: Sectors,
    /// Time in which a request was in service.
    pub busy: Duration,
    /// Sum over requests of the time in the queue.
    pub queue: Duration,
    /// Sum over requests of command overhead.
    pub overhead: Duration,
    /// Sum over requests of seek time.
    pub seek: Duration,
    /// Sum over requests of rotational latency.
    pub rotation: Duration,
    /// Sum over requests of transfer time.
    pub transfer: Duration,
    /// Sum over requests of the cylinders crossed to the first track.
    pub seek_cylinders: u64,
    /// Requests whose first track lay under the arm already.
    pub zero_seeks: u64,
    /// Integral of the number of requests in the drive over time, in
    /// request-nanoseconds.
    pub queue_length_ns: u128,
}

impl MemberStatistics {
    /// Requests served.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }
}
