//! Shared queues. Processes that work together, as the threads of a database or of `dump` do, get
//! one queue: the device is not left idle between them, and the order of addresses spans all of
//! them.
//!
//! 1. *By place*: the request of a young queue lies near the last request of the serving queue, or
//!    near the next request of another young queue (`bfq_setup_cooperator`).
//! 2. *By start*: two queues were created within 180 ms of each other (`bfq_do_or_sched_stable_merge`).
//!    They merge 600 ms later, unless idling for the younger queue raises the throughput by then
//!    (`bfq_setup_stable_merge`). Idling never does so while a queue is favoured. Such a merge is for
//!    good.
//!
//! A shared queue that turns out to be seeky is broken apart, and each process gets back the state
//! of its own queue. The kernel merges at once by start only on devices that do not rotate.

use super::Bfq;
use super::process::Saved;
use super::queue::BfqQueue;
use super::raising::tick_of;
use super::waker::Waker;
use fullstroke_contract::PriorityClass;
use fullstroke_units::{Duration, Time};

/// Longest time of service after which a queue still merges by place: `bfq_merge_time_limit`.
const MERGE_TIME_LIMIT: Duration = Duration::from_millis(100);
/// Distance in sectors of close requests: `BFQQ_CLOSE_THR`.
const CLOSE: u64 = 8 * 1024;
/// Longest time between the creations of two queues that start together: `bfq_burst_interval`.
const TOGETHER: Duration = Duration::from_millis(180);
/// Time after a creation for which the queue is compared with later ones:
/// `bfq_activation_stable_merging`.
const COMPARED: Duration = Duration::from_millis(600);
/// Time from the creation or the last split to a merge by start: `bfq_late_stable_merging`.
const LATE: Duration = Duration::from_millis(600);

impl Bfq {
    /// Notes the creation of `queue` for `process`. The queue merges later with the last queue that
    /// was created, if the two belong together.
    pub(super) fn plan_merge(&mut self, now: Time, process: u32, queue: u32) {
        let latest = self.last_created.filter(|&latest| {
            let (held, other) = (self.queue(queue), self.queue(latest));
            other.created + COMPARED >= now
                && (held.class, held.level) == (other.class, other.level)
        });
        match latest {
            None => self.last_created = Some(queue),
            Some(latest) if self.queue(latest).created + TOGETHER >= now => {
                self.processes[process as usize].partner = Some(latest);
            }
            Some(_) => {}
        }
    }

    /// Returns the queue with which `queue` merges now. `start` is the address of the new request
    /// of `process` (`bfq_setup_cooperator`).
    pub(super) fn cooperator(
        &mut self,
        now: Time,
        process: u32,
        queue: u32,
        start: u64,
    ) -> Option<u32> {
        let held = self.queue(queue);
        if held.merges_into.is_some() {
            return held.merges_into;
        }
        let partner = self.processes[process as usize].partner;
        let old_enough = held.created + LATE < now && !held.is_split_for(now, LATE);
        if let Some(partner) = partner.filter(|_| held.synchronous && !held.new && old_enough) {
            return self.merge_by_start(process, queue, partner);
        }
        // A queue that has had service for a while would have merged already, so place is chance by
        // now.
        if held.raising.is_served_for(now, MERGE_TIME_LIMIT) || self.population.busy() == 1 {
            return None;
        }
        let serving = self.service.serving().filter(|&serving| {
            serving != queue
                && start.abs_diff(self.serving_position) <= CLOSE
                && self.cooperates(now, queue, serving)
        });
        serving
            .and_then(|serving| self.schedule(queue, serving))
            .or_else(|| {
                let close = self.find_close(now, queue, start)?;
                self.schedule(queue, close)
            })
    }

    fn merge_by_start(&mut self, process: u32, queue: u32, partner: u32) -> Option<u32> {
        self.processes[process as usize].partner = None;
        if self.idling_raises_throughput(queue) {
            return None;
        }
        let target = self.schedule(queue, partner)?;
        self.processes[process as usize].stably_merged = true;
        if let Some(other) = self.queue(target).sole {
            self.processes[other as usize].stably_merged = true;
        }
        Some(target)
    }

