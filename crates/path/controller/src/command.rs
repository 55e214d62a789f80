//! A command of the host, with the breakdown of its time.

use crate::block::NONE;
use fullstroke_contract::{Breakdown, Completion, Request, RequestStatus};
use fullstroke_units::{Duration, Time};

/// A command in the controller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControllerCommand {
    pub(crate) request: Request,
    pub(crate) submitted: Time,
    /// Breakdown of the time until `since`.
    pub(crate) parts: Breakdown,
    pub(crate) since: Time,
    pub(crate) status: RequestStatus,
    /// Number of sectors of a write already in memory.
    pub(crate) taken: u64,
    /// Next command in the wait list of the same fetch.
    pub(crate) next_waiter: u32,
}

impl ControllerCommand {
    pub(crate) fn new(now: Time, request: Request) -> ControllerCommand {
        ControllerCommand {
            request,
            submitted: now,
            parts: Breakdown::default(),
            since: now,
            status: RequestStatus::Done,
            taken: 0,
            next_waiter: NONE,
        }
    }

    /// Adds the time until `until` as a wait.
    pub(crate) fn waited(&mut self, until: Time) {
        self.parts.queue += until.since(self.since);
        self.since = until;
    }

    /// Adds `span` as work of the controller or the link.
    pub(crate) fn worked(&mut self, span: Duration) {
        self.parts.overhead += span;
        self.since += span;
    }

    /// Adds the breakdown of the array.
    pub(crate) fn served(&mut self, completion: &Completion) {
        self.waited(completion.submitted);
        let Breakdown {
            queue,
            parity,
            overhead,
            seek,
            rotation,
            transfer,
            seek_cylinders,
        } = completion.breakdown;
        self.parts.queue += queue;
        self.parts.parity += parity;
        self.parts.overhead += overhead;
        self.parts.seek += seek;
        self.parts.rotation += rotation;
        self.parts.transfer += transfer;
        // The array answers one I/O of each command, so the seek distance is taken over, not added.
        self.parts.seek_cylinders = seek_cylinders;
        self.since = completion.finished;
        self.status = completion.status;
    }

    /// Returns the completion of a command after its end at `since`.
    pub(crate) fn completion(&self) -> Completion {
        Completion {
            id: self.request.id,
            submitted: self.submitted,
            finished: self.since,
            status: self.status,
            breakdown: self.parts,
        }
    }
}
