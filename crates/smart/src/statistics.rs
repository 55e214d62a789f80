//! What a disk counts about itself.

use crate::choices::{Class, Segments};
use fullstroke_units::{Duration, Time};

/// Totals of one smart disk since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStatistics {
    /// Ordinary reads served.
    pub reads: u64,
    /// Ordinary writes served.
    pub writes: u64,
    /// XDWRITEs served.
    pub xdws: u64,
    /// XPWRITEs served.
    pub xpws: u64,
    /// Time in which a command was in service.
    pub busy: Duration,
    /// Time in which commands waited and none could begin for want of segments.
    pub forced_idle: Duration,
    /// XDWs and XPWs begun while XDWs waited for which segments were lacking.
    pub without_choice: u64,
    /// Sum over XDWs of seek and rotation before the first transfer.
    pub xdw_access: Duration,
    /// The same of XPWs.
    pub xpw_access: Duration,
    /// Integral of the segments in use over time, in segment-nanoseconds.
    pub segments_ns: u128,
    /// Of these, segments that hold results.
    pub results_ns: u128,
    /// Integral of the number of XPWs in the queue, in command-nanoseconds.
    pub xpw_queue_ns: u128,
}

/// The running counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Statistics {
    counts: DiskStatistics,
    changed: Time,
}

impl Statistics {
    /// Segments or queue are about to change at `now`.
    #[inline]
    pub(crate) fn integrate(&mut self, now: Time, segments: Segments, xpws: usize) {
        let span = u128::from(now.since(self.changed).as_nanos());
        let used = segments.working + segments.results;
        self.counts.segments_ns += span * u128::from(used);
        self.counts.results_ns += span * u128::from(segments.results);
        self.counts.xpw_queue_ns += span * xpws as u128;
        self.changed = self.changed.max(now);
    }

    /// A command is begun.
    pub(crate) fn begun(&mut self, class: Class, access: Duration, without_choice: bool) {
        let counts = &mut self.counts;
        counts.without_choice += u64::from(without_choice);
        match class {
            Class::Xdw => counts.xdw_access += access,
            Class::Xpw => counts.xpw_access += access,
            Class::Plain => {}
        }
    }

    /// A command was served in `busy`.
    pub(crate) fn finished(&mut self, class: Class, read: bool, busy: Duration) {
        let counts = &mut self.counts;
        counts.busy += busy;
        match class {
            Class::Xdw => counts.xdws += 1,
            Class::Xpw => counts.xpws += 1,
            Class::Plain if read => counts.reads += 1,
            Class::Plain => counts.writes += 1,
        }
    }

    /// The disk has had to be idle for so long.
    pub(crate) fn was_idle(&mut self, span: Duration) {
        self.counts.forced_idle += span;
    }

    pub(crate) fn so_far(&self) -> DiskStatistics {
        self.counts
    }
}

impl DiskStatistics {
    /// Commands served.
    pub fn commands(&self) -> u64 {
        self.reads + self.writes + self.xdws + self.xpws
    }
}
