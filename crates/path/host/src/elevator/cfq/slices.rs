//! Whose turn it is, and for how long, as in `block/cfq-iosched.c` of Linux
//! 2.6.24.

use super::Config;
use super::queues::Queues;
use crate::Clock;
use fullstroke_contract::PriorityClass;
use fullstroke_units::{Duration, Time};

/// How long the device must have had nothing else to do before it serves
/// requests of the idle class: `CFQ_IDLE_GRACE`.
const GRACE: Duration = Duration::from_millis(100);

/// The longest wait for a process that seeks: enough to let it ask at once, so
/// that it has its share of time (`CFQ_MIN_TT` in `cfq_arm_slice_timer`).
const SEEKY_IDLE_MAX: Duration = Duration::from_millis(2);

/// The slice that a queue has.
#[derive(Clone, Copy, Debug)]
struct Slice {
    queue: u32,
    /// It counts from its first completion on.
    ends: Option<Time>,
    /// The process of its first request.
    process: Option<u32>,
    /// Whether the queue's oldest request was looked at.
    begun: bool,
    /// Whether it waits, or has waited in vain, for its next request.
    awaits: bool,
    /// Until when it waits for that; never if it does not.
    idles_until: Time,
}

impl Slice {
    fn is_used(&self, now: Time) -> bool {
        self.ends.is_some_and(|ends| ends <= now)
    }
}

/// The present slice, and the rules by which slices go.
#[derive(Debug)]
pub(super) struct Slices {
    /// By kind, asynchronous and synchronous.
    lengths: [Duration; 2],
    idle: Duration,
    /// `GRACE` and `SEEKY_IDLE_MAX`, as `clock` sees them.
    grace: Duration,
    seeky_idle_max: Duration,
    clock: Clock,
    slice: Option<Slice>,
    /// Until when the idle class must wait; never if none does.
    grace_ends: Time,
    /// When the last request of another class completed.
    busy_until: Time,
}

impl Slices {
    pub(super) fn new(config: &Config, clock: Clock) -> Slices {
        Slices {
            lengths: [config.slice_async, config.slice_sync],
            idle: config.slice_idle,
            grace: clock.whole(GRACE),
            seeky_idle_max: clock.whole(SEEKY_IDLE_MAX),
            clock,
            slice: None,
            grace_ends: Time::NEVER,
            busy_until: Time::ZERO,
        }
    }

    /// The length of a slice: a fifth more or less with each level
    /// (`cfq_prio_slice`, `CFQ_SLICE_SCALE`).
    fn length(&self, synchronous: bool, level: u8) -> Duration {
        let base = self.lengths[usize::from(synchronous)];
        let step = self.clock.span(self.clock.count(base) / 5);
        base + step * 4 - step * u64::from(level)
    }

    fn length_of(&self, queue: u32, queues: &Queues) -> Duration {
        self.length(queues[queue].synchronous, queues[queue].level)
    }

    /// Gives a queue its next turn: the later, the shorter its slices are and
    /// the more queues there are (`cfq_slice_offset`). It counts from now, or, if
    /// its last slice was taken away, from when that should have ended
    /// (`slice_resid` in `cfq_service_tree_add`).
    pub(super) fn enqueue(&mut self, now: Time, queue: u32, queues: &mut Queues) {
        let longest = self.length(true, 0).as_nanos() as i64;
        let shorter = longest.saturating_sub(self.length_of(queue, queues).as_nanos() as i64);
        let others = i64::from(queues.busy().saturating_sub(1));
        let residue = std::mem::take(&mut queues[queue].residue_ns);
        let delay = shorter.saturating_mul(others).saturating_add(residue);
        // 0 is the front.
        queues.enqueue(queue, now.as_nanos().saturating_add_signed(delay).max(1));
    }

    /// What was due before `now` happens: `cfq_idle_slice_timer`,
    /// `cfq_idle_class_timer`.
    pub(super) fn ring(&mut self, now: Time, queues: &mut Queues) {
        if self.grace_ends <= now {
            self.grace_ends = Time::NEVER;
        }
        let Some(slice) = &mut self.slice else { return };
        let at = slice.idles_until;
        if at > now {
            return;
        }
        slice.idles_until = Time::NEVER;
        if slice.is_used(at) || queues.busy() > 0 && queues[slice.queue].is_empty() {
            self.end(at, false, queues);
        }
    }

    pub(super) fn next_wake(&self) -> Time {
        self.slice
            .map_or(Time::NEVER, |slice| slice.idles_until)
            .min(self.grace_ends)
    }

    /// The queue that may send requests now; none if one is waited for
    /// (`cfq_select_queue`).
    pub(super) fn select(&mut self, now: Time, queues: &mut Queues) -> Option<u32> {
        if let Some(slice) = self.slice.filter(|slice| !slice.is_used(now)) {
            let queue = &queues[slice.queue];
            if !queue.is_empty() {
                return Some(slice.queue);
            }
            if slice.idles_until != Time::NEVER || queue.in_flight > 0 && queue.idles {
                return None;
            }
        }
        self.end(now, false, queues);
        self.begin(now, queues)
    }

