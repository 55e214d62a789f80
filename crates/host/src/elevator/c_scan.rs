//! `c-scan`: upwards until nothing is left there, then from the lowest address.

use super::by_position::ByPosition;
use super::{Context, Elevator, NoKeys, Site};
use crate::block::{Join, Queued, Requests};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;

pub(super) const SUMMARY: &str = "upwards until nothing waits there, then from the lowest address";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct CircularScan {
    waiting: ByPosition,
}

pub(super) fn build(keys: &Keys, _: &Site) -> Result<Box<dyn Elevator>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(CircularScan::default()))
}

impl Elevator for CircularScan {
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
        let ahead = self.waiting.ahead().map(|(_, slot)| slot);
        let slot = ahead.or_else(|| self.waiting.lowest())?;
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
    fn it_returns_to_the_lowest() {
        assert_eq!(order("c-scan", "{}", &[500, 90, 10, 120, 1300], 100), [120, 500, 1300, 10, 90]);
    }
}
