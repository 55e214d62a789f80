//! The queue of one drive of a pool: classes with limits, order, and aggregation
//! (`module/zfs/vdev_queue.c`, OpenZFS 2.2).
//!
//! 1. Each I/O has a class. A class has a least and a largest number of I/Os in the drive. Classes
//!    below their least number have turns; then the first class below its largest number goes.
//! 2. Synchronous classes are served in the order of arrival, the others by address: the next I/O
//!    after the last one, within half a second of arrivals.
//! 3. Neighbours of the chosen I/O join this I/O, up to 1 MiB, or 128 KiB on a flash device. Reads
//!    join across gaps of 32 KiB. Optional writes (skipped sectors) join across gaps of 4 KiB, and go
//!    away if they join nothing.

use crate::classes::{ACTIVE_MAX, CLASSES, Class, LIMITS};
use fullstroke_contract::{Operation, Slots};
use fullstroke_units::Time;
use std::collections::BTreeSet;

/// I/Os of a scrub after which a scrub alone may use its largest number: `zfs_vdev_nia_delay`.
const DELAY: u32 = 5;

/// I/Os of a scrub after each interactive I/O: `zfs_vdev_nia_credit`.
const CREDIT: u32 = 5;

/// Largest joined I/O of a disk: `zfs_vdev_aggregation_limit`.
const JOINED_MAX: u64 = 1 << 20;

/// Largest joined I/O of a flash device: `zfs_vdev_aggregation_limit_non_rotating`.
const JOINED_MAX_ON_FLASH: u64 = 128 << 10;

/// Largest gap between joined reads: `zfs_vdev_read_gap_limit`.
const READ_GAP: u64 = 32 << 10;

/// Largest gap that optional writes may close: `zfs_vdev_write_gap_limit`.
const WRITE_GAP: u64 = 4 << 10;

/// I/Os by address are served within intervals of 2^29 ns of arrivals.
const INTERVAL_SHIFT: u32 = 29;

const NONE: u32 = u32::MAX;

/// An I/O for the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafIo {
    pub(crate) class: Class,
    pub(crate) operation: Operation,
    /// First byte.
    pub(crate) offset: u64,
    /// Number of bytes.
    pub(crate) size: u64,
    /// The block of the I/O; `None` for an optional write.
    pub(crate) block: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    io: LeafIo,
    /// Place among the I/Os of its class.
    key: (u64, u64),
    /// The next I/O of the same joined I/O.
    next: u32,
}

/// An I/O in the drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Number of the I/O, for [`LeafQueue::done`].
    pub(crate) id: u32,
    /// The block of the first part with data.
    pub(crate) block: u32,
    pub(crate) operation: Operation,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

#[derive(Clone, Copy, Debug)]
struct InDrive {
    class: Class,
    first: u32,
}

/// The queue of a drive.
#[derive(Debug, Default)]
pub(crate) struct LeafQueue {
    waiting: Slots<Waiting>,
    by_class: [BTreeSet<((u64, u64), u32)>; CLASSES.len()],
    /// Waiting I/Os by address: reads, writes, and both of scans.
    by_place: [BTreeSet<(u64, u32)>; 4],
    /// The I/Os that join the chosen one; kept to reuse the memory.
    joined: Vec<u32>,
    sent: Slots<InDrive>,
    active: [u32; CLASSES.len()],
    arrivals: u64,
    /// Index in `CLASSES` behind the class that went last: `vq_last_prio + 1`.
    next_class: usize,
    /// End of the last I/O.
    last: u64,
    /// Credit of scrubs beside interactive I/O: `vq_nia_credit`.
    credit: u32,
    /// True for a flash device.
    is_flash: bool,
    /// Number of I/Os sent, and of I/Os that joined another.
    pub(crate) counts: (u64, u64),
}

fn flavour(io: &LeafIo) -> usize {
    usize::from(io.operation != Operation::Read) + 2 * usize::from(io.class.is_of_scans())
}

impl LeafQueue {
    /// Returns the queue of a disk, or of a flash device.
    pub(crate) fn new(is_flash: bool) -> LeafQueue {
        LeafQueue {
            is_flash,
            ..LeafQueue::default()
        }
    }

    /// Returns true for a flash device.
    pub(crate) fn is_flash(&self) -> bool {
        self.is_flash
    }

    /// Adds an I/O.
    pub(crate) fn push(&mut self, now: Time, io: LeafIo) {
        self.arrivals += 1;
        // `vdev_queue_class_fifo`: synchronous I/O goes in order of arrival. Other I/O goes by
        // place within intervals of 0.54 s.
        let key = match io.class {
            Class::SyncRead | Class::SyncWrite => (self.arrivals, 0),
            _ => (now.as_nanos() >> INTERVAL_SHIFT, io.offset),
        };
        let id = self.waiting.keep(Waiting {
            io,
            key,
            next: NONE,
        });
        self.by_class[io.class as usize].insert((key, id));
        // A TRIM joins no neighbour (`vdev_queue_aggregate`).
        if io.class != Class::Trim {
            self.by_place[flavour(&io)].insert((io.offset, id));
        }
    }

