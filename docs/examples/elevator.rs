//! Last come, first served: the latest arrival goes next. Of course it starves.

use super::fifos::{Fifos, RequestFifo};
use super::{Context, Elevator, ElevatorSite, NoKeys};
use crate::block::{JoinKind, Queued, Requests};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;

pub(super) const SUMMARY: &str = "last come, first served; starves";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct Lcfs {
    waiting: RequestFifo,
    links: Fifos,
}

pub(super) fn build(keys: &Keys, _: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Lcfs::default()))
}

impl Elevator for Lcfs {
    fn add(&mut self, _: Time, slot: u32, _: &Requests) {
        self.links.push_back(&mut self.waiting, slot);
    }

    fn grown(&mut self, _: Time, _: u32, _: JoinKind, _: &Queued, _: &Queued, _: &Requests) {}

    fn coalesced(&mut self, _: Time, _: u32, gone: u32, _: &Requests) {
        self.links.remove(&mut self.waiting, gone);
    }

    fn dispatch(&mut self, _: Time, _: &Context<'_>) -> Option<u32> {
        let last = self.waiting.back()?;
        self.links.remove(&mut self.waiting, last);
        Some(last)
    }

    fn may_starve(&self) -> bool {
        true
    }
}
