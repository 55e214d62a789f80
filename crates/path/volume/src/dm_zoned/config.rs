//! The keys of dm-zoned, and the format of the drive.

use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{self, Keys};
use fullstroke_units::{Duration, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sectors of a block of 4 KiB, the unit of dm-zoned (`DMZ_BLOCK_SECTORS`).
pub(super) const BLOCK: u64 = 8;
/// Entries of the map in a block (`DMZ_MAP_ENTRIES`).
const MAP_ENTRIES: u32 = 512;
/// Bits of a bitmap in a block (`DMZ_BLOCK_SIZE_BITS`).
pub(super) const BITMAP_BITS: u32 = 32_768;
/// Largest number of sectors of a zone: 2^32 blocks would not fit in the counters.
const ZONE_MAX: u64 = 1 << 32;

/// Keys of `dm-zoned`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DmZonedConfig {
    /// Number of sequential zones that only reclaim uses. Default 16 (dmzadm).
    pub reserved: u32,
    /// Time without a request after which reclaim runs although many random zones are free.
    /// Default 10s (`DMZ_IDLE_PERIOD`).
    pub idle: Duration,
    /// Percentage of free random zones at which and below which reclaim runs under load. Default
    /// 30 (`DMZ_RECLAIM_LOW_UNMAP_ZONES`).
    pub low: u32,
    /// Largest percentage of the time that the copies of reclaim take under load, while at least
    /// half of `low` is free. Default 75.
    pub throttle: u32,
    /// Zones of the drive. The stack takes them from the drive file.
    pub zones: Option<DriveZones>,
}

/// Zones of the drive below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveZones {
    /// Size of a zone in sectors.
    pub sectors: u64,
    /// Number of zones.
    pub count: u32,
    /// Number of conventional zones, the first zones.
    pub conventional: u32,
    /// Number of sequential zones that are full at the start.
    pub full: u32,
}

impl Default for DmZonedConfig {
    fn default() -> DmZonedConfig {
        DmZonedConfig {
            reserved: 16,
            idle: Duration::from_secs(10),
            low: 30,
            throttle: 75,
            zones: None,
        }
    }
}

/// The checked keys, and the format of the drive.
///
/// The metadata lie twice at the start of the random zones: a superblock, the map, and the bitmaps
/// of all zones. The chunks are as many as the zones without metadata and reserved zones (dmzadm).
#[derive(Clone, Debug)]
pub(super) struct ZonedFormat {
    pub(super) capacity: Sectors,
    /// Blocks of a zone.
    pub(super) blocks: u32,
    /// Number of zones.
    pub(super) zones: u32,
    /// Number of random zones, with the zones of the metadata.
    pub(super) conventional: u32,
    /// Zones of one copy of the metadata.
    pub(super) meta_zones: u32,
    pub(super) chunks: u32,
    /// Number of chunks that lie in full sequential zones at the start.
    pub(super) full: u32,
    /// Blocks of the map.
    pub(super) map_blocks: u32,
    /// Blocks of the bitmap of a zone.
    pub(super) bitmap_blocks: u32,
    pub(super) config: DmZonedConfig,
}

