//! A zone: the map between the sectors of the zone and LBNs.

use super::slips::{Remaps, Slips};
use super::tracks::{FoundTrack, TracksConfig, ZoneTracks};
use crate::config::{DriveConfig, SectorsPerTrack, SlipConfig, ZoneConfig};
use fullstroke_contract::ConfigError;
use fullstroke_units::{Angle, order_by_key};

/// Cylinders of equal track length.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) first_lbn: u64,
    pub(super) lbns: u64,
    pub(super) first_cylinder: u32,
    pub(super) cylinders: u32,
    pub(super) tracks: ZoneTracks,
    /// Number of sectors in front of the first LBN of the zone.
    dead: u64,
    /// Angle of the first sector of the zone.
    origin: Angle,
    /// Ranges with spares at their ends. `None` if the spares stand at the end of the zone.
    range: Option<Range>,
    slips: Slips,
    remaps: Remaps,
}

/// Sectors that share spares. LBNs slip within a range only.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// Number of sectors of a range.
    sectors: u64,
    /// Number of LBNs of a range.
    lbns: u64,
}

/// The sector of an LBN, counted within the zone in LBN order, including sectors without LBN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneSector {
    pub(super) sector: u64,
    /// Index of the first run of slips behind the sector.
    pub(super) next_slip: u32,
    /// Number of LBNs from this one on, inclusive, before spares or the end of the zone interrupt
    /// the sequence.
    pub(super) lbns_left: u64,
    /// Number of LBNs before this one since spares or the beginning of the zone.
    pub(super) lbns_before: u64,
}

impl Zone {
    pub(super) fn new(
        config: &ZoneConfig,
        drive: &DriveConfig,
        first_lbn: u64,
        free_cylinder: u32,
    ) -> Result<Zone, ConfigError> {
        check_cylinders(config, free_cylinder)?;
        let lengths = config.sectors_per_track.by_surface(drive.surfaces)?;
        // A skew in sectors needs a track length; the field's documentation names the first
        // surface.
        let reference = lengths[0];
        let cylinders = config.last_cylinder - config.first_cylinder + 1;
        let tracks = ZoneTracks::new(&TracksConfig {
            order: config.order.unwrap_or(drive.order),
            band_tracks: drive.band_tracks.max(1),
            band_start: drive.band_start,
            runs: &config.runs,
            cylinders,
            lengths: &lengths,
            track_skew: skew("track_skew", config.track_skew, reference)?,
            cylinder_skew: skew("cylinder_skew", config.cylinder_skew, reference)?,
        })?;
        let total = tracks.sectors();
        let range = Range::new(config, &lengths)?;
        let (slips, excepted) = Zone::slips(config, &tracks, range)?;
        let lbns = lbns_of(config, total, range, slips.sectors(), excepted)?;
        let zone = Zone {
            first_lbn,
            lbns,
            first_cylinder: config.first_cylinder,
            cylinders,
            tracks,
            dead: config.dead,
            origin: skew("offset", config.offset, reference)?,
            range,
            slips,
            remaps: Remaps::new(&config.remaps, total)?,
        };
        zone.check(config)?;
        Ok(zone)
    }

    /// Returns the configured slips together with the slips that represent shorter tracks. Also
    /// returns the number of sectors in the latter.
    fn slips(
        config: &ZoneConfig,
        tracks: &ZoneTracks,
        range: Option<Range>,
    ) -> Result<(Slips, u64), ConfigError> {
        let mut all = config.slips.clone();
        let mut excepted = 0;
        for (index, exception) in config.exceptions.iter().enumerate() {
            let fail = |message: String| ConfigError::new(format!("exceptions[{index}]"), message);
            let cylinder = exception.cylinder.checked_sub(config.first_cylinder);
            let track = cylinder.and_then(|cylinder| tracks.at(cylinder, exception.surface));
            let track = track.ok_or_else(|| fail("there is no such track in the zone".into()))?;
            let skipped = u64::from(exception.skip_first);
            let end = skipped + u64::from(exception.sectors);
            if end > track.sectors {
                return Err(fail(format!(
                    "{end} sectors do not fit a track of {}",
                    track.sectors
                )));
            }
            // A shorter track is a full track whose missing sectors slip: the angles of the others
            // stay.
            for (start, sectors) in [(0, skipped), (end, track.sectors - end)] {
                if sectors > 0 {
                    all.push(SlipConfig::Run(track.start + start, sectors));
                    excepted += sectors;
                }
            }
        }
        if excepted > 0 {
            // `Slips` expects ascending runs, and the exceptions were added behind the configured
            // slips.
            order_by_key(&mut all, |slip| slip.run());
        }
        let range = range.map_or(u64::MAX, |range| range.sectors);
        Ok((Slips::new(&all, tracks.sectors(), range)?, excepted))
    }

