//! `bfq`, as in Linux 6: budget fair queueing. Each process has a queue. Each queue has a weight by
//! its I/O priority, and at its turn a budget of sectors. Over time, queues get sectors in
//! proportion to their weights; slow queues get time in proportion. The device stays idle for a
//! process if its next request is worth the wait. Starting programs and self-paced processes are
//! favoured (Valente & Avanzini, "Evolution of the BFQ storage I/O scheduler", 2015;
//! Documentation/block/bfq-iosched.rst, which has the same names and defaults).
//!
//! The comments below `bfq/` name functions and constants of `block/bfq-iosched.c`, unless they
//! name another file.
//!
//! The device is assumed to rotate. One part of the kernel's BFQ is missing: groups (all processes
//! are in one). If anticipation works by member, requests of other processes for other members do
//! not wait.
//!
//! | file | content |
//! |---|---|
//! | `bfq/config.rs` | the keys |
//! | `bfq/service.rs` | B-WF2Q+: the order of turns |
//! | `bfq/queue.rs` | a queue and its habits |
//! | `bfq/raising.rs` | favoured queues, and the time of the favour |
//! | `bfq/rate.rs` | the speed of the device |
//! | `bfq/arrivals.rs` | arrival of a request |
//! | `bfq/turns.rs` | start, end and charge of a turn |
//! | `bfq/merging.rs` | shared queues of processes that work together |
//! | `bfq/process.rs` | the memory of a process |
//! | `bfq/waker.rs`, `bfq/waking.rs` | queues that wait for each other |
//! | `bfq/population.rs` | counts of the active queues, and the queue of the device |
//! | `bfq/idling.rs` | the decision to wait for the next request |
//! | `bfq/injection.rs`, `bfq/tolerance.rs` | requests of other queues during a wait |
//! | `bfq/tests.rs` | tests of the whole elevator, in virtual time |

mod arrivals;
mod config;
mod idling;
mod injection;
mod merging;
mod owner;
mod population;
mod process;
mod queue;
mod raising;
mod rate;
mod service;
#[cfg(test)]
mod tests;
mod tolerance;
mod turns;
mod waker;
mod waking;

use super::fifos::Fifos;
use super::forest::Forest;
use super::{Context, Elevator, ElevatorSite};
use crate::block::{JoinKind, Queued, Requests};
pub(super) use config::Config;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{SECTOR_BYTES, Time};
use owner::Owner;
use population::{Population, Queueing};
use process::ProcessMemory;
use queue::BfqQueue;
use raising::Burst;
use rate::PeakRate;
use service::ServiceQueues;
use std::collections::BTreeMap;
use tolerance::Injection;

pub(super) const SUMMARY: &str = "Linux 6's BFQ: sectors in proportion to weight, in budgets; favours interactive and self-paced processes";

/// Largest budget in sectors before the device has been measured: `bfq_default_max_budget`.
const BUDGET_MAX: u64 = 16 * 1024;

struct Bfq {
    config: Config,
    /// The process of each owner, as an index of `processes`.
    owners: BTreeMap<Owner, u32>,
    processes: Vec<ProcessMemory>,
    queues: Vec<BfqQueue>,
    /// Numbers of queues that are free for new ones.
    unused: Vec<u32>,
    /// The queue with which new queues are compared (`last_bfqq_created`).
    last_created: Option<u32>,
    service: ServiceQueues,
    forest: Forest,
    links: Fifos,
    /// By slot: the queue of a request, its process, and the time after which the request goes
    /// before others.
    holders: Vec<u32>,
    requesters: Vec<u32>,
    deadlines: Vec<Time>,
    population: Population,
    burst: Burst,
    /// Number of waiting requests, and number of requests in flight.
    waiting: u32,
    in_driver: u32,
    queueing: Queueing,
    injection: Injection,
    rate: PeakRate,
    /// Largest budget, and the certainty of its estimate, 0 to 256.
    budget_max: u64,
    budgets_assigned: u32,
    /// End of the last dispatched request.
    position: u64,
    /// End of the last request that was dispatched in the present turn; 0 if there is none.
    serving_position: u64,
    last_completion: Time,
    /// Queue of the last completed request, if the queue is not shared.
    last_completed: Option<u32>,
    turn_began: Time,
    /// Start and end of the idle time of the device. The end is NEVER if the device is not idle.
    idle_since: Time,
    idle_until: Time,
}