    /// Returns the number of I/Os in the drive, and the end of the last one.
    pub(crate) fn load(&self) -> (u32, u64) {
        (self.active.iter().sum(), self.last)
    }

    fn interactive(&self) -> u32 {
        // A TRIM counts as interactive (`vdev_queue_is_interactive`).
        let before: u32 = self.active[..Class::Scrub as usize].iter().sum();
        before + self.active[Class::Trim as usize]
    }

    /// Returns the limits of a class. `async_writes` is the present largest number of asynchronous
    /// writes.
    fn limits(&self, class: Class, async_writes: u32) -> (u32, u32) {
        let (least, most) = LIMITS[class as usize];
        match class {
            Class::AsyncWrite => (least, async_writes.clamp(least, most)),
            Class::Scrub | Class::Rebuild if self.interactive() > 0 => {
                let least = self.credit.min(least);
                (least, least)
            }
            Class::Scrub | Class::Rebuild if self.credit < DELAY => (least, least.max(1)),
            _ => (least, most),
        }
    }

    /// Returns the class that goes next, and begins the turn of the class behind.
    fn class_to_issue(&mut self, async_writes: u32) -> Option<Class> {
        let queued = self.by_class.iter().enumerate();
        let queued = queued.fold(0u32, |all, (index, class)| {
            all | u32::from(!class.is_empty()) << index
        });
        if queued == 0 || self.active.iter().sum::<u32>() >= ACTIVE_MAX {
            return None;
        }
        let from = self.next_class;
        let mut below_most = None;
        // Without a class below its least number, the first class below its largest number goes.
        for index in (from..CLASSES.len()).chain(0..from) {
            if queued >> index & 1 == 0 {
                continue;
            }
            let (least, most) = self.limits(CLASSES[index], async_writes);
            if self.active[index] < least {
                self.next_class = index + 1;
                return Some(CLASSES[index]);
            }
            if self.active[index] < most && below_most.is_none_or(|found| index < found) {
                below_most = Some(index);
            }
        }
        // If no class may go, the first class has the next turn.
        self.next_class = below_most.map_or(0, |index| index + 1);
        below_most.map(|index| CLASSES[index])
    }

    /// Moves the waiting read-ahead of a block to the synchronous reads, because a request waits for
    /// the block (`arc_read`, `vdev_queue_change_io_priority`).
    pub(crate) fn hurry(&mut self, block: u32, offset: u64) {
        let is_ahead = |io: &LeafIo| io.class == Class::AsyncRead && io.block == Some(block);
        let mut reads = self.by_place[0].range((offset, 0)..=(offset, NONE));
        let Some(&(_, id)) = reads.find(|(_, id)| is_ahead(&self.waiting[*id].io)) else {
            return;
        };
        self.arrivals += 1;
        let at = &mut self.waiting[id];
        self.by_class[Class::AsyncRead as usize].remove(&(at.key, id));
        at.io.class = Class::SyncRead;
        at.key = (self.arrivals, 0);
        self.by_class[Class::SyncRead as usize].insert((at.key, id));
    }

    /// Takes the next I/O out of the queue and counts it as in the drive; `None` if nothing may go.
    pub(crate) fn next(&mut self, async_writes: u32) -> Option<Sent> {
        loop {
            let class = self.class_to_issue(async_writes)?;
            let chosen = self.choose(class)?;
            // Optional writes without neighbours have no effect.
            let Some((first, end)) = self.join(chosen) else {
                continue;
            };
            let LeafIo {
                offset,
                operation,
                block,
                ..
            } = self.waiting[first].io;
            self.activate(class);
            self.last = end;
            self.counts.0 += 1;
            let id = self.sent.keep(InDrive { class, first });
            return Some(Sent {
                id,
                block: block.expect("no optional sector begins an I/O"),
                operation,
                offset,
                size: end - offset,
            });
        }
    }

    fn activate(&mut self, class: Class) {
        self.active[class as usize] += 1;
        // `vdev_queue_pending_add`: the first interactive I/O leaves a scan the credit of one.
        if !class.is_of_scans() {
            if self.interactive() == 1 {
                self.credit = 1;
            }
        } else if self.interactive() > 0 {
            self.credit = self.credit.saturating_sub(1);
        }
    }

