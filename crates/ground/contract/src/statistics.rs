//! What a drive has counted. How a counter is named and shown stands in the crate `counters`.

use crate::PowerStatistics;
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
    /// Time in which the arm was taken until this was read: by requests, from the begin of their
    /// overheads to when the medium was done with them, and by what the drive
    /// does on its own account, read-ahead and destaging.
    pub busy: Duration,
    /// Sum over requests of the time in the queue.
    pub queue: Duration,
    /// Sum over requests of command overhead.
    pub overhead: Duration,
    /// Seek time of the arm, whatever for.
    pub seek: Duration,
    /// Its rotational latency.
    pub rotation: Duration,
    /// Its transfer time.
    pub transfer: Duration,
    /// Sum over requests of the cylinders crossed to the first track.
    pub seek_cylinders: u64,
    /// Requests whose first track lay under the arm already.
    pub zero_seeks: u64,
    /// Requests that the buffer answered: reads of what it held, writes that it
    /// took.
    pub buffer_hits: u64,
    /// Integral of the number of requests in the drive over time, in
    /// request-nanoseconds.
    pub queue_length_ns: u128,
    /// What it has cost; `None` where the drive's file does not say what it draws.
    pub power: Option<PowerStatistics>,
}

impl MemberStatistics {
    /// The totals of both: the sums. Times saturate: a thousand drives count a
    /// thousand years in one.
    #[must_use]
    pub fn plus(self, other: MemberStatistics) -> MemberStatistics {
        MemberStatistics {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            sectors_read: self.sectors_read + other.sectors_read,
            sectors_written: self.sectors_written + other.sectors_written,
            busy: self.busy.saturating_add(other.busy),
            queue: self.queue.saturating_add(other.queue),
            overhead: self.overhead.saturating_add(other.overhead),
            seek: self.seek.saturating_add(other.seek),
            rotation: self.rotation.saturating_add(other.rotation),
            transfer: self.transfer.saturating_add(other.transfer),
            seek_cylinders: self.seek_cylinders + other.seek_cylinders,
            zero_seeks: self.zero_seeks + other.zero_seeks,
            buffer_hits: self.buffer_hits + other.buffer_hits,
            queue_length_ns: self.queue_length_ns + other.queue_length_ns,
            power: match (self.power, other.power) {
                (Some(one), Some(another)) => Some(one.plus(another)),
                (one, another) => one.or(another),
            },
        }
    }

    /// Requests served.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Joules taken; not a number where it is not known what the drive draws.
    pub fn energy_j(&self) -> f64 {
        self.power.map_or(f64::NAN, |power| power.energy().0)
    }
}
