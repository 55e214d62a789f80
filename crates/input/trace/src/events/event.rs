//! One event of a kernel.

use fullstroke_contract::Operation;

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Queue,
    Insert,
    Issue,
    Requeue,
    Complete,
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelEvent {
    pub(crate) action: Action,
    pub(crate) time: u64,
    pub(crate) device: u32,
    pub(crate) process: u32,
    pub(crate) operation: Operation,
    pub(crate) start: u64,
    pub(crate) sectors: u64,
    pub(crate) place: u64,
}

/// Event awaited by a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AwaitedEvent {
    Issue,
    Complete,
}
