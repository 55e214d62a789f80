//! Builds layers and sources from a checked stack.

use crate::StackError;
use crate::config::{Stack, digest};
use crate::drive_tracks::{TrackUse, below_layer};
use crate::hosts::{HostNodes, Hosts};
use crate::link::LinkSpec;
use crate::rebuild::{Members, RebuiltMember};
use crate::shared::{DiskFileSite, over};
use crate::spec::VolumeSpec;
use crate::stripes::Striped;
use crate::upper::{HostTerms, ProgramSite, stripe_of};
use crate::workloads::{TablePlace, WorkloadNumbers, lasts};
use crate::zoned;
use fullstroke_contract::registry;
use fullstroke_contract::{ConfigError, DatasetStart, Node, Source, Stripes, TrackTable};
use fullstroke_controller::Controller;
use fullstroke_drive::DriveModel;
use fullstroke_drive::spin_down::least_idle;
use fullstroke_engine::{Branch, Engine, Graph};
use fullstroke_files::FileSystem;
use fullstroke_host::{DeviceBelow, HostConfig};
use fullstroke_opportunity::OpportunitySite;
use fullstroke_opportunity::UnknownArm;
use fullstroke_pool::{Pool, PoolCapacity, PoolSettings};
use fullstroke_smart::SmartArray;
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Time};
use fullstroke_vfs::Vfs;
use fullstroke_volume::{Coordination, DmZoned, Layout, MdVolume, Shape, Surroundings, Volume};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// A stack that is ready to run once.
pub struct PreparedRun {
    /// The nodes of each host: the source of requests, and the layers that the requests pass.
    pub hosts: Vec<HostNodes>,
    /// The layers below all hosts, at time 0.
    pub layers: Branch,
    /// Summary of the volume.
    pub summary: VolumeSummary,
}

/// Size and redundancy of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeSummary {
    /// The layouts, from the top: `raid0 of 2 x raid5 of 4`.
    pub layout: String,
    /// Number of drives.
    pub drives: usize,
    /// Number of addressable bytes.
    #[serde(rename = "usable_bytes")]
    pub usable: Bytes,
    /// Number of bytes of all drives together.
    #[serde(rename = "raw_bytes")]
    pub raw: Bytes,
    /// Number of further drives that may fail without data loss, in any combination.
    pub failures_survived: u32,
    /// Capacity of a pool as ZFS shows it; `None` if the volume is no pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolCapacity>,
}

/// Checks that queue lengths are both sent and used. If the volume sends queue lengths to the
/// members, a layer of the members must weigh them, and the other way round.
fn check_coordination(
    told: Option<Coordination>,
    members: Option<&HostConfig>,
) -> Result<(), ConfigError> {
    let weighed = members.is_some_and(HostConfig::weighs_queues);
    match told {
        Some(_) if !weighed => {
            let message = "no elevator uses the queue lengths; give [host.members] an elevator with queue_weight, such as cfq, or remove this key";
            Err(ConfigError::new("coordinate", message))
        }
        // An elevator with `queue_weight` and without hints would weigh zeros and do the same as
        // without the key.
        None if weighed => {
            let message = "host.members.queue_weight needs this key; set \"longest\" or \"shortest\", or remove queue_weight";
            Err(ConfigError::new("coordinate", message))
        }
        _ => Ok(()),
    }
}

/// The surroundings of a volume's layers.
#[derive(Clone, Copy)]
struct VolumeContext<'a> {
    /// The block layer of the members.
    host: Option<&'a HostConfig>,
    link: Option<&'a LinkSpec>,
    arrays: Arrays,
    /// The objects of a file system in a pool; `None` for a volume.
    files: Option<&'a DatasetStart>,
}

/// The layers of arrays that are like md.
#[derive(Clone, Copy)]
enum Arrays {
    /// The ideal planner, because a store carries out the same plans on bytes.
    Planned,
    /// md's stripes.
    Run(Surroundings),
}

/// Keys of layouts that do not change the place of data.
const RUNNING: [&str; 10] = [
    "dummy_parity_reads",
    "failed",
    "kernel",
    "largest_member_io",
    "like",
    "parity_updates",
    "preread_bypass_threshold",
    "read_policy",
    "rebuild_rate",
    "stripe_cache",
];

impl PreparedRun {
    /// Builds the run of a stack. File systems are aged only for a real run (`aged`), not for a
    /// check.
    pub(crate) fn new(stack: &Stack, aged: bool) -> Result<PreparedRun, StackError> {
        // The summary comes first: its errors concern the volume alone, with the line of the wrong
        // key.
        let summary = stack.summary()?;
        let fail = |error: ConfigError| stack.document.error(error);
        let layers = stack.layers(aged)?;
        let capacity = stack.volume.capacity().map_err(fail)?;
        let terms = HostTerms {
            counted_from: Time::ZERO + stack.measurement().warm_up,
            aged,
        };
        // Several hosts have sources of their own; a single host has programs or a workload.
        let hosts = match &stack.hosts {
            Some(hosts) => {
                let device = |wanted| stack.tracks(wanted);
                hosts.nodes(capacity, stack.seed(), terms, &stack.document, &device)?
            }
            None => {
                let source = match stack.programs(terms)? {
                    Some(programs) => Box::new(programs) as Box<dyn Source>,
                    None => stack
                        .workloads
                        .source(capacity, stack.seed(), &stack.document)?,
                };
                vec![HostNodes {
                    source,
                    layers: Vec::new(),
                }]
            }
        };
        Ok(PreparedRun {
            hosts,
            layers,
            summary,
        })
    }

    /// Returns an engine for this run.
    pub fn engine(self) -> Engine {
        let nodes = |host: HostNodes| {
            let source: Box<dyn Node> = host.source;
            std::iter::once(source).chain(host.layers).collect()
        };
        Engine::of(Graph::below_all(
            self.hosts.into_iter().map(nodes).collect(),
            self.layers,
        ))
    }
}

/// The sender of requests above the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestSender {
    /// The workloads of the stack file.
    Workloads,
    /// Clients of a server.
    Clients,
}

/// A stack that is ready to be served to clients.
pub struct PreparedService {
    /// The layers, at time 0.
    pub graph: Graph,
    /// Nesting of the volume, for the store of its bytes.
    pub shape: Shape,
    /// Summary of the volume.
    pub summary: VolumeSummary,
}

