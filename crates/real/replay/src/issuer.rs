//! How requests reach the kernel: by a ring, or by threads where the kernel gives none.

use crate::command::Action;
use crate::ring::{OUTSTANDING_MAX, Ring};
use crate::threads::{THREADS, Threads};
use crate::{Io, ReplayError};
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// What is said of a piece of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// A thread hands it to the kernel now. A ring says nothing of the kind: that is when it is submitted.
    Begun {
        /// Whose it is.
        user: u64,
        /// When.
        at: Instant,
    },
    /// It has completed.
    Done {
        /// Whose it is.
        user: u64,
        /// As of the system call: bytes, or an error below 0.
        result: i32,
    },
}

/// Hands pieces of requests to the kernel and says what became of them.
pub(crate) enum Issuer {
    /// io_uring.
    Ring(Box<Ring>),
    /// Threads that wait for one request each.
    Threads {
        /// They.
        threads: Threads,
        /// Why there is no ring, unless threads were asked for.
        instead: Option<String>,
    },
}

impl Issuer {
    /// By `io`; if that is left open by threads where the kernel gives no ring.
    ///
    /// # Errors
    /// The ring that was asked for is not given, or no thread is.
    pub(crate) fn new(file: &File, io: Option<Io>) -> Result<Issuer, ReplayError> {
        let ring = || Ring::new(file).map(|ring| Issuer::Ring(Box::new(ring)));
        let threads = |instead| {
            Ok(Issuer::Threads {
                threads: Threads::new(file)?,
                instead,
            })
        };
        match io {
            Some(Io::Threads) => threads(None),
            Some(Io::IoUring) => ring(),
            None => match ring() {
                Err(ReplayError::Ring { source }) => threads(Some(source.to_string())),
                ring => ring,
            },
        }
    }

    /// Which way it is.
    pub(crate) fn io(&self) -> Io {
        match self {
            Issuer::Ring(_) => Io::IoUring,
            Issuer::Threads { .. } => Io::Threads,
        }
    }

    /// Requests that may be outstanding; more are held back.
    pub(crate) fn outstanding_max(&self) -> u64 {
        match self {
            Issuer::Ring(_) => OUTSTANDING_MAX,
            Issuer::Threads { .. } => THREADS as u64,
        }
    }

    /// Adds a piece of a request, to be submitted; `false` if there is no room before the next
    /// submission. `bytes` is at most [`PIECE_BYTES`](crate::memory::PIECE_BYTES) for reads and writes.
    pub(crate) fn push(&mut self, action: Action, start: u64, bytes: u64, user: u64) -> bool {
        match self {
            Issuer::Ring(ring) => ring.push(action, start, bytes, user),
            Issuer::Threads { threads, .. } => threads.push(action, start, bytes, user),
        }
    }

    /// Hands on what was added, as much of it as is taken now.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        match self {
            Issuer::Ring(ring) => ring.submit(),
            Issuer::Threads { threads, .. } => {
                threads.submit();
                Ok(())
            }
        }
    }

    /// Whether everything that was added was handed on.
    pub(crate) fn is_submitted(&mut self) -> bool {
        match self {
            Issuer::Ring(ring) => ring.is_submitted(),
            Issuer::Threads { threads, .. } => threads.is_submitted(),
        }
    }

    /// Sleeps until something completes, at most so long.
    pub(crate) fn wait(&mut self, limit: Duration) -> io::Result<()> {
        match self {
            Issuer::Ring(ring) => ring.wait(limit),
            Issuer::Threads { threads, .. } => {
                threads.wait(limit);
                Ok(())
            }
        }
    }

    /// What there is to say, added to `answers`: of each piece in order, and beginnings in the order in
    /// which pieces were added.
    pub(crate) fn reap(&mut self, answers: &mut Vec<Answer>) {
        match self {
            Issuer::Ring(ring) => ring.reap(answers),
            Issuer::Threads { threads, .. } => threads.reap(answers),
        }
    }
}
