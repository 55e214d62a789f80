//! A command of the host, and where its time went.

use crate::block::NONE;
use fullstroke_contract::{Breakdown, Completion, Request, Status};
use fullstroke_units::{Duration, Time};

/// A command that the controller holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    pub(crate) request: Request,
    pub(crate) submitted: Time,
    /// Where the time until `since` went.
    pub(crate) parts: Breakdown,
    pub(crate) since: Time,
    pub(crate) status: Status,
    /// Sectors of a write that are in memory.
    pub(crate) taken: u64,
    /// The next command that waits for the same fetch.
    pub(crate) next_waiter: u32,
}

impl Command {
    pub(crate) fn new(now: Time, request: Request) -> Command {
        Command {
            request,
            submitted: now,
            parts: Breakdown::default(),
            since: now,
            status: Status::Done,
            taken: 0,
            next_waiter: NONE,
        }
    }

    /// It waited until `until`.
    pub(crate) fn waited(&mut self, until: Time) {
        self.parts.queue += until.since(self.since);
        self.since = until;
    }

    /// The controller or the link worked on it for `span`.
    pub(crate) fn worked(&mut self, span: Duration) {
        self.parts.overhead += span;
        self.since += span;
    }

    /// The array worked on it.
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
        self.parts.seek_cylinders = seek_cylinders;
        self.since = completion.finished;
        self.status = completion.status;
    }

    /// Its answer; it has ended at `since`.
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
