//! In order of arrival, regardless of the host.

use super::Fairness;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_units::Sectors;
use std::collections::VecDeque;

pub(super) const SUMMARY: &str = "in order of arrival: a host with more requests gets more service";

struct FifoFairness(VecDeque<u32>);

pub(super) fn build(_: &Keys, _: &[u32]) -> Result<Box<dyn Fairness>, ConfigError> {
    Ok(Box::new(FifoFairness(VecDeque::new())))
}

impl Fairness for FifoFairness {
    fn add(&mut self, _: usize, slot: u32, _: Sectors) {
        self.0.push_back(slot);
    }
    fn next(&mut self) -> Option<u32> {
        self.0.pop_front()
    }
    fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use crate::fairness::tests::{rule, served};

    #[test]
    fn who_comes_first_goes_first() {
        assert_eq!(
            served(
                &mut *rule("fifo", &[1, 1]),
                &[(0, 8), (0, 8), (1, 8), (0, 8)]
            ),
            [0, 0, 1, 0]
        );
    }
}
