//! I/Os of the host in flight.

use fullstroke_units::{Duration, Time};

/// Time without I/O of the array after which the cache counts as idle (`spare_migration_bandwidth`).
const IDLE: Duration = Duration::from_secs(1);

/// Parts of requests in flight, and the users of each cache block.
///
/// The idle time counts parts that go to the array. A part that the flash device serves alone does
/// not count: `map_bio` (dm-cache-target.c, Linux 6.12) calls `accounted_begin` for misses and for
/// writes to both devices only.
pub(super) struct HostIo {
    /// I/Os in flight to each cache block.
    users: Vec<u32>,
    /// Parts in flight to the array.
    in_flight: u32,
    /// End of the latest part of the array.
    idle_since: Time,
}

impl HostIo {
    /// Returns the state without I/O of a cache with so many blocks.
    pub(super) fn new(blocks: usize) -> HostIo {
        HostIo {
            users: vec![0; blocks],
            in_flight: 0,
            idle_since: Time::ZERO,
        }
    }

    /// Begins a part of a request that goes to the array.
    pub(super) fn begin_on_array(&mut self) {
        self.in_flight += 1;
    }

    /// Notes that a part uses a cache block.
    pub(super) fn enter(&mut self, index: u32) {
        self.users[index as usize] += 1;
    }

    /// Ends a part at `now`, with its cache block if the part used one.
    pub(super) fn end(&mut self, now: Time, on_array: bool, index: Option<u32>) {
        if on_array {
            assert!(self.in_flight > 0, "a part ends at {now:?}, and none began");
            self.in_flight -= 1;
            self.idle_since = now;
        }
        if let Some(index) = index {
            let users = &mut self.users[index as usize];
            assert!(*users > 0, "block {index} is left, and nobody uses it");
            *users -= 1;
        }
    }

    /// True if no part uses the cache block.
    pub(super) fn is_unused(&self, index: u32) -> bool {
        self.users[index as usize] == 0
    }

    /// Time at which the array counts as idle; [`Time::NEVER`] while a part of it is in flight.
    pub(super) fn idle_at(&self) -> Time {
        match self.in_flight {
            0 => self.idle_since + IDLE,
            _ => Time::NEVER,
        }
    }
}
