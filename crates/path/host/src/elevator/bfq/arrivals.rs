//! Arrival of a request: finds its queue, updates the habits of the queue, and preempts the serving
//! queue if necessary.

use super::owner::Owner;
use super::process::ProcessMemory;
use super::queue::{BfqQueue, weight};
use super::raising::{QueueFindings, tick_of};
use super::turns::TurnEnd;
use super::{BUDGET_MAX, Bfq};
use crate::block::Requests;
use fullstroke_units::{Duration, Time};

/// Idle time after which a queue no longer belongs to its burst
/// (`bfq_bfqq_handle_idle_busy_switch`).
const BURST_FORGOTTEN: Duration = Duration::from_secs(10);
/// Level of a process without a level of its own. Only such processes are favoured, because a user
/// has chosen the shares of the others (`new_weight == 40` in `bfq_bfqq_handle_idle_busy_switch`).
const DEFAULT_LEVEL: u8 = 4;
/// Certainty from which the budgets count as known. Each budget takes an eighth of the difference
/// to 256: `bfq_stats_min_budgets`.
const BUDGETS_KNOWN: u32 = 194;

impl Bfq {
    /// Adds the new request in `slot`.
    pub(super) fn arrive(&mut self, now: Time, slot: u32, requests: &Requests) {
        let queue = self.queue_of(now, slot, requests);
        self.note_request(queue, slot);
        self.learn(now, queue, slot, requests);
        let held = &mut self.queues[queue as usize];
        self.forest
            .insert(&mut held.sorted, requests[slot].extent.start.0, slot);
        self.links.push_back(&mut held.arrived, slot);
        self.waiting += 1;
        let was_raised = held.raising.is_raised();
        let mut interactive = false;
        if held.busy {
            self.one_more(now, queue, slot, requests);
        } else {
            held.next = Some(slot);
            interactive = self.awake(now, queue, slot, requests);
        }
        if self.config.low_latency {
            self.queue_mut(queue)
                .raising
                .arrived(tick_of(now), was_raised, interactive);
        }
        if self.service.serving() == Some(queue) && self.idle_until != Time::NEVER {
            self.idle_until = Time::NEVER;
            if self.queue(queue).turn_ends <= now {
                self.end_turn(now, now, TurnEnd::TimedOut, requests);
            }
        }
    }

    /// Returns the queue of a request. Opens a queue, breaks a shared queue apart or merges two
    /// queues if necessary.
    fn queue_of(&mut self, now: Time, slot: u32, requests: &Requests) -> u32 {
        let request = &requests[slot];
        let owner = Owner::of(request);
        let process = match self.owners.get(&owner) {
            Some(&process) => process,
            None => self.open(now, owner),
        };
        // A split comes before a merge: a process that left a shared queue is judged by its own
        // queue.
        let mut queue = self.split_if_due(now, process);
        let start = request.extent.start.0;
        if let Some(target) = self.cooperator(now, process, queue, start) {
            self.merge(now, process, queue, target);
            queue = target;
        }
        if self.holders.len() <= slot as usize {
            self.holders.resize(slot as usize + 1, 0);
            self.requesters.resize(slot as usize + 1, 0);
            self.deadlines.resize(slot as usize + 1, Time::NEVER);
        }
        self.holders[slot as usize] = queue;
        self.requesters[slot as usize] = process;
        let expire = if request.synchronous {
            self.config.fifo_expire_sync
        } else {
            self.config.fifo_expire_async
        };
        self.deadlines[slot as usize] = now + expire;
        queue
    }

    fn note_request(&mut self, queue: u32, slot: u32) {
        self.queue_mut(queue).allocated += 1;
        self.processes[self.requesters[slot as usize] as usize].requests += 1;
    }

    /// Opens the queue of a process without one. Returns the process.
    fn open(&mut self, now: Time, owner: Owner) -> u32 {
        let queue = self.open_queue(now, owner);
        let process = self.processes.len() as u32;
        self.processes.push(ProcessMemory::new(owner, queue));
        self.owners.insert(owner, process);
        let held = self.queue_mut(queue);
        held.processes = 1;
        held.sole = Some(process);
        let synchronous = held.synchronous;
        if synchronous {
            self.plan_merge(now, process, queue);
        }
        let active = self.population.busy();
        if synchronous && self.burst.concerns(active) {
            for member in self.burst.join(now, queue, active) {
                self.queue_mut(member).in_large_burst = true;
            }
        }
        process
    }

