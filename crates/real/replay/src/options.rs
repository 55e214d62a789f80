//! What is replayed, where, and how.

use crate::command::Command;
use fullstroke_trace::{Beyond, Options};
use fullstroke_units::{Duration, Time};
use fullstroke_workload::pace::Rules;
use serde::Serialize;
use std::path::PathBuf;

/// What becomes of requests that would change the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// One of them is an error, before anything is issued.
    #[default]
    Refuse,
    /// They are left out, and counted.
    Skip,
    /// Writes read what they would have written over; discards are left out.
    AsReads,
    /// They are carried out: what stands on the device is lost.
    Overwrite,
}

/// How requests reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Io {
    /// By io_uring, from one thread.
    IoUring,
    /// By `pread` and `pwrite` from a pool of threads, one for each request that is outstanding.
    Threads,
}

/// A replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The trace.
    pub trace: PathBuf,
    /// Which of its requests, and how they are read. Its scale of time is left at 1:
    /// [`Rules::scale`] is the replay's.
    pub selection: Options,
    /// End after this many requests.
    pub requests: Option<u64>,
    /// A block device or a file.
    pub target: PathBuf,
    /// What to do with addresses beyond it.
    pub beyond: Beyond,
    /// What to do with requests that change it.
    pub writes: Writes,
    /// When requests go.
    pub rules: Rules,
    /// Issue together what the ring could not issue apart, as calibrated (section 6.5 of
    /// *Pro-active storage systems*).
    pub batch: bool,
    /// How requests reach the kernel; if that is left open by io_uring, and where it is forbidden by
    /// threads.
    pub io: Option<Io>,
    /// So many threads issue, and each waits for its call to return before it takes the next request;
    /// with [`Pace::Timing`](fullstroke_workload::pace::Pace::Timing) alone. In place of `io`.
    pub threads: Option<u32>,
    /// Through the page cache, for files that cannot be read past it.
    pub buffered: bool,
    /// Tolerate, and count, this many requests that fail.
    pub tolerated_errors: u64,
    /// Write the replay to this file, as a trace in the native format.
    pub log: Option<PathBuf>,
    /// A replay by timing is faithful if 99 of 100 requests are issued within this of their time.
    pub issue_error_max: Duration,
    /// It is faithful if what it keeps is off by no more than this share: of arrivals a second by
    /// timing, of what is outstanding by load. The published bound is 0.04.
    pub error_share_max: f64,
}

impl ReplayOptions {
    /// What stands between requests and the device.
    pub(crate) fn way(&self) -> &'static str {
        match self.buffered {
            true => "through the page cache: response times are its own",
            false => "past the page cache (O_DIRECT)",
        }
    }

    /// When a request would go by the trace's times.
    pub(crate) fn schedule(&self, command: &Command) -> Time {
        let arrival = command.record.arrival;
        if self.rules.pace.heeds_times() {
            self.rules.scaled(arrival)
        } else {
            arrival
        }
    }
}
