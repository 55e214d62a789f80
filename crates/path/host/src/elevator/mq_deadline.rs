//! `mq-deadline`, as in Linux 6: the rule of `deadline`, once for each class of I/O priority.
//!
//! A class is served only while no higher class has a request, waiting or in flight. A request that
//! has waited for `prio_aging_expire` goes before all others. Within a class each direction is
//! sorted by address. A batch continues from the last request of the class in its direction. Names
//! and defaults are the kernel's (Documentation/block/deadline-iosched.rst, ioprio.rst).

#[cfg(test)]
mod tests;

use super::deadline::{fifo_batch, read_expire, write_expire, writes_starved};
use super::fifos::{Fifos, RequestFifo};
use super::forest::{Forest, SlotTree};
use super::throttle::Throttle;
use super::{Context, Elevator, ElevatorSite};
use crate::TickClock;
use crate::block::{JoinKind, Queued, Requests};
use crate::direction::{ByDirection, Direction};
use fullstroke_contract::registry::{Keys, read};
use fullstroke_contract::{ConfigError, PriorityClass};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const SUMMARY: &str = "Linux 6's mq-deadline: deadline for each class of I/O priority; aged requests of lower classes go first";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Expiry of reads; default 500ms.
    #[serde(default = "read_expire")]
    read_expire: Duration,
    /// Expiry of writes; default 5s.
    #[serde(default = "write_expire")]
    write_expire: Duration,
    /// Requests of a batch, during which expired requests are ignored; default 16.
    #[serde(default = "fifo_batch")]
    fifo_batch: u32,
    /// Batches of reads that may go before waiting writes; default 2.
    #[serde(default = "writes_starved")]
    writes_starved: u32,
    /// True if a request may join one that begins where it ends; default true.
    #[serde(default = "front_merges")]
    front_merges: bool,
    /// Largest number of writes and discards in the elevator and in flight. Further ones are not
    /// sorted until one of these has completed. Default: `nr_requests` of the layer.
    async_depth: Option<u32>,
    /// Age at which a request goes before requests of higher classes; default 10s.
    #[serde(default = "prio_aging_expire")]
    prio_aging_expire: Duration,
}

fn front_merges() -> bool {
    true
}

/// `prio_aging_expire` of `block/mq-deadline.c`.
fn prio_aging_expire() -> Duration {
    Duration::from_secs(10)
}

impl Config {
    /// Converts the expiries to `clock`. An expiry at the present tick counts:
    /// `time_is_before_eq_jiffies` in `deadline_check_fifo` of `block/mq-deadline.c`.
    fn at(self, clock: TickClock) -> Config {
        Config {
            read_expire: clock.whole(self.read_expire),
            write_expire: clock.whole(self.write_expire),
            prio_aging_expire: clock.whole(self.prio_aging_expire),
            ..self
        }
    }
}

/// The requests of one class.
#[derive(Debug, Default)]
struct ClassQueues {
    /// By direction: requests by address, and by expiry.
    sorted: ByDirection<SlotTree>,
    expiring: ByDirection<RequestFifo>,
    /// By direction: start of the last dispatched request.
    positions: ByDirection<u64>,
    /// Number of requests in the elevator and in flight.
    held: u32,
}

struct MqDeadline {
    config: Config,
    /// In the order of [`PriorityClass::ALL`].
    classes: [ClassQueues; 3],
    /// Direction of the last batch.
    direction: Direction,
    /// Number of requests in the present batch.
    batched: u32,
    /// Number of read batches since the last write batch, while writes waited.
    starved: u32,
    forest: Forest,
    links: Fifos,
    /// By slot: time at which the elevator took the request.
    since: Vec<Time>,
    throttle: Throttle,
}

pub(super) fn build(keys: &Keys, site: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let config = read::<Config>(keys)?.at(site.clock);
    if config.fifo_batch == 0 {
        return Err(ConfigError::new(
            "fifo_batch",
            "found 0; expected at least 1",
        ));
    }
    let async_depth = config.async_depth.unwrap_or(site.nr_requests);
    if async_depth == 0 || async_depth > site.nr_requests {
        let message = format!(
            "found {async_depth}; expected 1 to the {} requests of the layer, its `nr_requests`",
            site.nr_requests
        );
        return Err(ConfigError::new("async_depth", message));
    }
    Ok(Box::new(MqDeadline {
        config,
        classes: Default::default(),
        direction: Direction::Read,
        batched: 0,
        starved: 0,
        forest: Forest::default(),
        links: Fifos::default(),
        since: Vec::new(),
        throttle: Throttle::new(async_depth),
    }))
}

