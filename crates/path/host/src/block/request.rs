//! A request as the block layer holds it.

use crate::direction::Direction;
use fullstroke_contract::{Extent, Operation, PriorityClass, Slots};
use fullstroke_units::Time;

/// A request in the elevator or in flight. Consists of one submitted request, or of several merged
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Addresses of the request.
    pub extent: Extent,
    /// Read, write or discard.
    pub operation: Operation,
    /// Process that submitted the first part; 0 if unknown.
    pub process: u32,
    /// Class of the I/O priority.
    pub class: PriorityClass,
    /// Level within the class, 0 (first) to 7.
    pub level: u8,
    /// True if a process waits for the completion: for every read, and for synchronous writes.
    pub synchronous: bool,
    /// True if the data must be on the medium at completion (FUA).
    pub force_unit_access: bool,
    /// Queue length of the array member that bounds the request of the first part; 0 if unknown
    /// ([`Hints::stripe_queue`](fullstroke_contract::Hints)).
    pub stripe_queue: u32,
    /// Time when the first part entered the elevator.
    pub queued: Time,
    /// Time of the dispatch to the device; has no meaning before.
    pub dispatched: Time,
    /// Number of the request among the shared requests of the layer.
    pub(crate) tag: u32,
    /// First and last part of the chain of parts.
    pub(crate) parts: (u32, u32),
}

/// All requests of the layer, by slot.
pub type Requests = Slots<Queued>;

/// The ways in which one request joins another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// The new request begins where the other ends.
    Back,
    /// The new request ends where the other begins.
    Front,
    /// Both requests waited already. A join to one of them made the two neighbours.
    Coalesce,
}

impl Default for Queued {
    /// A best-effort read of no sectors.
    fn default() -> Queued {
        Queued {
            extent: Extent::default(),
            operation: Operation::Read,
            process: 0,
            class: PriorityClass::BestEffort,
            level: 4,
            synchronous: true,
            force_unit_access: false,
            stripe_queue: 0,
            queued: Time::ZERO,
            dispatched: Time::NEVER,
            tag: 0,
            parts: (0, 0),
        }
    }
}

impl Queued {
    /// Returns the direction of the request.
    pub fn direction(&self) -> Direction {
        Direction::of_writes(self.writes())
    }

    /// True if write-back throttling counts the request: for asynchronous writes and discards. A
    /// flush and a direct write are not counted (`wbt_should_throttle` of `block/blk-wbt.c`).
    pub(crate) fn is_throttled(&self) -> bool {
        match self.operation {
            Operation::Discard => true,
            Operation::Write => !self.synchronous,
            _ => false,
        }
    }

    /// True for a write or discard.
    pub fn writes(&self) -> bool {
        self.operation != Operation::Read
    }
}