/// The files of a stack whose host runs programs.
pub struct ProgramFiles {
    /// The file system at the start of the programs: aged, and with the programs' files.
    pub system: Box<dyn FileSystem>,
    /// Tracks of the device below.
    pub tracks: Arc<Boundaries>,
    /// Capacity of the device.
    pub capacity: Sectors,
}

impl Stack {
    /// Returns the file system of the only host.
    ///
    /// # Errors
    /// If there are several hosts, a host without files, or a device without tracks.
    pub fn files(&self) -> Result<ProgramFiles, StackError> {
        let refuse = |key: &str, message: &str| self.document.error(ConfigError::new(key, message));
        if self.hosts.is_some() {
            return Err(refuse(
                "hosts",
                "each of several hosts has a file system; expected one [host]",
            ));
        }
        let tracks = self
            .tracks(TrackUse::Tracks)
            .map_err(|error| refuse("volume", &error.to_string()))?;
        let terms = HostTerms {
            counted_from: Time::ZERO,
            aged: true,
        };
        let programs = self.programs(terms)?;
        let programs = programs.ok_or_else(|| {
            refuse(
                "host.files",
                "the stack has no files, because its workload is not a program",
            )
        })?;
        let capacity = self
            .volume
            .capacity()
            .map_err(|error| self.document.error(error))?;
        Ok(ProgramFiles {
            system: programs.into_file_system(),
            tracks,
            capacity,
        })
    }

    /// Returns an engine that runs `source` directly below the page cache: above the host's block
    /// layer or, without one, above the next layer. All layers are fresh.
    ///
    /// # Errors
    /// As for [`build`](Stack::build).
    pub fn below_files(&self, source: Box<dyn Source>) -> Result<Engine, StackError> {
        let source: Box<dyn Node> = source;
        Ok(Engine::of(Graph::below_all(
            vec![vec![source]],
            self.layers(true)?,
        )))
    }

    /// Returns fresh layers at time 0, and the shape of the bytes below. All members count as
    /// filled, because only the stored bytes tell the members to fill.
    ///
    /// # Errors
    /// Errors of the layout, with the line of the key.
    pub fn serve(&self) -> Result<PreparedService, StackError> {
        if self.hosts.is_some() {
            let message =
                "several hosts run their own workloads; a served stack has clients instead";
            return Err(self.document.error(ConfigError::new("hosts", message)));
        }
        if self.host.files().is_some() {
            let message =
                "clients have their own file systems; remove this table from a served stack";
            return Err(self.document.error(ConfigError::new("host.files", message)));
        }
        if self.host.has_memory() {
            let message =
                "clients have their own page caches; remove this table from a served stack";
            return Err(self
                .document
                .error(ConfigError::new("host.memory", message)));
        }
        self.opportunities
            .check_served()
            .map_err(|error| self.document.error(error))?;
        if self.host.keeps_pushed() {
            let message = "clients have their own caches; remove this table from a served stack";
            return Err(self
                .document
                .error(ConfigError::new("host.pushed", message)));
        }
        if self.cache.is_some() {
            let message = "a served stack has no cache in front yet; remove this table";
            return Err(self.document.error(ConfigError::new("cache", message)));
        }
        if let Some(error) = self.volume.unservable() {
            return Err(self.document.error(error));
        }
        self.volume
            .check_no_pool()
            .map_err(|error| self.document.error(error))?;
        let summary = self.summary()?;
        let layers = self.layers_over(
            &self.volume.filled().slowable(),
            RequestSender::Clients,
            true,
        )?;
        let shape = self
            .volume
            .shape()
            .map_err(|error| self.document.error(error))?;
        Ok(PreparedService {
            graph: Graph::new(layers),
            shape,
            summary,
        })
    }

    /// Returns the map of the volume's addresses to its drives, without layers.
    ///
    /// # Errors
    /// Errors of the layout, with the line of the key.
    pub fn shape(&self) -> Result<Shape, StackError> {
        self.volume
            .shape()
            .map_err(|error| self.document.error(error))
    }

