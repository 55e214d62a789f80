//! The keys of a drive with shingled tracks.

use crate::config::{BufferConfig, ElectronicsConfig, is_default};
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time for which a stream may pause before its last, incomplete band goes to the cache.
const STREAM_PAUSE: Duration = Duration::from_millis(100);

/// Shingled tracks behind the interface of a conventional drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShingledConfig {
    /// Size of a band.
    pub band: Bytes,
    /// Size of the persistent cache on the medium.
    pub cache: Bytes,
    /// Room in the cache that each flush takes: the record of the map, and the rest of the track.
    /// Default 0.
    #[serde(default)]
    pub flush_record: Bytes,
    /// Largest write to the cache at once. Default 1MiB.
    #[serde(default = "one_mebibyte")]
    pub piece: Bytes,
    /// Length of a sequential stream after which whole bands are written in place, past the cache.
    /// A flush ends a stream. Default: the size of a band.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Bytes>,
    /// Largest number of extents in the map. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extents: Option<u32>,
    /// When bands are cleaned. A full cache is always cleaned. Default `aggressive`.
    #[serde(default)]
    pub cleaning: Cleaning,
    /// Idle time after which cleaning begins. Default 1s.
    #[serde(default = "one_second")]
    pub idle: Duration,
    /// Share of the cache in use above which `lazy` cleans, 0 to 1. Default 0.5.
    #[serde(default = "half")]
    pub lazy_above: f64,
    /// Number of bands that a drive with a full cache cleans before writes go on, unless the cache
    /// is empty before. Default 1.
    #[serde(default = "one")]
    pub forced_bands: u32,
    /// True if a full cache moves data: the drive reads the oldest part of the log, one band long,
    /// and writes the valid data to the end of the log, where this makes more room for the
    /// transferred data than cleaning. Default false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub moves: bool,
    /// True if the drive takes discards. Default false.
    #[serde(default)]
    pub trim: bool,
}

/// When bands are cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cleaning {
    /// In idle time, until the cache is empty.
    #[default]
    Aggressive,
    /// In idle time, while more than `lazy_above` of the cache is in use.
    Lazy,
    /// When the cache is full only.
    Full,
}

fn one_mebibyte() -> Bytes {
    Bytes(1 << 20)
}

fn one_second() -> Duration {
    Duration::from_secs(1)
}

fn one() -> u32 {
    1
}

fn half() -> f64 {
    0.5
}

/// The checked keys, in sectors.
#[derive(Clone, Debug)]
pub(crate) struct Shingles {
    pub(super) capacity: u64,
    pub(super) band: u64,
    pub(super) cache: u64,
    pub(super) record: u64,
    pub(super) piece: u64,
    pub(super) stream: u64,
    pub(super) extents: usize,
    pub(super) idle: Duration,
    /// Sectors in use above which idle time is used for cleaning.
    pub(super) clean_above: u64,
    /// Bands cleaned for a full cache.
    pub(super) forced_bands: u64,
    pub(super) moves: bool,
    /// Free sectors of the cache that only moves use.
    pub(super) reserve: u64,
    pub(super) trim: bool,
    /// Size of the volatile buffer for writes. 0 if writes complete on the medium.
    pub(super) buffer: u64,
    pub(super) pause: Duration,
    pub(super) hit_overhead: Duration,
    pub(super) bus_each: Duration,
}

impl Shingles {
    /// Returns the idle time after which bands are cleaned. `None` if only a full cache is cleaned.
    pub(crate) fn cleans_after(&self) -> Option<Duration> {
        (self.clean_above < u64::MAX).then_some(self.idle)
    }
}

impl ShingledConfig {
    /// Checks the keys for a drive.
    ///
    /// # Errors
    /// Names the key, the value found and the value expected.
    pub(crate) fn check(
        &self,
        capacity: Sectors,
        buffer: Option<&BufferConfig>,
        electronics: &ElectronicsConfig,
    ) -> Result<Shingles, ConfigError> {
        let sectors = |bytes: Bytes| bytes.0 / SECTOR_BYTES;
        self.check_sizes(capacity)?;
        self.check_cleaning()?;
        let (band, cache, piece) = (sectors(self.band), sectors(self.cache), sectors(self.piece));
        let record = sectors(self.flush_record);
        let of_buffer = |buffer: &BufferConfig| {
            let whole = u64::from(buffer.segments) * u64::from(buffer.segment_sectors);
            buffer.sectors.map_or(whole, u64::from)
        };
        let clean_above = match self.cleaning {
            Cleaning::Aggressive => 0,
            Cleaning::Lazy => (self.lazy_above * cache as f64) as u64,
            Cleaning::Full => u64::MAX,
        };
        Ok(Shingles {
            capacity: capacity.0,
            band,
            cache,
            record,
            piece,
            stream: self.stream.map_or(band, sectors),
            extents: self.extents.map_or(usize::MAX, |extents| extents as usize),
            idle: self.idle,
            clean_above,
            forced_bands: u64::from(self.forced_bands),
            moves: self.moves,
            reserve: if self.moves { band + record } else { 0 },
            trim: self.trim,
            buffer: buffer
                .filter(|buffer| buffer.write_back)
                .map_or(0, of_buffer),
            pause: STREAM_PAUSE,
            hit_overhead: Duration::from_millis_f64(electronics.hit_overhead_ms.unwrap_or(0.0)),
            bus_each: Duration::from_millis_f64(electronics.bus_write_ms_per_sector),
        })
    }

    /// Checks the sizes.
    fn check_sizes(&self, capacity: Sectors) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        let sectors = |bytes: Bytes| bytes.0 / SECTOR_BYTES;
        for (key, bytes) in [
            ("band", self.band),
            ("cache", self.cache),
            ("piece", self.piece),
        ] {
            if bytes.0 == 0 || !bytes.0.is_multiple_of(4096) {
                let message =
                    format!("found {bytes}; expected a multiple of 4 KiB, and more than 0");
                return refuse(key, message);
            }
        }
        let (band, cache, piece) = (sectors(self.band), sectors(self.cache), sectors(self.piece));
        if band > capacity.0 {
            return refuse(
                "band",
                format!("found {}; the drive has {}", self.band, capacity.bytes()),
            );
        }
        if cache > capacity.0 / 2 {
            let message = format!(
                "found {}; expected at most half of the drive, {}",
                self.cache,
                Sectors(capacity.0 / 2).bytes()
            );
            return refuse("cache", message);
        }
        let record = sectors(self.flush_record);
        let reserve = if self.moves { 2 * band } else { 0 };
        let least = 2 * (piece + record) + reserve;
        if cache < least {
            let message = format!(
                "found {}; a cache of less than two pieces with their records, and of two bands with moves, {}, could not take a write while an older one is cleaned",
                self.cache,
                Sectors(least).bytes()
            );
            return refuse("cache", message);
        }
        Ok(())
    }

    /// Checks the keys of cleaning.
    fn check_cleaning(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        if !(0.0..=1.0).contains(&self.lazy_above) {
            let message = format!("found {}; expected 0 to 1", self.lazy_above);
            return refuse("lazy_above", message);
        }
        if self.forced_bands == 0 {
            return refuse("forced_bands", "found 0; expected 1 or more".into());
        }
        if self.lazy_above >= 1.0 && self.cleaning == Cleaning::Lazy {
            let message = "found 1, which a cache is never above; expected less than 1, or cleaning = \"full\"";
            return refuse("lazy_above", message.into());
        }
        if self.extents.is_some_and(|extents| extents < 2) {
            return refuse("extents", "found fewer than 2; expected 2 or more".into());
        }
        Ok(())
    }
}
