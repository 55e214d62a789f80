//! `none`, as in Linux 6: no elevator. A request is a command of the device: a submitter that finds
//! no free command blocks in its submission, and nothing waits here to be merged or sorted. Only
//! the requests of one submission are merged with each other (`blk_attempt_plug_merge` of
//! `block/blk-merge.c`), because the plug holds them back.

use super::fifos::{Fifos, RequestFifo};
use super::{Context, Elevator, ElevatorSite, NoKeys};
use crate::block::{JoinKind, Queued, Requests};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;

pub(super) const SUMMARY: &str =
    "Linux 6 without an elevator: to the device in order; merges within one submission";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct Direct {
    held: RequestFifo,
    links: Fifos,
}

pub(super) fn build(keys: &Keys, _: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Direct::default()))
}

impl Elevator for Direct {
    /// Lets requests of one process join each other at both ends. The plug compares a new request
    /// with the held ones, and not the held ones among each other.
    fn may_join(&self, _: u32, kept: &Queued, other: &Queued, join: JoinKind) -> bool {
        join != JoinKind::Coalesce && kept.process == other.process
    }

    /// A submitter that was blocked sends each request before it goes on: its plug was pulled when
    /// it went to sleep (`blk_flush_plug` in `io_schedule`).
    fn joins_blocked(&self) -> bool {
        false
    }

    fn add(&mut self, _: Time, slot: u32, _: &Requests) {
        self.links.push_back(&mut self.held, slot);
    }

    fn grown(&mut self, _: Time, _: u32, _: JoinKind, _: &Queued, _: &Queued, _: &Requests) {}

    fn coalesced(&mut self, _: Time, _: u32, gone: u32, _: &Requests) {
        self.links.remove(&mut self.held, gone);
    }

    fn dispatch(&mut self, _: Time, _: &Context<'_>) -> Option<u32> {
        self.links.pop_front(&mut self.held)
    }

    fn may_starve(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(super) fn tunables() -> Vec<super::testing::Tunable> {
    Vec::new()
}