    /// Returns the file's keys of layers between workload and volume, or between volume and drives.
    pub fn layers_beside_volume(&self) -> Vec<&'static str> {
        let keys = [
            "host",
            "hosts",
            "shared",
            "opportunities",
            "cache",
            "controller",
            "link",
        ];
        keys.into_iter()
            .filter(|key| self.document.values().contains_key(*key))
            .collect()
    }

    /// Returns true if the volume writes a bitmap before writes to clean regions. `shape` is the
    /// shape of the volume.
    pub fn has_bitmap(&self, shape: &Shape) -> bool {
        match (&self.volume, shape) {
            (
                VolumeSpec::Volume {
                    records: Some(records),
                    ..
                },
                Shape::Volume { layout, .. },
            ) => records.has_bitmap(layout.as_ref()),
            _ => false,
        }
    }

    /// Returns the models of the drives, in the order of the tree.
    pub fn drives(&self) -> Vec<&DriveModel> {
        self.volume.drives()
    }

    /// Returns true if a cache on a flash device stands in front of the volume.
    pub fn has_cache(&self) -> bool {
        self.cache.is_some()
    }

    /// Returns true if the volume contains an array with gears, which stops platters.
    pub fn has_gears(&self) -> bool {
        let volume = self
            .document
            .values()
            .get("volume")
            .and_then(Value::as_object);
        volume.is_some_and(crate::overrides::gears_within)
    }

    /// Returns sixteen hexadecimal digits for the places of the volume's bytes: layouts, their
    /// keys, capacities. Two volumes with different places have different digits. Failed members
    /// and the choice of copies for reads do not count.
    pub fn volume_digest(&self) -> String {
        digest(&self.volume.identity())
    }

    /// Builds the layers, from the host down. File systems are aged only for a real run (`aged`),
    /// not for a check.
    pub(crate) fn layers(&self, aged: bool) -> Result<Branch, StackError> {
        self.layers_over(&self.volume, RequestSender::Workloads, aged)
    }

    /// Builds the layers for clients, which have hosts of their own.
    pub(crate) fn layers_for_clients(&self) -> Result<Branch, StackError> {
        self.layers_over(&self.volume, RequestSender::Clients, true)
    }

    /// Returns the members that are rebuilt from the start of a run.
    ///
    /// # Errors
    /// Errors of the layout, with the line of the key.
    pub fn rebuilt_members(&self) -> Result<Vec<RebuiltMember>, StackError> {
        let mut all = Vec::new();
        // A cache in front is a volume of its own: the array is its member 0.
        let path: &[usize] = match &self.cache {
            Some(_) => &[0],
            None => &[],
        };
        let added = self.volume.add_rebuilt(path, &mut all);
        added
            .map(|()| all)
            .map_err(|error| self.document.error(error))
    }

    /// Returns the share of scattered records if the pool in the table `volume` has ordered and
    /// scattered records for a scrub, and otherwise `None`.
    ///
    /// # Errors
    /// If the pool cannot be built.
    pub fn scrubbed_scattered(&self) -> Result<Option<f64>, StackError> {
        if !self.volume.is_pool() {
            return Ok(None);
        }
        let settings = self.volume.pool_settings();
        settings
            .map(|pool| pool.scattered_beside_ordered())
            .map_err(|error| self.document.error(error))
    }

    fn layers_over(
        &self,
        volume: &VolumeSpec,
        above: RequestSender,
        aged: bool,
    ) -> Result<Branch, StackError> {
        let files = self.files_in_pool()?;
        let layers = || -> Result<Branch, ConfigError> {
            // Before the volume is built, because the layers of `[host.members]` are built inside
            // the volume, and their errors would name the wrong cause.
            self.check_members_of_host()?;
            self.check_hint_reader(above)?;
            let around = VolumeContext {
                host: self.host.members(),
                link: self.link.as_ref(),
                files: files.as_ref(),
                arrays: match above {
                    // The server carries the plans of the layouts out on bytes, and md's stripes
                    // have no plans.
                    RequestSender::Clients => Arrays::Planned,
                    RequestSender::Workloads => Arrays::Run(Surroundings {
                        direct: !self.has_page_cache(),
                        // Without a table for the members, the members have Linux's default,
                        // mq-deadline, as far as md's own requests are concerned.
                        elevators: self.host.members().is_none_or(HostConfig::joins),
                    }),
                },
            };
            let volume = volume.node(around)?;
            let controller = self
                .controller()?
                .map(|controller| Box::new(controller) as Box<dyn Node>);
            let array = over(controller, volume);
            // bcache and device-mapper are block devices above the array (`drivers/md` of Linux),
            // so the cache stands above the controller, too.
            let array = match &self.cache {
                Some(cache) => cache.before(array, self.volume.capacity()?, self.seed())?,
                None => array,
            };
            let drive = self.lone_drive(&array);
            // Above cache and controller, because an opportunity speaks with hosts in addresses
            // that hosts know.
            let array = self
                .opportunities
                .over(array, || self.watched(above, drive))?;
            let tracks = |layer: &HostConfig| below_layer(layer, || self.tracks(TrackUse::Tracks));
            let underneath = |layer: &HostConfig| -> Result<DeviceBelow, ConfigError> {
                let below = self.volume.underneath(tracks(layer)?)?;
                Ok(DeviceBelow {
                    // A controller or a cache hides the arm of the drive from the elevator of the
                    // host.
                    drive: below.drive && self.controller.is_none() && self.cache.is_none(),
                    ..below
                })
            };
            if let Some(hosts) = &self.hosts {
                let underneath =
                    underneath(hosts.shared_layer()).map_err(|error| error.below("shared"))?;
                return hosts.shared_over(array, underneath, self.site_of_files(aged)?);
            }
            let in_host = |error: ConfigError| error.below("host");
            let underneath = underneath(&self.host).map_err(in_host)?;
            let block = over(self.host.build(underneath).map_err(in_host)?, array);
            // The memory for pushed blocks stands above the elevator, because a hit there must cost
            // no request.
            let block = over(
                self.host.pushed(self.volume.capacity()?).map_err(in_host)?,
                block,
            );
            if self.upper.has_files() {
                // Here the page cache holds pages of files, so `upper` builds it together with the
                // files.
                return Ok(block);
            }
            let memory = self.host.memory(self.volume.capacity()?).map_err(in_host)?;
            Ok(over(memory, block))
        };
        layers().map_err(|error| self.document.error(error))
    }

    /// Returns the place of the files of several hosts.
    fn site_of_files(&self, aged: bool) -> Result<DiskFileSite, ConfigError> {
        let site = fullstroke_files::FileSystemSite {
            capacity: self.volume.capacity()?,
            // A seed of its own, so that further hosts do not move the files.
            seed: self.seed().of("shared files"),
            stripe: self.stripe()?,
            tracks: None,
        };
        Ok(DiskFileSite { site, aged })
    }

    /// Returns the objects of the file system at the start of a run, if the file system lies in a pool.
    ///
    /// # Errors
    /// If the volume is no pool, or if a layer stands between the files and the pool.
    fn files_in_pool(&self) -> Result<Option<DatasetStart>, StackError> {
        let shared = self.hosts.as_ref().filter(|hosts| hosts.lie_in_pool());
        if shared.is_none() && !self.upper.lies_in_pool() {
            return Ok(None);
        }
        let (table, layer) = match shared {
            Some(hosts) => ("shared", hosts.shared_layer()),
            None => ("host", &self.host),
        };
        let refuse = |key: &str, message: &str| self.document.error(ConfigError::new(key, message));
        if !self.volume.is_pool() {
            let message = "found \"zfs\", and the volume is no pool; expected another file system, such as ext4, or a layout of a pool in [volume]: mirror, raidz1 to raidz3, draid1 to draid3";
            return Err(refuse(&format!("{table}.files.kind"), message));
        }
        let between = [
            (
                self.cache.is_some(),
                "cache".to_owned(),
                "ZFS has caches of its own: give caches or special in [volume], and remove this table",
            ),
            (
                self.controller.is_some(),
                "controller".to_owned(),
                "files in a pool have no controller above the pool; remove this table",
            ),
            (
                layer.has_elevator(),
                format!("{table}.elevator"),
                "files in a pool pass no elevator: the pool has a queue for each drive. Remove this key",
            ),
            (
                layer.keeps_pushed(),
                format!("{table}.pushed"),
                "files in a pool have no addresses on drives; remove this table",
            ),
        ];
        if let Some((_, key, message)) = between.into_iter().find(|(stands, ..)| *stands) {
            return Err(refuse(&key, message));
        }
        if let Some(hosts) = shared {
            let dataset = self
                .site_of_files(false)
                .and_then(|site| hosts.dataset(site));
            return dataset.map_err(|error| self.document.error(error));
        }
        let terms = HostTerms {
            counted_from: Time::ZERO,
            aged: false,
        };
        Ok(self.programs(terms)?.map(|programs| programs.dataset()))
    }

    /// Returns the stripes for which a file system above the volume is made.
    fn stripe(&self) -> Result<Option<fullstroke_files::Stripe>, ConfigError> {
        // A controller hides the stripes.
        if self.controller.is_some() || self.volume.is_drive() {
            return Ok(None);
        }
        Ok(self
            .volume
            .layout()?
            .geometry()
            .stripe()
            .and_then(stripe_of))
    }

    /// Builds the programs of the only host, above its files.
    fn programs(&self, terms: HostTerms) -> Result<Option<Vfs>, StackError> {
        let fail = |error: ConfigError| self.document.error(error);
        let ground = ProgramSite {
            capacity: self.volume.capacity().map_err(fail)?,
            stripe: self.stripe().map_err(fail)?,
            tracks: &|wanted| self.tracks(wanted),
            seed: self.seed(),
            start: Duration::ZERO,
            terms,
        };
        let place = TablePlace {
            document: &self.document,
            path: "",
        };
        let host = (&self.host, "host");
        self.upper.programs(
            &self.workloads,
            host,
            &ground,
            &mut WorkloadNumbers::default(),
            &place,
        )
    }

    /// Checks that the host can have a layer above each drive.
    fn check_members_of_host(&self) -> Result<(), ConfigError> {
        if self.host.weighs_queues() {
            let message =
                "the layer above does not know the queue lengths; move the key to [host.members]";
            return Err(ConfigError::new("host.queue_weight", message));
        }
        if self.host.members().is_none() {
            return Ok(());
        }
        // Each case is a structure in which no layer fits between the volume and one drive.
        let message = if self.volume.is_drive() {
            "the volume is a single drive and has no members; give the keys to [host] itself"
        } else if self.controller.is_some() {
            "the members are behind a controller, which the host cannot bypass; remove [controller] or these keys"
        } else if self.link.is_some() {
            "these layers would be between the link and the drives; remove [link] or these keys"
        } else {
            return Ok(());
        };
        Err(ConfigError::new("host.members", message))
    }

    /// True if a page cache is above the volume.
    fn has_page_cache(&self) -> bool {
        let mut layers = self.layers_of_hosts().into_iter();
        layers.any(|layer| layer.has_memory() || layer.files().is_some())
    }

    /// Checks that a layer reacts to the signals of the opportunities.
    fn check_hint_reader(&self, above: RequestSender) -> Result<(), ConfigError> {
        // Clients may have caches that the stack file does not show, so a message may have a
        // reader.
        if above == RequestSender::Clients {
            return Ok(());
        }
        let layers = self.layers_of_hosts();
        let memory = layers.iter().any(|layer| layer.has_memory());
        self.opportunities
            .check_heard(memory, layers.iter().any(|layer| layer.keeps_pushed()))
    }

    /// Returns the surroundings of the opportunities: the array below and the hosts above.
    fn watched(
        &self,
        above: RequestSender,
        drive: Result<Arc<dyn TrackTable>, UnknownArm>,
    ) -> Result<OpportunitySite, ConfigError> {
        let sizes = self
            .layers_of_hosts()
            .into_iter()
            .map(HostConfig::memory_size);
        let sizes = sizes.collect::<Result<Vec<Bytes>, ConfigError>>()?;
        let page_cache = match above {
            RequestSender::Workloads => sizes.into_iter().max().unwrap_or_default(),
            // The memory of clients is unknown.
            RequestSender::Clients => Bytes(u64::MAX),
        };
        Ok(OpportunitySite {
            tracks: self.tracks(TrackUse::Tracks),
            page_cache,
            hosts: self.hosts.as_ref().map_or(1, Hosts::count),
            // The shortest time of all drives, because a pull after the first stop would wake the
            // drive.
            stop: self.volume.least_idle()?,
            clean: self.volume.cleans_after(),
            lasts: match above {
                // Clients come and go, and no end of the run is known.
                RequestSender::Workloads => lasts(&self.document),
                RequestSender::Clients => None,
            },
            unverifiable: self.unverifiable()?,
            members: self.scrubbed()?,
            drive,
        })
    }

    /// Returns the address map of an array that is one drive with one arm. Errors: the arm is
    /// behind a controller, or there are several arms.
    fn lone_drive(&self, array: &Branch) -> Result<Arc<dyn TrackTable>, UnknownArm> {
        if self.controller.is_some() {
            return Err(UnknownArm::BehindController);
        }
        if self.cache.is_some() {
            return Err(UnknownArm::Several);
        }
        let one_arm = self
            .volume
            .as_drive()
            .is_none_or(|model| model.config().actuators == 1);
        // Several arms have several positions, and an opportunity that follows one arm needs a
        // single one.
        let tracks = array.tracks().filter(|_| one_arm);
        tracks.ok_or(UnknownArm::Several)
    }

    /// Returns the reason why written data cannot be read again and compared; `None` if
    /// verification is possible.
    fn unverifiable(&self) -> Result<Option<&'static str>, ConfigError> {
        Ok(if self.cache.is_some() {
            Some("the cache in front would answer for the medium; leave [cache] out")
        } else if self.controller.is_some() {
            Some("the controller's memory would answer for the medium; leave [controller] out")
        } else if self.host.members().is_some() {
            Some(
                "requests are merged above each drive, including verifying requests; remove [host.members]",
            )
        // More than one failure is fatal only with redundancy. A read then reaches one copy, and a
        // bad write to the other copy or to parity stays unseen.
        } else if self.volume.fatal_failures()? > 1 {
            Some("copies and parity would not be read again; expected a layout without redundancy")
        } else {
            None
        })
    }

    /// Returns the used length of the longest drive. The error is the reason why a scrub cannot
    /// read the drives one by one from above.
    fn scrubbed(&self) -> Result<Result<Sectors, &'static str>, ConfigError> {
        Ok(if self.cache.is_some() {
            Err("the cache in front would answer for the media; leave [cache] out")
        } else if self.controller.is_some() {
            Err("the controller's memory would answer for the media; leave [controller] out")
        } else if self.host.members().is_some() {
            Err(
                "requests are merged above each drive, including verifying requests; remove [host.members]",
            )
        } else if self.volume.path_of(VolumeSpec::is_zoned).is_some() {
            Err(
                "dm-zoned has addresses of its own, and the drive below has others; expected another layout",
            )
        } else if self.volume.path_of_pool().is_some() {
            Err("a pool scrubs blocks, not drives; expected another layout")
        } else if self.volume.has_xor() {
            Err(
                "disks that compute parity among themselves take reads of data only; expected another layout",
            )
        } else {
            Ok(self.volume.depth()?)
        })
    }

    fn layers_of_hosts(&self) -> Vec<&HostConfig> {
        match &self.hosts {
            Some(hosts) => hosts.layers(),
            None => vec![&self.host],
        }
    }

    /// Returns the controller between host and volume, if there is one.
    fn controller(&self) -> Result<Option<Controller>, ConfigError> {
        let Some(config) = &self.controller else {
            return Ok(None);
        };
        Controller::new(config, self.volume.capacity()?, self.volume.full_stripe()?)
            .map(Some)
            .map_err(|error| error.below("controller"))
    }

    /// Returns the summary of the volume.
    ///
    /// # Errors
    /// Errors of the layout, with the line of the key.
    pub fn summary(&self) -> Result<VolumeSummary, StackError> {
        let summary = || -> Result<VolumeSummary, ConfigError> {
            Ok(VolumeSummary {
                layout: self.volume.describe(),
                drives: self.volume.drives().len(),
                usable: self.volume.capacity()?.bytes(),
                raw: self
                    .volume
                    .drives()
                    .iter()
                    .map(|model| model.config().capacity_sectors)
                    .fold(Sectors::ZERO, |a, b| a + b)
                    .bytes(),
                // The layouts count the smallest number of failures that loses data.
                failures_survived: self.volume.fatal_failures()? - 1,
                pool: match self.volume.is_pool() {
                    true => Some(self.volume.pool_settings()?.capacity),
                    false => None,
                },
            })
        };
        summary().map_err(|error| self.document.error(error))
    }
}

