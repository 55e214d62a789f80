//! Sectors by weight: deficit round robin (Shreedhar and Varghese, 1995).
//!
//! In one turn, a host may move a quantum of sectors plus the rest of the previous turn. The
//! quantum is the weight's share of `quantum`. A request that does not fit waits for the next turn.
//! Shares therefore hold in bytes for any request size, at a constant cost per request.

use super::Fairness;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, read};
use fullstroke_units::{Bytes, SECTOR_BYTES, Sectors};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::VecDeque;

pub(super) const SUMMARY: &str = "bytes by the hosts' weights: deficit round robin";

/// The keys of weighted turns.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedConfig {
    /// Bytes per turn of the host with the smallest weight. Default 64KiB.
    #[serde(default = "quantum")]
    pub quantum: Bytes,
}

fn quantum() -> Bytes {
    Bytes(64 << 10)
}

struct Weighted {
    hosts: Vec<WeightedHost>,
    /// Hosts with requests, in order of turns.
    turns: VecDeque<u32>,
    waiting: usize,
}

#[derive(Clone, Debug)]
struct WeightedHost {
    queue: VecDeque<(u32, u64)>,
    /// Sectors of a turn.
    quantum: u64,
    /// Sectors left in the turn.
    left: u64,
}

pub(super) fn build(keys: &Keys, weights: &[u32]) -> Result<Box<dyn Fairness>, ConfigError> {
    let config: WeightedConfig = read(keys)?;
    let quantum = config.quantum.0 / SECTOR_BYTES;
    if quantum == 0 {
        return Err(ConfigError::new(
            "quantum",
            format!("found {}; expected a sector at least", config.quantum.0),
        ));
    }
    // The host with the smallest weight gets one quantum. A division by the largest weight could
    // leave a host without a sector.
    let least = u64::from(weights.iter().copied().min().unwrap_or(1).max(1));
    let host = |&weight: &u32| WeightedHost {
        queue: VecDeque::new(),
        quantum: (quantum * u64::from(weight) / least).max(1),
        left: 0,
    };
    let hosts = weights.iter().map(host).collect();
    Ok(Box::new(Weighted {
        hosts,
        turns: VecDeque::new(),
        waiting: 0,
    }))
}

impl Fairness for Weighted {
    fn add(&mut self, host: usize, slot: u32, sectors: Sectors) {
        let queue = &mut self.hosts[host];
        // An idle host saves no credit for later (Shreedhar & Varghese 1995, deficit round robin).
        if queue.queue.is_empty() {
            self.turns.push_back(host as u32);
            queue.left = queue.quantum;
        }
        // A request without data costs a command too, and counts as one sector.
        queue.queue.push_back((slot, sectors.0.max(1)));
        self.waiting += 1;
    }

    fn next(&mut self) -> Option<u32> {
        loop {
            let &first = self.turns.front()?;
            let rounds = self.rounds_until_one_may();
            let host = &mut self.hosts[first as usize];
            let &(slot, sectors) = host.queue.front()?;
            if sectors <= host.left {
                host.left -= sectors;
                host.queue.pop_front();
                self.waiting -= 1;
                if host.queue.is_empty() {
                    self.turns.pop_front();
                }
                return Some(slot);
            }
            if rounds > 1 {
                // No first request fits for several rounds: all hosts get the rounds at once.
                for &index in &self.turns {
                    let host = &mut self.hosts[index as usize];
                    host.left += host.quantum * (rounds - 1);
                }
            }
            let host = &mut self.hosts[first as usize];
            host.left += host.quantum;
            self.turns.rotate_left(1);
        }
    }

    fn len(&self) -> usize {
        self.waiting
    }
}

impl Weighted {
    /// Number of rounds until a first request fits.
    fn rounds_until_one_may(&self) -> u64 {
        let rounds = |&index: &u32| {
            let host = &self.hosts[index as usize];
            let first = host.queue.front().map_or(0, |&(_, sectors)| sectors);
            first.saturating_sub(host.left).div_ceil(host.quantum)
        };
        self.turns.iter().map(rounds).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fairness::tests::rule;

    /// Sectors moved by each host when `until` sectors are moved in total, with hosts that always
    /// have requests.
    fn moved(weights: &[u32], sizes: &[u64], until: u64) -> Vec<u64> {
        let mut rule = rule("weighted", weights);
        let mut hosts = Vec::new();
        let mut add = |rule: &mut Box<dyn Fairness>, host: usize| {
            rule.add(host, hosts.len() as u32, Sectors(sizes[host]));
            hosts.push(host);
            hosts.len()
        };
        let mut of = Vec::new();
        for host in 0..weights.len() {
            for _ in 0..4 {
                add(&mut rule, host);
                of.push(host);
            }
        }
        let mut moved = vec![0; weights.len()];
        while moved.iter().sum::<u64>() < until {
            let slot = rule.next().unwrap();
            let host = of[slot as usize];
            moved[host] += sizes[host];
            add(&mut rule, host);
            of.push(host);
        }
        moved
    }

    #[test]
    fn bytes_follow_weights_whatever_the_sizes() {
        for sizes in [[8, 8], [8, 2048], [2048, 8], [1, 128]] {
            let moved = moved(&[1, 3], &sizes, 4_000_000);
            let share = moved[1] as f64 / moved[0] as f64;
            assert!((share - 3.0).abs() < 0.03, "{sizes:?}: {share}");
        }
    }

    #[test]
    fn a_host_that_is_alone_is_not_held_back() {
        let mut rule = rule("weighted", &[1, 1000]);
        rule.add(0, 7, Sectors(1 << 40));
        assert_eq!((rule.next(), rule.next()), (Some(7), None));
    }

    /// A host that comes and goes gets one turn each time. The unused rest of an old turn is not
    /// kept.
    #[test]
    fn a_host_that_comes_and_goes_saves_no_turns() {
        let mut rule = rule("weighted", &[1, 1]);
        // One sector at a time, alone: of each turn 127 of 128 sectors stay unused.
        for slot in 0..100 {
            rule.add(0, slot, Sectors(1));
            assert_eq!(rule.next(), Some(slot));
        }
        for slot in 0..40 {
            rule.add((slot % 2) as usize, 1000 + slot, Sectors(64));
        }
        let first: Vec<u32> = (0..10).map(|_| rule.next().unwrap() % 2).collect();
        let of_the_saver = first.iter().filter(|&&host| host == 0).count();
        assert!((4..=6).contains(&of_the_saver), "{first:?}");
    }
}
