//! Turns: start, end, charge, and the next budget.

use super::Bfq;
use super::queue::{BfqQueue, weight};
use super::raising::{FavourReason, tick_of};
use super::tolerance::Injection;
use crate::block::Requests;
use fullstroke_contract::PriorityClass;
use fullstroke_units::{Duration, Time};

/// Reason for the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// The device was left idle for long enough.
    TooIdle,
    /// The turn took too long.
    TimedOut,
    /// The budget does not suffice for the next request.
    Exhausted,
    /// The queue has no requests, and the device does not wait for one.
    NothingMore,
    /// Another queue is more urgent.
    Preempted,
}

/// A shorter turn says nothing of a queue's speed (`bfq_bfqq_is_slow`), and is charged as one seek.
const SHORT: Duration = Duration::from_millis(1);
/// Charge of a seek, as long as `bfq_slice_idle` by default.
const SEEK: Duration = Duration::from_millis(8);
/// A longer turn tells the speed of the queue.
const TELLING: Duration = Duration::from_millis(20);

impl Bfq {
    /// Ends the turn of a queue whose wait was in vain.
    pub(super) fn tick(&mut self, now: Time, requests: &Requests) {
        self.service.at(now);
        let Some(queue) = self.service.serving().filter(|_| self.idle_until <= now) else {
            return;
        };
        let at = self.idle_until;
        let end = if self.queue(queue).turn_ends <= at {
            TurnEnd::TimedOut
        } else {
            TurnEnd::TooIdle
        };
        // The charge leaves out the time of the wait.
        self.end_turn(at, self.idle_since, end, requests);
    }

    /// Returns the queue of the next request; `None` during a wait for a queue without requests.
    pub(super) fn select(&mut self, now: Time, requests: &Requests) -> Option<u32> {
        if let Some(queue) = self.service.serving()
            && self.may_time_out(now, queue)
            && !self.must_idle(queue)
        {
            self.end_turn(now, now, TurnEnd::TimedOut, requests);
        }
        loop {
            let queue = match self.service.serving() {
                Some(queue) => queue,
                None => self.begin_turn(now)?,
            };
            let held = self.queue(queue);
            match held.next {
                Some(next)
                    if self.charge(queue, next, requests) <= self.service.entity(queue).left() =>
                {
                    self.idle_until = Time::NEVER;
                    return Some(queue);
                }
                Some(_) => self.end_turn(now, now, TurnEnd::Exhausted, requests),
                None if self.idle_until != Time::NEVER => return None,
                None if held.dispatched > 0 && self.better_to_idle(queue) => return None,
                None => self.end_turn(now, now, TurnEnd::NothingMore, requests),
            }
        }
    }

    /// True if the turn has lasted too long. A turn with a wait may finish, unless it has used
    /// little of its budget (`bfq_may_expire_for_budg_timeout`).
    fn may_time_out(&self, now: Time, queue: u32) -> bool {
        let entity = self.service.entity(queue);
        let slow = entity.left() >= entity.budget / 3;
        (self.idle_until == Time::NEVER || slow) && self.queue(queue).turn_ends <= now
    }

    fn begin_turn(&mut self, now: Time) -> Option<u32> {
        let queue = self.service.take_next()?;
        self.budgets_assigned = (7 * self.budgets_assigned + 256) / 8;
        let timeout = self.config.timeout_sync;
        let config = self.config;
        let BfqQueue {
            raising,
            looked_at_age,
            left_service,
            turn_ends,
            ..
        } = self.queue_mut(queue);
        *looked_at_age = false;
        raising.turn_begins(tick_of(now), tick_of(*left_service));
        let longer = match raising.favour {
            Some(FavourReason::SoftRealTime) => 1,
            _ => raising.factor(&config),
        };
        // The factor may make the turn longer than any run. The end of the turn is capped then.
        *turn_ends = now.capped_add(timeout.saturating_mul(u64::from(longer)));
        self.turn_began = now;
        // No request of this turn has a place yet (`__bfq_set_in_service_queue`).
        self.serving_position = 0;
        Some(queue)
    }

