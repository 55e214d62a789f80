//! The common layers of several hosts above the array, `[shared]`. From the top: a stage; a cache,
//! or files that are the hosts' disks; and a block layer. Cache, files and block layer are
//! optional.

use crate::upper::cache_above_pool;
use fullstroke_contract::registry::{Keys, check_known, known_keys, schema_of};
use fullstroke_contract::{ConfigError, DatasetStart, Node, Port};
use fullstroke_engine::Branch;
use fullstroke_files::FileSystemSite;
use fullstroke_host::{DeviceBelow, HostConfig, HostKeys};
use fullstroke_stage::{FileServer, HostAddresses, HostRegion, HostRegions, Stage, StageConfig};
use fullstroke_vfs::{Backing, DiskCache, DiskKeys, FileBacked, FilesConfig, GuestDisk};
use serde_json::Value;

/// The table `[shared]`.
pub(crate) struct SharedTable {
    stage: StageConfig,
    /// Keys of the rule of fairness.
    rule: Keys,
    below: HostConfig,
    /// Settings of disks that are files; `None` if the hosts' disks are no files.
    files: Option<(DiskKeys, FilesConfig)>,
}

/// The hosts' shares of the common layers.
pub(crate) struct HostShares<'a> {
    /// Addresses of each host.
    pub regions: HostRegions,
    pub names: Vec<&'a str>,
    pub weights: Vec<u32>,
}

/// The place of the files that are disks.
pub(crate) struct DiskFileSite {
    pub site: FileSystemSite,
    /// True to age the file system, which only a real run needs.
    pub aged: bool,
}

impl SharedTable {
    /// Reads the table.
    ///
    /// # Errors
    /// If a key is unknown to the stage, its rule and a block layer, or if a value is wrong.
    pub(crate) fn read(table: &Keys) -> Result<SharedTable, ConfigError> {
        let (stage, rule, mut below) = StageConfig::read(table)?;
        if below.contains_key("elevator")
            && let Some(depth) = stage.queue_depth
        {
            // With an elevator, the limit belongs below it: requests must wait where the elevator
            // can order them.
            below.insert("queue_depth".into(), Value::from(depth));
        }
        check_keys(&below)?;
        if below.contains_key("members") {
            return Err(ConfigError::new(
                "members",
                "the hosts share the whole array; remove this key",
            ));
        }
        let sets_access_times = below
            .get("files")
            .is_some_and(|files| files.get("atime").is_some());
        let below = HostConfig::read(&below)?;
        let files = below
            .files()
            .cloned()
            .map(|mut keys| {
                // A host's default. The reads of guests change no access time of a disk's file.
                if !sets_access_times {
                    keys.remove("atime");
                }
                DiskKeys::read(&keys)
            })
            .transpose()
            .map_err(|error| error.below("files"))?;
        if stage.server.is_some() {
            match &files {
                None => {
                    let message = "missing; a file server has a file system: set its kind, such as files = { kind = \"xfs\", cache = \"writeback\" }";
                    return Err(ConfigError::new("files", message));
                }
                Some((_, files)) if files.lies_in_pool() => {}
                Some((keys, _)) if keys.cache == DiskCache::None => {
                    let message = "found \"none\"; a file server uses its page cache: set cache = \"writeback\"";
                    return Err(ConfigError::new("files.cache", message));
                }
                Some(_) => {}
            }
        }
        let in_pool = files
            .as_ref()
            .is_some_and(|(_, files)| files.lies_in_pool());
        // ZFS caches in its own memory (ARC), so `[shared.memory]` has another meaning above a
        // pool.
        if in_pool {
            cache_above_pool(&below)?;
        } else if files.is_some() && !below.has_memory() {
            let message = "the file system of [shared.files] keeps its metadata in memory; set its size, such as size = \"64MiB\"";
            return Err(ConfigError::new("memory", message));
        }
        if files.is_some() && stage.addresses != HostAddresses::Parts {
            let message = "each host has a disk image of its own; remove this key";
            return Err(ConfigError::new("addresses", message));
        }
        Ok(SharedTable {
            stage,
            rule,
            below,
            files,
        })
    }

    /// Returns true if the hosts' disks are files.
    pub(crate) fn has_files(&self) -> bool {
        self.files.is_some()
    }

