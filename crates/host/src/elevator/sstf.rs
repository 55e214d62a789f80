//! `sstf`: the nearest request on either side, by address.

use super::by_position::ByPosition;
use super::{Context, Elevator, NoKeys, Site};
use crate::block::{Join, Queued, Requests};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::Time;

pub(super) const SUMMARY: &str = "the nearest request on either side; may starve the edges";
pub(super) type Config = NoKeys;

#[derive(Default)]
struct Sstf {
    waiting: ByPosition,
}

pub(super) fn build(keys: &Keys, _: &Site) -> Result<Box<dyn Elevator>, ConfigError> {
    let NoKeys {} = read(keys)?;
    Ok(Box::new(Sstf::default()))
}

impl Elevator for Sstf {
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
        let next = match (self.waiting.behind(), self.waiting.ahead()) {
            (Some(behind), Some(ahead)) if behind.0 < ahead.0 => behind,
            (behind, ahead) => ahead.or(behind)?,
        };
        Some(self.waiting.take(next.1, context.requests))
    }

    fn starves(&self) -> bool {
        true
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
    fn the_nearest_is_next() {
        assert_eq!(order("sstf", "{}", &[500, 90, 10, 120, 1300], 100), [90, 120, 10, 500, 1300]);
    }
}
