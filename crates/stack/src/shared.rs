//! What several hosts share above the array, `[shared]`: a stage, and below it a cache
//! and a block layer, if they are described.

use fullstroke_contract::registry::{Keys, check_known, known_keys, schema_of};
use fullstroke_contract::{ConfigError, Node};
use fullstroke_engine::Branch;
use fullstroke_host::{HostConfig, HostKeys, Underneath};
use fullstroke_stage::{Addresses, Regions, Stage, StageConfig};
use fullstroke_units::Sectors;
use serde_json::Value;

/// The table.
pub(crate) struct Shared {
    stage: StageConfig,
    /// The keys of the rule of fairness.
    rule: Keys,
    below: HostConfig,
}

impl Shared {
    /// Reads it.
    ///
    /// # Errors
    /// A key that neither the stage nor its rule nor a block layer has; one that
    /// cannot be.
    pub(crate) fn read(table: &Keys) -> Result<Shared, ConfigError> {
        let (stage, rule, mut below) = StageConfig::read(table)?;
        if below.contains_key("elevator")
            && let Some(depth) = stage.queue_depth
        {
            below.insert("queue_depth".into(), Value::from(depth));
        }
        check_keys(&below)?;
        for (key, message) in [
            ("members", "hosts share the array as a whole; leave it out"),
            ("files", "each of the hosts has files of its own; leave it out"),
        ] {
            if below.contains_key(key) {
                return Err(ConfigError::new(key, message));
            }
        }
        Ok(Shared { stage, rule, below: HostConfig::read(&below)? })
    }

    /// Whether hosts of these weights can share it.
    ///
    /// # Errors
    /// The rule's.
    pub(crate) fn check(&self, weights: &[u32]) -> Result<(), ConfigError> {
        self.stage.rule(&self.rule, weights).map(drop)
    }

    /// The block layer.
    pub(crate) fn layer(&self) -> &HostConfig {
        &self.below
    }

    /// The block layer, to be changed.
    pub(crate) fn layer_mut(&mut self) -> &mut HostConfig {
        &mut self.below
    }

    /// Whether hosts answer each other's reads.
    pub(crate) fn cooperates(&self) -> bool {
        self.stage.cooperation.is_some()
    }

    /// Which of the array's addresses a host has.
    pub(crate) fn addresses(&self) -> Addresses {
        self.stage.addresses
    }

    /// All of it above `array`, of `capacity`, which is divided into `regions` among
    /// hosts of these weights.
    ///
    /// # Errors
    /// What does not suit the array.
    pub(crate) fn over(
        &self,
        array: Branch,
        underneath: Underneath,
        (regions, weights): (Regions, &[u32]),
    ) -> Result<Branch, ConfigError> {
        let capacity = underneath.capacity;
        let block = over(self.below.build(underneath)?, array);
        let cached = over(self.memory(capacity)?, over(self.below.pushed(capacity)?, block));
        let rule = self.stage.rule(&self.rule, weights)?;
        let cost = self.stage.cost.build().map_err(|error| error.below("cost"))?;
        let depth = self.stage.queue_depth.filter(|_| !self.below.has_elevator());
        let mut stage = Stage::new(regions, rule, cost, depth);
        if let Some(keys) = &self.stage.cooperation {
            stage = stage.with_cooperation(keys);
        }
        Ok(Branch::over(Box::new(stage), cached))
    }

    fn memory(&self, capacity: Sectors) -> Result<Option<Box<dyn Node>>, ConfigError> {
        self.below.memory(capacity)
    }
}

/// `layer` above `below`, if there is one.
pub(crate) fn over(layer: Option<Box<dyn Node>>, below: Branch) -> Branch {
    match layer {
        Some(layer) => Branch::over(layer, below),
        None => below,
    }
}

/// A key that is neither of the stage, nor of a block layer and its elevator, is
/// refused here, so that the nearest is looked for among all.
fn check_keys(below: &Keys) -> Result<(), ConfigError> {
    if below.contains_key("elevator") {
        // Its elevator's keys are known to the block layer.
        return Ok(());
    }
    let known =
        known_keys(&schema_of::<StageConfig>()).into_iter().chain(known_keys(&schema_of::<HostKeys>()));
    check_known(below, &known.collect::<Vec<_>>())
}
