//! The owner of a queue: one process, or all processes.

use crate::block::Queued;
use fullstroke_contract::PriorityClass;

/// Owner of the requests in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// The synchronous requests of a process, with one class and level.
    Process(u32, PriorityClass, u8),
    /// The asynchronous requests of all processes, with one class and level.
    Everybody(PriorityClass, u8),
}

impl Owner {
    pub(super) fn of(request: &Queued) -> Owner {
        let Queued {
            process,
            class,
            level,
            ..
        } = *request;
        // The idle class has no levels.
        let level = if class == PriorityClass::Idle {
            7
        } else {
            level.min(7)
        };
        if request.synchronous {
            Owner::Process(process, class, level)
        } else {
            Owner::Everybody(class, level)
        }
    }

    /// Returns the class and the level.
    pub(super) fn priority(self) -> (PriorityClass, u8) {
        match self {
            Owner::Process(_, class, level) | Owner::Everybody(class, level) => (class, level),
        }
    }
}
