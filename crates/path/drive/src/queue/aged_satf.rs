//! Aged SATF: a request that has waited long counts as nearer.

use super::search::{OutwardSearch, Positioning, key, outward_order};
use super::sorted::Sorted;
use super::{ArmView, Discipline, NextRequest, WaitingRequest};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Duration, Time};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::VecDeque;

pub(super) const SUMMARY: &str = "aged shortest access time first: access time less a share of the time waited (Jacobson & Wilkes 1991)";

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Access time in ms that one second of waiting outweighs.
    #[serde(default = "usual")]
    weight_ms_per_s: f64,
}

fn usual() -> f64 {
    6.0
}

struct AgedSatf {
    /// Nanoseconds of access time per nanosecond of waiting.
    weight: f64,
    waiting: Sorted,
    by_age: ByAge,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    let Config { weight_ms_per_s } = read(keys)?;
    if !(weight_ms_per_s.is_finite() && weight_ms_per_s >= 0.0) {
        return Err(ConfigError::new(
            "weight_ms_per_s",
            format!("found {weight_ms_per_s}; expected 0 or more"),
        ));
    }
    Ok(Box::new(AgedSatf {
        weight: weight_ms_per_s / 1000.0,
        waiting: Sorted::default(),
        by_age: ByAge::default(),
    }))
}

impl Discipline for AgedSatf {
    fn insert(&mut self, waiting: WaitingRequest) {
        self.by_age.insert(&waiting, &self.waiting);
        self.waiting.insert(key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest> {
        let slot = self.cheapest(&arm)?;
        self.remove(slot).map(NextRequest::direct)
    }

    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        let removed = self.waiting.remove_slot(slot);
        self.by_age.trim(&self.waiting);
        removed
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}

impl AgedSatf {
    /// Returns the slot of the request with the least access time less credit.
    ///
    /// Two walks alternate: one by seek time from the arm outward, one by age from the oldest
    /// request on. A request that neither walk has met seeks at least as long as the next
    /// request of the first walk, and has at most the credit of the next request of the second
    /// walk (the threshold algorithm of Fagin, Lotem and Naor, PODS 2001). The search ends when
    /// no such request can cost less than the best one.
    fn cheapest(&self, arm: &ArmView<'_>) -> Option<u32> {
        let credit =
            |arrived: Time| self.weight * arm.now.saturating_since(arrived).as_nanos() as f64;
        let mut outward = OutwardSearch::new(&self.waiting, arm);
        let mut by_age = self.by_age.walk(&self.waiting).peekable();
        let mut best: Option<(f64, u32)> = None;
        let mut judge = |waiting: &WaitingRequest, least_seek: Duration| {
            let credit = credit(waiting.arrived);
            // The rotation costs more instructions than all the rest, and is at least 0.
            if best.is_some_and(|(least, _)| least_seek.as_nanos() as f64 - credit > least) {
                return best;
            }
            let Positioning { seek, rotation } = Positioning::of(waiting, arm, least_seek);
            let cost = (seek + rotation).as_nanos() as f64 - credit;
            let better = best.is_none_or(|(least, slot)| {
                cost < least
                    || cost == least && {
                        let order = |slot| outward_order(&self.waiting, arm, slot);
                        order(waiting.slot) < order(slot)
                    }
            });
            if better {
                best = Some((cost, waiting.slot));
            }
            best
        };
        while let Some((seek, index)) = outward.next() {
            let best = judge(self.waiting.get(index), seek);
            let Some(old) = by_age.next() else { break };
            judge(old, outward.least_seek(key(old)));
            let (Some((least, _)), Some(next)) = (best, by_age.peek()) else {
                break;
            };
            // Every request not seen yet has at least this seek and at most this credit, so none
            // can win.
            if seek.as_nanos() as f64 - credit(next.arrived) > least {
                break;
            }
        }
        best.map(|(_, slot)| slot)
    }
}

/// The waiting requests in the order of their arrival.
///
/// A request that leaves stays in the list until the list holds more such requests than waiting
/// ones, because the place of a leaving request in the middle would take a search.
#[derive(Debug, Default)]
struct ByAge {
    list: VecDeque<(Time, u32)>,
}

impl ByAge {
    fn insert(&mut self, waiting: &WaitingRequest, all: &Sorted) {
        // At least half of the list is stale here, so the clean-up costs no more than the entries
        // did.
        if self.list.len() > 2 * all.len() + 16 {
            self.list.retain(|&entry| waits(entry, all).is_some());
        }
        let entry = (waiting.arrived, waiting.slot);
        let later = self.list.iter().rev();
        let behind = later
            .take_while(|&&(arrived, _)| arrived > waiting.arrived)
            .count();
        self.list.insert(self.list.len() - behind, entry);
    }

    /// Removes the entries of requests that left from the front.
    fn trim(&mut self, all: &Sorted) {
        while let Some(&entry) = self.list.front()
            && waits(entry, all).is_none()
        {
            self.list.pop_front();
        }
    }

    /// Yields the waiting requests, the oldest first.
    fn walk<'a>(&'a self, all: &'a Sorted) -> impl Iterator<Item = &'a WaitingRequest> {
        self.list.iter().filter_map(|&entry| waits(entry, all))
    }
}

/// Returns the request of an entry, if the request waits. A slot serves one request after the
/// other, so that the time of arrival has to agree as well.
fn waits((arrived, slot): (Time, u32), all: &Sorted) -> Option<&WaitingRequest> {
    all.of_slot(slot)
        .filter(|waiting| waiting.arrived == arrived)
}
