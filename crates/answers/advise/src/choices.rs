//! Numbers of drives, layouts and settings that a request permits.

use fullstroke_units::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Permitted number of drives: a number, or a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Text")]
pub struct DriveCounts {
    least: u32,
    most: u32,
}

/// Largest number of drives.
const DRIVES_MAX: u32 = 64;

/// A count in a file: a number or a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Number(u32),
    Text(String),
}

/// A text that is no number of drives.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "found `{found}`; expected a number of drives from 1 to {DRIVES_MAX}, or a range such as 4..8, written with two dots"
)]
pub struct CountsError {
    found: String,
}

impl TryFrom<Text> for DriveCounts {
    type Error = CountsError;

    fn try_from(text: Text) -> Result<DriveCounts, CountsError> {
        match text {
            Text::Number(count) => count.to_string().parse(),
            Text::Text(text) => text.parse(),
        }
    }
}

impl FromStr for DriveCounts {
    type Err = CountsError;

    fn from_str(text: &str) -> Result<DriveCounts, CountsError> {
        let wrong = || CountsError {
            found: text.to_owned(),
        };
        let (least, most) = text.split_once("..").unwrap_or((text, text));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let (least, most) = (number(least)?, number(most)?);
        if least == 0 || least > most || most > DRIVES_MAX {
            return Err(wrong());
        }
        Ok(DriveCounts { least, most })
    }
}

impl DriveCounts {
    /// Returns every number of the range.
    pub fn each(self) -> Vec<u32> {
        assert!(
            1 <= self.least && self.least <= self.most,
            "{} to {} drives",
            self.least,
            self.most
        );
        (self.least..=self.most).collect()
    }
}

/// A RAID controller between host and drives, with this much battery-backed memory; `None` means no
/// controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Controller(pub Option<Bytes>);

/// A text that is no controller.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found `{found}`; expected none, or the memory of a controller such as 1GiB")]
pub struct ControllerError {
    found: String,
}

impl TryFrom<String> for Controller {
    type Error = ControllerError;

    fn try_from(text: String) -> Result<Controller, ControllerError> {
        match text.as_str() {
            "none" => Ok(Controller(None)),
            size => size
                .parse()
                .map(|size| Controller(Some(size)))
                .map_err(|_| ControllerError {
                    found: text.clone(),
                }),
        }
    }
}

impl From<Controller> for String {
    fn from(controller: Controller) -> String {
        controller.to_string()
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(memory) => memory.fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// A cache on a flash device in front of the array; `None` means no cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FrontCache(pub Option<CacheShape>);

/// The kind, the mode and the size of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheShape {
    /// Kind of the cache, as in a stack file.
    pub kind: String,
    /// Mode; `None` means the default of the kind.
    pub mode: Option<String>,
    /// Size with the metadata.
    pub size: Bytes,
}

/// A text that is no cache.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "found `{found}`; expected none, the size of a bcache such as 4GiB, or kind, mode and size such as dm-cache:writeback:4GiB"
)]
pub struct FrontCacheError {
    found: String,
}

/// Kind of a cache without one.
const DEFAULT_KIND: &str = "bcache";

impl TryFrom<String> for FrontCache {
    type Error = FrontCacheError;

    fn try_from(text: String) -> Result<FrontCache, FrontCacheError> {
        if text == "none" {
            return Ok(FrontCache(None));
        }
        let wrong = || FrontCacheError {
            found: text.clone(),
        };
        let parts: Vec<&str> = text.split(':').collect();
        let (kind, mode, size) = match parts.as_slice() {
            [size] => (DEFAULT_KIND, None, size),
            [kind, size] => (*kind, None, size),
            [kind, mode, size] => (*kind, Some((*mode).to_owned()), size),
            _ => return Err(wrong()),
        };
        let size: Bytes = size.parse().map_err(|_| wrong())?;
        if kind.is_empty() || mode.as_deref() == Some("") || size.0 == 0 {
            return Err(wrong());
        }
        Ok(FrontCache(Some(CacheShape {
            kind: kind.to_owned(),
            mode,
            size,
        })))
    }
}

impl From<FrontCache> for String {
    fn from(cache: FrontCache) -> String {
        cache.to_string()
    }
}

impl fmt::Display for FrontCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(CacheShape { kind, mode, size }) = &self.0 else {
            return f.write_str("none");
        };
        write!(f, "{kind}:")?;
        if let Some(mode) = mode {
            write!(f, "{mode}:")?;
        }
        write!(f, "{size}")
    }
}

/// Layouts and settings to try.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Choices {
    /// Names of layouts. The name of a pool may have a shape: `raidz1:4` has vdevs of 4 drives,
    /// `draid2:4d:1s` has groups of 4 data drives and a distributed spare. `raidz2:3special:1log` has
    /// a special vdev of three flash drives and a log drive of flash beside the disks.
    pub layouts: Vec<String>,
    /// Model of the flash drives of special vdevs and logs of pools, and of the device of each
    /// cache in `caches`. Default nvme-tlc-1tb.
    pub flash: String,
    /// Chunk sizes.
    pub chunks: Vec<String>,
    /// Elevators of the host.
    pub elevators: Vec<String>,
    /// States of the drives' write caches to try: true for on.
    pub write_caches: Vec<bool>,
    /// Sizes of the stripe cache of layouts with parity, in stripes: 17 to 32768 for an array like
    /// md. 0 means no cache, and only an array like `ideal` has none. Default 256, the default of
    /// md, and 4096.
    pub stripe_caches: Vec<u32>,
    /// Sizes of records of pools. Default 16KiB, 128KiB and 1MiB.
    pub recordsizes: Vec<String>,
    /// Controllers, each tried with every layout. Default: none, because a controller costs extra.
    pub controllers: Vec<Controller>,
    /// Caches on a flash device in front of the array, each tried with every layout: `none`,
    /// `4GiB`, `bcache:writeback:4GiB`. Default: none, because a flash device costs extra.
    pub caches: Vec<FrontCache>,
}

impl Default for Choices {
    fn default() -> Choices {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Choices {
            layouts: all(&["raid10", "raid5", "raid6", "raid0"]),
            flash: "nvme-tlc-1tb".to_owned(),
            chunks: all(&["64KiB", "256KiB", "1MiB"]),
            elevators: all(&["mq-deadline", "bfq"]),
            write_caches: vec![true, false],
            // 256 is md's default (`NR_STRIPES` in raid5.c).
            stripe_caches: vec![256, 4096],
            recordsizes: all(&["16KiB", "128KiB", "1MiB"]),
            controllers: vec![Controller(None)],
            caches: vec![FrontCache(None)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_a_size_or_a_kind_with_a_mode() {
        let read = |text: &str| FrontCache::try_from(text.to_owned());
        assert_eq!(read("none"), Ok(FrontCache(None)));
        for (text, shown) in [
            ("4GiB", "bcache:4GiB"),
            ("dm-writecache:1GiB", "dm-writecache:1GiB"),
            ("dm-cache:writeback:1GiB", "dm-cache:writeback:1GiB"),
        ] {
            assert_eq!(read(text).unwrap().to_string(), shown);
        }
        for text in [
            "",
            "4",
            "bcache",
            "0GiB",
            "a:b:c:4GiB",
            "bcache::4GiB",
            ":4GiB",
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(&format!("found `{text}`")), "{error}");
        }
    }
}
