//! The keys of the host, and the layers of a configuration.

use crate::block::{BlockLayer, Flushing, HostTime, LayerSettings, Plugging, Tags};
use crate::elevator::{ElevatorBuilder, ElevatorSite, REGISTRY, Trial};
use crate::{DispatchQueue, Generation, PagedDevice, PushedBlocks, PushedKeys, TickClock};
use fullstroke_contract::registry::{
    Keys, PolicyEntry, check_known, find, keys_of, known_keys, read, schema_of,
};
use fullstroke_contract::{ConfigError, Node, Stripes};
use fullstroke_memory::{MemoryKeys, PageCache, QueueLimits};
use fullstroke_tracks::Boundaries;
use fullstroke_units::{Bytes, Duration, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The keys of the host, without those of an elevator. Without `elevator` the host has a plain
/// dispatch queue if `queue_depth` is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostKeys {
    /// Largest number of requests in flight at the volume. Default 32 with an elevator; no limit
    /// without an elevator.
    pub queue_depth: Option<u32>,
    /// The kernel that the host resembles: its elevator, requests, flushes, ticks, write-back
    /// throttling, own time, read-ahead and write-back. Other keys override single values. Default
    /// "linux-6.x". Without this key the elevator is chosen by `elevator` alone. "ideal" is no
    /// kernel: the host takes no time, and flushes are those of the elevator's kernel.
    pub like: Option<Generation>,
    /// The I/O scheduler. Merges and orders waiting requests. Default: with `like`, the default of
    /// that kernel for a disk (mq-deadline, cfq); otherwise no scheduler. If the volume has several
    /// drives, and neither a controller nor a link hides the drives, then that default stands above
    /// each drive, as in Linux.
    pub elevator: Option<String>,
    /// Largest number of requests, waiting and in flight. Submitters of further requests wait.
    /// Default 256 for reads and writes together (as behind a SAS adapter; 64 behind AHCI). With
    /// `elevator = "none"` the `queue_depth`, at most. With `tags = "per-direction"` 128 for each
    /// direction.
    pub nr_requests: Option<u32>,
    /// True to share the requests among reads and writes: a process without a request blocks in its
    /// submission. False for requests of each direction, as in Linux 2.6. Default: that of `like`;
    /// true with "linux-6.x".
    pub shared_requests: Option<bool>,
    /// Longest time of the fastest read of a window in µs; above this time, asynchronous writes are
    /// throttled. 0 = no throttling. Default 75000 as in Linux 6 for disks; 0 with bfq and with
    /// other kernels.
    pub wbt_lat_usec: Option<u64>,
    /// Time of the host from the submission of a request to its arrival at the elevator. Default
    /// 13us with an elevator, as measured with Linux 6.18 on an AMD EPYC; 0s without an elevator.
    pub submission_time: Option<Duration>,
    /// Time of the host from the completion of the device until the submitter runs again. Default
    /// 82us with an elevator, as measured with Linux 6.18 on an AMD EPYC; 0s without an elevator.
    pub completion_time: Option<Duration>,
    /// Time from a completion until a worker thread of the kernel asks the elevator for the next
    /// request. The thread asks only if the device was full before or if the elevator wants it, and
    /// 3 ms after an elevator has declined. 0s = every event asks at once, as before Linux 5.0.
    /// Default 35us, as measured with Linux 6.18 on an AMD EPYC; 0s with `like = "linux-2.6.23"`.
    pub dispatch_time: Option<Duration>,
    /// True if the driver reserves a command of the device before a request leaves the elevator, as
    /// for SCSI and SATA disks (`scsi_mq_get_budget`). False for drivers without reservation, such
    /// as loop, virtio and NBD: one request leaves the elevator before the device has room, so the
    /// elevator decides one request earlier. Has an effect only with shared requests and an
    /// elevator. Default true.
    pub budget: Option<bool>,
    /// Longest request in KiB. Merges stop at this length, and longer requests are split. Default
    /// 512.
    pub max_sectors_kb: Option<u32>,
    /// How requests are held back until neighbours have arrived. Default task.
    pub plug: Option<Plugging>,
    /// Limit of held requests; the plug is pulled there. Default 4 with plug = "queue", 32 with
    /// plug = "task".
    pub unplug_threshold: Option<u32>,
    /// Time for which plug = "queue" holds back requests without a waiting submitter. Default 3ms.
    pub unplug_delay: Option<Duration>,
    /// Ticks a second of the kernel's clock: 100, 250, 300 or 1000. Timers go off at a tick.
    /// Expiries are a whole number of ticks, at least one. The think times of processes are
    /// measured in ticks. Default 250; exact with `like = "ideal"`. bfq and kyber do not take this
    /// key: their timers are exact, and bfq counts its ticks at 250 a second.
    pub hz: Option<u32>,
    /// Effect of a flush on other requests. Default: sequence, as in Linux 6. With `like =
    /// "linux-2.6.23"` the default is drain. With `like = "ideal"` the default is that of the
    /// elevator's kernel: drain with noop, v-r, deadline, anticipatory and cfq, sequence with the
    /// others.
    pub flush: Option<Flushing>,
    /// True if the device itself serves forced writes (FUA: on the medium at completion). If false,
    /// a flush follows each such write, as in Linux with SATA drives by default. Default true.
    pub fua: Option<bool>,
    /// True if two requests stay separate where they meet on the boundary of a stripe unit. Default
    /// false.
    pub stripe_aware_merging: Option<bool>,
    /// True to align requests to the tracks of the drive below. Then requests are split at track
    /// ends and never merged across tracks. A run of requests up to the end of a track pulls the
    /// plug. The tracks are those of `tracks` in `[volume]`, or the drive's own. Default false.
    pub track_aligned: Option<bool>,
    /// True if the other members work on while an elevator waits for the next request of one
    /// member. Default false.
    pub per_member_anticipation: Option<bool>,
    /// The file system of the programs. Has an effect only with programs.
    pub files: Option<Keys>,
    /// The page cache through which programs read and write the device or its files. Default: no
    /// page cache.
    #[schemars(with = "Option<MemoryKeys>")]
    pub memory: Option<Keys>,
    /// A cache below the page cache for blocks that storage pushes (PUSH of `[[opportunities]]`).
    /// Without this table the host ignores pushed blocks.
    pub pushed: Option<PushedKeys>,
    /// A host table for each drive of a volume of several drives: two levels of scheduling.
    pub members: Option<Keys>,
}

