//! The keys of `[shared]`.

use crate::cooperation::CooperationKeys;
use crate::cost::CostKeys;
use crate::fairness::{BuildFairness, Fairness, REGISTRY};
use crate::server::ServerKeys;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, find, known_keys, read, schema_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shared part of several hosts above the array, `[shared]`, without the keys of the fairness
/// rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// Processor time of the stage per request before the request goes down, one request after the
    /// other: a time, or a table `model = ...` with the model's keys. Default: 0.
    #[serde(default)]
    pub cost: CostKeys,
    /// Most requests in the array at once. Default: no limit; with an elevator, the default of
    /// `[host]`.
    #[serde(default)]
    pub queue_depth: Option<u32>,
    /// A file server between the hosts and their files: the hosts are its clients over a network.
    /// Needs `[shared.files]`. Default: none.
    #[serde(default)]
    pub server: Option<ServerKeys>,
    /// Fairness rule, by name. Default: "round-robin", or "fifo" for the threads of a `server`.
    #[serde(default = "in_turns")]
    pub fairness: String,
    /// Addresses of the array for each host.
    #[serde(default)]
    pub addresses: HostAddresses,
    /// With this table, hosts answer each other's reads from their page caches. A read goes first
    /// to the host with the newest read or write of the data. Needs `addresses = "whole"`. Default:
    /// hosts do not answer each other.
    #[serde(default)]
    pub cooperation: Option<CooperationKeys>,
}

/// Addresses of the array for one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Addresses")]
pub enum HostAddresses {
    /// Each host has its own part, in the order of the hosts: the given size, or an equal part of
    /// the rest.
    #[default]
    Parts,
    /// All addresses.
    Whole,
}

fn in_turns() -> String {
    "round-robin".into()
}

impl StageConfig {
    /// Reads a `[shared]` table: the stage's keys, the keys of the rule, and the remaining keys,
    /// which belong to the layers below.
    ///
    /// # Errors
    /// An unknown rule, a depth of 0, or an impossible value.
    pub fn read(table: &Keys) -> Result<(StageConfig, Keys, Keys), ConfigError> {
        let own = known_keys(&schema_of::<StageConfig>());
        let (of_stage, others): (Keys, Keys) = table
            .clone()
            .into_iter()
            .partition(|(key, _)| own.contains(key));
        let mut config: StageConfig = read(&of_stage)?;
        if let Some(server) = &config.server {
            server.check().map_err(|error| error.below("server"))?;
            if config.queue_depth.is_some() {
                let message =
                    "`threads` of [shared.server] limits the calls at once; remove this key";
                return Err(ConfigError::new("queue_depth", message));
            }
            if config.cooperation.is_some() {
                let message =
                    "clients of a file server do not read from each other; remove this key";
                return Err(ConfigError::new("cooperation", message));
            }
            if !of_stage.contains_key("fairness") {
                // A pool of threads takes calls in the order of their arrival (`svc_recv`).
                config.fairness = "fifo".into();
            }
        }
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
            if config.addresses != HostAddresses::Whole {
                let message = "cooperation needs addresses = \"whole\", because hosts with separate addresses share no data";
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

    /// Returns the rule for hosts with these weights.
    ///
    /// # Errors
    /// Returns the error of the rule.
    pub fn rule(&self, keys: &Keys, weights: &[u32]) -> Result<Box<dyn Fairness>, ConfigError> {
        let build: BuildFairness =
            find("rule of fairness", REGISTRY, "fairness", &self.fairness)?.build;
        build(keys, weights)
    }
}
