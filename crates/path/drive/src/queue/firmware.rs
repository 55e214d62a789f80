//! The queue of a drive's firmware: shortest access time first, with a command prepared ahead and a
//! safety margin on rotation.
//!
//! Measured desktop disks gain 1.4 to 1.8 times from depth 1 to 32 in random reads of 4 KiB, and a
//! disk at depth 2 serves its commands in order of arrival (VALIDATION.md, "Drives by queue
//! depth"). Three properties of the firmware explain the figures:
//!
//! - The firmware chooses the next command while the current one is on the medium. A command that
//!   comes later does not take part in the choice (`look_ahead`).
//! - The firmware does not trust a rotational wait that is shorter than a margin, and counts one
//!   more revolution for such a command (`margin_ms`). The margin grows with the distance of the
//!   seek (`margin_far_ms`): eight measured disks of 2 TB that read from a hundredth of their tracks
//!   gain from depth as if there were no margin.
//! - The firmware orders a limited number of commands (`window`).

use super::search::{Positioning, cheapest, key};
use super::sorted::Sorted;
use super::{ArmView, Discipline, NextRequest, WaitingRequest};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::VecDeque;

pub(super) const SUMMARY: &str = "as measured SATA disks choose: shortest access time with a margin, among commands that came before the last dispatches";

/// Largest `look_ahead`. A drive prepares no more commands than fit into its queue.
const LOOK_AHEAD_MAX: u32 = 256;

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Number of commands that the drive fixes ahead of the command in service. A command takes
    /// part in a choice if the command came before so many dispatches. Default 1.
    #[serde(default = "one")]
    look_ahead: u32,
    /// Shortest rotational wait in ms that the drive trusts. A command with a shorter wait counts
    /// as one revolution later. A continuation of the last transfer needs no margin. Default 2.
    #[serde(default = "two")]
    margin_ms: f64,
    /// Additional margin in ms at a seek over all cylinders. The additional margin grows with the
    /// root of the distance, as the seek itself does: the end of a long seek is less certain.
    /// Default 0.
    #[serde(default)]
    margin_far_ms: f64,
    /// Time in ms after a dispatch in which the drive fixes a command ahead. A command that comes
    /// within this time takes part in the choice. Default 0.3, the usual command overhead.
    #[serde(default = "overhead")]
    prepare_ms: f64,
    /// Number of commands, the oldest first, that the drive orders. 0 means all (default).
    #[serde(default)]
    window: u32,
}

fn one() -> u32 {
    1
}

fn two() -> f64 {
    2.0
}

fn overhead() -> f64 {
    0.3
}

struct Firmware {
    look_ahead: usize,
    margin: Duration,
    /// Additional margin in ns at a seek over all cylinders.
    margin_far_ns: f64,
    prepare: Duration,
    window: usize,
    waiting: Sorted,
    /// Arrival and slot of the waiting commands, in order of arrival.
    arrivals: VecDeque<(Time, u32)>,
    /// Times of the last dispatches, the oldest first; at most `look_ahead`.
    dispatches: VecDeque<Time>,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    let Config {
        look_ahead,
        margin_ms,
        margin_far_ms,
        prepare_ms,
        window,
    } = read(keys)?;
    if look_ahead > LOOK_AHEAD_MAX {
        return Err(ConfigError::new(
            "look_ahead",
            format!("found {look_ahead}; expected 0 to {LOOK_AHEAD_MAX} commands"),
        ));
    }
    let margin = crate::config::milliseconds("margin_ms", margin_ms)?;
    Ok(Box::new(Firmware {
        look_ahead: look_ahead as usize,
        margin,
        margin_far_ns: crate::config::milliseconds("margin_far_ms", margin_far_ms)?.as_nanos()
            as f64,
        prepare: crate::config::milliseconds("prepare_ms", prepare_ms)?,
        window: window as usize,
        waiting: Sorted::default(),
        arrivals: VecDeque::new(),
        dispatches: VecDeque::with_capacity(look_ahead as usize + 1),
    }))
}