    /// Returns the queue whose next request is the nearest to `start`, if that queue is young and
    /// the request is close (`bfqq_find_close`).
    fn find_close(&self, now: Time, queue: u32, start: u64) -> Option<u32> {
        let distance = |other: u32| {
            let next = self.queue(other).next?;
            Some(self.forest.key(next).abs_diff(start)).filter(|&distance| distance <= CLOSE)
        };
        (0..self.queues.len() as u32)
            .filter(|&other| other != queue && self.cooperates(now, queue, other))
            .filter_map(|other| distance(other).map(|distance| (distance, other)))
            .min()
            .map(|(_, other)| other)
    }

    /// True if two queues may merge by place (`bfq_may_be_close_cooperator`).
    fn cooperates(&self, now: Time, queue: u32, other: u32) -> bool {
        let (held, other) = (self.queue(queue), self.queue(other));
        !other.raising.is_served_for(now, MERGE_TIME_LIMIT)
            && held.class != PriorityClass::Idle
            && held.class == other.class
            && !held.habits.is_seeky()
            && !other.habits.is_seeky()
            && held.synchronous
            && other.synchronous
    }

    /// Lets `queue` merge into `target`, or into the queue into which `target` merges
    /// (`bfq_setup_merge`).
    fn schedule(&mut self, queue: u32, target: u32) -> Option<u32> {
        if self.queue(target).processes == 0 {
            return None;
        }
        let mut target = target;
        // The planned partner may have planned a merge itself. The end of the chain takes all.
        while let Some(next) = self.queue(target).merges_into {
            target = next;
        }
        let processes = self.queue(queue).processes;
        if target == queue || processes == 0 || self.queue(target).processes == 0 {
            return None;
        }
        self.queue_mut(queue).merges_into = Some(target);
        self.queue_mut(target).processes += processes;
        Some(target)
    }

    /// Sends the requests of `process` to `target` from now on, in place of `queue`
    /// (`bfq_merge_bfqqs`). Requests that wait in `queue` stay there.
    pub(super) fn merge(&mut self, now: Time, process: u32, queue: u32, target: u32) {
        self.save(now, queue);
        self.save(now, target);
        let [held, heir] = self
            .queues
            .get_disjoint_mut([queue as usize, target as usize])
            .expect("a queue does not merge into itself");
        heir.habits.is_io_bound |= std::mem::take(&mut held.habits.is_io_bound);
        held.raising.pass_to(&mut heir.raising);
        heir.shared = true;
        heir.sole = None;
        held.sole = None;
        held.new = false;
        held.processes -= 1;
        let waker = held.waker.known.filter(|&waker| waker != target);
        if let Some(waker) = waker.filter(|_| heir.waker.known.is_none()) {
            heir.waker = Waker::inherited(Some(waker));
            self.woken_by(target, None, waker);
        }
        self.reweigh(queue);
        self.reweigh(target);
        let member = &mut self.processes[process as usize];
        member.queue = target;
        member.partner = member.partner.filter(|&partner| partner != target);
        if self.last_created == Some(queue) {
            self.last_created = Some(target);
        }
        self.release(queue);
    }

    /// Saves the state of a queue with one process.
    fn save(&mut self, now: Time, queue: u32) {
        let held = self.queue(queue);
        let Some(process) = held.sole else {
            return;
        };
        let early = held.new && !held.in_large_burst && self.config.low_latency;
        let raising = if early {
            held.raising
                .as_if_started(tick_of(now), self.raising_time())
        } else {
            held.raising
        };
        let saved = Saved {
            habits: held.habits,
            tolerance: held.tolerance,
            raising,
            in_large_burst: held.in_large_burst,
            in_burst: self.burst.has(queue),
        };
        self.processes[process as usize].saved = Some(saved);
    }