/// The configuration of one host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostConfig {
    keys: HostKeys,
    /// Keys of the elevator.
    tunables: Keys,
    /// Elevator in place of the configured one.
    trial: Option<Trial>,
    members: Option<Box<HostConfig>>,
    /// Name of the host, if there are several.
    name: Option<String>,
    /// True if the elevator is the default of the kernel that `like` names.
    usual_elevator: bool,
}

/// The device below the layer of a host.
pub struct DeviceBelow {
    /// Number of addresses, in sectors.
    pub capacity: Sectors,
    /// True if the device is a single drive.
    pub drive: bool,
    /// Map of addresses to members, if the device is striped.
    pub stripes: Option<Box<dyn Stripes>>,
    /// Map of addresses to tracks. Needed if the layer [aligns to
    /// tracks](HostConfig::aligns_to_tracks).
    pub tracks: Option<Arc<Boundaries>>,
}

impl HostConfig {
    /// Reads a `[host]` table.
    ///
    /// # Errors
    /// A key is unknown to the host and to its elevator; the elevator is unknown; or a key has no
    /// effect beside the others.
    pub fn read(table: &Keys) -> Result<HostConfig, ConfigError> {
        let config = HostConfig::read_level(table)?;
        match &config.keys.members {
            None => Ok(config),
            Some(members) => {
                let mut members = members.clone();
                // Host and members run the same kernel unless the members say otherwise.
                if let Some(like) = table.get("like") {
                    members.entry("like").or_insert_with(|| like.clone());
                }
                let members =
                    HostConfig::read_members(&members).map_err(|error| error.below("members"))?;
                Ok(HostConfig {
                    members: Some(Box::new(members)),
                    ..config
                })
            }
        }
    }

    fn read_members(table: &Keys) -> Result<HostConfig, ConfigError> {
        for (key, message) in [
            ("members", "a drive has no members; remove the key"),
            (
                "files",
                "the file system lies above the volume; move the table `files` to [host]",
            ),
            (
                "memory",
                "the page cache lies above the volume; move the table `memory` to [host]",
            ),
            (
                "pushed",
                "pushed blocks are kept above the volume; move the table `pushed` to [host]",
            ),
        ] {
            if table.contains_key(key) {
                return Err(ConfigError::new(key, message));
            }
        }
        HostConfig::read_level(table)
    }

