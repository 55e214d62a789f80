//! `cfq`, completely fair queueing, as in Linux 2.6.24: divides the time of the device into slices.
//! Each process has slices for its synchronous requests. The asynchronous requests of all processes
//! share slices by priority (Carroll's thesis, section 2.4.5, with the defaults of his table 2.4).
//!
//! | file | content |
//! |---|---|
//! | `cfq.rs` | the path of a request |
//! | `cfq/config.rs` | the keys |
//! | `cfq/slices.rs` | the slices: order and length |
//! | `cfq/queues.rs` | the queues, in the order of service |
//! | `cfq/dispatch_list.rs` | the requests of a round, on their way to the device |
//! | `cfq/tests.rs` | |
//!
//! There are three differences from the kernel. The nearest request of a queue is searched when
//! needed, not kept from the arrival on. Metadata have no priority. Processes do not exit.

mod config;
mod dispatch_list;
mod queues;
mod slices;
#[cfg(test)]
mod tests;

use super::back_seek::BackSeek;
use super::coordinated::QueueWeight;
use super::{Context, Elevator, ElevatorSite};
use crate::TickClock;
use crate::block::{JoinKind, Queued, Requests};
pub(super) use config::Config;
use dispatch_list::DispatchList;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, PriorityClass};
use fullstroke_units::{Duration, Time};
use queues::CfqQueues;
use slices::Slices;
#[cfg(test)]
pub(super) use tests::tunables;

pub(super) const SUMMARY: &str =
    "Linux 2.6.24's CFQ: slices of device time for each process, by priority";

/// Record of a request, by slot.
#[derive(Clone, Copy, Debug, Default)]
struct RequestRecord {
    process: u32,
    queue: u32,
}

/// True if the device itself queues requests. Then waiting for a process with random requests saves
/// nothing.
#[derive(Clone, Copy, Debug)]
struct Queueing {
    detected: bool,
    /// Number of requests in flight.
    with_device: u32,
}

impl Queueing {
    /// A device with more requests in flight than this queues them: `hw_tag` of
    /// `cfq_activate_request`. The limit is not 1, because a controller's driver may exceed its
    /// limit by one, and idling still pays at small depths.
    const SHALLOW: u32 = 4;

    fn sent(&mut self) {
        self.with_device += 1;
        // Once detected, queueing stays: `hw_tag` of 2.6.24 is never reset.
        self.detected |= self.with_device > Queueing::SHALLOW;
    }
}

struct Cfq {
    config: Config,
    back_seek: BackSeek,
    queue_weight: Option<QueueWeight>,
    queues: CfqQueues,
    slices: Slices,
    list: DispatchList,
    places: Vec<RequestRecord>,
    clock: TickClock,
    queueing: Queueing,
    /// Number of synchronous requests in the list and in flight.
    synchronous_in_flight: u32,
    /// End of the last request.
    here: u64,
}

pub(super) fn build(keys: &Keys, site: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let config: Config = read(keys)?;
    config.check()?;
    let config = config.at(site.clock);
    let detected = !config.queueing_detection_bug && site.queue_depth > Queueing::SHALLOW;
    let penalty = u64::from(config.back_seek_penalty);
    Ok(Box::new(Cfq {
        config,
        back_seek: BackSeek {
            sectors_max: config.back_seek_max.0 / 512,
            penalty,
        },
        queue_weight: QueueWeight::checked(config.queue_weight)?,
        queues: CfqQueues::default(),
        slices: Slices::new(&config, site.clock),
        list: DispatchList::default(),
        places: Vec::new(),
        clock: site.clock,
        queueing: Queueing {
            detected,
            with_device: 0,
        },
        synchronous_in_flight: 0,
        here: 0,
    }))
}

impl Cfq {
    /// Chooses requests, queue by queue, until one must be waited for: `cfq_dispatch_requests`. The
    /// requests of a queue in flight are limited. Otherwise the queue of the drive would decide the
    /// order, and not the slices. A queue alone may have four times as many.
    fn fill(&mut self, now: Time, requests: &Requests) {
        while let Some(queue) = self.slices.select(now, &mut self.queues) {
            let turn = &self.queues[queue];
            let idle_class = turn.class == PriorityClass::Idle;
            let most = if idle_class { 1 } else { self.config.quantum };
            let enough = if self.queues.busy() > 1 {
                most
            } else {
                // `4 * max_dispatch` in `cfq_dispatch_requests`: nobody else waits for the device.
                most.saturating_mul(4)
            };
            if turn.in_flight >= enough || self.must_wait_for_synchronous(queue) {
                return;
            }
            let sent = self.round(now, queue, most, requests);
            let turn = &self.queues[queue];
            let spent = !turn.synchronous && sent >= self.asynchronous_most(turn.level);
            // The end of `__cfq_dispatch_requests`: an asynchronous queue has used up its number,
            // and the idle class ends after each round. Without rivals the slice goes on.
            if self.queues.busy() > 1 && (idle_class || spent) {
                self.slices.end(now, false, &mut self.queues);
            }
        }
    }

