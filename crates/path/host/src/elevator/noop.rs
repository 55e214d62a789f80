//! `noop`: dispatches in order of arrival. A request that begins where a waiting request ends is
//! merged into the waiting request (thesis of Carroll, section 2.4.2).

use super::fifos::{Fifo, Fifos};
use super::{Context, Elevator, NoKeys, Site};
use crate::block::{Join, Queued, Requests};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;

pub(super) const SUMMARY: &str = "Linux 2.6's noop: in order of arrival, with back merges";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct Noop {
    waiting: Fifo,
    links: Fifos,
}

pub(super) fn build(keys: &Keys, _: &Site) -> Result<Box<dyn Elevator>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Noop::default()))
}

impl Elevator for Noop {
    /// Refuses front merges. For a front merge `elv_merge` (`block/elevator.c`) would search the
    /// order of addresses, and `block/noop-iosched.c` keeps none. For a back merge the elevator
    /// core has a table of its own.
    fn may_join(&self, _: u32, _: &Queued, _: &Queued, join: Join) -> bool {
        join != Join::Front
    }

    fn add(&mut self, _: Time, slot: u32, _: &Requests) {
        self.links.push_back(&mut self.waiting, slot);
    }

    fn grown(&mut self, _: Time, _: u32, _: Join, _: &Queued, _: &Queued, _: &Requests) {}

    fn coalesced(&mut self, _: Time, _: u32, gone: u32, _: &Requests) {
        self.links.remove(&mut self.waiting, gone);
    }

    fn dispatch(&mut self, _: Time, _: &Context<'_>) -> Option<u32> {
        self.links.pop_front(&mut self.waiting)
    }

    fn starves(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(super) fn tunables() -> Vec<super::testing::Tunable> {
    Vec::new()
}
