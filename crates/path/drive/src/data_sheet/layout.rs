//! Finds surfaces, cylinders and track lengths for a capacity and two rates.

use super::sheet::{DataSheet, HEAD_SKEW, NEIGHBOUR_SKEW};
use crate::config::{SectorsPerTrack, ZoneConfig};
use fullstroke_contract::ConfigError;
use fullstroke_units::Sectors;

/// Number of zones of a drive with shorter inner tracks. Measured drives have about 20 to 30 (Wong:
/// 20 on a Toshiba MK8034GSX, 24 on a Samsung F3).
const ZONES: u32 = 24;
/// Tracks of a band: 315 on a Toshiba X300, 141 on a P300 (Wong).
const BAND_TRACKS: u32 = 256;
/// Smallest number of bands per surface in a zone, so that zones end at the end of a band.
const BANDS_OF_ZONE: u32 = 8;
/// Relative difference between the longest tracks at one radius and the mean; the shortest tracks
/// differ as much. Measured: 500 and 460 sectors on neighbouring bands of a Toshiba X300 (Wong),
/// 1025 and 1196 on a Maxtor Atlas 10K V (Qian & Wang, table 4.1.1).
const SPREAD: f64 = 0.04;
/// Shortest track length in whole sectors of 4 KiB.
const ADVANCED_FORMAT_FROM: f64 = 1600.0;
/// Plausible numbers of cylinders.
const CYLINDERS: std::ops::RangeInclusive<f64> = 1000.0..=4e6;

/// Places and lengths of the tracks.
pub(super) struct TrackLayout {
    pub(super) band_tracks: u32,
    /// Track length by surface, zone by zone.
    lengths: Vec<Vec<u32>>,
    /// Number of cylinders of each zone except the last zone, which takes the rest.
    zone_cylinders: Vec<u32>,
}

impl TrackLayout {
    /// Returns the layout for `sheet`.
    ///
    /// # Errors
    /// Names `surfaces`, or `capacity` if no surfaces are given, if the number of cylinders is not
    /// plausible.
    pub(super) fn fit(sheet: &DataSheet) -> Result<TrackLayout, ConfigError> {
        let (surfaces, about) = sheet.surfaces_and_cylinders()?;
        let zones = if sheet.inner() < sheet.outer_mb_per_s {
            ZONES
        } else {
            1
        };
        // A small drive has fewer tracks in a zone than the usual eight bands hold.
        let band_tracks = (about / (zones * BANDS_OF_ZONE)).clamp(1, BAND_TRACKS);
        let (outer, inner) = sheet.sectors_per_track(revolutions(surfaces, band_tracks));
        let lengths: Vec<Vec<u32>> = (0..zones)
            .map(|zone| {
                let inward = f64::from(zone) / f64::from(zones.max(2) - 1);
                track_lengths(outer + (inner - outer) * inward, surfaces)
            })
            .collect();
        let mean = lengths
            .iter()
            .map(|zone| cylinder_sectors(zone))
            .sum::<u64>() as f64
            / f64::from(zones);
        let cylinders = sheet.capacity.0 as f64 / mean;
        let first = |zone: u32| {
            // Zones begin at whole bands, because a band has one track length.
            let bands = cylinders * f64::from(zone) / f64::from(zones * band_tracks);
            bands.round() as u32 * band_tracks
        };
        let zone_cylinders = (1..zones)
            .map(|zone| first(zone) - first(zone - 1))
            .collect();
        Ok(TrackLayout {
            band_tracks,
            lengths,
            zone_cylinders,
        })
    }

    pub(super) fn surfaces(&self) -> u32 {
        self.lengths[0].len() as u32
    }

    /// Returns the zone table of a drive of `capacity`. Sectors of the last zone beyond the
    /// capacity are spares.
    pub(super) fn zones(&self, capacity: Sectors) -> Result<Vec<ZoneConfig>, ConfigError> {
        let mut left = capacity.0;
        let mut first = 0;
        let mut zones = Vec::with_capacity(self.lengths.len());
        for (index, lengths) in self.lengths.iter().enumerate() {
            let of_cylinder = cylinder_sectors(lengths);
            let cylinders = match self.zone_cylinders.get(index) {
                Some(&cylinders) => cylinders,
                None => left.div_ceil(of_cylinder) as u32,
            };
            let held = u64::from(cylinders) * of_cylinder;
            let spares = if index + 1 == self.lengths.len() {
                held - left
            } else {
                0
            };
            left = left.checked_sub(held - spares).ok_or_else(|| {
                ConfigError::new(
                    "capacity",
                    format!("found {capacity}; expected more than the outer zones hold"),
                )
            })?;
            zones.push(ZoneConfig {
                sectors_per_track: in_file(lengths),
                track_skew: skew(HEAD_SKEW, lengths[0]),
                cylinder_skew: skew(NEIGHBOUR_SKEW, lengths[0]),
                spares,
                ..ZoneConfig::plain(first, first + cylinders - 1, lengths[0])
            });
            first += cylinders;
        }
        Ok(zones)
    }
}

