//! Waiting requests by address, with the end of the last dispatched request. The classic
//! disciplines choose from this order. The elevator of such a discipline is here too, except for
//! the choice itself.

use super::coordinated::QueueWeight;
use super::forest::{Forest, SlotTree};
use super::{Context, Elevator};
use crate::block::{JoinKind, Queued, Requests};
use fullstroke_units::{Lbn, Time};

/// Requests by first address. "Here" is the end of the last request taken, because a host knows no
/// other position of the arm.
#[derive(Debug, Default)]
pub(super) struct ByPosition {
    forest: Forest,
    tree: SlotTree,
    here: u64,
}

/// Distance of a request from here, in sectors, and the slot of the request.
pub(super) type Neighbour = (u64, u32);

impl ByPosition {
    pub(super) fn add(&mut self, slot: u32, requests: &Requests) {
        self.forest
            .insert(&mut self.tree, requests[slot].extent.start.0, slot);
    }

    /// Sorts the request again if a front join has moved its start.
    pub(super) fn grown(&mut self, slot: u32, join: JoinKind, requests: &Requests) {
        if join == JoinKind::Front {
            self.forget(slot);
            self.add(slot, requests);
        }
    }

    /// Removes a request without moving here.
    pub(super) fn forget(&mut self, slot: u32) {
        self.forest.remove(&mut self.tree, slot);
    }

    /// Removes a request and moves here to its end.
    pub(super) fn take(&mut self, slot: u32, requests: &Requests) -> u32 {
        self.forget(slot);
        // The arm stands behind the last request of the choice.
        self.here = requests[slot].extent.end().0;
        slot
    }

    /// Returns the end of the last request taken.
    pub(super) fn here(&self) -> Lbn {
        Lbn(self.here)
    }

    /// Returns the request with the lowest address.
    pub(super) fn lowest(&self) -> Option<u32> {
        self.forest.first(&self.tree)
    }

    /// Returns the request of least cost if queues at other members count as distance. `distance`
    /// returns the distance from here to an address.
    pub(super) fn cheapest(
        &self,
        weight: QueueWeight,
        requests: &Requests,
        distance: impl Fn(u64, u64) -> u64,
    ) -> Option<u32> {
        weight.cheapest(&self.forest, &self.tree, requests, |key| {
            distance(self.here, key)
        })
    }

    /// Returns the nearest request with a start here or ahead.
    pub(super) fn ahead(&self) -> Option<Neighbour> {
        self.forest
            .at_or_after(&self.tree, self.here)
            .map(|slot| self.with_distance(slot))
    }

    /// Returns the nearest request with a start before here.
    pub(super) fn behind(&self) -> Option<Neighbour> {
        self.forest
            .before(&self.tree, self.here)
            .map(|slot| self.with_distance(slot))
    }

    fn with_distance(&self, slot: u32) -> Neighbour {
        (self.forest.key(slot).abs_diff(self.here), slot)
    }
}

/// The rule of a discipline for addresses only.
pub(super) trait PositionRule: Default + Send {
    /// As [`Elevator::may_starve`].
    const STARVES: bool;

    /// Chooses the next request.
    fn choose(&mut self, waiting: &ByPosition) -> Option<u32>;

    /// Returns the distance from `here` to an address under the rule.
    /// [`choose`](PositionRule::choose) takes the request of least distance.
    fn distance(&self, here: u64, address: u64) -> u64;

    /// Notes a request taken against or without the rule. `back` is true if the request lies before
    /// here.
    fn note_choice(&mut self, _back: bool) {}
}

/// The elevator of such a rule.
#[derive(Debug, Default)]
pub(super) struct PositionElevator<C> {
    waiting: ByPosition,
    choice: C,
    weight: Option<QueueWeight>,
}

impl<C: PositionRule> PositionElevator<C> {
    pub(super) fn new(weight: Option<QueueWeight>) -> PositionElevator<C> {
        PositionElevator {
            weight,
            ..PositionElevator::default()
        }
    }

    fn choose(&mut self, requests: &Requests) -> Option<u32> {
        let Some(weight) = self.weight else {
            return self.choice.choose(&self.waiting);
        };
        let distance = |here, address| self.choice.distance(here, address);
        let slot = self.waiting.cheapest(weight, requests, distance)?;
        self.choice
            .note_choice(requests[slot].extent.start < self.waiting.here());
        Some(slot)
    }
}

impl<C: PositionRule> Elevator for PositionElevator<C> {
    fn add(&mut self, _: Time, slot: u32, requests: &Requests) {
        self.waiting.add(slot, requests);
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
        self.waiting.grown(slot, join, requests);
    }

    fn coalesced(&mut self, _: Time, _: u32, gone: u32, _: &Requests) {
        self.waiting.forget(gone);
    }

    fn dispatch(&mut self, _: Time, context: &Context<'_>) -> Option<u32> {
        let slot = self.choose(context.requests)?;
        Some(self.waiting.take(slot, context.requests))
    }

    fn may_starve(&self) -> bool {
        C::STARVES || self.weight.is_some()
    }
}
