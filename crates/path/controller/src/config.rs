//! The keys of a controller in a stack file.

use crate::discipline;
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{Keys, find};
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest number of commands in any controller.
const DEPTH_MAX: u32 = 1 << 16;

/// Largest number of memory blocks. A larger number is a mistake.
const BLOCKS_MAX: u64 = 1 << 22;

/// Number of sectors in a mebibyte.
const MIB_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

/// Largest number of sectors in a block, because the sectors of a block are the bits of one word.
pub(crate) const BLOCK_SECTORS_MAX: u64 = 64;

/// The keys of a controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ControllerConfig {
    /// Number of commands inside the controller. Further commands wait in front. Default 512.
    #[serde(default = "full_depth")]
    pub queue_depth: u32,
    /// Number of I/Os in flight to the array. Default `queue_depth`. The discipline orders only the
    /// I/Os beyond this number.
    pub array_depth: Option<u32>,
    /// Discipline for the choice of the next I/O to the array. Default `fcfs`.
    #[serde(default = "fcfs")]
    pub discipline: String,
    /// Size of the memory. Default 256MiB.
    #[serde(default = "quarter_gib")]
    pub memory: Bytes,
    /// Share of the memory that caches reads, 0 to 1. Default 0.5.
    #[serde(default = "half")]
    pub read_share: f64,
    /// Share of the memory that buffers writes, 0 to 1. Default: the rest.
    pub write_share: Option<f64>,
    /// Block size of the memory, 512B to 32KiB. Default 16KiB.
    #[serde(default = "sixteen_kib")]
    pub block: Bytes,
    /// True if a battery keeps the memory during a power failure. Default true.
    #[serde(default = "yes")]
    pub battery: bool,
    /// True if a write completes when the data are in memory. Default: the value of `battery`.
    pub write_back: Option<bool>,
    /// Length of read-ahead for a sequential reader; 0 means no read-ahead (default).
    #[serde(default)]
    pub read_ahead: Bytes,
    /// Number of consecutive reads of a stream before read-ahead begins. Default 2.
    #[serde(default = "two")]
    pub sequential_after: u32,
    /// Number of sequential readers to tell apart. Default 32.
    #[serde(default = "thirty_two")]
    pub streams: u32,
    /// Rate of the link to the host, in 10^6 bytes a second. Default: no limit.
    pub link_mb_per_s: Option<f64>,
    /// Processor time for each command. Default 0.
    #[serde(default)]
    pub command_overhead: Duration,
    /// Rules of destaging.
    #[serde(default)]
    pub destage: DestageConfig,
}

/// Rules of destaging (writing dirty data to the array).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DestageConfig {
    /// Dirty share of the write buffer above which destaging begins in any case. Default 0.8.
    #[serde(default = "most")]
    pub high_watermark: f64,
    /// Dirty share of the write buffer at which destaging ends. Default 0.5.
    #[serde(default = "half")]
    pub low_watermark: f64,
    /// Idle time of the host before destaging begins as well. Default 50ms.
    #[serde(default = "fifty_ms")]
    pub idle_delay: Duration,
    /// Largest number of I/Os with dirty data in flight. Default 16.
    #[serde(default = "sixteen")]
    pub depth: u32,
    /// Size of an aligned piece. Neighbouring dirty blocks in one piece are written together.
    /// Default: a full stripe of the array (the chunk times the members with data), or 1MiB without
    /// stripes.
    pub unit: Option<Bytes>,
}

impl Default for DestageConfig {
    fn default() -> DestageConfig {
        DestageConfig {
            high_watermark: most(),
            low_watermark: half(),
            idle_delay: fifty_ms(),
            depth: sixteen(),
            unit: None,
        }
    }
}