impl MqDeadline {
    /// Takes a request in, within the limit.
    fn take_in(&mut self, now: Time, slot: u32, requests: &Requests) {
        let request = &requests[slot];
        let direction = request.direction();
        let class = &mut self.classes[request.class as usize];
        self.forest
            .insert(&mut class.sorted[direction], request.extent.start.0, slot);
        self.links.push_back(&mut class.expiring[direction], slot);
        class.held += 1;
        self.since[slot as usize] = now;
    }

    /// Releases the place of a request under the limit. Takes a waiting request in.
    fn release(&mut self, now: Time, slot: u32, requests: &Requests) {
        if let Some(next) = self.throttle.leaves(slot) {
            self.take_in(now, next, requests);
        }
    }

    fn unsort(&mut self, slot: u32, requests: &Requests) {
        let request = &requests[slot];
        let sorted = &mut self.classes[request.class as usize].sorted[request.direction()];
        self.forest.remove(sorted, slot);
    }

    fn expiry(&self, direction: Direction) -> Duration {
        match direction {
            Direction::Read => self.config.read_expire,
            Direction::Write => self.config.write_expire,
        }
    }

    /// Returns the next request of a direction in order of address.
    fn onwards(&self, class: PriorityClass, direction: Direction) -> Option<u32> {
        let ClassQueues {
            sorted, positions, ..
        } = &self.classes[class as usize];
        self.forest
            .at_or_after(&sorted[direction], positions[direction])
    }

    /// Returns the direction of a new batch, if requests wait (`__dd_dispatch_request` of
    /// `block/mq-deadline.c`).
    fn next_direction(&mut self, class: PriorityClass) -> Option<Direction> {
        let expiring = &self.classes[class as usize].expiring;
        let waits = expiring.map(|fifo| !fifo.is_empty());
        if waits.read && waits.write && self.starved < self.config.writes_starved {
            self.starved += 1;
            return Some(Direction::Read);
        }
        if waits.write {
            self.starved = 0;
            return Some(Direction::Write);
        }
        waits.read.then_some(Direction::Read)
    }

    /// Returns the first request of a new batch: the oldest if it has expired or if no request lies
    /// ahead; otherwise the next one ahead.
    fn begin(&mut self, now: Time, class: PriorityClass) -> Option<u32> {
        let direction = self.next_direction(class)?;
        let oldest = self.classes[class as usize].expiring[direction].front()?;
        let expired = self.since[oldest as usize] + self.expiry(direction) <= now;
        let onwards = self.onwards(class, direction).filter(|_| !expired);
        self.direction = direction;
        self.batched = 0;
        Some(onwards.unwrap_or(oldest))
    }

    /// Returns the next request of a class, if older than `age`. As in the kernel, a batch may
    /// begin here although its first request is too young.
    fn choose(&mut self, now: Time, class: PriorityClass, age: Duration) -> Option<u32> {
        let going_on = self.onwards(class, self.direction);
        let slot = match going_on.filter(|_| self.batched < self.config.fifo_batch) {
            Some(slot) => slot,
            None => self.begin(now, class)?,
        };
        (self.since[slot as usize] + age <= now).then_some(slot)
    }

    /// Returns a request after too long a wait for higher classes
    /// (`dd_dispatch_prio_aged_requests`).
    fn aged(&mut self, now: Time) -> Option<u32> {
        if self.classes.iter().filter(|class| class.held > 0).count() < 2 {
            return None;
        }
        let lower = [PriorityClass::BestEffort, PriorityClass::Idle];
        lower
            .into_iter()
            .find_map(|class| self.choose(now, class, self.config.prio_aging_expire))
    }
}

impl Elevator for MqDeadline {
    fn may_join(&self, _: u32, _: &Queued, _: &Queued, join: JoinKind) -> bool {
        join != JoinKind::Front || self.config.front_merges
    }

    /// The limit of asynchronous requests is all of them, but may be set to one (`dd_depth_updated`
    /// of `block/mq-deadline.c`).
    fn least_depth(&self, _: u32) -> u32 {
        1
    }

