//! Whether the device is to be left idle until the process whose turn it is
//! sends its next request: because that raises throughput, or because others
//! would get more than their shares.

use super::Bfq;
use super::queue::{Standing, weight};
use crate::block::Requests;
use fullstroke_contract::PriorityClass;
use fullstroke_units::Time;

/// Queues that are active, by what they count for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Population {
    /// By class.
    busy: [u32; 3],
    raised: u32,
    /// Those that are not favoured, by level.
    plain: [u32; 8],
}

impl Population {
    /// Queues that have requests, or their turn.
    pub(super) fn busy(&self) -> u32 {
        self.busy.iter().sum()
    }

    /// Those of them that are favoured.
    pub(super) fn raised(&self) -> u32 {
        self.raised
    }

    fn change(&mut self, class: PriorityClass, level: u8, from: Standing, to: Standing) {
        let step = |count: &mut u32, from: bool, to: bool| {
            *count = *count + u32::from(to) - u32::from(from)
        };
        step(&mut self.busy[class as usize], from.busy, to.busy);
        step(&mut self.raised, from.raised, to.raised);
        step(&mut self.plain[usize::from(level)], from.plain, to.plain);
    }

    /// Whether queues are to get different shares, and this one not the least.
    fn is_asymmetric_for(&self, level: u8, plain: bool) -> bool {
        let weights = self.plain.iter().filter(|&&count| count > 0).count();
        let least = self.plain.iter().rposition(|&count| count > 0) == Some(usize::from(level));
        let varied = weights > 1 && !(plain && least);
        varied || self.busy.iter().filter(|&&count| count > 0).count() > 1
    }
}

/// Whether the device keeps several requests at once. Without knowing better it
/// is taken to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queueing {
    known: Option<bool>,
    samples: u32,
    most: u32,
}

/// So many requests at once are more than a device without a queue would take:
/// `BFQ_HW_QUEUE_THRESHOLD`, and `BFQ_HW_QUEUE_SAMPLES`.
const DEPTH: u32 = 3;
const SAMPLES: u32 = 32;

impl Queueing {
    /// The most requests that the device has had at once lately.
    pub(super) fn most(&self) -> u32 {
        self.most
    }

    fn is_absent(&self) -> bool {
        self.known == Some(false)
    }

    /// A request completes, so many being with the device and so many waiting.
    /// `starved` if few could have been sent, which says nothing of the device
    /// (`bfq_update_hw_tag`).
    fn sample(&mut self, in_driver: u32, waiting: u32, starved: bool) {
        self.most = self.most.max(in_driver);
        if self.known == Some(true)
            || in_driver + waiting <= DEPTH
            || (starved && in_driver < DEPTH)
        {
            return;
        }
        self.samples += 1;
        if self.samples > SAMPLES {
            *self = Queueing {
                known: Some(self.most > DEPTH),
                samples: 0,
                most: 0,
            };
        }
    }
}

impl Bfq {
    /// The queue may have begun or ceased to count.
    pub(super) fn recount(&mut self, queue: u32) {
        let held = &mut self.queues[queue as usize];
        let standing = held.present_standing();
        let before = std::mem::replace(&mut held.standing, standing);
        self.population
            .change(held.class, held.level, before, standing);
    }

    /// The queue may have begun or ceased to be favoured.
    pub(super) fn reweigh(&mut self, queue: u32) {
        let held = self.queue(queue);
        let weight = weight(held.level) * held.raising.factor(&self.config);
        self.service.set_weight(queue, weight);
        self.recount(queue);
    }

    /// Whether queues are to get different shares, and this one not the least
    /// (`bfq_asymmetric_scenario`): else the drive's queue may decide, for it treats
    /// all alike.
    pub(super) fn is_asymmetric_for(&self, queue: u32) -> bool {
        let held = self.queue(queue);
        self.population
            .is_asymmetric_for(held.level, held.standing.plain)
    }

    /// What a request costs its queue, in sectors: asynchronous ones count
    /// threefold, lest they crowd the others out, where shares are equal
    /// (`bfq_serv_to_charge`, `bfq_async_charge_factor`).
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

    /// Whether the next request of this queue, which has its turn, is worth
    /// waiting for (`bfq_better_to_idle`).
    pub(super) fn better_to_idle(&self, queue: u32) -> bool {
        let held = self.queue(queue);
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

    /// An arm that stays where it is is worth it without a queue in the drive,
    /// or for a process that reads on and on. But the favoured must not be
    /// delayed for that (`idling_boosts_thr_without_issues`).
    pub(super) fn idling_raises_throughput(&self, queue: u32) -> bool {
        let habits = &self.queue(queue).habits;
        let stream = !habits.is_seeky() && habits.is_io_bound && habits.thinks_shortly;
        (self.queueing.is_absent() || stream) && self.population.raised == 0
    }

    /// Without idling, requests of others would go to the device meanwhile, and
    /// the drive would decide who gets what (`idling_needed_for_service_guarantees`;
    /// four of others with the device may delay it already).
    pub(super) fn idling_keeps_shares(&self, queue: u32) -> bool {
        let held = self.queue(queue);
        let busy = self.population.busy();
        let favoured = held.raising.is_raised()
            && (self.population.raised < busy || self.in_driver >= held.dispatched + 4);
        favoured || self.is_asymmetric_for(queue) || busy == 1
    }

    /// Whether a queue without requests keeps its turn.
    pub(super) fn must_idle(&self, queue: u32) -> bool {
        self.queue(queue).sorted.is_empty() && self.better_to_idle(queue)
    }

    /// From now on the device is left idle for the queue whose turn it is.
    pub(super) fn begin_to_idle(&mut self, now: Time, queue: u32) {
        let asymmetric = self.is_asymmetric_for(queue);
        self.idle_since = now;
        self.idle_until = now
            + self
                .queue(queue)
                .idle_slice(self.config.slice_idle, asymmetric);
    }

    /// Learns from a completion whether the device keeps several requests.
    pub(super) fn sample_queueing(&mut self) {
        let starved = self.service.serving().is_some_and(|queue| {
            let held = self.queue(queue);
            held.habits.thinks_shortly && held.dispatched + (held.sorted.len() as u32) < DEPTH
        });
        self.queueing.sample(self.in_driver, self.waiting, starved);
    }
}
