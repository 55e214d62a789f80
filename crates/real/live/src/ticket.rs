//! A client's request in flight, and its end.

use fullstroke_contract::{Extent, Hints, Operation, Request};
use fullstroke_nbd::{CommandFlags, ErrorCode, RequestCommand};
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
    pub(crate) request: fullstroke_nbd::NbdRequest,
    /// Data of a write; empty for all other requests.
    pub(crate) payload: Vec<u8>,
    /// World's time of the arrival.
    pub(crate) arrived: Time,
    /// Progress, if the request is carried out in parts.
    pub(crate) parts: Option<Box<TicketParts>>,
}

impl Ticket {
    pub(crate) fn new(
        client: ClientId,
        request: fullstroke_nbd::NbdRequest,
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
    pub(crate) fn done(&self) -> RequestOutcome {
        let forced = self.request.flags.contains(CommandFlags::FORCE_UNIT_ACCESS);
        let durable = self.request.command == RequestCommand::Flush
            || (self.request.command.changes() && forced);
        if durable {
            RequestOutcome::DoneWhenDurable
        } else {
            RequestOutcome::Done
        }
    }
}

/// Outcome of a request on the data.
#[derive(Debug)]
pub(crate) enum RequestOutcome {
    /// Data read into the buffer or written, or nothing to do.
    Done,
    /// Done as soon as all earlier writes are durable.
    DoneWhenDurable,
    /// The data are lost: more members have failed than the layout covers.
    Lost,
    /// The host's storage failed.
    Failed(StoreError),
}

impl RequestOutcome {
    /// Returns the outcome of an operation on the data.
    pub(crate) fn of(done: Result<(), StoreError>) -> RequestOutcome {
        match done {
            Ok(()) => RequestOutcome::Done,
            Err(StoreError::Lost { .. }) => RequestOutcome::Lost,
            Err(error) => RequestOutcome::Failed(error),
        }
    }

    /// Returns the error for the client, with a text for people.
    pub(crate) fn failure(&self) -> Option<(ErrorCode, String)> {
        match self {
            RequestOutcome::Done | RequestOutcome::DoneWhenDurable => None,
            RequestOutcome::Lost => Some((
                ErrorCode::InputOutput,
                "the data was lost with failed drives".into(),
            )),
            RequestOutcome::Failed(error) if error.is_out_of_space() => {
                Some((ErrorCode::NoSpace, error.to_string()))
            }
            RequestOutcome::Failed(error) => Some((ErrorCode::InputOutput, error.to_string())),
        }
    }
}

/// Progress of a request carried out in parts.
#[derive(Debug)]
pub(crate) struct TicketParts {
    pub(crate) stage: TicketStage,
    pub(crate) under_way: u32,
    /// Error of a part.
    pub(crate) failure: Option<RequestOutcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TicketStage {
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
            TicketStage::Zeroing { next_bytes } => Some(next_bytes),
            TicketStage::Edges | TicketStage::Last => None,
        }
    }
}

impl TicketParts {
    pub(crate) fn new(stage: TicketStage, under_way: u32) -> TicketParts {
        TicketParts {
            stage,
            under_way,
            failure: None,
        }
    }

    /// Returns the error, if any; and true if the data were already changed part by part.
    pub(crate) fn outcome(&mut self) -> (Option<RequestOutcome>, bool) {
        (
            self.failure.take(),
            matches!(self.stage, TicketStage::Zeroing { .. }),
        )
    }
}

/// Returns the sectors touched by a client's request.
pub(crate) fn extent(request: &fullstroke_nbd::NbdRequest) -> Extent {
    around(request.offset_bytes, request.length_bytes.into())
}

/// Returns a client's request in the form of the layers. Zeroes that need not be allocated are a
/// discard, because a disk deallocates. Zeroes that must be allocated are a write.
pub(crate) fn timed(request: &fullstroke_nbd::NbdRequest) -> Request {
    let operation = match request.command {
        RequestCommand::Read | RequestCommand::Cache | RequestCommand::BlockStatus => {
            Operation::Read
        }
        RequestCommand::Write => Operation::Write,
        RequestCommand::WriteZeroes if request.flags.contains(CommandFlags::NO_HOLE) => {
            Operation::Write
        }
        RequestCommand::WriteZeroes | RequestCommand::Trim => Operation::Discard,
        RequestCommand::Flush => Operation::Flush,
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
pub(crate) fn is_unaligned(request: &fullstroke_nbd::NbdRequest) -> bool {
    !(request.offset_bytes | u64::from(request.length_bytes)).is_multiple_of(SECTOR_BYTES)
}
