//! The command queue inside the drive, which chooses the next request.
//!
//! A discipline is one file with a type that implements [`Discipline`], and one line in
//! [`REGISTRY`].

mod aged_satf;
mod batched_satf;
mod clook;
mod command_queue;
mod fcfs;
mod firmware;
mod look;
mod nearest;
mod satf;
mod scan;
mod search;
mod sorted;
mod sstf;
mod vr;
mod weighted;

/// The example of CONTRIBUTING.md, compiled and checked by the conformance tests.
#[cfg(test)]
#[path = "../../../../docs/examples/queue_discipline.rs"]
mod worked_example;

pub use command_queue::CommandQueue;
pub use nearest::Nearest;

use crate::config::QueueConfig;
use crate::geometry::Position;
use crate::mechanics::{HeadPosition, Mechanics};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, find, read, schema_of};
use fullstroke_units::{Angle, Cylinder, Lbn, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request waiting for the arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingRequest {
    /// Slot of the request in the drive.
    pub slot: u32,
    /// First block.
    pub lbn: Lbn,
    /// Place of the first block.
    pub position: Position,
    /// Angle of the request on its first track.
    pub span: Angle,
    /// True for a write.
    pub write: bool,
    /// Time when the request came into the queue.
    pub arrived: Time,
}

/// State of the arm that a discipline may read when the discipline chooses a request.
#[derive(Clone, Copy, Debug)]
pub struct ArmView<'a> {
    /// Time when the arm could begin to move.
    pub now: Time,
    /// Position of the heads.
    pub head: HeadPosition,
    /// The block behind the last one transferred.
    pub next_lbn: Lbn,
    /// Mechanics for seek and rotation times.
    pub mechanics: &'a Mechanics,
}

/// The request that the drive serves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextRequest {
    /// The request.
    pub waiting: WaitingRequest,
    /// Cylinder to visit on the way to the request.
    pub via: Option<Cylinder>,
}

impl NextRequest {
    /// Returns the choice of `waiting` by the shortest way.
    pub fn direct(waiting: WaitingRequest) -> NextRequest {
        NextRequest { waiting, via: None }
    }
}