    fn read_level(table: &Keys) -> Result<HostConfig, ConfigError> {
        let own = known_keys(&schema_of::<HostKeys>());
        let elevator = match (table.get("elevator"), table.get("like")) {
            (Some(Value::String(name)), _) => Some(find("elevator", REGISTRY, "elevator", name)?),
            (None, Some(like)) => {
                let like = keys_of([("like".to_owned(), like.clone())]);
                let name = read::<HostKeys>(&like)?.like.and_then(Generation::elevator);
                name.map(|name| find("elevator", REGISTRY, "elevator", name))
                    .transpose()?
            }
            _ => None,
        };
        let tunables = elevator
            .map(|entry| known_keys(&(entry.schema)()))
            .unwrap_or_default();
        check_known(table, &[&own[..], &tunables].concat())?;
        let (keys, tunables): (Keys, Keys) = table
            .clone()
            .into_iter()
            .partition(|(key, _)| own.contains(key));
        let mut config = HostConfig {
            keys: HostKeys {
                elevator: elevator.map(|entry| entry.name.to_owned()),
                ..read(&keys)?
            },
            tunables,
            usual_elevator: elevator.is_some() && !table.contains_key("elevator"),
            ..HostConfig::default()
        };
        let generation = config.generation();
        if let Some(files) = &mut config.keys.files {
            generation.complete_files(files);
        }
        config.check(elevator)?;
        // Builds both caches once to find errors in their keys. The capacity does not matter here.
        config.cache()?;
        config.pushed(Sectors::ZERO)?;
        Ok(config)
    }

    /// Returns the table `files`, if there is one.
    pub fn files(&self) -> Option<&Keys> {
        self.keys.files.as_ref()
    }

    /// Returns an empty page cache, if the table `memory` exists.
    ///
    /// # Errors
    /// As [`read`](HostConfig::read).
    pub fn cache(&self) -> Result<Option<PageCache>, ConfigError> {
        let Some(table) = &self.keys.memory else {
            return Ok(None);
        };
        let default = QueueLimits::default();
        let queue = QueueLimits {
            nr_requests: self.keys.nr_requests.unwrap_or(default.nr_requests),
            request_pages: self
                .keys
                .max_sectors_kb
                // Pages of 4 KiB.
                .map_or(default.request_pages, |kib| u64::from(kib / 4).max(1)),
        };
        let cache = self
            .memory_keys(table)
            .and_then(|keys| PageCache::new(&keys, queue));
        cache.map(Some).map_err(|error| error.below("memory"))
    }

    /// Returns the keys of the page cache, with the policies of the generation where the table
    /// names none.
    fn memory_keys(&self, table: &Keys) -> Result<MemoryKeys, ConfigError> {
        let [read_ahead, write_back] = self.generation().memory();
        let keys = MemoryKeys::read(table)?;
        Ok(keys.or_else(read_ahead, write_back))
    }

    /// Returns the generation of the host.
    fn generation(&self) -> Generation {
        self.keys.like.unwrap_or_default()
    }

    /// True if the host has an elevator.
    pub fn has_elevator(&self) -> bool {
        self.keys.elevator.is_some()
    }

    /// True if requests are joined before they are issued: for every elevator but `none`.
    pub fn joins(&self) -> bool {
        self.keys.elevator.as_deref() != Some("none")
    }

    /// Replaces the configured elevator by `trial`. The keys of the block layer stay.
    ///
    /// # Errors
    /// There is no elevator, or the configured elevator has keys of its own: `trial` would not know
    /// these keys.
    pub fn try_out(&mut self, trial: Trial) -> Result<(), ConfigError> {
        let refuse = |key: &str, problem: &str| {
            let message = problem.replace("TRIAL", trial.name());
            Err(ConfigError::new(key, message))
        };
        if !self.has_elevator() {
            return refuse(
                "elevator",
                "no elevator to replace by `TRIAL`; set elevator = \"noop\"",
            );
        }
        if let Some(key) = self.tunables.keys().next() {
            return refuse(
                key,
                "`TRIAL` replaces the elevator and does not know this key; remove the key",
            );
        }
        self.trial = Some(trial);
        Ok(())
    }

    /// True if the host has a page cache.
    pub fn has_memory(&self) -> bool {
        self.keys.memory.is_some()
    }

    /// Returns the layer of the page cache above a device of `capacity`, if there is a page cache.
    ///
    /// # Errors
    /// As [`read`](HostConfig::read).
    pub fn memory(&self, capacity: Sectors) -> Result<Option<Box<dyn Node>>, ConfigError> {
        let Some(cache) = self.cache()? else {
            return Ok(None);
        };
        let layer = PagedDevice::new(cache, capacity);
        Ok(Some(match &self.name {
            Some(name) => Box::new(layer.of_host(name)),
            None => Box::new(layer),
        }))
    }

