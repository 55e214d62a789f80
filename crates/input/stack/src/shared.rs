//! What several hosts share above the array, `[shared]`: a stage, and below it a cache, or
//! files that are the hosts' disks, and a block layer, if they are described.

use fullstroke_contract::registry::{Keys, check_known, known_keys, schema_of};
use fullstroke_contract::{ConfigError, Node, Port};
use fullstroke_engine::Branch;
use fullstroke_files::Site;
use fullstroke_host::{HostConfig, HostKeys, Underneath};
use fullstroke_stage::{Addresses, Region, Regions, Stage, StageConfig};
use fullstroke_vfs::{Backing, Disk, DiskKeys, FileBacked, FilesConfig};
use serde_json::Value;

/// The table.
pub(crate) struct Shared {
    stage: StageConfig,
    /// The keys of the rule of fairness.
    rule: Keys,
    below: HostConfig,
    /// How the hosts' disks are files, if they are.
    files: Option<(DiskKeys, FilesConfig)>,
}

/// What the hosts have of it.
pub(crate) struct Shares<'a> {
    /// Whose addresses are whose.
    pub regions: Regions,
    pub names: Vec<&'a str>,
    pub weights: Vec<u32>,
}

/// Where the files are that are disks.
pub(crate) struct Ground {
    pub site: Site,
    /// Whether their file system is aged: only what runs need be.
    pub aged: bool,
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
        if below.contains_key("members") {
            return Err(ConfigError::new(
                "members",
                "hosts share the array as a whole; leave it out",
            ));
        }
        let below = HostConfig::read(&below)?;
        let files = below
            .files()
            .map(DiskKeys::read)
            .transpose()
            .map_err(|error| error.below("files"))?;
        if files.is_some() && !below.has_memory() {
            let message = "the file system of [shared.files] keeps its metadata in memory; say size = \"64MiB\" or another";
            return Err(ConfigError::new("memory", message));
        }
        if files.is_some() && stage.addresses != Addresses::Parts {
            let message = "each host has a disk of its own, which is a file; leave it out";
            return Err(ConfigError::new("addresses", message));
        }
        Ok(Shared {
            stage,
            rule,
            below,
            files,
        })
    }

    /// Whether the hosts' disks are files.
    pub(crate) fn has_files(&self) -> bool {
        self.files.is_some()
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

    /// All of it above `array`, of which hosts have these shares.
    ///
    /// # Errors
    /// What does not suit the array.
    pub(crate) fn over(
        &self,
        array: Branch,
        underneath: Underneath,
        shares: Shares<'_>,
        ground: Ground,
    ) -> Result<Branch, ConfigError> {
        let capacity = underneath.capacity;
        let block = over(self.below.build(underneath)?, array);
        let block = over(self.below.pushed(capacity)?, block);
        let cached = match &self.files {
            Some(files) => Branch::over(Box::new(self.disks(files, &shares, ground)?), block),
            None => over(self.below.memory(capacity)?, block),
        };
        let Shares {
            regions, weights, ..
        } = shares;
        let rule = self.stage.rule(&self.rule, &weights)?;
        let cost = self
            .stage
            .cost
            .build()
            .map_err(|error| error.below("cost"))?;
        let depth = self
            .stage
            .queue_depth
            .filter(|_| !self.below.has_elevator());
        let mut stage = Stage::new(regions, rule, cost, depth);
        if let Some(keys) = &self.stage.cooperation {
            stage = stage.with_cooperation(keys);
        }
        Ok(Branch::over(Box::new(stage), cached))
    }

    fn disks(
        &self,
        (keys, files): &(DiskKeys, FilesConfig),
        Shares { regions, names, .. }: &Shares<'_>,
        Ground { site, aged }: Ground,
    ) -> Result<FileBacked, ConfigError> {
        let cache = self
            .below
            .cache()?
            .ok_or_else(|| ConfigError::new("memory", "found none"))?;
        let disk = |(index, name): (usize, &&str)| {
            let Region { start, sectors } = regions.of(Port::of(index));
            Disk {
                name: (*name).to_owned(),
                start,
                sectors,
            }
        };
        let disks = names.iter().enumerate().map(disk).collect();
        let made = FileBacked::new(
            disks,
            Backing {
                files,
                keys,
                cache,
                site,
                aged,
            },
        );
        made.map_err(|error| error.below("files"))
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
    let known = known_keys(&schema_of::<StageConfig>())
        .into_iter()
        .chain(known_keys(&schema_of::<HostKeys>()));
    check_known(below, &known.collect::<Vec<_>>())
}
