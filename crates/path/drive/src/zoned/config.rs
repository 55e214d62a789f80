//! The keys of a drive with zones that the host knows of.

use crate::config::DriveConfig;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Duration, SECTOR_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shortest time of an answer that refuses a request. A drive file may leave out the overhead of a
/// command, and a load that repeats refused requests must not stop the clock.
const LEAST_ANSWER: Duration = Duration::from_micros(10);

/// Largest number of open zones that a drive may have.
const OPEN_ZONES_MAX: u32 = 65_536;

/// Zones with a write pointer that the host knows of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZonedConfig {
    /// Kind of the drive. Default `host-managed`.
    #[serde(default)]
    pub model: ZonedModel,
    /// Size of a zone. The zones must divide the capacity. Default 256MiB.
    #[serde(default = "mebibytes_256")]
    pub zone: Bytes,
    /// Number of conventional zones, the first zones of the drive. Default 0.
    #[serde(default)]
    pub conventional: u32,
    /// Largest number of open zones. A zone is open from its first write until the zone is full,
    /// closed or reset. Default 128.
    #[serde(default = "zones_128")]
    pub open_zones: u32,
    /// Answer of the drive to a write that opens one zone too many. Default `close`.
    #[serde(default)]
    pub at_open_limit: AtOpenLimit,
    /// Way in which the host sends the writes of a zone to a host-managed drive. Default `plugged`.
    #[serde(default)]
    pub host_writes: ZoneWrites,
    /// True if a read may go past the write pointer of a zone and across borders of zones (URSWRZ
    /// of ZBC). Default true.
    #[serde(default = "yes")]
    pub unrestricted_reads: bool,
    /// Share of the zones with a write pointer that are full at the start of a run, 0 to 1, from
    /// the first such zone on. The other zones are empty. Default 0.
    #[serde(default)]
    pub full: f64,
}

/// Kind of a drive with zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ZonedModel {
    /// Refuses writes that do not begin at the write pointer.
    #[default]
    HostManaged,
    /// Takes all writes. The table `[shingled]` describes what the drive does with them.
    HostAware,
}

/// Way in which the host sends the writes of a zone with a write pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneWrites {
    /// Zone write plugging of Linux 6.10 and later: one write of a zone is in the drive at a time,
    /// and the others wait in order. Waiting writes that continue each other are joined.
    #[default]
    Plugged,
    /// Each write goes to the drive as it comes, as from a program that sends SCSI commands itself.
    AsSent,
    /// Zone append, which Linux makes a write at the write pointer: as `plugged`, but the address of
    /// a write only names the zone. No writes are joined.
    Append,
}

/// Answer of a drive to a write that opens one zone too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AtOpenLimit {
    /// The drive closes the open zone with the oldest write. This is the rule for zones that a
    /// write has opened.
    #[default]
    Close,
    /// The drive refuses the write with INSUFFICIENT ZONE RESOURCES. This is the rule if the host
    /// has opened the zones by a command.
    Refuse,
}

fn mebibytes_256() -> Bytes {
    Bytes(256 << 20)
}

fn zones_128() -> u32 {
    128
}

fn yes() -> bool {
    true
}

/// The checked zones of a drive, in sectors of 512 bytes.
#[derive(Clone, Debug)]
pub struct Zones {
    /// Size of a zone.
    pub zone: u64,
    /// Number of zones.
    pub count: u32,
    /// Number of conventional zones, the first zones of the drive.
    pub conventional: u32,
    /// Number of zones after the conventional zones that are full at the start.
    pub full: u32,
    /// True if the drive refuses writes out of order.
    pub host_managed: bool,
    pub(super) open: usize,
    pub(super) host_writes: ZoneWrites,
    pub(super) at_limit: AtOpenLimit,
    pub(super) unrestricted_reads: bool,
    /// Sectors of a physical sector: the unit of writes.
    pub(super) unit: u64,
    /// Time of an answer without access to the platters.
    pub(super) answer: Duration,
}

