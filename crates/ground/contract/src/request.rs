//! Requests and their completions. Both carry extents, never data.

use crate::{Breakdown, Hints};
use fullstroke_units::{Lbn, Sectors, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The id of a request between a layer and the layer directly above. The upper layer chooses the
/// id, and the completion brings it back. The id is unique among the upper layer's requests in
/// flight to one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RequestId(pub u64);

/// The address space of an extent: a file, by its number in the file system, or the device itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Object(pub u32);

impl Object {
    /// The device. Blocks of metadata and all requests below the file system are in this address
    /// space.
    pub const DEVICE: Object = Object(0);
}

/// The operation of a request.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Read the extent.
    #[default]
    Read,
    /// Write the extent.
    Write,
    /// Make all completed writes durable. The extent is empty.
    Flush,
    /// The extent's contents are no longer needed.
    Discard,
    /// Make all data durable and stop the platters: ATA's STANDBY IMMEDIATE (ACS-3, 7.58), SCSI's
    /// START STOP UNIT with START = 0 (SBC-3, 5.24). The extent is empty. The next access to the
    /// platters starts them.
    Standby,
    /// Bring the platters to full speed: ATA's IDLE IMMEDIATE, START STOP UNIT with START = 1. The
    /// extent is empty.
    Start,
    /// The answer of a host to a [`Signal::Ask`](crate::Signal::Ask) of the storage. A full extent
    /// means that all data are held. An empty extent means that the data at its start are not held.
    /// The answer bypasses elevators, and ends at the node that asked.
    #[serde(skip)]
    Answer,
}

/// A run of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Extent {
    /// First sector.
    pub start: Lbn,
    /// Number of sectors; 0 for a flush.
    pub sectors: Sectors,
}

/// One request to a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Request {
    /// Id chosen by the layer above.
    pub id: RequestId,
    /// Number of the workload's request that caused this request, through all layers. The numbers
    /// count arrivals from 0.
    pub origin: u64,
    /// Operation.
    pub operation: Operation,
    /// Address space of the extent.
    pub object: Object,
    /// Addresses; empty for an operation on the whole device.
    pub extent: Extent,
    /// Information of the layers above about the request.
    pub hints: Hints,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum RequestStatus {
    /// Done as requested.
    #[default]
    Done,
    /// A [verifying](Hints::verify) read has found other data than the last write.
    Differs,
    /// More members have failed than the redundancy covers.
    Lost,
    /// A drive with zones has refused the request: the write does not begin at the write pointer of
    /// its zone, for example.
    Refused,
    /// The extent lies (partly) outside the layer's address space.
    OutOfRange,
}

/// The answer to a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Completion {
    /// The request's id.
    pub id: RequestId,
    /// Time of submission to the completing layer.
    pub submitted: Time,
    /// Time of the end on the completing layer's own timeline. A late wake-up does not move it.
    pub finished: Time,
    /// Result.
    pub status: RequestStatus,
    /// Parts of the time between `submitted` and `finished`.
    pub breakdown: Breakdown,
}

impl Request {
    /// The origin of requests that a layer issues for its own work, such as rebuilding.
    pub const BACKGROUND: u64 = u64::MAX;

    /// Returns true for an asynchronous write: nothing waits for its completion.
    #[inline]
    pub fn is_put_off(&self) -> bool {
        self.operation == Operation::Write && !self.hints.synchronous
    }
}

impl Completion {
    /// Returns the completion of a request that took no time.
    #[inline]
    #[must_use]
    pub fn at_once(id: RequestId, now: Time, status: RequestStatus) -> Completion {
        Completion {
            id,
            submitted: now,
            finished: now,
            status,
            ..Completion::default()
        }
    }

    /// Returns the basis of a completion for a request that arrived at `submitted` and is ready at
    /// `now`. If `last`, the latest completion from below, was submitted no earlier than the
    /// request and ended at `now`, the request waited for `last`. In this case the result is
    /// `last`. Otherwise the result has no waiting times.
    #[must_use]
    pub fn ready(submitted: Time, now: Time, last: Option<&Completion>) -> Completion {
        // A completion that was submitted before the request, or that ended earlier, is not the
        // reason for the wait.
        let own = last.filter(|last| last.submitted >= submitted && last.finished == now);
        own.copied().unwrap_or(Completion {
            submitted: now,
            finished: now,
            ..Completion::default()
        })
    }

    /// Turns this completion into the completion of request `id`, which a layer has held since
    /// `submitted`. The time until the request went down counts as queueing.
    #[inline]
    #[must_use]
    pub fn held_since(mut self, submitted: Time, id: RequestId) -> Completion {
        self.breakdown.queue += self.submitted.since(submitted);
        debug_assert!(
            self.finished >= self.submitted,
            "a request ended at {:?}, before it went down at {:?}",
            self.finished,
            self.submitted
        );
        Completion {
            id,
            submitted,
            ..self
        }
    }
}

impl Extent {
    /// Returns the extent of `sectors` sectors from `start`.
    pub const fn new(start: u64, sectors: u64) -> Extent {
        Extent {
            start: Lbn(start),
            sectors: Sectors(sectors),
        }
    }
    /// Returns the first sector behind the extent, at most the last address. The sum saturates
    /// because a layer must answer a request behind its end with [`RequestStatus::OutOfRange`]. The
    /// request may lie far behind the end, and the layer may ask for its end first.
    #[inline]
    pub fn end(&self) -> Lbn {
        self.start.saturating_add(self.sectors)
    }
    /// Returns true if the whole extent lies below `capacity`.
    pub fn within(&self, capacity: Sectors) -> bool {
        self.start
            .0
            .checked_add(self.sectors.0)
            .is_some_and(|end| end <= capacity.0)
    }
}

impl Operation {
    /// Operations on data: the only ones in traces, clients and reports.
    pub const DATA: [Operation; 4] = [
        Operation::Read,
        Operation::Write,
        Operation::Flush,
        Operation::Discard,
    ];

    /// All operations of a storage device, in the order of their declaration.
    pub const ALL: [Operation; 6] = [
        Operation::Read,
        Operation::Write,
        Operation::Flush,
        Operation::Discard,
        Operation::Standby,
        Operation::Start,
    ];

    /// Returns the name in files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "flush",
            Operation::Discard => "discard",
            Operation::Standby => "standby",
            Operation::Start => "start",
            Operation::Answer => "answer",
        }
    }

    /// Returns the operation called `name`.
    pub fn named(name: &str) -> Option<Operation> {
        Operation::ALL
            .into_iter()
            .find(|operation| operation.name() == name)
    }

    /// Returns true if the operation concerns all addresses. Its extent is empty, and a volume
    /// sends it to every member.
    pub const fn is_of_all(self) -> bool {
        matches!(
            self,
            Operation::Flush | Operation::Standby | Operation::Start
        )
    }

    /// Returns true if the operation moves data.
    pub const fn transfers(self) -> bool {
        matches!(self, Operation::Read | Operation::Write)
    }
}
