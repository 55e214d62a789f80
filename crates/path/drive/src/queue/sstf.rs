//! Shortest seek time first: the nearest request on either side.

use super::sorted::Sorted;
use super::{ArmView, Choice, Discipline, SortBy, SortedConfig, Waiting, sorted_config};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;

pub(super) const SUMMARY: &str =
    "shortest seek time first: the nearest request on either side; may starve the edges";
pub(super) type Config = SortedConfig;

struct Sstf {
    by: SortBy,
    waiting: Sorted,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    Ok(Box::new(Sstf {
        by: sorted_config(keys)?.by,
        waiting: Sorted::default(),
    }))
}

impl Discipline for Sstf {
    fn insert(&mut self, waiting: Waiting) {
        self.waiting.insert(self.by.key(&waiting), waiting);
    }

    fn take(&mut self, arm: ArmView<'_>) -> Option<Choice> {
        let index = match self.waiting.neighbours(self.by.here(&arm)) {
            (Some(outer), Some(inner)) if outer.0 < inner.0 => outer.1,
            (outer, inner) => inner.or(outer)?.1,
        };
        Some(Choice::direct(self.waiting.remove_first_of_key(index)))
    }

    fn remove(&mut self, slot: u32) -> Option<Waiting> {
        self.waiting.remove_slot(slot)
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
