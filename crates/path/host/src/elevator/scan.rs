//! `scan`: goes in one direction until no request is left ahead, then turns round. The literature
//! also calls this rule LOOK, if its SCAN visits the edges (thesis of Carroll, section 2.2.5).

use super::by_position::{ByPosition, PositionElevator, PositionRule};
use super::coordinated::{Coordinated, FURTHER};
use super::{Elevator, ElevatorSite};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};

pub(super) const SUMMARY: &str = "one direction until no request is ahead, then the other";
pub(super) type Config = Coordinated;

#[derive(Default)]
struct Scan {
    downwards: bool,
}

pub(super) fn build(keys: &Keys, _: &ElevatorSite) -> Result<Box<dyn Elevator>, ConfigError> {
    let weight = read::<Config>(keys)?.checked()?;
    Ok(Box::new(PositionElevator::<Scan>::new(weight)))
}

impl PositionRule for Scan {
    const STARVES: bool = false;

    fn choose(&mut self, waiting: &ByPosition) -> Option<u32> {
        let (ahead, behind) = (waiting.ahead(), waiting.behind());
        let (first, other) = if self.downwards {
            (behind, ahead)
        } else {
            (ahead, behind)
        };
        self.downwards ^= first.is_none();
        first.or(other).map(|(_, slot)| slot)
    }

    fn distance(&self, here: u64, address: u64) -> u64 {
        let onwards = (address < here) == self.downwards;
        address.abs_diff(here) + if onwards { 0 } else { FURTHER }
    }

    fn note_choice(&mut self, back: bool) {
        self.downwards = back;
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
    fn it_turns_where_nothing_is_left() {
        assert_eq!(
            order("scan", "{}", &[500, 90, 10, 120, 1300], 100),
            [120, 500, 1300, 90, 10]
        );
    }
}
