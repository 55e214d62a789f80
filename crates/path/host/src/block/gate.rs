//! Submitters that wait before the elevator: for a free request, or behind a
//! barrier.

use fullstroke_contract::Extent;
use std::collections::VecDeque;

/// A piece of a submitted request that is not in the elevator yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The request that it is a piece of.
    pub(super) original: u32,
    /// What it covers of that.
    pub(super) extent: Extent,
    /// Its place in the order of arrival.
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Barrier {
    original: u32,
    sequence: u64,
}

/// The gate before the elevator. Each direction (0 reads, 1 writes) has so many
/// requests; who finds none free waits in order of arrival (`get_request_wait` of
/// `block/ll_rw_blk.c`, Linux 2.6.24: a flood of writes leaves reads their own). A
/// flush closes the gate behind itself (`QUEUE_ORDERED_DRAIN` of
/// `block/blk-barrier.c`).
#[derive(Debug)]
pub(super) struct Gate {
    /// Requests of each direction, in the elevator and below.
    used: [u32; 2],
    /// The most of them.
    most: u32,
    pieces: [VecDeque<Piece>; 2],
    barriers: VecDeque<Barrier>,
    /// Whether the first barrier has been issued.
    flushing: bool,
    sequence: u64,
}

impl Gate {
    pub(super) fn new(most: u32) -> Gate {
        Gate {
            used: [0; 2],
            most,
            pieces: [VecDeque::new(), VecDeque::new()],
            barriers: VecDeque::new(),
            flushing: false,
            sequence: 0,
        }
    }

    /// A piece that has just arrived.
    pub(super) fn piece(&mut self, original: u32, extent: Extent) -> Piece {
        self.sequence += 1;
        Piece {
            original,
            extent,
            sequence: self.sequence,
        }
    }

    /// Whether a piece that arrives now need not wait for others before it.
    pub(super) fn is_open(&self, direction: usize) -> bool {
        self.barriers.is_empty() && self.pieces[direction].is_empty()
    }

    /// `piece` waits.
    pub(super) fn wait(&mut self, direction: usize, piece: Piece) {
        self.pieces[direction].push_back(piece);
    }

    /// A flush arrives.
    pub(super) fn close(&mut self, original: u32) {
        self.sequence += 1;
        self.barriers.push_back(Barrier {
            original,
            sequence: self.sequence,
        });
    }

    /// The direction, among those in `which`, whose first piece is not behind a
    /// barrier; if both are, that of the earlier one.
    pub(super) fn first(&self, which: [bool; 2]) -> Option<(usize, Piece)> {
        let barrier = self
            .barriers
            .front()
            .map_or(u64::MAX, |barrier| barrier.sequence);
        let candidate = |direction: usize| {
            let piece = *self.pieces[direction].front()?;
            (which[direction] && piece.sequence < barrier).then_some((direction, piece))
        };
        match (candidate(0), candidate(1)) {
            (Some(read), Some(write)) if write.1.sequence < read.1.sequence => Some(write),
            (read, write) => read.or(write),
        }
    }

    /// The first piece of `direction` has been let in.
    pub(super) fn pass(&mut self, direction: usize) {
        self.pieces[direction].pop_front();
    }

    /// Takes a request, if one is free.
    pub(super) fn take(&mut self, direction: usize) -> bool {
        let free = self.used[direction] < self.most;
        self.used[direction] += u32::from(free);
        free
    }

    /// Gives a request back.
    pub(super) fn release(&mut self, direction: usize) {
        self.used[direction] -= 1;
    }

    /// The flush that may be issued now, if the device has nothing to do and
    /// nothing before it is left.
    pub(super) fn flush(&mut self) -> Option<u32> {
        let idle = self.used == [0; 2] && !self.flushing && self.first([true; 2]).is_none();
        let barrier = self.barriers.front().filter(|_| idle)?;
        self.flushing = true;
        Some(barrier.original)
    }

    /// The flush has completed: what it was.
    pub(super) fn flushed(&mut self) -> u32 {
        self.flushing = false;
        self.barriers
            .pop_front()
            .expect("a flush was issued")
            .original
    }

    /// Whether a flush waits or is under way.
    pub(super) fn has_barrier(&self) -> bool {
        !self.barriers.is_empty()
    }
}
