//! What is known of a piece of a request on its way.

use crate::choices::Class;
use fullstroke_contract::{Breakdown, Completion, Extent, RequestId};
use fullstroke_units::{Duration, Time};

/// What a piece does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An ordinary read.
    Read,
    /// An ordinary write, of data or of parity that the host has computed.
    Write,
    /// An XDWRITE EXTENDED, with the disk that holds the parity.
    Update { parity: u32 },
}

/// A piece: what one command, or an XDW and its XPW, moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// The part of a request to which it belongs.
    pub(crate) part: u32,
    pub(crate) kind: Kind,
    pub(crate) disk: u32,
    /// On the disk; of an update, on the parity disk as well.
    pub(crate) extent: Extent,
    /// When it came into the queue in which it waits, or waited last.
    pub(crate) queued: Time,
    /// When the XDW had finished.
    pub(crate) updated: Option<Time>,
    pub(crate) parts: Parts,
}

/// Where the time of a piece went, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parts {
    /// In the queue of its disk.
    pub(crate) queue: Duration,
    /// In the queue of the parity disk.
    pub(crate) parity_queue: Duration,
    pub(crate) seek: Duration,
    pub(crate) rotation: Duration,
    pub(crate) transfer: Duration,
    pub(crate) seek_cylinders: u32,
}

/// A request of which parts are on their way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) id: RequestId,
    pub(crate) submitted: Time,
    pub(crate) parts_left: u32,
}

impl Piece {
    /// What it is for the disk that has it now.
    pub(crate) fn class(&self) -> Class {
        match (self.kind, self.updated) {
            (Kind::Read | Kind::Write, _) => Class::Plain,
            (Kind::Update { .. }, None) => Class::Xdw,
            (Kind::Update { .. }, Some(_)) => Class::Xpw,
        }
    }

    /// The completion of a job whose last piece this is, finished at the host
    /// at `finished`, of a part that was issued at `issued`.
    ///
    /// - `queue`: both disks' queues;
    /// - `parity`: until other writes of the row let it begin, and, of an
    ///   update, everything behind the XDW but the parity disk's queue;
    /// - `seek`, `rotation`, `transfer`: those of the first command, whose turns
    ///   between reading and writing are rotation;
    /// - `overhead`: the rest, which is the first command's overhead, and its
    ///   way and that of what it is answered over the link.
    pub(crate) fn completion(&self, job: &Job, issued: Time, finished: Time) -> Completion {
        let Parts {
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
