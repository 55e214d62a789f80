//! The drive file: the numbers of a drive and their sources.

mod buffer;
mod electronics;
mod freeblock;
mod power;
mod queue;
mod spin_down;
mod validated;

pub use buffer::{BufferConfig, ReadAhead};
pub use electronics::{ElectronicsConfig, OverheadConfig, WriteDisconnectConfig};
pub use freeblock::FreeblockConfig;
pub use power::{IdleConfig, PowerConfig};
pub use queue::{BackgroundConfig, FlushCommand, QueueConfig};
pub use spin_down::SpinDownConfig;
pub use validated::ValidatedConfig;

use crate::faults::FaultsConfig;
use crate::flash::FlashConfig;
use crate::limits::LimitsConfig;
use crate::shingled::ShingledConfig;
use crate::zoned::ZonedConfig;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Duration, Sectors};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A drive, as `drives/*.toml` describes it. All sectors are of 512 bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveConfig {
    /// The drive's name for people: vendor, model, capacity.
    pub title: String,
    /// Addressable sectors. Must equal the number of LBNs in all zones.
    pub capacity_sectors: Sectors,
    /// Size in bytes of a sector on the medium: 512 (default) or 4096. A write that covers a part
    /// of such a sector reads the sector, waits for a revolution, and writes (512e).
    #[serde(default = "sector", skip_serializing_if = "is_sector")]
    pub physical_sector: u32,
    /// Unit in bytes in which the host addresses the drive: 512 (default) or 4096. A drive with
    /// 4096 (4Kn) refuses requests that do not begin and end at this unit.
    #[serde(default = "sector", skip_serializing_if = "is_sector")]
    pub logical_sector: u32,
    /// Revolutions a minute, to the thousandth.
    pub rpm: f64,
    /// Recording surfaces, one head each.
    pub surfaces: u32,
    /// Independent arms. With more than one arm, surfaces and zones describe one arm. Each arm has
    /// an equal share of the addresses, in order.
    #[serde(default = "one_actuator", skip_serializing_if = "is_one")]
    pub actuators: u32,
    /// Order of LBNs through the tracks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: TrackOrder,
    /// Tracks of a band, for the banded orders.
    #[serde(default = "thirty_two", skip_serializing_if = "is_thirty_two")]
    pub band_tracks: u32,
    /// Direction of the first track run in a band, for the banded orders.
    #[serde(default, skip_serializing_if = "is_default")]
    pub band_start: SeekDirection,
    /// Zones, from the outer edge inward.
    pub zones: Vec<ZoneConfig>,
    /// Time of the arm's movement by distance.
    pub seek: SeekConfig,
    /// Time in ms to change to another head of the same cylinder.
    #[serde(default, skip_serializing_if = "is_default")]
    pub head_switch_ms: f64,
    /// Additional time in ms before a write after the arm or the head has moved. Negative if the
    /// seek curve is longer than the movement of a write.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_settle_ms: f64,
    /// Time in ms before a read of the last written track.
    #[serde(default, skip_serializing_if = "is_default")]
    pub turn_round_ms: f64,
    /// True if a transfer begins at any requested sector under the landing head. A whole track then
    /// costs one revolution.
    #[serde(default, skip_serializing_if = "is_default")]
    pub zero_latency: ZeroLatency,
    /// Time in ms from the arrival of a command to the start of the arm's movement.
    #[serde(default, skip_serializing_if = "is_default")]
    pub command_overhead_ms: f64,
    /// Remaining command overhead in ms if the drive prepared the command early, while the previous
    /// command was on the medium. Default 0. If the value is the overhead or more, the drive
    /// prepares no command early.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queued_overhead_ms: f64,
    /// Command overheads in detail, and the bus.
    #[serde(default, skip_serializing_if = "is_default")]
    pub electronics: ElectronicsConfig,
    /// The buffer. Default: no buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferConfig>,
    /// The queue inside the drive.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queue: QueueConfig,
    /// Power draw of the drive, and cost of stopping and starting the platters. By default the
    /// platters always turn, commands to stop or start cost nothing, and no energy is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerConfig>,
    /// Spin-down policy of the idle drive. Default: the drive never stops by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_down: Option<SpinDownConfig>,
    /// Writes that go wrong although the drive reports success. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsConfig>,
    /// Limits of the time of commands: error recovery (SCT ERC) and duration limits. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsConfig>,
    /// A background scan in the rotational latency of requests. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeblock: Option<FreeblockConfig>,
    /// Shingled tracks that the drive hides (drive-managed SMR). Default: conventional tracks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shingled: Option<ShingledConfig>,
    /// Zones with a write pointer that the host knows of (host-managed or host-aware SMR). Default:
    /// no such zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zoned: Option<ZonedConfig>,
    /// A flash device in place of arm and platters. Default: a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash: Option<FlashConfig>,
    /// Published numbers, for a check of the description.
    #[serde(default, skip_serializing_if = "is_default")]
    pub published: Published,
    /// Requests for which the model was compared with measurements of the drive. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validated: Option<ValidatedConfig>,
    /// Sources of the numbers: maps a key (`rpm`, `zones`, `seek.points`) to a source. A key covers
    /// the keys below. The source of a fitted number begins with `fitted: ...`.
    pub sources: BTreeMap<String, String>,
}

