//! TRIM of free space (`module/zfs/vdev_trim.c`, OpenZFS 2.1).
//!
//! 1. `autotrim`: space that became free goes to the drives a while later. Each transaction group
//!    takes one metaslab in 32, so that small holes have time to join (`vdev_autotrim_thread`).
//! 2. `trim`: all free space goes to the drives once, metaslab by metaslab (`zpool trim`).
//! 3. Ranges below 32 KiB are left out, and ranges above 128 MiB are divided. A vdev has at most ten
//!    ranges in flight, and the queue of a drive lets one or two commands go (class `trim`).
//! 4. Only drives that take TRIM get any: flash devices, and shingled drives with `trim = true`.
//!
//! ZFS disables a metaslab while the metaslab is trimmed, so that no write overtakes a TRIM of its
//! place. Here a range is not free while its TRIM is in flight, which has the same effect.

use crate::allocate::Space;
use crate::config::PoolSettings;
use crate::io::Purpose;
use crate::place::Dva;
use crate::pool::Pool;
use fullstroke_contract::Slots;
use fullstroke_units::{Duration, Time};
use std::collections::VecDeque;

/// Smallest range: `zfs_trim_extent_bytes_min`.
pub(crate) const RANGE_MIN: u64 = 32 << 10;

/// Largest range: `zfs_trim_extent_bytes_max`.
const RANGE_MAX: u64 = 128 << 20;

/// Transaction groups in which each metaslab has one turn: `zfs_trim_txg_batch`.
pub(crate) const BATCH: u64 = 32;

/// Ranges of a vdev in flight: `zfs_trim_queue_limit`.
const IN_FLIGHT: u32 = 10;

/// The state of one vdev.
#[derive(Clone, Debug, Default)]
struct VdevTrim {
    /// True if a drive of the vdev takes TRIM.
    takes: bool,
    /// Largest range: whole units of the vdev.
    most: u64,
    /// Ranges that wait, each with its first byte and its size.
    waiting: VecDeque<(u64, u64)>,
    /// Address from which the free space is still to be trimmed on demand; `None` if all is done.
    on_demand: Option<u64>,
    in_flight: u32,
    /// Earliest time of the next range on demand.
    next: Time,
}

/// TRIM of all vdevs.
#[derive(Debug)]
pub(crate) struct Trim {
    auto: bool,
    /// Largest rate of TRIM on demand, in bytes a second.
    rate: Option<u64>,
    /// The vdevs, the special vdev last.
    vdevs: Vec<VdevTrim>,
    ranges: Slots<(Dva, u64)>,
    /// Number of ranges, and of bytes of the vdevs.
    pub(crate) counts: (u64, u64),
}

impl Trim {
    pub(crate) fn new(settings: &PoolSettings) -> Trim {
        let keys = &settings.trim;
        let vdevs = settings.vdevs.iter().chain(&settings.special);
        let vdevs = vdevs.enumerate().map(|(index, (vdev, _))| {
            let unit = vdev.alignment(settings.ashift);
            let first = index * settings.width();
            let drives = first..first + vdev.children() as usize;
            let takes = settings.trims[drives].contains(&true);
            VdevTrim {
                takes,
                most: RANGE_MAX / unit * unit,
                on_demand: (keys.trim && takes).then_some(0),
                ..VdevTrim::default()
            }
        });
        Trim {
            auto: keys.autotrim,
            rate: keys.trim_rate.map(|rate| rate.0),
            vdevs: vdevs.collect(),
            ranges: Slots::default(),
            counts: (0, 0),
        }
    }

    /// Returns true if the pool sends TRIM.
    pub(crate) fn is_used(&self) -> bool {
        self.auto || self.vdevs.iter().any(|vdev| vdev.on_demand.is_some()) || self.counts.0 > 0
    }

    /// Returns the time at which the next range on demand may go; `Time::NEVER` if none waits for a
    /// time.
    pub(crate) fn next(&self) -> Time {
        let waits = self.vdevs.iter().filter(|vdev| {
            vdev.on_demand.is_some() && vdev.in_flight < IN_FLIGHT && vdev.next > Time::ZERO
        });
        waits.map(|vdev| vdev.next).min().unwrap_or(Time::NEVER)
    }
}

impl VdevTrim {
    /// Takes the next range: the first of the waiting ranges, or of the free space from the present address on.
    fn take(&mut self, now: Time, free: impl Fn(u64) -> Option<(u64, u64)>) -> Option<(u64, u64)> {
        if let Some((start, size)) = self.waiting.pop_front() {
            let part = size.min(self.most);
            if part < size {
                self.waiting.push_front((start + part, size - part));
            }
            return Some((start, part));
        }
        if self.next > now {
            return None;
        }
        let found = free(self.on_demand?);
        let range = found.map(|(start, size)| (start, size.min(self.most)));
        self.on_demand = range.map(|(start, size)| start + size);
        range
    }
}

impl Pool {
    /// Returns the free space of a vdev, and the number of the vdev in this space.
    fn space_of(&mut self, vdev: usize) -> (&mut Space, usize) {
        match &mut self.special {
            Some(special) if vdev == self.settings.vdevs.len() => (special, 0),
            _ => (&mut self.space, vdev),
        }
    }

    /// Lets the metaslabs of the group that has ended have their turn.
    pub(crate) fn trim_freed(&mut self) {
        if !self.trim.auto {
            return;
        }
        let turn = self.txg.groups % BATCH;
        for vdev in 0..self.trim.vdevs.len() {
            let (space, index) = self.space_of(vdev);
            let freed = space.freed_for_trim(index, turn);
            let state = &mut self.trim.vdevs[vdev];
            if state.takes {
                state.waiting.extend(freed);
            }
        }
    }

    /// Sends the next ranges to the drives.
    pub(crate) fn trim_step(&mut self, now: Time) {
        for vdev in 0..self.trim.vdevs.len() {
            while self.trim.vdevs[vdev].in_flight < IN_FLIGHT {
                let mut state = std::mem::take(&mut self.trim.vdevs[vdev]);
                let is_on_demand = state.waiting.is_empty();
                let (space, index) = self.space_of(vdev);
                let range = state.take(now, |from| space.free_from(index, from));
                if let (Some((_, size)), Some(rate), true) = (range, self.trim.rate, is_on_demand) {
                    let nanos = u128::from(size) * 1_000_000_000 / u128::from(rate.max(1));
                    state.next = state.next.max(now)
                        + Duration::from_nanos(nanos.min(u64::MAX.into()) as u64);
                }
                self.trim.vdevs[vdev] = state;
                let Some(range) = range else { break };
                self.trim_range(now, vdev, range);
            }
        }
    }

    /// Sends the free parts of a range.
    fn trim_range(&mut self, now: Time, vdev: usize, (start, size): (u64, u64)) {
        let (space, index) = self.space_of(vdev);
        for (start, size) in space.hold(index, start, size) {
            let dva = Dva {
                vdev: vdev as u32,
                offset: start,
            };
            let range = self.trim.ranges.keep((dva, size));
            self.trim.vdevs[vdev].in_flight += 1;
            self.trim.counts.0 += 1;
            self.trim.counts.1 += size;
            self.io.trim(now, (dva, size), Purpose::Trim { range });
        }
    }

    /// A range has been trimmed: its space is free again.
    pub(crate) fn trimmed(&mut self, range: u32) {
        let (dva, size) = self.trim.ranges.take(range);
        let vdev = dva.vdev as usize;
        self.trim.vdevs[vdev].in_flight -= 1;
        let (space, index) = self.space_of(vdev);
        space.let_go(index, dva.offset, size);
    }
}
