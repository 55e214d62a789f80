//! I/Os of the host in flight.

use fullstroke_units::{Duration, Time};

/// Time without I/O after which the cache counts as idle (`spare_migration_bandwidth`).
const IDLE: Duration = Duration::from_secs(1);

/// Parts of requests in flight, and the users of each cache block.
pub(super) struct HostIo {
    /// I/Os in flight to each cache block.
    users: Vec<u32>,
    in_flight: u32,
    /// End of the latest part.
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

    /// Begins a part of a request.
    pub(super) fn begin(&mut self) {
        self.in_flight += 1;
    }

    /// Notes that a part uses a cache block.
    pub(super) fn enter(&mut self, index: u32) {
        self.users[index as usize] += 1;
    }

    /// Ends a part at `now`, with its cache block if the part used one.
    pub(super) fn end(&mut self, now: Time, index: Option<u32>) {
        assert!(self.in_flight > 0, "a part ends at {now:?}, and none began");
        self.in_flight -= 1;
        self.idle_since = now;
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

    /// Time at which the cache counts as idle; [`Time::NEVER`] while a part is in flight.
    pub(super) fn idle_at(&self) -> Time {
        match self.in_flight {
            0 => self.idle_since + IDLE,
            _ => Time::NEVER,
        }
    }
}
