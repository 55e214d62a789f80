//! `cfq`, completely fair queueing, as in Linux 2.6.24: the time of the device is
//! dealt out in slices, to each process for its synchronous requests, and to the
//! asynchronous ones of all processes by priority (Carroll's thesis, section
//! 2.4.5, with the defaults of his table 2.4).
//!
//! | file | what |
//! |---|---|
//! | `cfq.rs` | keys; what happens with a request |
//! | `cfq/slices.rs` | whose turn it is, and for how long |
//! | `cfq/queues.rs` | the queues, in the order in which they are served |
//! | `cfq/dispatch_list.rs` | what a round has chosen, on its way to the device |
//! | `cfq/tests.rs` | |
//!
//! Where this differs from the kernel: the nearest request of a queue is looked
//! for when it is needed, not kept from when it arrived; there is no priority
//! for metadata; and processes do not exit.

mod dispatch_list;
mod queues;
mod slices;
#[cfg(test)]
mod tests;

use super::back_seek::BackSeek;
use super::coordinated::QueueWeight;
use super::{Context, Elevator, Site};
use crate::Clock;
use crate::block::{Join, Queued, Requests};
use dispatch_list::DispatchList;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, PriorityClass};
use fullstroke_units::{Bytes, Duration, Time};
use queues::Queues;
use schemars::JsonSchema;
use serde::Deserialize;
use slices::Slices;
#[cfg(test)]
pub(super) use tests::tunables;

pub(super) const SUMMARY: &str =
    "Linux 2.6.24's CFQ: the device's time in slices, to each process and by priority";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// The longest seek back; default 16MiB.
    #[serde(default = "back_seek_max")]
    back_seek_max: Bytes,
    /// What a distance back is multiplied by; default 2.
    #[serde(default = "back_seek_penalty")]
    back_seek_penalty: u32,
    /// Expiry of asynchronous requests; default 250ms. A slice begins with its
    /// queue's oldest request if that has expired.
    #[serde(default = "fifo_expire_async")]
    fifo_expire_async: Duration,
    /// Expiry of synchronous requests; default 125ms. A slice begins with its
    /// queue's oldest request if that has expired.
    #[serde(default = "fifo_expire_sync")]
    fifo_expire_sync: Duration,
    /// The most requests that a queue sends in one go, and has with the device
    /// while others wait; default 4. Alone it may have four times as many.
    #[serde(default = "quantum")]
    quantum: u32,
    /// The slice of asynchronous requests at level 4; default 40ms. Each level
    /// above or below is a fifth more or less.
    #[serde(default = "slice_async")]
    slice_async: Duration,
    /// The slice of synchronous requests at level 4; default 100ms. Each level
    /// above or below is a fifth more or less.
    #[serde(default = "slice_sync")]
    slice_sync: Duration,
    /// What the most asynchronous requests of a slice go by: twice as many at
    /// level 7, sixteen times as many at level 0; default 2. Looked at after
    /// each `quantum`.
    #[serde(default = "slice_async_rq")]
    slice_async_rq: u32,
    /// How long a slice waits for the next synchronous request of its process;
    /// default 8ms. 0s = it does not.
    #[serde(default = "slice_idle")]
    slice_idle: Duration,
    /// Whether a device counts as queueing only once it has been seen with more
    /// than four requests, as in Linux 2.6.24; default false: from the
    /// beginning, if it may have more than four. While it does not count as
    /// queueing, slices wait for processes that read at random, too, and so it
    /// may never be seen with more than one (thesis, section 6.4).
    #[serde(default)]
    queueing_detection_bug: bool,
    /// With `coordinate` of the volume above: each request that waits at the member
    /// that it names counts as 2^queue_weight sectors of distance. None unless said.
    queue_weight: Option<u32>,
}

// The defaults are those of `block/cfq-iosched.c` of 2.6.24, fractions of HZ
// there: `cfq_back_max`, `cfq_back_penalty`, `cfq_fifo_expire`, `cfq_quantum`,
// `cfq_slice_async`, `cfq_slice_sync`, `cfq_slice_async_rq`, `cfq_slice_idle`.
fn back_seek_max() -> Bytes {
    Bytes(16 << 20)
}

