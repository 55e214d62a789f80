//! The elevator: which of the waiting requests goes to the device next, and
//! when.
//!
//! An elevator is one file: a type that implements [`Elevator`], its keys, its
//! tests, and one line in [`REGISTRY`].
//!
//! | file | what |
//! |---|---|
//! | `noop.rs` | in order of arrival, with merges |
//! | `fifo.rs` | in order of arrival, never merged |
//! | `sstf.rs`, `scan.rs`, `c_scan.rs` | the classics, by address |
//! | `vr.rs` | V(R), with expiries |
//! | `satf.rs` | the shortest access, where a single drive is below |
//! | `deadline.rs` | Linux 2.6.24's, 2.6.23's, and with expiries that grow with the latency |
//! | `anticipatory.rs` | Linux 2.6.24's, which pauses for what is likely to come |
//! | `mq_deadline.rs` | today's: deadline for each class of I/O priority |
//! | `bfq.rs` | today's: sectors by weight, budget by budget; favours the interactive |
//! | `kyber.rs` | today's: tokens for reads and writes, by their latencies |
//! | `cfq.rs` | Linux 2.6.24's CFQ: slices of time |
//! | `by_position.rs` | what the classics choose from |
//! | `forest.rs` | requests sorted by a key, for elevators to choose from |
//! | `fifos.rs` | requests in order of arrival, for expiries and plain queues |
//! | `coordinated.rs` | where queues of other members count as distance |
//! | `back_seek.rs` | onwards by address, with short seeks back |
//! | `throttle.rs` | how many asynchronous requests an elevator sees at once |
//! | `habits.rs` | what is learnt about a process |
//! | `testing.rs` | a device and closed loops to try an elevator with |
//! | `conformance.rs` | what every elevator is held to |
//! | `extremes.rs` | the same for keys at the ends of their ranges |

mod anticipatory;
mod back_seek;
mod bfq;
mod by_position;
mod c_scan;
mod cfq;
mod coordinated;
mod deadline;
mod fifo;
pub mod fifos;
pub mod forest;
mod habits;
mod kyber;
mod mq_deadline;
mod noop;
mod satf;
mod scan;
mod sstf;
mod throttle;
mod vr;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod extremes;
#[cfg(test)]
pub(crate) mod testing;
/// The example of CONTRIBUTING.md, compiled and held to the conformance tests.
#[cfg(test)]
#[path = "../../../../docs/examples/elevator.rs"]
mod worked_example;

use crate::Clock;
use crate::block::{Flushing, Join, Queued, Requests};
use fullstroke_contract::registry::{Entry, Keys, schema_of};
use fullstroke_contract::{ConfigError, Gauge, Stripes, TrackTable};
use fullstroke_units::{Lbn, Sectors, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// A rule of choice, together with the requests that wait under it.
///
/// - **Events in**: [`add`](Elevator::add), [`grown`](Elevator::grown),
///   [`coalesced`](Elevator::coalesced), [`completed`](Elevator::completed).
/// - **Out**: [`dispatch`](Elevator::dispatch), exactly once for each slot that
///   was added and not coalesced away.
/// - **Getters**: [`may_join`](Elevator::may_join),
///   [`next_wake`](Elevator::next_wake), [`anticipates`](Elevator::anticipates),
///   [`starves`](Elevator::starves).
///
/// What the block layer guarantees:
///
/// - A slot names a request from `add` until `completed` (or `coalesced`, as
///   the one that is gone); then it is used again. Slots are small: the most
///   requests that were ever there at once.
/// - Only reads, writes and discards arrive here. A flush passes the elevator
///   by. Where it is a barrier ([`Flushing::Drain`]), everything before it has
///   completed before it is issued, and nothing behind it is added before it has
///   completed; else it is one of the device's requests that the elevator did
///   not dispatch.
/// - Time is monotonic over all calls. It is that of the host's [`Clock`]: where
///   that ticks, what happens between two ticks happens at the first of them, and
///   an elevator whose own spans are whole ticks names whole ticks.
/// - `dispatch` is called only while at least one request waits here, the
///   device has room, and nothing is plugged; again and again until it declines
///   or nothing is left. It is called after each add, join and completion, and
///   at `next_wake`.
pub trait Elevator: Send {
    /// Whether `other` may become part of `kept`. The layer has made sure
    /// already that they are neighbours of one operation, class and level,
    /// neither forces unit access, and together they are not too long. Where
    /// both wait (`Join::Coalesce`), `kept` is the first of the two in address.
    fn may_join(&self, _kept: &Queued, _other: &Queued, _join: Join) -> bool {
        true
    }

    /// The request in `slot` is new.
    fn add(&mut self, now: Time, slot: u32, requests: &Requests);

    /// `arrival` has become part of the request in `slot`, which was `before`
    /// and is now `requests[slot]`. A front join has moved its start.
    fn grown(
        &mut self,
        now: Time,
        slot: u32,
        join: Join,
        before: &Queued,
        arrival: &Queued,
        requests: &Requests,
    );

    /// Two requests that waited here have become one: `requests[kept]`, whose
    /// start is as it was. The other, still to be seen in `requests[gone]`,
    /// must be forgotten.
    fn coalesced(&mut self, now: Time, kept: u32, gone: u32, requests: &Requests);

    /// Takes out the request that goes to the device now. `None` declines: it
    /// is better to wait for something else. Whoever declines while nothing is
    /// in flight must name a later instant in `next_wake`.
    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32>;

    /// The request in `slot`, dispatched at `requests[slot].dispatched`, has
    /// completed.
    fn completed(&mut self, _now: Time, _slot: u32, _requests: &Requests) {}

    /// When `dispatch` should be tried again even if nothing else happens;
    /// [`Time::NEVER`] if it need not. After a refusal at `now`, later than
    /// `now`.
    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    /// Whether it holds the device back for requests that have not come yet: only
    /// then does the layer's option `per_member_anticipation` mean something.
    fn anticipates(&self) -> bool {
        false
    }

    /// Whether a request may wait for ever while others are served. Who answers
    /// no is held to it by the conformance tests (for best-effort requests).
    fn starves(&self) -> bool;
}

/// What an elevator may know when it chooses.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The requests, by slot.
    pub requests: &'a Requests,
    /// Requests that wait in the elevator, at least 1.
    pub waiting: u32,
    /// Requests that the device has.
    pub issued: u32,
    /// Requests that the device may have.
    pub queue_depth: u32,
    /// The readings of the device below.
    pub device: Gauge,
    /// How addresses lie on the device, if it is a single drive.
    pub tracks: Option<&'a dyn TrackTable>,
    /// How addresses lie on the members behind the device, if the layer's
    /// option `per_member_anticipation` is on.
    pub stripes: Option<&'a dyn Stripes>,
}