    /// Checks that slips, remaps and spares fit together.
    fn check(&self, config: &ZoneConfig) -> Result<(), ConfigError> {
        if let Some(range) = self.range {
            let spare = range.sectors - range.lbns;
            let mut base = 0;
            // Each range alone: spares of one cylinder cannot stand in for defects of another.
            while base < self.tracks.sectors() {
                let slipped = self.slips.before(base + range.sectors) - self.slips.before(base);
                if slipped > spare {
                    let message =
                        format!("{slipped} sectors slip from {base} on, where {spare} are spare");
                    return Err(ConfigError::new("slips", message));
                }
                base += range.sectors;
            }
        }
        if let Some(spare) = self
            .remaps
            .spares()
            .find(|&spare| self.natural_offset(spare).is_some())
        {
            let message =
                format!("sector {spare} carries an LBN of its own and cannot replace another");
            return Err(ConfigError::new("remaps", message));
        }
        for &(defect, _) in &config.remaps {
            if self.natural_offset(defect).is_none() {
                return Err(ConfigError::new(
                    "remaps",
                    format!("sector {defect} carries no LBN"),
                ));
            }
        }
        Ok(())
    }

    /// Returns the sector of the LBN at `offset` of the zone, without remaps.
    #[inline]
    pub(super) fn place(&self, offset: u64) -> ZoneSector {
        debug_assert!(
            offset < self.lbns,
            "LBN {offset} of a zone that has {}",
            self.lbns
        );
        let shifted = offset + self.dead;
        match self.range {
            None => {
                let (sector, next_slip) = self.slips.slip(shifted);
                ZoneSector {
                    sector,
                    next_slip,
                    lbns_left: self.lbns - offset,
                    lbns_before: offset,
                }
            }
            Some(range) => {
                let (number, within) = (shifted / range.lbns, shifted % range.lbns);
                let (sector, next_slip) = self.slips.slip_within(number * range.sectors, within);
                let lbns_left = (range.lbns - within).min(self.lbns - offset);
                ZoneSector {
                    sector,
                    next_slip,
                    lbns_left,
                    lbns_before: within.min(offset),
                }
            }
        }
    }

    /// Returns the offset of the LBN with the natural sector `sector`. `None` if the sector has no
    /// natural LBN.
    pub(super) fn natural_offset(&self, sector: u64) -> Option<u64> {
        if self.slips.contains(sector) {
            return None;
        }
        let shifted = match self.range {
            None => sector - self.slips.before(sector),
            Some(range) => {
                let base = sector - sector % range.sectors;
                let within = sector - base - (self.slips.before(sector) - self.slips.before(base));
                if within >= range.lbns {
                    return None;
                }
                base / range.sectors * range.lbns + within
            }
        };
        shifted
            .checked_sub(self.dead)
            .filter(|&offset| offset < self.lbns)
    }

    /// Returns the offset of the LBN on `sector`. `None` if no LBN lives there.
    pub(super) fn offset_on(&self, sector: u64) -> Option<u64> {
        match self.remaps.replaced_by(sector) {
            Some(defect) => self.natural_offset(defect),
            // A defective sector keeps its natural place on the track, but its LBN lives elsewhere.
            None if self.remaps.replacement(sector).is_some() => None,
            None => self.natural_offset(sector),
        }
    }