pub(super) fn build(keys: &Keys, site: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let config: Config = read(keys)?;
    config.check(keys)?;
    let config = Config {
        timeout_sync: raising::whole_ticks(config.timeout_sync),
        ..config
    };
    // `block/bfq-iosched.c` uses `ktime_get_ns` and a high-resolution timer.
    site.clock.must_be_exact("bfq")?;
    Ok(Box::new(Bfq {
        config,
        owners: BTreeMap::new(),
        processes: Vec::new(),
        queues: Vec::new(),
        unused: Vec::new(),
        last_created: None,
        service: ServiceQueues::default(),
        forest: Forest::default(),
        links: Fifos::default(),
        holders: Vec::new(),
        requesters: Vec::new(),
        deadlines: Vec::new(),
        population: Population::default(),
        burst: Burst::default(),
        waiting: 0,
        in_driver: 0,
        queueing: Queueing::default(),
        injection: Injection::default(),
        rate: PeakRate::default(),
        budget_max: if config.max_budget == 0 {
            BUDGET_MAX
        } else {
            config.max_budget
        },
        budgets_assigned: 0,
        position: 0,
        serving_position: 0,
        last_completion: Time::ZERO,
        last_completed: None,
        turn_began: Time::ZERO,
        idle_since: Time::ZERO,
        idle_until: Time::NEVER,
    }))
}

impl Bfq {
    fn queue(&self, queue: u32) -> &BfqQueue {
        &self.queues[queue as usize]
    }

    fn queue_mut(&mut self, queue: u32) -> &mut BfqQueue {
        &mut self.queues[queue as usize]
    }

    /// Returns the cheaper of two requests of a queue, seen from `here`. Requests ahead and
    /// requests a short way back compete by cost. If neither is in reach, the request furthest back
    /// wins, so that one long seek suffices (`bfq_choose_req`).
    fn cheaper(&self, one: Option<u32>, other: Option<u32>, here: u64) -> Option<u32> {
        let reach = self.config.back_seek_max.0 / SECTOR_BYTES;
        let penalty = u64::from(self.config.back_seek_penalty);
        let cost = |&slot: &u32| {
            let start = self.forest.key(slot);
            match start.checked_sub(here) {
                Some(onwards) => (0, onwards, u64::MAX - start),
                None if here - start <= reach => {
                    (0, (here - start).saturating_mul(penalty), u64::MAX - start)
                }
                None => (1, start, 0),
            }
        };
        one.into_iter().chain(other).min_by_key(cost)
    }

    /// Returns the successor of `slot`, which is about to leave the queue. Once a turn an old
    /// enough oldest request goes first; otherwise the cheapest request goes (`bfq_find_next_rq`,
    /// `bfq_check_fifo`).
    fn after(&mut self, now: Time, queue: u32, slot: u32) -> Option<u32> {
        let BfqQueue {
            sorted,
            arrived,
            looked_at_age,
            ..
        } = &mut self.queues[queue as usize];
        if !std::mem::replace(looked_at_age, true) {
            let aged = |&oldest: &u32| oldest != slot && self.deadlines[oldest as usize] <= now;
            if let Some(oldest) = arrived.front().filter(aged) {
                return Some(oldest);
            }
        }
        let first = self.forest.first(sorted).filter(|&first| first != slot);
        let onwards = self.forest.next(slot).or(first);
        self.cheaper(onwards, self.forest.previous(slot), self.forest.key(slot))
    }

    /// Removes a request from its queue.
    fn remove(&mut self, now: Time, slot: u32, requests: &Requests) {
        let queue = self.holders[slot as usize];
        if self.queue(queue).next == Some(slot) {
            let next = self.after(now, queue, slot);
            self.queue_mut(queue).next = next;
            self.next_changed(queue, requests);
        }
        let held = &mut self.queues[queue as usize];
        self.forest.remove(&mut held.sorted, slot);
        self.links.remove(&mut held.arrived, slot);
        assert!(self.waiting > 0, "slot {slot} leaves, and no request waits");
        self.waiting -= 1;
        if held.sorted.is_empty() && held.busy && self.service.serving() != Some(queue) {
            held.busy = false;
            self.service.deactivate(queue);
            let entity = self.service.entity_mut(queue);
            (entity.budget, entity.service) = (0, 0);
            self.recount(queue);
        }
    }

    /// Dispatches the next request of a queue, with or without the turn.
    fn send_from(&mut self, now: Time, queue: u32, requests: &Requests) -> Option<u32> {
        let slot = self.queue(queue).next?;
        let extent = requests[slot].extent;
        let charge = self.charge(queue, slot, requests);
        self.served(now, queue, charge);
        self.queue_mut(queue).dispatched += 1;
        let dispatch = rate::Dispatch {
            sectors: extent.sectors.0,
            far: queue::is_far(self.position, extent),
            in_driver: self.in_driver,
            last_completion: self.last_completion,
        };
        if self.rate.dispatched(now, &dispatch) {
            self.retune();
        }
        self.position = extent.end().0;
        self.remove(now, slot, requests);
        self.in_driver += 1;
        self.recount(queue);
        if self.service.serving() == Some(queue) {
            self.serving_position = self.position;
            self.follow(slot);
            self.review_turn(now, queue, requests);
        }
        Some(slot)
    }
}

