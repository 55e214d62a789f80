//! A first description of a drive from the few numbers that vendors print.
//!
//! Numbers that no sheet contains are fitted: zones, the order of tracks, the seek curve between
//! its ends, skews, the rules of the buffer. Each fitted number is marked under `[sources]`. The
//! layout is that of drives since about 2000: a head stays on its surface for a band of tracks
//! before the next head takes over, and track lengths differ by surface (H. Wong, "Discovering Hard
//! Disk Physical Geometry through Microbenchmarking", 2019).
//!
//! | step | result |
//! |---|---|
//! | [`DataSheet::checked`] | impossible numbers are refused |
//! | [`TrackLayout::fit`] | surfaces, cylinders and the tracks of each zone |
//! | [`DataSheet::drive`] | the description, with sources and published numbers |

mod layout;
mod sheet;
mod sources;

use crate::check::checks;
use crate::config::{
    BufferConfig, DriveConfig, ElectronicsConfig, Published, ReadAhead, SECTOR, SECTOR_4K,
    SeekConfig, SeekDirection, TrackOrder, ZeroLatency,
};
use crate::drive::DriveModel;
use crate::presets::DriveClass;
use crate::seek::SeekTable;
use fullstroke_contract::ConfigError;
use fullstroke_units::{Bytes, Duration, Sectors};
use layout::TrackLayout;
pub use sheet::DataSheet;
use sheet::NEIGHBOUR_SKEW;

/// Ratio of the inner rate to the outer rate: 229 of 500 sectors a track on a Toshiba X300 (Wong).
const INNER_SHARE: f64 = 0.458;
/// Average seek in ms, from the fit of the Exos X24 to its published random reads.
const AVERAGE_SEEK_MS: f64 = 8.5;
/// Ratio of the full stroke to the average seek, as in the Constellation.2 manual.
const FULL_STROKE: f64 = 2.1;
/// Largest relative error of the rates and of the average seek.
const TOLERANCE: f64 = 0.01;
/// Default size of the buffer.
const BUFFER: Bytes = Bytes(64 << 20);

/// Returns the number of sectors that a drive sold with `capacity` reports. Up to 8 TB, the rule of
/// IDEMA LBA1-03 applies. Above 8 TB, the result is the next multiple of 2^21 sectors, as on drives
/// of 10 to 24 TB. A capacity below 50 GB, or not a whole number of GB, is converted as given.
pub fn sectors_of(capacity: Bytes) -> Sectors {
    const GB: u64 = 1_000_000_000;
    let gigabytes = capacity.0 / GB;
    // IDEMA's formula LBA1-03 counts whole GB from 50 GB on. Any other capacity is meant exactly.
    if !capacity.0.is_multiple_of(GB) || gigabytes < 50 {
        return Sectors(capacity.0 / 512);
    }
    if gigabytes <= 8000 {
        // IDEMA LBA1-03: 97,696,368 sectors for 50 GB, and 1,953,504 for each further GB.
        return Sectors(97_696_368 + 1_953_504 * (gigabytes - 50));
    }
    Sectors((capacity.0 / 512).next_multiple_of(1 << 21))
}

