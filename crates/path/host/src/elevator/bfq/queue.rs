//! A queue: the synchronous requests of a process, or the asynchronous requests of an I/O priority.
//! Also the habits of the queue: place and time of its requests.

use super::super::fifos::RequestFifo;
use super::super::forest::SlotTree;
use super::super::habits::RecentMean;
use super::owner::Owner;
use super::raising::QueueFavour;
use super::rate::IMMEDIATE;
use super::tolerance::Tolerance;
use super::waker::Waker;
use fullstroke_contract::{Extent, PriorityClass};
use fullstroke_units::{Duration, Time};

/// Returns the weight of a level without favour: `bfq_ioprio_to_weight` of `block/bfq-wf2q.c`.
pub(super) fn weight(level: u8) -> u32 {
    (8 - u32::from(level)) * 10
}

/// Distance in sectors from which a request counts as a seek: `BFQQ_SEEK_THR`.
const SEEK: u64 = 800;
/// Number of seeks among the last 32 requests from which a queue is seeky: `BFQQ_SEEKY`.
const SEEKS: u32 = 20;
/// Window in which the share of time with requests is measured (`bfq_update_io_intensity`).
const WINDOW: Duration = Duration::from_millis(200);

/// True if the device has to seek far to `to`.
pub(super) fn is_far(from: u64, to: Extent) -> bool {
    from != 0 && from.abs_diff(to.start.0) > SEEK
}

/// Habits, learnt from arrivals and completions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    think: RecentMean,
    /// True if the next request will probably come within half the idle slice.
    pub(super) thinks_shortly: bool,
    /// True if the queue has requests for four fifths of the time.
    pub(super) is_io_bound: bool,
    observed_since: Time,
    /// Time without requests in nanoseconds, modulo 2^64 (`tot_idle_time`).
    ///
    /// The kernel sets the end of the last request to one nanosecond after the creation of the
    /// queue (`bfq_init_bfqq`). Since Linux 6.9 the clock stands still within a plug
    /// (`blk_time_get_ns`), so that the first request comes at the creation: the first pause is -1
    /// ns, a huge number. The next pause makes the sum right, unless the sum was halved before. So
    /// a process with several requests at a time counts as not I/O-bound for some seconds.
    paused: u64,
    /// The last 32 requests, the latest in bit 0: 1 = a seek.
    seeks: u32,
    /// End of the last request.
    pub(super) position: u64,
    /// Completion time of the last request; none yet.
    pub(super) completed: Option<Time>,
}

impl Habits {
    fn new(now: Time, thinks_shortly: bool) -> Habits {
        Habits {
            think: RecentMean::default(),
            thinks_shortly,
            is_io_bound: true,
            observed_since: now,
            paused: 0,
            // The first request is almost certainly a seek.
            seeks: 1,
            position: 0,
            completed: None,
        }
    }

    /// Returns these habits, saved before a merge, with the seeks of the present queue: the kernel
    /// saves no seeks (`bfq_bfqq_resume_state`).
    pub(super) fn resumed(self, present: &Habits) -> Habits {
        Habits {
            seeks: present.seeks,
            position: present.position,
            ..self
        }
    }

    /// True if most of the requests are far from each other.
    pub(super) fn is_seeky(&self) -> bool {
        self.seeks.count_ones() >= SEEKS
    }

    /// True if all of the requests are far from each other.
    pub(super) fn is_totally_seeky(&self) -> bool {
        self.seeks == u32::MAX
    }

    /// Records the think time before a request at an empty queue.
    pub(super) fn note_think_time(&mut self, now: Time, slice_idle: Duration) {
        let time = self
            .completed
            .map_or(Duration::MAX, |completed| now.since(completed));
        self.think.add(time.min(slice_idle * 2).as_nanos());
    }

    /// True if the process certainly thinks for more than half of `slice_idle`.
    pub(super) fn thinks_longer_than_half(&self, slice_idle: Duration) -> bool {
        self.think.is_reliable() && self.think.mean() > slice_idle.as_nanos() / 2
    }

    /// Records an arrival. `drained` is true if no request waited or was in flight, `new` for the
    /// first request.
    pub(super) fn arrived(&mut self, now: Time, extent: Extent, drained: bool, new: bool) {
        self.seeks = self.seeks << 1 | u32::from(is_far(self.position, extent));
        self.position = extent.end().0;
        if drained {
            let pause = match self.completed {
                Some(completed) => now.since(completed).as_nanos(),
                None => now.since(self.observed_since).as_nanos().wrapping_sub(1),
            };
            self.paused = self.paused.wrapping_add(pause);
        }
        if new {
            return;
        }
        let observed = now.since(self.observed_since);
        self.is_io_bound = self.paused.wrapping_mul(5) <= observed.as_nanos();
        if observed > WINDOW {
            self.observed_since += observed / 2;
            // Old pauses fade together with the window.
            self.paused /= 2;
        }
    }

    /// True if a request at `now` comes early enough to meet a wait since the last completion
    /// (`arrived_in_time` in `bfq_bfqq_handle_idle_busy_switch`).
    pub(super) fn comes_in_time(&self, now: Time, slice_idle: Duration) -> bool {
        self.completed
            .is_some_and(|completed| now <= completed + slice_idle * 3)
    }
}

/// Contribution of a queue to the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueContribution {
    /// True if the queue has requests or the turn.
    pub(super) busy: bool,
    /// True if the queue is busy and favoured.
    pub(super) raised: bool,
    /// True if the queue has requests, waiting or in flight, and is not favoured.
    pub(super) plain: bool,
}