    /// True if the queue is asynchronous and synchronous requests are in flight. The kinds do not
    /// mix, because the synchronous requests would wait in the drive (`sync_flight`).
    fn must_wait_for_synchronous(&self, queue: u32) -> bool {
        !self.queues[queue].synchronous && self.synchronous_in_flight > 0
    }

    /// Returns the largest number of asynchronous requests in a slice: `cfq_prio_to_maxrq`. A
    /// number limits the slice, because a write cache takes the requests in no time.
    fn asynchronous_most(&self, level: u8) -> u32 {
        self.config
            .slice_async_rq
            .saturating_mul(2 * (8 - u32::from(level)))
    }

    /// Chooses up to `most` requests of one queue. Returns the number.
    fn round(&mut self, now: Time, queue: u32, most: u32, requests: &Requests) -> u32 {
        // A request of the awaited process has come, or another reason to go on
        // (`cfq_clear_cfqq_wait_request`).
        self.slices.stop_idling();
        let mut sent = 0;
        while sent < most {
            let Some(slot) = self.next_of(now, queue, requests) else {
                break;
            };
            self.slices.sent_for(self.places[slot as usize].process);
            self.choose(slot, queue, requests);
            sent += 1;
        }
        sent
    }

    /// Returns the next request of a queue. At the beginning of a slice an expired oldest request
    /// goes first (`cfq_check_fifo`). Otherwise the cheapest goes. The check happens once a slice,
    /// because a late queue would otherwise always go in order of arrival.
    fn next_of(&mut self, now: Time, queue: u32, requests: &Requests) -> Option<u32> {
        let turn = &self.queues[queue];
        let expiry = if turn.synchronous {
            self.config.fifo_expire_sync
        } else {
            self.config.fifo_expire_async
        };
        let oldest = turn
            .arrived
            .front()
            .filter(|&slot| requests[slot].queued + expiry <= now);
        let first = self.slices.begins();
        oldest
            .filter(|_| first)
            .or_else(|| self.cheapest(queue, requests))
    }

    fn cheapest(&self, queue: u32, requests: &Requests) -> Option<u32> {
        let (forest, tree) = (&self.queues.sorted, &self.queues[queue].sorted);
        match self.queue_weight {
            None => self.back_seek.cheapest(forest, tree, self.here),
            Some(weight) => weight.cheapest(forest, tree, requests, |address| {
                self.back_seek.cost(self.here, address)
            }),
        }
    }

    /// Moves a request from its queue to the dispatch list.
    fn choose(&mut self, slot: u32, queue: u32, requests: &Requests) {
        self.queues.remove(slot, queue);
        self.queues[queue].in_flight += 1;
        self.synchronous_in_flight += u32::from(self.queues[queue].synchronous);
        let request = &requests[slot];
        self.list
            .push(slot, request.extent.start.0, request.writes());
    }

    /// Chooses a request of another queue for another member, while a slice waits for its process
    /// at one member.
    fn aside(&mut self, context: &Context<'_>) -> Option<()> {
        // The kernel has one such elevator for each disk. Above an array, the wait for one member
        // should not keep the others idle.
        let held = self.slices.idles_at(&self.queues)?;
        let member = context.member_of(fullstroke_units::Lbn(held))?;
        let elsewhere = |queue: u32| {
            let turn = &self.queues[queue];
            let may =
                turn.in_flight < self.config.quantum && !self.must_wait_for_synchronous(queue);
            let slot = self.cheapest(queue, context.requests).filter(|_| may)?;
            let other = context.member_of(context.requests[slot].extent.start)?;
            (other != member).then_some((slot, queue))
        };
        let (slot, queue) = self.queues.in_order().find_map(elsewhere)?;
        self.choose(slot, queue, context.requests);
        Some(())
    }

