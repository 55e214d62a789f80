//! Submitters that wait before the elevator: for a free request, or behind a barrier.

use crate::direction::{ByDirection, Direction};
use fullstroke_contract::Extent;
use std::collections::VecDeque;

/// A piece of a submitted request before its entry into the elevator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The submitted request to which the piece belongs.
    pub(super) original: u32,
    /// Addresses of the piece.
    pub(super) extent: Extent,
    /// Position in the order of arrival.
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Barrier {
    original: u32,
    sequence: u64,
}

/// The gate before the elevator. Each direction has a fixed number of requests. A piece that finds
/// no free request waits in order of arrival (`get_request_wait` of `block/ll_rw_blk.c`, Linux
/// 2.6.24). Because each direction has its own number, a flood of writes does not block reads. A
/// flush closes the gate for later pieces (`QUEUE_ORDERED_DRAIN` of `block/blk-barrier.c`).
#[derive(Debug)]
pub(super) struct Gate {
    /// Number of requests of each direction, in the elevator and in flight.
    used: ByDirection<u32>,
    /// Largest number of requests of a direction.
    most: u32,
    pieces: ByDirection<VecDeque<Piece>>,
    barriers: VecDeque<Barrier>,
    /// True if the first barrier has been issued.
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

    /// Numbers a piece that has just arrived.
    pub(super) fn piece(&mut self, original: u32, extent: Extent) -> Piece {
        self.sequence += 1;
        Piece {
            original,
            extent,
            sequence: self.sequence,
        }
    }

    /// True if a new piece need not wait for earlier pieces.
    pub(super) fn is_open(&self, direction: Direction) -> bool {
        self.barriers.is_empty() && self.pieces[direction].is_empty()
    }

    /// Queues `piece` before the gate.
    pub(super) fn wait(&mut self, direction: Direction, piece: Piece) {
        assert!(
            self.pieces[direction]
                .back()
                .is_none_or(|last| last.sequence < piece.sequence),
            "pieces wait in the order of their arrival"
        );
        self.pieces[direction].push_back(piece);
    }

    /// Closes the gate behind a new flush.
    pub(super) fn close(&mut self, original: u32) {
        self.sequence += 1;
        self.barriers.push_back(Barrier {
            original,
            sequence: self.sequence,
        });
    }

    /// Returns the first waiting piece before the first barrier, among the directions in `which`.
    /// If both directions have one, returns the earlier piece.
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

    /// Removes the first piece of `direction` after its entry.
    pub(super) fn pass(&mut self, direction: Direction) {
        let passed = self.pieces[direction].pop_front();
        assert!(
            passed.is_some(),
            "nobody waits before the gate for a {direction:?}"
        );
    }

    /// Takes a free request of the direction (the kernel's `struct request`). Returns false if none
    /// is free.
    pub(super) fn take(&mut self, direction: Direction) -> bool {
        let free = self.used[direction] < self.most;
        self.used[direction] += u32::from(free);
        free
    }

    /// Gives a request of the direction back.
    pub(super) fn release(&mut self, direction: Direction) {
        assert!(
            self.used[direction] > 0,
            "a {direction:?} gives a request back, and all are free"
        );
        self.used[direction] -= 1;
    }

    /// Issues and returns the first flush, if every earlier request has completed.
    pub(super) fn flush(&mut self) -> Option<u32> {
        let all = ByDirection {
            read: true,
            write: true,
        };
        // Each piece in the elevator or in flight holds a request. So if none is used, all earlier
        // pieces have completed.
        let unused = self.used == ByDirection::default();
        let idle = unused && !self.flushing && self.first(all).is_none();
        let barrier = self.barriers.front().filter(|_| idle)?;
        self.flushing = true;
        Some(barrier.original)
    }

    /// Removes the completed flush and returns its request.
    pub(super) fn flushed(&mut self) -> u32 {
        assert!(self.flushing, "a flush comes back that was not issued");
        self.flushing = false;
        self.barriers
            .pop_front()
            .expect("a flush was issued")
            .original
    }

    /// True if a flush waits or is in flight.
    pub(super) fn has_barrier(&self) -> bool {
        !self.barriers.is_empty()
    }
}
