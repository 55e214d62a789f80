//! Flushes as in the block layer of Linux since 2.6.37 (`blk-flush.c`): a separate sequence that
//! delays no other request.

use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Effect of a flush on other requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Flushing {
    /// A barrier, as in Linux up to 2.6.36 (`blk-barrier.c`, ordered by drain). The flush is issued
    /// after all earlier requests have completed. Later requests are issued after the flush has
    /// completed.
    Drain,
    /// A flush goes to the device at once, as in Linux since 2.6.37. The flush makes completed
    /// writes durable. One flush is in flight at a time. Flushes that arrive meanwhile share the
    /// next one.
    #[default]
    Sequence,
}

/// Longest time for which a pending flush waits to share itself with forced writes:
/// `FLUSH_PENDING_TIMEOUT` of `blk-flush.c`.
const PENDING_TIMEOUT: Duration = Duration::from_millis(5000);

/// The pending flushes and the flush in flight. The two lists are the two queues of `struct
/// blk_flush_queue`, and are swapped like these.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Requests of the next flush.
    pending: VecDeque<u32>,
    /// Time when the first pending request began to wait.
    pending_since: Time,
    /// Requests of the flush in flight.
    running: VecDeque<u32>,
    /// Number of unfinished forced writes above a device without FUA. Each will need a flush.
    forced_writes: u32,
    /// Latest arrival of a forced write that the flush before it has announced. `None` if no
    /// write is announced.
    announced_until: Option<Time>,
}

impl Flushes {
    /// Lets `original` complete with the next flush.
    pub(super) fn wait(&mut self, now: Time, original: u32) {
        if self.pending.is_empty() {
            self.pending_since = now;
        }
        self.pending.push_back(original);
    }

    /// Counts a submitted forced write. The write will need a flush.
    pub(super) fn begin_forced_write(&mut self) {
        self.announced_until = None;
        self.forced_writes += 1;
    }

    /// Notes that the flush before a forced write has completed. In Linux both are one request, and
    /// the write is in flight at once (`REQ_FSEQ_DATA` in `blk_flush_complete_seq`). Here the write
    /// arrives at `until`, if this device gets the write.
    pub(super) fn announce_forced_write(&mut self, until: Time) {
        self.announced_until = Some(until);
    }

    /// Returns the time at which a pending flush no longer waits for an announced write.
    pub(super) fn due(&self) -> Time {
        match self.announced_until {
            Some(until)
                if !self.pending.is_empty()
                    && self.running.is_empty()
                    && self.forced_writes == 0 =>
            {
                // A write that arrives exactly at `until` still shares the flush.
                until + Duration::from_nanos(1)
            }
            _ => Time::NEVER,
        }
    }

    /// Records a forced write after its completion below. The write needs a flush now.
    pub(super) fn end_forced_write(&mut self, now: Time, original: u32) {
        assert!(
            self.forced_writes > 0,
            "a forced write ends at {now:?} that did not begin"
        );
        self.forced_writes -= 1;
        self.wait(now, original);
    }

    /// True if a flush should be sent now. The flush waits for the one in flight, and for forced
    /// writes that could share the flush (`blk_kick_flush`, conditions C1 to C3).
    /// `ticks` is the time in the kernel's clock.
    pub(super) fn wants_to_go(&self, now: Time, ticks: Time) -> bool {
        let none = self.forced_writes == 0 && self.announced_until.is_none_or(|until| now > until);
        let shared = none || ticks.since(self.pending_since) >= PENDING_TIMEOUT;
        self.running.is_empty() && !self.pending.is_empty() && shared
    }

    /// Moves the pending requests to the flush in flight. Returns the first of the requests.
    pub(super) fn send(&mut self) -> Option<u32> {
        debug_assert!(self.running.is_empty(), "one flush is under way at a time");
        std::mem::swap(&mut self.pending, &mut self.running);
        self.running.front().copied()
    }

    /// Takes the next request of the completed flush.
    pub(super) fn completed(&mut self) -> Option<u32> {
        self.running.pop_front()
    }
}
