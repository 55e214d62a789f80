//! Parts of requests held back, and requests that wait for their data.

use crate::completed::CompletedRequest;
use crate::ticket::{RequestOutcome, Ticket};
use fullstroke_contract::Extent;
use fullstroke_units::Time;
use std::collections::VecDeque;

/// A part held back because others have sent requests before. The drives' queues would prefer the
/// run of zeroes to all of these requests.
#[derive(Clone, Copy, Debug)]
struct DeferredPart {
    place: u32,
    since: Time,
    /// Number of requests in flight at that time and still unfinished.
    ahead: usize,
}

/// Parts held back, and requests that wait for their data.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    parts: Vec<DeferredPart>,
    /// Requests finished in the layers, but not on the data.
    slow: VecDeque<AwaitingData>,
}

impl Deferred {
    /// Holds a part of the ticket in `place` back, until `ahead` requests of others have ended.
    pub(crate) fn hold(&mut self, place: u32, since: Time, ahead: usize) {
        assert!(ahead > 0, "a part of ticket {place} waits for nobody");
        self.parts.push(DeferredPart {
            place,
            since,
            ahead,
        });
    }

    /// True if a part of the ticket is held back.
    pub(crate) fn holds(&self, place: u32) -> bool {
        self.parts.iter().any(|part| part.place == place)
    }

    /// Notes the end of a request that arrived at this time.
    pub(crate) fn request_ended(&mut self, arrived: Time) {
        for part in &mut self.parts {
            // Requests that came later were not counted in `ahead`.
            if arrived <= part.since {
                part.ahead = part.ahead.saturating_sub(1);
            }
        }
    }

    /// Takes the ticket of the first part that waits for nobody any more.
    pub(crate) fn take_ready(&mut self) -> Option<u32> {
        let index = self.parts.iter().position(|part| part.ahead == 0)?;
        Some(self.parts.remove(index).place)
    }

    /// True if a request waits for its data.
    pub(crate) fn has_slow(&self) -> bool {
        !self.slow.is_empty()
    }

    /// Adds a request behind all others.
    pub(crate) fn add_slow(&mut self, slow: AwaitingData) {
        self.slow.push_back(slow);
    }

    /// Takes the first request that waits for its data.
    pub(crate) fn take_slow(&mut self) -> Option<AwaitingData> {
        self.slow.pop_front()
    }

    /// Puts a request in front again, which is not done.
    pub(crate) fn put_back(&mut self, slow: AwaitingData) {
        self.slow.push_front(slow);
    }

    /// Puts `all` into the place of the requests that wait for their data, and returns the former
    /// requests.
    pub(crate) fn replace_slow(&mut self, all: VecDeque<AwaitingData>) -> VecDeque<AwaitingData> {
        std::mem::replace(&mut self.slow, all)
    }
}

/// A request finished in the layers, but not yet on the data.
#[derive(Debug)]
pub(crate) struct AwaitingData {
    pub(crate) ended: CompletedRequest,
    pub(crate) ticket: Ticket,
    pub(crate) left: VecDeque<Extent>,
    pub(crate) failure: Option<RequestOutcome>,
}

impl AwaitingData {
    /// Returns the outcome, once nothing is left.
    pub(crate) fn into_parts(self) -> (CompletedRequest, Ticket, RequestOutcome) {
        let carried = self.failure.unwrap_or_else(|| self.ticket.done());
        (self.ended, self.ticket, carried)
    }
}
