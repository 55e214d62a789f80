//! LOOK: sweep in one direction as far as requests wait, then turn.

use super::sorted::Sorted;
use super::{Arm, Discipline, SortBy, SortedConfig, Waiting, sorted_config};
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
    Ok(Box::new(Look { by: sorted_config(keys)?.by, inward: true, waiting: Sorted::default() }))
}

impl Discipline for Look {
    fn insert(&mut self, waiting: Waiting) {
        self.waiting.insert(self.by.key(&waiting), waiting);
    }

    fn take(&mut self, arm: Arm<'_>) -> Option<Waiting> {
        let here = self.by.here(&arm);
        let after = self.waiting.at_or_after(here);
        // On the way outward the requests at `here` itself still lie ahead.
        let before = self.waiting.at_or_after(here.saturating_add(1)).checked_sub(1);
        let ahead = |inward| if inward { self.waiting.key(after).map(|_| after) } else { before };
        let index = match ahead(self.inward) {
            Some(index) => index,
            None => {
                let turned = ahead(!self.inward)?;
                self.inward = !self.inward;
                turned
            }
        };
        Some(self.waiting.remove(self.waiting.first_of_key(index)))
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
