//! The counters of a drive. The crate `counters` defines their names and display.

use crate::PowerStatistics;
use fullstroke_units::{Duration, Sectors};

/// Totals of one drive since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberStatistics {
    /// Number of reads served.
    pub reads: u64,
    /// Number of writes served.
    pub writes: u64,
    /// Number of sectors read.
    pub sectors_read: Sectors,
    /// Number of sectors written.
    pub sectors_written: Sectors,
    /// Time in which the arm was busy, up to the reading of this counter. A request keeps the arm
    /// busy from the start of its overhead until the medium is done. The drive's own read-ahead and
    /// destaging count as well.
    pub busy: Duration,
    /// Sum over requests of the time in the queue.
    pub queue: Duration,
    /// Sum over requests of command overhead.
    pub overhead: Duration,
    /// Seek time of the arm, for any purpose.
    pub seek: Duration,
    /// Rotational latency of the arm, for any purpose.
    pub rotation: Duration,
    /// Transfer time of the arm, for any purpose.
    pub transfer: Duration,
    /// Sum over requests of the cylinders crossed to the first track.
    pub seek_cylinders: u64,
    /// Number of requests whose first track was already under the arm.
    pub zero_seeks: u64,
    /// Number of requests answered by the buffer: reads of held data, and writes that the buffer
    /// accepted.
    pub buffer_hits: u64,
    /// Integral of the number of requests in the drive over time, in
    /// request-nanoseconds.
    pub queue_length_ns: u128,
    /// Energy and power states; `None` if the drive's file has no power data.
    pub power: Option<PowerStatistics>,
}

impl MemberStatistics {
    /// Returns the sums of both. Times saturate because a thousand drives count a thousand years in
    /// one.
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

    /// Returns the number of requests served.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Returns the energy in joules; NaN if the drive's power is unknown.
    pub fn energy_j(&self) -> f64 {
        self.power.map_or(f64::NAN, |power| power.energy().0)
    }
}
