//! Passes requests to the kernel by a ring, or by threads where the kernel provides no ring.

use crate::issued::Action;
use crate::piece_answer::PieceAnswer;
use crate::ring::{OUTSTANDING_MAX, Ring};
use crate::threads::{THREADS, Threads};
use crate::{IoMethod, ReplayError};
use std::fs::File;
use std::io;
use std::time::Duration;

/// Issues pieces of requests and reports their results.
pub(crate) enum Issuer {
    /// io_uring.
    Ring(Box<Ring>),
    /// A pool of threads, each waiting for one request.
    Threads {
        /// The threads.
        threads: Threads,
        /// Reason why there is no ring; `None` if threads were requested.
        instead: Option<String>,
    },
}

impl Issuer {
    /// Creates an issuer of kind `io`. With `None`, threads are used if the kernel provides no
    /// ring.
    ///
    /// # Errors
    /// If the requested ring or the threads cannot be created.
    pub(crate) fn new(file: &File, io: Option<IoMethod>) -> Result<Issuer, ReplayError> {
        let ring = || Ring::new(file).map(|ring| Issuer::Ring(Box::new(ring)));
        let threads = |instead| {
            Ok(Issuer::Threads {
                threads: Threads::new(file)?,
                instead,
            })
        };
        match io {
            Some(IoMethod::Threads) => threads(None),
            Some(IoMethod::IoUring) => ring(),
            None => match ring() {
                Err(ReplayError::Ring { source }) => threads(Some(source.to_string())),
                ring => ring,
            },
        }
    }

    /// Returns the kind of the issuer.
    pub(crate) fn io(&self) -> IoMethod {
        match self {
            Issuer::Ring(_) => IoMethod::IoUring,
            Issuer::Threads { .. } => IoMethod::Threads,
        }
    }

    /// Returns the largest number of outstanding requests. Further requests are held back.
    pub(crate) fn outstanding_max(&self) -> u64 {
        match self {
            Issuer::Ring(_) => OUTSTANDING_MAX,
            Issuer::Threads { .. } => THREADS as u64,
        }
    }

    /// Adds a piece of a request for the next submission. Returns `false` if there is no room
    /// before the submission. `bytes` is at most [`PIECE_BYTES`](crate::memory::PIECE_BYTES) for
    /// reads and writes.
    pub(crate) fn push(&mut self, action: Action, start: u64, bytes: u64, user: u64) -> bool {
        match self {
            Issuer::Ring(ring) => ring.push(action, start, bytes, user),
            Issuer::Threads { threads, .. } => threads.push(action, start, bytes, user),
        }
    }

    /// Submits the added pieces, as many as are accepted now.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        match self {
            Issuer::Ring(ring) => ring.submit(),
            Issuer::Threads { threads, .. } => {
                threads.submit();
                Ok(())
            }
        }
    }

    /// Returns true if all added pieces were submitted.
    pub(crate) fn is_submitted(&mut self) -> bool {
        match self {
            Issuer::Ring(ring) => ring.is_submitted(),
            Issuer::Threads { threads, .. } => threads.is_submitted(),
        }
    }

    /// Sleeps until a piece completes, at most `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<()> {
        match self {
            Issuer::Ring(ring) => ring.wait(limit),
            Issuer::Threads { threads, .. } => {
                threads.wait(limit);
                Ok(())
            }
        }
    }

    /// Adds the new reports to `answers`. The reports on each piece are in order. Reports of
    /// beginnings are in the order in which pieces were added.
    pub(crate) fn reap(&mut self, answers: &mut Vec<PieceAnswer>) {
        match self {
            Issuer::Ring(ring) => ring.reap(answers),
            Issuer::Threads { threads, .. } => threads.reap(answers),
        }
    }
}