fn full_depth() -> u32 {
    // 512 is the depth of the P600 controller in Carroll's thesis (I/O scheduling on RAID).
    512
}
fn fcfs() -> String {
    "fcfs".into()
}
fn quarter_gib() -> Bytes {
    // 256 MiB, half for reads and half for writes, are those of the P600 in Carroll's thesis.
    Bytes(256 << 20)
}
fn sixteen_kib() -> Bytes {
    Bytes(16 << 10)
}
fn half() -> f64 {
    0.5
}
fn most() -> f64 {
    0.8
}
fn yes() -> bool {
    true
}
fn two() -> u32 {
    2
}
fn sixteen() -> u32 {
    16
}
fn thirty_two() -> u32 {
    32
}
fn fifty_ms() -> Duration {
    Duration::from_millis(50)
}

/// Constant values of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants {
    pub(crate) array_depth: u32,
    pub(crate) write_back: bool,
    /// Occupied blocks above which destaging begins, and dirty blocks at which destaging ends.
    pub(crate) high_blocks: usize,
    pub(crate) low_blocks: usize,
    /// Number of blocks in one destage unit.
    pub(crate) unit_blocks: u64,
}

/// The checked keys in the units of the layer.
pub(crate) struct Resolved {
    pub(crate) constants: Constants,
    pub(crate) block_sectors: u64,
    pub(crate) read_blocks: usize,
    pub(crate) write_blocks: usize,
    pub(crate) read_ahead: Sectors,
    pub(crate) discipline: Box<dyn discipline::ControllerDiscipline>,
}

impl ControllerConfig {
    /// Checks the keys. `stripe` is the full stripe of the array.
    ///
    /// # Errors
    /// Names the invalid key.
    pub(crate) fn resolve(&self, stripe: Option<Sectors>) -> Result<Resolved, ConfigError> {
        let array_depth = self.array_depth.unwrap_or(self.queue_depth);
        for (key, depth) in [
            ("queue_depth", self.queue_depth),
            ("array_depth", array_depth),
            ("destage.depth", self.destage.depth),
            ("sequential_after", self.sequential_after),
            ("streams", self.streams),
        ] {
            if !(1..=DEPTH_MAX).contains(&depth) {
                return Err(ConfigError::new(
                    key,
                    format!("found {depth}; expected 1 to {DEPTH_MAX}"),
                ));
            }
        }
        if self
            .link_mb_per_s
            .is_some_and(|rate| !(rate.is_finite() && rate > 0.0))
        {
            let message = "expected 10^6 bytes a second, above 0, or no key for no limit";
            return Err(ConfigError::new("link_mb_per_s", message));
        }
        let discipline = find(
            "discipline",
            discipline::REGISTRY,
            "discipline",
            &self.discipline,
        )
        .and_then(|entry| (entry.build)(&Keys::new()))?;
        let block_sectors = self.block_sectors()?;
        let (read_blocks, write_blocks) = self.split(block_sectors)?;
        let write_back = self.write_back(write_blocks)?;
        let (high_blocks, low_blocks) = self.watermarks(write_blocks)?;
        let read_ahead = self.read_ahead_sectors(read_blocks as u64 * block_sectors)?;
        let unit_blocks = self.unit_blocks(block_sectors, stripe)?;
        Ok(Resolved {
            constants: Constants {
                array_depth,
                write_back,
                high_blocks,
                low_blocks,
                unit_blocks,
            },
            block_sectors,
            read_blocks,
            write_blocks,
            read_ahead,
            discipline,
        })
    }

    fn block_sectors(&self) -> Result<u64, ConfigError> {
        match self.block.sectors() {
            Some(Sectors(sectors)) if (1..=BLOCK_SECTORS_MAX).contains(&sectors) => Ok(sectors),
            _ => Err(ConfigError::new(
                "block",
                format!(
                    "found {}; expected a multiple of 512B up to 32KiB",
                    self.block
                ),
            )),
        }
    }

