//! Checks if a request may be carried out.

use crate::export::{Export, Features};
use crate::request::{CommandFlags, ErrorCode, NbdRequest, RequestCommand};
use crate::session::Session;
use crate::wire;
use std::fmt;

/// A request as on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) magic: u32,
    pub(crate) flags: u16,
    pub(crate) command: u16,
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

impl Header {
    pub(crate) fn parse(bytes: &[u8; wire::REQUEST_BYTES]) -> Header {
        let [m0, m1, m2, m3, f0, f1, c0, c1, rest @ ..] = *bytes;
        let [
            k0,
            k1,
            k2,
            k3,
            k4,
            k5,
            k6,
            k7,
            o0,
            o1,
            o2,
            o3,
            o4,
            o5,
            o6,
            o7,
            l0,
            l1,
            l2,
            l3,
        ] = rest;
        Header {
            magic: u32::from_be_bytes([m0, m1, m2, m3]),
            flags: u16::from_be_bytes([f0, f1]),
            command: u16::from_be_bytes([c0, c1]),
            cookie: u64::from_be_bytes([k0, k1, k2, k3, k4, k5, k6, k7]),
            offset: u64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
            length: u32::from_be_bytes([l0, l1, l2, l3]),
        }
    }

    /// Returns the request, if the export offers the operation.
    pub(crate) fn check(&self, export: &Export, session: Session) -> Result<NbdRequest, Refusal> {
        let command =
            RequestCommand::from_wire(self.command).ok_or(Refusal::UnknownCommand(self.command))?;
        // Before the offer is checked: a read-only export offers no changes, and the protocol wants
        // EPERM for them rather than EINVAL ("Error values").
        if command.changes() && export.features.contains(Features::READ_ONLY) {
            return Err(Refusal::ReadOnly);
        }
        if !offers(export, session, command) {
            return Err(Refusal::NotOffered(command));
        }
        let flags = self.check_flags(command, export, session)?;
        if command == RequestCommand::Flush {
            self.check_flush()?;
        } else {
            self.check_range(command, export)?;
        }
        Ok(NbdRequest {
            cookie: self.cookie,
            command,
            offset_bytes: self.offset,
            length_bytes: self.length,
            flags,
        })
    }

    fn check_flags(
        &self,
        command: RequestCommand,
        export: &Export,
        session: Session,
    ) -> Result<CommandFlags, Refusal> {
        if self.flags == 0 {
            return Ok(CommandFlags::empty());
        }
        let flags = CommandFlags::from_bits_retain(self.flags);
        let excess = flags - allowed(command, export, session);
        if excess.is_empty() {
            Ok(flags)
        } else {
            Err(Refusal::Flags {
                command,
                excess: excess.bits(),
            })
        }
    }

    fn check_flush(&self) -> Result<(), Refusal> {
        if self.offset == 0 && self.length == 0 {
            Ok(())
        } else {
            Err(Refusal::FlushOfRange)
        }
    }

    fn check_range(&self, command: RequestCommand, export: &Export) -> Result<(), Refusal> {
        let (offset, length) = (self.offset, self.length);
        if command.carries_data() && length > export.payload_bytes_max {
            return Err(Refusal::TooLong {
                length,
                limit: export.payload_bytes_max,
            });
        }
        // Offset and length come from the client, and their sum may exceed 64 bits.
        let beyond = offset
            .checked_add(length.into())
            .is_none_or(|end| end > export.size_bytes);
        if beyond {
            return Err(Refusal::Beyond {
                command,
                offset,
                length,
                size: export.size_bytes,
            });
        }
        // `block_bytes_min` is a power of two.
        // A bit below the block size in either number is a misfit. One test covers both.
        let misfit = u64::from(export.block_bytes_min) - 1;
        if !export.takes_unaligned && (offset | u64::from(length)) & misfit != 0 {
            return Err(Refusal::Unaligned {
                offset,
                length,
                block: export.block_bytes_min,
            });
        }
        // The protocol requires a length above 0 here. Other requests of no bytes are answered with
        // success.
        if length == 0 && command == RequestCommand::BlockStatus {
            return Err(Refusal::StatusOfNothing);
        }
        Ok(())
    }
}

