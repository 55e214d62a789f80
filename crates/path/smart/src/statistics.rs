//! Counters of a disk.

use crate::choices::{CommandClass, Segments};
use fullstroke_contract::MemberStatistics;
use fullstroke_drive::AccessTimes;
use fullstroke_units::{Duration, Sectors, Time};

/// Totals of one smart disk since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStatistics {
    /// Number of ordinary reads served.
    pub reads: u64,
    /// Number of ordinary writes served.
    pub writes: u64,
    /// Number of XDWRITEs served.
    pub xdws: u64,
    /// Number of XPWRITEs served.
    pub xpws: u64,
    /// Time in which commands waited but none could begin, because segments were lacking.
    pub forced_idle: Duration,
    /// Number of XDWs and XPWs begun while XDWs waited for lack of segments.
    pub without_choice: u64,
    /// Sum over XDWs of seek and rotation before the first transfer.
    pub xdw_access: Duration,
    /// Sum over XPWs of seek and rotation before the first transfer.
    pub xpw_access: Duration,
    /// Integral of the segments in use over time, in segment-nanoseconds.
    pub segments_ns: u128,
    /// Integral over time of the segments with results, in segment-nanoseconds.
    pub results_ns: u128,
    /// Integral of the number of XPWs in the queue, in command-nanoseconds.
    pub xpw_queue_ns: u128,
    /// Counters of any drive. XDWs and XPWs count as writes. The work of their arms includes the
    /// reading of old data.
    pub drive: MemberStatistics,
}

/// The running counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SmartCounters {
    counts: DiskStatistics,
    /// Number of commands waiting or in service.
    commands: u32,
    changed: Time,
}

impl SmartCounters {
    /// Adds the time up to `now` to the integrals, before segments or queue change.
    #[inline]
    pub(crate) fn integrate(&mut self, now: Time, segments: Segments, xpws: usize) {
        // 64 bits of command-nanoseconds would last about 200 days with a thousand commands in a
        // queue.
        let span = u128::from(now.since(self.changed).as_nanos());
        let used = segments.working + segments.results;
        self.counts.segments_ns += span * u128::from(used);
        self.counts.results_ns += span * u128::from(segments.results);
        self.counts.xpw_queue_ns += span * xpws as u128;
        self.counts.drive.queue_length_ns += span * u128::from(self.commands);
        self.changed = self.changed.max(now);
    }

    /// Counts an arrived command.
    pub(crate) fn arrived(&mut self) {
        self.commands += 1;
    }

    /// Counts an access of a command. `first` is true for the first access.
    pub(crate) fn accessed(&mut self, access: &AccessTimes, first: bool) {
        let drive = &mut self.counts.drive;
        drive.seek += access.seek;
        drive.rotation += access.rotation;
        drive.transfer += access.transfer;
        if first {
            drive.seek_cylinders += u64::from(access.seek_cylinders);
            drive.zero_seeks += u64::from(access.seek_cylinders == 0);
        }
    }

    /// Counts a command that begins after the wait `waited`.
    pub(crate) fn begun(
        &mut self,
        class: CommandClass,
        waited: Duration,
        access: Duration,
        without_choice: bool,
    ) {
        let counts = &mut self.counts;
        // Many commands wait at a time, so the sum of the waits may exceed the range of the
        // counter.
        counts.drive.queue = counts.drive.queue.saturating_add(waited);
        counts.without_choice += u64::from(without_choice);
        match class {
            CommandClass::Xdw => counts.xdw_access += access,
            CommandClass::Xpw => counts.xpw_access += access,
            CommandClass::Plain => {}
        }
    }

    /// Counts a finished command for `sectors` sectors. The service took `busy`, including
    /// `overhead` before the arm moved.
    pub(crate) fn finished(
        &mut self,
        class: CommandClass,
        read: bool,
        sectors: Sectors,
        busy: Duration,
        overhead: Duration,
    ) {
        assert!(
            self.commands > 0,
            "a command of {sectors} ends, and none is at the disk"
        );
        self.commands -= 1;
        let counts = &mut self.counts;
        counts.drive.busy += busy;
        counts.drive.overhead += overhead;
        if read {
            counts.drive.reads += 1;
            counts.drive.sectors_read += sectors;
        } else {
            counts.drive.writes += 1;
            counts.drive.sectors_written += sectors;
        }
        match class {
            CommandClass::Xdw => counts.xdws += 1,
            CommandClass::Xpw => counts.xpws += 1,
            CommandClass::Plain if read => counts.reads += 1,
            CommandClass::Plain => counts.writes += 1,
        }
    }

    /// Counts forced idle time.
    pub(crate) fn was_idle(&mut self, span: Duration) {
        self.counts.forced_idle += span;
    }

    pub(crate) fn so_far(&self) -> DiskStatistics {
        self.counts
    }
}

impl DiskStatistics {
    /// Number of commands served.
    pub fn commands(&self) -> u64 {
        self.reads + self.writes + self.xdws + self.xpws
    }
}
