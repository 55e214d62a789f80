//! The owner of a queue: a process, or everybody.

use crate::block::Queued;
use fullstroke_contract::PriorityClass;

/// Whose requests a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// The synchronous ones of a process, with one class and level.
    Process(u32, PriorityClass, u8),
    /// The asynchronous ones of everybody, with one class and level.
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
        // The idle class knows no levels.
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

    /// Its class and level.
    pub(super) fn priority(self) -> (PriorityClass, u8) {
        match self {
            Owner::Process(_, class, level) | Owner::Everybody(class, level) => (class, level),
        }
    }
}