    /// Names the host, for a configuration of several hosts. Reports list the counters of its
    /// caches under the name.
    #[must_use]
    pub fn called(self, name: &str) -> HostConfig {
        HostConfig {
            name: Some(name.to_owned()),
            ..self
        }
    }

    /// True if the host keeps pushed blocks.
    pub fn keeps_pushed(&self) -> bool {
        self.keys.pushed.is_some()
    }

    /// Returns the layer for pushed blocks above a device of `capacity`, if there is such a layer.
    ///
    /// # Errors
    /// As [`read`](HostConfig::read).
    pub fn pushed(&self, capacity: Sectors) -> Result<Option<Box<dyn Node>>, ConfigError> {
        let Some(keys) = &self.keys.pushed else {
            return Ok(None);
        };
        let layer = PushedBlocks::new(keys, capacity).map_err(|error| error.below("pushed"))?;
        Ok(Some(match &self.name {
            Some(name) => Box::new(layer.of_host(name)),
            None => Box::new(layer),
        }))
    }

    /// Returns the size of the page cache in bytes; 0 without a page cache.
    ///
    /// # Errors
    /// As [`read`](HostConfig::read).
    pub fn memory_size(&self) -> Result<Bytes, ConfigError> {
        let Some(table) = &self.keys.memory else {
            return Ok(Bytes(0));
        };
        self.memory_keys(table)
            .map(|keys| keys.size)
            .map_err(|error| error.below("memory"))
    }

    /// Refuses contradictions, and keys without effect.
    fn check(&self, elevator: Option<&PolicyEntry<ElevatorBuilder>>) -> Result<(), ConfigError> {
        let HostKeys {
            queue_depth,
            nr_requests,
            max_sectors_kb,
            unplug_threshold,
            ..
        } = self.keys;
        let counts = [
            ("queue_depth", queue_depth),
            ("nr_requests", nr_requests),
            ("max_sectors_kb", max_sectors_kb),
            ("unplug_threshold", unplug_threshold),
        ];
        if let Some((key, _)) = counts.iter().find(|(_, count)| *count == Some(0)) {
            return Err(ConfigError::new(
                *key,
                "found 0; expected at least 1, or no key",
            ));
        }
        let Some(entry) = elevator else {
            return self.check_plain();
        };
        let plug = self.keys.plug.unwrap_or_default();
        let needs_a_queue_plug = |key: &str| {
            let message = format!(
                "has no effect with plug = \"{}\"; set plug = \"queue\" or remove the key",
                plug.name()
            );
            Err(ConfigError::new(key, message))
        };
        if self.keys.unplug_delay.is_some() && plug != Plugging::Queue {
            return needs_a_queue_plug("unplug_delay");
        }
        if unplug_threshold.is_some() && plug == Plugging::None {
            return needs_a_queue_plug("unplug_threshold");
        }
        if self.keys.fua == Some(false) && self.flush(entry) == Flushing::Drain {
            let message = "found false; with flush = \"drain\" no flush can follow a forced write; set flush = \"sequence\" or remove the key";
            return Err(ConfigError::new("fua", message));
        }
        // The volume is not known yet. This site suits every elevator: `satf`, for one, refuses a
        // volume of several drives.
        let site = ElevatorSite {
            capacity: Sectors(u64::MAX),
            drive: true,
            ..self.site(entry.name)?
        };
        let anticipates = (entry.build.build)(&self.tunables, &site)?.anticipates();
        if self.keys.per_member_anticipation == Some(true) && !anticipates {
            let message = format!(
                "has no effect: the elevator `{}` does not anticipate; remove the key",
                entry.name
            );
            return Err(ConfigError::new("per_member_anticipation", message));
        }
        Ok(())
    }

    /// Refuses keys without effect if there is no elevator.
    fn check_plain(&self) -> Result<(), ConfigError> {
        let given = serde_json::to_value(&self.keys).unwrap_or_default();
        let without_effect = given
            .as_object()
            .into_iter()
            .flatten()
            .find(|(key, value)| {
                !value.is_null()
                    && ![
                        "queue_depth",
                        "members",
                        "memory",
                        "pushed",
                        "files",
                        "like",
                    ]
                    .contains(&key.as_str())
            });
        match without_effect {
            None => Ok(()),
            Some((key, _)) => Err(ConfigError::new(
                key.as_str(),
                "has no effect without an elevator; set `elevator` or remove the key",
            )),
        }
    }

