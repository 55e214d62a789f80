//! The drive file: what a drive is, and where each number comes from.

mod buffer;
mod electronics;
mod freeblock;
mod power;
mod queue;
mod spin_down;

pub use buffer::{BufferConfig, ReadAhead};
pub use electronics::{ElectronicsConfig, OverheadConfig, WriteDisconnectConfig};
pub use freeblock::FreeblockConfig;
pub use power::{IdleConfig, PowerConfig};
pub use queue::{BackgroundConfig, FlushCommand, QueueConfig};
pub use spin_down::SpinDownConfig;

use crate::faults::FaultsConfig;
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
    /// Addressable sectors. Must equal what the zones hold.
    pub capacity_sectors: Sectors,
    /// Revolutions a minute, to the thousandth.
    pub rpm: f64,
    /// Recording surfaces, one head each.
    pub surfaces: u32,
    /// Arms that move independently. With more than one, surfaces and zones
    /// describe one of them, and each has an equal share of the addresses, in
    /// order.
    #[serde(default = "one_actuator", skip_serializing_if = "is_one")]
    pub actuators: u32,
    /// The order in which LBNs pass through the tracks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: TrackOrder,
    /// Tracks of a band, for the banded orders.
    #[serde(default = "thirty_two", skip_serializing_if = "is_thirty_two")]
    pub band_tracks: u32,
    /// The direction in which a band begins, for the banded orders.
    #[serde(default, skip_serializing_if = "is_default")]
    pub band_start: Direction,
    /// Zones, from the outer edge inward.
    pub zones: Vec<ZoneConfig>,
    /// Time of the arm's movement by distance.
    pub seek: SeekConfig,
    /// Time to change to another head of the same cylinder.
    #[serde(default, skip_serializing_if = "is_default")]
    pub head_switch_ms: f64,
    /// Time that a write waits in addition after the arm or the head has moved.
    /// Negative where the curve is longer than a write's movement.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_settle_ms: f64,
    /// Time before a read of the track that was written last.
    #[serde(default, skip_serializing_if = "is_default")]
    pub turn_round_ms: f64,
    /// Whether transfers begin wherever the head lands on the requested part of
    /// a track. A whole track then costs one revolution.
    #[serde(default, skip_serializing_if = "is_default")]
    pub zero_latency: ZeroLatency,
    /// Time from the arrival of a command to the start of the arm's movement.
    #[serde(default, skip_serializing_if = "is_default")]
    pub command_overhead_ms: f64,
    /// What is left of a command's overhead where it came early enough for the
    /// drive to prepare it while the one before was on the medium. Unless said,
    /// nothing; with the overhead or more, the drive prepares no command before
    /// its turn.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queued_overhead_ms: f64,
    /// Command overheads in detail, and the bus.
    #[serde(default, skip_serializing_if = "is_default")]
    pub electronics: ElectronicsConfig,
    /// The buffer; none unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<BufferConfig>,
    /// The queue inside the drive.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queue: QueueConfig,
    /// What the drive draws, and what it takes to stop the platters and to start them; unless
    /// said, they always turn, commands that ask for it cost nothing, and no energy is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerConfig>,
    /// When it stops its platters by itself while nobody needs them; never unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spin_down: Option<SpinDownConfig>,
    /// Which writes go wrong and are reported as done; none unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsConfig>,
    /// A background scan that reads in the rotational latency of requests; none unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeblock: Option<FreeblockConfig>,
    /// What the vendor publishes, to hold the numbers above against.
    #[serde(default, skip_serializing_if = "is_default")]
    pub published: Published,
    /// Where the numbers come from: key (`rpm`, `zones`, `seek.points`) to
    /// source. A key covers the keys below it. Fitted numbers say `fitted: ...`.
    pub sources: BTreeMap<String, String>,
}

/// Which transfers begin wherever the head lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ZeroLatency {
    /// All, or none.
    All(bool),
    /// Reads and writes apart.
    Each {
        /// Reads.
        reads: bool,
        /// Writes.
        writes: bool,
    },
}

