//! The elevators: each chooses which waiting request goes to the device next, and when.
//!
//! An elevator is one file: a type that implements [`Elevator`], its keys, its tests, and one line
//! in [`REGISTRY`].
//!
//! | file | content |
//! |---|---|
//! | `none.rs` | no elevator, as in Linux 6 |
//! | `noop.rs` | in order of arrival, with merges |
//! | `fifo.rs` | in order of arrival, without merges |
//! | `sstf.rs`, `scan.rs`, `c_scan.rs` | the classics, by address |
//! | `vr.rs` | V(R), with expiries |
//! | `satf.rs` | shortest access time, above a single drive |
//! | `deadline.rs` | Linux 2.6.24's, 2.6.23's, and with expiries that grow with the latency |
//! | `anticipatory.rs` | Linux 2.6.24's, which pauses for the next request of a process |
//! | `mq_deadline.rs` | today's: deadline for each class of I/O priority |
//! | `bfq.rs` | today's: sectors by weight, budget by budget; favours interactive processes |
//! | `kyber.rs` | today's: tokens for reads and writes, by their latencies |
//! | `cfq.rs` | Linux 2.6.24's CFQ: slices of time |
//! | `by_position.rs` | waiting requests by address, for the classics |
//! | `forest.rs` | requests sorted by a key |
//! | `fifos.rs` | requests in order of arrival, for expiries and plain queues |
//! | `coordinated.rs` | queues at other members count as distance |
//! | `back_seek.rs` | ascending order of address, with short seeks back |
//! | `throttle.rs` | a limit on the asynchronous requests that an elevator sees at once |
//! | `habits.rs` | think times and seek distances of a process |
//! | `testing.rs` | a device and closed loops for tests of an elevator |
//! | `conformance.rs` | tests of every elevator |
//! | `extremes.rs` | conformance tests for keys at the ends of their ranges |

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
mod none;
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

use crate::TickClock;
use crate::block::{Flushing, JoinKind, Queued, Requests};
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};
use fullstroke_contract::{ConfigError, Gauge, Stripes, TrackTable};
use fullstroke_units::{Lbn, Sectors, Time};
use schemars::JsonSchema;
use serde::Deserialize;

/// An I/O scheduler: a rule of choice, together with its waiting requests.
///
/// - **Events in**: [`add`](Elevator::add), [`grown`](Elevator::grown),
///   [`coalesced`](Elevator::coalesced), [`completed`](Elevator::completed).
/// - **Out**: [`dispatch`](Elevator::dispatch), exactly once for each added slot, except for slots
///   coalesced into another.
/// - **Getters**: [`may_join`](Elevator::may_join), [`next_wake`](Elevator::next_wake),
///   [`anticipates`](Elevator::anticipates), [`may_starve`](Elevator::may_starve).
///
/// The block layer guarantees:
///
/// - A slot names one request from `add` until `completed`, or until `coalesced` if the request is
///   merged into another. Then the slot is used again. Slot numbers stay below the largest number
///   of simultaneous requests.
/// - Only reads, writes and discards arrive here. A flush bypasses the elevator. If flushes are
///   barriers ([`Flushing::Drain`]), a flush is issued after all earlier requests have completed,
///   and later requests are added after the flush has completed. Otherwise a flush counts among the
///   requests in flight, although the elevator did not dispatch it.
/// - Time never decreases from call to call. The time is that of the host's [`TickClock`]. If that
///   clock ticks, events between two ticks have the time of the first tick. An elevator whose own
///   time spans are whole ticks then names whole ticks.
/// - `dispatch` is called only if at least one request waits here, the device has room (for some
///   drivers: or no other request is ahead of the device), and the queue is not plugged. Calls repeat until the elevator declines or no request is left. Calls
///   follow each add, join and completion, and happen at `next_wake`.
pub trait Elevator: Send {
    /// True if `other` may become part of `kept`, the request in `slot`. The layer has checked
    /// three conditions already. The two are neighbours of one operation, class and level. Neither
    /// forces unit access. Together they are not too long. If both wait (`JoinKind::Coalesce`),
    /// `kept` has the lower address.
    fn may_join(&self, _slot: u32, _kept: &Queued, _other: &Queued, _join: JoinKind) -> bool {
        true
    }

    /// True if a submitter that was blocked may join its next request to a waiting one. False if
    /// requests do not wait in the elevator. Default true.
    fn joins_blocked(&self) -> bool {
        true
    }

    /// Adds the new request in `slot`.
    fn add(&mut self, now: Time, slot: u32, requests: &Requests);

    /// Notes a merge: `arrival` has become part of the request in `slot`. The request was `before`
    /// and is now `requests[slot]`. A front join has moved the start.
    fn grown(
        &mut self,
        now: Time,
        slot: u32,
        join: JoinKind,
        before: &Queued,
        arrival: &Queued,
        requests: &Requests,
    );

    /// Notes the merge of two waiting requests into `requests[kept]`, with an unchanged start. The
    /// elevator must forget the other request, still readable as `requests[gone]`.
    fn coalesced(&mut self, now: Time, kept: u32, gone: u32, requests: &Requests);

