//! What is on its way to and from the device below, as far as a cache counts it.

use crate::run::Run;
use fullstroke_contract::Slots;

/// What a cache knows of the queue of the device below it: the host's keys of the
/// same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Writes that may be on their way; whoever writes more waits.
    pub nr_requests: u32,
    /// The longest write, in pages.
    pub request_pages: u64,
}

impl Default for Queue {
    /// 128 requests of up to 512 KiB.
    fn default() -> Queue {
        Queue {
            nr_requests: 128,
            request_pages: 128,
        }
    }
}

/// The number of a read or write from when it is asked for until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct IoId(pub u32);

#[derive(Clone, Copy, Debug)]
struct Flight {
    left: u64,
    write: bool,
}

/// Reads and writes under way.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    queue: Queue,
    flights: Slots<Flight>,
    reads: u32,
    writes: u32,
    congested: bool,
    /// Whether congestion has ended since somebody asked.
    cleared: bool,
}

impl Device {
    pub fn new(queue: Queue) -> Device {
        Device {
            queue,
            flights: Slots::default(),
            reads: 0,
            writes: 0,
            congested: false,
            cleared: false,
        }
    }

    /// The longest write, in pages.
    pub fn request_pages(&self) -> u64 {
        self.queue.request_pages
    }

    /// Whether no further write may be begun by who would wait for its place.
    pub fn full(&self) -> bool {
        self.writes >= self.queue.nr_requests
    }

    /// `bdi_write_congested`, from 7/8 of `nr_requests` on
    /// (`queue_congestion_on_threshold`) until there are less than 13/16 again.
    pub fn congested(&self) -> bool {
        self.congested
    }

    /// Whether congestion has ended since the last time this was asked.
    pub fn take_cleared(&mut self) -> bool {
        std::mem::take(&mut self.cleared)
    }

    /// Reads and writes that are under way.
    pub fn in_flight(&self) -> (u32, u32) {
        (self.reads, self.writes)
    }

    pub fn begin(&mut self, run: Run, write: bool) -> IoId {
        let id = IoId(self.flights.keep(Flight {
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

    /// So many pages of a read or write have ended.
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
