//! The keys of a flash device.

use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Largest number of units. A larger number is a mistake.
const UNITS_MAX: u32 = 1024;

/// A flash device, as its data sheet describes the device. All other keys of a drive file but
/// `title`, `capacity_sectors` and `sources` are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlashConfig {
    /// Time of a read before the transfer of its data. A data sheet's latency of a read of 4 KiB
    /// contains the transfer.
    pub read_latency: Duration,
    /// Time of a write before the transfer of its data. The device answers when its buffer has the
    /// data.
    pub write_latency: Duration,
    /// Number of commands that the device works on at once. Default 32.
    #[serde(default = "thirty_two")]
    pub parallelism: u32,
    /// Sequential reads in 10^6 bytes a second.
    pub read_mb_per_s: f64,
    /// Sequential writes in 10^6 bytes a second, while the write cache has room.
    pub write_mb_per_s: f64,
    /// Largest number of reads a second. Default: no limit but latency and rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<f64>,
    /// Largest number of writes a second. Default: no limit but latency and rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<f64>,
    /// Size of the write cache. Default: no write cache; writes have `write_mb_per_s` for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<Bytes>,
    /// Writes in 10^6 bytes a second when the write cache is full, and rate at which an idle device
    /// empties the cache. Needed with `write_cache`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_mb_per_s: Option<f64>,
    /// Idle time before the device begins to empty its write cache. Default 1s.
    #[serde(default = "one_second")]
    pub idle: Duration,
    /// Time of a flush after the earlier writes. Default 0, as with protection against a loss of
    /// power.
    #[serde(default)]
    pub flush_latency: Duration,
    /// Bytes, in 10^12, that the maker lets a host write over the life of the device (TBW).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endurance_tb: Option<f64>,
    /// Watts of an idle device. Energy is counted if the three watts are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_w: Option<f64>,
    /// Watts while reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_w: Option<f64>,
    /// Watts while writing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_w: Option<f64>,
}

fn thirty_two() -> u32 {
    32
}

fn one_second() -> Duration {
    Duration::from_secs(1)
}

/// The checked keys.
#[derive(Clone, Debug)]
pub(crate) struct Flash {
    pub(super) capacity: Sectors,
    pub(super) read: FlashPath,
    pub(super) write: FlashPath,
    pub(super) units: usize,
    /// Write cache in sectors. `u64::MAX` without a cache.
    pub(super) cache: u64,
    /// Time of a sector behind the write cache, in ns.
    pub(super) behind_ns: f64,
    pub(super) idle: Duration,
    pub(super) flush: Duration,
    /// Bytes of the endurance.
    pub(super) endurance: Option<f64>,
}

/// The times of reads, or of writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlashPath {
    pub(super) latency: Duration,
    /// Time of a sector in ns.
    pub(super) sector_ns: f64,
    /// Least time between two commands.
    pub(super) least: Duration,
}

impl FlashConfig {
    /// Checks the keys.
    ///
    /// # Errors
    /// Names the key, the value found and the value expected.
    pub(crate) fn check(&self, capacity: Sectors) -> Result<Flash, ConfigError> {
        if !(1..=UNITS_MAX).contains(&self.parallelism) {
            let message = format!("found {}; expected 1 to {UNITS_MAX}", self.parallelism);
            return Err(ConfigError::new("parallelism", message));
        }
        let path = |latency, rate_key, rate, iops_key, iops: Option<f64>| {
            Ok(FlashPath {
                latency,
                sector_ns: sector_ns(rate_key, rate)?,
                least: match iops {
                    None => Duration::ZERO,
                    Some(iops) => Duration::from_nanos((1e9 / positive(iops_key, iops)?) as u64),
                },
            })
        };
        let endurance = self.endurance_tb;
        let endurance = endurance.map(|tb| positive("endurance_tb", tb));
        Ok(Flash {
            capacity,
            read: path(
                self.read_latency,
                "read_mb_per_s",
                self.read_mb_per_s,
                "read_iops",
                self.read_iops,
            )?,
            write: path(
                self.write_latency,
                "write_mb_per_s",
                self.write_mb_per_s,
                "write_iops",
                self.write_iops,
            )?,
            units: self.parallelism as usize,
            cache: self.cache(capacity)?,
            behind_ns: match self.behind_mb_per_s {
                Some(rate) => sector_ns("behind_mb_per_s", rate)?,
                None => 0.0,
            },
            idle: self.idle,
            flush: self.flush_latency,
            endurance: endurance.transpose()?.map(|tb| tb * 1e12),
        })
    }