    fn begin(&mut self, now: Time, queues: &Queues) -> Option<u32> {
        let queue = queues.first()?;
        let grace_ends = self.busy_until + self.grace;
        if queues[queue].class == PriorityClass::Idle && now < grace_ends {
            self.grace_ends = grace_ends;
            return None;
        }
        self.grace_ends = Time::NEVER;
        let idles_until = Time::NEVER;
        assert!(
            self.slice.is_none() && !queues[queue].is_empty(),
            "queue {queue} gets a slice beside another, or has no request"
        );
        self.slice = Some(Slice {
            queue,
            ends: None,
            process: None,
            begun: false,
            awaits: false,
            idles_until,
        });
        Some(queue)
    }

    /// Ends the slice. What is left of it is kept if it was `taken`.
    pub(super) fn end(&mut self, now: Time, taken: bool, queues: &mut Queues) {
        let Some(Slice { queue, ends, .. }) = self.slice.take() else {
            return;
        };
        if let Some(ends) = ends.filter(|_| taken) {
            queues[queue].residue_ns = ends.as_nanos() as i64 - now.as_nanos() as i64;
        }
        if !queues[queue].is_empty() {
            self.enqueue(now, queue, queues);
        }
    }

    /// Whether this is asked for the first time in the slice.
    pub(super) fn begins(&mut self) -> bool {
        self.slice
            .as_mut()
            .is_some_and(|slice| !std::mem::replace(&mut slice.begun, true))
    }

    /// The slice has something to send.
    pub(super) fn stop_idling(&mut self) {
        if let Some(slice) = &mut self.slice {
            slice.awaits = false;
            slice.idles_until = Time::NEVER;
        }
    }

    /// A request of `process` is sent in the slice.
    pub(super) fn sent_for(&mut self, process: u32) {
        if let Some(slice) = &mut self.slice {
            slice.process.get_or_insert(process);
        }
    }

    /// Where the process is that the slice waits for, if it does.
    pub(super) fn idles_at(&self, queues: &Queues) -> Option<u64> {
        let slice = self.slice.filter(|slice| queues[slice.queue].is_empty())?;
        Some(queues.processes[slice.process? as usize].habits.position())
    }

    /// A request has arrived in `queue`, so far from where the device is. If it is
    /// more urgent, its queue goes first of all (`cfq_preempt_queue`).
    pub(super) fn arrived(&mut self, now: Time, queue: u32, sectors: u64, queues: &mut Queues) {
        let Some(slice) = &mut self.slice else { return };
        if slice.queue == queue {
            slice.idles_until = Time::NEVER;
        } else if slice.gives_way(now, queue, sectors, queues) {
            self.end(now, true, queues);
            queues.enqueue(queue, 0);
        }
    }

    /// A request of `queue` has completed: `cfq_completed_request`. The slice counts
    /// from the first, so that no queue pays for the seek to it.
    pub(super) fn completed(&mut self, now: Time, queue: u32, queues: &mut Queues) {
        if queues[queue].class != PriorityClass::Idle {
            self.busy_until = now;
        }
        let length = self.length_of(queue, queues);
        let Some(slice) = self.slice.as_mut().filter(|slice| slice.queue == queue) else {
            return;
        };
        slice.ends.get_or_insert(now + length);
        if slice.is_used(now) {
            self.end(now, true, queues);
        } else if queues[queue].synchronous && queues[queue].is_empty() {
            slice.idle(now, self.idle, self.seeky_idle_max, queues);
        }
    }
}

impl Slice {
    /// Waits for the next request, if the queue is worth it
    /// (`cfq_arm_slice_timer`).
    fn idle(&mut self, now: Time, longest: Duration, seeky_max: Duration, queues: &Queues) {
        let Some(process) = self.process else { return };
        if longest == Duration::ZERO || !queues[self.queue].idles {
            return;
        }
        let habits = &queues.processes[process as usize].habits;
        let seeky = habits.seeking().is_reliable() && habits.is_seeky();
        let span = if seeky {
            longest.min(seeky_max)
        } else {
            longest
        };
        self.awaits = true;
        self.idles_until = now + span;
    }

    /// Whether it ends for a request that has arrived in another queue:
    /// `cfq_should_preempt`.
    fn gives_way(&self, now: Time, queue: u32, sectors: u64, queues: &Queues) -> bool {
        let (own, other) = (&queues[self.queue], &queues[queue]);
        if self.is_used(now) {
            return true;
        }
        if other.class == PriorityClass::Idle || own.class == PriorityClass::Idle {
            return other.class != PriorityClass::Idle;
        }
        if other.synchronous && !own.synchronous {
            return true;
        }
        // As near as what it waits for.
        let near = |process: u32| {
            let habits = &queues.processes[process as usize].habits;
            habits.seeking().is_reliable() && sectors <= habits.seek()
        };
        self.awaits && self.process.is_some_and(near)
    }
}
