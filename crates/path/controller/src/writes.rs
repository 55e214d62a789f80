//! Writes, flushes and discards.

use crate::controller::Controller;
use crate::io::{Io, Purpose};
use fullstroke_contract::{Completion, Extent, Operation, Out, Request};
use fullstroke_units::Time;

impl Controller {
    /// The data of a write have come: they wait for room in memory, or go
    /// through.
    pub(crate) fn write(&mut self, slot: u32) {
        if self.constants.write_back {
            self.writers.push_back(slot);
        } else {
            self.through(slot);
        }
    }

    /// Takes waiting writes into memory, in order, as far as there is room; a
    /// write larger than the room is taken piece by piece.
    pub(crate) fn absorb(&mut self, now: Time, out: &mut Out) {
        while let Some(&slot) = self.writers.front() {
            let Request { extent, hints, .. } = self.commands[slot].request;
            let taken = self.memory.write(extent, self.commands[slot].taken);
            self.commands[slot].taken = taken;
            if taken < extent.sectors.0 {
                return;
            }
            self.writers.pop_front();
            self.counts.absorbed += 1;
            if hints.force_unit_access && !self.config.battery {
                self.drain(slot);
            } else {
                self.finish(slot, now, out);
            }
        }
    }

    /// With a battery, memory is durable: a flush has nothing to do. Without,
    /// it waits for what is dirty, and goes on to the array.
    pub(crate) fn flush(&mut self, slot: u32, now: Time, out: &mut Out) {
        match (self.constants.write_back, self.config.battery) {
            (true, true) => self.finish(slot, now, out),
            (true, false) => self.drain(slot),
            (false, _) => self.pass(slot),
        }
    }

    /// The command waits for what is dirty, and goes on to the array.
    pub(crate) fn drain(&mut self, slot: u32) {
        let epoch = self.memory.end_epoch();
        self.drains.push_back((slot, epoch));
    }

    /// Commands before which all dirty data had to be with the array, and are, go
    /// there themselves.
    pub(crate) fn end_drains(&mut self) {
        while let Some(&(slot, epoch)) = self.drains.front()
            && self.memory.epoch_over(epoch)
        {
            self.drains.pop_front();
            self.pass(slot);
        }
    }

    /// The array is asked what the host asks of all, or to flush a write that is
    /// forced.
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
        self.ask(Io::of_command(
            Purpose::Through { command: slot },
            request,
            Extent::default(),
        ));
    }

    pub(crate) fn discard(&mut self, slot: u32) {
        self.memory.forget(self.commands[slot].request.extent);
        self.through(slot);
    }

    /// The array has answered what was handed through. What memory holds of a
    /// write, or is fetching, may be older than it, and is forgotten.
    pub(crate) fn went_through(
        &mut self,
        slot: u32,
        io: &Io,
        completion: &Completion,
        out: &mut Out,
    ) {
        if io.request.operation == Operation::Write && io.request.extent.within(self.capacity) {
            self.memory.forget(io.request.extent);
        }
        self.commands[slot].served(completion);
        self.finish(slot, completion.finished, out);
    }
}
