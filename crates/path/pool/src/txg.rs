//! Transaction groups: dirty records, their order, and the delay of writers
//! (`module/zfs/txg.c`, `dsl_pool.c`, `dmu_tx.c`, OpenZFS 2.1).
//!
//! One group is open and collects dirty records; one group may be written at the same time. A group
//! begins to be written 5 s after the one before, or when a fifth of `dirty_data_max` is dirty. The
//! steps of a group follow each other: records, indirect blocks, the turn of a scan, the pool's own
//! metadata, a flush, the labels, a flush.
//!
//! A scrub or healing resilver issues I/O in its turn of a group (`dsl_scan_sync`). A turn has at least
//! 1 s for a scrub and 3 s for a resilver, and at most 5 s since the start of the group. Then the group
//! waits for all I/O of the scan (`zio_wait` in `dsl_scan_sync`). So a scan under load delays the end of
//! each group.

use crate::place::Dva;
use fullstroke_units::{Duration, Time};
use std::collections::{HashMap, VecDeque};

/// Percentage of dirty data from which a group is written: `zfs_dirty_data_sync_percent`.
const SYNC_PERCENT: u64 = 20;

/// Percentage of dirty data from which writers are delayed: `zfs_delay_min_dirty_percent`.
const DELAY_PERCENT: u64 = 60;

/// Delay of a writer halfway between that percentage and all: `zfs_delay_scale`.
const DELAY_SCALE_NS: u64 = 500_000;

/// Percentage of dirty data from which the turn of a scan ends after its least time:
/// `zfs_vdev_async_write_active_min_dirty_percent` (`scan_io_queue_check_suspend`).
const SCAN_DIRTY_PERCENT: u64 = 30;

/// Longest delay: `zfs_delay_max_ns`.
const DELAY_MAX: Duration = Duration::from_millis(100);

const OPEN: u8 = 1;
const WRITING: u8 = 2;

/// Step of the group that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// No group is written.
    #[default]
    Idle,
    /// Records.
    Data,
    /// Indirect blocks of the volume.
    Indirect,
    /// A scrub or healing resilver has its turn.
    Scan,
    /// Space maps and the pool's object set.
    Pool,
    /// Flush before the labels.
    FlushBefore,
    /// Uberblocks.
    Labels,
    /// Flush after the labels.
    FlushAfter,
}

/// The scan of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// No scan runs.
    None,
    /// A sequential resilver, which reads at any time.
    Sequential,
    /// A scrub or healing resilver, which has a turn in each group.
    InTurns,
}

/// The state of a dirty record.
#[derive(Clone, Copy, Debug, Default)]
struct Dirty {
    flags: u8,
    /// Bytes in the open group, and in the group that is written.
    open: u32,
    writing: u32,
}

/// The transaction groups.
#[derive(Debug)]
pub(crate) struct Txg {
    states: HashMap<u64, Dirty>,
    open: Vec<u64>,
    /// Records of the group that is written, ascending.
    pub(crate) writing: Vec<u64>,
    /// Number of records of `writing` that have been taken.
    pub(crate) taken: usize,
    /// Records that the processor has prepared, and that have no place yet.
    pub(crate) prepared: VecDeque<u64>,
    /// Places of records that the intent log has written already.
    pub(crate) logged: HashMap<u64, Dva>,
    /// Bytes of dirty records.
    pub(crate) dirty: u64,
    pub(crate) most: u64,
    timeout: Duration,
    pub(crate) step: Step,
    /// Number of rounds of the pool's own objects so far, and the first place of these objects in the
    /// list of metadata.
    pub(crate) round: usize,
    pub(crate) objects_from: usize,
    /// Number of blocks in flight of the present step.
    pub(crate) outstanding: u32,
    /// Start of the last group.
    started: Time,
    /// Earliest end of the turn of a scan, and true from the end of the turn on.
    scan_until: Time,
    scan_is_over: bool,
    /// End of the last delay.
    last_wake: Time,
    /// Number of groups written.
    pub(crate) groups: u64,
}

