//! `scan`: on in one direction until nothing is left there, then back
//! (called LOOK where SCAN visits the edges; thesis of Carroll, section 2.2.5).

use super::by_position::ByPosition;
use super::{Context, Elevator, NoKeys, Site};
use crate::block::{Join, Queued, Requests};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;

pub(super) const SUMMARY: &str = "on in one direction until nothing waits there, then back";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct Scan {
    waiting: ByPosition,
    downwards: bool,
}

pub(super) fn build(keys: &Keys, _: &Site) -> Result<Box<dyn Elevator>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Scan::default()))
}

impl Elevator for Scan {
    fn add(&mut self, _: Time, slot: u32, requests: &Requests) {
        self.waiting.add(slot, requests);
    }

    fn grown(&mut self, _: Time, slot: u32, join: Join, _: &Queued, _: &Queued, requests: &Requests) {
        self.waiting.grown(slot, join, requests);
    }

    fn coalesced(&mut self, _: Time, _: u32, gone: u32, _: &Requests) {
        self.waiting.forget(gone);
    }

    fn dispatch(&mut self, _: Time, context: &Context<'_>) -> Option<u32> {
        let (ahead, behind) = (self.waiting.ahead(), self.waiting.behind());
        let (first, other) = if self.downwards { (behind, ahead) } else { (ahead, behind) };
        self.downwards ^= first.is_none();
        let (_, slot) = first.or(other)?;
        Some(self.waiting.take(slot, context.requests))
    }

    fn starves(&self) -> bool {
        false
    }
}

#[cfg(test)]
pub(super) fn tunables() -> Vec<super::testing::Tunable> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use crate::elevator::testing::order;

    #[test]
    fn it_turns_where_nothing_is_left() {
        assert_eq!(order("scan", "{}", &[500, 90, 10, 120, 1300], 100), [120, 500, 1300, 90, 10]);
    }
}
