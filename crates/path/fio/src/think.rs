//! Pauses of a job (`thinktime`).

use crate::job::{FioJob, ThinkAfter};
use fullstroke_units::{Duration, Time};

/// Counter of blocks up to the next pause.
#[derive(Clone, Debug)]
pub(crate) struct PauseCounter {
    pause: Duration,
    blocks: Option<u64>,
    after: ThinkAfter,
    io_time: Duration,
    seen: u64,
    /// Number of blocks at which the count for the next pause begins.
    counted: u64,
    /// End of the last pause.
    since: Time,
}

impl PauseCounter {
    pub(crate) fn new(job: &FioJob) -> PauseCounter {
        PauseCounter {
            pause: job.think,
            blocks: job.think_blocks,
            after: job.think_after,
            io_time: job.think_io_time,
            seen: 0,
            counted: 0,
            since: Time::ZERO,
        }
    }

    /// Starts the count when the job begins.
    pub(crate) fn start(&mut self, now: Time) {
        self.since = now;
    }

    /// Records that a block was issued or completed.
    pub(crate) fn note_block(&mut self, what: ThinkAfter) {
        self.seen += u64::from(what == self.after);
    }

    /// Returns true if a pause is due.
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

    /// Begins a pause. Returns its end. Observed with fio 3.33: blocks that completed beyond
    /// `thinktime_blocks` count towards the next pause. So after the queue was drained once, each
    /// turn issues only `thinktime_blocks` blocks.
    pub(crate) fn pause(&mut self, now: Time) -> Time {
        self.counted = self.counted.saturating_add(self.blocks.unwrap_or(1));
        self.since = now + self.pause;
        self.since
    }
}
