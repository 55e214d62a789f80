//! The cache of records on flash devices: L2ARC (`l2arc_feed_thread`, `l2arc_write_buffers`,
//! `arc_read` in `module/zfs/arc.c`, OpenZFS 2.2).
//!
//! 1. A thread feeds one device after the other, once a second. The thread comes back after 200 ms if
//!    it wrote more than half of what it may write.
//! 2. The thread looks at the records that leave the ARC next: the oldest frequent ones, then the
//!    oldest recent ones, as far as the headroom. As long as the ARC has evicted nothing, the thread
//!    looks at the newest ones, and writes twice as much.
//! 3. Records that were only read ahead are not written. Read-ahead does not read from the devices.
//! 4. A device is a ring: each record is written behind the one before, over the oldest records.
//! 5. Each record on a device has a header of 96 bytes in the memory of the ARC.

use crate::arc::RecordCache;
use crate::capacity::{FRONT, child_size};
use crate::checks::{HEADER, HEADERS_PERCENT};
use crate::config::PoolSettings;
use fullstroke_units::{Duration, Time};
use std::collections::{HashMap, HashSet, VecDeque};

/// Time between two writes, and the time after a large write: `l2arc_feed_secs`,
/// `l2arc_feed_min_ms`.
const FEED: Duration = Duration::from_secs(1);
const FEED_AGAIN: Duration = Duration::from_millis(200);

/// Multiple of the headroom, because the ARC holds compressed records: `l2arc_headroom_boost`.
const HEADROOM_BOOST: u64 = 2;

/// A device of the cache.
#[derive(Debug)]
struct Device {
    member: usize,
    /// Number of records that fit.
    slots: u64,
    /// Number of records written so far: the place of the next.
    written: u64,
    /// Records on the device, the oldest first, each with its number.
    order: VecDeque<(u64, u64)>,
}

/// A record on a device.
#[derive(Clone, Copy, Debug)]
struct CachedRecord {
    device: u32,
    number: u64,
    /// False while the record is being written.
    is_written: bool,
}

/// The devices of the cache.
#[derive(Debug)]
pub(crate) struct L2arc {
    devices: Vec<Device>,
    kept: HashMap<u64, CachedRecord>,
    /// Records that were read ahead and that nobody has asked for.
    only_ahead: HashSet<u64>,
    /// The device of the next write.
    rotor: usize,
    next: Time,
    psize: u64,
    /// Bytes of a write, and of the records that the thread looks at in each list.
    write_max: u64,
    headroom: u64,
    noprefetch: bool,
    /// Bytes of the ARC, headers included.
    memory: u64,
    /// Records that had to be read, and those found on the devices.
    pub(crate) misses: u64,
    pub(crate) hits: u64,
    pub(crate) fed: u64,
}

impl L2arc {
    pub(crate) fn new(settings: &PoolSettings) -> L2arc {
        let keys = &settings.memory.l2arc;
        let device = |member: usize| {
            let size = child_size(settings.members[member]);
            Device {
                member,
                slots: keys.size.map_or(size, |wanted| wanted.0.min(size)) / settings.psize,
                written: 0,
                order: VecDeque::new(),
            }
        };
        L2arc {
            devices: settings.caches().map(device).collect(),
            kept: HashMap::new(),
            only_ahead: HashSet::new(),
            rotor: 0,
            next: Time::ZERO + FEED,
            psize: settings.psize,
            write_max: keys.write_max.0,
            headroom: u64::from(keys.headroom) * HEADROOM_BOOST,
            noprefetch: keys.noprefetch,
            memory: settings.memory.arc.0,
            misses: 0,
            hits: 0,
            fed: 0,
        }
    }

    /// Returns the time of the next write to a device.
    pub(crate) fn next(&self) -> Time {
        match self.devices.is_empty() {
            true => Time::NEVER,
            false => self.next,
        }
    }

    /// Returns the bytes of the headers.
    pub(crate) fn headers(&self) -> u64 {
        self.kept.len() as u64 * HEADER
    }

    /// Takes note of a record that is read ahead.
    pub(crate) fn read_ahead(&mut self, record: u64) {
        if self.noprefetch && !self.devices.is_empty() {
            self.only_ahead.insert(record);
        }
    }

    /// Takes note of a read that somebody waits for.
    pub(crate) fn asked_for(&mut self, record: u64) {
        if !self.only_ahead.is_empty() {
            self.only_ahead.remove(&record);
        }
    }

    /// Returns the drive and the place of a record that must be read; `None` if the record is on the
    /// vdevs only.
    pub(crate) fn find(&mut self, record: u64, is_ahead: bool) -> Option<(usize, u64)> {
        if self.devices.is_empty() || (is_ahead && self.noprefetch) {
            return None;
        }
        self.misses += u64::from(!is_ahead);
        let kept = self.kept.get(&record).filter(|kept| kept.is_written)?;
        self.hits += u64::from(!is_ahead);
        let device = &self.devices[kept.device as usize];
        Some((device.member, self.place(device, kept.number)))
    }

    fn place(&self, device: &Device, number: u64) -> u64 {
        FRONT + number % device.slots * self.psize
    }

    /// Forgets a record that is written anew.
    pub(crate) fn forget(&mut self, record: u64) {
        if !self.kept.is_empty() {
            self.kept.remove(&record);
        }
    }

    /// A record is on its device.
    pub(crate) fn filled(&mut self, record: u64) {
        if let Some(kept) = self.kept.get_mut(&record) {
            kept.is_written = true;
        }
    }

    /// Chooses the records of the next write, and shrinks the ARC by the headers. Adds the drive,
    /// the place and the record of each write to `writes`.
    pub(crate) fn feed(
        &mut self,
        now: Time,
        arc: &mut RecordCache,
        writes: &mut Vec<(usize, u64, u64)>,
    ) {
        let most = if arc.has_evicted() {
            self.write_max
        } else {
            2 * self.write_max
        };
        let headroom = most * self.headroom / self.psize;
        let index = self.rotor;
        self.rotor = (index + 1) % self.devices.len();
        let limit = self.memory / 100 * HEADERS_PERCENT;
        let mut left = (most / self.psize).max(1).min(self.devices[index].slots);
        for is_frequent in [true, false] {
            for record in arc.leaving(is_frequent).take(headroom as usize) {
                if left == 0 || self.headers() + HEADER > limit {
                    break;
                }
                if self.kept.contains_key(&record) || self.only_ahead.contains(&record) {
                    continue;
                }
                left -= 1;
                let place = self.add(index, record);
                writes.push((self.devices[index].member, place, record));
            }
        }
        let bytes = writes.len() as u64 * self.psize;
        self.fed += bytes;
        self.next = now + if bytes > most / 2 { FEED_AGAIN } else { FEED };
        arc.resize(self.memory.saturating_sub(self.headers()) / self.psize);
    }

    /// Puts a record behind the last one of a device. Returns the place.
    fn add(&mut self, index: usize, record: u64) -> u64 {
        let device = &mut self.devices[index];
        let number = device.written;
        device.written += 1;
        // The record that was in this place is gone.
        while let Some(&(oldest, its)) = device.order.front()
            && its + device.slots <= number
        {
            device.order.pop_front();
            let is_same = |kept: &CachedRecord| kept.device as usize == index && kept.number == its;
            if self.kept.get(&oldest).is_some_and(is_same) {
                self.kept.remove(&oldest);
            }
        }
        device.order.push_back((record, number));
        let kept = CachedRecord {
            device: index as u32,
            number,
            is_written: false,
        };
        self.kept.insert(record, kept);
        self.place(&self.devices[index], number)
    }
}
