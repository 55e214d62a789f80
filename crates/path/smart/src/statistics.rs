//! What a disk counts about itself.

use crate::choices::{Class, Segments};
use fullstroke_contract::MemberStatistics;
use fullstroke_drive::Access;
use fullstroke_units::{Duration, Sectors, Time};

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
    /// What any drive counts. XDWs and XPWs are writes; their arms' work is the
    /// reading of what was there, too.
    pub drive: MemberStatistics,
}

/// The running counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Statistics {
    counts: DiskStatistics,
    /// Commands that wait or are in service.
    commands: u32,
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
        self.counts.drive.queue_length_ns += span * u128::from(self.commands);
        self.changed = self.changed.max(now);
    }

    /// A command has come.
    pub(crate) fn arrived(&mut self) {
        self.commands += 1;
    }

    /// The arm has carried out an access of a command, the first or the second.
    pub(crate) fn accessed(&mut self, access: &Access, first: bool) {
        let drive = &mut self.counts.drive;
        drive.seek += access.seek;
        drive.rotation += access.rotation;
        drive.transfer += access.transfer;
        if first {
            drive.seek_cylinders += u64::from(access.seek_cylinders);
            drive.zero_seeks += u64::from(access.seek_cylinders == 0);
        }
    }

    /// A command is begun that has waited for so long.
    pub(crate) fn begun(
        &mut self,
        class: Class,
        waited: Duration,
        access: Duration,
        without_choice: bool,
    ) {
        let counts = &mut self.counts;
        // Many wait at a time: their sum may exceed what can be counted.
        counts.drive.queue = counts.drive.queue.saturating_add(waited);
        counts.without_choice += u64::from(without_choice);
        match class {
            Class::Xdw => counts.xdw_access += access,
            Class::Xpw => counts.xpw_access += access,
            Class::Plain => {}
        }
    }

    /// A command for so many sectors was served in `busy`, of which `overhead`
    /// lay before the arm moved.
    pub(crate) fn finished(
        &mut self,
        class: Class,
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