impl Context<'_> {
    /// The member that holds `lbn`, where anticipation is to go by member: then
    /// waiting for one member is no reason to leave the others idle.
    pub fn member_of(&self, lbn: Lbn) -> Option<u32> {
        self.stripes.map(|stripes| stripes.member_of(lbn))
    }
}

/// An elevator that is in no registry.
pub type Trial = fullstroke_contract::Trial<Site, dyn Elevator>;

/// What an elevator is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Requests that the device may have at once.
    pub queue_depth: u32,
    /// Requests that may wait or be in flight, in each direction.
    pub nr_requests: u32,
    /// Addresses of the device.
    pub capacity: Sectors,
    /// Whether the device is a single drive, whose track table is known.
    pub drive: bool,
    /// What the host tells time by.
    pub clock: Clock,
}

/// Builds an elevator from its keys.
pub type BuildElevator = fn(&Keys, &Site) -> Result<Box<dyn Elevator>, ConfigError>;

/// How an elevator comes about, and what it came with.
#[derive(Clone, Copy, Debug)]
pub struct Maker {
    /// Builds it.
    pub build: BuildElevator,
    /// What a flush did in the kernels that it is from; today's way for those
    /// from textbooks. The default of the host's key `flush`.
    pub flush: Flushing,
}

/// Puts each elevator into the registry, and its tests of tunables beside it.
macro_rules! elevators {
    ($($name:literal => $module:ident, $flush:ident;)*) => {
        /// Every elevator.
        pub const REGISTRY: &[Entry<Maker>] = &[$(Entry {
            name: $name,
            summary: $module::SUMMARY,
            schema: schema_of::<$module::Config>,
            build: Maker { build: $module::build, flush: Flushing::$flush },
        },)*];

        /// For each elevator, in the same order: two values of each of its keys
        /// and a load that tells them apart.
        #[cfg(test)]
        const TUNABLES: &[fn() -> Vec<testing::Tunable>] = &[$($module::tunables,)*];
    };
}

// To add an elevator: write its file, and add its `mod` and its line here: its
// name, its module, and what a flush did in its kernel.
elevators! {
    "noop" => noop, Drain;
    "fifo" => fifo, Sequence;
    "sstf" => sstf, Sequence;
    "scan" => scan, Sequence;
    "c-scan" => c_scan, Sequence;
    "v-r" => vr, Drain;
    "satf" => satf, Sequence;
    "deadline" => deadline, Drain;
    "anticipatory" => anticipatory, Drain;
    "cfq" => cfq, Drain;
    "mq-deadline" => mq_deadline, Sequence;
    "bfq" => bfq, Sequence;
    "kyber" => kyber, Sequence;
}

/// The keys of an elevator that has none.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoKeys {}