    /// Returns the size of the write cache in sectors.
    fn cache(&self, capacity: Sectors) -> Result<u64, ConfigError> {
        match (self.write_cache, self.behind_mb_per_s) {
            (None, None) => Ok(u64::MAX),
            (None, Some(rate)) => {
                let message = format!(
                    "found {rate} without write_cache; a device without a write cache has one rate of writes. Add write_cache, or remove this key"
                );
                Err(ConfigError::new("behind_mb_per_s", message))
            }
            (Some(cache), None) => {
                let message =
                    format!("found none; a write cache of {cache} needs the rate when it is full");
                Err(ConfigError::new("behind_mb_per_s", message))
            }
            (Some(cache), Some(rate)) => {
                if rate > self.write_mb_per_s {
                    let message = format!(
                        "found {rate}; expected at most write_mb_per_s, {}",
                        self.write_mb_per_s
                    );
                    return Err(ConfigError::new("behind_mb_per_s", message));
                }
                if cache.0 == 0 || cache.0 > capacity.bytes().0 {
                    let message = format!(
                        "found {cache}; expected more than 0, and at most the device, {}",
                        capacity.bytes()
                    );
                    return Err(ConfigError::new("write_cache", message));
                }
                Ok(cache.0 / SECTOR_BYTES)
            }
        }
    }
}

fn positive(key: &str, value: f64) -> Result<f64, ConfigError> {
    match value.is_finite() && value > 0.0 && value < 1e9 {
        true => Ok(value),
        false => Err(ConfigError::new(
            key,
            format!("found {value}; expected a number above 0"),
        )),
    }
}

/// Returns the time of a sector in ns.
fn sector_ns(key: &str, mb_per_s: f64) -> Result<f64, ConfigError> {
    Ok(SECTOR_BYTES as f64 * 1e3 / positive(key, mb_per_s)?)
}

/// Sectors of a nominal track of a flash device.
const TRACK: u64 = 8192;

/// Fills the keys of a drive file that describe arm and platters, if the file describes a flash
/// device. The nominal tracks have the rate of reads, and a seek takes a microsecond, so that code about
/// tracks has something to look at. [`FlashConfig`] alone decides the times of requests.
pub fn complete_flash(values: &mut Map<String, Value>) {
    let Some(Value::Object(flash)) = values.get("flash").cloned() else {
        return;
    };
    let number = |key: &str| flash.get(key).and_then(Value::as_f64);
    let capacity = values.get("capacity_sectors").and_then(Value::as_u64);
    let tracks = capacity.unwrap_or(TRACK).div_ceil(TRACK).max(2);
    let spares = (tracks * TRACK).saturating_sub(capacity.unwrap_or(TRACK));
    let rate = number("read_mb_per_s").filter(|rate| *rate > 0.0);
    let rpm = rate.unwrap_or(100.0) * 1e6 / (TRACK * SECTOR_BYTES) as f64 * 60.0;
    let zone = json!({ "first_cylinder": 0, "last_cylinder": tracks - 1, "sectors_per_track": TRACK, "spares": spares });
    let seek = json!({ "form": "points", "points": [[1, 0.001], [tracks - 1, 0.001]] });
    let mut power = Map::new();
    if let (Some(idle), Some(read), Some(write)) =
        (number("idle_w"), number("read_w"), number("write_w"))
    {
        power.extend([
            ("seek_w".to_owned(), json!(read.max(idle))),
            ("rotate_w".to_owned(), json!(idle)),
            ("read_w".to_owned(), json!(read)),
            ("write_w".to_owned(), json!(write)),
            ("idle_a_w".to_owned(), json!(idle)),
            ("standby_w".to_owned(), json!(idle)),
            ("spin_up_j".to_owned(), json!(0.0)),
            ("spin_down_j".to_owned(), json!(0.0)),
            ("spin_up_ms".to_owned(), json!(0.0)),
            ("spin_down_ms".to_owned(), json!(0.0)),
        ]);
    }
    let mut nominal = vec![
        ("rpm", json!((rpm * 1000.0).round() / 1000.0)),
        ("surfaces", json!(1)),
        ("zones", json!([zone])),
        ("seek", seek),
    ];
    if !power.is_empty() {
        nominal.push(("power", Value::Object(power)));
    }
    for (key, value) in nominal {
        values.entry(key).or_insert(value);
    }
}
