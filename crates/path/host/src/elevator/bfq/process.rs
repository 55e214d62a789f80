//! The memory of a process.

use super::owner::Owner;
use super::queue::Habits;
use super::raising::QueueFavour;
use super::tolerance::Tolerance;

/// The elevator's memory of a process, or of the asynchronous requests of all processes (`struct
/// bfq_io_cq`).
#[derive(Clone, Debug)]
pub(super) struct ProcessMemory {
    pub(super) owner: Owner,
    /// Queue of the requests.
    pub(super) queue: u32,
    /// Number of requests, waiting and in flight.
    pub(super) requests: u32,
    /// Queue with which the queue of the process merges after a while.
    pub(super) partner: Option<u32>,
    /// True if the queue was merged by start.
    pub(super) stably_merged: bool,
    /// State of the process's own queue before the merge.
    pub(super) saved: Option<Saved>,
}

impl ProcessMemory {
    pub(super) fn new(owner: Owner, queue: u32) -> ProcessMemory {
        ProcessMemory {
            owner,
            queue,
            requests: 0,
            partner: None,
            stably_merged: false,
            saved: None,
        }
    }
}

/// State of a queue before a merge (`bfq_bfqq_save_state`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub(super) habits: Habits,
    pub(super) tolerance: Tolerance,
    pub(super) raising: QueueFavour,
    pub(super) in_large_burst: bool,
    pub(super) in_burst: bool,
}