    /// Number of LBNs from `placed` to the end of the track, inclusive.
    #[inline]
    pub(super) fn left_on_track(&self, placed: &ZoneSector, track: &FoundTrack) -> u64 {
        let end = track.start + track.sectors;
        debug_assert!(
            (track.start..end).contains(&placed.sector),
            "sector {} was looked up on the track of sectors {} to {end}",
            placed.sector,
            track.start
        );
        let slipped = self.slips.slipped_from_run(placed.next_slip, end);
        (end - placed.sector - slipped).min(placed.lbns_left)
    }

    /// Number of LBNs before `placed` on the track.
    pub(super) fn before_on_track(&self, placed: &ZoneSector, track: &FoundTrack) -> u64 {
        let slipped = self.slips.before(placed.sector) - self.slips.before(track.start);
        (placed.sector - track.start - slipped).min(placed.lbns_before)
    }

    /// Returns `Ok` with the replacement sector if the sector at `placed` is defective. Otherwise
    /// returns `Err` with the number of LBNs from `placed` on, inclusive, before the next remapped
    /// LBN.
    #[inline]
    pub(super) fn remapped(&self, placed: &ZoneSector) -> Result<u64, u64> {
        // Nearly all drive files have no remaps, and each transfer comes here.
        if self.remaps.is_empty() {
            return Err(u64::MAX);
        }
        match self.remaps.next(placed.sector) {
            None => Err(u64::MAX),
            Some((defect, spare)) if defect == placed.sector => Ok(spare),
            Some((defect, _)) => {
                let slipped = self.slips.slipped_from_run(placed.next_slip, defect);
                Err(defect - placed.sector - slipped)
            }
        }
    }

    /// Returns the place of a replacement sector.
    pub(super) fn replacement(&self, sector: u64) -> ZoneSector {
        ZoneSector {
            sector,
            next_slip: self.slips.first_from(sector) as u32,
            lbns_left: 1,
            lbns_before: 0,
        }
    }

    /// Returns the number of passing sectors during a transfer of `sectors` LBNs from `sector` on.
    #[inline]
    pub(super) fn passed(&self, sector: u64, next_slip: u32, sectors: u64) -> u64 {
        self.slips.last_of(next_slip, sector, sectors) + 1 - sector
    }

    /// Returns the sector of the LBN that follows `lbns` LBNs after the LBN on `sector`, and the
    /// number of the first run of slips behind it. Both LBNs must lie on one track.
    #[inline]
    pub(super) fn following(&self, sector: u64, next_slip: u32, lbns: u64) -> (u64, u32) {
        self.slips.following(next_slip, sector, lbns)
    }

    /// Returns the angle of the beginning of `sector`.
    #[inline]
    pub(super) fn angle(&self, sector: u64, track: &FoundTrack) -> Angle {
        // An angle is a share of a revolution in 64 bits, so the wrap at 2^64 is the wrap at a
        // whole revolution.
        let within = track.sector_angle.0.wrapping_mul(sector - track.start);
        Angle(
            self.origin
                .0
                .wrapping_add(track.angle.0)
                .wrapping_add(within),
        )
    }
}

impl Range {
    /// Returns the ranges of the configuration: tracks or cylinders. `None` if the configuration
    /// has no ranges.
    fn new(config: &ZoneConfig, lengths: &[u64]) -> Result<Option<Range>, ConfigError> {
        let (key, sectors, spares) = match (config.spares_per_track, config.spares_per_cylinder) {
            (0, 0) => return Ok(None),
            (spares, 0) if lengths.iter().all(|&length| length == lengths[0]) => {
                ("spares_per_track", lengths[0], spares)
            }
            (_, 0) => {
                let message =
                    "expected equal track lengths on all surfaces; use spares_per_cylinder";
                return Err(ConfigError::new("spares_per_track", message));
            }
            (0, spares) => ("spares_per_cylinder", lengths.iter().sum(), spares),
            _ => {
                return Err(ConfigError::new(
                    "spares_per_track",
                    "expected either spares_per_track or spares_per_cylinder, not both",
                ));
            }
        };
        let cylinders = u64::from(config.spare_range_cylinders.max(1));
        let sectors = if key == "spares_per_cylinder" {
            sectors * cylinders
        } else {
            sectors
        };
        let lbns = sectors
            .checked_sub(u64::from(spares))
            .filter(|&lbns| lbns > 0);
        let lbns = lbns.ok_or_else(|| {
            ConfigError::new(
                key,
                format!("{spares} leave no sector of {sectors} sectors"),
            )
        })?;
        Ok(Some(Range { sectors, lbns }))
    }
}