    /// Returns true if the hosts' disks are files of a pool.
    pub(crate) fn lies_in_pool(&self) -> bool {
        self.files
            .as_ref()
            .is_some_and(|(_, files)| files.lies_in_pool())
    }

    /// Returns the objects of the pool at the start of a run; `None` if the hosts' disks are no files
    /// of a pool.
    ///
    /// # Errors
    /// If the files do not fit.
    pub(crate) fn dataset(
        &self,
        shares: &HostShares<'_>,
        site: DiskFileSite,
    ) -> Result<Option<DatasetStart>, ConfigError> {
        match &self.files {
            Some(files) if self.lies_in_pool() => {
                Ok(Some(self.disks(files, shares, site)?.dataset()))
            }
            _ => Ok(None),
        }
    }

    /// Checks that hosts with these weights can share the layers.
    ///
    /// # Errors
    /// Errors of the rule of fairness.
    pub(crate) fn check(&self, weights: &[u32]) -> Result<(), ConfigError> {
        self.stage.rule(&self.rule, weights).map(drop)
    }

    /// Returns the block layer.
    pub(crate) fn layer(&self) -> &HostConfig {
        &self.below
    }

    /// Returns the block layer for changes.
    pub(crate) fn layer_mut(&mut self) -> &mut HostConfig {
        &mut self.below
    }

    /// Returns true if hosts answer each other's reads.
    pub(crate) fn cooperates(&self) -> bool {
        self.stage.cooperation.is_some()
    }

    /// Returns the rule for the addresses of hosts.
    pub(crate) fn addresses(&self) -> HostAddresses {
        self.stage.addresses
    }

    /// Builds all layers above `array`, for hosts with these shares.
    ///
    /// # Errors
    /// If a layer does not fit the array.
    pub(crate) fn over(
        &self,
        array: Branch,
        underneath: DeviceBelow,
        shares: HostShares<'_>,
        ground: DiskFileSite,
    ) -> Result<Branch, ConfigError> {
        let capacity = underneath.capacity;
        let block = over(self.below.build(underneath)?, array);
        let block = over(self.below.pushed(capacity)?, block);
        // The files bring the page cache with them, because its pages are those of files.
        let cached = match &self.files {
            Some(files) => Branch::over(Box::new(self.disks(files, &shares, ground)?), block),
            None => over(self.below.memory(capacity)?, block),
        };
        let HostShares {
            regions, weights, ..
        } = shares;
        let rule = self.stage.rule(&self.rule, &weights)?;
        let cost = self
            .stage
            .cost
            .build()
            .map_err(|error| error.below("cost"))?;
        if let Some(keys) = &self.stage.server {
            let server = FileServer::new(regions, rule, cost, keys);
            let server = server.map_err(|error| error.below("server"))?;
            return Ok(Branch::over(Box::new(server), cached));
        }
        // With an elevator, the block layer below has this limit (see `read`).
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
        HostShares { regions, names, .. }: &HostShares<'_>,
        DiskFileSite { site, aged }: DiskFileSite,
    ) -> Result<FileBacked, ConfigError> {
        let cache = match files.lies_in_pool() {
            true => Some(cache_above_pool(&self.below)?),
            false => self.below.cache()?,
        };
        let cache = cache.ok_or_else(|| ConfigError::new("memory", "found none"))?;
        let disk = |(index, name): (usize, &&str)| {
            let HostRegion { start, sectors } = regions.of(Port::of(index));
            GuestDisk {
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

/// Returns `layer` above `below`, or only `below`.
pub(crate) fn over(layer: Option<Box<dyn Node>>, below: Branch) -> Branch {
    match layer {
        Some(layer) => Branch::over(layer, below),
        None => below,
    }
}

/// Checks that each key belongs to the stage, to a block layer or to its elevator. The check is
/// here, so that the suggestion for an unknown key considers all of these keys.
fn check_keys(below: &Keys) -> Result<(), ConfigError> {
    if below.contains_key("elevator") {
        // The block layer knows the keys of its elevator.
        return Ok(());
    }
    let known = known_keys(&schema_of::<StageConfig>())
        .into_iter()
        .chain(known_keys(&schema_of::<HostKeys>()));
    check_known(below, &known.collect::<Vec<_>>())
}