    /// Charges a queue for `sectors`.
    pub(super) fn served(&mut self, now: Time, queue: u32, sectors: u64) {
        self.queue_mut(queue).raising.served(tick_of(now), sectors);
        self.service.serve(queue, sectors);
    }

    /// Reviews the turn after a request: updates the favour of the queue, and limits the idle class
    /// to one request at a time beside other queues.
    pub(super) fn review_turn(&mut self, now: Time, queue: u32, requests: &Requests) {
        let longest = self.raising_time();
        let BfqQueue {
            raising,
            in_large_burst,
            class,
            ..
        } = self.queue_mut(queue);
        raising.review(tick_of(now), *in_large_burst, longest);
        let idle_class = *class == PriorityClass::Idle;
        self.reweigh(queue);
        // A favour that has begun or ended counts at once (`bfq_update_wr_data`).
        let held = self.queue(queue);
        let raised = held.raising.is_raised();
        if (self.service.weight(queue) > weight(held.level)) != raised {
            self.service.apply_weight(queue);
        }
        if idle_class && self.population.busy() > 1 {
            self.end_turn(now, now, TurnEnd::Exhausted, requests);
        }
    }

    /// Ends the present turn. `worked_until` is the last time at which the queue had work
    /// (`bfq_bfqq_expire`).
    pub(super) fn end_turn(
        &mut self,
        now: Time,
        worked_until: Time,
        end: TurnEnd,
        requests: &Requests,
    ) {
        let Some(queue) = self.service.serving() else {
            return;
        };
        self.charge_time(now, worked_until, queue, end);
        let config = self.config;
        let held = self.queue_mut(queue);
        let empty = held.sorted.is_empty();
        if config.low_latency {
            held.raising
                .turn_ends(tick_of(now), empty, held.dispatched > 0, &config);
        }
        held.to_split |= held.shared && held.habits.is_seeky();
        held.left_service = now;
        self.injection = Injection::default();
        self.adapt_budget(queue, end, requests);
        self.idle_until = Time::NEVER;
        if empty && !(end == TurnEnd::Preempted && self.idling_keeps_shares(queue)) {
            let held = self.queue_mut(queue);
            held.busy = false;
            if held.dispatched == 0 {
                held.idle_since = Some(now);
            }
            self.service.deactivate(queue);
            self.recount(queue);
        } else {
            self.service.requeue(queue);
        }
        let held = &mut self.queues[queue as usize];
        held.may_resume = !held.busy && !matches!(end, TurnEnd::TimedOut | TurnEnd::Exhausted);
        if !held.may_resume {
            self.service.entity_mut(queue).service = 0;
        }
        self.retire(queue);
    }

    /// Charges a slow queue for its time, as if the device had worked at its peak rate. So slow
    /// queues share time, and fast queues share sectors. (The kernel does not charge a queue for a
    /// whole `timeout_sync`, and so not the slowest queues.)
    fn charge_time(&mut self, now: Time, worked_until: Time, queue: u32, end: TurnEnd) {
        let (held, entity) = (self.queue(queue), self.service.entity(queue));
        let (slow, time) = self.speed(worked_until, queue);
        let late = end == TurnEnd::TimedOut && entity.left() >= entity.budget / 3;
        if held.raising.is_raised() || !(slow || late) {
            return;
        }
        // In whole milliseconds (`bfq_bfqq_charge_time`).
        let [time, timeout] =
            [time, self.config.timeout_sync].map(|time| time.as_nanos() / 1_000_000);
        let mut charge = entity.service;
        charge = charge.max(self.budget_max * time.min(timeout) / timeout);
        assert!(
            charge >= entity.service,
            "queue {queue} had {} sectors, and is charged {charge}",
            entity.service
        );
        let missing = charge - entity.service;
        let entity = self.service.entity_mut(queue);
        entity.budget = entity.budget.max(charge);
        self.served(now, queue, missing);
    }

