//! Requests and their completions. They carry extents, never bytes.

use crate::{Breakdown, Hints};
use fullstroke_units::{Lbn, Sectors, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of a request between a layer and the one directly above it. The
/// upper layer chooses it and gets it back with the completion; it is unique
/// among that layer's requests in flight to one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RequestId(pub u64);

/// What an extent's addresses are of: a file of a file system, by the number that
/// the file system gave it, or the device itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Object(pub u32);

impl Object {
    /// The device: what blocks of metadata are of, too, and all that there is below
    /// the file system.
    pub const DEVICE: Object = Object(0);
}

/// What is asked of the storage.
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
    /// Make everything that was completed before durable. The extent is empty.
    Flush,
    /// The extent's contents are no longer needed.
    Discard,
    /// Make everything durable and stop the platters: ATA's STANDBY IMMEDIATE
    /// (ACS-3, 7.58), SCSI's START STOP UNIT with START = 0 (SBC-3, 5.24). The
    /// extent is empty. What needs the platters later starts them.
    Standby,
    /// Have the platters turn at full speed: ATA's IDLE IMMEDIATE, START STOP
    /// UNIT with START = 1. The extent is empty.
    Start,
    /// Not asked of the storage, but answered to its [`Signal::Ask`](crate::Signal::Ask):
    /// all that was asked for is held, or, if the extent is empty, what begins there is
    /// not. It passes elevators by, and ends where it was asked.
    #[serde(skip)]
    Answer,
}

/// A run of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Extent {
    /// The first sector.
    pub start: Lbn,
    /// How many; zero for a flush.
    pub sectors: Sectors,
}

/// One request to a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Request {
    /// Chosen by the layer above.
    pub id: RequestId,
    /// The workload's request that this one serves, however many layers down:
    /// its number in order of arrival, counted from 0.
    pub origin: u64,
    /// What to do.
    pub operation: Operation,
    /// Of what.
    pub object: Object,
    /// Where in it; what concerns all of it has an empty extent.
    pub extent: Extent,
    /// What the layers above know about it.
    pub hints: Hints,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Status {
    /// Done.
    #[default]
    Done,
    /// A read that [verifies](Hints::verify) has not found what was written last.
    Differs,
    /// More members have failed than the redundancy covers.
    Lost,
    /// The extent lies (partly) outside the layer's address space.
    OutOfRange,
}

/// The answer to a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Completion {
    /// The request's id.
    pub id: RequestId,
    /// When it was submitted to the completing layer.
    pub submitted: Time,
    /// When it finished, on the completing layer's own timeline. A late wake-up
    /// does not move it.
    pub finished: Time,
    /// How it ended.
    pub status: Status,
    /// Where the time between `submitted` and `finished` went.
    pub breakdown: Breakdown,
}

impl Request {
    /// The origin of what a layer does on its own account, such as rebuilding.
    pub const BACKGROUND: u64 = u64::MAX;

    /// Whether it is a write for which nobody waits.
    #[inline]
    pub fn is_put_off(&self) -> bool {
        self.operation == Operation::Write && !self.hints.synchronous
    }
}

impl Completion {
    /// The answer to what takes no time.
    #[inline]
    #[must_use]
    pub fn at_once(id: RequestId, now: Time, status: Status) -> Completion {
        Completion {
            id,
            submitted: now,
            finished: now,
            status,
            ..Completion::default()
        }
    }

    /// What a request waited for that came at `submitted` and was ready at `now`: `last`, which
    /// has just come back from below, if it ended then and began behind the request; else
    /// nothing that can be told from waiting.
    #[must_use]
    pub fn ready(submitted: Time, now: Time, last: Option<&Completion>) -> Completion {
        let own = last.filter(|last| last.submitted >= submitted && last.finished == now);
        own.copied().unwrap_or(Completion {
            submitted: now,
            finished: now,
            ..Completion::default()
        })
    }

    /// The same for whoever has held the request since `submitted`, and calls it
    /// `id`: until it went down it waited in a queue.
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
    /// The run of `sectors` from `start`.
    pub const fn new(start: u64, sectors: u64) -> Extent {
        Extent {
            start: Lbn(start),
            sectors: Sectors(sectors),
        }
    }
    /// The first sector behind the run, at most the last address. The sum
    /// saturates because a layer must answer a request behind its end with
    /// [`Status::OutOfRange`], however far behind, and may ask for the end first.
    #[inline]
    pub fn end(&self) -> Lbn {
        self.start.saturating_add(self.sectors)
    }
    /// Whether the whole run lies below `capacity`.
    pub fn within(&self, capacity: Sectors) -> bool {
        self.start
            .0
            .checked_add(self.sectors.0)
            .is_some_and(|end| end <= capacity.0)
    }
}

impl Operation {
    /// Those that are about data: what traces, clients and reports know.
    pub const DATA: [Operation; 4] = [
        Operation::Read,
        Operation::Write,
        Operation::Flush,
        Operation::Discard,
    ];

    /// All that is asked of storage, in the order of their declaration.
    pub const ALL: [Operation; 6] = [
        Operation::Read,
        Operation::Write,
        Operation::Flush,
        Operation::Discard,
        Operation::Standby,
        Operation::Start,
    ];

    /// Its name in files and messages.
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

    /// The operation called `name`.
    pub fn named(name: &str) -> Option<Operation> {
        Operation::ALL
            .into_iter()
            .find(|operation| operation.name() == name)
    }

    /// Whether the operation concerns all addresses, and its extent is empty: it
    /// goes to every member.
    pub const fn is_of_all(self) -> bool {
        matches!(
            self,
            Operation::Flush | Operation::Standby | Operation::Start
        )
    }

    /// Whether the operation moves data.
    pub const fn transfers(self) -> bool {
        matches!(self, Operation::Read | Operation::Write)
    }
}
