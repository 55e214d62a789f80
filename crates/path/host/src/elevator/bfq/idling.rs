//! The decision to leave the device idle until the serving process sends its next request. Idling
//! either raises the throughput, or keeps others from getting more than their shares.

use super::Bfq;
use super::population::DEPTH;
use super::queue::weight;
use crate::block::Requests;
use fullstroke_contract::PriorityClass;
use fullstroke_units::Time;

impl Bfq {
    /// Updates the counts after a change of the queue.
    pub(super) fn recount(&mut self, queue: u32) {
        let held = &mut self.queues[queue as usize];
        let standing = held.present_standing();
        let before = std::mem::replace(&mut held.standing, standing);
        self.population
            .change(held.class, held.level, before, standing);
    }

    /// Updates the weight after a change of the favour.
    pub(super) fn reweigh(&mut self, queue: u32) {
        let held = self.queue(queue);
        let weight = weight(held.level) * held.raising.factor(&self.config);
        self.service.set_weight(queue, weight);
        self.recount(queue);
    }

    /// True if queues should get different shares and this queue does not have the least weight
    /// (`bfq_asymmetric_scenario`). Otherwise the queue of the drive may decide, because it treats
    /// all requests alike.
    pub(super) fn is_asymmetric_for(&self, queue: u32) -> bool {
        let held = self.queue(queue);
        self.population
            .is_asymmetric_for(held.level, held.standing.plain)
    }

    /// Returns the cost of a request for its queue, in sectors. If shares are equal, asynchronous
    /// requests count threefold, to protect the synchronous requests (`bfq_serv_to_charge`,
    /// `bfq_async_charge_factor`).
    pub(super) fn charge(&self, queue: u32, slot: u32, requests: &Requests) -> u64 {
        const ASYNC_FACTOR: u64 = 3;
        let held = self.queue(queue);
        let sectors = requests[slot].extent.sectors.0;
        if held.synchronous || held.raising.is_raised() || self.is_asymmetric_for(queue) {
            sectors
        } else {
            sectors * ASYNC_FACTOR
        }
    }

    /// True if the next request of this queue, which has the turn, is worth a wait
    /// (`bfq_better_to_idle`).
    pub(super) fn better_to_idle(&self, queue: u32) -> bool {
        let held = self.queue(queue);
        if held.processes == 0 {
            return false;
        }
        if self.config.strict_guarantees {
            return true;
        }
        if self.config.slice_idle.as_nanos() == 0
            || !held.synchronous
            || held.class == PriorityClass::Idle
        {
            return false;
        }
        self.idling_raises_throughput(queue) || self.idling_keeps_shares(queue)
    }

    /// True if idling raises the throughput: the drive has no queue, or the process reads
    /// sequentially without long pauses. False while a queue is favoured, because idling would
    /// delay it (`idling_boosts_thr_without_issues`).
    pub(super) fn idling_raises_throughput(&self, queue: u32) -> bool {
        let held = self.queue(queue);
        let habits = &held.habits;
        // Only a process that asks soon again at the next sectors makes the pause shorter than a
        // seek.
        let stream = !habits.is_seeky() && habits.is_io_bound && habits.thinks_shortly;
        // A queue without processes gets no more requests.
        held.processes > 0 && (self.queueing.is_absent() || stream) && self.population.raised() == 0
    }

    /// True if idling is necessary to keep the shares. Without idling, requests of other queues
    /// would go to the device, and the drive would decide the shares
    /// (`idling_needed_for_service_guarantees`). Four requests of other queues in flight may
    /// already delay a favoured queue.
    pub(super) fn idling_keeps_shares(&self, queue: u32) -> bool {
        let held = self.queue(queue);
        let busy = self.population.busy();
        let favoured = held.raising.is_raised()
            && (self.population.raised() < busy || self.in_driver >= held.dispatched + 4);
        held.processes > 0 && (favoured || self.is_asymmetric_for(queue) || busy == 1)
    }

    /// True if a queue without requests keeps its turn.
    pub(super) fn must_idle(&self, queue: u32) -> bool {
        self.queue(queue).sorted.is_empty() && self.better_to_idle(queue)
    }

    /// Begins to leave the device idle for the serving queue.
    pub(super) fn begin_to_idle(&mut self, now: Time, queue: u32) {
        let asymmetric = self.is_asymmetric_for(queue);
        self.idle_since = now;
        self.idle_until = now
            + self
                .queue(queue)
                .idle_slice(self.config.slice_idle, asymmetric);
    }

    /// Learns from a completion if the device queues requests.
    pub(super) fn sample_queueing(&mut self) {
        let starved = self.service.serving().is_some_and(|queue| {
            let held = self.queue(queue);
            held.habits.thinks_shortly && held.dispatched + (held.sorted.len() as u32) < DEPTH
        });
        self.queueing.sample(self.in_driver, self.waiting, starved);
    }
}
