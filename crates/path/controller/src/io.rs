//! What the controller asks of the array.

use crate::block::NONE;
use fullstroke_contract::{Extent, Hints, Operation, Request, RequestId};

/// An I/O that waits for the array, or is on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    pub(crate) purpose: Purpose,
    /// What is asked, but for the id.
    pub(crate) request: Request,
    /// The first command that waits for what it fetches.
    pub(crate) waiters: u32,
}

/// Why the array is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A command's data are fetched into memory.
    Fetch {
        /// The command's slot.
        command: u32,
    },
    /// A sequential reader's next data are fetched.
    Ahead,
    /// A command is handed through.
    Through {
        /// The command's slot.
        command: u32,
    },
    /// Dirty data leave memory.
    Destage,
}

impl Io {
    /// For a command, which may ask for more than `extent`.
    pub(crate) fn of_command(purpose: Purpose, request: Request, extent: Extent) -> Io {
        Io {
            purpose,
            request: Request {
                id: RequestId::default(),
                extent,
                ..request
            },
            waiters: NONE,
        }
    }

    /// On the controller's own account.
    pub(crate) fn own(purpose: Purpose, operation: Operation, extent: Extent) -> Io {
        let hints = Hints {
            synchronous: false,
            ..Hints::default()
        };
        let request = Request {
            origin: Request::BACKGROUND,
            operation,
            extent,
            hints,
            ..Request::default()
        };
        Io {
            purpose,
            request,
            waiters: NONE,
        }
    }
}