    fn add(&mut self, now: Time, slot: u32, requests: &Requests) {
        if self.since.len() <= slot as usize {
            self.since.resize(slot as usize + 1, Time::ZERO);
        }
        if self.throttle.enters(slot, requests[slot].writes()) {
            self.take_in(now, slot, requests);
        }
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
        if join == JoinKind::Front && !self.throttle.keeps_out(slot) {
            let request = &requests[slot];
            let sorted = &mut self.classes[request.class as usize].sorted[request.direction()];
            self.forest.remove(sorted, slot);
            self.forest.insert(sorted, request.extent.start.0, slot);
        }
    }

    /// The kept request takes the place of the older of the two.
    fn coalesced(&mut self, now: Time, kept: u32, gone: u32, requests: &Requests) {
        if !self.throttle.keeps_out(gone) {
            self.unsort(gone, requests);
            let class = &mut self.classes[requests[gone].class as usize];
            let expiring = &mut class.expiring[requests[gone].direction()];
            let older = self.since[gone as usize] < self.since[kept as usize];
            if older && !self.throttle.keeps_out(kept) {
                self.links.remove(expiring, kept);
                self.links.replace(expiring, gone, kept);
                self.since[kept as usize] = self.since[gone as usize];
            } else {
                self.links.remove(expiring, gone);
            }
            assert!(class.held > 0, "slot {gone} leaves a class that holds none");
            class.held -= 1;
        }
        self.release(now, gone, requests);
    }

    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32> {
        // A lower class waits even if all requests of a higher class are in flight (`dd_queued` in
        // `dd_dispatch_request`). Otherwise a request of the lower class would delay the next
        // request of the higher class.
        let mut chosen = self.aged(now);
        for class in PriorityClass::ALL {
            if chosen.is_some() {
                break;
            }
            chosen = self.choose(now, class, Duration::ZERO);
            if self.classes[class as usize].held > 0 {
                break;
            }
        }
        let slot = chosen?;
        debug_assert!(
            !self.throttle.keeps_out(slot),
            "slot {slot} is sent, and was never let in"
        );
        let request = &context.requests[slot];
        self.unsort(slot, context.requests);
        self.batched += 1;
        let class = &mut self.classes[request.class as usize];
        class.positions[request.direction()] = request.extent.start.0;
        self.links
            .remove(&mut class.expiring[request.direction()], slot);
        Some(slot)
    }

    /// `dd_finish_request` runs no queue. So the next request of a high class often comes before a
    /// waiting request of a lower class goes.
    fn runs_again(&self) -> bool {
        false
    }

    fn completed(&mut self, now: Time, slot: u32, requests: &Requests) {
        let class = &mut self.classes[requests[slot].class as usize];
        assert!(class.held > 0, "slot {slot} leaves a class that holds none");
        class.held -= 1;
        self.release(now, slot, requests);
    }

    fn may_starve(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(super) fn tunables() -> Vec<super::testing::Tunable> {
    use super::testing::{Load, LoopProcess, Tunable};
    let load = |processes| Load {
        queue_depth: 1,
        processes,
    };
    let joining = LoopProcess {
        start: 50_000,
        stride: -8,
        outstanding: 8,
        ..LoopProcess::default()
    };
    let urgent = LoopProcess {
        process: 3,
        class: PriorityClass::RealTime,
        ..tests::scattered(4)
    };
    let tunable = |key, values, processes| Tunable {
        key,
        values,
        others: "{}",
        load: load(processes),
    };
    let both = || vec![tests::scattered(64), tests::writing(tests::scattered(64))];
    let writers = || vec![tests::writing(tests::scattered(32))];
    vec![
        tunable(
            "read_expire",
            [r#""1ms""#, r#""10s""#],
            vec![tests::scattered(8)],
        ),
        tunable("write_expire", [r#""1ms""#, r#""10s""#], writers()),
        tunable("fifo_batch", ["2", "16"], both()),
        tunable("writes_starved", ["1", "4"], both()),
        tunable("front_merges", ["true", "false"], vec![joining]),
        tunable("async_depth", ["2", "32"], writers()),
        tunable(
            "prio_aging_expire",
            [r#""20ms""#, r#""10s""#],
            vec![urgent, tests::scattered(1)],
        ),
    ]
}