impl DataSheet {
    /// Returns a description with these numbers. The capacity is exact. Rates and the average seek
    /// are within 1 %.
    ///
    /// # Errors
    /// Names the invalid number (`capacity`, `rpm`, `outer`, `inner`, `seek`, `surfaces`, `cache`),
    /// the found value and the expected range.
    pub fn drive(&self) -> Result<DriveConfig, ConfigError> {
        self.checked()?;
        let layout = TrackLayout::fit(self)?;
        let neighbour_ms = self.revolution_ms() * NEIGHBOUR_SKEW;
        let average_ms = self.average_seek();
        let zones = layout.zones(self.capacity)?;
        let cylinders = zones.last().map_or(2, |zone| zone.last_cylinder + 1);
        let track_to_track_ms = f64::min(neighbour_ms * 0.6, average_ms / 5.0);
        let config = DriveConfig {
            title: self.title.clone(),
            capacity_sectors: self.capacity,
            rpm: self.rpm,
            surfaces: layout.surfaces(),
            actuators: 1,
            order: TrackOrder::BandedAlternating,
            band_tracks: layout.band_tracks,
            band_start: SeekDirection::Inward,
            zones,
            seek: self.seeks(track_to_track_ms, cylinders)?,
            head_switch_ms: rounded(neighbour_ms),
            write_settle_ms: rounded(neighbour_ms * 0.2),
            physical_sector: SECTOR_4K,
            logical_sector: SECTOR,
            turn_round_ms: 0.0,
            zero_latency: ZeroLatency::All(true),
            // Deskstar 120GXP specification, figure 4.
            command_overhead_ms: 0.3,
            queued_overhead_ms: 0.0,
            electronics: ElectronicsConfig {
                // SATA at 6 Gb/s carries 600 MB/s behind the 8b/10b code: 512 bytes in 0.853 us.
                bus_read_ms_per_sector: 0.000853,
                bus_write_ms_per_sector: 0.000853,
                // Ultrastar 146Z10 specification, section 4.5.1.
                hit_overhead_ms: Some(0.03),
                shared_link: true,
                ..ElectronicsConfig::default()
            },
            buffer: Some(buffer(self.buffer.unwrap_or(BUFFER), self.class())),
            faults: None,
            freeblock: None,
            limits: None,
            shingled: None,
            zoned: None,
            flash: None,
            queue: self.class().queue(),
            power: None,
            spin_down: None,
            published: Published {
                outer_mb_per_s: Some(self.outer_mb_per_s),
                inner_mb_per_s: self.inner_mb_per_s,
                average_seek_ms: self.average_seek_ms,
                tolerance: Some(TOLERANCE),
                ..Published::default()
            },
            validated: None,
            sources: sources::of(self),
        };
        held(config)
    }

    /// Refuses impossible numbers.
    fn checked(&self) -> Result<(), ConfigError> {
        let fail = |key: &str, message: String| Err(ConfigError::new(key, message));
        if self.capacity.0 < 1 << 20 {
            return fail(
                "capacity",
                format!(
                    "found {}, 512 bytes each; expected at least 512 MiB, with a unit such as 8TB",
                    self.capacity
                ),
            );
        }
        if !(1000.0..=30_000.0).contains(&self.rpm) {
            return fail(
                "rpm",
                format!(
                    "found {}; expected 1,000 to 30,000 revolutions a minute",
                    self.rpm
                ),
            );
        }
        let [least, most] = [100.0, 20_000.0].map(|sectors| sectors * self.mb_per_s_of_a_sector());
        if !(least..=most).contains(&self.outer_mb_per_s) {
            let message = format!(
                "found {} MB/s; at {} rpm expected {least:.1} to {most:.0}: 100 to 20,000 sectors a track",
                self.outer_mb_per_s, self.rpm
            );
            return fail("outer", message);
        }
        let inner = self.inner();
        let least = f64::max(
            self.outer_mb_per_s / 4.0,
            64.0 * self.mb_per_s_of_a_sector(),
        );
        if !(least..=self.outer_mb_per_s).contains(&inner) {
            let message = format!(
                "found {inner} MB/s; expected {least:.1} to the {} of the outer edge",
                self.outer_mb_per_s
            );
            return fail("inner", message);
        }
        if !(0.5..=100.0).contains(&self.average_seek()) {
            return fail(
                "seek",
                format!("found {}; expected 0.5 to 100 ms", self.average_seek()),
            );
        }
        if self
            .surfaces
            .is_some_and(|surfaces| !(1..=32).contains(&surfaces))
        {
            let found = self.surfaces.unwrap_or_default();
            return fail(
                "surfaces",
                format!("found {found}; expected 1 to 32, one for each head"),
            );
        }
        if self
            .buffer
            .is_some_and(|buffer| buffer.0 < 1 << 20 || buffer.0 > 1 << 40)
        {
            let found = self.buffer.unwrap_or_default();
            return fail("cache", format!("found {found}; expected 1 MiB to 1 TiB"));
        }
        Ok(())
    }

    /// Returns the class of the drive.
    pub fn class(&self) -> DriveClass {
        self.class
            .unwrap_or_else(|| DriveClass::of(self.rpm, self.capacity.bytes().0))
    }

