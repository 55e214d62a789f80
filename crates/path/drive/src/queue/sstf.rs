//! Shortest seek time first: the nearest request on either side.

use super::sorted::Sorted;
use super::{
    ArmView, Discipline, NextRequest, SortBy, SortedConfig, WaitingRequest, sorted_config,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;

pub(super) const SUMMARY: &str =
    "shortest seek time first: the nearest request on either side; may starve the edges";
pub(super) type Config = SortedConfig;

struct SstfQueue {
    by: SortBy,
    waiting: Sorted,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    Ok(Box::new(SstfQueue {
        by: sorted_config(keys)?.by,
        waiting: Sorted::default(),
    }))
}

impl Discipline for SstfQueue {
    fn insert(&mut self, waiting: WaitingRequest) {
        self.waiting.insert(self.by.key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest> {
        let index = match self.waiting.neighbours(self.by.here(&arm)) {
            (Some(outer), Some(inner)) if outer.0 < inner.0 => outer.1,
            (outer, inner) => inner.or(outer)?.1,
        };
        Some(NextRequest::direct(self.waiting.remove_first_of_key(index)))
    }

    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        self.waiting.remove_slot(slot)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
