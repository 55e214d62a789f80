//! Submitters that wait before the elevator: for a free request, or behind a barrier.

use super::tags::TagMap;
use crate::direction::{ByDirection, Direction};
use fullstroke_contract::Extent;
use std::collections::VecDeque;

/// The requests of a block layer (the kernel's `struct request`), and the rule by which submitters
/// wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags {
    /// Each direction has this number, and submitters wait in order of arrival (`get_request_wait`
    /// of `block/ll_rw_blk.c`, Linux 2.6.24). Because each direction has its own number, a flood of
    /// writes does not block reads.
    PerDirection(u32),
    /// Both directions share this number. A process that finds none free blocks in its submission
    /// and sends nothing else. A process that runs takes a free request at once, even if others
    /// wait (`blk_mq_get_tag` of `block/blk-mq-tag.c`, Linux 6).
    Shared(u32),
}

impl Tags {
    /// Returns the number of requests, of each direction or of both.
    pub(crate) fn request_limit(self) -> u32 {
        match self {
            Tags::PerDirection(most) | Tags::Shared(most) => most,
        }
    }
}

/// The thread that submits: a process, or the thread that writes dirty pages back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Submitter {
    Process(u32),
    Flusher,
}

/// A piece of a submitted request before its entry into the elevator.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubmittedPiece {
    /// The submitted request to which the piece belongs.
    pub(super) original: u32,
    /// Addresses of the piece.
    pub(super) extent: Extent,
    pub(super) direction: Direction,
    pub(super) submitter: Submitter,
    /// Number of the shared requests that the submitter may use, since its first attempt. The
    /// kernel asks the elevator just once (`__blk_mq_alloc_requests`).
    pub(super) depth: Option<u32>,
    /// Position in the order of arrival.
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Barrier {
    original: u32,
    sequence: u64,
}

/// A blocked submitter, and its pieces.
#[derive(Debug)]
struct BlockedSubmitter {
    submitter: Submitter,
    pieces: VecDeque<SubmittedPiece>,
}

/// The gate before the elevator. A piece that finds no free request waits. A flush closes the gate
/// for later pieces (`QUEUE_ORDERED_DRAIN` of `block/blk-barrier.c`).
#[derive(Debug)]
pub(super) struct RequestGate {
    tags: Tags,
    /// Number of requests of each direction, in the elevator and in flight.
    used: ByDirection<u32>,
    /// The shared requests.
    map: TagMap,
    /// Number of requests that were given back since blocked submitters were woken.
    freed: u32,
    /// Pieces that wait, with requests for each direction.
    pieces: ByDirection<VecDeque<SubmittedPiece>>,
    /// Submitters that are blocked, with shared requests, in the order of their turns.
    blocked: VecDeque<BlockedSubmitter>,
    /// Emptied lines, so that a new line allocates nothing.
    spare: Vec<VecDeque<SubmittedPiece>>,
    barriers: VecDeque<Barrier>,
    /// True if the first barrier has been issued.
    flushing: bool,
    sequence: u64,
}

impl RequestGate {
    pub(super) fn new(tags: Tags) -> RequestGate {
        RequestGate {
            tags,
            used: ByDirection::default(),
            map: TagMap::new(tags.request_limit()),
            freed: 0,
            pieces: ByDirection::default(),
            blocked: VecDeque::new(),
            spare: Vec::new(),
            barriers: VecDeque::new(),
            flushing: false,
            sequence: 0,
        }
    }

    /// Returns the number of requests, of each direction or of both.
    pub(super) fn request_limit(&self) -> u32 {
        self.tags.request_limit()
    }

    /// Numbers a piece that has just arrived.
    pub(super) fn piece(
        &mut self,
        original: u32,
        extent: Extent,
        direction: Direction,
        submitter: Submitter,
    ) -> SubmittedPiece {
        self.sequence += 1;
        SubmittedPiece {
            original,
            extent,
            direction,
            submitter,
            depth: None,
            sequence: self.sequence,
        }
    }

    /// True if a new piece need not wait for earlier pieces.
    pub(super) fn is_open(&self, piece: &SubmittedPiece) -> bool {
        let first = match self.tags {
            Tags::PerDirection(_) => self.pieces[piece.direction].is_empty(),
            Tags::Shared(_) => self.line_of(piece.submitter).is_none(),
        };
        self.barriers.is_empty() && first
    }

    fn line_of(&self, submitter: Submitter) -> Option<usize> {
        self.blocked
            .iter()
            .position(|line| line.submitter == submitter)
    }