impl Firmware {
    /// Returns the latest arrival of a command that takes part in the next choice.
    fn latest(&self) -> Option<Time> {
        let oldest = self.arrivals.front()?.0;
        let ahead = if self.dispatches.len() < self.look_ahead || self.look_ahead == 0 {
            Time::NEVER
        } else {
            self.dispatches[0] + self.prepare
        };
        let window = match self.window.checked_sub(1) {
            Some(last) => self
                .arrivals
                .get(last)
                .map_or(Time::NEVER, |&(arrived, _)| arrived),
            None => Time::NEVER,
        };
        // If all commands came late, the oldest was fixed when the command came.
        Some(ahead.min(window).max(oldest))
    }

    /// Returns the index of the command of least access time among the commands that take part.
    fn cheapest(&self, arm: &ArmView<'_>) -> Option<usize> {
        let latest = self.latest()?;
        let turn = arm.mechanics.spindle().revolution();
        // A margin of more than a revolution would distrust each request.
        let margin = self.margin.min(turn);
        let cylinders = f64::from(arm.mechanics.geometry().cylinders());
        let far_ns = self.margin_far_ns / cylinders.sqrt();
        let cost = |waiting: &WaitingRequest, least_seek: Duration| {
            if waiting.arrived > latest {
                return None;
            }
            let Positioning { seek, rotation } = Positioning::of(waiting, arm, least_seek);
            let far = || {
                let distance = waiting.position.cylinder.0.abs_diff(arm.head.cylinder.0);
                Duration::from_nanos((far_ns * f64::from(distance).sqrt()) as u64)
            };
            // A request that follows the last one needs no seek, so the firmware need not fear to
            // miss the sector.
            let trusted = (rotation >= margin
                && (far_ns == 0.0 || rotation >= (margin + far()).min(turn)))
                || waiting.lbn == arm.next_lbn;
            // A sector that may be missed costs a whole revolution.
            let late = if trusted { Duration::ZERO } else { turn };
            Some(seek + rotation + late)
        };
        let (_, index) = cheapest(&self.waiting, arm, None, |seek| seek, cost)?;
        Some(index)
    }

    fn forget(&mut self, slot: u32) {
        if let Some(at) = self.arrivals.iter().position(|&(_, other)| other == slot) {
            self.arrivals.remove(at);
        }
    }
}