    /// Returns the number of the layer's shared requests, of `most`, of which `request` may take
    /// one (`limit_depth` of the kernel's elevators). Default: all.
    fn depth(&self, _request: &Queued, most: u32) -> u32 {
        most
    }

    /// Returns the smallest value that [`depth`](Elevator::depth) may return
    /// (`blk_mq_set_min_shallow_depth`). Default: all.
    fn least_depth(&self, most: u32) -> u32 {
        most
    }

    /// Removes and returns the request that goes to the device now. `None` declines, because
    /// waiting for another request is better. An elevator that declines while no request is in
    /// flight must name a later time in `next_wake`.
    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32>;

    /// True if the elevator wants to be asked after a completion, even if the device was not full
    /// (`blk_mq_run_hw_queues` in the kernel's elevators). Default true.
    fn runs_again(&self) -> bool {
        true
    }

    /// Notes the completion of the request in `slot`, dispatched at `requests[slot].dispatched`.
    fn completed(&mut self, _now: Time, _slot: u32, _requests: &Requests) {}

    /// Returns the time at which `dispatch` should be called again even if nothing else happens, or
    /// [`Time::NEVER`]. After `dispatch` has declined at `now`, the time must be later than `now`.
    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    /// True if the elevator holds the device back for requests that have not arrived yet. Only then
    /// has the layer's option `per_member_anticipation` an effect.
    fn anticipates(&self) -> bool {
        false
    }

    /// True if the elevator is asked again 3 ms after it has declined, as in Linux
    /// (`BLK_MQ_BUDGET_DELAY` of `block/blk-mq-sched.c`). If false, it is asked at the next event
    /// and at [`next_wake`](Elevator::next_wake).
    fn is_asked_again(&self) -> bool {
        true
    }

    /// True if a request may wait for ever while others are served. If false, the conformance tests
    /// check this for best-effort requests.
    fn may_starve(&self) -> bool;
}

/// State of the layer and the device, for the choice of an elevator.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The requests, by slot.
    pub requests: &'a Requests,
    /// Number of requests in the elevator, at least 1.
    pub waiting: u32,
    /// Number of requests in flight.
    pub issued: u32,
    /// Largest number of requests in flight.
    pub queue_depth: u32,
    /// The readings of the device below.
    pub device: Gauge,
    /// Map of addresses to tracks, if the device is a single drive.
    pub tracks: Option<&'a dyn TrackTable>,
    /// Map of addresses to the members behind the device, if the layer's option
    /// `per_member_anticipation` is on.
    pub stripes: Option<&'a dyn Stripes>,
}

impl Context<'_> {
    /// Returns the member that holds `lbn`, if anticipation works by member. Then a wait for one
    /// member need not leave the others idle.
    pub fn member_of(&self, lbn: Lbn) -> Option<u32> {
        self.stripes.map(|stripes| stripes.member_of(lbn))
    }
}

/// An elevator outside the registry.
pub type Trial = fullstroke_contract::TrialPolicy<ElevatorSite, dyn Elevator>;

/// Host and device of an elevator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElevatorSite {
    /// Largest number of requests in flight.
    pub queue_depth: u32,
    /// Largest number of requests, waiting and in flight: of each direction, or of both.
    pub nr_requests: u32,
    /// Number of addresses of the device, in sectors.
    pub capacity: Sectors,
    /// True if the device is a single drive with a known track table.
    pub drive: bool,
    /// Clock of the host.
    pub clock: TickClock,
}

/// Function that builds an elevator from its keys.
pub type BuildElevator = fn(&Keys, &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError>;

/// Builder of an elevator, with the flushes of its kernel.
#[derive(Clone, Copy, Debug)]
pub struct ElevatorBuilder {
    /// Builds the elevator.
    pub build: BuildElevator,
    /// Effect of a flush in the elevator's kernel; the effect of today for elevators from
    /// textbooks. Default of the host's key `flush`.
    pub flush: Flushing,
}

/// Puts each elevator into the registry, together with the tests of its keys.
macro_rules! elevators {
    ($($name:literal => $module:ident, $flush:ident;)*) => {
        /// All elevators.
        pub const REGISTRY: &[PolicyEntry<ElevatorBuilder>] = &[$(PolicyEntry {
            name: $name,
            summary: $module::SUMMARY,
            schema: schema_of::<$module::Config>,
            build: ElevatorBuilder { build: $module::build, flush: Flushing::$flush },
        },)*];

        /// For each elevator, in the same order: two values of each key and a load under which the
        /// two values differ.
        #[cfg(test)]
        const TUNABLES: &[fn() -> Vec<testing::Tunable>] = &[$($module::tunables,)*];
    };
}

// To add an elevator, write its file, and add its `mod` and a line here: its name, its module, and
// the effect of a flush in its kernel.
elevators! {
    "none" => none, Sequence;
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

/// The keys of an elevator without keys.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoKeys {}