    /// Returns a new queue, without a process.
    pub(super) fn open_queue(&mut self, now: Time, owner: Owner) -> u32 {
        // `bfq_init_bfqq`: a new queue begins with two thirds of the largest budget.
        let held = BfqQueue::new(owner, now, 2 * self.known_budget_max() / 3);
        let (class, weight, budget) = (held.class, weight(held.level), held.max_budget);
        match self.unused.pop() {
            Some(queue) => {
                self.service.renew(queue, class, weight, budget);
                self.queues[queue as usize] = held;
                queue
            }
            None => {
                self.service.push(class, weight, budget);
                self.queues.push(held);
                self.queues.len() as u32 - 1
            }
        }
    }

    fn learn(&mut self, now: Time, queue: u32, slot: u32, requests: &Requests) {
        let slice_idle = self.config.slice_idle;
        let held = &mut self.queues[queue as usize];
        if !held.busy && held.dispatched == 0 {
            held.habits.note_think_time(now, slice_idle);
        }
        let waited_for = held.synchronous && held.class != fullstroke_contract::PriorityClass::Idle;
        // The statistics of a queue that was just split off mean nothing
        // (`bfq_update_has_short_ttime`).
        let known = !held.is_split_for(now, self.config.wr_min_idle_time);
        if waited_for && known && slice_idle > Duration::ZERO {
            let shortly = !held.habits.thinks_longer_than_half(slice_idle);
            if std::mem::replace(&mut held.habits.thinks_shortly, shortly) != shortly {
                self.thinking_changed(now, queue);
            }
        }
        let held = &mut self.queues[queue as usize];
        let drained = held.sorted.is_empty() && held.dispatched == 0;
        held.habits
            .arrived(now, requests[slot].extent, drained, held.new);
        if held.habits.is_totally_seeky() {
            let longest = self.raising_time();
            self.queue_mut(queue)
                .raising
                .seeks_only(tick_of(now), longest);
            self.reweigh(queue);
        }
        let process = self.requesters[slot as usize];
        if self.queue(queue).synchronous && self.processes[process as usize].requests <= 1 {
            self.check_waker(now, queue);
            self.measure_if_due(now, queue);
        }
    }

    /// Adds a request to a busy queue: one with requests or with the turn.
    fn one_more(&mut self, now: Time, queue: u32, slot: u32, requests: &Requests) {
        if self.config.low_latency && !requests[slot].synchronous {
            let longest = self.raising_time();
            self.queue_mut(queue)
                .raising
                .async_arrived(tick_of(now), longest);
            self.reweigh(queue);
        }
        self.consider_next(queue, slot, requests);
    }

    /// Considers `slot` (new or moved) as the next request of its queue.
    pub(super) fn consider_next(&mut self, queue: u32, slot: u32, requests: &Requests) {
        let before = self.queue(queue).next;
        let next = self.cheaper(before, Some(slot), self.position);
        self.queue_mut(queue).next = next;
        if next != before {
            self.next_changed(queue, requests);
        }
    }

    /// Adjusts the budget of a waiting queue to its next request (`bfq_updated_next_req`).
    pub(super) fn next_changed(&mut self, queue: u32, requests: &Requests) {
        let held = self.queue(queue);
        let Some(next) = held
            .next
            .filter(|_| held.busy && self.service.serving() != Some(queue))
        else {
            return;
        };
        let entity = self.service.entity(queue);
        let budget = held
            .max_budget
            .max(self.charge(queue, next, requests))
            .max(entity.service);
        if budget != entity.budget {
            self.service.entity_mut(queue).budget = budget;
            self.service.reposition(queue);
        }
    }

