//! A request as issued.

use crate::memory::PIECE_BYTES;
use fullstroke_contract::Operation;
use fullstroke_trace::TraceRecord;

/// Kind of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Read,
    Write,
    Flush,
    Discard,
}

impl Action {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::Write => "write",
            Action::Flush => "flush",
            Action::Discard => "discard",
        }
    }

    /// Returns the operation for logs.
    pub(crate) fn operation(self) -> Operation {
        match self {
            Action::Read => Operation::Read,
            Action::Write => Operation::Write,
            Action::Flush => Operation::Flush,
            Action::Discard => Operation::Discard,
        }
    }
}

/// One request as issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IssuedCommand {
    pub(crate) action: Action,
    /// First byte; aligned.
    pub(crate) start: u64,
    /// Length in bytes; 0 for a flush.
    pub(crate) bytes: u64,
    pub(crate) record: TraceRecord,
}

impl IssuedCommand {
    /// Returns the pieces of the command: first byte and length of each.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let IssuedCommand { start, bytes, .. } = *self;
        let most = if matches!(self.action, Action::Read | Action::Write) {
            PIECE_BYTES
        } else {
            u64::MAX
        };
        (0..bytes.div_ceil(most).max(1)).map(move |piece| {
            let skip = piece * most;
            (start + skip, (bytes - skip).min(most))
        })
    }

    /// Returns the error of a piece of `bytes` with this result; 0 if there is none.
    pub(crate) fn error_of(&self, bytes: u64, result: i32) -> i32 {
        let moves = matches!(self.action, Action::Read | Action::Write);
        match result {
            ..0 => -result,
            // The call moved fewer bytes, so the device has become smaller.
            _ if moves && (result as u64) < bytes => libc::ENODATA,
            _ => 0,
        }
    }

    /// Returns true if the command touches more than the request of the trace, because of the
    /// alignment.
    pub(crate) fn is_widened(&self) -> bool {
        self.bytes > self.record.extent.sectors.bytes().0
    }
}
