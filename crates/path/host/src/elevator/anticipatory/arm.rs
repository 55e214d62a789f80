//! What is anticipated at one arm: the one device as a whole, or each member
//! behind it.

use super::Config;
use super::processes::Processes;
use crate::block::Queued;
use fullstroke_contract::Extent;
use fullstroke_units::{Duration, Time};

/// Whether anything is waited for: `antic_status` of `block/as-iosched.c`, Linux
/// 2.6.24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Wait {
    /// No.
    #[default]
    No,
    /// For the last request to complete, and then for what follows it.
    Completion,
    /// For what follows the last request, which has completed.
    Next,
    /// Not any more: the next request goes, whatever it is.
    Over,
}

/// One arm.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arm {
    pub(super) wait: Wait,
    /// The process whose synchronous request was sent last; none if an
    /// asynchronous one was.
    pub(super) process: Option<u32>,
    /// Whether one of that process has completed since.
    pub(super) completed: bool,
    /// When that was.
    pub(super) since: Time,
    /// Where the last request ended.
    pub(super) here: u64,
}

impl Arm {
    /// Sectors that count as close to begin with (`as_close_req`): 4 MB, a seek
    /// that costs little more than none.
    const CLOSE_SECTORS: u64 = 8192;
    /// What counts as close doubles with each such time that is waited, a tick of
    /// the kernel at 1000 Hz: a seek saved is worth ever less of a wait.
    const DOUBLING: Duration = Duration::from_millis(1);
    /// The most that it is doubled; after that everything is close.
    const DOUBLINGS_MAX: u64 = 20;

    /// Whether requests are held back for what is expected here.
    pub(super) fn waits(&self) -> bool {
        matches!(self.wait, Wait::Completion | Wait::Next)
    }

    /// A request of `process` that was sent here has completed.
    pub(super) fn completes(&mut self, now: Time, process: u32) {
        if self.process == Some(process) {
            self.completed = true;
            self.since = now;
            if self.wait == Wait::Completion {
                self.wait = Wait::Next;
            }
        }
    }

    /// Whether to wait, or to go on waiting, rather than send `candidate`. If the
    /// process that is waited for has asked for something, it is not worth it.
    /// The contrary of `as_can_break_anticipation`.
    pub(super) fn should_wait(
        &self,
        now: Time,
        candidate: Option<&Queued>,
        config: &Config,
        processes: &mut Processes,
    ) -> bool {
        let Some(process) = self.process else {
            return false;
        };
        let is_over = self.completed && now.since(self.since) >= config.antic_expire;
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
            // Another process goes on where this one has stopped: they work
            // together, and count as one.
            processes.asks(now, process, request.extent);
            return false;
        }
        processes.returns_within(process, config.antic_expire)
    }

    /// Whether a request is as near as what is expected. The longer the wait,
    /// the less is asked of it.
    fn is_close(&self, now: Time, extent: Extent, config: &Config, expected: u64) -> bool {
        let waits = self.wait != Wait::No && self.completed;
        let waited = if waits {
            now.since(self.since)
        } else {
            Duration::ZERO
        };
        let doublings = waited.as_nanos() / Arm::DOUBLING.as_nanos();
        if doublings > Arm::DOUBLINGS_MAX || waited > config.antic_expire {
            return true;
        }
        let close = Arm::CLOSE_SECTORS << doublings;
        let start = extent.start.0;
        // Half as far back as on, for a seek back counts twice.
        let within = if start < self.here {
            self.here - start <= close / 2
        } else {
            start - self.here <= close
        };
        within || start.abs_diff(self.here) < expected
    }
}