    /// Wakes a queue that has requests again. Returns true if the queue counts as interactive
    /// (`bfq_bfqq_handle_idle_busy_switch`).
    fn awake(&mut self, now: Time, queue: u32, slot: u32, requests: &Requests) -> bool {
        let process = &self.processes[self.requesters[slot as usize] as usize];
        let held = self.queue(queue);
        // A queue that was shared by place speaks for nobody. A queue that was shared by start is
        // one application.
        let has_owner = held.sole.is_some() || process.stably_merged;
        let idle_for_long = held.is_idle_for(now, self.config.wr_min_idle_time);
        let in_time = held.habits.comes_in_time(now, self.config.slice_idle);
        let favoured_at_all = !held.in_large_burst && held.level == DEFAULT_LEVEL;
        let found = QueueFindings {
            interactive: favoured_at_all && idle_for_long,
            soft_real_time: favoured_at_all && self.paces_itself(now, queue),
            in_large_burst: held.in_large_burst,
            synchronous: held.synchronous && has_owner,
        };
        let settled = !held.is_split_for(now, self.config.wr_min_idle_time);
        let resumes = self.renew_budget(queue, in_time, requests);
        self.leave_burst(now, queue);
        if self.config.low_latency && settled {
            let (longest, config, budget_min) =
                (self.raising_time(), self.config, self.budget_min());
            if self.queue_mut(queue).raising.note_first_request(
                tick_of(now),
                found,
                longest,
                &config,
            ) {
                // A small budget is close to the need of the queue, so its share is exact.
                let entity = self.service.entity_mut(queue);
                entity.budget = entity.budget.min(2 * budget_min);
            }
        }
        self.queue_mut(queue).raising.backlogged(tick_of(now));
        self.join_service(queue);
        self.preempt(now, queue, resumes, requests);
        found.interactive
    }

    fn paces_itself(&self, now: Time, queue: u32) -> bool {
        let held = self.queue(queue);
        self.config.wr_max_softrt_rate > 0
            && !held.habits.is_totally_seeky()
            && held.raising.is_paced(tick_of(now))
            && held.dispatched == 0
    }

    /// Sets the budget of a queue after a time without requests. Returns true if the queue
    /// continues with its old budget, because idling would have kept its turn
    /// (`bfq_bfqq_update_budg_for_activation`).
    fn renew_budget(&mut self, queue: u32, in_time: bool, requests: &Requests) -> bool {
        let held = self.queue(queue);
        let left = self.service.entity(queue).left();
        let resumes = held.may_resume && in_time && left > 0;
        let needed = held
            .next
            .map_or(0, |next| self.charge(queue, next, requests));
        let max_budget = held.max_budget;
        let entity = self.service.entity_mut(queue);
        entity.service = 0;
        entity.budget = if resumes {
            left.min(max_budget)
        } else {
            max_budget.max(needed)
        };
        self.queue_mut(queue).may_resume &= resumes;
        resumes
    }

    fn leave_burst(&mut self, now: Time, queue: u32) {
        let held = &mut self.queues[queue as usize];
        if !held.new && held.is_idle_for(now, BURST_FORGOTTEN) {
            self.burst.leave(queue);
            held.in_large_burst = false;
        }
        held.new = false;
    }

    fn join_service(&mut self, queue: u32) {
        let factor = self.queue(queue).raising.factor(&self.config);
        let held = &mut self.queues[queue as usize];
        held.busy = true;
        let recovers = std::mem::take(&mut held.may_resume).then_some(factor);
        self.reweigh(queue);
        self.service.activate(queue, recovers);
        self.first_of_the_woken(queue);
    }

    /// Ends the turn of another queue if this queue is more urgent, or if the rest of that turn has
    /// no use (`bfq_bfqq_higher_class_or_weight`).
    fn preempt(&mut self, now: Time, queue: u32, resumes: bool, requests: &Requests) {
        let Some(serving) = self.service.serving() else {
            return;
        };
        let (held, other) = (self.queue(queue), self.queue(serving));
        let [factor, others] = [held, other].map(|queue| queue.raising.factor(&self.config));
        // The weights that count now: a favour that began or ended meanwhile counts later
        // (`bfq_update_fin_time_enqueue` of `block/bfq-wf2q.c`).
        let higher =
            held.class < other.class || self.service.weight(queue) > self.service.weight(serving);
        if (resumes && factor >= others) || higher || !self.better_to_idle(serving) {
            self.end_turn(now, now, TurnEnd::Preempted, requests);
        }
    }

    /// True if enough budgets have been given out to know the device.
    pub(super) fn knows_budgets(&self) -> bool {
        self.budgets_assigned >= BUDGETS_KNOWN
    }

    /// Returns the largest budget, or the default until the device is known.
    fn known_budget_max(&self) -> u64 {
        if self.knows_budgets() {
            self.budget_max
        } else {
            BUDGET_MAX
        }
    }

    /// Returns the smallest budget: `bfq_min_budget`.
    pub(super) fn budget_min(&self) -> u64 {
        (self.known_budget_max() / 32).max(1)
    }

    /// Returns the duration of an interactive favour.
    pub(super) fn raising_time(&self) -> Duration {
        match self.config.wr_max_time {
            Duration::ZERO => self.rate.raising(),
            time => time,
        }
    }
}