impl Discipline for Firmware {
    fn insert(&mut self, waiting: WaitingRequest) {
        let at = self
            .arrivals
            .partition_point(|&(arrived, _)| arrived <= waiting.arrived);
        self.arrivals.insert(at, (waiting.arrived, waiting.slot));
        self.waiting.insert(key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest> {
        // The only request takes part, because the oldest request always does.
        let index = match self.waiting.len() {
            1 => 0,
            _ => self.cheapest(&arm)?,
        };
        let waiting = self.waiting.remove(index);
        self.forget(waiting.slot);
        self.dispatches.push_back(arm.now);
        if self.dispatches.len() > self.look_ahead {
            self.dispatches.pop_front();
        }
        Some(NextRequest::direct(waiting))
    }

    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        let waiting = self.waiting.remove_slot(slot)?;
        self.forget(slot);
        Some(waiting)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{arm, waiting};
    use super::*;
    use crate::config::tests::small_drive;
    use crate::mechanics::Mechanics;

    fn queue(keys: &str) -> Box<dyn Discipline> {
        build(&serde_json::from_str(keys).unwrap()).unwrap()
    }

    /// Returns the order of the blocks `lbns`, of which each comes at its time in ms.
    fn order(keys: &str, commands: &[(u64, u64)], times_ms: &[u64]) -> Vec<u64> {
        let mechanics = Mechanics::new(&small_drive()).unwrap();
        let mut queue = queue(keys);
        let (mut next, mut at, mut served) = (0, 0, Vec::new());
        for &now in times_ms {
            while let Some(&(came, lbn)) = commands.get(next).filter(|(came, _)| *came <= now) {
                let arrived = Time::from_nanos(came * 1_000_000);
                queue.insert(WaitingRequest {
                    arrived,
                    ..waiting(&mechanics, next as u32, lbn, false)
                });
                next += 1;
            }
            let Some(choice) = queue.take(arm(&mechanics, at, now * 1_000_000)) else {
                continue;
            };
            at = choice.waiting.lbn.0;
            served.push(at);
        }
        served
    }

    #[test]
    fn a_command_that_came_after_the_last_dispatch_waits_for_one_that_came_before() {
        // At 10 ms sector 27 of the first track begins to pass: block 28 is the nearest.
        let commands = [(0, 0), (0, 1300), (5, 28)];
        let times = [0, 10, 20];
        let near = order(r#"{"look_ahead": 0, "margin_ms": 0}"#, &commands, &times);
        assert_eq!(near, [0, 28, 1300]);
        let ahead = order(r#"{"look_ahead": 1, "margin_ms": 0}"#, &commands, &times);
        assert_eq!(ahead, [0, 1300, 28], "fixed before 28 came");
    }

    #[test]
    fn a_window_of_one_command_serves_in_order_of_arrival() {
        let commands = [(0, 1300), (1, 10), (2, 700), (3, 20)];
        let keys = r#"{"look_ahead": 0, "window": 1}"#;
        assert_eq!(
            order(keys, &commands, &[5, 10, 15, 20]),
            [1300, 10, 700, 20]
        );
    }

    #[test]
    fn a_wait_below_the_margin_counts_as_a_revolution_later() {
        let mechanics = Mechanics::new(&small_drive()).unwrap();
        let first = |keys: &str| {
            let mut queue = queue(keys);
            // Blocks 2 and 10 lie on the track under the heads, 0.3 and 1.5 ms away.
            queue.insert(waiting(&mechanics, 0, 2, false));
            queue.insert(waiting(&mechanics, 1, 10, false));
            queue.take(arm(&mechanics, 0, 0)).unwrap().waiting.lbn.0
        };
        assert_eq!(first(r#"{"margin_ms": 0}"#), 2);
        assert_eq!(first(r#"{"margin_ms": 1}"#), 10);
    }

    #[test]
    fn the_margin_of_a_far_command_is_longer() {
        let mechanics = Mechanics::new(&small_drive()).unwrap();
        let first = |far: f64, lbns: [u64; 2]| {
            let mut queue = queue(&format!(r#"{{"margin_ms": 0, "margin_far_ms": {far}}}"#));
            queue.insert(waiting(&mechanics, 0, lbns[0], false));
            queue.insert(waiting(&mechanics, 1, lbns[1], false));
            queue.take(arm(&mechanics, 0, 0)).unwrap().waiting.lbn.0
        };
        // On the track under the heads the distance is 0, and so is the additional margin.
        assert_eq!(first(3.5, [2, 10]), 2);
        let rotation = |lbn| {
            let view = arm(&mechanics, 0, 0);
            let waiting = waiting(&mechanics, 0, lbn, false);
            let distance = waiting.position.cylinder.distance(view.head.cylinder);
            let least_seek = mechanics.seek_table().at_least(distance);
            Positioning::of(&waiting, &view, least_seek).rotation
        };
        // Two far blocks of one track, of which the first leaves 1 to 2 ms to turn.
        let short = (1290..1320)
            .find(|&lbn| (1..2).contains(&(rotation(lbn).as_nanos() / 1_000_000)))
            .expect("a block with a short wait");
        let long = (short..short + 20)
            .find(|&lbn| rotation(lbn).as_nanos() > 4_000_000)
            .expect("a block with a long wait");
        assert_eq!(first(0.0, [short, long]), short);
        assert_eq!(first(3.5, [short, long]), long);
    }

    #[test]
    fn a_continuation_needs_no_margin() {
        let mechanics = Mechanics::new(&small_drive()).unwrap();
        let mut queue = queue(r#"{"margin_ms": 5}"#);
        queue.insert(waiting(&mechanics, 0, 2, false));
        queue.insert(waiting(&mechanics, 1, 10, false));
        let view = ArmView {
            next_lbn: fullstroke_units::Lbn(2),
            ..arm(&mechanics, 0, 0)
        };
        assert_eq!(queue.take(view).unwrap().waiting.lbn.0, 2);
    }

    #[test]
    fn impossible_keys_are_refused_by_name() {
        let refused = |keys: &str| build(&serde_json::from_str(keys).unwrap()).err().unwrap();
        assert_eq!(refused(r#"{"margin_ms": -1}"#).key, "margin_ms");
        assert_eq!(refused(r#"{"margin_far_ms": -1}"#).key, "margin_far_ms");
        assert_eq!(refused(r#"{"look_ahead": 1000}"#).key, "look_ahead");
    }
}
