//! The keys of `[shared]`.

use crate::cooperation::CooperationKeys;
use crate::cost::CostKeys;
use crate::fairness::{BuildFairness, Fairness, REGISTRY};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, find, known_keys, read, schema_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What several hosts share above the array, `[shared]`; the keys that are not
/// its rule's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// For how long the stage's processor works on each request before it goes
    /// down, one after the other: a time, or a table of a model, `model = ...`, and its
    /// keys. 0 unless said.
    #[serde(default)]
    pub cost: CostKeys,
    /// Requests that the array is given at once; no limit unless said, or, with an
    /// elevator, as many as `[host]` has there.
    #[serde(default)]
    pub queue_depth: Option<u32>,
    /// Whose request goes down next.
    #[serde(default = "in_turns")]
    pub fairness: String,
    /// Which of the array's addresses a host has.
    #[serde(default)]
    pub addresses: Addresses,
    /// Hosts answer each other's reads from their page caches: a read of what another
    /// host has read or written last is asked of that host first. Needs
    /// `addresses = "whole"`.
    #[serde(default)]
    pub cooperation: Option<CooperationKeys>,
}

/// Which of the array's addresses a host has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Addresses {
    /// Each its own, in the order of the hosts: as many as it says, or an equal
    /// part of what is left.
    #[default]
    Parts,
    /// All of them.
    Whole,
}

fn in_turns() -> String {
    "round-robin".into()
}

impl StageConfig {
    /// Reads a `[shared]` table: its keys, those of its rule, and those of neither,
    /// which are of what stands below.
    ///
    /// # Errors
    /// An unknown rule, a depth of 0, a value that cannot be.
    pub fn read(table: &Keys) -> Result<(StageConfig, Keys, Keys), ConfigError> {
        let own = known_keys(&schema_of::<StageConfig>());
        let (of_stage, others): (Keys, Keys) = table
            .clone()
            .into_iter()
            .partition(|(key, _)| own.contains(key));
        let config: StageConfig = read(&of_stage)?;
        config.cost.build().map_err(|error| error.below("cost"))?;
        if config.queue_depth == Some(0) {
            return Err(ConfigError::new(
                "queue_depth",
                "found 0; expected at least 1",
            ));
        }
        if let Some(cooperation) = &config.cooperation {
            cooperation
                .check()
                .map_err(|error| error.below("cooperation"))?;
            if config.addresses != Addresses::Whole {
                let message = "each host has addresses of its own, which no other reads; it needs addresses = \"whole\"";
                return Err(ConfigError::new("cooperation", message));
            }
        }
        let rule = find("rule of fairness", REGISTRY, "fairness", &config.fairness)?;
        let of_rule = known_keys(&(rule.schema)());
        let (of_rule, below) = others
            .into_iter()
            .partition(|(key, _)| of_rule.contains(key));
        Ok((config, of_rule, below))
    }

    /// The rule, for hosts of these weights.
    ///
    /// # Errors
    /// The rule's.
    pub fn rule(&self, keys: &Keys, weights: &[u32]) -> Result<Box<dyn Fairness>, ConfigError> {
        let build: BuildFairness =
            find("rule of fairness", REGISTRY, "fairness", &self.fairness)?.build;
        build(keys, weights)
    }
}
