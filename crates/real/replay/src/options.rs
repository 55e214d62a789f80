//! Trace, target and rules of a replay.

use crate::issued::IssuedCommand;
use fullstroke_trace::{BeyondPolicy, TraceOptions};
use fullstroke_units::{Duration, Time};
use fullstroke_workload::pace::Rules;
use serde::Serialize;
use std::path::PathBuf;

/// Treatment of requests to change the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteTreatment {
    /// Any such request is an error before the first issue.
    #[default]
    Refuse,
    /// Such requests are left out and counted.
    Skip,
    /// Writes become reads of the same addresses; discards are left out.
    AsReads,
    /// Such requests are carried out: the data on the device are lost.
    Overwrite,
}

/// Way of requests to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IoMethod {
    /// By io_uring, from one thread.
    IoUring,
    /// By `pread` and `pwrite` from a pool of threads, one for each outstanding request.
    Threads,
}

/// Options of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// Path of the trace.
    pub trace: PathBuf,
    /// Selection of requests, and the way of reading. The time scale is ignored here:
    /// [`Rules::scale`] is the scale of the replay.
    pub selection: TraceOptions,
    /// Largest number of requests; `None` for all.
    pub requests: Option<u64>,
    /// Path of a block device or a file.
    pub target: PathBuf,
    /// Treatment of addresses beyond the target.
    pub beyond: BeyondPolicy,
    /// Treatment of requests to change the target.
    pub writes: WriteTreatment,
    /// Rules for the times of issue.
    pub rules: Rules,
    /// True to issue together the requests that the ring could not issue apart, by calibration
    /// (section 6.5 of *Pro-active storage systems*).
    pub batch: bool,
    /// Way of requests to the kernel. With `None`, io_uring is used, or threads where io_uring is
    /// forbidden.
    pub io: Option<IoMethod>,
    /// Number of issuing threads. Each thread waits for its call to return before the next request.
    /// Only with [`ReplayPace::Timing`](fullstroke_workload::pace::ReplayPace::Timing). Replaces `io`.
    pub threads: Option<u32>,
    /// True to go through the page cache, for files without direct I/O.
    pub buffered: bool,
    /// Number of failed requests to tolerate and count.
    pub tolerated_errors: u64,
    /// File for a log of the replay, as a trace in the native format.
    pub log: Option<PathBuf>,
    /// Limit of the issue error. A replay by timing is faithful if 99 of 100 requests are within
    /// the limit.
    pub issue_error_max: Duration,
    /// Largest error share of a faithful replay: of arrivals per second by timing, or of
    /// outstanding requests by load. The published bound is 0.04.
    pub error_share_max: f64,
}

impl ReplayOptions {
    /// Returns a description of the cache layer before the device.
    pub(crate) fn way(&self) -> &'static str {
        match self.buffered {
            true => "through the page cache: response times are those of the page cache",
            false => "past the page cache (O_DIRECT)",
        }
    }

    /// Returns the time of issue by the trace's times.
    pub(crate) fn schedule(&self, command: &IssuedCommand) -> Time {
        let arrival = command.record.arrival;
        if self.rules.pace.follows_times() {
            self.rules.scaled(arrival)
        } else {
            arrival
        }
    }
}