    /// Moves the kernel's default elevator from above a volume of several drives to each drive,
    /// with the keys of the block layer. A table `members` of the file stays. An elevator that the
    /// file names stays above the volume.
    ///
    /// Linux has no elevator above md or the device mapper: both take whole bios
    /// (`md_submit_bio`, `dm_submit_bio`, Linux 6.12), and each disk has a queue of its own.
    #[must_use]
    pub fn above_members(mut self) -> HostConfig {
        if !self.usual_elevator {
            return self;
        }
        let HostKeys {
            like,
            members,
            memory,
            files,
            pushed,
            ..
        } = &self.keys;
        let above = HostKeys {
            like: *like,
            members: members.clone(),
            memory: memory.clone(),
            files: files.clone(),
            pushed: pushed.clone(),
            ..HostKeys::default()
        };
        let below = HostKeys {
            like: self.keys.like,
            members: None,
            memory: None,
            files: None,
            pushed: None,
            ..std::mem::replace(&mut self.keys, above)
        };
        let tunables = std::mem::take(&mut self.tunables);
        self.usual_elevator = false;
        self.members.get_or_insert_with(|| {
            Box::new(HostConfig {
                keys: below,
                tunables,
                usual_elevator: true,
                ..HostConfig::default()
            })
        });
        self
    }

    /// Returns the configuration of the host level above each drive of the volume.
    pub fn members(&self) -> Option<&HostConfig> {
        self.members.as_deref()
    }

    /// True if requests end with tracks. The caller must then provide the tracks.
    pub fn aligns_to_tracks(&self) -> bool {
        self.keys.track_aligned == Some(true)
    }

    /// True if the elevator counts queues at other members as distance.
    pub fn weighs_queues(&self) -> bool {
        self.tunables.contains_key("queue_weight")
    }

    /// Builds the layer, if the configuration needs one.
    ///
    /// # Errors
    /// A key does not suit the volume below.
    pub fn build(&self, below: DeviceBelow) -> Result<Option<Box<dyn Node>>, ConfigError> {
        let Some(name) = &self.keys.elevator else {
            return Ok(self
                .keys
                .queue_depth
                .map(|depth| Box::new(DispatchQueue::new(depth)) as Box<dyn Node>));
        };
        let HostKeys {
            stripe_aware_merging,
            per_member_anticipation,
            ..
        } = self.keys;
        let by_stripe = [
            ("stripe_aware_merging", stripe_aware_merging),
            ("per_member_anticipation", per_member_anticipation),
        ];
        if let Some((key, _)) = by_stripe.iter().find(|(_, on)| *on == Some(true))
            && below.stripes.is_none()
        {
            return Err(ConfigError::new(
                *key,
                "the volume is not striped; remove the key",
            ));
        }
        if self.aligns_to_tracks() && below.tracks.is_none() {
            let message =
                "the tracks of the volume are unknown; remove the key or set `tracks` in [volume]";
            return Err(ConfigError::new("track_aligned", message));
        }
        let site = ElevatorSite {
            capacity: below.capacity,
            drive: below.drive,
            ..self.site(name)?
        };
        let entry = find("elevator", REGISTRY, "elevator", name)?;
        let elevator = match &self.trial {
            Some(trial) => trial.build(&site)?,
            None => (entry.build.build)(&self.tunables, &site)?,
        };
        let settings = self.settings(&site, entry);
        let tracks = below.tracks.filter(|_| self.aligns_to_tracks());
        Ok(Some(Box::new(
            BlockLayer::new(elevator, &settings, below.stripes).aligned_to(tracks),
        )))
    }

    /// Returns the effect of a flush on other requests under this elevator.
    fn flush(&self, elevator: &PolicyEntry<ElevatorBuilder>) -> Flushing {
        let usual = self.generation().flush(elevator.build.flush);
        self.keys.flush.unwrap_or(usual)
    }

    /// True if reads and writes share the requests.
    fn shares_requests(&self) -> bool {
        let usual = self.generation().shares_requests();
        self.keys.shared_requests.unwrap_or(usual)
    }

