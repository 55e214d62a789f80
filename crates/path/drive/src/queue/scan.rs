//! SCAN: sweeps from edge to edge.

use super::sorted::Sorted;
use super::{
    ArmView, Discipline, NextRequest, SortBy, SortedConfig, WaitingRequest, sorted_config,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_units::Cylinder;

pub(super) const SUMMARY: &str =
    "elevator from edge to edge: like look, but the arm visits the edge before it turns";
pub(super) type Config = SortedConfig;

struct Scan {
    by: SortBy,
    inward: bool,
    waiting: Sorted,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    Ok(Box::new(Scan {
        by: sorted_config(keys)?.by,
        inward: true,
        waiting: Sorted::default(),
    }))
}

impl Discipline for Scan {
    fn insert(&mut self, waiting: WaitingRequest) {
        self.waiting.insert(self.by.key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest> {
        let (outer, inner) = self.waiting.neighbours(self.by.here(&arm));
        let (ahead, behind) = if self.inward {
            (inner, outer)
        } else {
            (outer, inner)
        };
        if let Some((_, index)) = ahead {
            return Some(NextRequest::direct(self.waiting.remove_first_of_key(index)));
        }
        let (_, index) = behind?;
        let last = arm.mechanics.geometry().cylinders() - 1;
        let edge = Cylinder(if self.inward { last } else { 0 });
        self.inward = !self.inward;
        Some(NextRequest {
            waiting: self.waiting.remove_first_of_key(index),
            via: Some(edge),
        })
    }

    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        self.waiting.remove_slot(slot)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
