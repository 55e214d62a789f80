//! The requests as they were submitted, and how they hang on those that wait.
//!
//! A submitted request that is longer than the layer allows is cut into
//! pieces. Each piece is a part of one waiting request, which may have many
//! parts, of many submitted requests.

use fullstroke_contract::{Completion, Hints, Out, Request, Slots, Status};
use fullstroke_units::Time;

/// No part.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Original {
    request: Request,
    submitted: Time,
    pieces_left: u32,
    /// The piece that finished last so far, and the worst end of any.
    last: Completion,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    original: u32,
    next: u32,
}

/// All submitted requests that have not completed.
#[derive(Debug, Default)]
pub(super) struct Originals {
    originals: Slots<Original>,
    parts: Slots<Part>,
}

/// The first and the last of a chain of parts.
pub(super) type Chain = (u32, u32);

impl Originals {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.originals.len()
    }

    /// Remembers a request that was submitted `now` and is cut into `pieces`.
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
            last,
        })
    }

    /// The request as it was submitted.
    pub(super) fn request(&self, original: u32) -> &Request {
        &self.originals[original].request
    }

    /// Pieces of an open request that have not finished.
    pub(super) fn pieces_left(&self, original: u32) -> u32 {
        self.originals[original].pieces_left
    }

    /// The request of which the first part of `chain` is a piece.
    pub(super) fn of(&self, chain: Chain) -> u32 {
        self.parts[chain.0].original
    }

    /// A chain of one piece.
    pub(super) fn part(&mut self, original: u32) -> Chain {
        let part = self.parts.keep(Part {
            original,
            next: NONE,
        });
        (part, part)
    }

    /// The chain of `first` followed by `second`.
    pub(super) fn concatenate(&mut self, first: Chain, second: Chain) -> Chain {
        debug_assert_eq!(
            self.parts[first.1].next, NONE,
            "a chain is joined at its last part"
        );
        self.parts[first.1].next = second.0;
        (first.0, second.1)
    }

    /// What goes down with a chain of parts: the hints and the origin of the
    /// first, but a stripe only if all share it; and it was pulled if any of it was.
    pub(super) fn hints(&self, chain: Chain) -> (Hints, u64) {
        let first = &self.originals[self.parts[chain.0].original].request;
        let mut hints = first.hints;
        let mut part = self.parts[chain.0].next;
        while part != NONE {
            let other = &self.originals[self.parts[part].original].request.hints;
            hints.stripe = hints.stripe.filter(|_| hints.stripe == other.stripe);
            hints.pulled |= other.pulled;
            part = self.parts[part].next;
        }
        (hints, first.origin)
    }

    /// The chain has finished below as `completion` says: every request of
    /// which no piece is left is answered.
    pub(super) fn finish(&mut self, chain: Chain, completion: &Completion, out: &mut Out) {
        let mut part = chain.0;
        while part != NONE {
            let Part { original, next } = self.parts.take(part);
            self.piece_finished(original, completion, out);
            part = next;
        }
    }

    /// One piece of `original` has finished below.
    pub(super) fn piece_finished(&mut self, original: u32, completion: &Completion, out: &mut Out) {
        let open = &mut self.originals[original];
        let status: Status = completion.status.max(open.last.status);
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
        out.complete(last.held_since(submitted, request.id));
    }
}
