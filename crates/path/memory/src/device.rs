//! The I/O in flight at the device below, as counted by a cache.

use crate::run::PageRun;
use fullstroke_contract::Slots;

/// Limits of the device's queue, known to the cache: the host's keys of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Largest number of writes in flight; further writers wait.
    pub nr_requests: u32,
    /// Longest write, in pages.
    pub request_pages: u64,
}

impl Default for QueueLimits {
    /// 128 requests of up to 512 KiB.
    fn default() -> QueueLimits {
        QueueLimits {
            nr_requests: 128,
            request_pages: 128,
        }
    }
}

/// Number of a read or write from its issue to its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct IoId(pub u32);

#[derive(Clone, Copy, Debug)]
struct PendingIo {
    left: u64,
    write: bool,
}

/// Reads and writes in flight.
#[derive(Clone, Debug)]
pub(crate) struct DeviceQueue {
    queue: QueueLimits,
    flights: Slots<PendingIo>,
    reads: u32,
    writes: u32,
    congested: bool,
    /// True if congestion has ended since the last [`take_cleared`](DeviceQueue::take_cleared).
    cleared: bool,
}

impl DeviceQueue {
    pub fn new(queue: QueueLimits) -> DeviceQueue {
        DeviceQueue {
            queue,
            flights: Slots::default(),
            reads: 0,
            writes: 0,
            congested: false,
            cleared: false,
        }
    }

    /// Returns the longest write, in pages.
    pub fn request_pages(&self) -> u64 {
        self.queue.request_pages
    }

    /// True if the queue has no place for a further write.
    pub fn full(&self) -> bool {
        self.writes >= self.queue.nr_requests
    }

    /// True if the device is congested: `bdi_write_congested`. Congestion begins at 7/8 of
    /// `nr_requests` (`queue_congestion_on_threshold`) and ends below 13/16.
    pub fn congested(&self) -> bool {
        self.congested
    }

    /// Returns true if congestion has ended since the last call.
    pub fn take_cleared(&mut self) -> bool {
        std::mem::take(&mut self.cleared)
    }

    /// Returns the numbers of reads and writes in flight.
    pub fn in_flight(&self) -> (u32, u32) {
        (self.reads, self.writes)
    }

    pub fn begin(&mut self, run: PageRun, write: bool) -> IoId {
        let id = IoId(self.flights.keep(PendingIo {
            left: run.pages,
            write,
        }));
        if write {
            self.writes += 1;
            let nr = self.queue.nr_requests;
            self.congested |= self.writes > nr - nr / 8;
        } else {
            self.reads += 1;
        }
        id
    }

    /// Completes a number of pages of a read or write.
    pub fn end(&mut self, id: IoId, pages: u64) {
        let flight = &mut self.flights[id.0];
        debug_assert!(flight.left >= pages, "more pages end than were asked for");
        flight.left = flight.left.saturating_sub(pages);
        if flight.left > 0 {
            return;
        }
        let write = flight.write;
        self.flights.take(id.0);
        if !write {
            self.reads -= 1;
            return;
        }
        self.writes -= 1;
        let nr = self.queue.nr_requests;
        if self.congested && self.writes < (nr - nr / 8 - nr / 16).saturating_sub(1).max(1) {
            self.congested = false;
            self.cleared = true;
        }
    }
}