    /// Returns true if the queue was slow in this turn, and the time of the turn.
    fn speed(&self, worked_until: Time, queue: u32) -> (bool, Duration) {
        let held = self.queue(queue);
        let time = worked_until.since(self.turn_began);
        if !held.synchronous {
            return (false, Duration::ZERO);
        }
        if time < SHORT {
            return (held.habits.is_seeky(), SEEK);
        }
        let slow = if time > TELLING {
            self.service.entity(queue).service < self.budget_max / 2
        } else {
            held.habits.is_seeky()
        };
        (slow, time)
    }

    /// Sets the next budget. The budget grows if the queue could have used more, and shrinks if it
    /// did not use all. Favoured queues get small budgets, so that their next turn comes soon
    /// (`__bfq_bfqq_recalc_budget`).
    fn adapt_budget(&mut self, queue: u32, end: TurnEnd, requests: &Requests) {
        let (held, min, max) = (self.queue(queue), self.budget_min(), self.budget_max);
        let mut budget = if held.raising.is_raised() {
            2 * min
        } else {
            held.max_budget
        };
        if !held.synchronous {
            budget = max;
        } else if !held.raising.is_raised() {
            // `__bfq_bfqq_recalc_budget`: a queue that used up its budget gets more, a queue that
            // paused without need gets less.
            budget = match end {
                TurnEnd::TooIdle if held.dispatched > 0 => (2 * budget).min(max),
                TurnEnd::TooIdle if budget > 5 * min => budget - 4 * min,
                TurnEnd::TooIdle => min,
                TurnEnd::TimedOut => (2 * budget).min(max),
                TurnEnd::Exhausted => (4 * budget).min(max),
                TurnEnd::NothingMore => self.service.entity(queue).service.max(min),
                TurnEnd::Preempted => return,
            };
        }
        if self.knows_budgets() && self.config.max_budget == 0 {
            budget = budget.min(max);
        }
        let needed = held.next.map(|next| self.charge(queue, next, requests));
        self.queue_mut(queue).max_budget = budget;
        if let Some(needed) = needed {
            self.service.entity_mut(queue).budget = budget.max(needed);
        }
    }

    /// Sets the largest budget after a new measurement of the device.
    pub(super) fn retune(&mut self) {
        if self.config.max_budget == 0 {
            self.budget_max = self.rate.sectors_in(self.config.timeout_sync).max(1);
        }
    }

    /// Finishes the completed request in `slot`.
    pub(super) fn finish(&mut self, now: Time, slot: u32, requests: &Requests) {
        let queue = self.holders[slot as usize];
        // The next two calls come before the decrement of `in_driver`: both count the completed
        // request as in flight.
        self.conclude(now, queue, slot);
        self.sample_queueing();
        assert!(
            self.in_driver > 0 && self.queue(queue).dispatched > 0,
            "slot {slot} comes back, and the device has none of queue {queue}"
        );
        self.in_driver -= 1;
        let config = self.config;
        let held = &mut self.queues[queue as usize];
        held.dispatched -= 1;
        held.allocated -= 1;
        held.habits.completed = Some(now);
        // Completions of a shared queue say nothing of one process.
        self.last_completed = (!held.shared).then_some(queue);
        self.processes[self.requesters[slot as usize] as usize].requests -= 1;
        if held.dispatched == 0 && !held.busy {
            held.idle_since = Some(now);
        }
        if held.dispatched == 0 && held.sorted.is_empty() {
            held.raising.drained(tick_of(now), &config);
        }
        self.recount(queue);
        if self
            .rate
            .completed(now.since(self.last_completion), self.last_completion)
        {
            self.retune();
        }
        self.last_completion = now;
        if self.service.serving() == Some(queue) {
            self.go_on_or_end(now, queue, requests);
        }
        self.retire(queue);
    }

    /// Continues or ends the turn after a completion of the serving queue.
    fn go_on_or_end(&mut self, now: Time, queue: u32, requests: &Requests) {
        let held = self.queue(queue);
        let (empty, drained) = (held.sorted.is_empty(), held.dispatched == 0);
        if self.must_idle(queue) {
            if drained {
                self.begin_to_idle(now, queue);
            }
        } else if self.may_time_out(now, queue) {
            self.end_turn(now, now, TurnEnd::TimedOut, requests);
        } else if empty {
            self.end_turn(now, now, TurnEnd::NothingMore, requests);
        }
    }
}
