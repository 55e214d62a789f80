//! Submitters that wait before the elevator: for a free request, or behind a
//! barrier.

use crate::direction::{ByDirection, Direction};
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

/// The gate before the elevator. Each direction has so many requests; who finds none free waits in order of arrival (`get_request_wait` of
/// `block/ll_rw_blk.c`, Linux 2.6.24: a flood of writes leaves reads their own). A
/// flush closes the gate behind itself (`QUEUE_ORDERED_DRAIN` of
/// `block/blk-barrier.c`).
#[derive(Debug)]
pub(super) struct Gate {
    /// Requests of each direction, in the elevator and below.
    used: ByDirection<u32>,
    /// The most of them.
    most: u32,
    pieces: ByDirection<VecDeque<Piece>>,
    barriers: VecDeque<Barrier>,
    /// Whether the first barrier has been issued.
    flushing: bool,
    sequence: u64,
}

impl Gate {
    pub(super) fn new(most: u32) -> Gate {
        Gate {
            used: ByDirection::default(),
            most,
            pieces: ByDirection::default(),
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
    pub(super) fn is_open(&self, direction: Direction) -> bool {
        self.barriers.is_empty() && self.pieces[direction].is_empty()
    }

    /// `piece` waits.
    pub(super) fn wait(&mut self, direction: Direction, piece: Piece) {
        assert!(
            self.pieces[direction]
                .back()
                .is_none_or(|last| last.sequence < piece.sequence),
            "pieces wait in the order of their arrival"
        );
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
    pub(super) fn first(&self, which: ByDirection<bool>) -> Option<(Direction, Piece)> {
        let barrier = self
            .barriers
            .front()
            .map_or(u64::MAX, |barrier| barrier.sequence);
        let candidate = |direction: Direction| {
            let piece = *self.pieces[direction].front()?;
            (which[direction] && piece.sequence < barrier).then_some((direction, piece))
        };
        match (candidate(Direction::Read), candidate(Direction::Write)) {
            (Some(read), Some(write)) if write.1.sequence < read.1.sequence => Some(write),
            (read, write) => read.or(write),
        }
    }

    /// The first piece of `direction` has been let in.
    pub(super) fn pass(&mut self, direction: Direction) {
        let passed = self.pieces[direction].pop_front();
        assert!(
            passed.is_some(),
            "nobody waits before the gate for a {direction:?}"
        );
    }

    /// Takes a request, if one is free.
    pub(super) fn take(&mut self, direction: Direction) -> bool {
        let free = self.used[direction] < self.most;
        self.used[direction] += u32::from(free);
        free
    }

    /// Gives a request back.
    pub(super) fn release(&mut self, direction: Direction) {
        assert!(
            self.used[direction] > 0,
            "a {direction:?} gives a request back, and all are free"
        );
        self.used[direction] -= 1;
    }

    /// The flush that may be issued now, if the device has nothing to do and
    /// nothing before it is left.
    pub(super) fn flush(&mut self) -> Option<u32> {
        let all = ByDirection {
            read: true,
            write: true,
        };
        let unused = self.used == ByDirection::default();
        let idle = unused && !self.flushing && self.first(all).is_none();
        let barrier = self.barriers.front().filter(|_| idle)?;
        self.flushing = true;
        Some(barrier.original)
    }

    /// The flush has completed: what it was.
    pub(super) fn flushed(&mut self) -> u32 {
        assert!(self.flushing, "a flush comes back that was not issued");
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
