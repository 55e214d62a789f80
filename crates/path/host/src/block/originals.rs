//! The submitted requests, and their links to the waiting requests.
//!
//! A submitted request that exceeds the layer's limit is split into pieces. Each piece is a part of
//! one waiting request. A waiting request may consist of parts of many submitted requests.

use fullstroke_contract::{Completion, Effects, Hints, Request, RequestStatus, Slots};
use fullstroke_units::{Duration, Time};
use std::collections::VecDeque;

/// No part.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Original {
    request: Request,
    submitted: Time,
    pieces_left: u32,
    /// Number of the layer's request that a flush holds.
    tag: u32,
    /// Completion of the last piece so far, with the worst status of all pieces.
    last: Completion,
}

#[derive(Clone, Copy, Debug)]
struct OriginalLink {
    original: u32,
    next: u32,
}

/// Time that the host itself takes for each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTime {
    /// Time from the submission until the request reaches the elevator.
    pub submission: Duration,
    /// Time from the completion of the device until the submitter runs again.
    pub completion: Duration,
    /// Time from a completion until a worker thread asks the elevator for the next request. Zero:
    /// every event asks at once.
    pub dispatch: Duration,
}

impl HostTime {
    /// Returns the time from a completion until the next request of its submitter has reached the
    /// elevator.
    pub(super) fn turnaround(self) -> Duration {
        if self.completion == Duration::ZERO {
            return Duration::ZERO;
        }
        // One nanosecond more, so that the other has come first.
        self.completion + self.submission + Duration::from_nanos(1)
    }
}

/// All submitted requests before their completion.
#[derive(Debug, Default)]
pub(super) struct Originals {
    originals: Slots<Original>,
    parts: Slots<OriginalLink>,
    time: HostTime,
    /// Completions on their way to the submitters, in order.
    leaving: VecDeque<Completion>,
}

/// The first and the last part of a chain.
pub(super) type Chain = (u32, u32);

impl Originals {
    pub(super) fn new(time: HostTime) -> Originals {
        Originals {
            time,
            ..Originals::default()
        }
    }

    /// Returns the time from a completion until the next request of its submitter has arrived.
    pub(super) fn turnaround(&self) -> Duration {
        self.time.turnaround()
    }

    /// Returns the time at which the next completion reaches its submitter; NEVER if none is on its
    /// way.
    pub(super) fn leaves_at(&self) -> Time {
        self.leaving
            .front()
            .map_or(Time::NEVER, |completion| completion.finished)
    }

    /// Completes the requests whose completions have reached their submitters by `now`.
    pub(super) fn leave(&mut self, now: Time, out: &mut Effects) {
        while self.leaves_at() <= now {
            self.leaving
                .pop_front()
                .into_iter()
                .for_each(|completion| out.complete(completion));
        }
    }

    /// Returns the number of open requests.
    pub(super) fn len(&self) -> usize {
        self.originals.len()
    }

    /// Records a request of `pieces` pieces, submitted at `now`. Returns the number of the request.
    pub(super) fn open(&mut self, now: Time, request: Request, pieces: u32) -> u32 {
        let last = Completion {
            submitted: now,
            ..Completion::default()
        };
        assert!(pieces > 0, "a request is cut into no piece");
        self.originals.keep(Original {
            request,
            submitted: now,
            pieces_left: pieces,
            tag: 0,
            last,
        })
    }

    /// Returns the request as submitted.
    pub(super) fn request(&self, original: u32) -> &Request {
        &self.originals[original].request
    }

    /// Notes the number of the layer's request that the flush `original` holds.
    pub(super) fn keep_tag(&mut self, original: u32, tag: u32) {
        self.originals[original].tag = tag;
    }

    /// Returns the number of the layer's request that the flush `original` holds.
    pub(super) fn tag(&self, original: u32) -> u32 {
        self.originals[original].tag
    }

    /// Returns the number of unfinished pieces of an open request.
    pub(super) fn pieces_left(&self, original: u32) -> u32 {
        self.originals[original].pieces_left
    }

    /// Returns the request to which the first part of `chain` belongs.
    pub(super) fn of(&self, chain: Chain) -> u32 {
        self.parts[chain.0].original
    }

    /// Returns a chain of one part.
    pub(super) fn part(&mut self, original: u32) -> Chain {
        let part = self.parts.keep(OriginalLink {
            original,
            next: NONE,
        });
        (part, part)
    }

    /// Joins `second` to the end of `first`.
    pub(super) fn concatenate(&mut self, first: Chain, second: Chain) -> Chain {
        debug_assert_eq!(
            self.parts[first.1].next, NONE,
            "a chain is joined at its last part"
        );
        self.parts[first.1].next = second.0;
        (first.0, second.1)
    }

    /// Returns the hints and the origin for the request that a chain becomes. Both come from the
    /// first part, with two exceptions. A stripe is kept only if all parts have the same stripe.
    /// The request counts as pulled if any part was pulled.
    pub(super) fn hints(&self, chain: Chain) -> (Hints, u64) {
        let first = &self.originals[self.parts[chain.0].original].request;
        let mut hints = first.hints;
        let mut part = self.parts[chain.0].next;
        while part != NONE {
            let other = &self.originals[self.parts[part].original].request.hints;
            // A merged request belongs to a stripe only if all parts do.
            hints.stripe = hints.stripe.filter(|_| hints.stripe == other.stripe);
            hints.pulled |= other.pulled;
            part = self.parts[part].next;
        }
        (hints, first.origin)
    }

    /// Finishes each part of the chain. Completes every submitted request without unfinished
    /// pieces.
    pub(super) fn finish(&mut self, chain: Chain, completion: &Completion, out: &mut Effects) {
        let mut part = chain.0;
        while part != NONE {
            let OriginalLink { original, next } = self.parts.take(part);
            self.piece_finished(original, completion, out);
            part = next;
        }
    }

    /// Finishes one piece of `original`.
    pub(super) fn piece_finished(
        &mut self,
        original: u32,
        completion: &Completion,
        out: &mut Effects,
    ) {
        let open = &mut self.originals[original];
        // The worst status of a piece becomes the status of the whole request.
        let status: RequestStatus = completion.status.max(open.last.status);
        // The last piece to end explains the response time of the whole request.
        if completion.finished >= open.last.finished {
            open.last = *completion;
        }
        open.last.status = status;
        assert!(
            open.pieces_left > 0 && completion.submitted >= open.submitted,
            "a piece of a request of {:?} comes back that was sent at {:?}; {} are left",
            open.submitted,
            completion.submitted,
            open.pieces_left
        );
        open.pieces_left -= 1;
        if open.pieces_left > 0 {
            return;
        }
        let Original {
            request,
            submitted,
            last,
            ..
        } = self.originals.take(original);
        let mut completion = last.held_since(submitted, request.id);
        let HostTime {
            submission,
            completion: return_time,
            ..
        } = self.time;
        // The request was submitted before its way through the host began.
        completion.submitted = Time::from_nanos(submitted.as_nanos() - submission.as_nanos());
        completion.finished += return_time;
        completion.breakdown.overhead += submission + return_time;
        if return_time == Duration::ZERO {
            out.complete(completion);
        } else {
            self.leaving.push_back(completion);
        }
    }
}