    /// Learns the habits of a process from a new request (`cfq_rq_enqueued`), and decides if its
    /// slices wait for further requests (`cfq_update_idle_window`). There is no wait for a process
    /// that thinks longer than the wait. There is none for random requests either, if the drive can
    /// choose among other requests.
    fn learn(&mut self, now: Time, place: RequestRecord, request: &Queued) {
        let idle = self.config.slice_idle;
        let habits = &mut self.queues.processes[place.process as usize].habits;
        // Twice the wait at most (`cfq_update_io_thinktime`): one pause of minutes must not
        // outweigh all short times.
        habits.note_think_time(now.since(habits.completed).min(idle * 2), self.clock);
        // Before `moved`, which changes the place that the distance is measured from.
        habits.note_seek(habits.distance(request.extent));
        habits.moved(request.extent);
        let queue = &mut self.queues.all[place.queue as usize];
        if !queue.synchronous {
            return;
        }
        if idle == Duration::ZERO || self.queueing.detected && habits.is_seeky() {
            queue.idles = false;
        } else if habits.thinking().is_reliable() {
            queue.idles = habits.think(self.clock) <= idle;
        }
    }
}

impl Elevator for Cfq {
    /// Allows merges within one queue (`cfq_allow_merge`), but not with requests of the dispatch
    /// list.
    fn may_join(&self, _: u32, kept: &Queued, other: &Queued, join: JoinKind) -> bool {
        let queue = |request: &Queued| {
            (
                request.synchronous,
                // Asynchronous requests of all processes share a queue, so their process does not
                // matter.
                request.synchronous.then_some(request.process),
            )
        };
        queue(kept) == queue(other)
            && !self.list.holds(kept.extent.start.0)
            && (join != JoinKind::Coalesce || !self.list.holds(other.extent.start.0))
    }

    fn add(&mut self, now: Time, slot: u32, requests: &Requests) {
        // Timers that are due by now run first, as the kernel's would have run before the request
        // came.
        self.slices.ring(now, &mut self.queues);
        let request = &requests[slot];
        let process = self.queues.process(now, request.process);
        let queue = self.queues.queue(process, request);
        if self.places.len() <= slot as usize {
            self.places
                .resize(slot as usize + 1, RequestRecord::default());
        }
        let place = RequestRecord { process, queue };
        self.places[slot as usize] = place;
        if self.queues.insert(slot, queue, request) {
            self.slices.enqueue(now, queue, &mut self.queues);
        }
        // From the end of the last request, as `last_position`: the preemption asks whether the
        // request is near (`cfq_should_preempt`).
        let distance = request.extent.start.0.abs_diff(self.here);
        self.learn(now, place, request);
        self.slices.arrived(now, queue, distance, &mut self.queues);
    }

    fn grown(
        &mut self,
        _: Time,
        slot: u32,
        join: JoinKind,
        _: &Queued,
        _: &Queued,
        requests: &Requests,
    ) {
        if join == JoinKind::Front {
            self.queues
                .moved(slot, self.places[slot as usize].queue, &requests[slot]);
        }
    }

    fn coalesced(&mut self, now: Time, kept: u32, gone: u32, requests: &Requests) {
        self.slices.ring(now, &mut self.queues);
        let queue = self.places[kept as usize].queue;
        if requests[gone].queued < requests[kept].queued {
            // The joined request keeps the older place in the FIFO (`cfq_merged_requests`), so that
            // a merge delays nobody.
            self.queues.inherit(kept, gone, queue);
        } else {
            self.queues.remove(gone, queue);
        }
    }

    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32> {
        self.slices.ring(now, &mut self.queues);
        if self.list.is_empty() {
            // The dispatch list is sorted from the place of the head (`elv_dispatch_sort`,
            // `q->end_sector`).
            self.list.begin(self.here);
            self.fill(now, context.requests);
        }
        if self.list.is_empty() {
            self.aside(context);
        }
        let slot = self.list.pop()?;
        self.queueing.sent();
        self.here = context.requests[slot].extent.end().0;
        Some(slot)
    }

    fn completed(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.slices.ring(now, &mut self.queues);
        let RequestRecord { process, queue } = self.places[slot as usize];
        let synchronous = requests[slot].synchronous;
        assert!(
            self.queueing.with_device > 0 && self.queues[queue].in_flight > 0,
            "slot {slot} comes back, and the device has none of queue {queue}"
        );
        self.queueing.with_device -= 1;
        self.queues[queue].in_flight -= 1;
        assert!(
            self.synchronous_in_flight >= u32::from(synchronous),
            "slot {slot} comes back, and no synchronous request is under way"
        );
        self.synchronous_in_flight -= u32::from(synchronous);
        // Only synchronous requests show how long a process thinks between two requests.
        if synchronous {
            self.queues.processes[process as usize].habits.completed = now;
        }
        self.slices.completed(now, queue, &mut self.queues);
    }

    fn next_wake(&self) -> Time {
        self.slices.next_wake()
    }

    fn anticipates(&self) -> bool {
        self.config.slice_idle > Duration::ZERO
    }

    /// True: asynchronous requests may wait for ever. They go only while no synchronous request is
    /// in flight. A new synchronous request takes the slice away.
    fn may_starve(&self) -> bool {
        true
    }
}