impl VolumeSpec {
    /// Builds the layer and its members. `host` is the host's layer above each drive, if there is
    /// one. `link` is the link between a volume and its drives, if there is one.
    fn node(&self, around: VolumeContext<'_>) -> Result<Branch, ConfigError> {
        let VolumeContext {
            host, link, arrays, ..
        } = around;
        match self {
            VolumeSpec::Drive(model, _) => {
                let drive = model.branch()?;
                let Some(host) = host else { return Ok(drive) };
                let build = || {
                    let tracks = below_layer(host, || self.tracks())?;
                    host.build(self.underneath(tracks)?)
                };
                let above = build().map_err(|error| error.below("host.members"))?;
                Ok(over(above, drive))
            }
            // A JBOD of one member passes every request on, so it is a node only as the upper end
            // of a link.
            VolumeSpec::Volume { members, .. } if self.is_only_its_member() => {
                self.check_late()?;
                let layout = self.layout()?;
                let member = members[0].node(around)?;
                Ok(match link.filter(|_| self.has_drives()) {
                    Some(link) => {
                        Branch::over(Box::new(Volume::new(layout)), member).behind(link.node(1)?)
                    }
                    None => member,
                })
            }
            VolumeSpec::Volume { .. } if self.is_xor() => {
                let tracks = self.drives().into_iter().map(DriveModel::tracks).collect();
                Ok(Branch::array(Box::new(self.xor(host, link)?), tracks))
            }
            VolumeSpec::Volume { .. } if self.is_zoned() || self.is_pool() => {
                self.moving_node(around)
            }
            VolumeSpec::Volume {
                members,
                rebuild,
                coordination,
                records,
                journal,
                path,
                ..
            } => {
                check_coordination(*coordination, host).map_err(|error| error.below(path))?;
                let layer = Volume::new(self.layout()?).coordinating(*coordination);
                let layer = rebuild.of_volume(layer);
                let layer: Box<dyn Node> = match arrays {
                    Arrays::Planned => Box::new(layer),
                    Arrays::Run(around) => MdVolume::over(layer, around, *records),
                };
                let layer = self.watching(layer)?;
                let mut below = members
                    .iter()
                    .map(|member| member.node(around))
                    .collect::<Result<Vec<_>, _>>()?;
                if let Some(journal) = journal {
                    below.push(self.journal_node(journal, around)?);
                }
                Ok(match link {
                    Some(link) if self.has_drives() => {
                        self.check_all_are_drives()?;
                        Branch::volume(layer, below).behind(link.node(members.len())?)
                    }
                    _ => Branch::volume(layer, below),
                })
            }
        }
    }

