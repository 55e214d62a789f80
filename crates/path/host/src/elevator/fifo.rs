//! `fifo`: dispatches in order of arrival and never merges. The comparison with `noop` shows the
//! gain from merges (thesis of Carroll, section 3.1).

use super::fifos::{Fifos, RequestFifo};
use super::{Context, Elevator, ElevatorSite, NoKeys};
use crate::block::{JoinKind, Queued, Requests};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;

pub(super) const SUMMARY: &str = "in order of arrival; never merges";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct InOrder {
    waiting: RequestFifo,
    links: Fifos,
}

pub(super) fn build(keys: &Keys, _: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(InOrder::default()))
}

impl Elevator for InOrder {
    fn may_join(&self, _: u32, _: &Queued, _: &Queued, _: JoinKind) -> bool {
        false
    }

    fn add(&mut self, _: Time, slot: u32, _: &Requests) {
        self.links.push_back(&mut self.waiting, slot);
    }

    fn grown(&mut self, _: Time, _: u32, _: JoinKind, _: &Queued, _: &Queued, _: &Requests) {
        unreachable!("nothing joins a request here")
    }

    fn coalesced(&mut self, _: Time, _: u32, _: u32, _: &Requests) {
        unreachable!("nothing joins a request here")
    }

    fn dispatch(&mut self, _: Time, _: &Context<'_>) -> Option<u32> {
        self.links.pop_front(&mut self.waiting)
    }

    fn may_starve(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(super) fn tunables() -> Vec<super::testing::Tunable> {
    Vec::new()
}
