//! I/Os of the controller to the array.

use crate::block::NONE;
use fullstroke_contract::{Extent, Hints, Operation, Request, RequestId};

/// An I/O, waiting or in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControllerIo {
    pub(crate) purpose: IoPurpose,
    /// Request of the I/O; the id is set at the issue.
    pub(crate) request: Request,
    /// First command in the wait list for the fetched data.
    pub(crate) waiters: u32,
}

/// Purpose of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IoPurpose {
    /// Fetch the data of a command into memory.
    Fetch {
        /// Slot of the command.
        command: u32,
    },
    /// Read ahead for a sequential reader.
    Ahead,
    /// Pass a command through to the array.
    Through {
        /// Slot of the command.
        command: u32,
    },
    /// Write dirty data to the array.
    Destage,
}

impl ControllerIo {
    /// Creates an I/O for a command. The command may cover more than `extent`.
    pub(crate) fn of_command(purpose: IoPurpose, request: Request, extent: Extent) -> ControllerIo {
        ControllerIo {
            purpose,
            request: Request {
                id: RequestId::default(),
                extent,
                ..request
            },
            waiters: NONE,
        }
    }

    /// Creates an I/O of the controller's own.
    pub(crate) fn own(purpose: IoPurpose, operation: Operation, extent: Extent) -> ControllerIo {
        // Nobody waits for the controller's own I/O. Layers below may prefer synchronous requests.
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
        ControllerIo {
            purpose,
            request,
            waiters: NONE,
        }
    }
}
