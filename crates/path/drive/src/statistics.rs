//! Counters of a drive about requests.

use fullstroke_contract::{Breakdown, MemberStatistics, Operation};
use fullstroke_units::{Duration, Sectors, Time};

/// The running counters; [`MemberStatistics`] is the reading.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DriveCounters {
    counts: MemberStatistics,
    in_flight: u64,
    changed: Time,
}

impl DriveCounters {
    /// Counts an arrived request.
    #[inline]
    pub(crate) fn arrived(&mut self, now: Time) {
        self.integrate(now);
        self.in_flight += 1;
    }

    /// Counts a finished request.
    #[inline]
    pub(crate) fn finished(
        &mut self,
        now: Time,
        operation: Operation,
        sectors: Sectors,
        parts: &Breakdown,
    ) {
        self.integrate(now);
        assert!(
            self.in_flight > 0,
            "a request ends at {now:?}, and none is in the drive"
        );
        self.in_flight -= 1;
        let counts = &mut self.counts;
        match operation {
            Operation::Write => {
                counts.writes += 1;
                counts.sectors_written += sectors;
            }
            Operation::Read => {
                counts.reads += 1;
                counts.sectors_read += sectors;
            }
            // The means below are over transfers only.
            _ => return,
        }
        // Many requests wait at a time, so the sum of the waits may exceed the range of the
        // counter.
        counts.queue = counts.queue.saturating_add(parts.queue);
        counts.overhead = counts.overhead.saturating_add(parts.overhead);
        counts.seek_cylinders += u64::from(parts.seek_cylinders);
        counts.zero_seeks += u64::from(parts.seek_cylinders == 0);
    }

    /// Returns the counters up to the last event.
    pub(crate) fn so_far(&self) -> MemberStatistics {
        self.counts
    }

    fn integrate(&mut self, now: Time) {
        let span: Duration = now.since(self.changed);
        self.counts.queue_length_ns += u128::from(self.in_flight) * u128::from(span.as_nanos());
        self.changed = self.changed.max(now);
    }
}
