//! When a job pauses.

use crate::job::{Job, ThinkAfter};
use fullstroke_units::{Duration, Time};

/// Counts blocks towards the next pause.
#[derive(Clone, Debug)]
pub(crate) struct Thinking {
    pause: Duration,
    blocks: Option<u64>,
    after: ThinkAfter,
    io_time: Duration,
    seen: u64,
    /// The number of blocks from which the next pause counts.
    counted: u64,
    /// The end of the last pause.
    since: Time,
}

impl Thinking {
    pub(crate) fn new(job: &Job) -> Thinking {
        Thinking {
            pause: job.think,
            blocks: job.think_blocks,
            after: job.think_after,
            io_time: job.think_io_time,
            seen: 0,
            counted: 0,
            since: Time::ZERO,
        }
    }

    /// The job begins.
    pub(crate) fn start(&mut self, now: Time) {
        self.since = now;
    }

    /// A block was issued, or has completed.
    pub(crate) fn saw(&mut self, what: ThinkAfter) {
        self.seen += u64::from(what == self.after);
    }

    /// Whether it is time for a pause.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        if self.pause.as_nanos() == 0 {
            return false;
        }
        if self.io_time.as_nanos() > 0 {
            if now.since(self.since) >= self.io_time {
                return true;
            }
            if self.blocks.is_none() {
                return false;
            }
        }
        self.seen >= self.counted.saturating_add(self.blocks.unwrap_or(1))
    }

    /// Pauses; until when. Observed with fio 3.33: blocks that completed beyond
    /// `thinktime_blocks` count for the next pause, so that a queue that was
    /// drained once is used for that many blocks only.
    pub(crate) fn pause(&mut self, now: Time) -> Time {
        self.counted = self.counted.saturating_add(self.blocks.unwrap_or(1));
        self.since = now + self.pause;
        self.since
    }
}