/// Transfers that begin at the sector under the landing head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected true, false, or a table such as { reads = true, writes = false }"
)]
pub enum ZeroLatency {
    /// All transfers, or none.
    All(bool),
    /// Reads and writes separately.
    Each {
        /// True for reads.
        reads: bool,
        /// True for writes.
        writes: bool,
    },
}

impl Default for ZeroLatency {
    fn default() -> ZeroLatency {
        ZeroLatency::All(false)
    }
}

impl ZeroLatency {
    /// True if reads begin at any sector.
    pub fn reads(self) -> bool {
        match self {
            ZeroLatency::All(all) => all,
            ZeroLatency::Each { reads, .. } => reads,
        }
    }
    /// True if writes begin at any sector.
    pub fn writes(self) -> bool {
        match self {
            ZeroLatency::All(all) => all,
            ZeroLatency::Each { writes, .. } => writes,
        }
    }
}

/// True if a value is the default, so that the file need not contain the value.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Converts a configured time in ms. Returns an error at `key` if the time is invalid.
pub(crate) fn milliseconds(key: &str, value: f64) -> Result<Duration, ConfigError> {
    // A thousand seconds: more is a mistake of the unit.
    if value.is_finite() && (0.0..1e6).contains(&value) {
        Ok(Duration::from_millis_f64(value))
    } else {
        Err(ConfigError::new(
            key,
            format!("found {value}; expected milliseconds, 0 or more"),
        ))
    }
}

/// Order of LBNs through the tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrackOrder {
    /// All surfaces of a cylinder from first to last, then the next cylinder.
    #[default]
    Cylinder,
    /// As `cylinder`, but every other cylinder of a zone runs from the last surface to the first.
    CylinderSerpentine,
    /// All tracks of a zone on one surface inward, then all tracks on the next surface outward, and
    /// so on.
    SurfaceSerpentine,
    /// Bands of `band_tracks` tracks: one surface in the direction `band_start`, the next surface
    /// in the opposite direction. The next band begins on the surface on which the last band ended
    /// (Qian & Wang, section 4.1; "AA" of Wong 2019, as on a Seagate Cheetah 15K.7).
    BandedSerpentine,
    /// Bands of `band_tracks` tracks on each surface in turn: the first in the direction
    /// `band_start`, the next in the opposite direction. The next band begins on the first surface
    /// again ("AF" of Wong 2019, as on a Hitachi 7K1000.C and a Toshiba X300).
    BandedAlternating,
    /// As `banded-alternating`, but all bands in the direction `band_start` ("FF" of Wong 2019, as
    /// on a Samsung F3 and a Toshiba P300).
    BandedForward,
}

/// A direction of the arm's movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Direction")]
pub enum SeekDirection {
    /// Towards the spindle.
    #[default]
    Inward,
    /// Towards the outer edge.
    Outward,
}

impl SeekDirection {
    /// Returns the opposite direction.
    #[must_use]
    pub fn other(self) -> SeekDirection {
        match self {
            SeekDirection::Inward => SeekDirection::Outward,
            SeekDirection::Outward => SeekDirection::Inward,
        }
    }
}

/// Size in bytes of a sector of the interface.
pub(crate) const SECTOR: u32 = 512;
/// Size in bytes of a sector of the Advanced Format.
pub(crate) const SECTOR_4K: u32 = 4096;

fn sector() -> u32 {
    SECTOR
}

fn is_sector(bytes: &u32) -> bool {
    *bytes == SECTOR
}

fn thirty_two() -> u32 {
    32
}

fn is_thirty_two(tracks: &u32) -> bool {
    *tracks == 32
}

fn one_actuator() -> u32 {
    1
}

fn is_one(actuators: &u32) -> bool {
    *actuators == 1
}

