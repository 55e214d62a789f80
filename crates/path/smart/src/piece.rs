//! The state of a piece of a request in flight.

use crate::choices::CommandClass;
use fullstroke_contract::{Breakdown, Completion, Extent, RequestId};
use fullstroke_units::{Duration, Time};

/// Kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PieceKind {
    /// An ordinary read.
    Read,
    /// An ordinary write of data, or of parity computed by the host.
    Write,
    /// An XDWRITE EXTENDED, with the number of the parity disk.
    Update { parity: u32 },
}

/// A piece: the sectors of one command, or of an XDW and its XPW.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandPiece {
    /// Part of the request that contains the piece.
    pub(crate) part: u32,
    pub(crate) kind: PieceKind,
    pub(crate) disk: u32,
    /// Extent on the disk; for an update, on the parity disk as well.
    pub(crate) extent: Extent,
    /// Time when the piece came into its current or last queue.
    pub(crate) queued: Time,
    /// Time when the XDW finished.
    pub(crate) updated: Option<Time>,
    pub(crate) parts: ResponseParts,
}

/// Parts of the response time of a piece, as far as known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResponseParts {
    /// Time in the queue of the data disk.
    pub(crate) queue: Duration,
    /// Time in the queue of the parity disk.
    pub(crate) parity_queue: Duration,
    pub(crate) seek: Duration,
    pub(crate) rotation: Duration,
    pub(crate) transfer: Duration,
    pub(crate) seek_cylinders: u32,
}

/// A request with parts in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRequest {
    pub(crate) id: RequestId,
    pub(crate) submitted: Time,
    pub(crate) parts_left: u32,
}

impl CommandPiece {
    /// Returns the class of the piece for its current disk.
    pub(crate) fn class(&self) -> CommandClass {
        match (self.kind, self.updated) {
            (PieceKind::Read | PieceKind::Write, _) => CommandClass::Plain,
            (PieceKind::Update { .. }, None) => CommandClass::Xdw,
            (PieceKind::Update { .. }, Some(_)) => CommandClass::Xpw,
        }
    }

    /// Returns the completion of a job with this last piece. The host finished the piece at
    /// `finished`, and the part of the piece was issued at `issued`.
    ///
    /// - `queue`: the queues of both disks;
    /// - `parity`: the wait for other writes of the row; for an update also the time after the XDW
    ///   without the queue of the parity disk;
    /// - `seek`, `rotation`, `transfer`: parts of the first command; the turns between reading and
    ///   writing count as rotation;
    /// - `overhead`: the rest, namely the overhead of the first command, and the link time of the
    ///   command and of the answers.
    pub(crate) fn completion(
        &self,
        job: &PendingRequest,
        issued: Time,
        finished: Time,
    ) -> Completion {
        let ResponseParts {
            queue,
            parity_queue,
            seek,
            rotation,
            transfer,
            seek_cylinders,
        } = self.parts;
        let behind = self
            .updated
            .map_or(Duration::ZERO, |updated| finished.since(updated));
        let parity = issued.since(job.submitted) + behind.saturating_sub(parity_queue);
        let queue = queue + parity_queue;
        let explained = queue + parity + seek + rotation + transfer;
        let overhead = finished.since(job.submitted).saturating_sub(explained);
        let breakdown = Breakdown {
            queue,
            parity,
            overhead,
            seek,
            rotation,
            transfer,
            seek_cylinders,
        };
        Completion {
            id: job.id,
            submitted: job.submitted,
            finished,
            breakdown,
            ..Completion::default()
        }
    }
}
