//! `c-scan`: goes upwards until no request is left ahead, then starts again at the lowest address.

use super::by_position::{ByPosition, PositionElevator, PositionRule};
use super::coordinated::{Coordinated, FURTHER};
use super::{Elevator, ElevatorSite};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};

pub(super) const SUMMARY: &str = "upwards until no request is ahead, then from the lowest address";
pub(super) type Config = Coordinated;

#[derive(Default)]
struct CircularScan;

pub(super) fn build(keys: &Keys, _: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let weight = read::<Config>(keys)?.checked()?;
    Ok(Box::new(PositionElevator::<CircularScan>::new(weight)))
}

impl PositionRule for CircularScan {
    const STARVES: bool = false;

    fn choose(&mut self, waiting: &ByPosition) -> Option<u32> {
        waiting
            .ahead()
            .map(|(_, slot)| slot)
            .or_else(|| waiting.lowest())
    }

    fn distance(&self, here: u64, address: u64) -> u64 {
        address.checked_sub(here).unwrap_or(FURTHER + address)
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
    fn it_returns_to_the_lowest() {
        assert_eq!(
            order("c-scan", "{}", &[500, 90, 10, 120, 1300], 100),
            [120, 500, 1300, 10, 90]
        );
    }
}
