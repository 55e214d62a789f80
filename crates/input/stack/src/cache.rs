//! The cache on a flash device in front of the volume: the table `[cache]`.

use crate::document::Document;
use crate::folder::Folder;
use crate::{StackError, drives};
use fullstroke_blockcache::{BlockCache, BuildCache, CACHE_REGISTRY, CacheSite};
use fullstroke_contract::registry::{Keys, PolicyEntry, check_known, find, known_keys};
use fullstroke_contract::{Branch, ConfigError};
use fullstroke_drive::DriveModel;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors, Seed, Time};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Keys of each cache, beside the keys of its kind.
const KEYS: [&str; 6] = ["kind", "drive", "drive_settings", "size", "lost_at", "warm"];

/// Description of a cache.
#[derive(Clone)]
pub(crate) struct CacheSpec {
    entry: &'static PolicyEntry<BuildCache>,
    keys: Keys,
    drive: DriveModel,
    size: Sectors,
    lost_at: Time,
    /// Sectors of the array whose clean data are in the cache at the start.
    warm: Sectors,
}

impl CacheSpec {
    /// Reads the table `[cache]`, if the file has one.
    ///
    /// # Errors
    /// If the kind, a key or the drive is unknown, or if the size does not fit.
    pub(crate) fn read(
        document: &Document,
        folder: &Folder,
    ) -> Result<Option<CacheSpec>, StackError> {
        if !document.values().contains_key("cache") {
            return Ok(None);
        }
        let fail = |error: ConfigError| document.error(error.below("cache"));
        let mut keys = document
            .section("cache")
            .map_err(|error| document.error(error))?;
        let names: Vec<&str> = CACHE_REGISTRY.iter().map(|entry| entry.name).collect();
        let names = names.join(", ");
        let kind = text(&mut keys, "kind", &names).map_err(fail)?;
        let entry = find("cache", CACHE_REGISTRY, "kind", &kind).map_err(fail)?;
        // The keys of the kind are checked here, together with the common keys, so that one message
        // lists both.
        let own = known_keys(&(entry.schema)()).into_iter();
        let known: Vec<String> = own.chain(KEYS.map(str::to_owned)).collect();
        check_known(&keys, &known).map_err(fail)?;
        let name = text(
            &mut keys,
            "drive",
            "a drive of the library or a drive file, such as \"samsung-870-evo-1tb\"",
        );
        let name = name.map_err(fail)?;
        let settings = match keys.remove("drive_settings") {
            None => Map::new(),
            Some(Value::Object(settings)) => settings,
            Some(other) => {
                let message = format!("found {other}; expected a table of drive keys");
                return Err(fail(ConfigError::new("drive_settings", message)));
            }
        };
        let drive = drives::load_with(&name, folder, &settings)?;
        let all = drive.config().capacity_sectors;
        let size = match take::<Bytes>(&mut keys, "size").map_err(fail)? {
            None => all,
            Some(size) if size.0 > 0 && size.0 <= all.bytes().0 => Sectors(size.0 / SECTOR_BYTES),
            Some(size) => {
                let message = format!("found {size}; the drive has {}", all.bytes());
                return Err(fail(ConfigError::new("size", message)));
            }
        };
        let lost_at = take::<Duration>(&mut keys, "lost_at").map_err(fail)?;
        let warm = take::<Bytes>(&mut keys, "warm").map_err(fail)?;
        Ok(Some(CacheSpec {
            entry,
            keys,
            drive,
            size,
            lost_at: lost_at.map_or(Time::NEVER, |lost| Time::ZERO.saturating_add(lost)),
            warm: Sectors(warm.unwrap_or_default().0 / SECTOR_BYTES),
        }))
    }

    /// Puts the cache in front of `array`, which has `origin` sectors.
    ///
    /// # Errors
    /// Names the invalid key of the cache.
    pub(crate) fn before(
        &self,
        array: Branch,
        origin: Sectors,
        seed: Seed,
    ) -> Result<Branch, ConfigError> {
        let site = CacheSite {
            origin,
            cache: self.size,
            seed,
        };
        let rule = (self.entry.build)(&self.keys, site).map_err(|error| error.below("cache"))?;
        let mut node = BlockCache::new(self.entry.name, rule, origin, self.lost_at);
        if self.warm > origin {
            let message = format!(
                "found {}; the array has {}",
                self.warm.bytes(),
                origin.bytes()
            );
            return Err(ConfigError::new("cache.warm", message));
        }
        // The rule decides about the place: buckets of bcache and the ways of dm-cache may leave a
        // part of the device without room for clean data.
        let placed = node.warm(self.warm);
        if placed < self.warm {
            let message = match placed {
                Sectors::ZERO => format!(
                    "found {}; {} has no room for clean data. Remove this key, or give the cache more room",
                    self.warm.bytes(),
                    self.entry.name
                ),
                placed => format!(
                    "found {}; the cache has room for {} of clean data",
                    self.warm.bytes(),
                    placed.bytes()
                ),
            };
            return Err(ConfigError::new("cache.warm", message));
        }
        let flash = self.drive.branch().map_err(|error| error.below("cache"))?;
        Ok(Branch::volume(Box::new(node), vec![array, flash]))
    }

    /// Returns the model of the flash device.
    pub(crate) fn drive(&self) -> &DriveModel {
        &self.drive
    }
}

fn text(keys: &mut Keys, key: &str, expected: &str) -> Result<String, ConfigError> {
    match keys.remove(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(ConfigError::new(
            key,
            format!("found {other}; expected {expected}"),
        )),
        None => Err(ConfigError::new(
            key,
            format!("found none; expected {expected}"),
        )),
    }
}

fn take<T: DeserializeOwned>(keys: &mut Keys, key: &str) -> Result<Option<T>, ConfigError> {
    let Some(value) = keys.remove(key) else {
        return Ok(None);
    };
    let read = serde_json::from_value(value);
    read.map(Some)
        .map_err(|error| ConfigError::new(key, error.to_string()))
}

/// Returns the keys of every cache for the schema and the reference.
pub(crate) fn common_keys() -> Map<String, Value> {
    let keys = json!({
        "drive": { "type": "string", "description": "the flash device: a drive of the library, or a drive file relative to the stack file; needed" },
        "drive_settings": { "type": "object", "description": "keys of the drive file that get other values" },
        "size": { "type": ["string", "integer"], "description": "size of the cache with its metadata; default: the whole drive" },
        "warm": { "type": ["string", "integer"], "description": "size of the part of the array, from its first address on, that the cache holds clean at the start of a run; default: 0, an empty cache" },
        "lost_at": { "type": ["string", "integer"], "description": "time after the start of a run at which the flash device fails for good, such as 30s; default: never" },
    });
    match keys {
        Value::Object(keys) => keys,
        _ => Map::new(),
    }
}