fn back_seek_penalty() -> u32 {
    2
}

fn fifo_expire_async() -> Duration {
    Duration::from_millis(250)
}

fn fifo_expire_sync() -> Duration {
    Duration::from_millis(125)
}

fn quantum() -> u32 {
    4
}

fn slice_async() -> Duration {
    Duration::from_millis(40)
}

fn slice_sync() -> Duration {
    Duration::from_millis(100)
}

fn slice_async_rq() -> u32 {
    2
}

fn slice_idle() -> Duration {
    Duration::from_millis(8)
}

impl Config {
    /// With expiries as `clock` sees them.
    fn at(self, clock: Clock) -> Config {
        Config {
            fifo_expire_async: clock.whole(self.fifo_expire_async),
            fifo_expire_sync: clock.whole(self.fifo_expire_sync),
            slice_async: clock.whole(self.slice_async),
            slice_sync: clock.whole(self.slice_sync),
            slice_idle: clock.whole(self.slice_idle),
            ..self
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key, found, expected: &str| {
            Err(ConfigError::new(
                key,
                format!("found {found}; expected {expected}"),
            ))
        };
        for (key, value) in [
            ("quantum", self.quantum),
            ("back_seek_penalty", self.back_seek_penalty),
            ("slice_async_rq", self.slice_async_rq),
        ] {
            if value == 0 {
                return refuse(key, "0", "at least 1");
            }
        }
        for (key, value) in [
            ("slice_sync", self.slice_sync),
            ("slice_async", self.slice_async),
        ] {
            if value < Duration::from_micros(1) {
                return refuse(
                    key,
                    &value.to_string(),
                    "a slice of at least 1us, as \"100ms\"",
                );
            }
        }
        Ok(())
    }
}

/// What is known of a request, by slot.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    process: u32,
    queue: u32,
}

/// Whether the device queues requests itself: then it is no use to wait for a
/// process that seeks anyhow.
#[derive(Clone, Copy, Debug)]
struct Queueing {
    detected: bool,
    /// Requests with the device.
    with_device: u32,
}

impl Queueing {
    /// More requests than this show that a device queues: `hw_tag` of
    /// `cfq_activate_request`. Not more than one, for below a controller's driver
    /// one beyond the limit may be seen, and idling still pays at small depths.
    const SHALLOW: u32 = 4;

    fn sent(&mut self) {
        self.with_device += 1;
        self.detected |= self.with_device > Queueing::SHALLOW;
    }
}

struct Cfq {
    config: Config,
    back_seek: BackSeek,
    queue_weight: Option<QueueWeight>,
    queues: Queues,
    slices: Slices,
    list: DispatchList,
    places: Vec<Place>,
    clock: Clock,
    queueing: Queueing,
    /// Synchronous requests in the list and with the device.
    synchronous_in_flight: u32,
    /// Where the last request ended.
    here: u64,
}