impl ZonedConfig {
    /// Checks the keys for a drive.
    ///
    /// # Errors
    /// Names the key, the value found and the value expected.
    pub(crate) fn check(&self, drive: &DriveConfig) -> Result<Zones, ConfigError> {
        let refuse = |key: &str, message: String| Err(ConfigError::new(key, message));
        let unit = u64::from(drive.physical_sector);
        if self.zone.0 == 0 || !self.zone.0.is_multiple_of(unit) {
            let message = format!(
                "found {}; expected a multiple of the physical sector, {unit} bytes, and more than 0",
                self.zone
            );
            return refuse("zone", message);
        }
        let capacity = drive.capacity_sectors.bytes();
        if !capacity.0.is_multiple_of(self.zone.0) {
            let message = format!(
                "found {}; the capacity, {} bytes, is {} zones and {} bytes more. Expected a size that divides the capacity",
                self.zone,
                capacity.0,
                capacity.0 / self.zone.0,
                capacity.0 % self.zone.0
            );
            return refuse("zone", message);
        }
        let count = capacity.0 / self.zone.0;
        let Ok(count) = u32::try_from(count) else {
            let message = format!(
                "found {}, which makes {count} zones; expected at most {}",
                self.zone,
                u32::MAX
            );
            return refuse("zone", message);
        };
        if self.conventional >= count {
            let message = format!(
                "found {}; the drive has {count} zones, and at least one must have a write pointer",
                self.conventional
            );
            return refuse("conventional", message);
        }
        if !(1..=OPEN_ZONES_MAX).contains(&self.open_zones) {
            let message = format!("found {}; expected 1 to {OPEN_ZONES_MAX}", self.open_zones);
            return refuse("open_zones", message);
        }
        if !(0.0..=1.0).contains(&self.full) {
            return refuse("full", format!("found {}; expected 0 to 1", self.full));
        }
        let host_managed = self.model == ZonedModel::HostManaged;
        self.check_model(drive, host_managed)?;
        let sequential = f64::from(count - self.conventional);
        Ok(Zones {
            zone: self.zone.0 / SECTOR_BYTES,
            count,
            conventional: self.conventional,
            full: (sequential * self.full) as u32,
            host_managed,
            open: self.open_zones as usize,
            host_writes: match host_managed {
                true => self.host_writes,
                false => ZoneWrites::AsSent,
            },
            at_limit: self.at_open_limit,
            unrestricted_reads: self.unrestricted_reads,
            unit: unit / SECTOR_BYTES,
            answer: Duration::from_millis_f64(drive.command_overhead_ms.max(0.0)).max(LEAST_ANSWER),
        })
    }
    /// Checks the model, the keys that only a host-managed drive may have, and the bands of a
    /// host-aware drive.
    fn check_model(&self, drive: &DriveConfig, host_managed: bool) -> Result<(), ConfigError> {
        if host_managed == drive.shingled.is_some() {
            let message = match host_managed {
                true => {
                    "found \"host-managed\" and the table [shingled]; a host-managed drive hides no shingles. Expected one of the two, or \"host-aware\""
                }
                false => {
                    "found \"host-aware\" without the table [shingled], which says what the drive does with writes out of order; expected both"
                }
            };
            return Err(ConfigError::new("model", message.to_owned()));
        }
        let Some(shingled) = &drive.shingled else {
            return Ok(());
        };
        if self.host_writes == ZoneWrites::Append {
            let message = "found \"append\" and a host-aware drive, which Linux uses like a conventional drive (since 6.8); expected a host-managed drive, or no such key";
            return Err(ConfigError::new("host_writes", message));
        }
        if !self.zone.0.is_multiple_of(shingled.band.0.max(1)) {
            let message = format!(
                "found {}; a band of [shingled] has {}. Expected a multiple, so that no band belongs to two zones",
                self.zone, shingled.band
            );
            return Err(ConfigError::new("zone", message));
        }
        Ok(())
    }
}