    /// Queues `piece` before the gate.
    pub(super) fn wait(&mut self, piece: SubmittedPiece) {
        let pieces = match self.tags {
            Tags::PerDirection(_) => &mut self.pieces[piece.direction],
            Tags::Shared(_) => {
                let line = self.line_of(piece.submitter).unwrap_or_else(|| {
                    self.blocked.push_back(BlockedSubmitter {
                        submitter: piece.submitter,
                        pieces: self.spare.pop().unwrap_or_default(),
                    });
                    self.blocked.len() - 1
                });
                &mut self.blocked[line].pieces
            }
        };
        assert!(
            pieces
                .back()
                .is_none_or(|last| last.sequence < piece.sequence),
            "pieces wait in the order of their arrival"
        );
        pieces.push_back(piece);
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
    pub(super) fn first(&self, which: ByDirection<bool>) -> Option<SubmittedPiece> {
        let candidate = |direction: Direction| {
            let piece = *self.pieces[direction].front()?;
            (which[direction] && piece.sequence < self.barrier()).then_some(piece)
        };
        match (candidate(Direction::Read), candidate(Direction::Write)) {
            (Some(read), Some(write)) if write.sequence < read.sequence => Some(write),
            (read, write) => read.or(write),
        }
    }

    fn barrier(&self) -> u64 {
        self.barriers
            .front()
            .map_or(u64::MAX, |barrier| barrier.sequence)
    }

    /// Removes the first piece of `direction` after its entry.
    pub(super) fn pass(&mut self, direction: Direction) {
        let passed = self.pieces[direction].pop_front();
        assert!(passed.is_some(), "no {direction:?} waits before the gate");
    }

    /// Returns the number of blocked submitters; 0 with requests for each direction.
    pub(super) fn blocked(&self) -> usize {
        self.blocked.len()
    }

    /// Returns the next piece of a blocked submitter, unless the piece came after a barrier.
    pub(super) fn next_of(&self, line: usize) -> Option<SubmittedPiece> {
        let piece = *self.blocked[line].pieces.front()?;
        (piece.sequence < self.barrier()).then_some(piece)
    }

    /// Removes the first piece of a blocked submitter after its entry.
    pub(super) fn pass_of(&mut self, line: usize) {
        let passed = self.blocked[line].pieces.pop_front();
        assert!(passed.is_some(), "line {line} before the gate is empty");
    }

    /// Remembers the limit of the next piece of a blocked submitter.
    pub(super) fn remember(&mut self, line: usize, piece: SubmittedPiece) {
        if let Some(first) = self.blocked[line].pieces.front_mut() {
            *first = piece;
        }
    }

    /// True if the submitter is the thread that writes dirty pages back.
    pub(super) fn is_flusher(&self, line: usize) -> bool {
        self.blocked[line].submitter == Submitter::Flusher
    }

    /// Ends the turn of a blocked submitter. With further pieces the submitter blocks again, behind
    /// the others.
    pub(super) fn ends_turn(&mut self, line: usize) {
        if let Some(line) = self.blocked.remove(line) {
            if line.pieces.is_empty() {
                self.spare.push(line.pieces);
            } else {
                self.blocked.push_back(line);
            }
        }
    }

    /// Takes a free request of the direction (the kernel's `struct request`), and returns its
    /// number. With shared requests, `depth` is the number of requests that this one may use.
    /// Returns `None` if none is free.
    pub(super) fn take(&mut self, direction: Direction, depth: u32) -> Option<u32> {
        let number = match self.tags {
            Tags::PerDirection(most) => (self.used[direction] < most).then_some(0),
            Tags::Shared(_) => self.map.take(depth),
        };
        self.used[direction] += u32::from(number.is_some());
        number
    }

    /// Gives a request of the direction back.
    pub(super) fn release(&mut self, direction: Direction, number: u32) {
        assert!(
            self.used[direction] > 0,
            "a {direction:?} gives a request back, and all are free"
        );
        self.used[direction] -= 1;
        if let Tags::Shared(_) = self.tags {
            self.map.release(number);
            self.freed += 1;
        }
    }

    /// Returns the number of blocked submitters to wake, one for each request that was given back
    /// (`sbitmap_queue_wake_up`).
    pub(super) fn woken(&mut self) -> u32 {
        std::mem::take(&mut self.freed)
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
        let none_before = self.first(all).is_none()
            && (0..self.blocked.len()).all(|line| self.next_of(line).is_none());
        let idle = unused && !self.flushing && none_before;
        let barrier = self.barriers.front().filter(|_| idle)?;
        self.flushing = true;
        Some(barrier.original)
    }

    /// Removes the completed flush and returns its request.
    pub(super) fn flushed(&mut self) -> u32 {
        assert!(self.flushing, "a flush comes back that was not issued");
        self.flushing = false;
        // The flush was in the way of every submitter that came later.
        self.freed += self.blocked.len() as u32;
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
