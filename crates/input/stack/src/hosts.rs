//! Several hosts above one array, `[[hosts]]`, and their common layers, `[shared]`.

use crate::StackError;
use crate::document::Document;
use crate::drive_tracks::{TrackUse, below_layer};
use crate::folder::Folder;
use crate::shared::{DiskFileSite, HostShares, SharedTable};
use crate::upper::{HostTerms, ProgramSite, UpperConfig};
use crate::workload::{kind_of, no_workload};
use crate::workloads::{TablePlace, WorkloadNumbers, Workloads, check_beside_others, check_name};
use fullstroke_contract::registry::{Keys, known_keys, read, schema_of};
use fullstroke_contract::{ConfigError, DatasetStart, Extent, Node, Port, Source};
use fullstroke_engine::Branch;
use fullstroke_host::{DeviceBelow, HostConfig};
use fullstroke_stage::{HostAddresses, HostRegion, HostRegions, RegionRequest};
use fullstroke_tracks::{Boundaries, UnknownTracks};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Keys of one of several hosts, beside its workloads and the keys of `[host]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsKeys {
    /// Name of the host in results: `workloads.NAME.response_ms.p99`, or
    /// `workloads.NAME-WORKLOAD...` for a host with several workloads.
    pub name: String,
    /// Start time of the host's workloads.
    #[serde(default)]
    pub start: Duration,
    /// Size of the host's part of the array. Default: an equal share of the space that hosts with a
    /// size leave. With `[shared.files]`, the size of the file that is the host's disk, and
    /// required.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// First address of the host's part of the array, as a size: "141GB". Default: the end of the
    /// previous host's part.
    #[serde(default)]
    pub at: Option<Bytes>,
    /// Weight of the host, for `fairness = "weighted"`.
    #[serde(default = "one")]
    pub weight: u32,
}

fn one() -> u32 {
    1
}

/// The hosts of a stack with several hosts.
pub(crate) struct Hosts {
    hosts: Vec<Host>,
    shared: SharedTable,
}

struct Host {
    keys: HostsKeys,
    layer: HostConfig,
    upper: UpperConfig,
    workloads: Workloads,
}

/// The nodes of one host above the array, fresh.
pub struct HostNodes {
    /// Source of requests.
    pub source: Box<dyn Source>,
    /// Layers on the way of the requests, from the top.
    pub layers: Vec<Box<dyn Node>>,
}

impl Hosts {
    /// Reads `[[hosts]]` and `[shared]`, if the document has hosts.
    ///
    /// # Errors
    /// Returns errors at the wrong key, also for a key that names a bad file.
    pub(crate) fn read(document: &Document, folder: &Folder) -> Result<Option<Hosts>, StackError> {
        let refuse =
            |key: &str, message: String| Err(document.error(ConfigError::new(key, message)));
        let items = match document.values().get("hosts") {
            None if document.values().contains_key("shared") => {
                return refuse(
                    "shared",
                    "[shared] needs several hosts: it lies between [[hosts]] and the volume".into(),
                );
            }
            None => return Ok(None),
            Some(Value::Array(items)) if !items.is_empty() => items,
            Some(_) => {
                return refuse(
                    "hosts",
                    "found [hosts]; expected [[hosts]] for each of several hosts, or [host] for a \
                     single host"
                        .into(),
                );
            }
        };
        if let Some(key) = ["workload", "workloads", "host"]
            .into_iter()
            .find(|&key| document.values().contains_key(key))
        {
            return refuse(
                key,
                "found beside [[hosts]]; move it into each of the [[hosts]]".into(),
            );
        }
        let shared = document
            .section("shared")
            .and_then(|table| SharedTable::read(&table));
        let shared = shared.map_err(|error| document.error(error.below("shared")))?;
        let mut hosts: Vec<Host> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = format!("hosts[{index}]");
            let host = read_host(
                item,
                &hosts,
                &TablePlace {
                    document,
                    path: &path,
                },
                folder,
            )?;
            hosts.push(host);
        }
        let hosts = Hosts { hosts, shared };
        // After all hosts are read, because the weights of the hosts belong to the rule of fairness
        // in [shared].
        let check = hosts.shared.check(&hosts.weights());
        check.map_err(|error| document.error(error.below("shared")))?;
        hosts
            .check_cooperation()
            .map_err(|error| document.error(error.below("shared")))?;
        hosts
            .check_places()
            .map_err(|error| document.error(error))?;
        // Last, because the names of workloads follow from names of hosts that were found to
        // differ.
        hosts.check_names(document)?;
        Ok(Some(hosts))
    }

    /// Checks that co-operative caching is possible: at least two hosts, and one of them with
    /// memory.
    fn check_cooperation(&self) -> Result<(), ConfigError> {
        let lenders = self
            .hosts
            .iter()
            .filter(|host| host.layer.has_memory())
            .count();
        // Without a second host nobody can ask, and without memory nobody can answer.
        if !self.shared.cooperates() || (lenders > 0 && self.hosts.len() > 1) {
            return Ok(());
        }
        let found = format!(
            "found {} hosts, {lenders} of them with memory",
            self.hosts.len()
        );
        let message = format!("{found}; expected two or more hosts, at least one with memory");
        Err(ConfigError::new("cooperation", message))
    }

    /// Checks the keys `at` and `size`. `at` needs parts (`addresses`) and a multiple of the sector
    /// size. A disk that is a file has a size but no place.
    fn check_places(&self) -> Result<(), ConfigError> {
        if self.shared.has_files() {
            let sizeless = self.hosts.iter().position(|host| host.keys.size.is_none());
            if let Some(index) = sizeless {
                let message = "missing; the host's disk is a file of [shared.files]: set its size, as size = \"20GB\"";
                return Err(ConfigError::new(format!("hosts[{index}].size"), message));
            }
        }
        let places = self
            .hosts
            .iter()
            .enumerate()
            .filter_map(|(index, host)| Some((index, host.keys.at?)));
        for (index, at) in places {
            // A key without effect is an error, because the user would trust a separation that does
            // not exist.
            let message = if self.shared.addresses() == HostAddresses::Whole {
                "has no effect if each host has all addresses; remove the key".to_owned()
            } else if self.shared.has_files() {
                "the host's disk is a file, placed by the file system of [shared.files]; remove the key".into()
            } else if !at.0.is_multiple_of(SECTOR_BYTES) {
                format!("found {at}; expected a multiple of {SECTOR_BYTES} bytes")
            } else {
                continue;
            };
            return Err(ConfigError::new(format!("hosts[{index}].at"), message));
        }
        Ok(())
    }

    /// Checks that the names of all workloads differ, also between hosts.
    fn check_names(&self, document: &Document) -> Result<(), StackError> {
        let mut seen = BTreeSet::new();
        for (index, host) in self.hosts.iter().enumerate() {
            // Results, `--set workloads.NAME.key` and metrics find a workload by its name alone.
            if let Some(twice) = host
                .names()
                .into_iter()
                .find(|name| !seen.insert(name.clone()))
            {
                let message = format!(
                    "a workload of this host is called `{twice}` in results, and so is another"
                );
                return Err(
                    document.error(ConfigError::new(format!("hosts[{index}].name"), message))
                );
            }
        }
        Ok(())
    }

    /// Returns the layers of each host, and the shared layer.
    pub(crate) fn layers(&self) -> Vec<&HostConfig> {
        self.hosts
            .iter()
            .map(|host| &host.layer)
            .chain([self.shared.layer()])
            .collect()
    }

    /// Returns the number of hosts.
    pub(crate) fn count(&self) -> usize {
        self.hosts.len()
    }

    fn weights(&self) -> Vec<u32> {
        self.hosts.iter().map(|host| host.keys.weight).collect()
    }

    fn regions(&self, capacity: Sectors) -> Result<HostRegions, ConfigError> {
        let sectors = |size: Bytes| Sectors(size.0 / SECTOR_BYTES);
        let wanted = |host: &Host| RegionRequest {
            at: host.keys.at.map(sectors),
            size: host.keys.size.map(sectors),
        };
        let wanted: Vec<RegionRequest> = self.hosts.iter().map(wanted).collect();
        // With files, the sum of the sizes counts. The file system checks whether the files fit.
        let of_files = || {
            wanted
                .iter()
                .filter_map(|part| part.size)
                .map(|size| size.0)
                .fold(0, u64::saturating_add)
        };
        let capacity = if self.shared.has_files() {
            Sectors(of_files())
        } else {
            capacity
        };
        match self.shared.addresses() {
            HostAddresses::Whole => Ok(HostRegions::whole(self.hosts.len(), capacity)),
            HostAddresses::Parts => HostRegions::parts(&wanted, capacity)
                .map_err(|(host, error)| error.below(&format!("hosts[{host}]"))),
        }
    }

    /// Returns true if the hosts' disks are files of a pool.
    pub(crate) fn lie_in_pool(&self) -> bool {
        self.shared.lies_in_pool()
    }

    /// Returns the objects of a pool at the start of a run; `None` if the hosts' disks are no files
    /// of a pool.
    ///
    /// # Errors
    /// If no space is left for a host, or if the files do not fit.
    pub(crate) fn dataset(&self, site: DiskFileSite) -> Result<Option<DatasetStart>, ConfigError> {
        if !self.shared.lies_in_pool() {
            return Ok(None);
        }
        let shares = self.shares(site.site.capacity)?;
        let dataset = self.shared.dataset(&shares, site);
        dataset.map_err(|error| error.below("shared"))
    }

    fn shares(&self, capacity: Sectors) -> Result<HostShares<'_>, ConfigError> {
        Ok(HostShares {
            regions: self.regions(capacity)?,
            names: self.hosts.iter().map(|host| &*host.keys.name).collect(),
            weights: self.weights(),
        })
    }

    /// Builds the shared layers above an array, fresh.
    ///
    /// # Errors
    /// If no space is left for a host, or if a layer does not fit the array.
    pub(crate) fn shared_over(
        &self,
        array: Branch,
        underneath: DeviceBelow,
        ground: DiskFileSite,
    ) -> Result<Branch, ConfigError> {
        let shares = self.shares(underneath.capacity)?;
        self.shared
            .over(array, underneath, shares, ground)
            .map_err(|error| error.below("shared"))
    }

    /// Builds the nodes of each host above the shared layers, fresh. `device` returns the tracks of
    /// the device that the hosts see.
    ///
    /// # Errors
    /// Errors of a workload or of a layer, at the key.
    pub(crate) fn nodes(
        &self,
        capacity: Sectors,
        seed: Seed,
        terms: HostTerms,
        document: &Document,
        device: &dyn Fn(TrackUse) -> Result<Arc<Boundaries>, UnknownTracks>,
    ) -> Result<Vec<HostNodes>, StackError> {
        let regions = self
            .regions(capacity)
            .map_err(|error| document.error(error))?;
        let mut numbers = WorkloadNumbers::default();
        let hosts = self.hosts.iter().enumerate();
        let nodes = hosts.map(|(index, host)| {
            let path = format!("hosts[{index}]");
            let place = TablePlace {
                document,
                path: &path,
            };
            let HostRegion { start, sectors } = regions.of(Port::of(index));
            let region = Extent { start, sectors };
            let tracks = |wanted| match self.shared.has_files() {
                // A file may lie anywhere on the device, so its addresses have no known tracks.
                true => Err(UnknownTracks::File),
                false => part_of(&*device(wanted)?, region),
            };
            // A host has a part of the array, which need not begin with a stripe.
            let ground = ProgramSite {
                capacity: sectors,
                stripe: None,
                tracks: &tracks,
                // By the name, so that a further host in front does not change the random numbers
                // of the others.
                seed: seed.of(&format!("host {}", host.keys.name)),
                start: host.keys.start,
                terms,
            };
            host.nodes(&ground, &mut numbers, &place)
        });
        nodes.collect()
    }

    /// Returns the shared block layer.
    pub(crate) fn shared_layer(&self) -> &HostConfig {
        self.shared.layer()
    }

    /// Returns the shared block layer for changes.
    pub(crate) fn shared_layer_mut(&mut self) -> &mut HostConfig {
        self.shared.layer_mut()
    }

    /// Returns the names of all processes, in order.
    pub(crate) fn process_names(&self) -> Vec<String> {
        self.hosts
            .iter()
            .flat_map(|host| host.workloads.process_names())
            .collect()
    }

    /// Returns the names of all workloads, by number.
    pub(crate) fn workload_names(&self) -> Vec<String> {
        self.hosts.iter().flat_map(Host::names).collect()
    }

    /// Changes the tables of the hosts in `values` for the digest of the stack.
    pub(crate) fn identify(&self, values: &mut Map<String, Value>) {
        let items = values
            .get_mut("hosts")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();
        for (host, item) in self.hosts.iter().zip(items) {
            item.as_object_mut()
                .into_iter()
                .for_each(|keys| host.workloads.identify(keys));
        }
    }
}

/// Returns the tracks of a host's region.
fn part_of(table: &Boundaries, region: Extent) -> Result<Arc<Boundaries>, UnknownTracks> {
    Ok(Arc::new(table.part(region)?))
}

impl Host {
    /// Builds the nodes of the host above the array on its `ground`, fresh.
    fn nodes(
        &self,
        ground: &ProgramSite<'_>,
        numbers: &mut WorkloadNumbers,
        place: &TablePlace<'_>,
    ) -> Result<HostNodes, StackError> {
        let capacity = ground.capacity;
        let programs =
            self.upper
                .programs(&self.workloads, (&self.layer, ""), ground, numbers, place)?;
        let layer = below_layer(&self.layer, || (ground.tracks)(TrackUse::Tracks));
        let layer = layer.and_then(|tracks| {
            self.layer.build(DeviceBelow {
                capacity,
                // A host never sees the drives: the shared layer stands between.
                drive: false,
                stripes: None,
                tracks,
            })
        });
        let layer = layer.map_err(|error| place.error(error))?;
        // The memory for pushed blocks lies below the page cache, so a miss of the page cache looks
        // there before the request goes down.
        let pushed = self.layer.pushed(capacity);
        let pushed = pushed.map_err(|error| place.error(error))?;
        let layers = pushed.into_iter().chain(layer);
        // Programs bring the page cache with their files, so no memory is added.
        if let Some(programs) = programs {
            return Ok(HostNodes {
                source: Box::new(programs.called(&self.keys.name)),
                layers: layers.collect(),
            });
        }
        let (seed, start) = (ground.seed, ground.start);
        let source = self
            .workloads
            .of_host(capacity, seed, start, numbers, place)?;
        let memory = self.layer.memory(capacity);
        let memory = memory.map_err(|error| place.error(error))?;
        Ok(HostNodes {
            source: Box::new(source),
            layers: memory.into_iter().chain(layers).collect(),
        })
    }

    fn names(&self) -> Vec<String> {
        match self.workloads.names() {
            names if names.is_empty() => vec![self.keys.name.clone()],
            names => names
                .into_iter()
                .map(|name| format!("{}-{name}", self.keys.name))
                .collect(),
        }
    }
}

fn read_host(
    item: &Value,
    before: &[Host],
    place: &TablePlace<'_>,
    folder: &Folder,
) -> Result<Host, StackError> {
    let Value::Object(table) = item else {
        return Err(place.error(ConfigError::new(
            "",
            format!("found {item}; expected a table"),
        )));
    };
    let workloads = Workloads::read(table, place, folder)?;
    if let Workloads::Clients = workloads {
        return Err(place.error(no_workload().below("workload")));
    }
    if let Some(Value::Object(keys)) = table.get("workload") {
        let beside = kind_of(keys).and_then(check_beside_others);
        beside.map_err(|error| place.error(error.below("workload")))?;
    }
    let own = known_keys(&schema_of::<HostsKeys>());
    // The keys of a host and of its block layer stand in one table, and each reader refuses keys
    // that it does not know.
    let of_workloads = |key: &str| matches!(key, "workload" | "workloads");
    let rest = table.iter().filter(|(key, _)| !of_workloads(key));
    let (of_host, of_layer): (Keys, Keys) = rest
        .map(|(key, value)| (key.clone(), value.clone()))
        .partition(|(key, _)| own.contains(key));
    let keys: HostsKeys = read(&of_host).map_err(|error| place.error(error))?;
    check_name(&keys.name).map_err(|error| place.error(error))?;
    let refuse = |key: &str, message: &str| Err(place.error(ConfigError::new(key, message)));
    if before.iter().any(|other| other.keys.name == keys.name) {
        return refuse(
            "name",
            &format!("found `{}` twice; each host needs its own name", keys.name),
        );
    }
    if keys.weight == 0 {
        return refuse("weight", "found 0; expected at least 1");
    }
    if of_layer.contains_key("members") {
        return refuse(
            "members",
            "the members of the array do not belong to this host; the shared layer is between",
        );
    }
    let layer = HostConfig::read(&of_layer)
        .map_err(|error| place.error(error))?
        .called(&keys.name);
    let upper = UpperConfig::read(&layer).map_err(|error| place.error(error))?;
    if upper.lies_in_pool() {
        let message = "found \"zfs\"; several hosts share volumes of a pool, not one dataset. Expected another file system, or one [host]";
        return Err(place.error(ConfigError::new("files.kind", message)));
    }
    Ok(Host {
        keys,
        layer,
        upper,
        workloads,
    })
}
