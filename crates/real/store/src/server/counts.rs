//! Counts of answered requests.

use fullstroke_nbd::RequestCommand;
use std::sync::atomic::{AtomicU64, Ordering};

/// Operations with counters of their own.
pub(crate) const OPERATIONS: [&str; 4] = ["read", "write", "flush", "discard"];

/// Answered requests since the server began.
#[derive(Debug, Default)]
pub(crate) struct AnsweredCounts(pub(crate) [Count; OPERATIONS.len()]);

/// Answered requests of an operation.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) errors: AtomicU64,
}

impl AnsweredCounts {
    /// Counts the answer to a request for so many bytes.
    pub(crate) fn answered(&self, command: RequestCommand, bytes: u64, is_well: bool) {
        let operation = match command {
            RequestCommand::Read => 0,
            RequestCommand::Write | RequestCommand::WriteZeroes => 1,
            RequestCommand::Flush => 2,
            RequestCommand::Trim => 3,
            RequestCommand::Cache | RequestCommand::BlockStatus => return,
        };
        let count = &self.0[operation];
        count.requests.fetch_add(1, Ordering::Relaxed);
        if is_well {
            count.bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            count.errors.fetch_add(1, Ordering::Relaxed);
        }
    }
}
