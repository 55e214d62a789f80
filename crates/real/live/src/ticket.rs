//! A client's request while it is on its way, and how it ends.

use fullstroke_contract::{Extent, Hints, Operation, Request};
use fullstroke_nbd::{Command, CommandFlags, ErrorCode};
use fullstroke_store::bytes::StoreError;
use fullstroke_units::{SECTOR_BYTES, Time};

/// Whom an answer belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientId {
    /// The place of its connection.
    pub(crate) place: u32,
    /// How many connections had this place before.
    pub(crate) generation: u32,
    /// Its number among all clients, from 1.
    pub(crate) number: u32,
}

/// A client's request that is on its way.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) client: ClientId,
    pub(crate) request: fullstroke_nbd::Request,
    /// What a write brings; empty for all others.
    pub(crate) payload: Vec<u8>,
    /// When it arrived in the world.
    pub(crate) arrived: Time,
    /// How far it is, if it is carried out in parts.
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

    /// How it ends if all went well.
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

/// How a request ended on the bytes.
#[derive(Debug)]
pub(crate) enum Carried {
    /// Read into the buffer, written, or nothing to do.
    Done,
    /// Done once what was written before is durable.
    DoneWhenDurable,
    /// The data is lost: more members have failed than the layout covers.
    Lost,
    /// The host's storage failed.
    Failed(StoreError),
}

impl Carried {
    /// How something on the bytes went.
    pub(crate) fn of(done: Result<(), StoreError>) -> Carried {
        match done {
            Ok(()) => Carried::Done,
            Err(StoreError::Lost { .. }) => Carried::Lost,
            Err(error) => Carried::Failed(error),
        }
    }

    /// The error that the client is told, with a text for people.
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

/// How far a request is that is carried out in parts.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) stage: Stage,
    pub(crate) under_way: u32,
    /// What went wrong with a part.
    pub(crate) failure: Option<Carried>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Sectors of which only a part is written are being read.
    Edges,
    /// What remains is one request.
    Last,
    /// Zeroes are being written, up to this byte so far.
    Zeroing { next_bytes: u64 },
}

impl Ticket {
    /// Up to which byte zeroes have been asked for, if it writes them in parts.
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

    /// What went wrong, if something did; and whether the bytes were changed
    /// part by part already.
    pub(crate) fn outcome(&mut self) -> (Option<Carried>, bool) {
        (
            self.failure.take(),
            matches!(self.stage, Stage::Zeroing { .. }),
        )
    }
}

/// The sectors that a client's request touches.
pub(crate) fn extent(request: &fullstroke_nbd::Request) -> Extent {
    around(request.offset_bytes, request.length_bytes.into())
}

/// A client's request, as the layers see it. Zeroes that need not be allocated
/// are a discard (a disk deallocates), those that must be are a write.
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

/// The sectors that bytes touch.
pub(crate) fn around(offset: u64, length: u64) -> Extent {
    let first = offset / SECTOR_BYTES;
    Extent::new(first, (offset + length).div_ceil(SECTOR_BYTES) - first)
}

/// Whether a request does not begin and end on sectors.
pub(crate) fn is_unaligned(request: &fullstroke_nbd::Request) -> bool {
    !(request.offset_bytes | u64::from(request.length_bytes)).is_multiple_of(SECTOR_BYTES)
}