impl Default for ZeroLatency {
    fn default() -> ZeroLatency {
        ZeroLatency::All(false)
    }
}

impl ZeroLatency {
    /// Whether reads do.
    pub fn reads(self) -> bool {
        match self {
            ZeroLatency::All(all) => all,
            ZeroLatency::Each { reads, .. } => reads,
        }
    }
    /// Whether writes do.
    pub fn writes(self) -> bool {
        match self {
            ZeroLatency::All(all) => all,
            ZeroLatency::Each { writes, .. } => writes,
        }
    }
}

/// Whether a value need not be written, for it is what a reader assumes.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A configured time, or an error at its key.
pub(crate) fn milliseconds(key: &str, value: f64) -> Result<Duration, ConfigError> {
    if value.is_finite() && (0.0..1e6).contains(&value) {
        Ok(Duration::from_millis_f64(value))
    } else {
        Err(ConfigError::new(
            key,
            format!("found {value}; expected milliseconds, 0 or more"),
        ))
    }
}

/// The order in which LBNs pass through the tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrackOrder {
    /// All surfaces of a cylinder from first to last, then the next cylinder.
    #[default]
    Cylinder,
    /// The same, but every other cylinder of a zone from last to first.
    CylinderSerpentine,
    /// All tracks of a zone on one surface inward, then all on the next
    /// outward, and so on.
    SurfaceSerpentine,
    /// Bands of `band_tracks` tracks: one surface in the direction
    /// `band_start`, the next in the other; the band behind it begins on the
    /// surface on which this one ended (Qian & Wang, section 4.1; "AA" of Wong
    /// 2019, as on a Seagate Cheetah 15K.7).
    BandedSerpentine,
    /// Bands of `band_tracks` tracks on each surface in turn, the first in the
    /// direction `band_start`, the next in the other; behind them the first
    /// surface again ("AF" of Wong 2019, as on a Hitachi 7K1000.C and a Toshiba
    /// X300).
    BandedAlternating,
    /// The same, all in the direction `band_start` ("FF" of Wong 2019, as on a
    /// Samsung F3 and a Toshiba P300).
    BandedForward,
}

/// A direction of the arm's movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the spindle.
    #[default]
    Inward,
    /// To the edge.
    Outward,
}

impl Direction {
    /// The opposite one.
    #[must_use]
    pub fn other(self) -> Direction {
        match self {
            Direction::Inward => Direction::Outward,
            Direction::Outward => Direction::Inward,
        }
    }
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
    /// The outermost cylinder.
    pub first_cylinder: u32,
    /// The innermost cylinder.
    pub last_cylinder: u32,
    /// Sectors on a track: one number, or one for each surface.
    pub sectors_per_track: SectorsPerTrack,
    /// Sectors by which a track begins behind the one before it in the cylinder
    /// (on the first surface, where surfaces differ). With `banded-alternating`
    /// and `banded-forward`, wherever the head changes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub track_skew: f64,
    /// The same from the last track of a cylinder to the first of the next, and
    /// between neighbours in a band.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cylinder_skew: f64,
    /// Sectors from angle 0 to the zone's first sector.
    #[serde(default, skip_serializing_if = "is_default")]
    pub offset: f64,
    /// Sectors in front of the zone's first LBN that carry none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dead: u64,
    /// Sectors of the zone that carry no LBN, slipped ones included.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spares: u64,
    /// Of each track, the last sectors are spare, and LBNs slip within their
    /// track only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spares_per_track: u32,
    /// Of each cylinder (or each `spare_range_cylinders`), the last sectors are
    /// spare, and LBNs slip within it only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spares_per_cylinder: u32,
    /// Cylinders that share the spares of `spares_per_cylinder`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spare_range_cylinders: u32,
    /// Slipped sectors, ascending, counted in LBN order from the zone's first:
    /// single ones, or `[first, sectors]` for a run such as a whole track.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<SlipConfig>,
    /// `[defective, replacement]`: an LBN whose sector is defective lives on
    /// another, which carries none. Counted as slips are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaps: Vec<(u64, u64)>,
    /// Tracks with fewer sectors than their neighbours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<ExceptionConfig>,
    /// The order of LBNs in this zone, where it is not the drive's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<TrackOrder>,
    /// In place of an order: runs of tracks over which LBNs pass, one group of
    /// cylinders; the group repeats inward.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunConfig>,
}

