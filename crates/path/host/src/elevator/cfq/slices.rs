//! The slices: their order and their length, as in `block/cfq-iosched.c` of Linux 2.6.24.

use super::config::Config;
use super::queues::CfqQueues;
use crate::TickClock;
use fullstroke_contract::PriorityClass;
use fullstroke_units::{Duration, Time};

/// Idle time of the device before it serves requests of the idle class: `CFQ_IDLE_GRACE`.
const GRACE: Duration = Duration::from_millis(100);

/// Longest wait for a process with random requests. The process has just enough time to ask at
/// once, and so gets its share of time (`CFQ_MIN_TT` in `cfq_arm_slice_timer`).
const SEEKY_IDLE_MAX: Duration = Duration::from_millis(2);

/// The slice of the serving queue.
#[derive(Clone, Copy, Debug)]
struct Slice {
    queue: u32,
    /// End of the slice; none before its first completion.
    ends: Option<Time>,
    /// Process of the first request.
    process: Option<u32>,
    /// True if the expiry of the queue's oldest request was checked.
    begun: bool,
    /// True if the slice waits, or has waited in vain, for the next request.
    awaits: bool,
    /// End of this wait; never without a wait.
    idles_until: Time,
}

impl Slice {
    fn is_used(&self, now: Time) -> bool {
        self.ends.is_some_and(|ends| ends <= now)
    }
}

/// The present slice, and the rules for the order of slices.
#[derive(Debug)]
pub(super) struct Slices {
    /// Base length by kind, asynchronous and synchronous.
    lengths: [Duration; 2],
    idle: Duration,
    /// `GRACE` and `SEEKY_IDLE_MAX`, in terms of `clock`.
    grace: Duration,
    seeky_idle_max: Duration,
    clock: TickClock,
    slice: Option<Slice>,
    /// End of the wait of the idle class; never without such a wait.
    grace_ends: Time,
    /// Time of the last completion of another class.
    busy_until: Time,
}