    /// Returns the I/O of a class that goes next.
    fn choose(&self, class: Class) -> Option<u32> {
        let all = &self.by_class[class as usize];
        let (first_key, first) = *all.first()?;
        if matches!(class, Class::SyncRead | Class::SyncWrite) {
            return Some(first);
        }
        // `vdev_queue_io_to_issue` goes on from the last offset, and back to the lowest offset at
        // the end.
        let interval = first_key.0;
        let after = all.range(((interval, self.last), 0)..).next();
        match after {
            Some(((found, _), id)) if *found == interval => Some(*id),
            _ => Some(first),
        }
    }

    /// Takes the chosen I/O and the neighbours that join it out of the queue, linked in the order of
    /// their addresses. Returns the first, and the end of the last; `None` if all were optional.
    fn join(&mut self, chosen: u32) -> Option<(u32, u64)> {
        self.collect(chosen);
        let joined = std::mem::take(&mut self.joined);
        let place = flavour(&self.waiting[chosen].io);
        let mut before = NONE;
        for &id in &joined {
            let at = self.waiting[id];
            self.by_class[at.io.class as usize].remove(&(at.key, id));
            self.by_place[place].remove(&(at.io.offset, id));
            if before != NONE {
                self.waiting[before].next = id;
            }
            before = id;
        }
        let has_data = joined.iter().any(|&id| self.waiting[id].io.block.is_some());
        if !has_data {
            joined.iter().for_each(|&id| _ = self.waiting.take(id));
        }
        self.counts.1 += (joined.len() as u64).saturating_sub(1);
        let ends = (joined[0], self.end(before));
        self.joined = joined;
        has_data.then_some(ends)
    }

    /// Returns the first byte after a waiting I/O.
    fn end(&self, id: u32) -> u64 {
        let io = &self.waiting[id].io;
        io.offset + io.size
    }

    /// Lists the neighbours that join the chosen I/O, the chosen I/O included, in the order of their
    /// addresses.
    fn collect(&mut self, chosen: u32) {
        let io = self.waiting[chosen].io;
        let is_read = io.operation == Operation::Read;
        let gap = if is_read { READ_GAP } else { 0 };
        let all = &self.by_place[flavour(&io)];
        let optional = |id: u32| self.waiting[id].io.block.is_none();
        let fits = |id: u32| self.waiting[id].io.operation == io.operation;
        let joined = &mut self.joined;
        joined.clear();
        joined.push(chosen);
        if io.class == Class::Trim {
            return;
        }
        let most = match self.is_flash {
            true => JOINED_MAX_ON_FLASH,
            false => JOINED_MAX,
        };
        let (mut begin, mut end) = (io.offset, io.offset + io.size);
        for &(offset, id) in all.range(..(io.offset, chosen)).rev() {
            let its_end = offset + self.waiting[id].io.size;
            let near = its_end <= begin && begin - its_end <= gap;
            if !fits(id) || end - offset > most || !near {
                break;
            }
            begin = offset;
            joined.push(id);
        }
        joined.reverse();
        for &(offset, id) in all.range((io.offset, chosen)..).skip(1) {
            let its_end = offset + self.waiting[id].io.size;
            let near = offset >= end && offset - end <= gap;
            if !fits(id) || its_end - begin > most || !near {
                break;
            }
            end = its_end;
            joined.push(id);
        }
        let Some(mandatory) = joined.iter().rposition(|&id| !optional(id)) else {
            return;
        };
        // The last optional sectors stay only if a further write follows them closely.
        let kept_end = {
            let last = &self.waiting[joined[mandatory]].io;
            last.offset + last.size
        };
        let after = (end, 0);
        let follows = all.range(after..).next().is_some_and(|&(offset, id)| {
            offset == end && offset - kept_end <= WRITE_GAP && !optional(id)
        });
        if !follows {
            joined.truncate(mandatory + 1);
        }
        // Optional sectors do not begin an I/O.
        let leading = joined.iter().take_while(|&&id| optional(id)).count();
        joined.drain(..leading);
    }

    /// Ends an I/O of the drive. Calls `block` with the block of each I/O that was part of it.
    pub(crate) fn done(&mut self, id: u32, block: &mut dyn FnMut(u32)) {
        let InDrive { class, first } = self.sent.take(id);
        self.active[class as usize] -= 1;
        // `vdev_queue_pending_remove`: scans regain their credit only while no interactive I/O is
        // in the drive.
        if class.is_of_scans() {
            if self.interactive() == 0 {
                self.credit = self.credit.saturating_add(1);
            }
        } else {
            self.credit = if self.interactive() == 0 { 0 } else { CREDIT };
        }
        let mut next = first;
        while next != NONE {
            let part = self.waiting.take(next);
            if let Some(of) = part.io.block {
                block(of);
            }
            next = part.next;
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