impl Txg {
    pub(crate) fn new(most: u64, timeout: Duration) -> Txg {
        Txg {
            states: HashMap::new(),
            open: Vec::new(),
            writing: Vec::new(),
            taken: 0,
            prepared: VecDeque::new(),
            logged: HashMap::new(),
            dirty: 0,
            most,
            timeout,
            step: Step::Idle,
            round: 0,
            objects_from: 0,
            outstanding: 0,
            started: Time::ZERO,
            scan_until: Time::ZERO,
            scan_is_over: false,
            last_wake: Time::ZERO,
            groups: 0,
        }
    }

    /// Returns true if the record is dirty, and therefore in memory.
    pub(crate) fn holds(&self, record: u64) -> bool {
        self.states.contains_key(&record)
    }

    /// Marks a record of `bytes` as dirty in the open group.
    pub(crate) fn dirty(&mut self, record: u64, bytes: u64) {
        let state = self.states.entry(record).or_default();
        if state.flags & OPEN == 0 {
            state.flags |= OPEN;
            self.open.push(record);
        }
        // A record of a file may have grown since.
        self.dirty += bytes - u64::from(state.open).min(bytes);
        state.open = state.open.max(bytes as u32);
        if state.flags & WRITING == 0 {
            // The copy of the intent log is out of date.
            self.logged.remove(&record);
        }
    }

    /// True if the record is dirty in the open group.
    pub(crate) fn is_open(&self, record: u64) -> bool {
        self.states
            .get(&record)
            .is_some_and(|state| state.flags & OPEN != 0)
    }

    /// Counts a record of the group that is written as clean.
    pub(crate) fn written(&mut self, record: u64) {
        if let Some(state) = self.states.get_mut(&record) {
            self.dirty -= u64::from(std::mem::take(&mut state.writing));
            state.flags &= !WRITING;
            if state.flags == 0 {
                self.states.remove(&record);
            }
        }
    }

    /// Takes a record out of the open group, because its file was removed (`dbuf_undirty`). Returns
    /// true if the group before is about to write the record.
    pub(crate) fn undirty(&mut self, record: u64) -> bool {
        let Some(state) = self.states.get_mut(&record) else {
            return false;
        };
        self.dirty -= u64::from(std::mem::take(&mut state.open));
        // The number stays in `open` until the group begins.
        state.flags &= !OPEN;
        let is_written = state.flags & WRITING != 0;
        if !is_written {
            self.states.remove(&record);
            self.logged.remove(&record);
        }
        is_written
    }

    /// Returns the time at which the open group is due to be written; `None` if nothing is dirty or
    /// another group is written. The progress of a scan is dirty in each group
    /// (`dsl_scan_sync_state`, `vdev_rebuild_update_sync`).
    pub(crate) fn due(&self, scan: Scan) -> Option<Time> {
        if self.step != Step::Idle || (self.open.is_empty() && scan == Scan::None) {
            return None;
        }
        let full = self.dirty >= self.most / 100 * SYNC_PERCENT;
        // `txg_sync_thread` does not wait while a scan has turns (`dsl_scan_active`).
        let is_due = full || scan == Scan::InTurns;
        let due = self.started + self.timeout;
        Some(if is_due { Time::ZERO } else { due })
    }

    /// Begins the turn of a scan, at least `least` long.
    pub(crate) fn begin_scan(&mut self, now: Time, least: Duration) {
        self.step = Step::Scan;
        self.scan_until = now + least;
        self.scan_is_over = false;
    }

    /// Ends the turn of a scan if its time has come. Returns true from the end of the turn on.
    pub(crate) fn end_scan(&mut self, now: Time) -> bool {
        self.scan_is_over |= self.scan_ends().is_some_and(|ends| ends <= now);
        self.scan_is_over
    }

    /// Returns the time at which the turn of a scan ends if no further data becomes dirty; `None`
    /// outside of a turn.
    pub(crate) fn scan_ends(&self) -> Option<Time> {
        let dirty = self.dirty >= self.most / 100 * SCAN_DIRTY_PERCENT;
        let last = if dirty {
            self.scan_until
        } else {
            self.scan_until.max(self.started + self.timeout)
        };
        self.scan_may_issue().then_some(last)
    }