impl ZonedFormat {
    /// Reads the keys for a drive of `drive` sectors.
    ///
    /// # Errors
    /// Names the key, the value found and the value expected.
    pub(super) fn read(keys: &Keys, members: &[Sectors]) -> Result<ZonedFormat, ConfigError> {
        let config: DmZonedConfig = registry::read(keys)?;
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        let zones = config.zones_of(members)?;
        config.check_marks()?;
        let blocks = (zones.sectors / BLOCK) as u32;
        let bitmap_blocks = blocks.div_ceil(BITMAP_BITS);
        let map_blocks = zones.count.div_ceil(MAP_ENTRIES);
        let metadata =
            1 + u64::from(map_blocks) + u64::from(zones.count) * u64::from(bitmap_blocks);
        let meta_zones = metadata.div_ceil(u64::from(blocks)) as u32;
        let random = zones.conventional.saturating_sub(2 * meta_zones);
        if random == 0 {
            let message = format!(
                "found a drive with {} conventional zones; the metadata need {} of them, and at least one must be left for writes",
                zones.conventional,
                2 * meta_zones
            );
            return refuse("members", message);
        }
        let sequential = zones.count - zones.conventional;
        if config.reserved == 0 || config.reserved >= sequential {
            let message = format!(
                "found {}; the drive has {sequential} sequential zones. Expected 1 to {}",
                config.reserved,
                sequential - 1
            );
            return refuse("reserved", message);
        }
        if zones.full > sequential - config.reserved {
            let message = format!(
                "found {} full zones (drive_settings.zoned.full) and {} reserved ones of {sequential}; expected fewer full zones",
                zones.full, config.reserved
            );
            return refuse("reserved", message);
        }
        let chunks = random + sequential - config.reserved;
        Ok(ZonedFormat {
            capacity: Sectors(u64::from(chunks) * zones.sectors),
            blocks,
            zones: zones.count,
            conventional: zones.conventional,
            meta_zones,
            chunks,
            full: zones.full,
            map_blocks,
            bitmap_blocks,
            config,
        })
    }

    /// First zone without metadata.
    pub(super) fn first(&self) -> u32 {
        2 * self.meta_zones
    }

    /// True if the zone takes writes in any order.
    pub(super) fn is_random(&self, zone: u32) -> bool {
        zone < self.conventional
    }

    /// First sector of a block of a zone on the drive.
    pub(super) fn sector(&self, zone: u32, block: u32) -> u64 {
        (u64::from(zone) * u64::from(self.blocks) + u64::from(block)) * BLOCK
    }

    /// Block of the metadata with the entry of a chunk.
    pub(super) fn map_block(chunk: u32) -> u32 {
        1 + chunk / MAP_ENTRIES
    }

    /// Block of the metadata with the bit of a block of a zone.
    pub(super) fn bitmap_block(&self, zone: u32, block: u32) -> u32 {
        1 + self.map_blocks + zone * self.bitmap_blocks + block / BITMAP_BITS
    }
}

impl DmZonedConfig {
    /// Returns the zones of the only member.
    fn zones_of(&self, members: &[Sectors]) -> Result<DriveZones, ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        let &[drive] = members else {
            let message = format!(
                "found {} members; dm-zoned lies above one drive. Give each drive of an array a dm-zoned of its own: [[volume.members]] with layout = \"dm-zoned\"",
                members.len()
            );
            return refuse("members", message);
        };
        let Some(zones) = self.zones else {
            let message = "found a member without zones; expected a drive whose file has the table [zoned], such as nearline-host-managed-14tb";
            return refuse("members", message.into());
        };
        if !zones.sectors.is_multiple_of(BLOCK) || zones.sectors >= ZONE_MAX {
            let message = format!(
                "found a zone of {}; expected a multiple of 4 KiB below 2 TiB",
                Sectors(zones.sectors).bytes()
            );
            return refuse("zones", message);
        }
        if zones.sectors * u64::from(zones.count) != drive.0 {
            let message = format!(
                "found {} zones of {} sectors; the drive has {} sectors",
                zones.count, zones.sectors, drive.0
            );
            return refuse("zones", message);
        }
        Ok(zones)
    }

    /// Checks times and marks.
    fn check_marks(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        if self.low > 100 {
            let message = format!("found {}; expected a percentage, 0 to 100", self.low);
            return refuse("low", message);
        }
        if !(1..=100).contains(&self.throttle) {
            let message = format!(
                "found {}; expected a percentage, 1 to 100 (100: no limit)",
                self.throttle
            );
            return refuse("throttle", message);
        }
        if self.idle == Duration::ZERO {
            let message =
                "found 0; expected more, or reclaim would always count the device as idle";
            return refuse("idle", message.into());
        }
        Ok(())
    }
}
