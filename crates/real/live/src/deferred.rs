//! Parts of requests held back, and requests that wait for their data.

use crate::completed::CompletedRequest;
use crate::ticket::{RequestOutcome, Ticket};
use fullstroke_contract::Extent;
use fullstroke_units::Time;
use std::collections::VecDeque;

/// A part held back because others have sent requests before. The drives' queues would prefer the
/// run of zeroes to all of these requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeferredPart {
    pub(crate) place: u32,
    pub(crate) since: Time,
    /// Number of requests in flight at that time and still unfinished.
    pub(crate) ahead: usize,
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
