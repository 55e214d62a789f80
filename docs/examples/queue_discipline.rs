//! Last come, first served: the latest arrival goes next. Of course it starves.

use super::{ArmView, Discipline, NextRequest, NoKeys, WaitingRequest};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};

pub(super) const SUMMARY: &str = "last come, first served; starves";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct Lcfs {
    waiting: Vec<WaitingRequest>,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Lcfs::default()))
}

impl Discipline for Lcfs {
    fn insert(&mut self, waiting: WaitingRequest) {
        self.waiting.push(waiting);
    }
    fn take(&mut self, _: ArmView<'_>) -> Option<NextRequest> {
        self.waiting.pop().map(NextRequest::direct)
    }
    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
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
