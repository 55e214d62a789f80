//! The anticipation at one arm: the device as a whole, or one member behind it.

use super::config::Config;
use super::processes::HabitTable;
use crate::block::Queued;
use fullstroke_contract::Extent;
use fullstroke_units::{Duration, Time};

/// State of the wait: `antic_status` of `block/as-iosched.c`, Linux 2.6.24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wait {
    /// No wait.
    #[default]
    No,
    /// Waits for the completion of the last request, and then for the request after it.
    Completion,
    /// The last request has completed. Waits for the next one.
    Next,
    /// The wait has ended: the next request goes, wherever it lies.
    Over,
}

/// One arm.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnticipatingArm {
    pub(super) wait: Wait,
    /// Process of the last dispatched request; none after an asynchronous request.
    pub(super) process: Option<u32>,
    /// True if a request of this process has completed since then.
    pub(super) completed: bool,
    /// Time of this completion.
    pub(super) since: Time,
    /// End of the last request.
    pub(super) here: u64,
}

impl AnticipatingArm {
    /// Distance that counts as close at first (`as_close_req`): 4 MB, because a seek over this
    /// distance costs little more than none.
    const CLOSE_SECTORS: u64 = 8192;
    /// Wait after which the close distance doubles: a tick of the kernel at 1000 Hz. The longer the
    /// wait, the less a saved seek is worth.
    const DOUBLING: Duration = Duration::from_millis(1);
    /// Largest number of doublings. After these every request is close.
    const DOUBLINGS_MAX: u64 = 20;

    /// True if requests are held back for an expected one.
    pub(super) fn waits(&self) -> bool {
        matches!(self.wait, Wait::Completion | Wait::Next)
    }

    /// Records the completion of a request of `process` at this arm.
    pub(super) fn completes(&mut self, now: Time, process: u32) {
        if self.process == Some(process) {
            self.completed = true;
            self.since = now;
            if self.wait == Wait::Completion {
                self.wait = Wait::Next;
            }
        }
    }

    /// True if the arm should wait, or wait on, and not serve `candidate`. The wait ends as soon as
    /// the awaited process has a waiting request. The contrary of `as_can_break_anticipation`.
    pub(super) fn should_wait(
        &self,
        now: Time,
        candidate: Option<&Queued>,
        config: &Config,
        processes: &mut HabitTable,
    ) -> bool {
        let Some(process) = self.process else {
            return false;
        };
        let is_over = self.completed && now.since(self.since) >= config.antic_expire;
        // A process with a request in the queue need not be waited for.
        if self.wait == Wait::Over || is_over || processes[process].waiting > 0 {
            return false;
        }
        let near = |request: &&Queued| {
            request.synchronous
                && self.is_close(
                    now,
                    request.extent,
                    config,
                    processes.expected_distance(process),
                )
        };
        if let Some(request) = candidate.filter(near) {
            // Another process continues where this process stopped. The two work together and count
            // as one.
            processes.asks(now, process, request.extent);
            return false;
        }
        processes.returns_within(process, config.antic_expire)
    }

    /// True if a request is as near as the expected one. The longer the wait, the larger the
    /// distance that counts as near.
    fn is_close(&self, now: Time, extent: Extent, config: &Config, expected: u64) -> bool {
        let waits = self.wait != Wait::No && self.completed;
        let waited = if waits {
            now.since(self.since)
        } else {
            Duration::ZERO
        };
        // `as_close_req`: the longer the arm has waited, the farther a request may lie and still
        // count as near.
        let doublings = waited.as_nanos() / AnticipatingArm::DOUBLING.as_nanos();
        if doublings > AnticipatingArm::DOUBLINGS_MAX || waited > config.antic_expire {
            return true;
        }
        let close = AnticipatingArm::CLOSE_SECTORS << doublings;
        let start = extent.start.0;
        // The limit is half as large for a seek back, because a seek back counts twice.
        let within = if start < self.here {
            self.here - start <= close / 2
        } else {
            start - self.here <= close
        };
        within || start.abs_diff(self.here) < expected
    }
}
