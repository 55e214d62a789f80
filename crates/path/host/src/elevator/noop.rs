//! `noop`: dispatches in order of arrival. A request that begins where a waiting request ends is
//! merged into the waiting request (thesis of Carroll, section 2.4.2).

use super::fifos::{Fifos, RequestFifo};
use super::{Context, Elevator, ElevatorSite, NoKeys};
use crate::block::{JoinKind, Queued, Requests};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;

pub(super) const SUMMARY: &str = "Linux 2.6's noop: in order of arrival, with back merges";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct Noop {
    waiting: RequestFifo,
    links: Fifos,
}

pub(super) fn build(keys: &Keys, _: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Noop::default()))
}

impl Elevator for Noop {
    /// Refuses front merges. For a front merge `elv_merge` (`block/elevator.c`) would search the
    /// order of addresses, and `block/noop-iosched.c` keeps none. For a back merge the elevator
    /// core has a table of its own.
    fn may_join(&self, _: u32, _: &Queued, _: &Queued, join: JoinKind) -> bool {
        join != JoinKind::Front
    }

    fn add(&mut self, _: Time, slot: u32, _: &Requests) {
        self.links.push_back(&mut self.waiting, slot);
    }

    fn grown(&mut self, _: Time, _: u32, _: JoinKind, _: &Queued, _: &Queued, _: &Requests) {}

    fn coalesced(&mut self, _: Time, _: u32, gone: u32, _: &Requests) {
        self.links.remove(&mut self.waiting, gone);
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
