//! A client's request in flight, and its end.

use fullstroke_contract::{Extent, Hints, Operation, Request};
use fullstroke_nbd::{Command, CommandFlags, ErrorCode};
use fullstroke_store::bytes::StoreError;
use fullstroke_units::{SECTOR_BYTES, Time};

/// Identity of the client for an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientId {
    /// Place of the connection.
    pub(crate) place: u32,
    /// Number of earlier connections in this place.
    pub(crate) generation: u32,
    /// Number among all clients, from 1.
    pub(crate) number: u32,
}

/// A client's request in flight.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) client: ClientId,
    pub(crate) request: fullstroke_nbd::Request,
    /// Data of a write; empty for all other requests.
    pub(crate) payload: Vec<u8>,
    /// World's time of the arrival.
    pub(crate) arrived: Time,
    /// Progress, if the request is carried out in parts.
    pub(crate) parts: Option<Box<Parts>>,
}

impl Ticket {
    pub(crate) fn new(
        client: ClientId,
        request: fullstroke_nbd::Request,
        payload: Vec<u8>,
    ) -> Ticket {
        Ticket {
            client,
            request,
            payload,
            arrived: Time::ZERO,
            parts: None,
        }
    }

    /// Returns the outcome if all went well.
    pub(crate) fn done(&self) -> Carried {
        let forced = self.request.flags.contains(CommandFlags::FORCE_UNIT_ACCESS);
        let durable =
            self.request.command == Command::Flush || (self.request.command.changes() && forced);
        if durable {
            Carried::DoneWhenDurable
        } else {
            Carried::Done
        }
    }
}

/// Outcome of a request on the data.
#[derive(Debug)]
pub(crate) enum Carried {
    /// Data read into the buffer or written, or nothing to do.
    Done,
    /// Done as soon as all earlier writes are durable.
    DoneWhenDurable,
    /// The data are lost: more members have failed than the layout covers.
    Lost,
    /// The host's storage failed.
    Failed(StoreError),
}

impl Carried {
    /// Returns the outcome of an operation on the data.
    pub(crate) fn of(done: Result<(), StoreError>) -> Carried {
        match done {
            Ok(()) => Carried::Done,
            Err(StoreError::Lost { .. }) => Carried::Lost,
            Err(error) => Carried::Failed(error),
        }
    }

    /// Returns the error for the client, with a text for people.
    pub(crate) fn failure(&self) -> Option<(ErrorCode, String)> {
        match self {
            Carried::Done | Carried::DoneWhenDurable => None,
            Carried::Lost => Some((
                ErrorCode::InputOutput,
                "the data was lost with failed drives".into(),
            )),
            Carried::Failed(error) if error.is_out_of_space() => {
                Some((ErrorCode::NoSpace, error.to_string()))
            }
            Carried::Failed(error) => Some((ErrorCode::InputOutput, error.to_string())),
        }
    }
}

/// Progress of a request carried out in parts.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) stage: Stage,
    pub(crate) under_way: u32,
    /// Error of a part.
    pub(crate) failure: Option<Carried>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Partly written sectors are being read.
    Edges,
    /// The rest is one request.
    Last,
    /// Zeroes are being written, up to this byte so far.
    Zeroing { next_bytes: u64 },
}

impl Ticket {
    /// Returns the byte up to which zeroes were issued, if the request writes zeroes in parts.
    pub(crate) fn zeroed_to(&self) -> Option<u64> {
        match self.parts.as_ref()?.stage {
            Stage::Zeroing { next_bytes } => Some(next_bytes),
            Stage::Edges | Stage::Last => None,
        }
    }
}

impl Parts {
    pub(crate) fn new(stage: Stage, under_way: u32) -> Parts {
        Parts {
            stage,
            under_way,
            failure: None,
        }
    }

    /// Returns the error, if any; and true if the data were already changed part by part.
    pub(crate) fn outcome(&mut self) -> (Option<Carried>, bool) {
        (
            self.failure.take(),
            matches!(self.stage, Stage::Zeroing { .. }),
        )
    }
}

/// Returns the sectors touched by a client's request.
pub(crate) fn extent(request: &fullstroke_nbd::Request) -> Extent {
    around(request.offset_bytes, request.length_bytes.into())
}

/// Returns a client's request in the form of the layers. Zeroes that need not be allocated are a
/// discard, because a disk deallocates. Zeroes that must be allocated are a write.
pub(crate) fn timed(request: &fullstroke_nbd::Request) -> Request {
    let operation = match request.command {
        Command::Read | Command::Cache | Command::BlockStatus => Operation::Read,
        Command::Write => Operation::Write,
        Command::WriteZeroes if request.flags.contains(CommandFlags::NO_HOLE) => Operation::Write,
        Command::WriteZeroes | Command::Trim => Operation::Discard,
        Command::Flush => Operation::Flush,
    };
    let force_unit_access =
        operation == Operation::Write && request.flags.contains(CommandFlags::FORCE_UNIT_ACCESS);
    Request {
        operation,
        extent: extent(request),
        hints: Hints {
            force_unit_access,
            ..Hints::default()
        },
        ..Request::default()
    }
}

/// Returns the sectors touched by a range of bytes.
pub(crate) fn around(offset: u64, length: u64) -> Extent {
    let first = offset / SECTOR_BYTES;
    Extent::new(first, (offset + length).div_ceil(SECTOR_BYTES) - first)
}

/// Returns true if a request does not begin and end at sectors.
pub(crate) fn is_unaligned(request: &fullstroke_nbd::Request) -> bool {
    !(request.offset_bytes | u64::from(request.length_bytes)).is_multiple_of(SECTOR_BYTES)
}
