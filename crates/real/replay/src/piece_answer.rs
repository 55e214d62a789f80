//! The answer to a piece of a request.

use std::time::Instant;

/// A report on a piece of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PieceAnswer {
    /// A thread issues the piece now. A ring does not report this, because its time of issue is the
    /// submission.
    Begun {
        /// Tag of the piece.
        user: u64,
        /// Time of issue.
        at: Instant,
    },
    /// The piece has completed.
    Done {
        /// Tag of the piece.
        user: u64,
        /// Result of the system call: bytes, or a negative error.
        result: i32,
    },
}
