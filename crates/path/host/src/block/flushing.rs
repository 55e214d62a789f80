//! Flushes as the block layer has sent them since Linux 2.6.37 (`blk-flush.c`):
//! a sequence of its own, for which nobody else waits.

use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a flush does to other requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Flushing {
    /// It is a barrier, as in Linux up to 2.6.36 (`blk-barrier.c`, ordered by
    /// drain): it is sent when everything before it has completed, and nothing
    /// behind it is sent until it has completed too.
    Drain,
    /// It goes to the device at once, as in Linux since 2.6.37, and makes
    /// durable what has completed. One is under way at a time; those that
    /// arrive meanwhile become one, the next.
    #[default]
    Sequence,
}

/// A forced write that has waited so long for its flush is not made to wait for
/// other writes any longer: `FLUSH_PENDING_TIMEOUT` of `blk-flush.c`.
const PENDING_TIMEOUT: Duration = Duration::from_millis(5000);

/// Flushes that wait, and the one that is under way. The two lists are the two
/// queues of `struct blk_flush_queue`, and change places as those do.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    /// Requests that the next flush completes.
    pending: VecDeque<u32>,
    /// Since when the first of them waits.
    pending_since: Time,
    /// Requests that the flush under way completes.
    running: VecDeque<u32>,
    /// Forced writes on their way to a device that cannot force them: they will
    /// want a flush.
    forced_writes: u32,
}

impl Flushes {
    /// `original` completes with the next flush.
    pub(super) fn wait(&mut self, now: Time, original: u32) {
        if self.pending.is_empty() {
            self.pending_since = now;
        }
        self.pending.push_back(original);
    }

    /// A write has been submitted that will want a flush.
    pub(super) fn begin_forced_write(&mut self) {
        self.forced_writes += 1;
    }

    /// Such a write is with the device: it wants its flush.
    pub(super) fn end_forced_write(&mut self, now: Time, original: u32) {
        assert!(
            self.forced_writes > 0,
            "a forced write ends at {now:?} that did not begin"
        );
        self.forced_writes -= 1;
        self.wait(now, original);
    }

    /// Whether a flush is to be sent now. It waits for the one under way, and
    /// for forced writes that could share it (`blk_kick_flush`, conditions C1
    /// to C3).
    pub(super) fn wants_to_go(&self, now: Time) -> bool {
        let shared = self.forced_writes == 0 || now.since(self.pending_since) >= PENDING_TIMEOUT;
        self.running.is_empty() && !self.pending.is_empty() && shared
    }

    /// A flush is sent: on behalf of whom first.
    pub(super) fn send(&mut self) -> Option<u32> {
        debug_assert!(self.running.is_empty(), "one flush is under way at a time");
        std::mem::swap(&mut self.pending, &mut self.running);
        self.running.front().copied()
    }

    /// The flush has come back: the next of those that it completes.
    pub(super) fn completed(&mut self) -> Option<u32> {
        self.running.pop_front()
    }
}