impl DataSheet {
    /// Returns the number of surfaces, and the approximate number of cylinders.
    fn surfaces_and_cylinders(&self) -> Result<(u32, u32), ConfigError> {
        let (outer, inner) = self.sectors_per_track(1.0 + NEIGHBOUR_SKEW);
        let tracks = self.capacity.0 as f64 / f64::midpoint(outer, inner);
        let surfaces = self.surfaces.unwrap_or_else(|| surfaces_for(tracks, outer));
        let cylinders = tracks / f64::from(surfaces);
        if CYLINDERS.contains(&cylinders) {
            return Ok((surfaces, cylinders as u32));
        }
        let (key, found) = match self.surfaces {
            Some(surfaces) => ("surfaces", surfaces.to_string()),
            None => ("capacity", self.capacity.to_string()),
        };
        let message = format!(
            "found {found}; at these rates each of {surfaces} surfaces has {cylinders:.0} tracks; expected {} to {}",
            CYLINDERS.start(),
            CYLINDERS.end()
        );
        Err(ConfigError::new(key, message))
    }

    /// Returns the mean number of sectors on the outermost and the innermost tracks. Passing one
    /// track takes `revolutions`, including skews.
    fn sectors_per_track(&self, revolutions: f64) -> (f64, f64) {
        let sectors = |mb_per_s: f64| mb_per_s / self.mb_per_s_of_a_sector() * revolutions;
        (sectors(self.outer_mb_per_s), sectors(self.inner()))
    }
}

/// Returns the revolutions per track for bands of `band_tracks` tracks. The result includes the
/// share of the head changes.
fn revolutions(surfaces: u32, band_tracks: u32) -> f64 {
    let heads = if surfaces == 1 {
        0.0
    } else {
        (HEAD_SKEW - NEIGHBOUR_SKEW) / f64::from(band_tracks)
    };
    1.0 + NEIGHBOUR_SKEW + heads
}

/// Returns the number of surfaces for `tracks` tracks. The outermost tracks have `sectors` sectors.
/// Longer tracks lie closer together. The power law goes through the measured drives of Wong's
/// table, from 5,400 tracks of 74 kB (Seagate Medalist) to 328,000 of 2,048 kB (Toshiba X300), and
/// the Exos X24's 648,000 of 2,500 kB.
fn surfaces_for(tracks: f64, sectors: f64) -> u32 {
    let of_surface = 5400.0 * (sectors * 512.0 / 74_000.0).powf(1.36);
    (tracks / of_surface).round().clamp(1.0, 24.0) as u32
}

/// Returns the track lengths at one radius by surface, with mean `mean`. The rank of each surface
/// is made up.
fn track_lengths(mean: f64, surfaces: u32) -> Vec<u32> {
    let grain = if mean >= ADVANCED_FORMAT_FROM {
        // Tracks of drives with 4 KiB sectors hold whole sectors of 4 KiB.
        8.0
    } else {
        1.0
    };
    // A step coprime to the number of surfaces visits each surface once, and neighbours differ.
    let step = (3..)
        .step_by(2)
        .find(|&step| coprime(step, surfaces))
        .unwrap_or(1);
    (0..surfaces)
        .map(|surface| {
            let rank = (surface * step + surfaces / 2) % surfaces;
            let denser = if surfaces == 1 {
                0.0
            } else {
                2.0 * f64::from(rank) / f64::from(surfaces - 1) - 1.0
            };
            ((mean * (1.0 + SPREAD * denser) / grain).round() * grain) as u32
        })
        .collect()
}

fn coprime(a: u32, b: u32) -> bool {
    if b == 0 { a == 1 } else { coprime(b, a % b) }
}

fn cylinder_sectors(lengths: &[u32]) -> u64 {
    lengths.iter().map(|&sectors| u64::from(sectors)).sum()
}

fn in_file(lengths: &[u32]) -> SectorsPerTrack {
    match lengths {
        [one] => SectorsPerTrack::Same(*one),
        _ => SectorsPerTrack::PerSurface(lengths.to_vec()),
    }
}

/// Converts a skew to sectors of the first surface, rounded to a tenth.
fn skew(revolutions: f64, sectors: u32) -> f64 {
    // One decimal keeps the file readable. A tenth of a sector is far below the skew's uncertainty.
    (revolutions * f64::from(sectors) * 10.0).round() / 10.0
}
