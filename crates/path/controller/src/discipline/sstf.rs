//! The nearest address first.

use super::sorted::Sorted;
use super::{ControllerDiscipline, NoDisciplineKeys};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Lbn;

pub(super) const SUMMARY: &str = "the nearest address first";

#[derive(Default)]
struct SstfDiscipline(Sorted);

pub(super) fn build(keys: &Keys) -> Result<Box<dyn ControllerDiscipline>, ConfigError> {
    let NoDisciplineKeys {} = read(keys)?;
    Ok(Box::new(SstfDiscipline::default()))
}

impl ControllerDiscipline for SstfDiscipline {
    fn insert(&mut self, slot: u32, start: Lbn) {
        self.0.insert(slot, start);
    }
    fn take(&mut self, position: Lbn) -> Option<u32> {
        let behind = self.0.at_or_behind(position);
        let before = behind.checked_sub(1);
        let distance = |index: usize| {
            self.0
                .start(index)
                .map(|start| (start.abs_diff(position.0), index))
        };
        let nearest = [Some(behind), before]
            .into_iter()
            .flatten()
            .filter_map(distance)
            // Of two equal distances the smaller index wins: the I/O below the position. The choice
            // does not matter for the arm, but must be the same in every run.
            .min()?;
        Some(self.0.remove(nearest.1))
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}
