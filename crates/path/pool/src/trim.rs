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

use crate::config::PoolSettings;
use crate::place::Dva;
use fullstroke_contract::{ConfigError, Slots};
use fullstroke_units::{Duration, Time};
use std::collections::VecDeque;

/// Largest range: `zfs_trim_extent_bytes_max`.
const RANGE_MAX: u64 = 128 << 20;

/// Ranges of a vdev in flight: `zfs_trim_queue_limit`.
const IN_FLIGHT: u32 = 10;

/// The state of one vdev.
#[derive(Clone, Debug, Default)]
struct VdevTrim {
    /// True if a drive of the vdev takes TRIM.
    takes: bool,
    /// Largest range: whole units of the vdev.
    most: u64,
    /// Waiting ranges: the first byte and the size of each.
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

    /// True if space that became free goes to the drives.
    pub(crate) fn is_auto(&self) -> bool {
        self.auto
    }

    /// Number of vdevs, the special vdev included.
    pub(crate) fn vdevs(&self) -> usize {
        self.vdevs.len()
    }

    /// Lets freed ranges of a vdev wait, if a drive of the vdev takes TRIM.
    pub(crate) fn add_freed(&mut self, vdev: usize, freed: Vec<(u64, u64)>) {
        if self.vdevs[vdev].takes {
            self.vdevs[vdev].waiting.extend(freed);
        }
    }

    /// Takes the next range of a vdev that may go to the drives at `now`. `free` returns the first
    /// free range of the vdev from an address on.
    pub(crate) fn next_range(
        &mut self,
        now: Time,
        vdev: usize,
        free: impl Fn(u64) -> Option<(u64, u64)>,
    ) -> Option<(u64, u64)> {
        let state = &mut self.vdevs[vdev];
        if state.in_flight >= IN_FLIGHT {
            return None;
        }
        let is_on_demand = state.waiting.is_empty();
        let range = state.take(now, free)?;
        if let (Some(rate), true) = (self.rate, is_on_demand) {
            let nanos = u128::from(range.1) * 1_000_000_000 / u128::from(rate.max(1));
            state.next =
                state.next.max(now) + Duration::from_nanos(nanos.min(u64::MAX.into()) as u64);
        }
        Some(range)
    }

    /// Notes a range that goes to the drives. Returns the number of the range.
    pub(crate) fn begin(&mut self, dva: Dva, size: u64) -> u32 {
        self.vdevs[dva.vdev as usize].in_flight += 1;
        self.counts.0 += 1;
        self.counts.1 += size;
        self.ranges.keep((dva, size))
    }

    /// Ends a range, and returns its place and size.
    pub(crate) fn end(&mut self, range: u32) -> (Dva, u64) {
        let (dva, size) = self.ranges.take(range);
        self.vdevs[dva.vdev as usize].in_flight -= 1;
        (dva, size)
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

impl PoolSettings {
    /// Returns the settings for drives of which those with `true` take TRIM.
    ///
    /// # Errors
    /// If the keys ask for TRIM, and no drive takes any.
    pub fn trimming(self, trims: Vec<bool>) -> Result<PoolSettings, ConfigError> {
        let asked = [("autotrim", self.trim.autotrim), ("trim", self.trim.trim)];
        let asked = asked.into_iter().find(|(_, is_asked)| *is_asked);
        if let Some((key, _)) = asked
            && !trims.contains(&true)
        {
            let message = "found true; cannot trim: no devices in pool support trim operations. Flash devices take TRIM, and shingled drives with trim = true";
            return Err(ConfigError::new(key, message));
        }
        Ok(PoolSettings { trims, ..self })
    }
}
