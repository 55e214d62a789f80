//! What a client asks for, and the errors that it may be answered with.

use crate::wire::command;
use bitflags::bitflags;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// `NBD_CMD_READ`.
    Read,
    /// `NBD_CMD_WRITE`; the payload comes with the request.
    Write,
    /// `NBD_CMD_FLUSH`: every write that was answered before is made durable.
    Flush,
    /// `NBD_CMD_TRIM`: the contents are no longer needed.
    Trim,
    /// `NBD_CMD_CACHE`: the range will be read soon.
    Cache,
    /// `NBD_CMD_WRITE_ZEROES`.
    WriteZeroes,
    /// `NBD_CMD_BLOCK_STATUS`: which parts are allocated.
    BlockStatus,
}

impl Command {
    /// The command of a number, unless it is unknown or ends the session.
    pub(crate) fn from_wire(number: u16) -> Option<Command> {
        Some(match number {
            command::READ => Command::Read,
            command::WRITE => Command::Write,
            command::FLUSH => Command::Flush,
            command::TRIM => Command::Trim,
            command::CACHE => Command::Cache,
            command::WRITE_ZEROES => Command::WriteZeroes,
            command::BLOCK_STATUS => Command::BlockStatus,
            _ => return None,
        })
    }

    pub(crate) fn to_wire(self) -> u16 {
        match self {
            Command::Read => command::READ,
            Command::Write => command::WRITE,
            Command::Flush => command::FLUSH,
            Command::Trim => command::TRIM,
            Command::Cache => command::CACHE,
            Command::WriteZeroes => command::WRITE_ZEROES,
            Command::BlockStatus => command::BLOCK_STATUS,
        }
    }

    /// Whether it changes what the export holds.
    pub fn changes(self) -> bool {
        matches!(self, Command::Write | Command::Trim | Command::WriteZeroes)
    }

    /// Whether as many bytes as its length travel with it or with its answer.
    pub fn carries_data(self) -> bool {
        matches!(self, Command::Read | Command::Write)
    }
}

bitflags! {
    /// How a request wants to be carried out; see "Command flags" in the protocol.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct CommandFlags: u16 {
        /// Answer when what was written is durable.
        const FORCE_UNIT_ACCESS = 1 << 0;
        /// Zeroes are to be allocated.
        const NO_HOLE = 1 << 1;
        /// The data of a read in one chunk. [`Connection`](crate::Connection)
        /// sees to it.
        const DO_NOT_FRAGMENT = 1 << 2;
        /// One extent of status is enough. [`Connection`](crate::Connection)
        /// sees to it.
        const ONE_EXTENT = 1 << 3;
        /// Zero faster than by writing, or answer [`ErrorCode::NotSupported`].
        const FAST_ZERO = 1 << 4;
    }
}

/// A request that was found to be valid: it lies within the export and, unless
/// the export takes others, on its blocks, and neither command nor flags are beyond what the export offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's name for it, which its answer carries.
    pub cookie: u64,
    /// What to do.
    pub command: Command,
    /// Where, from the beginning of the export; 0 for a flush.
    pub offset_bytes: u64,
    /// How much: 0 for a flush, more than 0 for all others.
    pub length_bytes: u32,
    /// How.
    pub flags: CommandFlags,
}

impl Request {
    /// How many bytes travel with it or with its answer.
    pub fn payload_bytes(&self) -> u64 {
        if self.command.carries_data() {
            self.length_bytes.into()
        } else {
            0
        }
    }
}

/// The errors that the protocol knows ("Error values").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorCode {
    /// `NBD_EPERM`: a write to what can only be read.
    NotPermitted,
    /// `NBD_EIO`: the medium failed.
    InputOutput,
    /// `NBD_ENOMEM`.
    OutOfMemory,
    /// `NBD_EINVAL`: the request makes no sense.
    Invalid,
    /// `NBD_ENOSPC`: a write beyond the end, or no room is left.
    NoSpace,
    /// `NBD_EOVERFLOW`: too long to be read in one chunk.
    TooLong,
    /// `NBD_ENOTSUP`: zeroing is no faster than writing.
    NotSupported,
    /// `NBD_ESHUTDOWN`: the server ends.
    ShuttingDown,
}

impl ErrorCode {
    /// The number on the wire.
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

    /// The error of a number. A client takes what it does not know for
    /// [`Invalid`](ErrorCode::Invalid), as the protocol asks.
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
    /// What `base:allocation` says of an extent; nothing = it holds data.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct Allocation: u32 {
        /// Not allocated.
        const HOLE = 1 << 0;
        /// Reads as zeroes.
        const ZERO = 1 << 1;
    }
}

/// The status of so many consecutive bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusExtent {
    /// Length of the extent.
    pub length_bytes: u32,
    /// Its state.
    pub state: Allocation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_commands_and_errors_read_back_as_they_were_written() {
        for number in 0..16 {
            if let Some(command) = Command::from_wire(number) {
                assert_eq!(command.to_wire(), number);
            }
        }
        for number in [1, 5, 12, 22, 28, 75, 95, 108] {
            assert_eq!(ErrorCode::from_wire(number).to_wire(), number);
        }
        assert_eq!(ErrorCode::from_wire(4711), ErrorCode::Invalid);
    }
}
