//! The keys of `[host.files]`.

use crate::kernel::Settings;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, check_known, find, known_keys, read, schema_of};
use fullstroke_files::{FileSystem, REGISTRY, Site, age, make};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The file system that a host's programs work on; the keys that are not its kind's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesKeys {
    /// Which file system.
    pub kind: String,
    /// How much of the device it has, from the beginning; all of it unless said.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// How it was used before; not at all unless said.
    #[serde(default)]
    pub age: Option<String>,
    /// Whether files keep off blocks that hold sectors of two tracks of the drive below,
    /// and what is set aside for one ends with a track (Qian & Wang, section 4.2); not
    /// unless said. With ext2 and ext4; only ext2's pre-allocation takes whole tracks.
    /// The tracks are those of `tracks` in `[volume]`, or the drive's own; drives one
    /// behind the other and copies have tracks too, stripes have none.
    #[serde(default)]
    pub align: Option<Align>,
    /// Whether a window of read-ahead ends where a track does; above stripes, in the row
    /// of chunks in which the longest does of the members' tracks that the window is on.
    /// As `align` unless said.
    #[serde(default)]
    pub align_read_ahead: Option<bool>,
    /// Whether the device's own cache is flushed where the order of writes or an
    /// fsync needs it (the mount option of that name). true unless said.
    #[serde(default = "yes")]
    pub barrier: bool,
    /// Time of the processor that each call takes, whatever else it waits for. 1us
    /// unless said, which is assumed.
    #[serde(default = "call_cost")]
    pub call_cost: Duration,
    /// Millions of bytes a second at which data are copied between memory and
    /// programs. 5000 unless said, which is assumed.
    #[serde(default = "copy_rate")]
    pub copy_mb_per_s: f64,
}

/// What files are aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Align {
    /// The tracks of the drive below.
    Tracks,
}

fn yes() -> bool {
    true
}

fn call_cost() -> Duration {
    Duration::from_micros(1)
}

fn copy_rate() -> f64 {
    5000.0
}

/// How disks of guests are files of a host, in `[shared.files]`; beside these it has the keys
/// of `[host.files]` but those that are of programs or of tracks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskKeys {
    /// How guests' requests reach the files: "none", past the page cache, as files opened with
    /// O_DIRECT are; or "writeback", through it, as a loop device does. "none" unless said.
    #[serde(default)]
    pub cache: DiskCache,
    /// Whether files have all their pages from the beginning, "full", or get each when it is
    /// written first, "off". "full" unless said.
    #[serde(default)]
    pub preallocation: Preallocation,
}

/// How requests reach a file that is a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskCache {
    /// Past the page cache.
    #[default]
    None,
    /// Through it.
    Writeback,
}

/// When a file that is a disk gets its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preallocation {
    /// All before the run begins.
    #[default]
    Full,
    /// Each when it is written first.
    Off,
}

impl DiskKeys {
    /// Keys of `[host.files]` that mean nothing to disks that are files, and why.
    pub const WITHOUT: [(&'static str, &'static str); 4] = [
        (
            "align",
            "guests choose where their blocks lie; leave it out",
        ),
        (
            "align_read_ahead",
            "guests choose what is read together; leave it out",
        ),
        (
            "call_cost",
            "what a request costs the processor is `cost` of [shared]; leave it out",
        ),
        (
            "copy_mb_per_s",
            "what a request costs the processor is `cost` of [shared]; leave it out",
        ),
    ];

    /// Reads a `[shared.files]` table: its keys, and those of the file system.
    ///
    /// # Errors
    /// As [`FilesConfig::read`]; a key without meaning here; a file system without names.
    pub fn read(table: &Keys) -> Result<(DiskKeys, FilesConfig), ConfigError> {
        if let Some((key, message)) = DiskKeys::WITHOUT
            .into_iter()
            .find(|(key, _)| table.contains_key(*key))
        {
            return Err(ConfigError::new(key, message));
        }
        let own = known_keys(&schema_of::<DiskKeys>());
        let (keys, files): (Keys, Keys) = table
            .clone()
            .into_iter()
            .partition(|(key, _)| own.contains(key));
        let keys = read(&keys)?;
        let files = FilesConfig::read(&files)?;
        if files.keys.kind == "raw" {
            let message = "found \"raw\", which is one file without a name; expected a file system";
            return Err(ConfigError::new("kind", message));
        }
        Ok((keys, files))
    }
}

/// What a host's programs work on.
#[derive(Clone, Debug, PartialEq)]
pub struct FilesConfig {
    keys: FilesKeys,
    /// The file system's own keys.
    own: Keys,
}

impl FilesConfig {
    /// Reads a `[host.files]` table: its keys, and those of the file system.
    ///
    /// # Errors
    /// A key that neither has, an unknown file system or profile, a rate that is none.
    pub fn read(table: &Keys) -> Result<FilesConfig, ConfigError> {
        let known = known_keys(&schema_of::<FilesKeys>());
        let (keys, own): (Keys, Keys) = table
            .clone()
            .into_iter()
            .partition(|(key, _)| known.contains(key));
        let name = match keys.get("kind") {
            Some(Value::String(name)) => name,
            _ => {
                let names: Vec<&str> = REGISTRY.iter().map(|entry| entry.name).collect();
                let message = format!("expected the name of a file system: {}", names.join(", "));
                return Err(ConfigError::new("kind", message));
            }
        };
        let entry = find("file system", REGISTRY, "kind", name)?;
        let of_kind: Vec<String> = known
            .iter()
            .cloned()
            .chain(known_keys(&(entry.schema)()))
            .collect();
        check_known(table, &of_kind)?;
        let keys: FilesKeys = read(&keys)?;
        if let Some(profile) = &keys.age {
            age::profile(profile)?;
        }
        if !(keys.copy_mb_per_s > 0.0 && keys.copy_mb_per_s.is_finite()) {
            let message = format!("found {}; expected a rate above 0", keys.copy_mb_per_s);
            return Err(ConfigError::new("copy_mb_per_s", message));
        }
        Ok(FilesConfig { keys, own })
    }

    /// Whether the file system keeps to tracks.
    pub fn aligns(&self) -> bool {
        self.keys.align.is_some()
    }

    /// Whether windows of read-ahead do.
    pub fn aligns_read_ahead(&self) -> bool {
        self.keys.align_read_ahead.unwrap_or(self.aligns())
    }

    /// The file system on `site`; if `aged`, as the keys say.
    ///
    /// # Errors
    /// A site that is too small for it, at `size` or at one of its own keys.
    pub(crate) fn build(
        &self,
        site: &Site,
        aged: bool,
    ) -> Result<Box<dyn FileSystem>, ConfigError> {
        let capacity = match self.keys.size {
            None => site.capacity,
            Some(size) if size.0 / SECTOR_BYTES <= site.capacity.0 => {
                Sectors(size.0 / SECTOR_BYTES)
            }
            Some(size) => {
                let message = format!("found {size}; the device has {}", site.capacity.bytes());
                return Err(ConfigError::new("size", message));
            }
        };
        let mut system = make(
            &self.keys.kind,
            &self.own,
            &Site {
                capacity,
                ..site.clone()
            },
        )?;
        if let Some(name) = self.keys.age.as_ref().filter(|_| aged) {
            let aged = age::age(&mut *system, age::profile(name)?, site.seed);
            aged.map_err(|error| ConfigError::new("age", error.to_string()))?;
        }
        Ok(system)
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            barrier: self.keys.barrier,
            call_cost: self.keys.call_cost,
            copy_mb_per_s: self.keys.copy_mb_per_s,
        }
    }
}