    /// Builds the journal device of an array.
    fn journal_node(
        &self,
        model: &DriveModel,
        around: VolumeContext<'_>,
    ) -> Result<Branch, ConfigError> {
        if around.link.is_some() && self.has_drives() {
            let message =
                "the journal device would be behind the link of the members; remove [link]";
            return Err(ConfigError::new("journal", message));
        }
        model.branch().map_err(|error| error.below("journal"))
    }

    /// Builds the layer and the members of a volume that moves its data: a pool, or dm-zoned.
    fn moving_node(&self, around: VolumeContext<'_>) -> Result<Branch, ConfigError> {
        let VolumeSpec::Volume { members, .. } = self else {
            unreachable!("a drive has no layout")
        };
        let VolumeContext {
            host, link, files, ..
        } = around;
        let layer: Box<dyn Node> = match self.is_zoned() {
            true => Box::new(self.zoned(host)?),
            false => Box::new(self.pool(host, files)?),
        };
        let below = members.iter().map(|member| member.node(around));
        let below = below.collect::<Result<Vec<_>, _>>()?;
        let branch = Branch::volume(layer, below);
        Ok(match link.filter(|_| self.has_drives()) {
            Some(link) => {
                self.check_all_are_drives()?;
                branch.behind(link.node(members.len())?)
            }
            None => branch,
        })
    }

    /// Checks that the volume can have its policy against slow members.
    fn check_late(&self) -> Result<(), ConfigError> {
        match self {
            VolumeSpec::Volume {
                late: Some(late),
                keys,
                path,
                ..
            } => late
                .check(&*self.layout()?, keys.get("like"))
                .map_err(|error| error.below(path)),
            _ => Ok(()),
        }
    }

    /// Returns the volume's layer with its policy against slow members around it, if there is one.
    fn watching(&self, layer: Box<dyn Node>) -> Result<Box<dyn Node>, ConfigError> {
        self.check_late()?;
        match self {
            VolumeSpec::Volume {
                late: Some(late),
                rebuild,
                path,
                ..
            } => late
                .around(layer, self.layout()?, rebuild.members())
                .map_err(|error| error.below(path)),
            _ => Ok(layer),
        }
    }

