//! A request as the block layer holds it.

use crate::direction::Direction;
use fullstroke_contract::{Extent, Operation, PriorityClass, Slots};
use fullstroke_units::Time;

/// A request that waits in the elevator or is with the device: one or more of
/// those that were submitted, joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// Where.
    pub extent: Extent,
    /// What to do: read, write or discard.
    pub operation: Operation,
    /// The process that submitted its first part; 0 = unknown.
    pub process: u32,
    /// The class of its I/O priority.
    pub class: PriorityClass,
    /// The level within the class, 0 (first) to 7.
    pub level: u8,
    /// Whether somebody waits for it: true of every read, and of writes that
    /// are synchronous.
    pub synchronous: bool,
    /// Whether it must be on the medium when it completes.
    pub force_unit_access: bool,
    /// How long the queue is that bounds the request of which its first part is
    /// one; 0 = unknown ([`Hints::stripe_queue`](fullstroke_contract::Hints)).
    pub stripe_queue: u32,
    /// When its first part was given to the elevator.
    pub queued: Time,
    /// When it was given to the device; meaningless before.
    pub dispatched: Time,
    /// The first and last of its parts.
    pub(crate) parts: (u32, u32),
}

/// All of them, by slot.
pub type Requests = Slots<Queued>;

/// How a request becomes part of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// It begins where the other ends.
    Back,
    /// It ends where the other begins.
    Front,
    /// Both waited already, and have become neighbours because something joined
    /// one of them.
    Coalesce,
}

impl Default for Queued {
    /// A best-effort read of nothing.
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
            parts: (0, 0),
        }
    }
}

impl Queued {
    /// The direction in which it counts.
    pub fn direction(&self) -> Direction {
        Direction::of_writes(self.writes())
    }

    /// Whether it writes or discards.
    pub fn writes(&self) -> bool {
        self.operation != Operation::Read
    }
}
