//! In order of arrival.

use super::{ControllerDiscipline, NoDisciplineKeys};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Lbn;
use std::collections::VecDeque;

pub(super) const SUMMARY: &str = "in order of arrival";

#[derive(Default)]
struct Fcfs(VecDeque<u32>);

pub(super) fn build(keys: &Keys) -> Result<Box<dyn ControllerDiscipline>, ConfigError> {
    let NoDisciplineKeys {} = read(keys)?;
    Ok(Box::new(Fcfs::default()))
}

impl ControllerDiscipline for Fcfs {
    fn insert(&mut self, slot: u32, _: Lbn) {
        self.0.push_back(slot);
    }
    fn take(&mut self, _: Lbn) -> Option<u32> {
        self.0.pop_front()
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}