    /// Returns the error of a key that a served volume cannot have: the bytes of a served volume
    /// follow the plans of the layout alone.
    fn unservable(&self) -> Option<ConfigError> {
        let VolumeSpec::Volume {
            members,
            late,
            journal,
            path,
            ..
        } = self
        else {
            return None;
        };
        let error = match late {
            _ if journal.is_some() => Some(ConfigError::new(
                "journal",
                "a served volume has the journal of its store; remove this key",
            )),
            Some(late) if late.is_given() => Some(ConfigError::new(
                "late",
                "a served volume waits for slow members; remove this table",
            )),
            Some(_) => Some(ConfigError::new(
                "slow",
                "a served volume has no unreadable sectors; remove erc",
            )),
            None => None,
        };
        error
            .map(|error| error.below(path))
            .or_else(|| members.iter().find_map(VolumeSpec::unservable))
    }

    /// Returns true if at least one member is a drive.
    fn has_drives(&self) -> bool {
        match self {
            VolumeSpec::Drive(..) => false,
            VolumeSpec::Volume { members, .. } => members
                .iter()
                .any(|member| matches!(member, VolumeSpec::Drive(..))),
        }
    }

    /// Checks that all members are drives, because a link joins drives only.
    fn check_all_are_drives(&self) -> Result<(), ConfigError> {
        let VolumeSpec::Volume { members, path, .. } = self else {
            return Ok(());
        };
        if members
            .iter()
            .all(|member| matches!(member, VolumeSpec::Drive(..)))
        {
            return Ok(());
        }
        let message = format!(
            "the members of `{path}` are drives and volumes, and a link joins drives; \
             make each drive a volume of one drive, which then has its own link, or remove [link]"
        );
        Err(ConfigError::new("link", message))
    }

    /// Builds the array of a layout with co-operating disks. The drives and their link are inside
    /// the array.
    fn xor(
        &self,
        host: Option<&HostConfig>,
        link: Option<&LinkSpec>,
    ) -> Result<SmartArray, ConfigError> {
        let VolumeSpec::Volume {
            keys,
            members,
            path,
            rebuild,
            ..
        } = self
        else {
            unreachable!("a drive has no layout")
        };
        if !rebuild.members().is_empty() {
            let message = "disks of an xor array do not support rebuilds";
            return Err(ConfigError::new("rebuild", message).below(path));
        }
        if host.is_some() {
            let message = "the disks of an xor array work among themselves, and the host has no queue \
                           above each; give the keys to [host] itself";
            return Err(ConfigError::new("host.members", message));
        }
        let drive = |member: &VolumeSpec| match member {
            VolumeSpec::Drive(model, _) if model.zones().is_some() => Err(ConfigError::new(
                "drive",
                "found a drive with zones, which does not compute parity; expected a conventional drive",
            )),
            VolumeSpec::Drive(model, _) if model.is_shingled() => Err(ConfigError::new(
                "drive",
                "found a drive with shingled tracks, which do not compute parity; expected a conventional drive",
            )),
            VolumeSpec::Drive(model, _) => Ok(model.clone()),
            VolumeSpec::Volume { .. } => Err(ConfigError::new(
                "members",
                "found a volume; the members of an xor array are drives",
            )),
        };
        let link = link.cloned().unwrap_or_default().build(members.len())?;
        let build = || {
            let models = members.iter().map(drive).collect::<Result<Vec<_>, _>>()?;
            SmartArray::new(keys, &models, link)
        };
        build().map_err(|error| error.below(path))
    }

    /// Builds the layer of dm-zoned.
    fn zoned(&self, host: Option<&HostConfig>) -> Result<DmZoned, ConfigError> {
        let VolumeSpec::Volume {
            keys,
            members,
            rebuild,
            path,
            ..
        } = self
        else {
            unreachable!("a drive has no layout")
        };
        if host.is_some() {
            let message = "the writes of a zone must stay in order, and no elevator keeps this order; remove this table";
            return Err(ConfigError::new("host.members", message));
        }
        if !rebuild.members().is_empty() {
            let message =
                "dm-zoned has no copy of its data to rebuild a drive from; remove this key";
            return Err(ConfigError::new("rebuild", message).below(path));
        }
        self.check_late()?;
        let drive = members
            .first()
            .map_or(Ok(Sectors::ZERO), VolumeSpec::capacity)?;
        DmZoned::new(keys, drive).map_err(|error| error.below(path))
    }

    /// Returns true for dm-zoned.
    fn is_zoned(&self) -> bool {
        matches!(self, VolumeSpec::Volume { layout, .. } if zoned::is_zoned(layout.name))
    }

    /// Returns the path of the first volume of this kind, from the top.
    fn path_of(&self, is: fn(&VolumeSpec) -> bool) -> Option<&str> {
        let VolumeSpec::Volume { members, path, .. } = self else {
            return None;
        };
        match is(self) {
            true => Some(path),
            false => members.iter().find_map(|member| member.path_of(is)),
        }
    }

    /// Returns the checked settings of a pool.
    fn pool_settings(&self) -> Result<PoolSettings, ConfigError> {
        let VolumeSpec::Volume {
            layout,
            keys,
            members,
            path,
            ..
        } = self
        else {
            unreachable!("a drive has no layout")
        };
        let capacities = members
            .iter()
            .map(VolumeSpec::capacity)
            .collect::<Result<Vec<_>, _>>()?;
        let kind = fullstroke_pool::kind_of(layout.name).expect("the caller asks for a pool");
        let trims = members.iter().map(VolumeSpec::takes_trim).collect();
        let is_flash =
            |member: &VolumeSpec| matches!(member, VolumeSpec::Drive(model, _) if model.is_flash());
        let flash = members.iter().map(is_flash).collect();
        PoolSettings::read(kind, keys, &capacities)
            .and_then(|settings| settings.on_flash(flash).trimming(trims))
            .map_err(|error| error.below(path))
    }

    /// Returns true for a drive that takes TRIM.
    fn takes_trim(&self) -> bool {
        matches!(self, VolumeSpec::Drive(model, _) if model.takes_trim())
    }

