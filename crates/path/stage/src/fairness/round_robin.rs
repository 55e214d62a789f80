//! One request of each host in turn.

use super::Fairness;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::Keys;
use fullstroke_units::Sectors;
use std::collections::VecDeque;

pub(super) const SUMMARY: &str = "one request of each host in turn";

struct RoundRobin {
    hosts: Vec<VecDeque<u32>>,
    /// Hosts with requests, in order of turns.
    turns: VecDeque<u32>,
    waiting: usize,
}

pub(super) fn build(_: &Keys, weights: &[u32]) -> Result<Box<dyn Fairness>, ConfigError> {
    let hosts = vec![VecDeque::new(); weights.len()];
    Ok(Box::new(RoundRobin {
        hosts,
        turns: VecDeque::new(),
        waiting: 0,
    }))
}

impl Fairness for RoundRobin {
    fn add(&mut self, host: usize, slot: u32, _: Sectors) {
        // A host has one place in the turns, however many of its requests wait.
        if self.hosts[host].is_empty() {
            self.turns.push_back(host as u32);
        }
        self.hosts[host].push_back(slot);
        self.waiting += 1;
    }
    fn next(&mut self) -> Option<u32> {
        let host = self.turns.pop_front()?;
        let queue = &mut self.hosts[host as usize];
        let slot = queue.pop_front()?;
        if !queue.is_empty() {
            self.turns.push_back(host);
        }
        self.waiting -= 1;
        Some(slot)
    }
    fn len(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use crate::fairness::tests::{rule, served};

    #[test]
    fn hosts_take_turns() {
        let requests = [(0, 8), (0, 800), (0, 8), (1, 8), (2, 8), (2, 8)];
        assert_eq!(
            served(&mut *rule("round-robin", &[1, 1, 1]), &requests),
            [0, 1, 2, 0, 2, 0]
        );
    }
}
