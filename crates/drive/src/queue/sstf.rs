//! Shortest seek time first: the nearest request, on either side.

use super::sorted::Sorted;
use super::{Arm, Discipline, SortBy, SortedConfig, Waiting, sorted_config};
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
    Ok(Box::new(Sstf { by: sorted_config(keys)?.by, waiting: Sorted::default() }))
}

impl Discipline for Sstf {
    fn insert(&mut self, waiting: Waiting) {
        self.waiting.insert(self.by.key(&waiting), waiting);
    }

    fn take(&mut self, arm: Arm<'_>) -> Option<Waiting> {
        let here = self.by.here(&arm);
        let after = self.waiting.at_or_after(here);
        let below = after.checked_sub(1).map(|index| (here - self.waiting.key(index).unwrap_or(0), index));
        let above = self.waiting.key(after).map(|key| (key - here, after));
        let (_, index) = match (below, above) {
            (Some(below), Some(above)) => {
                if below.0 < above.0 {
                    below
                } else {
                    above
                }
            }
            (below, above) => below.or(above)?,
        };
        Some(self.waiting.remove(self.waiting.first_of_key(index)))
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
