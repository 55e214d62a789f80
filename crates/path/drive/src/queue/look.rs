//! LOOK: sweeps in one direction as far as requests wait, then turns.

use super::sorted::Sorted;
use super::{
    ArmView, Discipline, NextRequest, SortBy, SortedConfig, WaitingRequest, sorted_config,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;

pub(super) const SUMMARY: &str = "elevator: sweeps as far as requests wait, then turns";
pub(super) type Config = SortedConfig;

struct Look {
    by: SortBy,
    inward: bool,
    waiting: Sorted,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    Ok(Box::new(Look {
        by: sorted_config(keys)?.by,
        inward: true,
        waiting: Sorted::default(),
    }))
}

impl Discipline for Look {
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
        // The arm turns only if somebody waits behind, so that an idle arm keeps its direction.
        if ahead.is_none() && behind.is_some() {
            self.inward = !self.inward;
        }
        let (_, index) = ahead.or(behind)?;
        Some(NextRequest::direct(self.waiting.remove_first_of_key(index)))
    }

    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        self.waiting.remove_slot(slot)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