/// A queue.
#[derive(Clone, Debug)]
pub(super) struct BfqQueue {
    /// The process, if the queue has just one; `None` for a shared queue.
    pub(super) sole: Option<u32>,
    /// Number of processes with requests in this queue. Processes of a queue that is about to merge
    /// into this queue count, too (`bfqq_process_refs`).
    pub(super) processes: u32,
    /// Queue into which this queue merges (`new_bfqq`).
    pub(super) merges_into: Option<u32>,
    /// True if requests of several processes come here, or came here (`coop`).
    pub(super) shared: bool,
    /// True if the queue must be broken apart, because its processes do not work closely together
    /// (`split_coop`).
    pub(super) to_split: bool,
    /// Time of the creation.
    pub(super) created: Time,
    /// Time when the queue was split off a shared queue.
    pub(super) split: Option<Time>,
    /// Number of requests, waiting and in flight (`allocated`).
    pub(super) allocated: u32,
    /// The queue whose completions bring new requests here.
    pub(super) waker: Waker,
    /// The queues of which this queue is the waker, the latest last.
    pub(super) woken: Vec<u32>,
    pub(super) class: PriorityClass,
    pub(super) level: u8,
    pub(super) synchronous: bool,
    /// Waiting requests by address, and by arrival.
    pub(super) sorted: SlotTree,
    pub(super) arrived: RequestFifo,
    /// The next request.
    pub(super) next: Option<u32>,
    pub(super) busy: bool,
    /// Number of requests in flight.
    pub(super) dispatched: u32,
    /// Smallest size of the next budget.
    pub(super) max_budget: u64,
    /// Latest regular end of the turn.
    pub(super) turn_ends: Time,
    /// End of the last turn.
    pub(super) left_service: Time,
    /// Time since which no request waits or is in flight; none if there was never a request.
    pub(super) idle_since: Option<Time>,
    /// True if the queue lost its turn because it had no requests. The queue may then continue with
    /// the rest of its budget.
    pub(super) may_resume: bool,
    /// True if the age of the oldest request was checked in this turn.
    pub(super) looked_at_age: bool,
    pub(super) habits: Habits,
    /// Tolerance for requests of other queues.
    pub(super) tolerance: Tolerance,
    pub(super) raising: QueueFavour,
    /// True until the first request.
    pub(super) new: bool,
    pub(super) in_large_burst: bool,
    pub(super) standing: QueueContribution,
}

impl BfqQueue {
    pub(super) fn new(owner: Owner, now: Time, max_budget: u64) -> BfqQueue {
        let (class, level) = owner.priority();
        let synchronous = matches!(owner, Owner::Process(..));
        let thinks_shortly = synchronous && class != PriorityClass::Idle;
        BfqQueue {
            sole: None,
            processes: 0,
            merges_into: None,
            shared: false,
            to_split: false,
            created: now,
            split: None,
            allocated: 0,
            waker: Waker::default(),
            woken: Vec::new(),
            class,
            level,
            synchronous,
            sorted: SlotTree::default(),
            arrived: RequestFifo::default(),
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
            raising: QueueFavour::new(now),
            new: synchronous,
            in_large_burst: false,
            standing: QueueContribution::default(),
        }
    }

    /// True if the queue was split off a shared queue at most `time` ago.
    pub(super) fn is_split_for(&self, now: Time, time: Duration) -> bool {
        self.split.is_some_and(|split| split + time >= now)
    }

    /// True if the queue has been idle for longer than `time`.
    pub(super) fn is_idle_for(&self, now: Time, time: Duration) -> bool {
        self.dispatched == 0 && self.idle_since.is_none_or(|since| since + time < now)
    }

    /// Returns the contribution to the counts.
    pub(super) fn present_standing(&self) -> QueueContribution {
        let raised = self.raising.is_raised();
        QueueContribution {
            busy: self.busy,
            raised: self.busy && raised,
            plain: (self.busy || self.dispatched > 0) && !raised,
        }
    }

    /// Returns the time for which the device is left idle for the next request. A favoured queue
    /// gets a longer time, because its share would suffer most. A seeky queue gets just the time to
    /// ask at once (`bfq_arm_slice_timer`).
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn arrives(habits: &mut Habits, ms: u64, drained: bool, new: bool) -> bool {
        habits.arrived(at(ms), Extent::new(1000 * ms, 8), drained, new);
        habits.is_io_bound
    }

    #[test]
    fn a_process_that_never_pauses_is_not_io_bound_in_its_first_seconds() {
        let mut habits = Habits::new(at(0), true);
        arrives(&mut habits, 0, true, true);
        let bound: Vec<u64> = (1..200)
            .map(|step| step * 100)
            .filter(|&ms| arrives(&mut habits, ms, false, false))
            .collect();
        // The sum of the pauses begins at 2^64 - 1 and is halved about each 200 ms.
        assert!((4_000..10_000).contains(&bound[0]), "{}", bound[0]);
    }

    #[test]
    fn the_first_pause_makes_the_sum_of_pauses_right() {
        let mut habits = Habits::new(at(0), true);
        arrives(&mut habits, 0, true, true);
        habits.completed = Some(at(9));
        assert!(arrives(&mut habits, 10, true, false));
        // A process that pauses for most of the time is not I/O-bound.
        habits.completed = Some(at(11));
        assert!(!arrives(&mut habits, 100, true, false));
    }
}
