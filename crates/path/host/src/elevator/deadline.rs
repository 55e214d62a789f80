//! `deadline`, as in Linux 2.6.24: reads go before writes, each direction in batches of consecutive
//! requests. Requests expire, and a new batch begins with the expired request.
//!
//! Options restore the two faults of 2.6.23 that Carroll found and corrected (his thesis, section
//! 3.4). A further option lets expiries grow with the latency, which he proposes in section 6.4.
//! Defaults: his table 2.2.

#[cfg(test)]
mod tests;

use super::fifos::{Fifos, RequestFifo};
use super::forest::{Forest, SlotTree};
use super::{Context, Elevator, ElevatorSite};
use crate::TickClock;
use crate::block::{JoinKind, Queued, Requests};
use crate::direction::{ByDirection, Direction};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;
#[cfg(test)]
pub(super) use tests::tunables;

pub(super) const SUMMARY: &str =
    "Linux 2.6.24's deadline: batches by address, reads before writes, the expired first";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Expiry of reads; default 500ms.
    #[serde(default = "read_expire")]
    read_expire: Duration,
    /// Expiry of writes; default 5s.
    #[serde(default = "write_expire")]
    write_expire: Duration,
    /// Largest number of requests in a batch; default 16. A batch ends earlier if the next request
    /// does not begin where the last one ended.
    #[serde(default = "fifo_batch")]
    fifo_batch: u32,
    /// Batches of reads that may go before waiting writes; default 2.
    #[serde(default = "writes_starved")]
    writes_starved: u32,
    /// True if a request may join one that begins where it ends; default true.
    #[serde(default = "yes")]
    front_merges: bool,
    /// True if every batch has `fifo_batch` requests; default true. With false, as in Linux 2.6.23,
    /// a batch of the same direction as the last batch continues its count, and so consists of one
    /// request.
    #[serde(default = "yes")]
    batch_count_fix: bool,
    /// True if a direction begins with its oldest request after a change of direction, and after
    /// its highest address; default true. With false, as in Linux 2.6.23, the direction begins with
    /// its lowest address.
    #[serde(default = "yes")]
    start_sector_fix: bool,
    /// True if expiries are multiplied by the mean latency over `scale_reference`; default false.
    /// The latency of a request lasts from its entry into the elevator to its completion. Each
    /// completion has a weight of 1/64. The mean starts at `scale_reference`.
    #[serde(default)]
    scale_expiries: bool,
    /// With `scale_expiries`: the mean latency at which expiries stay unchanged; default 50ms.
    #[serde(default)]
    scale_reference: Option<Duration>,
}

// The defaults are those of `block/deadline-iosched.c`, and later of `block/mq-deadline.c`:
// `read_expire`, `write_expire`, `fifo_batch`, `writes_starved`.
pub(super) fn read_expire() -> Duration {
    Duration::from_millis(500)
}

pub(super) fn write_expire() -> Duration {
    Duration::from_secs(5)
}

pub(super) fn fifo_batch() -> u32 {
    16
}

pub(super) fn writes_starved() -> u32 {
    2
}

fn yes() -> bool {
    true
}

impl Config {
    /// Converts the expiries to `clock`. `deadline_check_fifo` of `block/deadline-iosched.c`
    /// compares with `time_after`.
    fn at(self, clock: TickClock) -> Config {
        let Config {
            read_expire,
            write_expire,
            ..
        } = self;
        Config {
            read_expire: clock.past(read_expire),
            write_expire: clock.past(write_expire),
            ..self
        }
    }
}

/// The requests of one direction.
#[derive(Clone, Copy, Debug, Default)]
struct WaitingRequests {
    sorted: SlotTree,
    arrived: RequestFifo,
    /// Request after the last one dispatched, if the last one had this direction.
    next: Option<u32>,
}

/// Running mean of the latencies, for the scale of expiries.
#[derive(Clone, Copy, Debug)]
struct Scale {
    reference: Duration,
    mean_ns: u64,
}

impl Scale {
    /// Divisor of a new latency in the mean.
    const INERTIA: i64 = 64;

    fn add(&mut self, latency: Duration) {
        let change = (latency.as_nanos() as i64 - self.mean_ns as i64) / Scale::INERTIA;
        self.mean_ns = self.mean_ns.saturating_add_signed(change);
    }

    /// Returns `expiry` times the mean latency over the reference; at most [`Duration::LONGEST`].
    fn of(&self, expiry: Duration) -> Duration {
        let scaled = u128::from(expiry.as_nanos()) * u128::from(self.mean_ns);
        u64::try_from(scaled / u128::from(self.reference.as_nanos()))
            .map_or(Duration::LONGEST, Duration::from_nanos)
            .min(Duration::LONGEST)
    }
}

struct Deadline {
    config: Config,
    directions: ByDirection<WaitingRequests>,
    forest: Forest,
    links: Fifos,
    /// By slot: arrival time of the oldest part.
    since: Vec<Time>,
    /// Number of requests in the present batch.
    batched: u32,
    /// Number of read batches since the last write batch, while writes waited.
    starved: u32,
    /// End of the last request.
    here: u64,
    scale: Option<Scale>,
}