/// Cylinders of equal track length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ZoneConfig {
    /// Outermost cylinder of the zone.
    pub first_cylinder: u32,
    /// Innermost cylinder of the zone.
    pub last_cylinder: u32,
    /// Sectors on a track: one number, or one for each surface.
    pub sectors_per_track: SectorsPerTrack,
    /// Skew in sectors between neighbouring tracks of a cylinder (sectors of the first surface, if
    /// surfaces differ). With `banded-alternating` and `banded-forward`, the skew wherever the head
    /// changes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub track_skew: f64,
    /// Skew in sectors from the last track of a cylinder to the first track of the next, and
    /// between neighbouring tracks in a band.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cylinder_skew: f64,
    /// Sectors from angle 0 to the zone's first sector.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset: f64,
    /// Number of sectors without LBNs in front of the first LBN of the zone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dead: u64,
    /// Number of sectors of the zone without LBNs, including slipped sectors but not `dead`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spares: u64,
    /// Number of spare sectors at the end of each track. LBNs then slip within a track only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spares_per_track: u32,
    /// Number of spare sectors at the end of each cylinder, or of each `spare_range_cylinders`.
    /// LBNs then slip within the range only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spares_per_cylinder: u32,
    /// Number of cylinders sharing `spares_per_cylinder`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spare_range_cylinders: u32,
    /// Slipped sectors, ascending, counted in LBN order from the first sector of the zone. An entry
    /// is a single sector, or `[first, sectors]` for a run such as a whole track.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<SlipConfig>,
    /// Pairs `[defective, replacement]`. The LBN of the defective sector lives on the replacement
    /// sector, which has no LBN otherwise. Sectors are counted as in `slips`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaps: Vec<(u64, u64)>,
    /// Tracks with fewer sectors than the neighbouring tracks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<ExceptionConfig>,
    /// Order of LBNs in this zone, if the order differs from the drive's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<TrackOrder>,
    /// Runs of tracks in place of the order: one group of cylinders, repeated inward.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunConfig>,
}

impl ZoneConfig {
    /// Returns a zone with tracks of `sectors` sectors and no further features.
    pub fn plain(first_cylinder: u32, last_cylinder: u32, sectors: u32) -> ZoneConfig {
        ZoneConfig {
            first_cylinder,
            last_cylinder,
            sectors_per_track: SectorsPerTrack::Same(sectors),
            track_skew: 0.0,
            cylinder_skew: 0.0,
            offset: 0.0,
            dead: 0,
            spares: 0,
            spares_per_track: 0,
            spares_per_cylinder: 0,
            spare_range_cylinders: 0,
            slips: Vec::new(),
            remaps: Vec::new(),
            exceptions: Vec::new(),
            order: None,
            runs: Vec::new(),
        }
    }
}

/// Sectors without an LBN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected the number of a sector, or a list: the first sector and the number of sectors"
)]
pub enum SlipConfig {
    /// One sector.
    One(u64),
    /// First sector of a run, and the number of sectors.
    Run(u64, u64),
}

impl SlipConfig {
    /// Returns the first sector and the number of sectors.
    pub fn run(self) -> (u64, u64) {
        match self {
            SlipConfig::One(sector) => (sector, 1),
            SlipConfig::Run(first, sectors) => (first, sectors),
        }
    }
}

/// A track with fewer sectors than the neighbouring tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExceptionConfig {
    /// Cylinder of the track.
    pub cylinder: u32,
    /// Surface of the track.
    pub surface: u32,
    /// Number of sectors with an LBN.
    pub sectors: u32,
    /// Number of sectors without an LBN at the beginning of the track.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip_first: u32,
}

/// Neighbouring tracks of one surface with consecutive LBNs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The surface.
    pub surface: u32,
    /// Outermost track, counted within the group.
    pub first_cylinder: u32,
    /// Number of tracks.
    pub tracks: u32,
    /// Direction in which LBNs run; `inward` begins at the outermost track.
    #[serde(default, skip_serializing_if = "is_default")]
    pub direction: SeekDirection,
    /// Number of sectors on each track. Default: the zone's number.
    pub sectors_per_track: Option<u32>,
    /// Angle of the first track in revolutions from the beginning of the group. Default: from the
    /// skews.
    pub offset_revolutions: Option<f64>,
    /// Angle in revolutions from the beginning of one track to the beginning of the next. Default:
    /// the cylinder skew.
    pub step_revolutions: Option<f64>,
}

/// Number of sectors on the tracks of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a number of sectors, or a list with a number for each surface"
)]
pub enum SectorsPerTrack {
    /// The same on every surface.
    Same(u32),
    /// One number for each surface.
    PerSurface(Vec<u32>),
}

