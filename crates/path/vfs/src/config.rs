//! The keys of `[host.files]`.

use crate::access_times::AccessTimeRule;
use crate::kernel::KernelSettings;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, check_known, find, known_keys, read, schema_of};
use fullstroke_files::{FileSystem, FileSystemSite, REGISTRY, age, make};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The file system of a host's programs; the common keys of all kinds of file systems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesKeys {
    /// Kind of the file system.
    pub kind: String,
    /// Size of the file system, from the beginning of the device. Default: the whole device.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// Profile of earlier use. Default: a new file system.
    #[serde(default)]
    pub age: Option<String>,
    /// Avoids blocks with sectors of two tracks of the drive below, and ends reserved ranges of a
    /// file with a track (Qian & Wang, section 4.2). Default: no alignment. Available for ext2 and
    /// ext4; only the pre-allocation of ext2 takes whole tracks. The tracks are those of `tracks`
    /// in `[volume]`, or those of the drive. A JBOD and a RAID 1 have tracks, too; a striped volume
    /// has none.
    #[serde(default)]
    pub align: Option<Align>,
    /// True to end a window of read-ahead at the end of a track. Above stripes, the window ends in
    /// the row of chunks at the end of the longest of the members' tracks. Default: true if `align`
    /// is set.
    #[serde(default)]
    pub align_read_ahead: Option<bool>,
    /// True to flush the device's cache where the order of writes or an fsync needs a flush (mount
    /// option `barrier`). Default true.
    #[serde(default = "yes")]
    pub barrier: bool,
    /// Rule for the change of a file's access time by a read (mount options of the same names):
    /// "relatime" at the first read after a change of the file, and once in 24 hours; "strictatime"
    /// at each read; "noatime" never. Default "relatime" for ext4 and today's XFS in a host that is
    /// `like = "linux-6.x"`, else "noatime".
    #[serde(default)]
    pub atime: AccessTimeRule,
    /// Processor time of each call, in addition to waits. Default 1us (assumed).
    #[serde(default = "call_cost")]
    pub call_cost: Duration,
    /// Rate of copies between memory and programs, in 10^6 bytes per second. Default 5000
    /// (assumed).
    #[serde(default = "copy_rate")]
    pub copy_mb_per_s: f64,
}

/// Boundaries for the alignment of files.
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

/// Guests' disks as files of a host, in `[shared.files]`. The table also accepts the keys of
/// `[host.files]`, except the keys for programs and for tracks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiskKeys {
    /// Path of guests' requests to the files. "none" bypasses the page cache, as with O_DIRECT.
    /// "writeback" uses the page cache, as a loop device does. Default "none".
    #[serde(default)]
    pub cache: DiskCache,
    /// Time of the allocation of pages: "full" for all pages at the beginning, "off" for each page
    /// at its first write. Default "full".
    #[serde(default)]
    pub preallocation: Preallocation,
}

/// Path of requests to a disk's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskCache {
    /// Bypasses the page cache.
    #[default]
    None,
    /// Uses the page cache.
    Writeback,
}

/// Time of the allocation of pages of a disk's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Preallocation {
    /// All pages before the run begins.
    #[default]
    Full,
    /// Each page at its first write.
    Off,
}

impl DiskKeys {
    /// Keys of `[host.files]` without meaning for disks in files, each with the reason.
    pub const WITHOUT: [(&'static str, &'static str); 5] = [
        ("align", "guests place their own blocks; remove this key"),
        (
            "atime",
            "the read of a guest changes no access time of the disk's file; remove this key",
        ),
        (
            "align_read_ahead",
            "guests have their own read-ahead; remove this key",
        ),
        (
            "call_cost",
            "the processor time of a request is `cost` of [shared]; remove this key",
        ),
        (
            "copy_mb_per_s",
            "the processor time of a request is `cost` of [shared]; remove this key",
        ),
    ];

    /// Reads a `[shared.files]` table: its own keys and the keys of the file system.
    ///
    /// # Errors
    /// The errors of [`FilesConfig::read`], a key without meaning here, or a file system without
    /// names.
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
        if files.lies_in_pool() && table.contains_key("cache") {
            let message = "the pool has the memory for files, and each access goes through this memory; remove this key";
            return Err(ConfigError::new("cache", message));
        }
        if files.keys.kind == "raw" {
            let message = "found \"raw\", which has no file names; expected a file system";
            return Err(ConfigError::new("kind", message));
        }
        Ok((keys, files))
    }
}

/// The file system of a host's programs.
#[derive(Clone, Debug, PartialEq)]
pub struct FilesConfig {
    keys: FilesKeys,
    /// Keys of this kind of file system.
    own: Keys,
}

impl FilesConfig {
    /// Reads a `[host.files]` table: its own keys and the keys of the file system.
    ///
    /// # Errors
    /// An unknown key, an unknown file system or profile, or an impossible rate.
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
        let files = FilesConfig { keys, own };
        if files.lies_in_pool() {
            files.check_in_pool()?;
        }
        Ok(files)
    }

    /// True if the file system lies in a pool like ZFS, which caches and places its data.
    pub fn lies_in_pool(&self) -> bool {
        self.keys.kind == "zfs"
    }

    /// Refuses keys without meaning for a file system in a pool.
    fn check_in_pool(&self) -> Result<(), ConfigError> {
        let keys = &self.keys;
        let refused = [
            (
                keys.age.is_some(),
                "age",
                "the pool places the data; give scattered = 0.5 in [volume] for data of an old pool",
            ),
            (
                keys.align.is_some(),
                "align",
                "the pool places the data, and no file has a fixed track; remove this key",
            ),
            (
                keys.align_read_ahead.is_some(),
                "align_read_ahead",
                "the pool reads ahead by records; remove this key",
            ),
            (
                !keys.barrier,
                "barrier",
                "found false; for writes without flushes give sync = \"disabled\" in [volume]",
            ),
        ];
        match refused.into_iter().find(|(is_given, ..)| *is_given) {
            Some((_, key, message)) => Err(ConfigError::new(key, message)),
            None => Ok(()),
        }
    }

    /// True if the file system aligns files to tracks.
    pub fn aligns(&self) -> bool {
        self.keys.align.is_some()
    }

    /// True if windows of read-ahead end with tracks.
    pub fn aligns_read_ahead(&self) -> bool {
        self.keys.align_read_ahead.unwrap_or(self.aligns())
    }

    /// Returns the file system on `site`. With `aged`, the file system is aged by the profile of
    /// the keys.
    ///
    /// # Errors
    /// A site without enough space, at the key `size` or at a key of the file system.
    pub(crate) fn build(
        &self,
        site: &FileSystemSite,
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
            &FileSystemSite {
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

    pub(crate) fn settings(&self) -> KernelSettings {
        KernelSettings {
            barrier: self.keys.barrier,
            atime: self.keys.atime,
            call_cost: self.keys.call_cost,
            copy_mb_per_s: self.keys.copy_mb_per_s,
        }
    }
}