pub(super) fn build(keys: &Keys, site: &Site) -> Result<Box<dyn Elevator>, ConfigError> {
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
        queues: Queues::default(),
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
    /// Chooses requests, queue by queue, until one must be waited for:
    /// `cfq_dispatch_requests`. What a queue may have under way is bounded, or the
    /// drive's own queue would decide whose time it is; alone it may have four
    /// times as much.
    fn fill(&mut self, now: Time, requests: &Requests) {
        while let Some(queue) = self.slices.select(now, &mut self.queues) {
            let turn = &self.queues[queue];
            let idle_class = turn.class == PriorityClass::Idle;
            let most = if idle_class { 1 } else { self.config.quantum };
            let enough = if self.queues.busy() > 1 {
                most
            } else {
                most.saturating_mul(4)
            };
            if turn.in_flight >= enough || self.must_wait_for_synchronous(queue) {
                return;
            }
            let sent = self.round(now, queue, most, requests);
            let turn = &self.queues[queue];
            let spent = !turn.synchronous && sent >= self.asynchronous_most(turn.level);
            if self.queues.busy() > 1 && (idle_class || spent) {
                self.slices.end(now, false, &mut self.queues);
            }
        }
    }

    /// Asynchronous requests do not mix with synchronous ones, which would wait
    /// for them in the drive (`sync_flight`).
    fn must_wait_for_synchronous(&self, queue: u32) -> bool {
        !self.queues[queue].synchronous && self.synchronous_in_flight > 0
    }

    /// `cfq_prio_to_maxrq`: by number, for a write cache takes them in no time.
    fn asynchronous_most(&self, level: u8) -> u32 {
        self.config
            .slice_async_rq
            .saturating_mul(2 * (8 - u32::from(level)))
    }

    /// Chooses up to `most` requests of one queue; says how many.
    fn round(&mut self, now: Time, queue: u32, most: u32, requests: &Requests) -> u32 {
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

    /// The oldest request of a queue, if it has expired and this is the
    /// beginning of a slice; otherwise the cheapest (`cfq_check_fifo`). Once a
    /// slice only, or a queue that is late would go in order of arrival for good.
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

    /// Puts a request on its way to the device.
    fn choose(&mut self, slot: u32, queue: u32, requests: &Requests) {
        self.queues.remove(slot, queue);
        self.queues[queue].in_flight += 1;
        self.synchronous_in_flight += u32::from(self.queues[queue].synchronous);
        let request = &requests[slot];
        self.list
            .push(slot, request.extent.start.0, request.writes());
    }

    /// While a slice waits for its process at one member: a request of another
    /// queue for another member.
    fn aside(&mut self, context: &Context<'_>) -> Option<()> {
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

    /// What a new request says about its process (`cfq_rq_enqueued`), and whether
    /// its slices wait for it from now on (`cfq_update_idle_window`): not for one
    /// that thinks for longer than the wait, nor for one that seeks where the drive
    /// has others to choose from.
    fn learn(&mut self, now: Time, place: Place, request: &Queued) {
        let idle = self.config.slice_idle;
        let habits = &mut self.queues.processes[place.process as usize].habits;
        habits.thought(now.since(habits.completed).min(idle * 2), self.clock);
        habits.sought(habits.distance(request.extent));
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
    /// Within one queue (`cfq_allow_merge`), and not on the way to the device.
    fn may_join(&self, kept: &Queued, other: &Queued, join: Join) -> bool {
        let queue = |request: &Queued| {
            (
                request.synchronous,
                request.synchronous.then_some(request.process),
            )
        };
        queue(kept) == queue(other)
            && !self.list.holds(kept.extent.start.0)
            && (join != Join::Coalesce || !self.list.holds(other.extent.start.0))
    }

    fn add(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.slices.ring(now, &mut self.queues);
        let request = &requests[slot];
        let process = self.queues.process(now, request.process);
        let queue = self.queues.queue(process, request);
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, Place::default());
        }
        let place = Place { process, queue };
        self.places[slot as usize] = place;
        if self.queues.insert(slot, queue, request) {
            self.slices.enqueue(now, queue, &mut self.queues);
        }
        let distance = request.extent.start.0.abs_diff(self.here);
        self.learn(now, place, request);
        self.slices.arrived(now, queue, distance, &mut self.queues);
    }

    fn grown(
        &mut self,
        _: Time,
        slot: u32,
        join: Join,
        _: &Queued,
        _: &Queued,
        requests: &Requests,
    ) {
        if join == Join::Front {
            self.queues
                .moved(slot, self.places[slot as usize].queue, &requests[slot]);
        }
    }

    fn coalesced(&mut self, now: Time, kept: u32, gone: u32, requests: &Requests) {
        self.slices.ring(now, &mut self.queues);
        let queue = self.places[kept as usize].queue;
        if requests[gone].queued < requests[kept].queued {
            self.queues.inherit(kept, gone, queue);
        } else {
            self.queues.remove(gone, queue);
        }
    }

    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32> {
        self.slices.ring(now, &mut self.queues);
        if self.list.is_empty() {
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
        let Place { process, queue } = self.places[slot as usize];
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

    /// Asynchronous requests may wait for ever: they go while no synchronous one
    /// is in flight, and whoever asks for one meanwhile takes their slice away.
    fn starves(&self) -> bool {
        true
    }
}