/// Time of the arm's movement by distance in cylinders. Exactly one form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "form", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SeekConfig {
    /// Measured points `[cylinders, ms]`, ascending, joined by straight lines.
    Points {
        /// The points.
        points: Vec<(u32, f64)>,
        /// True if the curve may fall by more than the noise of a measurement.
        #[serde(default, skip_serializing_if = "is_default")]
        falls_allowed: bool,
    },
    /// The three numbers of a data sheet. The curve through the numbers is `t + b sqrt(d-1) + c
    /// (d-1)` (Lee & Katz, SIGMETRICS 1993).
    Datasheet {
        /// Time in ms for one cylinder.
        track_to_track_ms: f64,
        /// Mean time in ms over seeks between random cylinders.
        average_ms: f64,
        /// Time in ms from edge to edge.
        full_stroke_ms: f64,
    },
    /// Ruemmler & Wilkes (IEEE Computer, 1994): `a + b sqrt(d)` below the
    /// crossover, `c + e d` from it on.
    TwoPiece {
        /// Constant of the short seeks.
        a_ms: f64,
        /// Factor of the square root of the distance.
        b_ms: f64,
        /// Constant of the long seeks.
        c_ms: f64,
        /// Factor of the distance.
        e_ms: f64,
        /// The first distance of the second form.
        crossover: u32,
    },
}

/// Published numbers of the whole drive. Each given number is checked against the model when the
/// file is loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Sustained transfer rate at the outer edge, MB/s (10^6 bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer_mb_per_s: Option<f64>,
    /// Sustained transfer rate at the inner edge, MB/s (10^6 bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner_mb_per_s: Option<f64>,
    /// Mean seek time of random reads in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_seek_ms: Option<f64>,
    /// Sound power of the drive while it idles, in bels (A-weighted, ISO 7779). Data sheets in dB
    /// have ten times this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_bels: Option<f64>,
    /// Sound power of the drive while it seeks, in bels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_bels: Option<f64>,
    /// Relative difference that the checks of this drive allow. Default 0.03. A larger value should
    /// have a reason in `sources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
}

/// Sound power of a drive while it idles and while it seeks, in bels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Noise {
    /// While the drive idles.
    pub idle_bels: Option<f64>,
    /// While the drive seeks.
    pub seek_bels: Option<f64>,
}

impl Published {
    /// Returns the noise of a number of equal drives. Sources that are independent of one another
    /// add their power, and ten times the power is one bel more.
    pub fn noise(&self, drives: usize) -> Noise {
        let more = (drives.max(1) as f64).log10();
        Noise {
            idle_bels: self.idle_bels.map(|bels| bels + more),
            seek_bels: self.seek_bels.map(|bels| bels + more),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn ten_drives_are_one_bel_louder_than_one() {
        let published = Published {
            idle_bels: Some(2.8),
            ..Published::default()
        };
        let ten = published.noise(10);
        assert!(ten.idle_bels.is_some_and(|bels| (bels - 3.8).abs() < 1e-9));
        assert_eq!(ten.seek_bels, None);
        assert_eq!(published.noise(1).idle_bels, Some(2.8));
    }

    pub(crate) fn zone(first_cylinder: u32, last_cylinder: u32, sectors: u32) -> ZoneConfig {
        ZoneConfig {
            track_skew: 3.0,
            cylinder_skew: 5.0,
            ..ZoneConfig::plain(first_cylinder, last_cylinder, sectors)
        }
    }

    /// Two surfaces, two zones, 10 + 10 cylinders, 10,000 rpm.
    pub(crate) fn small_drive() -> DriveConfig {
        DriveConfig {
            title: "a small drive".into(),
            capacity_sectors: Sectors(2 * 10 * 40 + 2 * 10 * 30),
            physical_sector: SECTOR,
            logical_sector: SECTOR,
            rpm: 10_000.0,
            surfaces: 2,
            actuators: 1,
            order: TrackOrder::Cylinder,
            band_tracks: 32,
            band_start: SeekDirection::Inward,
            zones: vec![zone(0, 9, 40), zone(10, 19, 30)],
            seek: SeekConfig::Points {
                points: vec![(1, 0.8), (19, 2.6)],
                falls_allowed: false,
            },
            head_switch_ms: 0.5,
            write_settle_ms: 0.1,
            turn_round_ms: 0.0,
            zero_latency: ZeroLatency::All(false),
            command_overhead_ms: 0.0,
            queued_overhead_ms: 0.0,
            electronics: ElectronicsConfig::default(),
            buffer: None,
            faults: None,
            freeblock: None,
            limits: None,
            shingled: None,
            zoned: None,
            flash: None,
            queue: QueueConfig::default(),
            power: None,
            spin_down: None,
            published: Published::default(),
            validated: None,
            sources: BTreeMap::new(),
        }
    }
}