    /// Breaks a shared queue apart for the next request of `process`, if the queue is seeky.
    /// Returns the queue of the request (`bfq_init_rq`, `bfq_split_bfqq`).
    pub(super) fn split_if_due(&mut self, now: Time, process: u32) -> u32 {
        let queue = self.processes[process as usize].queue;
        let stably = self.processes[process as usize].stably_merged;
        let held = &mut self.queues[queue as usize];
        if !held.shared || !held.to_split || stably {
            return queue;
        }
        let in_large_burst = held.in_large_burst;
        if held.processes == 1 {
            (held.shared, held.to_split) = (false, false);
            held.sole = Some(process);
            self.resume(now, process, queue);
            return queue;
        }
        held.processes -= 1;
        let (mut into, waker) = (held.merges_into, held.waker.known);
        while let Some(next) = into {
            // This process will not follow the others into the next queues (`bfq_put_cooperator`).
            self.queue_mut(next).processes -= 1;
            into = self.queue(next).merges_into;
        }
        let owner = self.processes[process as usize].owner;
        let own = self.open_queue(now, owner);
        self.processes[process as usize].queue = own;
        self.release(queue);
        let held = &mut self.queues[own as usize];
        held.processes = 1;
        held.sole = Some(process);
        held.split = Some(now);
        held.waker = Waker::inherited(waker);
        if let Some(waker) = waker {
            self.woken_by(own, None, waker);
        }
        let saved = self.processes[process as usize].saved;
        let in_burst = saved.is_some_and(|saved| saved.in_burst);
        let large = saved.is_some_and(|saved| saved.in_large_burst) || in_large_burst;
        self.queue_mut(own).in_large_burst = large || (in_burst && self.burst.is_large());
        if in_burst && !self.burst.is_large() && !large {
            self.burst.rejoin(own);
        }
        self.resume(now, process, own);
        own
    }

    /// Gives a queue the state that the queue of its process had before the merge
    /// (`bfq_bfqq_resume_state`).
    fn resume(&mut self, now: Time, process: u32, queue: u32) {
        let Some(saved) = self.processes[process as usize].saved else {
            return;
        };
        let (longest, low_latency) = (self.raising_time(), self.config.low_latency);
        let held = &mut self.queues[queue as usize];
        held.habits = saved.habits.resumed(&held.habits);
        held.tolerance = saved.tolerance;
        if low_latency {
            held.raising = held.raising.resumed(&saved.raising);
            held.raising
                .review(tick_of(now), held.in_large_burst, longest);
        }
        self.reweigh(queue);
    }

    /// Takes a queue out of service that no process uses any more (`bfq_release_process_ref`).
    fn release(&mut self, queue: u32) {
        self.last_created = self.last_created.filter(|&latest| latest != queue);
        let held = &mut self.queues[queue as usize];
        if held.busy && held.sorted.is_empty() && self.service.serving() != Some(queue) {
            held.busy = false;
            self.service.deactivate(queue);
            self.recount(queue);
        }
        self.retire(queue);
    }

    /// Frees the number of a queue that has neither processes nor requests. Without this, a run
    /// with many merges and splits would need more and more memory.
    pub(super) fn retire(&mut self, queue: u32) {
        let held: &BfqQueue = self.queue(queue);
        let in_use = held.processes > 0 || held.allocated > 0 || held.busy;
        if in_use || !held.synchronous || self.service.serving() == Some(queue) {
            return;
        }
        self.burst.leave(queue);
        for process in &mut self.processes {
            process.partner = process.partner.filter(|&partner| partner != queue);
        }
        for other in &mut self.queues {
            other.merges_into = other.merges_into.filter(|&into| into != queue);
            other.waker.forget(queue);
            other.woken.retain(|&woken| woken != queue);
        }
        self.queue_mut(queue).woken.clear();
        self.last_created = self.last_created.filter(|&latest| latest != queue);
        self.last_completed = self.last_completed.filter(|&latest| latest != queue);
        if !self.unused.contains(&queue) {
            self.unused.push(queue);
        }
    }
}