/// Converts `sectors` of a track of `length` sectors to an angle.
fn skew(key: &str, sectors: f64, length: u64) -> Result<Angle, ConfigError> {
    if !(sectors.is_finite() && sectors >= 0.0) {
        return Err(ConfigError::new(
            key,
            format!("found {sectors}; expected a number of sectors, 0 or more"),
        ));
    }
    // A whole number of sectors becomes an exact ratio. Only a fraction needs floating point.
    Ok(if sectors.fract() == 0.0 && sectors < 1e15 {
        Angle::from_ratio(sectors as u64, length)
    } else {
        Angle::from_revolutions(sectors / length as f64)
    })
}

impl SectorsPerTrack {
    /// Returns the track length of each surface.
    fn by_surface(&self, surfaces: u32) -> Result<Vec<u64>, ConfigError> {
        let lengths: Vec<u64> = match self {
            SectorsPerTrack::Same(sectors) => vec![u64::from(*sectors); surfaces as usize],
            SectorsPerTrack::PerSurface(list) => {
                list.iter().map(|&sectors| u64::from(sectors)).collect()
            }
        };
        if lengths.len() != surfaces as usize {
            return Err(ConfigError::new(
                "sectors_per_track",
                format!(
                    "found {} numbers; expected one, or one for each of {surfaces} surfaces",
                    lengths.len()
                ),
            ));
        }
        if lengths.contains(&0) {
            return Err(ConfigError::new(
                "sectors_per_track",
                "found 0; a track has at least one sector",
            ));
        }
        Ok(lengths)
    }
}

/// Checks that the cylinders of a zone lie behind the cylinders of the previous zone.
fn check_cylinders(config: &ZoneConfig, free_cylinder: u32) -> Result<(), ConfigError> {
    if config.first_cylinder < free_cylinder {
        return Err(ConfigError::new(
            "first_cylinder",
            format!(
                "found {}, but the zone before reaches to {}",
                config.first_cylinder,
                free_cylinder - 1
            ),
        ));
    }
    if config.last_cylinder < config.first_cylinder {
        return Err(ConfigError::new(
            "last_cylinder",
            format!(
                "found {}, before the first, {}",
                config.last_cylinder, config.first_cylinder
            ),
        ));
    }
    Ok(())
}

/// Returns the number of addresses of a zone: the `total` sectors without dead, spare and
/// `excepted` sectors. Checks that the spares suffice for the slips.
fn lbns_of(
    config: &ZoneConfig,
    total: u64,
    range: Option<Range>,
    slips: u64,
    excepted: u64,
) -> Result<u64, ConfigError> {
    let in_ranges = range.map_or(0, |range| {
        total / range.sectors * (range.sectors - range.lbns)
    });
    if range.is_some_and(|range| !total.is_multiple_of(range.sectors)) {
        return Err(ConfigError::new(
            "spares_per_cylinder",
            "the zone is not a whole number of spare ranges",
        ));
    }
    let unused = [config.dead, config.spares, in_ranges, excepted]
        .into_iter()
        .fold(0, u64::saturating_add);
    let lbns = total
        .checked_sub(unused)
        .filter(|&lbns| lbns > 0)
        .ok_or_else(|| {
            ConfigError::new(
                "spares",
                format!("spares and dead space ({unused}) leave no sector of {total} sectors"),
            )
        })?;
    // The sectors that shorten tracks need no spares, because they have no LBN to place elsewhere.
    let slipped = slips - excepted;
    if config.spares.saturating_add(in_ranges) < slipped {
        return Err(ConfigError::new(
            "slips",
            format!(
                "{slipped} slipped sectors need as many spares; found {}",
                config.spares + in_ranges
            ),
        ));
    }
    Ok(lbns)
}