    /// Returns the seek curve. One track costs `neighbour_ms`.
    ///
    /// # Errors
    /// Fails if the average seek is too short for the neighbouring track.
    fn seeks(&self, neighbour_ms: f64, cylinders: u32) -> Result<SeekConfig, ConfigError> {
        let average_ms = self.average_seek();
        let neighbour_ms = rounded(neighbour_ms);
        let Some(floor) = self.class().floor() else {
            return Ok(SeekConfig::Datasheet {
                track_to_track_ms: neighbour_ms,
                average_ms,
                full_stroke_ms: rounded(average_ms * FULL_STROKE),
            });
        };
        // The mean over all distances is linear in the factor of the root.
        let floor_ms = average_ms * floor;
        let curve = |root_ms| settled_curve(neighbour_ms, floor_ms, root_ms, cylinders);
        let mean = |root_ms| {
            let table = SeekTable::new(&curve(root_ms), cylinders);
            table.map(|table| table.average().as_millis_f64())
        };
        let (low, high) = (mean(average_ms)?, mean(average_ms * 2.0)?);
        let root_ms = average_ms * (1.0 + (average_ms - low) / (high - low));
        Ok(curve(root_ms))
    }

    fn inner(&self) -> f64 {
        self.inner_mb_per_s
            .unwrap_or(self.outer_mb_per_s * INNER_SHARE)
    }

    fn average_seek(&self) -> f64 {
        self.average_seek_ms.unwrap_or(AVERAGE_SEEK_MS)
    }

    fn revolution_ms(&self) -> f64 {
        60_000.0 / self.rpm
    }

    /// Rate of a track with one sector, without skews.
    fn mb_per_s_of_a_sector(&self) -> f64 {
        512.0 * self.rpm / 60.0 / 1e6
    }
}

/// Returns a buffer of `size` with the rules assumed for current drives.
fn buffer(size: Bytes, class: DriveClass) -> BufferConfig {
    let sectors = (size.0 / 512) as u32;
    let mut buffer = BufferConfig {
        segments: 1024,
        segment_sectors: u32::min(8192, sectors / 2),
        sectors: Some(sectors),
        write_segments: 512,
        read_ahead: ReadAhead::Segment,
        read_ahead_sectors: None,
        read_ahead_over_delivered: false,
        read_ahead_misses_at_end: false,
        read_ahead_waits_for_stream: false,
        read_ahead_on_hit: true,
        write_back: true,
        combine_writes: true,
        read_hits_on_written: true,
        writes_drop_reads: false,
        destage_delay: Duration::ZERO,
        destage_watermark: 1.0,
        destage_discipline: Some("satf".into()),
        destage: Default::default(),
        hits_pass_queue: false,
        buffered_first: true,
        stream_sectors: u32::min(4096, sectors / 4),
    };
    class.caches(&mut buffer);
    buffer
}

/// Shares of the longest distance at which a settled curve has a point.
const SHARES: [f64; 19] = [
    0.0008, 0.002, 0.004, 0.008, 0.015, 0.03, 0.05, 0.08, 0.12, 0.17, 0.23, 0.3, 0.38, 0.47, 0.57,
    0.68, 0.8, 0.9, 1.0,
];

/// Returns the curve `floor + root sqrt(share of the longest distance)`, with `neighbour_ms` for
/// one track. Measured desktop disks have such a curve: their short seeks cost a fifth of the
/// average (VALIDATION.md, "Drives by queue depth").
pub fn settled_curve(neighbour_ms: f64, floor_ms: f64, root_ms: f64, cylinders: u32) -> SeekConfig {
    let longest = cylinders.saturating_sub(1).max(1);
    let mut points = vec![(1, neighbour_ms)];
    for share in SHARES {
        let distance = (f64::from(longest) * share) as u32;
        // On a disk of few cylinders several shares are one distance, and distances must rise.
        if points.last().is_some_and(|&(last, _)| distance > last) {
            let time = floor_ms + root_ms * share.sqrt();
            points.push((distance, rounded(time.max(neighbour_ms))));
        }
    }
    SeekConfig::Points {
        points,
        falls_allowed: false,
    }
}

/// Returns the description if the description passes all checks for drives of the library.
fn held(config: DriveConfig) -> Result<DriveConfig, ConfigError> {
    let model = DriveModel::new(config)?;
    match checks(&model).into_iter().find(|check| !check.passed) {
        None => Ok(model.config().clone()),
        Some(failed) => {
            let message = format!(
                "{}: found {}, expected {}",
                failed.name, failed.found, failed.expected
            );
            Err(ConfigError::new(failed.key, message))
        }
    }
}

/// Rounds to the microsecond.
fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}
