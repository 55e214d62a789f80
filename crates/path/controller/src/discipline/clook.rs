//! Upwards through the addresses, then again from the lowest address.

use super::sorted::Sorted;
use super::{ControllerDiscipline, NoDisciplineKeys};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Lbn;

pub(super) const SUMMARY: &str =
    "upwards through the addresses, then again from the lowest waiting I/O";

#[derive(Default)]
struct Clook(Sorted);

pub(super) fn build(keys: &Keys) -> Result<Box<dyn ControllerDiscipline>, ConfigError> {
    let NoDisciplineKeys {} = read(keys)?;
    Ok(Box::new(Clook::default()))
}

impl ControllerDiscipline for Clook {
    fn insert(&mut self, slot: u32, start: Lbn) {
        self.0.insert(slot, start);
    }
    fn take(&mut self, position: Lbn) -> Option<u32> {
        if self.0.len() == 0 {
            return None;
        }
        let ahead = self.0.at_or_behind(position);
        Some(self.0.remove(if ahead < self.0.len() { ahead } else { 0 }))
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}
