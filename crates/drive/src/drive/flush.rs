//! Flushes and discards: the commands of a drive that move no data to or from
//! the host.

use super::{Drive, Service, Slot, parts};
use crate::config::FlushCommand;
use crate::mechanics::Access;
use fullstroke_contract::{Breakdown, Operation, Request};
use fullstroke_units::{Duration, Time};

impl Drive {
    /// Whether the drive takes `request` as a command. A flush finds nothing to
    /// do where no writes are cached: Linux does not even send it there
    /// (`blk_flush_policy`, `blk_insert_flush`).
    pub(super) fn is_command(&self, request: &Request) -> bool {
        match request.operation {
            Operation::Read | Operation::Write => true,
            Operation::Flush => self.buffer.as_ref().is_some_and(|buffer| buffer.takes_writes()),
            Operation::Discard => self.command_overhead > Duration::ZERO,
        }
    }

    /// Whether the first of those outside may not come in: a flush that is no
    /// queued command waits until nothing is left inside, and then has the drive
    /// to itself.
    pub(super) fn waits_alone(&self, slot: u32) -> bool {
        self.flush_command == FlushCommand::Alone
            && self.slots[slot].request.operation == Operation::Flush
            && self.inside() > 0
    }

    /// A flush goes before what waits for the arm: the next to be served.
    pub(super) fn begin_flush(&mut self, now: Time) -> bool {
        let Some((slot, entered)) = self.flushes.pop_front() else { return false };
        self.service = Some(self.flush(slot, entered, now));
        true
    }

    /// What had been taken into the buffer when the flush came goes to the
    /// medium.
    fn flush(&mut self, slot: u32, entered: Time, now: Time) -> Service {
        let submitted = self.slots[slot].submitted;
        let begin = now + self.command_overhead;
        let mut access = Access::default();
        let finish = self.buffer.as_mut().map_or(begin, |buffer| {
            buffer.catch_up(now, !self.queue.is_empty(), &mut self.arm);
            if buffer.is_dirty_since(entered) {
                self.arm.take(now, begin);
            }
            buffer.flush(begin, entered, &mut self.arm, &mut access)
        });
        Service { slot, finish, breakdown: parts(submitted, now, finish, &access) }
    }

    /// A discard costs the electronics a command, and the arm nothing: addresses
    /// are forgotten, not written. A drive that ignores it takes as long.
    pub(super) fn discard(&mut self, slot: u32, now: Time) {
        let Slot { submitted, .. } = self.slots[slot];
        let begun = self.bus_free.max(now);
        let finish = begun + self.command_overhead;
        self.bus_free = finish;
        let breakdown = Breakdown {
            queue: begun.since(submitted),
            overhead: self.command_overhead,
            ..Breakdown::default()
        };
        self.passing.push_back(Service { slot, finish, breakdown });
    }
}
