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
    /// The totals of both: the sums.
    #[must_use]
    pub fn plus(self, other: MemberStatistics) -> MemberStatistics {
        MemberStatistics {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            sectors_read: self.sectors_read + other.sectors_read,
            sectors_written: self.sectors_written + other.sectors_written,
            busy: self.busy + other.busy,
            queue: self.queue + other.queue,
            overhead: self.overhead + other.overhead,
            seek: self.seek + other.seek,
            rotation: self.rotation + other.rotation,
            transfer: self.transfer + other.transfer,
            seek_cylinders: self.seek_cylinders + other.seek_cylinders,
            zero_seeks: self.zero_seeks + other.zero_seeks,
            queue_length_ns: self.queue_length_ns + other.queue_length_ns,
        }
    }

    /// Requests served.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }
}
