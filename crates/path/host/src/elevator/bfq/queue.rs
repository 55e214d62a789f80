//! A queue: the synchronous requests of a process, or the asynchronous ones of
//! an I/O priority; and what is learnt about where and when they come.

use super::super::fifos::Fifo;
use super::super::forest::Tree;
use super::super::habits::RecentMean;
use super::injection::Tolerance;
use super::owner::Owner;
use super::raising::Raising;
use super::rate::IMMEDIATE;
use fullstroke_contract::{Extent, PriorityClass};
use fullstroke_units::{Duration, Time};

/// The weight of a level that is not raised: `bfq_ioprio_to_weight` of
/// `block/bfq-wf2q.c`.
pub(super) fn weight(level: u8) -> u32 {
    (8 - u32::from(level)) * 10
}

/// A request this many sectors from the one before it is a seek:
/// `BFQQ_SEEK_THR`.
const SEEK: u64 = 800;
/// Of the last 32 requests so many must be seeks for a queue to be seeky:
/// `BFQQ_SEEKY`.
const SEEKS: u32 = 20;
/// The share of time that an I/O-bound queue has requests is looked at over as
/// long, at most (`bfq_update_io_intensity`).
const WINDOW: Duration = Duration::from_millis(200);

/// Whether the device has to go far from one place to another.
pub(super) fn is_far(from: u64, to: Extent) -> bool {
    from != 0 && from.abs_diff(to.start.0) > SEEK
}

/// What is learnt from arrivals and completions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    think: RecentMean,
    /// Whether the next request is likely to come within half the idle slice.
    pub(super) thinks_shortly: bool,
    /// Whether it has requests for four fifths of the time.
    pub(super) is_io_bound: bool,
    observed_since: Time,
    paused: Duration,
    /// The last requests, the latest in bit 0: 1 = a seek.
    seeks: u32,
    /// Where the last request ended.
    pub(super) position: u64,
    /// When the last request completed; none yet.
    pub(super) completed: Option<Time>,
}

impl Habits {
    fn new(now: Time, thinks_shortly: bool) -> Habits {
        Habits {
            think: RecentMean::default(),
            thinks_shortly,
            is_io_bound: true,
            observed_since: now,
            paused: Duration::ZERO,
            // The first request is a seek, almost certainly.
            seeks: 1,
            position: 0,
            completed: None,
        }
    }

    /// Whether most of the requests are far from each other.
    pub(super) fn is_seeky(&self) -> bool {
        self.seeks.count_ones() >= SEEKS
    }

    /// Whether all of them are.
    pub(super) fn is_totally_seeky(&self) -> bool {
        self.seeks == u32::MAX
    }

    /// The next request comes while none is there.
    pub(super) fn thought(&mut self, now: Time, slice_idle: Duration) {
        let time = self
            .completed
            .map_or(Duration::MAX, |completed| now.since(completed));
        self.think.add(time.min(slice_idle * 2).as_nanos());
    }

    /// Whether it is known to think for more than half of `slice_idle`.
    pub(super) fn thinks_longer_than_half(&self, slice_idle: Duration) -> bool {
        self.think.is_reliable() && self.think.mean() > slice_idle.as_nanos() / 2
    }

    /// A request comes. `drained` if nothing waited or was in flight, and `new`
    /// if none has come before.
    pub(super) fn arrived(&mut self, now: Time, extent: Extent, drained: bool, new: bool) {
        self.seeks = self.seeks << 1 | u32::from(is_far(self.position, extent));
        self.position = extent.end().0;
        if let Some(completed) = self.completed.filter(|_| drained) {
            self.paused += now.since(completed);
        }
        if new {
            return;
        }
        let observed = now.since(self.observed_since);
        self.is_io_bound = self.paused * 5 <= observed;
        if observed > WINDOW {
            self.observed_since += observed / 2;
            self.paused = self.paused / 2;
        }
    }

    /// Whether a request at `now` follows the last completion so soon that it
    /// was only not waited for (`arrived_in_time` in
    /// `bfq_bfqq_handle_idle_busy_switch`).
    pub(super) fn comes_in_time(&self, now: Time, slice_idle: Duration) -> bool {
        self.completed
            .is_some_and(|completed| now <= completed + slice_idle * 3)
    }
}

/// What a queue counts for at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// It has requests, or has its turn.
    pub(super) busy: bool,
    /// It is also favoured.
    pub(super) raised: bool,
    /// It has requests, or the device has some of it, and it is not favoured.
    pub(super) plain: bool,
}

/// A queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub(super) owner: Owner,
    pub(super) class: PriorityClass,
    pub(super) level: u8,
    pub(super) synchronous: bool,
    /// Its requests by address, and by arrival.
    pub(super) sorted: Tree,
    pub(super) arrived: Fifo,
    /// The next request.
    pub(super) next: Option<u32>,
    pub(super) busy: bool,
    /// Requests that the device has.
    pub(super) dispatched: u32,
    /// What its next budget will be, at least.
    pub(super) max_budget: u64,
    /// When its turn should end.
    pub(super) turn_ends: Time,
    /// When its last turn ended.
    pub(super) left_service: Time,
    /// Since when it has neither requests nor any in flight; since ever.
    pub(super) idle_since: Option<Time>,
    /// It lost its turn because it had no requests, and might go on with the
    /// budget that it has left.
    pub(super) may_resume: bool,
    /// The age of its oldest request has been looked at in this turn.
    pub(super) looked_at_age: bool,
    pub(super) habits: Habits,
    /// How many requests of others it bears.
    pub(super) tolerance: Tolerance,
    pub(super) raising: Raising,
    /// No request has come yet.
    pub(super) new: bool,
    pub(super) in_large_burst: bool,
    pub(super) standing: Standing,
}

impl Queue {
    pub(super) fn new(owner: Owner, now: Time, max_budget: u64) -> Queue {
        let (class, level) = owner.priority();
        let synchronous = matches!(owner, Owner::Process(..));
        let thinks_shortly = synchronous && class != PriorityClass::Idle;
        Queue {
            owner,
            class,
            level,
            synchronous,
            sorted: Tree::default(),
            arrived: Fifo::default(),
            next: None,
            busy: false,
            dispatched: 0,
            max_budget,
            turn_ends: Time::ZERO,
            left_service: now,
            idle_since: None,
            may_resume: false,
            looked_at_age: false,
            habits: Habits::new(now, thinks_shortly),
            tolerance: Tolerance::new(now, thinks_shortly),
            raising: Raising::new(now),
            new: synchronous,
            in_large_burst: false,
            standing: Standing::default(),
        }
    }

    /// Whether it has had nothing to do for longer than `time`.
    pub(super) fn is_idle_for(&self, now: Time, time: Duration) -> bool {
        self.dispatched == 0 && self.idle_since.is_none_or(|since| since + time < now)
    }

    /// What it counts for.
    pub(super) fn present_standing(&self) -> Standing {
        let raised = self.raising.is_raised();
        Standing {
            busy: self.busy,
            raised: self.busy && raised,
            plain: (self.busy || self.dispatched > 0) && !raised,
        }
    }

    /// How long the device is left idle for its next request: longer for the
    /// favoured, whose share would suffer most; for who seeks only as long as it
    /// takes to ask at once (`bfq_arm_slice_timer`).
    pub(super) fn idle_slice(&self, slice_idle: Duration, asymmetric: bool) -> Duration {
        if self.raising.is_raised() {
            return slice_idle.max(Duration::from_millis(20));
        }
        if self.habits.is_seeky() && !asymmetric {
            slice_idle.min(IMMEDIATE)
        } else {
            slice_idle
        }
    }
}
