//! Reads: hits, fetches, read-ahead.

use crate::block::NONE;
use crate::controller::Controller;
use crate::io::{ControllerIo, IoPurpose};
use fullstroke_contract::{Completion, Effects, Extent, Operation, RequestStatus};
use fullstroke_units::Time;

impl Controller {
    /// Serves a read: answers from memory, or fetches the data.
    pub(crate) fn read(&mut self, slot: u32, now: Time) {
        let extent = self.commands[slot].request.extent;
        self.counts.reads += 1;
        if self.look_up(slot, now) {
            self.counts.hits += 1;
        }
        if let Some(ahead) = self.streams.observe(extent) {
            self.read_ahead(ahead);
        }
    }

    /// Answers a read from memory and returns true. Otherwise fetches the missing data with a new
    /// I/O, or waits for a running I/O, and returns false.
    fn look_up(&mut self, slot: u32, now: Time) -> bool {
        let request = self.commands[slot].request;
        let Some(missing) = self.memory.missing(request.extent) else {
            self.memory.touch(request.extent);
            self.deliver(slot, now);
            return true;
        };
        match self.memory.fetch_of(missing.start.0).checked_sub(1) {
            // A fetch of another extent may bring only a part of the missing sectors. The command
            // then fetches the whole by itself.
            Some(io) if covers(self.array.extent_of(io), missing) => self.wait_for(io, slot),
            _ => {
                let io = self.array.ask(ControllerIo::of_command(
                    IoPurpose::Fetch { command: slot },
                    request,
                    missing,
                ));
                self.memory.begin_fetch(missing, io + 1);
            }
        }
        false
    }

    fn read_ahead(&mut self, ahead: Extent) {
        if let Some(missing) = self.memory.missing(ahead)
            // If a fetch of the first missing sector is in flight, the data ahead are probably on
            // the way.
            && self.memory.fetch_of(missing.start.0) == 0
        {
            self.counts.read_aheads += 1;
            let io = self.array.ask(ControllerIo::own(
                IoPurpose::Ahead,
                Operation::Read,
                missing,
            ));
            self.memory.begin_fetch(missing, io + 1);
        }
    }

    /// Ends a fetch. The command of the fetch has its data, and waiting commands look into memory
    /// again.
    pub(crate) fn fetched(
        &mut self,
        slot: u32,
        io: &ControllerIo,
        command: Option<u32>,
        completion: &Completion,
        out: &mut Effects,
    ) {
        let now = completion.finished;
        let done = completion.status == RequestStatus::Done;
        // The data enter memory before the waiters look.
        self.memory.end_fetch(io.request.extent, slot + 1, done);
        if let Some(command) = command {
            self.commands[command].served(completion);
            if done {
                self.deliver(command, now)
            } else {
                self.finish(command, now, out)
            }
        }
        // The chain begins with the last waiter. The chain is reversed, so that the waiters look in
        // order of arrival.
        let mut turned = NONE;
        let mut waiter = io.waiters;
        while waiter != NONE {
            let next = self.commands[waiter].next_waiter;
            self.commands[waiter].next_waiter = turned;
            turned = waiter;
            waiter = next;
        }
        while turned != NONE {
            let next = self.commands[turned].next_waiter;
            self.commands[turned].next_waiter = NONE;
            // The waiter looks again, because the fetch may have failed or the data may have been
            // dropped.
            self.look_up(turned, now);
            turned = next;
        }
    }
}

fn covers(outer: Extent, inner: Extent) -> bool {
    outer.start <= inner.start && inner.end() <= outer.end()
}