impl Elevator for Bfq {
    /// Lets a request join any request that ends where it begins: the kernel finds that request in
    /// a table of all queues (`blk_mq_sched_try_insert_merge` in `bfq_insert_request`). The other
    /// joins stay within a queue, because the kernel searches the queue's own tree.
    fn may_join(&self, slot: u32, kept: &Queued, other: &Queued, join: JoinKind) -> bool {
        let owner = self.owners.get(&Owner::of(other));
        let queue = owner.map(|&process| self.processes[process as usize].queue);
        match join {
            JoinKind::Back => kept.synchronous == other.synchronous,
            JoinKind::Front | JoinKind::Coalesce => queue == Some(self.holders[slot as usize]),
        }
    }

    /// Leaves requests free for reads, and more of them while a queue is favoured. A queue that
    /// holds its share by weight gets the first request only (`bfq_limit_depth`,
    /// `bfq_depth_updated`, Linux 6.18).
    fn depth(&self, request: &Queued, most: u32) -> u32 {
        let favoured = self.population.raised() > 0;
        // `bfq_update_depths`: writes may take 1/2 (asynchronous) or 3/4 of the requests, and 3/16
        // or 6/16 beside a raised queue.
        let sixteenths = match (favoured, request.synchronous) {
            _ if !request.writes() => 16,
            (false, false) => 8,
            (false, true) => 12,
            (true, false) => 3,
            (true, true) => 6,
        };
        let depth = (most * sixteenths / 16).max(1);
        let process = self.owners.get(&Owner::of(request));
        let queue = process.map(|&process| self.processes[process as usize].queue);
        let over = queue.is_some_and(|queue| {
            let share = self.service.share(queue, depth);
            share.is_some_and(|share| u64::from(self.queue(queue).allocated) >= share)
        });
        // `bfqq_request_over_limit`: a queue beyond its share of the requests must wait until most
        // are free.
        if over { 1 } else { depth }
    }

    fn least_depth(&self, _: u32) -> u32 {
        1
    }

    fn add(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.tick(now, requests);
        self.arrive(now, slot, requests);
    }

    fn grown(
        &mut self,
        _: Time,
        slot: u32,
        join: JoinKind,
        _: &Queued,
        arrival: &Queued,
        requests: &Requests,
    ) {
        let queue = self.holders[slot as usize];
        let held = &mut self.queues[queue as usize];
        held.habits.position = arrival.extent.end().0;
        if join == JoinKind::Front {
            self.forest.remove(&mut held.sorted, slot);
            self.forest
                .insert(&mut held.sorted, requests[slot].extent.start.0, slot);
            self.consider_next(queue, slot, requests);
        }
    }

    /// The kept request takes the age and the place of the older of the two.
    fn coalesced(&mut self, now: Time, kept: u32, gone: u32, requests: &Requests) {
        let queue = self.holders[gone as usize];
        let together = self.holders[kept as usize] == queue;
        let held = &mut self.queues[queue as usize];
        let deadline = self.deadlines[gone as usize];
        if together && deadline < self.deadlines[kept as usize] {
            self.links.remove(&mut held.arrived, kept);
            self.links.replace(&mut held.arrived, gone, kept);
            // Any place will do, because `remove` below takes the request out again.
            self.links.push_back(&mut held.arrived, gone);
            self.deadlines[kept as usize] = deadline;
        }
        if together && held.next == Some(gone) {
            held.next = Some(kept);
        }
        held.allocated -= 1;
        self.processes[self.requesters[gone as usize] as usize].requests -= 1;
        self.remove(now, gone, requests);
        self.retire(queue);
    }

    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32> {
        self.tick(now, context.requests);
        if self.config.strict_guarantees && self.in_driver > 0 {
            return None;
        }
        let queue = self
            .select(now, context.requests)
            .or_else(|| self.inject(context))?;
        self.send_from(now, queue, context.requests)
    }

    /// `bfq_completed_request` runs the queue if nothing is in flight.
    fn runs_again(&self) -> bool {
        self.in_driver == 0
    }

    fn completed(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.tick(now, requests);
        self.finish(now, slot, requests);
    }

    fn next_wake(&self) -> Time {
        self.idle_until
    }

    fn anticipates(&self) -> bool {
        true
    }

    fn may_starve(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(super) use tests::tunables;
