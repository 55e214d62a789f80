//! The priorities and generations of all buckets on the flash device (`bch_prio_write`, super.c).
//!
//! The allocator hands buckets over in batches (`free_inc`). Before a batch may be used, the
//! generations of its buckets must be on the device, so the allocator writes the priorities of all
//! buckets. The writes take buckets of the same batch. In a cache of 1,024 buckets, every third
//! bucket of data costs a bucket of priorities: a quarter of all written bytes. In a large cache the
//! share is small.

use fullstroke_units::{SECTOR_BYTES, Time};

/// Bytes of the header of a bucket of priorities, and of the entry of a bucket (`struct prio_set`,
/// `struct bucket_disk`).
const HEADER_BYTES: u64 = 40;
const ENTRY_BYTES: u64 = 3;

/// Writes of the priorities.
#[derive(Clone, Copy, Debug)]
pub(super) struct Priorities {
    /// First sector, and the sectors of all priorities.
    first: u64,
    sectors: u64,
    /// Buckets of data between two writes.
    every: u64,
    /// Number of opened buckets at the next write.
    next: u64,
    /// True if the next write goes to the second of the two places.
    second: bool,
    /// Time from which a write is due.
    pub(super) due: Time,
    pub(super) written: u64,
}

impl Priorities {
    /// Number of buckets for the priorities of `count` buckets of `size` sectors.
    fn buckets(count: u64, size: u64) -> u64 {
        count.div_ceil((size * SECTOR_BYTES - HEADER_BYTES) / ENTRY_BYTES)
    }

    /// Number of buckets that both places take.
    pub(super) fn room(count: u64, size: u64) -> u64 {
        2 * Priorities::buckets(count, size)
    }

    /// Returns the writes for `count` buckets of `size` sectors, at `first`.
    pub(super) fn new(count: u64, size: u64, first: u64) -> Priorities {
        let own = Priorities::buckets(count, size);
        // `cache_alloc`: `free_inc` has four entries for each 1024 buckets, and `init_fifo` makes
        // more than four a power of two less one.
        let batch = 4 * (count.next_power_of_two() >> 10);
        let batch = if batch > 4 { batch - 1 } else { batch };
        let every = batch.saturating_sub(own).max(1);
        Priorities {
            first,
            sectors: own * size,
            every,
            next: every,
            second: false,
            due: Time::NEVER,
            written: 0,
        }
    }

    /// Notes the number of buckets that were opened so far.
    pub(super) fn opened(&mut self, now: Time, opened: u64) {
        if opened >= self.next && self.due == Time::NEVER {
            self.due = now;
        }
    }

    /// Returns the place and the sectors of the write that is due.
    pub(super) fn write(&mut self, now: Time, opened: u64) -> (u64, u64) {
        let place = self.first + u64::from(self.second) * self.sectors;
        self.second = !self.second;
        self.next += self.every;
        self.due = Time::NEVER;
        self.opened(now, opened);
        self.written += self.sectors;
        (place, self.sectors)
    }
}