impl ZoneConfig {
    /// A zone without anything but tracks of `sectors`.
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

/// Sectors that carry no LBN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SlipConfig {
    /// One sector.
    One(u64),
    /// The first of several, and how many.
    Run(u64, u64),
}

impl SlipConfig {
    /// The first sector, and how many.
    pub fn run(self) -> (u64, u64) {
        match self {
            SlipConfig::One(sector) => (sector, 1),
            SlipConfig::Run(first, sectors) => (first, sectors),
        }
    }
}

/// A track with fewer sectors than its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExceptionConfig {
    /// Where it lies.
    pub cylinder: u32,
    /// Its surface.
    pub surface: u32,
    /// Sectors that carry an LBN.
    pub sectors: u32,
    /// Sectors at its beginning that carry none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub skip_first: u32,
}

/// Neighbouring tracks of one surface that LBNs pass over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The surface.
    pub surface: u32,
    /// The outermost of the tracks, counted within the group.
    pub first_cylinder: u32,
    /// How many tracks.
    pub tracks: u32,
    /// Whether LBNs begin at the outermost track or at the innermost.
    #[serde(default, skip_serializing_if = "is_default")]
    pub direction: Direction,
    /// Sectors on each, where that is not the zone's number.
    pub sectors_per_track: Option<u32>,
    /// Where the first track begins, in revolutions from the beginning of the
    /// group; by the skews unless said.
    pub offset_revolutions: Option<f64>,
    /// From where a track begins to where the next does, in revolutions; the
    /// cylinder skew unless said.
    pub step_revolutions: Option<f64>,
}

/// Sectors on the tracks of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
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
    /// Measured: `[cylinders, ms]`, ascending; straight lines between them.
    Points {
        /// The points.
        points: Vec<(u32, f64)>,
        /// The curve may fall by more than the noise of a measurement.
        #[serde(default, skip_serializing_if = "is_default")]
        falls_allowed: bool,
    },
    /// The three numbers of a datasheet. The curve through them is
    /// `t + b sqrt(d-1) + c (d-1)` (Lee & Katz, SIGMETRICS 1993).
    Datasheet {
        /// One cylinder.
        track_to_track_ms: f64,
        /// Mean over seeks between random cylinders.
        average_ms: f64,
        /// From edge to edge.
        full_stroke_ms: f64,
    },
    /// Ruemmler & Wilkes (IEEE Computer, 1994): `a + b sqrt(d)` below the
    /// crossover, `c + e d` from it on.
    TwoPiece {
        /// Constant of the short seeks.
        a_ms: f64,
        /// Factor of the root of the distance.
        b_ms: f64,
        /// Constant of the long seeks.
        c_ms: f64,
        /// Factor of the distance.
        e_ms: f64,
        /// The first distance of the second form.
        crossover: u32,
    },
}

/// What a vendor publishes about the whole. Each number that is given is
/// checked against the model when the file is loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Sustained transfer rate at the outer edge, MB/s (10^6 bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer_mb_per_s: Option<f64>,
    /// Sustained transfer rate at the inner edge, MB/s (10^6 bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner_mb_per_s: Option<f64>,
    /// Mean seek time of random reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_seek_ms: Option<f64>,
    /// Relative difference that the checks of this drive allow; 0.03 unless
    /// said. A larger one wants a reason in `sources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

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
            rpm: 10_000.0,
            surfaces: 2,
            actuators: 1,
            order: TrackOrder::Cylinder,
            band_tracks: 32,
            band_start: Direction::Inward,
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
            queue: QueueConfig::default(),
            power: None,
            spin_down: None,
            published: Published::default(),
            sources: BTreeMap::new(),
        }
    }
}
