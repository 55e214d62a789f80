//! The workload's requests that are on their way.

use fullstroke_contract::{Extent, Operation, Request, RequestId};
use fullstroke_units::Time;

/// What the engine remembers of a request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// The id that the source gave it.
    pub(crate) id: RequestId,
    pub(crate) origin: u64,
    pub(crate) operation: Operation,
    pub(crate) extent: Extent,
    pub(crate) process: u32,
    pub(crate) arrived: Time,
}

/// All of them, by slot; the slot is the id below the engine.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    slots: Vec<Flight>,
    free: Vec<u32>,
}

impl Flights {
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn take_off(&mut self, now: Time, request: Request) -> RequestId {
        let flight = Flight {
            id: request.id,
            origin: request.origin,
            operation: request.operation,
            extent: request.extent,
            process: request.hints.process,
            arrived: now,
        };
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = flight;
                RequestId(u64::from(slot))
            }
            None => {
                self.slots.push(flight);
                RequestId(self.slots.len() as u64 - 1)
            }
        }
    }

    pub(crate) fn land(&mut self, id: RequestId) -> Flight {
        self.free.push(id.0 as u32);
        self.slots[id.0 as usize]
    }
}
