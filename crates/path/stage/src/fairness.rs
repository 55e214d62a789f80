//! Fairness: the choice of the next host.
//!
//! A rule is one file with a type for [`Fairness`], keys, tests, and one line in [`REGISTRY`].

mod fifo;
mod round_robin;
mod weighted;

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, PolicyEntry, schema_of};
use fullstroke_units::Sectors;
use schemars::JsonSchema;
use serde::Deserialize;

/// Waiting requests of several hosts, with the rule of choice.
pub trait Fairness: Send {
    /// Adds the request in `slot` of host `host`. The request transfers `sectors`.
    fn add(&mut self, host: usize, slot: u32, sectors: Sectors);
    /// Removes the next request; `None` if none waits.
    fn next(&mut self) -> Option<u32>;
    /// Number of waiting requests.
    fn len(&self) -> usize;
    /// True if no request waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Function to build a rule from its keys, for hosts with these weights.
pub type BuildFairness = fn(&Keys, weights: &[u32]) -> Result<Box<dyn Fairness>, ConfigError>;

/// Every rule.
#[rustfmt::skip]
pub const REGISTRY: &[PolicyEntry<BuildFairness>] = &[
    PolicyEntry { name: "fifo", summary: fifo::SUMMARY, schema: schema_of::<NoFairnessKeys>, build: fifo::build },
    PolicyEntry { name: "round-robin", summary: round_robin::SUMMARY, schema: schema_of::<NoFairnessKeys>, build: round_robin::build },
    PolicyEntry { name: "weighted", summary: weighted::SUMMARY, schema: schema_of::<weighted::WeightedConfig>, build: weighted::build },
];

/// The keys of a rule without keys.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NoKeys")]
pub struct NoFairnessKeys {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Serves everything; `(host, slot)` in order.
    pub(super) fn served(rule: &mut dyn Fairness, requests: &[(usize, u64)]) -> Vec<usize> {
        for (slot, &(host, sectors)) in requests.iter().enumerate() {
            rule.add(host, slot as u32, Sectors(sectors));
        }
        std::iter::from_fn(|| rule.next())
            .map(|slot| requests[slot as usize].0)
            .collect()
    }

    pub(super) fn rule(name: &str, weights: &[u32]) -> Box<dyn Fairness> {
        let entry = REGISTRY.iter().find(|entry| entry.name == name).unwrap();
        (entry.build)(&Keys::new(), weights).unwrap()
    }

    proptest! {
        /// Conformance of every rule: each request once, the requests of a host in order, and no
        /// starvation.
        #[test]
        fn every_rule_serves_each_request_once_and_a_hosts_in_order(
            steps in prop::collection::vec(prop::option::of((0usize..4, 1u64..2000)), 1..200),
            weights in prop::collection::vec(1u32..1000, 4),
        ) {
            for entry in REGISTRY {
                let mut rule = (entry.build)(&Keys::new(), &weights).unwrap();
                let (mut hosts, mut last, mut waits) = (Vec::new(), [0; 4], 0usize);
                let mut check = |slot: Option<u32>, hosts: &[usize], waits: &mut usize| {
                    let Some(slot) = slot else {
                        prop_assert_eq!(*waits, 0, "{}", entry.name);
                        return Ok(());
                    };
                    *waits -= 1;
                    let host = hosts[slot as usize];
                    prop_assert!(last[host] <= slot, "{}: not in order", entry.name);
                    last[host] = slot + 1;
                    Ok(())
                };
                for step in &steps {
                    match *step {
                        Some((host, sectors)) => {
                            rule.add(host, hosts.len() as u32, Sectors(sectors));
                            hosts.push(host);
                            waits += 1;
                        }
                        None => check(rule.next(), &hosts, &mut waits)?,
                    }
                    prop_assert_eq!(rule.len(), waits);
                }
                while waits > 0 {
                    check(rule.next(), &hosts, &mut waits)?;
                }
                prop_assert!(rule.next().is_none() && rule.is_empty());
            }
        }
    }
}