impl Slices {
    pub(super) fn new(config: &Config, clock: TickClock) -> Slices {
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

    /// Returns the length of a slice. Each level adds or removes a fifth (`cfq_prio_slice`,
    /// `CFQ_SLICE_SCALE`).
    fn length(&self, synchronous: bool, level: u8) -> Duration {
        let base = self.lengths[usize::from(synchronous)];
        let step = self.clock.span(self.clock.count(base) / 5);
        base + step * 4 - step * u64::from(level)
    }

    fn length_of(&self, queue: u32, queues: &CfqQueues) -> Duration {
        self.length(queues[queue].synchronous, queues[queue].level)
    }

    /// Gives a queue its next turn. The shorter its slices and the more queues there are, the later
    /// the turn (`cfq_slice_offset`). The delay counts from now. If the last slice was taken away,
    /// the delay counts from its regular end (`slice_resid` in `cfq_service_tree_add`).
    pub(super) fn enqueue(&mut self, now: Time, queue: u32, queues: &mut CfqQueues) {
        let longest = self.length(true, 0).as_nanos() as i64;
        let shorter = longest.saturating_sub(self.length_of(queue, queues).as_nanos() as i64);
        let others = i64::from(queues.busy().saturating_sub(1));
        let residue = std::mem::take(&mut queues[queue].residue_ns);
        let delay = shorter.saturating_mul(others).saturating_add(residue);
        // The key 0 is reserved for the front.
        queues.enqueue(queue, now.as_nanos().saturating_add_signed(delay).max(1));
    }

    /// Performs the timers due at `now`: `cfq_idle_slice_timer`, `cfq_idle_class_timer`.
    pub(super) fn ring(&mut self, now: Time, queues: &mut CfqQueues) {
        if self.grace_ends <= now {
            self.grace_ends = Time::NEVER;
        }
        let Some(slice) = &mut self.slice else { return };
        let at = slice.idles_until;
        if at > now {
            return;
        }
        slice.idles_until = Time::NEVER;
        // Without another queue, nobody gains from the end of the slice (`out_cont` of
        // `cfq_idle_slice_timer`).
        if slice.is_used(at) || queues.busy() > 0 && queues[slice.queue].is_empty() {
            self.end(at, false, queues);
        }
    }

    pub(super) fn next_wake(&self) -> Time {
        self.slice
            .map_or(Time::NEVER, |slice| slice.idles_until)
            .min(self.grace_ends)
    }

    /// Returns the queue to serve now; none during a wait (`cfq_select_queue`).
    pub(super) fn select(&mut self, now: Time, queues: &mut CfqQueues) -> Option<u32> {
        if let Some(slice) = self.slice.filter(|slice| !slice.is_used(now)) {
            let queue = &queues[slice.queue];
            if !queue.is_empty() {
                return Some(slice.queue);
            }
            // The process may send its next request after the completion of the one in flight.
            if slice.idles_until != Time::NEVER || queue.in_flight > 0 && queue.idles {
                return None;
            }
        }
        self.end(now, false, queues);
        self.begin(now, queues)
    }

    fn begin(&mut self, now: Time, queues: &CfqQueues) -> Option<u32> {
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

    /// Ends the slice. If the slice was `taken` away, its rest is kept for the next one.
    pub(super) fn end(&mut self, now: Time, taken: bool, queues: &mut CfqQueues) {
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

    /// True at the first call in a slice.
    pub(super) fn begins(&mut self) -> bool {
        self.slice
            .as_mut()
            .is_some_and(|slice| !std::mem::replace(&mut slice.begun, true))
    }

    /// Ends the wait, because the slice has a request to send.
    pub(super) fn stop_idling(&mut self) {
        if let Some(slice) = &mut self.slice {
            slice.awaits = false;
            slice.idles_until = Time::NEVER;
        }
    }

    /// Records the process of a request of the slice.
    pub(super) fn sent_for(&mut self, process: u32) {
        if let Some(slice) = &mut self.slice {
            slice.process.get_or_insert(process);
        }
    }

    /// Returns the position of the process for which the slice waits, if it waits.
    pub(super) fn idles_at(&self, queues: &CfqQueues) -> Option<u64> {
        let slice = self.slice.filter(|slice| queues[slice.queue].is_empty())?;
        Some(queues.processes[slice.process? as usize].habits.position())
    }

    /// Notes the arrival of a request in `queue`, at a distance of `sectors` from the device's
    /// position. If the request is more urgent than the slice, its queue goes first
    /// (`cfq_preempt_queue`).
    pub(super) fn arrived(&mut self, now: Time, queue: u32, sectors: u64, queues: &mut CfqQueues) {
        let Some(slice) = &mut self.slice else { return };
        if slice.queue == queue {
            slice.idles_until = Time::NEVER;
        } else if slice.gives_way(now, queue, sectors, queues) {
            self.end(now, true, queues);
            queues.enqueue(queue, 0);
        }
    }

    /// Notes the completion of a request of `queue`: `cfq_completed_request`. The slice counts from
    /// the first completion, because no queue should pay for the seek to its data.
    pub(super) fn completed(&mut self, now: Time, queue: u32, queues: &mut CfqQueues) {
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
    /// Waits for the next request, if the queue is worth a wait (`cfq_arm_slice_timer`).
    fn idle(&mut self, now: Time, longest: Duration, seeky_max: Duration, queues: &CfqQueues) {
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

    /// True if the slice ends for a new request in another queue: `cfq_should_preempt`.
    fn gives_way(&self, now: Time, queue: u32, sectors: u64, queues: &CfqQueues) -> bool {
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
        // The request is as near as the one that the slice waits for.
        let near = |process: u32| {
            let habits = &queues.processes[process as usize].habits;
            habits.seeking().is_reliable() && sectors <= habits.seek()
        };
        self.awaits && self.process.is_some_and(near)
    }
}
