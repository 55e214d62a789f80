//! Writes, flushes and discards.

use crate::controller::Controller;
use crate::io::{ControllerIo, IoPurpose};
use fullstroke_contract::{Completion, Effects, Extent, Operation, Request};
use fullstroke_units::Time;

impl Controller {
    /// Handles the arrived data of a write: the write waits for room in memory, or is passed
    /// through.
    pub(crate) fn write(&mut self, slot: u32) {
        if self.constants.write_back {
            self.waits.add_writer(slot);
        } else {
            self.through(slot);
        }
    }

    /// Takes waiting writes into memory, in order, while there is room. A write larger than the
    /// room is taken piece by piece.
    pub(crate) fn absorb(&mut self, now: Time, out: &mut Effects) {
        while let Some(slot) = self.waits.writer() {
            let Request { extent, hints, .. } = self.commands[slot].request;
            let taken = self.memory.write(extent, self.commands[slot].taken);
            self.commands[slot].taken = taken;
            if taken < extent.sectors.0 {
                // Later writes wait as well, although they may fit. Otherwise a large write could
                // starve, and writes of one sector could pass each other.
                return;
            }
            self.waits.writer_ended(slot);
            self.counts.absorbed += 1;
            // Memory with a battery counts as durable, so a forced write is done when it is in
            // memory.
            if hints.force_unit_access && !self.config.battery {
                self.drain(slot);
            } else {
                self.finish(slot, now, out);
            }
        }
    }

    /// Serves a flush. With a battery, memory is durable, and the flush completes at once. Without
    /// a battery, the flush waits for dirty data and goes on to the array.
    pub(crate) fn flush(&mut self, slot: u32, now: Time, out: &mut Effects) {
        match (self.constants.write_back, self.config.battery) {
            (true, true) => self.finish(slot, now, out),
            (true, false) => self.drain(slot),
            (false, _) => self.pass(slot),
        }
    }

    /// Lets a command wait until all current dirty data are on the array. The command then goes on
    /// to the array.
    pub(crate) fn drain(&mut self, slot: u32) {
        // The end of the epoch excludes later writes. Otherwise steady writes would keep a flush
        // waiting for ever.
        let epoch = self.memory.end_epoch();
        self.waits.add_drain(slot, epoch);
    }

    /// Passes on commands whose dirty data are on the array.
    pub(crate) fn end_drains(&mut self) {
        while let Some(slot) = self.waits.end_drain(|epoch| self.memory.epoch_over(epoch)) {
            self.pass(slot);
        }
    }

    /// Passes a whole-array command to the array. For a forced write, sends a flush.
    pub(crate) fn pass(&mut self, slot: u32) {
        let command = self.commands[slot].request;
        let operation = if command.operation.is_of_all() {
            command.operation
        } else {
            Operation::Flush
        };
        let request = Request {
            operation,
            ..command
        };
        self.array.ask(ControllerIo::of_command(
            IoPurpose::Through { command: slot },
            request,
            Extent::default(),
        ));
    }

    pub(crate) fn discard(&mut self, slot: u32) {
        // The data are dropped before the array answers. Destaging would otherwise write discarded
        // data behind the discard.
        self.memory.forget(self.commands[slot].request.extent);
        self.through(slot);
    }

    /// Ends a command after its pass through the array. After a write, memory or running fetches
    /// may have older data, so these data are dropped.
    pub(crate) fn went_through(
        &mut self,
        slot: u32,
        io: &ControllerIo,
        completion: &Completion,
        out: &mut Effects,
    ) {
        if io.request.operation == Operation::Write && io.request.extent.within(self.capacity) {
            self.memory.forget(io.request.extent);
        }
        self.commands[slot].served(completion);
        self.finish(slot, completion.finished, out);
    }
}
