//! The workloads' requests in flight.

use fullstroke_contract::{Extent, Operation, Request, RequestId, Slots};
use fullstroke_units::Time;

/// The engine's record of a request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRequest {
    /// Id from the source. The engine replaces the id below the source and restores it in the
    /// completion.
    pub(crate) id: RequestId,
    pub(crate) origin: u64,
    pub(crate) operation: Operation,
    pub(crate) extent: Extent,
    pub(crate) process: u32,
    pub(crate) workload: u16,
    pub(crate) arrived: Time,
}

/// All requests in flight, by slot. The slot number is the request's id below the engine.
#[derive(Debug, Default)]
pub(crate) struct Flights(Slots<PendingRequest>);

impl Flights {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn begin_flight(&mut self, now: Time, request: &Request) -> RequestId {
        let flight = PendingRequest {
            id: request.id,
            origin: request.origin,
            operation: request.operation,
            extent: request.extent,
            process: request.hints.process,
            workload: request.hints.workload,
            arrived: now,
        };
        RequestId(u64::from(self.0.keep(flight)))
    }

    pub(crate) fn end_flight(&mut self, id: RequestId) -> PendingRequest {
        // Only the machine hands out ids below the workloads, and ids are slots. A larger id comes
        // from a node that has invented one.
        let slot = u32::try_from(id.0);
        let slot =
            slot.unwrap_or_else(|_| panic!("request {} was never issued to the graph", id.0));
        let flight = self.0.take(slot);
        debug_assert!(
            flight.origin != Request::BACKGROUND,
            "the work of a layer on its own account has come to a workload"
        );
        flight
    }
}