    fn site(&self, elevator: &str) -> Result<ElevatorSite, ConfigError> {
        let queue_depth = self.keys.queue_depth.unwrap_or(32);
        let usual = if self.shares_requests() {
            Generation::Linux6.requests()
        } else {
            Generation::Linux2_6_23.requests()
        };
        let mut nr_requests = self.keys.nr_requests.unwrap_or(usual);
        if elevator == "none" {
            // Without an elevator a request is a command of the device (`blk_mq_get_tag` takes a
            // driver tag).
            nr_requests = nr_requests.min(queue_depth);
        }
        // An elevator from outside reads times in nanoseconds, and names its next instant so.
        let counts = self.trial.is_none() && has_ticks(elevator);
        let usual = self.generation().hz().filter(|_| counts);
        Ok(ElevatorSite {
            queue_depth,
            nr_requests,
            capacity: Sectors::ZERO,
            drive: false,
            clock: TickClock::new(self.keys.hz.or(usual))?,
        })
    }

    /// Returns the target of write-back throttling. bfq switches the throttling off
    /// (`wbt_disable_default` in `bfq_init_queue` of `block/bfq-iosched.c`).
    fn read_target(&self, elevator: &str) -> Option<Duration> {
        let usual = self.generation().read_target();
        match self.keys.wbt_lat_usec {
            Some(0) => None,
            Some(time) => Some(Duration::from_micros(time)),
            None => usual.filter(|_| elevator != "bfq"),
        }
    }

    fn time(&self) -> HostTime {
        let HostTime {
            submission,
            completion,
            dispatch,
        } = self.generation().time();
        HostTime {
            submission: self.keys.submission_time.unwrap_or(submission),
            completion: self.keys.completion_time.unwrap_or(completion),
            dispatch: self.keys.dispatch_time.unwrap_or(dispatch),
        }
    }

    fn settings(
        &self,
        site: &ElevatorSite,
        elevator: &PolicyEntry<ElevatorBuilder>,
    ) -> LayerSettings {
        let ElevatorSite {
            queue_depth,
            nr_requests,
            capacity,
            clock,
            ..
        } = *site;
        let plug = self.keys.plug.unwrap_or_default();
        // Defaults of the kernels: 4 requests and 3 ms in `blk_queue_make_request` of
        // `block/ll_rw_blk.c`, Linux 2.6.24; `BLK_MAX_REQUEST_COUNT` of today.
        let usual_threshold = if plug == Plugging::Queue { 4 } else { 32 };
        let tags = if self.shares_requests() {
            Tags::Shared(nr_requests)
        } else {
            Tags::PerDirection(nr_requests)
        };
        LayerSettings {
            queue_depth,
            tags,
            // `BLK_DEF_MAX_SECTORS` of `include/linux/blkdev.h` in 2.6.24: 1024 sectors of 512
            // bytes.
            sectors_max: Sectors(u64::from(self.keys.max_sectors_kb.unwrap_or(512)) * 2),
            plug,
            unplug_threshold: self.keys.unplug_threshold.unwrap_or(usual_threshold),
            clock,
            unplug_delay: self.keys.unplug_delay.unwrap_or(Duration::from_millis(3)),
            capacity,
            stripe_aware_merging: self.keys.stripe_aware_merging.unwrap_or(false),
            per_member_anticipation: self.keys.per_member_anticipation.unwrap_or(false),
            flush: self.flush(elevator),
            fua: self.keys.fua.unwrap_or(true),
            read_target: self.read_target(elevator.name),
            time: self.time(),
            ahead: self.shares_requests()
                && elevator.name != "none"
                && !self.keys.budget.unwrap_or(true),
        }
    }
}