/// A rule of choice, together with the requests waiting under the rule.
///
/// - **In**: [`insert`](Discipline::insert).
/// - **Out**: [`take`](Discipline::take) or [`remove`](Discipline::remove), exactly once for each
///   inserted request.
/// - **Getter**: [`len`](Discipline::len).
pub trait Discipline: Send {
    /// Adds a request.
    fn insert(&mut self, waiting: WaitingRequest);
    /// Removes and returns the next request; `None` if no request waits.
    fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest>;
    /// Removes the request in `slot`, because the drive serves the request out of turn. `None` if
    /// no such request waits.
    fn remove(&mut self, slot: u32) -> Option<WaitingRequest>;
    /// Number of waiting requests.
    fn len(&self) -> usize;
    /// True if no request waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Function to build a discipline from its keys.
pub type BuildDiscipline = fn(&Keys) -> Result<Box<dyn Discipline>, ConfigError>;

/// Every discipline.
#[rustfmt::skip]
pub const REGISTRY: &[PolicyEntry<BuildDiscipline>] = &[
    PolicyEntry { name: "fcfs", summary: fcfs::SUMMARY, schema: schema_of::<fcfs::Config>, build: fcfs::build },
    PolicyEntry { name: "sstf", summary: sstf::SUMMARY, schema: schema_of::<sstf::Config>, build: sstf::build },
    PolicyEntry { name: "scan", summary: scan::SUMMARY, schema: schema_of::<scan::Config>, build: scan::build },
    PolicyEntry { name: "look", summary: look::SUMMARY, schema: schema_of::<look::Config>, build: look::build },
    PolicyEntry { name: "c-look", summary: clook::SUMMARY, schema: schema_of::<clook::Config>, build: clook::build },
    PolicyEntry { name: "v-r", summary: vr::SUMMARY, schema: schema_of::<vr::Config>, build: vr::build },
    PolicyEntry { name: "satf", summary: satf::SUMMARY, schema: schema_of::<satf::Config>, build: satf::build },
    PolicyEntry { name: "aged-satf", summary: aged_satf::SUMMARY, schema: schema_of::<aged_satf::Config>, build: aged_satf::build },
    PolicyEntry { name: "batched-satf", summary: batched_satf::SUMMARY, schema: schema_of::<batched_satf::Config>, build: batched_satf::build },
    PolicyEntry { name: "firmware", summary: firmware::SUMMARY, schema: schema_of::<firmware::Config>, build: firmware::build },
    PolicyEntry { name: "weighted", summary: weighted::SUMMARY, schema: schema_of::<weighted::Config>, build: weighted::build },
];

impl QueueConfig {
    /// Builds the configured queue, empty.
    ///
    /// # Errors
    /// Fails if the depth is 0, the discipline is unknown, or the discipline does not have a given
    /// key.
    pub fn build(&self) -> Result<CommandQueue, ConfigError> {
        if self.depth == 0 {
            return Err(ConfigError::new(
                "depth",
                "found 0; a drive accepts at least one command",
            ));
        }
        let entry = find("queue discipline", REGISTRY, "discipline", &self.discipline)?;
        let discipline = (entry.build)(&self.keys)?;
        Ok(CommandQueue::new(
            discipline,
            self.age_limit,
            self.concatenate,
        ))
    }
}

/// Position by which a discipline sorts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SortBy {
    /// By cylinder, as the arm moves.
    #[default]
    Cylinder,
    /// By block number, as a host sees the drive.
    Lbn,
}

impl SortBy {
    fn key(self, waiting: &WaitingRequest) -> u64 {
        match self {
            SortBy::Cylinder => u64::from(waiting.position.cylinder.0),
            SortBy::Lbn => waiting.lbn.0,
        }
    }
    fn here(self, arm: &ArmView<'_>) -> u64 {
        match self {
            SortBy::Cylinder => u64::from(arm.head.cylinder.0),
            SortBy::Lbn => arm.next_lbn.0,
        }
    }
    /// Returns the width of the whole drive.
    fn width(self, arm: &ArmView<'_>) -> u64 {
        let geometry = arm.mechanics.geometry();
        match self {
            SortBy::Cylinder => u64::from(geometry.cylinders()),
            SortBy::Lbn => geometry.capacity().0,
        }
    }
}

/// Keys of a discipline that sorts by position.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SortedConfig {
    /// Unit of distance.
    #[serde(default)]
    pub by: SortBy,
}

/// Keys of a discipline without keys.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoKeys {}