    /// Builds the layer of a pool.
    fn pool(
        &self,
        host: Option<&HostConfig>,
        files: Option<&DatasetStart>,
    ) -> Result<Pool, ConfigError> {
        let VolumeSpec::Volume {
            layout,
            rebuild,
            coordination,
            path,
            ..
        } = self
        else {
            unreachable!("a drive has no layout")
        };
        check_coordination(None, host).map_err(|error| error.below(path))?;
        if coordination.is_some() {
            let message =
                "a pool has queues of its own and tells nobody their lengths; remove this key";
            return Err(ConfigError::new("coordinate", message).below(path));
        }
        let limits = [
            ("speed_limit_min", rebuild.speed_limit_min),
            ("speed_limit_max", rebuild.speed_limit_max),
        ];
        if let Some((key, Some(rate))) = limits.into_iter().find(|(_, rate)| rate.is_some()) {
            let message = format!(
                "found {rate}; a resilver of a pool has no limit of speed. Remove this key"
            );
            return Err(ConfigError::new(key, message).below(path));
        }
        let settings = self.pool_settings()?;
        let settings = match files {
            Some(files) => settings
                .holding(files.clone())
                .map_err(|error| error.below(path))?,
            None => {
                // Only a volume has `volsize`. The size of a file system follows from its files.
                settings.check_volume().map_err(|error| error.below(path))?;
                settings
            }
        };
        let pool = Pool::new(layout.name, settings);
        match rebuild.members() {
            [] => Ok(pool),
            &[member] => Ok(pool.resilvering(member as usize, rebuild.from())),
            several => {
                let message = format!(
                    "found {} members; a pool resilvers one drive from the start of a run",
                    several.len()
                );
                Err(ConfigError::new("rebuild", message).below(path))
            }
        }
    }

    /// Returns the path of the first pool, from the top.
    fn path_of_pool(&self) -> Option<&str> {
        self.path_of(VolumeSpec::is_pool)
    }

    /// Refuses pools and dm-zoned for everything that needs a fixed place of each byte, and drives
    /// that refuse writes out of order.
    fn check_no_pool(&self) -> Result<(), ConfigError> {
        if let Some(path) = self.path_of(VolumeSpec::is_zoned) {
            let message = "dm-zoned is simulated only: reclaim moves its chunks, and no bytes are kept. \
                           Expected another layout above conventional drives";
            return Err(ConfigError::new("layout", message).below(path));
        }
        if self.drives().into_iter().any(DriveModel::is_host_managed) {
            let message = "found a host-managed drive, which refuses writes out of order; clients write in any order, and no bytes are kept for zones. Expected a conventional drive";
            return Err(ConfigError::new("volume.drive", message));
        }
        let Some(path) = self.path_of_pool() else {
            return Ok(());
        };
        let message = "a pool is simulated only: each write moves its records, and no bytes are kept. \
                       Expected another layout, such as raid6";
        Err(ConfigError::new("layout", message).below(path))
    }

    /// Returns the path of the uppermost volume with redundancy.
    pub(crate) fn redundant(&self) -> Option<&str> {
        let VolumeSpec::Volume {
            layout,
            keys,
            members,
            path,
            ..
        } = self
        else {
            return None;
        };
        let failed = registry::known_keys(&(layout.schema)())
            .iter()
            .any(|key| key == "failed");
        // A second failed member would lose data in a layout that survives one.
        let whole = keys
            .get("failed")
            .is_none_or(|failed| failed.as_array().is_some_and(Vec::is_empty));
        match self.layout() {
            Ok(layout) if failed && layout.failures_survived() > 0 => whole.then_some(path),
            _ => members.iter().find_map(VolumeSpec::redundant),
        }
    }

    /// Returns the used length of the longest drive.
    fn depth(&self) -> Result<Sectors, ConfigError> {
        let VolumeSpec::Volume { members, .. } = self else {
            return self.capacity();
        };
        if self.is_only_its_member() {
            return members[0].depth();
        }
        let layout = self.layout()?;
        let mut each = members
            .iter()
            .enumerate()
            .map(|(index, member)| match member {
                // A layout may leave the end of a member unused: the smallest member limits the
                // others.
                VolumeSpec::Drive(..) => Ok(layout.member_used(index)),
                VolumeSpec::Volume { .. } => member.depth(),
            });
        each.try_fold(Sectors::ZERO, |longest, depth| Ok(longest.max(depth?)))
    }

    /// Returns the properties that decide where the bytes lie.
    fn identity(&self) -> Value {
        match self {
            VolumeSpec::Drive(model, _) => json!({ "sectors": model.config().capacity_sectors }),
            VolumeSpec::Volume {
                layout,
                keys,
                members,
                ..
            } => {
                let mut keys = keys.clone();
                match self.is_xor() {
                    // An xor array has more keys of its disks than of its map, so the few that
                    // place data are listed.
                    true => keys.retain(|key, _| fullstroke_smart::PLACING.contains(&key.as_str())),
                    false => keys.retain(|key, _| !RUNNING.contains(&key.as_str())),
                }
                let members: Vec<Value> = members.iter().map(VolumeSpec::identity).collect();
                json!({ "layout": layout.name, "keys": keys, "members": members })
            }
        }
    }

    /// Returns the volume without layers.
    fn shape(&self) -> Result<Shape, ConfigError> {
        self.check_no_pool()?;
        match self {
            VolumeSpec::Drive(model, _) => Ok(Shape::Drive(model.config().capacity_sectors)),
            VolumeSpec::Volume { members, .. } if self.is_only_its_member() => members[0].shape(),
            VolumeSpec::Volume { members, .. } => Ok(Shape::Volume {
                layout: self.layout()?,
                members: members
                    .iter()
                    .map(VolumeSpec::shape)
                    .collect::<Result<_, _>>()?,
            }),
        }
    }

    /// Adds the members that are rebuilt from the start, with their paths below `path`.
    fn add_rebuilt(&self, path: &[usize], all: &mut Vec<RebuiltMember>) -> Result<(), ConfigError> {
        let VolumeSpec::Volume {
            members,
            rebuild,
            path: table,
            ..
        } = self
        else {
            return Ok(());
        };
        if self.is_only_its_member() {
            return members[0].add_rebuilt(path, all);
        }
        if !rebuild.members().is_empty() {
            let layout = self.layout()?;
            let from = rebuild.from();
            let scattered = match self.is_pool() {
                true => Some(self.pool_settings()?).filter(PoolSettings::resilvers_records),
                false => None,
            };
            let scattered = scattered.and_then(|pool| pool.scattered_beside_ordered());
            all.extend(rebuild.members().iter().map(|&member| {
                RebuiltMember {
                    path: [path, &[member as usize]].concat(),
                    table: table.clone(),
                    from,
                    used: layout.member_used(member as usize),
                    zones: members[member as usize]
                        .as_drive()
                        .map_or(Vec::new(), |drive| drive.tracks().zone_rates()),
                    most: rebuild.speed_limit_max,
                    scattered,
                }
            }));
        }
        let mut below = members.iter().enumerate();
        below.try_for_each(|(index, member)| member.add_rebuilt(&[path, &[index]].concat(), all))
    }

