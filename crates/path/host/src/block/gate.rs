//! Submitters that wait before the elevator: for a free request, or behind a barrier.

use super::tags::TagMap;
use super::wait_queues::WaitQueues;
use crate::direction::{ByDirection, Direction};
use fullstroke_contract::Extent;
use fullstroke_units::{Duration, Random, Seed, Time};
use std::collections::VecDeque;

/// Probability that the submitter of a completed request runs before the woken sleeper and takes
/// the free request. Both are woken at the same moment. Measured on Linux 6.18 with two processors,
/// 8 random readers of depth 2 without an elevator: 222 of 600 completions.
const OWNER_FIRST: f64 = 0.37;

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
    /// Wait queue of the submitter; none if the submitter waits for the write-back throttle.
    queue: Option<u8>,
    /// Time at which the woken submitter runs; NEVER while it sleeps.
    runs: Time,
}

impl BlockedSubmitter {
    fn sleeps_in(&self, queue: u8) -> bool {
        self.queue == Some(queue) && self.runs == Time::NEVER
    }
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
    /// The wait queues of blocked submitters, with shared requests.
    queues: WaitQueues,
    /// Number of requests that were given back since blocked submitters were woken.
    freed: u32,
    /// Submitter of the last request that was given back, if it may send another one at once.
    owner: Option<Submitter>,
    /// Time from a completion to the next request of its submitter.
    turnaround: Duration,
    random: Random,
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
    /// Returns an open gate. `least` is the smallest number of requests to which the elevator limits
    /// a submitter. `turnaround` is the host's time from a completion to the next request of its
    /// submitter.
    pub(super) fn new(tags: Tags, least: u32, turnaround: Duration) -> RequestGate {
        let map = TagMap::new(tags.request_limit());
        RequestGate {
            tags,
            used: ByDirection::default(),
            queues: WaitQueues::new(tags.request_limit(), least, map.words()),
            map,
            freed: 0,
            owner: None,
            turnaround,
            // A host has no seed of its own. The loads differ by seed.
            random: Seed(0).stream("requests"),
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
                    let queue = piece.depth.map(|_| self.queues.sleep());
                    self.blocked.push_back(BlockedSubmitter {
                        submitter: piece.submitter,
                        pieces: self.spare.pop().unwrap_or_default(),
                        queue,
                        runs: Time::NEVER,
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
            // Arrival decides between the directions, so no direction overtakes the other here.
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

    /// Wakes blocked submitters for the requests that were given back (`sbitmap_queue_wake_up`).
    pub(super) fn wake(&mut self, now: Time) {
        let freed = std::mem::take(&mut self.freed);
        let owner = self.owner.take();
        // Without a freed request a waker would find nothing to take.
        if self.blocked.is_empty() || freed == 0 {
            return;
        }
        let mut runs = now;
        // The owner of the completed request often asks again before the woken submitter runs, and
        // takes the request.
        if owner.is_some_and(|owner| self.line_of(owner).is_none())
            && self.random.chance(OWNER_FIRST)
        {
            runs = now + self.turnaround;
        }
        let (queues, blocked) = (&mut self.queues, &mut self.blocked);
        let mut due = queues.completed(freed);
        if due == 0 && self.used == ByDirection::default() {
            // Nothing is in flight, so no further completion would fill the batch.
            due = queues.batch();
        }
        while due > 0 {
            due -= queues.batch();
            queues.wake(|queue, most| {
                let sleepers = blocked.iter_mut().filter(|line| line.sleeps_in(queue));
                let woken = sleepers.take(most as usize);
                woken.map(|line| line.runs = runs).count() as u32
            });
        }
    }

    /// Wakes all blocked submitters.
    fn wake_all(&mut self, now: Time) {
        for line in &mut self.blocked {
            line.runs = line.runs.min(now);
        }
    }

    /// Returns the time at which the next woken submitter runs; NEVER if all sleep.
    pub(super) fn runs_at(&self) -> Time {
        self.blocked
            .iter()
            .map(|line| line.runs)
            .min()
            .unwrap_or(Time::NEVER)
    }

    /// Returns the number of blocked submitters; 0 with requests for each direction.
    pub(super) fn blocked(&self) -> usize {
        self.blocked.len()
    }

    /// True if the submitter runs at `now`. A submitter that waits for the write-back throttle
    /// always tries.
    pub(super) fn runs(&self, line: usize, now: Time) -> bool {
        let line = &self.blocked[line];
        line.queue.is_none() || line.runs <= now
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

    /// Ends the turn of a blocked submitter. With further pieces the submitter blocks again, behind
    /// the others. Returns true if the submitter has left its line.
    pub(super) fn ends_turn(&mut self, line: usize, entered: bool) -> bool {
        let first = self.blocked[line].pieces.front();
        let for_request = first.is_some_and(|piece| piece.depth.is_some());
        if !entered && !for_request {
            // The submitter still waits for the throttle or behind a barrier.
            self.blocked[line].runs = Time::NEVER;
            return false;
        }
        let Some(mut line) = self.blocked.remove(line) else {
            return false;
        };
        if line.pieces.is_empty() {
            // The emptied list serves the next submitter that waits, so that waiting allocates
            // nothing.
            self.spare.push(line.pieces);
        } else {
            line.queue = for_request.then(|| self.queues.sleep());
            line.runs = Time::NEVER;
            self.blocked.push_back(line);
        }
        true
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

    /// Notes the submitter of the request that was just given back. It may send its next request
    /// at once.
    pub(super) fn completed_for(&mut self, owner: Submitter) {
        self.owner = Some(owner);
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
    pub(super) fn flushed(&mut self, now: Time) -> u32 {
        assert!(self.flushing, "a flush comes back that was not issued");
        self.flushing = false;
        // The flush was in the way of every submitter that came later.
        self.wake_all(now);
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
