//! Last come, first served: the latest arrival goes next. Of course it starves.

use super::{ArmView, Choice, Discipline, NoKeys, Waiting};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};

pub(super) const SUMMARY: &str = "last come, first served; starves";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct Lcfs {
    waiting: Vec<Waiting>,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Lcfs::default()))
}

impl Discipline for Lcfs {
    fn insert(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }
    fn take(&mut self, _: ArmView<'_>) -> Option<Choice> {
        self.waiting.pop().map(Choice::direct)
    }
    fn remove(&mut self, slot: u32) -> Option<Waiting> {
        let index = self
            .waiting
            .iter()
            .position(|waiting| waiting.slot == slot)?;
        Some(self.waiting.remove(index))
    }
    fn len(&self) -> usize {
        self.waiting.len()
    }
}