/// True if an elevator counts in ticks. The kernels of bfq and kyber read a clock of nanoseconds.
fn has_ticks(elevator: &str) -> bool {
    !matches!(elevator, "bfq" | "kyber")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(table: Value) -> Result<HostConfig, ConfigError> {
        let Value::Object(table) = table else {
            panic!("{table}")
        };
        HostConfig::read(&table)
    }

    fn drive() -> DeviceBelow {
        DeviceBelow {
            capacity: Sectors(1_000_000),
            drive: true,
            stripes: None,
            tracks: None,
        }
    }

    fn refused(table: Value) -> ConfigError {
        match config(table.clone()).and_then(|config| config.build(drive())) {
            Ok(_) => panic!("{table} was accepted"),
            Err(error) => error,
        }
    }

    #[test]
    fn a_layer_is_built_where_the_keys_ask_for_one() {
        let built = |table| config(table).unwrap().build(drive()).unwrap().is_some();
        assert!(!built(json!({})));
        assert!(built(json!({ "queue_depth": 4 })));
        assert!(built(json!({ "elevator": "noop" })));
        assert!(built(
            json!({ "elevator": "v-r", "rev_penalty": 1, "plug": "queue", "unplug_delay": "1ms" })
        ));
    }

    #[test]
    fn what_cannot_be_or_has_no_effect_is_refused_at_its_key() {
        for (table, key) in [
            (json!({ "queue_depth": 0 }), "queue_depth"),
            (
                json!({ "elevator": "noop", "nr_requests": 0 }),
                "nr_requests",
            ),
            (json!({ "nr_requests": 64 }), "nr_requests"),
            (json!({ "rev_penalty": 1 }), "rev_penalty"),
            (
                json!({ "elevator": "noop", "rev_penalty": 1 }),
                "rev_penalty",
            ),
            (json!({ "elevator": 7 }), "elevator"),
            (json!({ "elevator": "v-r", "fifo_batch": 0 }), "fifo_batch"),
            (
                json!({ "elevator": "v-r", "fifo_batch": "many" }),
                "fifo_batch",
            ),
            (
                json!({ "elevator": "noop", "unplug_delay": "1ms" }),
                "unplug_delay",
            ),
            (
                json!({ "elevator": "noop", "plug": "none", "unplug_threshold": 2 }),
                "unplug_threshold",
            ),
            (json!({ "elevator": "noop", "plug": "socket" }), "plug"),
            (
                json!({ "elevator": "noop", "stripe_aware_merging": true }),
                "stripe_aware_merging",
            ),
            (
                json!({ "elevator": "noop", "per_member_anticipation": true }),
                "per_member_anticipation",
            ),
            (
                json!({ "elevator": "noop", "track_aligned": true }),
                "track_aligned",
            ),
            (json!({ "flush": "sequence" }), "flush"),
            (json!({ "queue_depth": 4, "fua": false }), "fua"),
            (json!({ "elevator": "kyber", "flush": "barrier" }), "flush"),
            (
                json!({ "elevator": "kyber", "flush": "drain", "fua": false }),
                "fua",
            ),
            (json!({ "hz": 250 }), "hz"),
            (json!({ "elevator": "cfq", "hz": 0 }), "hz"),
            (json!({ "elevator": "noop", "hz": 1024 }), "hz"),
            (json!({ "elevator": "kyber", "hz": 250 }), "hz"),
            (json!({ "elevator": "bfq", "hz": 1000 }), "hz"),
            (
                json!({ "members": { "elevator": "noop", "fifo_batch": 1 } }),
                "members.fifo_batch",
            ),
            (json!({ "members": { "members": {} } }), "members.members"),
            (
                json!({ "members": { "pushed": { "size": "1MiB" } } }),
                "members.pushed",
            ),
            (json!({ "pushed": { "size": "1KiB" } }), "pushed.size"),
            (
                json!({ "pushed": { "size": "1MiB", "replacement": "lur" } }),
                "pushed.replacement",
            ),
        ] {
            assert_eq!(refused(table.clone()).key, key, "{table}");
        }
    }

    #[test]
    fn the_usual_elevator_stands_above_each_drive_of_several() {
        let moved = |table: Value| config(table).unwrap().above_members();
        let array = moved(json!({ "like": "linux-6.x", "read_expire": "1s" }));
        assert!(!array.has_elevator());
        let below = json!({ "like": "linux-6.x", "elevator": "mq-deadline", "read_expire": "1s" });
        let below = config(below).unwrap();
        let drive = array.members().unwrap();
        assert_eq!(drive.keys, below.keys);
        assert_eq!(drive.tunables, below.tunables);

        let own = moved(json!({ "like": "linux-2.6.23", "members": { "elevator": "bfq" } }));
        assert!(!own.has_elevator());
        let drive = own.members().unwrap();
        assert_eq!(drive.keys.elevator.as_deref(), Some("bfq"));
        assert_eq!(drive.generation(), Generation::Linux2_6_23);

        let named = moved(json!({ "like": "linux-6.x", "elevator": "mq-deadline" }));
        assert!(named.has_elevator());
        assert_eq!(named.members(), None);
    }

    #[test]
    fn a_flush_does_what_it_did_in_the_kernels_of_the_elevator_unless_said() {
        let flush = |table: Value| {
            let config = config(table).unwrap();
            let entry = find("", REGISTRY, "", config.keys.elevator.as_deref().unwrap()).unwrap();
            let site = config.site(entry.name).unwrap();
            config.settings(&site, entry).flush
        };
        for name in REGISTRY.iter().map(|entry| entry.name) {
            assert_eq!(flush(json!({ "elevator": name })), Flushing::Sequence);
            assert_eq!(
                flush(json!({ "like": "linux-2.6.23", "elevator": name })),
                Flushing::Drain
            );
        }
        for name in ["noop", "v-r", "deadline", "anticipatory", "cfq"] {
            assert_eq!(
                flush(json!({ "like": "ideal", "elevator": name })),
                Flushing::Drain,
                "{name}"
            );
        }
        for name in ["none", "mq-deadline", "bfq", "kyber", "fifo", "satf"] {
            assert_eq!(
                flush(json!({ "like": "ideal", "elevator": name })),
                Flushing::Sequence,
                "{name}"
            );
        }
        assert_eq!(
            flush(json!({ "like": "ideal", "elevator": "noop", "flush": "sequence" })),
            Flushing::Sequence
        );
        assert_eq!(
            flush(json!({ "elevator": "bfq", "flush": "drain" })),
            Flushing::Drain
        );
    }

    #[test]
    fn the_documentation_of_flush_names_the_elevators_that_drain() {
        let drain = REGISTRY
            .iter()
            .filter(|entry| entry.build.flush == Flushing::Drain);
        let names: Vec<&str> = drain.map(|entry| entry.name).collect();
        let (last, others) = names.split_last().unwrap();
        let sentence = format!("drain with {} and {last}, sequence", others.join(", "));
        let schema = serde_json::to_string(&schema_of::<HostKeys>())
            .unwrap()
            .replace("\\n", " ");
        assert!(schema.contains(&sentence), "{sentence}: {schema}");
    }

    fn set(table: Value) -> LayerSettings {
        let config = config(table).unwrap();
        let name = config.keys.elevator.clone().unwrap();
        let entry = find("", REGISTRY, "", &name).unwrap();
        config.settings(&config.site(&name).unwrap(), entry)
    }

    #[test]
    fn a_generation_sets_everything_and_a_key_overrides_one_value() {
        let today = set(json!({ "elevator": "mq-deadline" }));
        assert_eq!(today, set(json!({ "like": "linux-6.x" })));
        assert_eq!(today.tags, Tags::Shared(256));
        assert_eq!(today.read_target, Some(Duration::from_millis(75)));
        assert_eq!(today.clock, TickClock::new(Some(250)).unwrap());
        let old = set(json!({ "like": "linux-2.6.23", "max_sectors_kb": 64 }));
        assert_eq!(old.tags, Tags::PerDirection(128));
        assert_eq!((old.read_target, old.flush), (None, Flushing::Drain));
        assert_eq!(today.time.dispatch, Duration::from_micros(35));
        assert_eq!(old.time.dispatch, Duration::ZERO);
        assert_eq!(old.sectors_max, Sectors(128));
        let ideal = set(json!({ "like": "ideal", "elevator": "noop" }));
        assert_eq!(ideal.time, HostTime::default());
        assert_eq!(ideal.clock, TickClock::EXACT);
        assert!(!config(json!({ "like": "ideal" })).unwrap().has_elevator());
        let mixed = set(json!({ "like": "ideal", "elevator": "noop", "wbt_lat_usec": 2000 }));
        assert_eq!(mixed.read_target, Some(Duration::from_millis(2)));
    }

    #[test]
    fn what_does_not_suit_the_generation_is_refused_at_its_key() {
        for (table, key) in [
            (json!({ "like": "linux-7.x" }), "like"),
            (json!({ "completion_time": "1us" }), "completion_time"),
            (
                json!({ "like": "linux-2.6.23", "elevator": "cfq", "fua": false }),
                "fua",
            ),
        ] {
            assert_eq!(refused(table.clone()).key, key, "{table}");
        }
    }

    #[test]
    fn bfq_is_not_throttled_and_none_has_the_requests_of_the_device() {
        assert_eq!(set(json!({ "elevator": "bfq" })).read_target, None);
        let throttled = set(json!({ "elevator": "bfq", "wbt_lat_usec": 75000 }));
        assert_eq!(throttled.read_target, Some(Duration::from_millis(75)));
        let none = set(json!({ "elevator": "none", "queue_depth": 8 }));
        assert_eq!(none.tags, Tags::Shared(8));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_one() {
        let elevator = refused(json!({ "elevator": "nop" }));
        assert!(
            elevator.message.contains("did you mean `noop`"),
            "{elevator}"
        );
        let key = refused(json!({ "elevator": "v-r", "fifo_batches": 1 }));
        assert!(key.message.contains("did you mean `fifo_batch`"), "{key}");
    }
}