pub(super) fn build(keys: &Keys, site: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let config = read::<Config>(keys)?.at(site.clock);
    if config.fifo_batch == 0 {
        return Err(ConfigError::new(
            "fifo_batch",
            "found 0; expected at least 1",
        ));
    }
    let reference = config.scale_reference;
    if reference.is_some() && !config.scale_expiries {
        let message =
            "has no effect without `scale_expiries = true`; set `scale_expiries` or remove the key";
        return Err(ConfigError::new("scale_reference", message));
    }
    let reference = reference.unwrap_or(Duration::from_millis(50));
    if reference == Duration::ZERO {
        return Err(ConfigError::new(
            "scale_reference",
            "found 0s; expected a latency above it, as \"50ms\"",
        ));
    }
    let scale = Scale {
        reference,
        mean_ns: reference.as_nanos(),
    };
    Ok(Box::new(Deadline {
        config,
        directions: ByDirection::default(),
        forest: Forest::default(),
        links: Fifos::default(),
        since: Vec::new(),
        batched: 0,
        starved: 0,
        here: 0,
        scale: config.scale_expiries.then_some(scale),
    }))
}

impl Deadline {
    fn expiry(&self, direction: Direction) -> Duration {
        let expiry = match direction {
            Direction::Read => self.config.read_expire,
            Direction::Write => self.config.write_expire,
        };
        self.scale.map_or(expiry, |scale| scale.of(expiry))
    }

    fn has_expired(&self, now: Time, direction: Direction, slot: u32) -> bool {
        self.since[slot as usize] + self.expiry(direction) <= now
    }

    /// Returns the next request of the present batch. A request at another place costs a seek,
    /// which counts as a whole batch (`deadline_dispatch_requests` of `block/deadline-iosched.c` up
    /// to 2.6.24 adds `fifo_batch` for the seek).
    fn continued(&mut self, requests: &Requests) -> Option<u32> {
        let slot = self.directions.write.next.or(self.directions.read.next)?;
        if requests[slot].extent.start.0 != self.here {
            self.batched = self.batched.saturating_add(self.config.fifo_batch);
        }
        (self.batched < self.config.fifo_batch).then_some(slot)
    }

    /// Returns the direction of a new batch. Reads go first, because processes wait for them. After
    /// `writes_starved` batches of reads a batch of writes follows (`dispatch_writes` in the
    /// kernel).
    fn direction(&mut self) -> Direction {
        let waits = self.directions.map(|waiting| !waiting.arrived.is_empty());
        if waits.read && waits.write && self.starved < self.config.writes_starved {
            self.starved += 1;
            return Direction::Read;
        }
        if waits.write {
            self.starved = 0;
            return Direction::Write;
        }
        Direction::Read
    }

    /// Returns the first request of a new batch. An expired oldest request goes first
    /// (`deadline_check_fifo`). Otherwise the batch continues where the last batch of its direction
    /// ended.
    fn begin(&mut self, now: Time) -> Option<u32> {
        let direction = self.direction();
        let WaitingRequests {
            sorted,
            arrived,
            next,
        } = self.directions[direction];
        let oldest = arrived.front()?;
        let expired = self.has_expired(now, direction, oldest);
        if let Some(next) = next.filter(|_| !expired) {
            // In 2.6.23 the count goes on, so a batch of the same direction ends after one request.
            if self.config.batch_count_fix {
                self.batched = 0;
            }
            return Some(next);
        }
        self.batched = 0;
        let from_the_lowest = !expired && !self.config.start_sector_fix;
        if from_the_lowest {
            self.forest.first(&sorted)
        } else {
            Some(oldest)
        }
    }
}

impl Elevator for Deadline {
    fn may_join(&self, _: u32, _: &Queued, _: &Queued, join: JoinKind) -> bool {
        join != JoinKind::Front || self.config.front_merges
    }

    fn add(&mut self, now: Time, slot: u32, requests: &Requests) {
        let direction = &mut self.directions[requests[slot].direction()];
        self.forest
            .insert(&mut direction.sorted, requests[slot].extent.start.0, slot);
        self.links.push_back(&mut direction.arrived, slot);
        if self.since.len() <= slot as usize {
            self.since.resize(slot as usize + 1, Time::ZERO);
        }
        self.since[slot as usize] = now;
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
            let direction = &mut self.directions[requests[slot].direction()];
            self.forest.remove(&mut direction.sorted, slot);
            self.forest
                .insert(&mut direction.sorted, requests[slot].extent.start.0, slot);
        }
    }

    /// The kept request takes the arrival time and the place of the older of the two
    /// (`deadline_merged_requests`).
    fn coalesced(&mut self, _: Time, kept: u32, gone: u32, requests: &Requests) {
        debug_assert_eq!(
            requests[kept].direction(),
            requests[gone].direction(),
            "a read and a write become one request"
        );
        let direction = &mut self.directions[requests[kept].direction()];
        if direction.next == Some(gone) {
            direction.next = self.forest.next(gone);
        }
        self.forest.remove(&mut direction.sorted, gone);
        let older = self.since[gone as usize];
        if older < self.since[kept as usize] {
            self.since[kept as usize] = older;
            self.links.remove(&mut direction.arrived, kept);
            self.links.replace(&mut direction.arrived, gone, kept);
        } else {
            self.links.remove(&mut direction.arrived, gone);
        }
    }

    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32> {
        let slot = match self.continued(context.requests) {
            Some(slot) => slot,
            None => self.begin(now)?,
        };
        let taken = &context.requests[slot];
        (self.directions.read.next, self.directions.write.next) = (None, None);
        let direction = &mut self.directions[taken.direction()];
        direction.next = self.forest.next(slot);
        self.forest.remove(&mut direction.sorted, slot);
        self.links.remove(&mut direction.arrived, slot);
        self.batched += 1;
        self.here = taken.extent.end().0;
        debug_assert_eq!(
            direction.sorted.len(),
            direction.arrived.len(),
            "a request waits in both orders, or in neither"
        );
        Some(slot)
    }

    fn completed(&mut self, now: Time, slot: u32, requests: &Requests) {
        if let Some(scale) = &mut self.scale {
            scale.add(now.since(requests[slot].queued));
        }
    }

    fn may_starve(&self) -> bool {
        false
    }
}