    /// Returns the number of blocks for reads and for writes.
    fn split(&self, block_sectors: u64) -> Result<(usize, usize), ConfigError> {
        let write_share = self.write_share.unwrap_or(1.0 - self.read_share);
        for (key, share) in [
            ("read_share", self.read_share),
            ("write_share", write_share),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return Err(ConfigError::new(
                    key,
                    format!("found {share}; expected 0 to 1"),
                ));
            }
        }
        // 1e-9 forgives the rounding of two decimal shares, such as 0.7 and 0.3.
        if self.read_share + write_share > 1.0 + 1e-9 {
            let message = format!(
                "found {write_share}, which with read_share = {} is more than the memory; \
                 expected both to add up to 1 at most",
                self.read_share
            );
            return Err(ConfigError::new("write_share", message));
        }
        let blocks = self.memory.0 / (block_sectors * SECTOR_BYTES);
        if blocks > BLOCKS_MAX {
            let message = format!(
                "found {}, which are {blocks} blocks of {}; expected {BLOCKS_MAX} at most: \
                 give less memory or a larger `block`",
                self.memory, self.block
            );
            return Err(ConfigError::new("memory", message));
        }
        let part = |key: &str, share: f64| match (share * blocks as f64).round() as usize {
            // A share above 0 that rounds to no block would silently switch the cache off.
            0 if share > 0.0 => Err(ConfigError::new(
                "memory",
                format!(
                    "found {}; its {key} of {share} does not hold one block of {}",
                    self.memory, self.block
                ),
            )),
            part => Ok(part),
        };
        Ok((
            part("read_share", self.read_share)?,
            part("write_share", write_share)?,
        ))
    }

    fn write_back(&self, write_blocks: usize) -> Result<bool, ConfigError> {
        match (self.write_back, write_blocks) {
            (Some(true), 0) => {
                let message = "found true, but no memory buffers writes; raise `write_share`";
                Err(ConfigError::new("write_back", message))
            }
            (said, _) => Ok(said.unwrap_or(self.battery) && write_blocks > 0),
        }
    }

    fn watermarks(&self, write_blocks: usize) -> Result<(usize, usize), ConfigError> {
        let DestageConfig {
            high_watermark: high,
            low_watermark: low,
            ..
        } = self.destage;
        for (key, share) in [
            ("destage.high_watermark", high),
            ("destage.low_watermark", low),
        ] {
            if !(0.0..=1.0).contains(&share) {
                return Err(ConfigError::new(
                    key,
                    format!("found {share}; expected 0 to 1"),
                ));
            }
        }
        if low > high {
            let message = format!("found {low}; expected no more than high_watermark = {high}");
            return Err(ConfigError::new("destage.low_watermark", message));
        }
        let part = |share: f64| (share * write_blocks as f64).floor() as usize;
        Ok((part(high), part(low)))
    }

    fn read_ahead_sectors(&self, cached_sectors: u64) -> Result<Sectors, ConfigError> {
        match self.read_ahead.sectors() {
            Some(sectors) if sectors.0 * 2 <= cached_sectors || sectors == Sectors::ZERO => {
                Ok(sectors)
            }
            _ => Err(ConfigError::new(
                "read_ahead",
                format!(
                    "found {}; expected a multiple of 512B, no more than half of the read cache of {}",
                    self.read_ahead,
                    Sectors(cached_sectors).bytes()
                ),
            )),
        }
    }

    /// Returns the number of blocks of a unit. `stripe` is the full stripe of the array.
    fn unit_blocks(&self, block_sectors: u64, stripe: Option<Sectors>) -> Result<u64, ConfigError> {
        let Some(unit) = self.destage.unit else {
            let blocks_of = |stripe: Sectors| stripe.0 / block_sectors;
            // A unit must consist of whole blocks. A stripe that is not a multiple of the block
            // gets the unit of an array without stripes.
            let whole = stripe.filter(|stripe| stripe.0 > 0 && stripe.0 % block_sectors == 0);
            return Ok(whole.map_or((MIB_SECTORS / block_sectors).max(1), blocks_of));
        };
        match unit.sectors() {
            Some(Sectors(sectors)) if sectors > 0 && sectors % block_sectors == 0 => {
                Ok(sectors / block_sectors)
            }
            _ => Err(ConfigError::new(
                "destage.unit",
                format!(
                    "found {unit}; expected a multiple of `block` = {}",
                    self.block
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refused(keys: Value) -> String {
        serde_json::from_value::<ControllerConfig>(keys)
            .unwrap()
            .resolve(None)
            .err()
            .unwrap()
            .key
    }

    #[test]
    fn what_cannot_be_is_refused_at_its_key() {
        for (key, keys) in [
            ("queue_depth", json!({ "queue_depth": 0 })),
            ("array_depth", json!({ "array_depth": 0 })),
            ("discipline", json!({ "discipline": "sttf" })),
            ("memory", json!({ "memory": "8KiB" })),
            ("memory", json!({ "memory": "1TiB" })),
            ("read_share", json!({ "read_share": -0.1 })),
            (
                "write_share",
                json!({ "read_share": 0.6, "write_share": 0.6 }),
            ),
            (
                "write_back",
                json!({ "read_share": 1.0, "write_back": true }),
            ),
            ("block", json!({ "block": "64KiB" })),
            ("block", json!({ "block": 1000 })),
            (
                "read_ahead",
                json!({ "read_ahead": "1MiB", "memory": "2MiB" }),
            ),
            (
                "read_ahead",
                json!({ "read_ahead": "1MiB", "read_share": 0.0 }),
            ),
            ("streams", json!({ "streams": 0 })),
            ("link_mb_per_s", json!({ "link_mb_per_s": 0.0 })),
            ("destage.depth", json!({ "destage": { "depth": 0 } })),
            (
                "destage.high_watermark",
                json!({ "destage": { "high_watermark": 1.5 } }),
            ),
            (
                "destage.low_watermark",
                json!({ "destage": { "low_watermark": 0.9 } }),
            ),
            ("destage.unit", json!({ "destage": { "unit": "20KiB" } })),
        ] {
            assert_eq!(refused(keys.clone()), key, "{keys}");
        }
    }

    #[test]
    fn destaging_goes_by_full_stripes_unless_it_is_said_otherwise() {
        let blocks = |keys: Value, stripe: Option<u64>| {
            let config: ControllerConfig = serde_json::from_value(keys).unwrap();
            config
                .resolve(stripe.map(Sectors))
                .unwrap()
                .constants
                .unit_blocks
        };
        assert_eq!(blocks(json!({}), Some(7 * 128)), 28);
        assert_eq!(blocks(json!({}), None), 64);
        // A stripe that is not a whole number of blocks is ignored.
        assert_eq!(blocks(json!({}), Some(48)), 64);
        assert_eq!(
            blocks(json!({ "destage": { "unit": "64KiB" } }), Some(7 * 128)),
            4
        );
    }

    #[test]
    fn memory_is_split_by_the_accelerator_ratio() {
        let resolved = |keys: Value| {
            serde_json::from_value::<ControllerConfig>(keys)
                .unwrap()
                .resolve(None)
                .unwrap()
        };
        let half = resolved(json!({}));
        assert_eq!(
            (
                half.read_blocks,
                half.write_blocks,
                half.constants.write_back
            ),
            (8192, 8192, true)
        );
        let quarter = resolved(json!({ "read_share": 0.25, "write_share": 0.5 }));
        assert_eq!((quarter.read_blocks, quarter.write_blocks), (4096, 8192));
        assert!(!resolved(json!({ "read_share": 1.0 })).constants.write_back);
        assert!(!resolved(json!({ "battery": false })).constants.write_back);
        assert!(
            resolved(json!({ "battery": false, "write_back": true }))
                .constants
                .write_back
        );
    }
}
