//! C-LOOK: sweeps inward as far as requests wait, then returns to the outermost request.

use super::sorted::Sorted;
use super::{
    ArmView, Discipline, NextRequest, SortBy, SortedConfig, WaitingRequest, sorted_config,
};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;

pub(super) const SUMMARY: &str =
    "one-way elevator: sweeps inward, then returns to the outermost request";
pub(super) type Config = SortedConfig;

struct CLook {
    by: SortBy,
    waiting: Sorted,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    Ok(Box::new(CLook {
        by: sorted_config(keys)?.by,
        waiting: Sorted::default(),
    }))
}

impl Discipline for CLook {
    fn insert(&mut self, waiting: WaitingRequest) {
        self.waiting.insert(self.by.key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<NextRequest> {
        let ahead = self.waiting.at_or_after(self.by.here(&arm));
        // Behind the innermost request the arm returns to the outermost, index 0.
        let index = if ahead < self.waiting.len() { ahead } else { 0 };
        self.waiting.key(index)?;
        Some(NextRequest::direct(self.waiting.remove(index)))
    }

    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        self.waiting.remove_slot(slot)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