    /// Returns the same volume with drives that orders can make slow.
    fn slowable(mut self) -> VolumeSpec {
        match &mut self {
            // Only a served drive gets orders; a simulated run saves the check on each request.
            VolumeSpec::Drive(model, _) => *model = model.clone().slowable(),
            VolumeSpec::Volume { members, .. } => {
                let given = std::mem::take(members);
                *members = given.into_iter().map(VolumeSpec::slowable).collect();
            }
        }
        self
    }

    /// Returns the same volume with all members filled.
    fn filled(&self) -> VolumeSpec {
        let mut filled = self.clone();
        if let VolumeSpec::Volume {
            members, rebuild, ..
        } = &mut filled
        {
            rebuild.rebuild = Members::default();
            members
                .iter_mut()
                .for_each(|member| *member = member.filled());
        }
        filled
    }

    /// Returns the knowledge of a host's layer about the volume below. `tracks` are the tracks at
    /// whose boundaries the layer ends requests.
    fn underneath(&self, tracks: Option<Arc<Boundaries>>) -> Result<DeviceBelow, ConfigError> {
        let drive = self.is_drive();
        let stripes = if drive {
            None
        } else {
            Striped::of(self.layout()?)
        };
        let stripes = stripes.map(|striped| Box::new(striped) as Box<dyn Stripes>);
        Ok(DeviceBelow {
            capacity: self.capacity()?,
            drive,
            stripes,
            tracks,
        })
    }

    /// Returns the data of a row of chunks in sectors; `None` for a volume without stripes.
    fn full_stripe(&self) -> Result<Option<Sectors>, ConfigError> {
        if self.is_drive() {
            return Ok(None);
        }
        Ok(self
            .layout()?
            .geometry()
            .stripe()
            .and_then(|stripe| stripe.row))
    }

    pub(crate) fn layout(&self) -> Result<Box<dyn Layout>, ConfigError> {
        match self {
            VolumeSpec::Drive(..) => unreachable!("a drive has no layout"),
            VolumeSpec::Volume {
                layout,
                keys,
                members,
                rebuild,
                path,
                ..
            } => {
                let capacities = members
                    .iter()
                    .map(VolumeSpec::capacity)
                    .collect::<Result<Vec<_>, _>>()?;
                let build = || {
                    let mut layout = (layout.build)(keys, &capacities)?;
                    let sectors = layout.capacity();
                    if sectors.0 > u64::MAX / SECTOR_BYTES {
                        let message = format!(
                            "found {sectors} in all; a volume has at most 2^64 bytes. Use fewer or smaller members"
                        );
                        return Err(ConfigError::new("members", message));
                    }
                    rebuild.check(&mut *layout).map(|()| layout)
                };
                build().map_err(|error| error.below(path))
            }
        }
    }

    /// Returns the number of addresses; valid addresses are `0..capacity`.
    pub(crate) fn capacity(&self) -> Result<Sectors, ConfigError> {
        match self {
            VolumeSpec::Drive(model, _) => Ok(model.config().capacity_sectors),
            VolumeSpec::Volume { .. } => Ok(self.layout()?.capacity()),
        }
    }

    /// Returns the smallest number of further drive failures that can lose data.
    fn fatal_failures(&self) -> Result<u32, ConfigError> {
        let VolumeSpec::Volume {
            members, rebuild, ..
        } = self
        else {
            return Ok(1);
        };
        let layout = self.layout()?;
        // A member that is being rebuilt counts as failed, because its data are not complete yet.
        let failed = (layout.failed().len() + rebuild.members().len()) as u32;
        let fatal_members = layout.failures_survived().saturating_sub(failed) as usize + 1;
        let mut each = members
            .iter()
            .map(VolumeSpec::fatal_failures)
            .collect::<Result<Vec<u32>, _>>()?;
        // The worst case hits the weakest members first.
        each.sort_unstable();
        Ok(each.iter().take(fatal_members).sum())
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            VolumeSpec::Drive(..) => "drive".into(),
            VolumeSpec::Volume { members, .. } if self.is_only_its_member() => {
                members[0].describe()
            }
            VolumeSpec::Volume {
                layout, members, ..
            } => match &members[0] {
                VolumeSpec::Drive(..) => format!("{} of {}", layout.name, members.len()),
                inner => format!(
                    "{} of {} x {}",
                    layout.name,
                    members.len(),
                    inner.describe()
                ),
            },
        }
    }

    /// Returns the models of all drives, in order.
    pub(crate) fn drives(&self) -> Vec<&DriveModel> {
        match self {
            VolumeSpec::Drive(model, _) => vec![model],
            VolumeSpec::Volume { members, .. } => {
                members.iter().flat_map(VolumeSpec::drives).collect()
            }
        }
    }

    /// Returns the track tables from files, in place of the drives' own tables.
    fn trusted_tables(&self) -> Vec<Value> {
        match self {
            VolumeSpec::Drive(_, tracks) => {
                tracks.identity().map(Value::from).into_iter().collect()
            }
            VolumeSpec::Volume { members, .. } => members
                .iter()
                .flat_map(VolumeSpec::trusted_tables)
                .collect(),
        }
    }

    /// Returns the shortest idle time after which one of the drives spins down by itself.
    fn least_idle(&self) -> Result<Option<Duration>, ConfigError> {
        let each = self
            .drives()
            .into_iter()
            .map(|model| least_idle(model.config()));
        Ok(each
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .min())
    }

    /// Returns the shortest idle time after which one of the drives cleans shingled bands.
    fn cleans_after(&self) -> Option<Duration> {
        let each = self.drives().into_iter();
        each.filter_map(|model| model.cleans_after()).min()
    }

    /// Returns the descriptions of all drives in order, and the track tables of drives with tables
    /// from files.
    pub(crate) fn drive_configs(&self) -> Value {
        self.drives()
            .into_iter()
            .chain(self.journals())
            .map(|model| json!(model.config()))
            .chain(self.trusted_tables())
            .collect()
    }

    /// Returns the models of the journal devices.
    fn journals(&self) -> Vec<&DriveModel> {
        let VolumeSpec::Volume {
            members, journal, ..
        } = self
        else {
            return Vec::new();
        };
        let below = members.iter().flat_map(VolumeSpec::journals);
        journal.as_deref().into_iter().chain(below).collect()
    }
}