fn offers(export: &Export, session: Session, command: RequestCommand) -> bool {
    match command {
        RequestCommand::Read | RequestCommand::Write => true,
        // A client may send only what was offered. A server that did more than it offers would hide
        // errors of clients.
        RequestCommand::Flush => export.offers(Features::FLUSH),
        RequestCommand::Trim => export.offers(Features::TRIM),
        RequestCommand::Cache => export.offers(Features::CACHE),
        RequestCommand::WriteZeroes => export.offers(Features::WRITE_ZEROES),
        RequestCommand::BlockStatus => session.status,
    }
}

/// Returns the flags that a command may have. Forced unit access is valid with all commands, where
/// offered.
fn allowed(command: RequestCommand, export: &Export, session: Session) -> CommandFlags {
    let mut allowed = match command {
        RequestCommand::Read if session.structured => CommandFlags::DO_NOT_FRAGMENT,
        RequestCommand::WriteZeroes if export.offers(Features::FAST_ZERO) => {
            CommandFlags::NO_HOLE | CommandFlags::FAST_ZERO
        }
        RequestCommand::WriteZeroes => CommandFlags::NO_HOLE,
        RequestCommand::BlockStatus => CommandFlags::ONE_EXTENT,
        _ => CommandFlags::empty(),
    };
    allowed.set(
        CommandFlags::FORCE_UNIT_ACCESS,
        export.offers(Features::FORCE_UNIT_ACCESS),
    );
    allowed
}

/// Reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    UnknownCommand(u16),
    NotOffered(RequestCommand),
    ReadOnly,
    Flags {
        command: RequestCommand,
        excess: u16,
    },
    FlushOfRange,
    TooLong {
        length: u32,
        limit: u32,
    },
    Beyond {
        command: RequestCommand,
        offset: u64,
        length: u32,
        size: u64,
    },
    Unaligned {
        offset: u64,
        length: u32,
        block: u32,
    },
    StatusOfNothing,
}

impl Refusal {
    /// Returns the error code required by the protocol ("Error values").
    pub(crate) fn code(self) -> ErrorCode {
        match self {
            Refusal::ReadOnly => ErrorCode::NotPermitted,
            // ENOSPC is the protocol's code for writes beyond the end; other commands beyond the
            // end get EINVAL.
            Refusal::Beyond {
                command: RequestCommand::Write | RequestCommand::WriteZeroes,
                ..
            } => ErrorCode::NoSpace,
            _ => ErrorCode::Invalid,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Refusal::UnknownCommand(number) => {
                write!(out, "command: found {number}, which is not known here")
            }
            Refusal::NotOffered(command) => {
                write!(out, "command: found {command:?}, which was not offered")
            }
            Refusal::ReadOnly => write!(out, "the export can only be read"),
            Refusal::Flags { command, excess } => {
                write!(
                    out,
                    "flags: found {excess:#x}, which {command:?} does not have here"
                )
            }
            Refusal::FlushOfRange => write!(out, "flush: expected offset 0 and length 0"),
            Refusal::TooLong { length, limit } => {
                write!(
                    out,
                    "length: found {length}; expected at most {limit}; split the request"
                )
            }
            Refusal::Beyond {
                offset,
                length,
                size,
                ..
            } => {
                write!(
                    out,
                    "offset: found {length} bytes at {offset}; the export ends at {size}"
                )
            }
            Refusal::Unaligned {
                offset,
                length,
                block,
            } => {
                write!(
                    out,
                    "offset: found {length} bytes at {offset}; expected multiples of {block}"
                )
            }
            Refusal::StatusOfNothing => write!(out, "length: found 0; expected at least one block"),
        }
    }
}