fn sorted_config(keys: &Keys) -> Result<SortedConfig, ConfigError> {
    read(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::small_drive;
    use fullstroke_units::Sectors;
    use proptest::prelude::*;

    pub(super) fn waiting(
        mechanics: &Mechanics,
        slot: u32,
        lbn: u64,
        write: bool,
    ) -> WaitingRequest {
        let position = mechanics.geometry().locate(Lbn(lbn));
        let span = mechanics.span(&position, Sectors(1));
        WaitingRequest {
            slot,
            lbn: Lbn(lbn),
            position,
            span,
            write,
            arrived: Time::from_nanos(u64::from(slot)),
        }
    }

    pub(super) fn arm(mechanics: &Mechanics, lbn: u64, now: u64) -> ArmView<'_> {
        let position = mechanics.geometry().locate(Lbn(lbn));
        let head = HeadPosition::default().reading(&position);
        ArmView {
            now: Time::from_nanos(now),
            head,
            next_lbn: Lbn(lbn),
            mechanics,
        }
    }

    fn order(name: &str, lbns: &[u64], start: u64) -> Vec<u64> {
        order_with(name, r#"{"by": "lbn"}"#, lbns, start)
    }

    fn order_with(name: &str, keys: &str, lbns: &[u64], start: u64) -> Vec<u64> {
        let mechanics = Mechanics::new(&small_drive()).unwrap();
        let keys = serde_json::from_str(keys).unwrap();
        let entry = find("discipline", REGISTRY, "", name).unwrap();
        let mut queue = (entry.build)(&keys).unwrap();
        for (slot, &lbn) in lbns.iter().enumerate() {
            queue.insert(waiting(&mechanics, slot as u32, lbn, false));
        }
        let mut served = Vec::new();
        let mut at = start;
        while let Some(next) = queue.take(arm(&mechanics, at, 0)) {
            at = next.waiting.lbn.0;
            served.push(at);
        }
        served
    }

    #[test]
    fn v_of_r_is_sstf_at_0_and_look_at_1() {
        let lbns = [10, 500, 90, 120, 1300];
        let at = |r: &str| order_with("v-r", &format!(r#"{{"by": "lbn", "r": {r}}}"#), &lbns, 100);
        assert_eq!(at("0"), order("sstf", &lbns, 100));
        assert_eq!(at("1"), order("look", &lbns, 100));
        assert_eq!(at("0.05"), [120, 90, 10, 500, 1300]);
    }

    #[test]
    fn scan_visits_the_edge_before_it_turns() {
        let mechanics = Mechanics::new(&small_drive()).unwrap();
        let mut queue = scan::build(&Keys::new()).unwrap();
        queue.insert(waiting(&mechanics, 0, 10, false));
        let choice = queue.take(arm(&mechanics, 500, 0)).unwrap();
        assert_eq!(choice.via, Some(Cylinder(19)));
    }

    #[test]
    fn sstf_goes_to_the_nearest() {
        assert_eq!(
            order("sstf", &[10, 500, 90, 120, 1300], 100),
            [90, 120, 10, 500, 1300]
        );
    }

    #[test]
    fn look_turns_at_the_last_request() {
        assert_eq!(
            order("look", &[10, 500, 90, 120, 1300], 100),
            [120, 500, 1300, 90, 10]
        );
    }

    #[test]
    fn c_look_returns_to_the_lowest() {
        assert_eq!(
            order("c-look", &[10, 500, 90, 120, 1300], 100),
            [120, 500, 1300, 10, 90]
        );
    }

    const EXAMPLE: PolicyEntry<BuildDiscipline> = PolicyEntry {
        name: "lcfs",
        summary: worked_example::SUMMARY,
        schema: schema_of::<worked_example::Config>,
        build: worked_example::build,
    };

    proptest! {
        /// Conformance of every discipline: no request is lost, and no request is invented.
        #[test]
        fn every_discipline_serves_each_request_once(
            requests in prop::collection::vec((0u64..1400, any::<bool>()), 1..60),
            takes in prop::collection::vec(any::<bool>(), 1..60),
        ) {
            let mechanics = Mechanics::new(&small_drive()).unwrap();
            for entry in REGISTRY.iter().chain(&[EXAMPLE]) {
                let mut queue = (entry.build)(&Keys::new()).unwrap();
                let mut served = Vec::new();
                let mut at = 0;
                let mut pull = |queue: &mut Box<dyn Discipline>, now: u64, served: &mut Vec<u32>| {
                    let Some(next) = queue.take(arm(&mechanics, at, now)) else { return false };
                    at = next.waiting.lbn.0;
                    served.push(next.waiting.slot);
                    true
                };
                for (slot, &(lbn, write)) in requests.iter().enumerate() {
                    queue.insert(waiting(&mechanics, slot as u32, lbn, write));
                    if takes.get(slot) == Some(&true) {
                        pull(&mut queue, slot as u64 * 1_000_000, &mut served);
                    }
                    prop_assert_eq!(queue.len(), slot + 1 - served.len());
                }
                while pull(&mut queue, 0, &mut served) {}
                served.sort_unstable();
                prop_assert_eq!(served, (0..requests.len() as u32).collect::<Vec<_>>(), "{}", entry.name);
            }
        }

        #[test]
        fn satf_takes_what_a_scan_of_the_whole_queue_would(
            requests in prop::collection::vec((0u64..1400, any::<bool>()), 1..60),
            at in 0u64..1400, now in 0u64..1_000_000_000,
        ) {
            let mechanics = Mechanics::new(&small_drive()).unwrap();
            let mut queue = satf::build(&Keys::new()).unwrap();
            let all: Vec<WaitingRequest> = requests.iter().enumerate()
                .map(|(slot, &(lbn, write))| waiting(&mechanics, slot as u32, lbn, write)).collect();
            all.iter().for_each(|&waiting| queue.insert(waiting));
            let arm = arm(&mechanics, at, now);
            let cost = |waiting: &WaitingRequest| {
                let position = &waiting.position;
                let seek = mechanics.seek(arm.head, position.cylinder, position.surface, waiting.write);
                seek + mechanics.rotation(arm.head, arm.now + seek, position.angle, waiting.span, waiting.write)
            };
            let best = all.iter().map(cost).min().unwrap();
            prop_assert_eq!(cost(&queue.take(arm).unwrap().waiting), best);
        }
    }

    proptest! {
        /// Slots are used again while requests of other slots wait, so that entries of requests
        /// that left lie between those of waiting requests.
        #[test]
        fn aged_satf_takes_what_a_scan_of_the_whole_queue_would(
            lbns in prop::collection::vec(0u64..1400, 1..120),
            weight in prop::sample::select(vec![0.0, 6.0, 400.0, 1e6]),
            step in prop::sample::select(vec![1u64, 1_000_000, 50_000_000]),
        ) {
            let mechanics = Mechanics::new(&small_drive()).unwrap();
            let keys = serde_json::from_str(&format!(r#"{{"weight_ms_per_s": {weight}}}"#)).unwrap();
            let mut queue = aged_satf::build(&keys).unwrap();
            let mut all: Vec<WaitingRequest> = Vec::new();
            let mut at = 0;
            for (turn, &lbn) in lbns.iter().enumerate() {
                let now = turn as u64 * step;
                let slot = (0..).find(|slot| all.iter().all(|other| other.slot != *slot)).unwrap();
                let mut new = waiting(&mechanics, slot, lbn, lbn % 3 == 0);
                new.arrived = Time::from_nanos(now);
                queue.insert(new);
                all.push(new);
                if turn % 3 != 0 {
                    continue;
                }
                let arm = arm(&mechanics, at, now);
                let cost = |waiting: &WaitingRequest| {
                    let position = &waiting.position;
                    let seek = mechanics.seek(arm.head, position.cylinder, position.surface, waiting.write);
                    let rotation = mechanics.rotation(arm.head, arm.now + seek, position.angle, waiting.span, waiting.write);
                    let waited = arm.now.saturating_since(waiting.arrived).as_nanos() as f64;
                    (seek + rotation).as_nanos() as f64 - weight / 1000.0 * waited
                };
                let best = all.iter().map(cost).fold(f64::INFINITY, f64::min);
                let taken = queue.take(arm).unwrap().waiting;
                prop_assert_eq!(cost(&taken), best);
                at = taken.lbn.0;
                all.retain(|other| other.slot != taken.slot);
                prop_assert_eq!(queue.len(), all.len());
            }
        }
    }

    #[test]
    fn an_unknown_discipline_is_refused_with_the_nearest_name() {
        let config = QueueConfig {
            discipline: "c-lok".into(),
            ..QueueConfig::default()
        };
        let error = config.build().err().unwrap();
        assert!(error.message.contains("did you mean `c-look`"), "{error}");
    }
}
