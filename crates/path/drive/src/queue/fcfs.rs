//! First come, first served.

use super::{ArmView, Discipline, NextRequest, NoKeys, WaitingRequest};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use std::collections::VecDeque;

pub(super) const SUMMARY: &str = "first come, first served";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct Fcfs {
    waiting: VecDeque<WaitingRequest>,
}

pub(super) fn build(keys: &Keys) -> Result<Box<dyn Discipline>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Fcfs::default()))
}

impl Discipline for Fcfs {
    fn insert(&mut self, waiting: WaitingRequest) {
        self.waiting.push_back(waiting);
    }
    fn take(&mut self, _: ArmView<'_>) -> Option<NextRequest> {
        self.waiting.pop_front().map(NextRequest::direct)
    }
    fn remove(&mut self, slot: u32) -> Option<WaitingRequest> {
        let index = self
            .waiting
            .iter()
            .position(|waiting| waiting.slot == slot)?;
        self.waiting.remove(index)
    }
    fn len(&self) -> usize {
        self.waiting.len()
    }
}
