//! Runs of the queue: when the kernel asks the elevator for requests (`blk_mq_run_hw_queue`).
//!
//! A new request runs the queue at once, in the task of its submitter. A completion runs the queue
//! only if the device was full before (`blk_mq_dispatch_wake`, `scsi_run_queue_async`) or if the
//! elevator asks for the run. A worker thread makes that run a little later. After an elevator has
//! declined, the worker asks again 3 ms later (`BLK_MQ_BUDGET_DELAY`).

use super::originals::HostTime;
use fullstroke_units::{Duration, Random, Seed, Time};

/// Time from a refusal of the elevator to the next question: `BLK_MQ_BUDGET_DELAY` of
/// `block/blk-mq-sched.c`, Linux 6.18.
const AGAIN: Duration = Duration::from_millis(3);

/// Probability that the submitter of the completed request sends its next request, and runs the
/// queue, before the worker thread runs. Both are woken at the same moment. Measured on Linux 6.18
/// with two processors, five jobs under bfq: 1,164 of 3,465 completions of a full device.
const WORKER_LATE: f64 = 0.34;

/// The pending run of one queue.
#[derive(Clone, Debug)]
pub(super) struct QueueRuns {
    /// Time from a completion to the run of the worker. Zero: every event runs the queue at once,
    /// as before blk-mq.
    delay: Duration,
    /// Time from a completion to the run of a late worker.
    late: Duration,
    random: Random,
    /// True if the elevator is asked now.
    asked: bool,
    /// Time of the worker's next run; NEVER if none is planned.
    due: Time,
    /// True if the last run ended because the device was full.
    full: bool,
}

impl QueueRuns {
    pub(super) fn new(time: HostTime) -> QueueRuns {
        QueueRuns {
            delay: time.dispatch,
            late: time.dispatch + time.turnaround(),
            // A host has no seed of its own. The loads differ by seed.
            random: Seed(0).stream("runs"),
            asked: false,
            due: Time::NEVER,
            full: false,
        }
    }

    fn are_at_once(&self) -> bool {
        self.delay == Duration::ZERO
    }

    /// Runs the queue now.
    pub(super) fn ask(&mut self) {
        self.asked = true;
    }

    /// Notes a completion. `wanted` is true if the elevator asks for a run.
    pub(super) fn completed(&mut self, now: Time, wanted: bool) {
        let runs = std::mem::take(&mut self.full) || wanted;
        if runs && !self.are_at_once() {
            let late = self.random.chance(WORKER_LATE);
            let delay = if late { self.late } else { self.delay };
            self.due = self.due.min(now + delay);
        }
    }

    /// Begins the worker's run if it is due.
    pub(super) fn wake(&mut self, now: Time) {
        if self.due <= now {
            self.due = Time::NEVER;
            self.asked = true;
        }
    }

    /// True if the elevator may be asked now.
    pub(super) fn is_asked(&self) -> bool {
        self.asked || self.are_at_once()
    }

    /// Returns the time of the worker's next run.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Ends a run, because nothing waits or because the device is full.
    pub(super) fn ends(&mut self, full: bool) {
        self.asked = false;
        self.full = full;
    }

    /// Ends a run, because the elevator has declined and names the instant of the next run. A
    /// completion runs the queue before, as after a full device.
    pub(super) fn postponed(&mut self, now: Time) {
        self.ends(true);
        // A run that came due while the device was full is over with this one.
        if self.due <= now {
            self.due = Time::NEVER;
        }
    }

    /// Ends a run, because the elevator has declined.
    pub(super) fn declined(&mut self, now: Time) {
        self.asked = false;
        // A run that came due while the device was full is over with this one.
        if !self.are_at_once() && (self.due == Time::NEVER || self.due <= now) {
            self.due = now + AGAIN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Duration::from_micros(us)
    }

    /// Runs whose worker takes 35 us, and no longer if it is late.
    fn runs() -> QueueRuns {
        QueueRuns::new(HostTime {
            dispatch: Duration::from_micros(35),
            ..HostTime::default()
        })
    }

    #[test]
    fn a_completion_runs_the_queue_only_if_the_device_was_full_or_the_elevator_asks() {
        let mut runs = runs();
        runs.completed(at(0), false);
        assert_eq!(runs.due(), Time::NEVER);
        runs.completed(at(0), true);
        assert_eq!(runs.due(), at(35));
        runs.wake(at(34));
        assert!(!runs.is_asked());
        runs.wake(at(35));
        assert!(runs.is_asked());
        runs.ends(true);
        runs.completed(at(100), false);
        assert_eq!(runs.due(), at(135));
        // One run serves a full device once.
        runs.wake(at(135));
        runs.ends(false);
        runs.completed(at(200), false);
        assert_eq!(runs.due(), Time::NEVER);
    }

    #[test]
    fn a_run_that_came_due_while_the_device_was_full_does_not_stay_due() {
        let mut runs = runs();
        runs.completed(at(0), true);
        assert_eq!(runs.due(), at(35));
        runs.ask();
        runs.declined(at(2000));
        assert_eq!(runs.due(), at(5000));
    }

    #[test]
    fn an_elevator_that_declines_is_asked_again_after_3_ms() {
        let mut runs = runs();
        runs.declined(at(0));
        assert_eq!(runs.due(), at(3000));
        // A later refusal does not postpone the run, and a completion advances it.
        runs.declined(at(1000));
        assert_eq!(runs.due(), at(3000));
        runs.completed(at(1000), true);
        assert_eq!(runs.due(), at(1035));
    }

    #[test]
    fn an_elevator_that_names_its_instant_is_asked_at_a_completion_only() {
        let mut runs = runs();
        runs.completed(at(0), true);
        runs.ask();
        runs.postponed(at(2000));
        assert_eq!((runs.due(), runs.is_asked()), (Time::NEVER, false));
        runs.completed(at(3000), false);
        assert_eq!(runs.due(), at(3035));
    }

    #[test]
    fn the_worker_comes_after_the_submitter_in_a_third_of_the_runs() {
        let mut runs = QueueRuns::new(HostTime {
            completion: Duration::from_micros(80),
            dispatch: Duration::from_micros(35),
            ..HostTime::default()
        });
        let mut late = 0;
        for _ in 0..3000 {
            runs.completed(at(0), true);
            late += u32::from(runs.due() > at(80));
            runs.wake(at(1000));
        }
        assert!((900..1140).contains(&late), "{late} of 3000");
    }

    #[test]
    fn before_blk_mq_every_event_runs_the_queue() {
        let mut runs = QueueRuns::new(HostTime::default());
        runs.declined(at(0));
        assert!(runs.is_asked());
        assert_eq!(runs.due(), Time::NEVER);
    }
}