    /// True if a scan may issue I/O.
    pub(crate) fn scan_may_issue(&self) -> bool {
        self.step == Step::Scan && !self.scan_is_over
    }

    /// Begins to write the open group.
    pub(crate) fn begin(&mut self, now: Time) {
        assert!(self.step == Step::Idle, "one group is written at a time");
        self.started = now;
        self.step = Step::Data;
        self.taken = 0;
        self.writing.clear();
        std::mem::swap(&mut self.writing, &mut self.open);
        // `write_indirect` counts blocks of pointers by comparing neighbours, so the records must
        // ascend.
        self.writing.sort_unstable();
        self.writing.dedup();
        let states = &mut self.states;
        self.writing.retain(|record| match states.get_mut(record) {
            Some(state) if state.flags & OPEN != 0 => {
                *state = Dirty {
                    flags: WRITING,
                    open: 0,
                    writing: state.open,
                };
                true
            }
            // The record was removed again.
            _ => false,
        });
    }

    /// True if writers wait until dirty data has been written.
    pub(crate) fn is_full(&self) -> bool {
        self.dirty >= self.most
    }

    /// Returns the time at which a writer of now goes on (`dmu_tx_delay`).
    pub(crate) fn admit(&mut self, now: Time) -> Time {
        let from = self.most / 100 * DELAY_PERCENT;
        if self.dirty <= from || self.is_full() {
            return now;
        }
        let nanos = u128::from(DELAY_SCALE_NS) * u128::from(self.dirty - from)
            / u128::from(self.most - self.dirty);
        let nanos = nanos.min(DELAY_MAX.as_nanos().into()) as u64;
        let delay = Duration::from_nanos(nanos);
        // Delayed writers wake one after the other (`dp_last_wakeup` in `dmu_tx_delay`). Otherwise
        // all would wake at once.
        self.last_wake = (now + delay).max(self.last_wake + delay);
        self.last_wake
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_due_after_five_seconds_or_with_a_fifth_dirty() {
        let mut txg = Txg::new(100_000, Duration::from_secs(5));
        assert_eq!(txg.due(Scan::None), None);
        let after = |seconds| Some(Time::ZERO + Duration::from_secs(seconds));
        assert_eq!(txg.due(Scan::Sequential), after(5));
        assert_eq!(txg.due(Scan::InTurns), after(0));
        txg.dirty(1, 1000);
        txg.dirty(1, 1000);
        assert_eq!(txg.dirty, 1000);
        assert_eq!(txg.due(Scan::None), after(5));
        (2..=20).for_each(|record| txg.dirty(record, 1000));
        assert_eq!(txg.due(Scan::None), Some(Time::ZERO));
        txg.begin(Time::ZERO);
        txg.dirty(7, 1000);
        assert_eq!((txg.due(Scan::None), txg.dirty), (None, 21_000));
        txg.written(7);
        assert!(txg.holds(7), "the record is dirty again");
        txg.written(8);
        assert!(!txg.holds(8));
    }

    /// The delay halfway between 60 % and 100 % is `zfs_delay_scale`.
    #[test]
    fn writers_are_delayed_by_the_curve_of_dirty_data() {
        let mut txg = Txg::new(100_000, Duration::from_secs(5));
        (0..60).for_each(|record| txg.dirty(record, 1000));
        assert_eq!(txg.admit(Time::ZERO), Time::ZERO);
        (60..80).for_each(|record| txg.dirty(record, 1000));
        let first = txg.admit(Time::ZERO);
        assert_eq!(first, Time::ZERO + Duration::from_nanos(500_000));
        let second = txg.admit(Time::ZERO);
        assert_eq!(
            second,
            first + Duration::from_nanos(500_000),
            "one after the other"
        );
        (80..99).for_each(|record| txg.dirty(record, 1000));
        let third = txg.admit(Time::ZERO);
        assert_eq!(third, second + Duration::from_nanos(500_000 * 39));
    }
}
