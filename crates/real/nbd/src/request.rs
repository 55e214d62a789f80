//! Requests of a client, and the errors of their answers.

use crate::wire::command;
use bitflags::bitflags;

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestCommand {
    /// `NBD_CMD_READ`.
    Read,
    /// `NBD_CMD_WRITE`; the payload comes with the request.
    Write,
    /// `NBD_CMD_FLUSH`: all writes answered before become durable.
    Flush,
    /// `NBD_CMD_TRIM`: the contents are no longer needed.
    Trim,
    /// `NBD_CMD_CACHE`: the range will be read soon.
    Cache,
    /// `NBD_CMD_WRITE_ZEROES`.
    WriteZeroes,
    /// `NBD_CMD_BLOCK_STATUS`: asks for the allocated parts of a range.
    BlockStatus,
}

impl RequestCommand {
    /// Returns the command of a number; `None` if the number is unknown or ends the session.
    pub(crate) fn from_wire(number: u16) -> Option<RequestCommand> {
        Some(match number {
            command::READ => RequestCommand::Read,
            command::WRITE => RequestCommand::Write,
            command::FLUSH => RequestCommand::Flush,
            command::TRIM => RequestCommand::Trim,
            command::CACHE => RequestCommand::Cache,
            command::WRITE_ZEROES => RequestCommand::WriteZeroes,
            command::BLOCK_STATUS => RequestCommand::BlockStatus,
            _ => return None,
        })
    }

    pub(crate) fn to_wire(self) -> u16 {
        match self {
            RequestCommand::Read => command::READ,
            RequestCommand::Write => command::WRITE,
            RequestCommand::Flush => command::FLUSH,
            RequestCommand::Trim => command::TRIM,
            RequestCommand::Cache => command::CACHE,
            RequestCommand::WriteZeroes => command::WRITE_ZEROES,
            RequestCommand::BlockStatus => command::BLOCK_STATUS,
        }
    }

    /// Returns true if the command changes data of the export.
    pub fn changes(self) -> bool {
        matches!(
            self,
            RequestCommand::Write | RequestCommand::Trim | RequestCommand::WriteZeroes
        )
    }

    /// Returns true if the data of the range are sent with the request or with its answer.
    pub fn carries_data(self) -> bool {
        matches!(self, RequestCommand::Read | RequestCommand::Write)
    }
}

bitflags! {
    /// Flags of a request; see "Command flags" in the protocol.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct CommandFlags: u16 {
        /// Forced unit access: answer when the written data are durable.
        const FORCE_UNIT_ACCESS = 1 << 0;
        /// Zeroes must be allocated.
        const NO_HOLE = 1 << 1;
        /// The data of a read come in one chunk. [`Connection`](crate::Connection) ensures this.
        const DO_NOT_FRAGMENT = 1 << 2;
        /// The status has only one extent. [`Connection`](crate::Connection) ensures this.
        const ONE_EXTENT = 1 << 3;
        /// Zero faster than by writing, or answer [`ErrorCode::NotSupported`].
        const FAST_ZERO = 1 << 4;
    }
}

/// A valid request: within the export, aligned to its blocks unless the export takes unaligned
/// requests, with a command and flags that the export offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NbdRequest {
    /// Identifier chosen by the client, repeated in the answer.
    pub cookie: u64,
    /// Operation.
    pub command: RequestCommand,
    /// Offset from the beginning of the export; 0 for a flush.
    pub offset_bytes: u64,
    /// Length in bytes: 0 for a flush, more than 0 for all others.
    pub length_bytes: u32,
    /// Flags.
    pub flags: CommandFlags,
}

impl NbdRequest {
    /// Returns the number of bytes sent with the request or with its answer.
    pub fn payload_bytes(&self) -> u64 {
        if self.command.carries_data() {
            self.length_bytes.into()
        } else {
            0
        }
    }
}

/// Error codes of the protocol ("Error values").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    /// `NBD_EPERM`: a write to a read-only export.
    NotPermitted,
    /// `NBD_EIO`: the medium failed.
    InputOutput,
    /// `NBD_ENOMEM`.
    OutOfMemory,
    /// `NBD_EINVAL`: the request is invalid.
    Invalid,
    /// `NBD_ENOSPC`: a write beyond the end, or no room is left.
    NoSpace,
    /// `NBD_EOVERFLOW`: too long for one chunk.
    TooLong,
    /// `NBD_ENOTSUP`: zeroing is no faster than writing.
    NotSupported,
    /// `NBD_ESHUTDOWN`: the server is shutting down.
    ShuttingDown,
}

impl ErrorCode {
    /// Returns the number on the wire.
    pub fn to_wire(self) -> u32 {
        match self {
            ErrorCode::NotPermitted => 1,
            ErrorCode::InputOutput => 5,
            ErrorCode::OutOfMemory => 12,
            ErrorCode::Invalid => 22,
            ErrorCode::NoSpace => 28,
            ErrorCode::TooLong => 75,
            ErrorCode::NotSupported => 95,
            ErrorCode::ShuttingDown => 108,
        }
    }

    /// Returns the error of a number. A client treats unknown numbers as
    /// [`Invalid`](ErrorCode::Invalid), as the protocol requires.
    pub fn from_wire(number: u32) -> ErrorCode {
        match number {
            1 => ErrorCode::NotPermitted,
            5 => ErrorCode::InputOutput,
            12 => ErrorCode::OutOfMemory,
            28 => ErrorCode::NoSpace,
            75 => ErrorCode::TooLong,
            95 => ErrorCode::NotSupported,
            108 => ErrorCode::ShuttingDown,
            _ => ErrorCode::Invalid,
        }
    }
}

bitflags! {
    /// State of an extent in `base:allocation`; no flag = the extent holds data.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Allocation: u32 {
        /// Not allocated.
        const HOLE = 1 << 0;
        /// Reads as zeroes.
        const ZERO = 1 << 1;
    }
}

/// Status of consecutive bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusExtent {
    /// Length of the extent in bytes.
    pub length_bytes: u32,
    /// State of the extent.
    pub state: Allocation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_commands_and_errors_read_back_as_they_were_written() {
        for number in 0..16 {
            if let Some(command) = RequestCommand::from_wire(number) {
                assert_eq!(command.to_wire(), number);
            }
        }
        for number in [1, 5, 12, 22, 28, 75, 95, 108] {
            assert_eq!(ErrorCode::from_wire(number).to_wire(), number);
        }
        assert_eq!(ErrorCode::from_wire(4711), ErrorCode::Invalid);
    }
}
