//! `sstf`: dispatches the nearest request on either side, by address.

use super::by_position::{ByPosition, PositionElevator, PositionRule};
use super::coordinated::Coordinated;
use super::{Elevator, ElevatorSite};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};

pub(super) const SUMMARY: &str = "the nearest request on either side; may starve the edges";
pub(super) type Config = Coordinated;

#[derive(Default)]
struct SstfElevator;

pub(super) fn build(keys: &Keys, _: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let weight = read::<Config>(keys)?.checked()?;
    Ok(Box::new(PositionElevator::<SstfElevator>::new(weight)))
}

impl PositionRule for SstfElevator {
    const STARVES: bool = true;

    fn choose(&mut self, waiting: &ByPosition) -> Option<u32> {
        let next = match (waiting.behind(), waiting.ahead()) {
            (Some(behind), Some(ahead)) if behind.0 < ahead.0 => behind,
            (behind, ahead) => ahead.or(behind)?,
        };
        Some(next.1)
    }

    fn distance(&self, here: u64, address: u64) -> u64 {
        address.abs_diff(here)
    }
}

#[cfg(test)]
pub(super) fn tunables() -> Vec<super::testing::Tunable> {
    vec![super::coordinated::tunable()]
}

#[cfg(test)]
mod tests {
    use crate::elevator::testing::order;

    #[test]
    fn the_nearest_is_next() {
        assert_eq!(
            order("sstf", "{}", &[500, 90, 10, 120, 1300], 100),
            [90, 120, 10, 500, 1300]
        );
    }
}
