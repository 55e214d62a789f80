//! Where a logical block lies on the platters, both ways.
//!
//! A drive is a list of zones from the outer edge inward. Within a zone every
//! cylinder holds the same number of sectors, so that an address is found by
//! division; slipped sectors are the exceptions, kept sorted and indexed so that
//! tens of thousands of them cost no more than one look-up.

use crate::config::{DriveConfig, SectorsPerTrack, TrackOrder, ZoneConfig};
use fullstroke_contract::{ConfigError, Track, TrackTable};
use fullstroke_units::{Angle, Cylinder, Lbn, Sectors, Spindle, Time};

/// The place of one sector under a head, and what follows it on its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Position {
    /// Distance from the outer edge.
    pub cylinder: Cylinder,
    /// The head that reads it.
    pub surface: u32,
    /// Angle at which the sector begins.
    pub angle: Angle,
    /// Angle that one sector of this track covers.
    pub sector_angle: Angle,
    /// LBNs from this one to the end of the track, itself included.
    pub sectors_left: Sectors,
    /// Index of the zone.
    zone: u32,
    /// Number of the sector within its zone, in LBN order, slips counted.
    within_zone: u64,
    /// Index of the first slip behind the sector.
    next_slip: u32,
}

/// How addresses lie on a drive.
#[derive(Clone, Debug)]
pub struct Geometry {
    spindle: Spindle,
    capacity: Sectors,
    surfaces: u32,
    cylinders: u32,
    order: TrackOrder,
    zones: Vec<Zone>,
}

/// Cylinders of equal track length.
#[derive(Clone, Debug)]
struct Zone {
    first_lbn: u64,
    lbns: u64,
    first_cylinder: u32,
    cylinders: u32,
    surfaces: u32,
    /// Sectors in front of the zone's first LBN.
    dead: u64,
    sectors_per_cylinder: u64,
    tracks: TrackLengths,
    /// Angle of the zone's first sector.
    origin: Angle,
    /// Angle from the start of a track to that of the next in the cylinder.
    track_skew: Angle,
    /// Angle from the first track of a cylinder to that of the next cylinder.
    cylinder_advance: Angle,
    slips: Slips,
}

/// Sectors on the tracks of one cylinder, in the order of their surfaces.
#[derive(Clone, Debug)]
enum TrackLengths {
    Uniform { sectors: u64, sector_angle: Angle },
    PerSurface(Vec<SurfaceTrack>),
}

#[derive(Clone, Copy, Debug)]
struct SurfaceTrack {
    sectors: u64,
    sector_angle: Angle,
}

/// A track found within a cylinder: its place in LBN order, its surface, its
/// first sector within the cylinder, and its length.
struct TrackInCylinder {
    order: u64,
    surface: u32,
    start: u64,
    sectors: u64,
    sector_angle: Angle,
}

/// Sectors that carry no LBN, because the LBN that would have been theirs
/// slipped to the next sector.
#[derive(Clone, Debug, Default)]
struct Slips {
    /// Sector numbers within the zone, ascending.
    sectors: Vec<u64>,
    /// `sectors[i] - i`: the first LBN offset (dead space counted) that has
    /// slipped `i + 1` times. Ascending too.
    slipped_from: Vec<u64>,
    /// For each run of `1 << shift` offsets, how many entries of
    /// `slipped_from` lie before it.
    index: Vec<u32>,
    shift: u32,
}

impl Geometry {
    /// Lays out a drive.
    ///
    /// # Errors
    /// Names the key of a zone that overlaps, is empty, has no capacity left or
    /// lies outside of the drive, and a capacity that the zones do not add up to.
    pub fn new(config: &DriveConfig) -> Result<Geometry, ConfigError> {
        let spindle = Spindle::new(config.rpm).ok_or_else(|| {
            ConfigError::new("rpm", format!("found {}; expected revolutions a minute, above 0", config.rpm))
        })?;
        if config.surfaces == 0 {
            return Err(ConfigError::new("surfaces", "a drive has at least one surface"));
        }
        if config.zones.is_empty() {
            return Err(ConfigError::new("zones", "a drive has at least one zone"));
        }
        let mut zones = Vec::with_capacity(config.zones.len());
        let mut first_lbn = 0;
        let mut free_cylinder = 0;
        for (index, zone) in config.zones.iter().enumerate() {
            let built = Zone::new(zone, config.surfaces, first_lbn, free_cylinder)
                .map_err(|error| error.below(&format!("zones[{index}]")))?;
            first_lbn += built.lbns;
            free_cylinder = zone.last_cylinder + 1;
            zones.push(built);
        }
        if first_lbn != config.capacity_sectors.0 {
            return Err(ConfigError::new(
                "capacity_sectors",
                format!(
                    "found {}, but the zones hold {first_lbn} (tracks x sectors - spares - dead space); \
                     mend the zone table or its spares",
                    config.capacity_sectors.0
                ),
            ));
        }
        Ok(Geometry {
            spindle,
            capacity: config.capacity_sectors,
            surfaces: config.surfaces,
            cylinders: free_cylinder,
            order: config.order,
            zones,
        })
    }

    /// The motor.
    pub fn spindle(&self) -> Spindle {
        self.spindle
    }

    /// Addresses `0..capacity`.
    pub fn capacity(&self) -> Sectors {
        self.capacity
    }

    /// Cylinders from the outer edge to the end of the last zone.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Heads.
    pub fn surfaces(&self) -> u32 {
        self.surfaces
    }

    /// The place of `lbn`.
    ///
    /// # Panics
    /// If `lbn` is not below the capacity.
    #[inline]
    pub fn locate(&self, lbn: Lbn) -> Position {
        let index = self.zones.partition_point(|zone| zone.first_lbn <= lbn.0) - 1;
        let zone = &self.zones[index];
        let offset = lbn.0 - zone.first_lbn;
        assert!(offset < zone.lbns, "LBN {} lies beyond the drive", lbn.0);
        let next_slip = zone.slips.before_offset(offset + zone.dead);
        let within_zone = offset + zone.dead + u64::from(next_slip);
        self.place(index, within_zone, next_slip, zone.lbns - offset)
    }

    /// The first LBN behind the track of `position`, together with its place;
    /// `None` behind the last.
    #[inline]
    pub fn next_track(&self, lbn: Lbn, position: &Position) -> Option<(Lbn, Position)> {
        let next = lbn + position.sectors_left;
        (next.0 < self.capacity.0).then(|| (next, self.locate(next)))
    }

    /// Sectors that pass under the head while `sectors` LBNs from `position` on
    /// are transferred: more than `sectors` where slips lie between them.
    ///
    /// `sectors` must be at least 1 and stay on the track.
    #[inline]
    pub fn passed(&self, position: &Position, sectors: Sectors) -> u64 {
        let slips = &self.zones[position.zone as usize].slips.sectors;
        let mut last = position.within_zone + sectors.0 - 1;
        for &slip in &slips[(position.next_slip as usize).min(slips.len())..] {
            if slip > last {
                break;
            }
            last += 1;
        }
        last + 1 - position.within_zone
    }

    /// The LBN at `sector` (counted from the track's start) of a track, or
    /// `None` if that sector carries none.
    pub fn lbn_at(&self, cylinder: Cylinder, surface: u32, sector: u64) -> Option<Lbn> {
        let index = self.zones.partition_point(|zone| zone.first_cylinder <= cylinder.0).checked_sub(1)?;
        let zone = &self.zones[index];
        let relative = cylinder.0 - zone.first_cylinder;
        if relative >= zone.cylinders || surface >= self.surfaces {
            return None;
        }
        let track = zone.track_of_surface(surface, self.reversed(relative));
        if sector >= track.sectors {
            return None;
        }
        let within_zone = u64::from(relative) * zone.sectors_per_cylinder + track.start + sector;
        let slipped = zone.slips.before_sector(within_zone);
        if zone.slips.sectors.get(slipped) == Some(&within_zone) {
            return None;
        }
        let offset = within_zone.checked_sub(zone.dead + slipped as u64)?;
        (offset < zone.lbns).then(|| Lbn(zone.first_lbn + offset))
    }

    /// The zones, from the outer edge inward.
    pub fn zones(&self) -> impl Iterator<Item = ZoneView> + '_ {
        self.zones.iter().map(|zone| ZoneView {
            first_lbn: Lbn(zone.first_lbn),
            sectors: Sectors(zone.lbns),
            first_cylinder: Cylinder(zone.first_cylinder),
            last_cylinder: Cylinder(zone.first_cylinder + zone.cylinders - 1),
            sectors_per_cylinder: Sectors(zone.sectors_per_cylinder),
            revolutions_per_cylinder: zone.revolutions_per_cylinder(),
        })
    }

    #[inline]
    fn place(&self, index: usize, within_zone: u64, next_slip: u32, lbns_left: u64) -> Position {
        let zone = &self.zones[index];
        let relative = (within_zone / zone.sectors_per_cylinder) as u32;
        let in_cylinder = within_zone % zone.sectors_per_cylinder;
        let track = zone.track_at(in_cylinder, self.reversed(relative));
        let sector = in_cylinder - track.start;
        let angle = zone
            .origin
            .0
            .wrapping_add(zone.cylinder_advance.0.wrapping_mul(u64::from(relative)))
            .wrapping_add(zone.track_skew.0.wrapping_mul(track.order))
            .wrapping_add(track.sector_angle.0.wrapping_mul(sector));
        let track_end = within_zone - sector + track.sectors;
        let slips_left = zone.slips.between(next_slip, track_end);
        let sectors_left = (track.sectors - sector - slips_left).min(lbns_left);
        Position {
            cylinder: Cylinder(zone.first_cylinder + relative),
            surface: track.surface,
            angle: Angle(angle),
            sector_angle: track.sector_angle,
            sectors_left: Sectors(sectors_left),
            zone: index as u32,
            within_zone,
            next_slip,
        }
    }

    /// Whether the surfaces of this cylinder are passed from last to first.
    #[inline]
    fn reversed(&self, relative_cylinder: u32) -> bool {
        self.order == TrackOrder::CylinderSerpentine && relative_cylinder % 2 == 1
    }
}

/// One zone, for tables and plots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZoneView {
    /// Its first address.
    pub first_lbn: Lbn,
    /// Its addresses.
    pub sectors: Sectors,
    /// Its outermost cylinder.
    pub first_cylinder: Cylinder,
    /// Its innermost cylinder.
    pub last_cylinder: Cylinder,
    /// Sectors in one of its cylinders, spares and slips included.
    pub sectors_per_cylinder: Sectors,
    /// Revolutions that a sequential transfer of one cylinder takes, skews
    /// included.
    pub revolutions_per_cylinder: f64,
}

impl ZoneView {
    /// Sequential transfer rate in MB/s (10^6 bytes) at `rpm`.
    pub fn rate_mb_per_s(&self, rpm: f64) -> f64 {
        let seconds = self.revolutions_per_cylinder * 60.0 / rpm;
        self.sectors_per_cylinder.bytes().0 as f64 / seconds / 1e6
    }
}

impl TrackTable for Geometry {
    fn capacity(&self) -> Sectors {
        self.capacity
    }

    fn track_at(&self, lbn: Lbn) -> Track {
        let position = self.locate(lbn);
        let zone = &self.zones[position.zone as usize];
        let sector = self.sector_on_track(&position);
        let track_start = position.within_zone - sector;
        let slips_before = position.next_slip as usize - zone.slips.before_sector(track_start);
        let before = (sector - slips_before as u64).min(lbn.0 - zone.first_lbn);
        Track {
            first: Lbn(lbn.0 - before),
            sectors: position.sectors_left + Sectors(before),
            cylinder: position.cylinder,
            surface: position.surface,
        }
    }

    fn cylinder_of(&self, lbn: Lbn) -> Cylinder {
        self.locate(Lbn(lbn.0.min(self.capacity.0 - 1))).cylinder
    }

    fn angle_at(&self, now: Time) -> Angle {
        self.spindle.angle_at(now)
    }
}

impl Geometry {
    /// Sectors between the start of the track and `position`.
    fn sector_on_track(&self, position: &Position) -> u64 {
        let zone = &self.zones[position.zone as usize];
        let in_cylinder = position.within_zone % zone.sectors_per_cylinder;
        let relative = position.cylinder.0 - zone.first_cylinder;
        in_cylinder - zone.track_at(in_cylinder, self.reversed(relative)).start
    }
}

impl Zone {
    fn new(
        config: &ZoneConfig,
        surfaces: u32,
        first_lbn: u64,
        free_cylinder: u32,
    ) -> Result<Zone, ConfigError> {
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
                format!("found {}, before the first, {}", config.last_cylinder, config.first_cylinder),
            ));
        }
        let lengths = config.sectors_per_track.by_surface(surfaces)?;
        let sectors_per_cylinder: u64 = lengths.iter().sum();
        let cylinders = config.last_cylinder - config.first_cylinder + 1;
        let total = sectors_per_cylinder * u64::from(cylinders);
        let slips = Slips::new(&config.slips, total)?;
        let unused = config.dead.saturating_add(config.spares);
        let lbns = total.checked_sub(unused).filter(|&lbns| lbns > 0).ok_or_else(|| {
            ConfigError::new(
                "spares",
                format!("spares and dead space ({unused}) leave nothing of {total} sectors"),
            )
        })?;
        if config.spares < slips.sectors.len() as u64 {
            return Err(ConfigError::new(
                "slips",
                format!(
                    "{} slipped sectors need as many spares; found {}",
                    slips.sectors.len(),
                    config.spares
                ),
            ));
        }
        let reference = lengths[0];
        let track_skew = skew("track_skew", config.track_skew, reference)?;
        let cylinder_skew = skew("cylinder_skew", config.cylinder_skew, reference)?;
        let switches = u64::from(surfaces - 1);
        Ok(Zone {
            first_lbn,
            lbns,
            first_cylinder: config.first_cylinder,
            cylinders,
            surfaces,
            dead: config.dead,
            sectors_per_cylinder,
            tracks: TrackLengths::new(&lengths),
            origin: skew("offset", config.offset, reference)?,
            track_skew,
            cylinder_advance: Angle(track_skew.0.wrapping_mul(switches).wrapping_add(cylinder_skew.0)),
            slips,
        })
    }

    /// The track that holds the sector `in_cylinder` of a cylinder.
    #[inline]
    fn track_at(&self, in_cylinder: u64, reversed: bool) -> TrackInCylinder {
        let last = u64::from(self.surfaces) - 1;
        match &self.tracks {
            TrackLengths::Uniform { sectors, sector_angle } => {
                let order = in_cylinder / sectors;
                let surface = if reversed { last - order } else { order };
                TrackInCylinder {
                    order,
                    surface: surface as u32,
                    start: order * sectors,
                    sectors: *sectors,
                    sector_angle: *sector_angle,
                }
            }
            TrackLengths::PerSurface(tracks) => {
                let mut start = 0;
                for order in 0..=last {
                    let surface = if reversed { last - order } else { order };
                    let track = tracks[surface as usize];
                    if in_cylinder < start + track.sectors {
                        return TrackInCylinder {
                            order,
                            surface: surface as u32,
                            start,
                            sectors: track.sectors,
                            sector_angle: track.sector_angle,
                        };
                    }
                    start += track.sectors;
                }
                unreachable!("sectors_per_cylinder is the sum of the tracks")
            }
        }
    }

    /// The track of `surface`.
    fn track_of_surface(&self, surface: u32, reversed: bool) -> TrackInCylinder {
        let order = if reversed { self.surfaces - 1 - surface } else { surface };
        let start = match &self.tracks {
            TrackLengths::Uniform { sectors, .. } => u64::from(order) * sectors,
            TrackLengths::PerSurface(tracks) => {
                let surface = surface as usize;
                let before = if reversed { &tracks[surface + 1..] } else { &tracks[..surface] };
                before.iter().map(|track| track.sectors).sum()
            }
        };
        self.track_at(start, reversed)
    }

    /// Revolutions that a sequential transfer of one cylinder takes.
    fn revolutions_per_cylinder(&self) -> f64 {
        let switches = self.surfaces - 1;
        let cylinder_skew =
            self.cylinder_advance - Angle(self.track_skew.0.wrapping_mul(u64::from(switches)));
        f64::from(self.surfaces)
            + self.track_skew.as_revolutions() * f64::from(switches)
            + cylinder_skew.as_revolutions()
    }
}

/// `sectors` of a track of `length` as an angle.
fn skew(key: &str, sectors: f64, length: u64) -> Result<Angle, ConfigError> {
    if !(sectors.is_finite() && sectors >= 0.0) {
        return Err(ConfigError::new(
            key,
            format!("found {sectors}; expected a number of sectors, 0 or more"),
        ));
    }
    Ok(if sectors.fract() == 0.0 && sectors < 1e15 {
        Angle::from_ratio(sectors as u64, length)
    } else {
        Angle::from_revolutions(sectors / length as f64)
    })
}

impl TrackLengths {
    fn new(lengths: &[u64]) -> TrackLengths {
        let sector_angle = |sectors: u64| match sectors {
            1 => Angle(u64::MAX),
            _ => Angle::from_ratio(1, sectors),
        };
        if lengths.windows(2).all(|pair| pair[0] == pair[1]) {
            TrackLengths::Uniform { sectors: lengths[0], sector_angle: sector_angle(lengths[0]) }
        } else {
            let track = |&sectors: &u64| SurfaceTrack { sectors, sector_angle: sector_angle(sectors) };
            TrackLengths::PerSurface(lengths.iter().map(track).collect())
        }
    }
}

impl SectorsPerTrack {
    /// The length of each surface's tracks.
    fn by_surface(&self, surfaces: u32) -> Result<Vec<u64>, ConfigError> {
        let lengths: Vec<u64> = match self {
            SectorsPerTrack::Same(sectors) => vec![u64::from(*sectors); surfaces as usize],
            SectorsPerTrack::PerSurface(list) => list.iter().map(|&sectors| u64::from(sectors)).collect(),
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
            return Err(ConfigError::new("sectors_per_track", "found 0; a track has at least one sector"));
        }
        Ok(lengths)
    }
}

impl Slips {
    fn new(sectors: &[u64], total: u64) -> Result<Slips, ConfigError> {
        if let Some(pair) = sectors.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(ConfigError::new(
                "slips",
                format!("found {} after {}; expected ascending", pair[1], pair[0]),
            ));
        }
        if let Some(&last) = sectors.last().filter(|&&last| last >= total) {
            return Err(ConfigError::new("slips", format!("sector {last} lies beyond the zone's {total}")));
        }
        if sectors.is_empty() {
            return Ok(Slips::default());
        }
        let slipped_from: Vec<u64> =
            sectors.iter().zip(0u64..).map(|(&sector, slipped)| sector - slipped).collect();
        // About one slip for each entry of the index.
        let shift = (total / sectors.len() as u64).max(1).ilog2();
        let buckets = (total >> shift) + 2;
        let index = (0..buckets)
            .map(|bucket| slipped_from.partition_point(|&from| from < bucket << shift) as u32)
            .collect();
        Ok(Slips { sectors: sectors.to_vec(), slipped_from, index, shift })
    }

    /// How many slips lie before the LBN at `offset` of the zone.
    #[inline]
    fn before_offset(&self, offset: u64) -> u32 {
        if self.sectors.is_empty() {
            return 0;
        }
        let bucket = (offset >> self.shift) as usize;
        let first = self.index[bucket];
        let run = &self.slipped_from[first as usize..self.index[bucket + 1] as usize];
        first + run.partition_point(|&from| from <= offset) as u32
    }

    /// How many slips lie before `sector` of the zone.
    fn before_sector(&self, sector: u64) -> usize {
        self.sectors.partition_point(|&slip| slip < sector)
    }

    /// How many slips from number `first` on lie before `sector`.
    #[inline]
    fn between(&self, first: u32, sector: u64) -> u64 {
        let rest = &self.sectors[(first as usize).min(self.sectors.len())..];
        rest.iter().take_while(|&&slip| slip < sector).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{small_drive, zone};
    use proptest::prelude::*;

    fn drives() -> impl Strategy<Value = DriveConfig> {
        let zones = prop::collection::vec(
            (1u32..6, 0u32..3, prop::collection::vec(1u32..30, 3), 0u64..9, 0u64..4),
            1..5,
        );
        (zones, any::<bool>(), any::<bool>(), prop::collection::btree_set(0u64..200, 0..8)).prop_map(
            |(zones, serpentine, uniform, slips)| {
                let mut config = small_drive();
                config.surfaces = 3;
                config.order = if serpentine { TrackOrder::CylinderSerpentine } else { TrackOrder::Cylinder };
                let mut cylinder = 0;
                config.zones = Vec::new();
                let mut capacity = 0;
                for (cylinders, gap, lengths, spares, dead) in zones {
                    let mut zone = zone(cylinder + gap, cylinder + gap + cylinders - 1, lengths[0]);
                    if !uniform {
                        zone.sectors_per_track = SectorsPerTrack::PerSurface(lengths.clone());
                    }
                    let per_cylinder: u64 = zone.sectors_per_track.by_surface(3).unwrap().iter().sum();
                    let total = per_cylinder * u64::from(cylinders);
                    zone.slips = slips.iter().copied().filter(|&slip| slip < total).collect();
                    zone.dead = dead;
                    zone.spares = spares + zone.slips.len() as u64;
                    cylinder += gap + cylinders;
                    if total <= zone.dead + zone.spares {
                        continue;
                    }
                    capacity += total - zone.dead - zone.spares;
                    config.zones.push(zone);
                }
                config.capacity_sectors = Sectors(capacity);
                config
            },
        )
    }

    proptest! {
        #[test]
        fn the_map_is_one_to_one_both_ways(config in drives()) {
            prop_assume!(!config.zones.is_empty());
            let geometry = Geometry::new(&config).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for lbn in 0..geometry.capacity().0 {
                let position = geometry.locate(Lbn(lbn));
                let sector = geometry.sector_on_track(&position);
                prop_assert_eq!(geometry.lbn_at(position.cylinder, position.surface, sector), Some(Lbn(lbn)));
                prop_assert!(seen.insert((position.cylinder, position.surface, sector)));
            }
            let mut carrying = 0;
            for cylinder in 0..geometry.cylinders() {
                for surface in 0..geometry.surfaces() {
                    for sector in 0..40 {
                        carrying += u64::from(geometry.lbn_at(Cylinder(cylinder), surface, sector).is_some());
                    }
                }
            }
            prop_assert_eq!(carrying, geometry.capacity().0);
        }

        #[test]
        fn the_track_table_covers_every_address_once_in_order(config in drives()) {
            prop_assume!(!config.zones.is_empty());
            let geometry = Geometry::new(&config).unwrap();
            let mut next = Lbn(0);
            while next.0 < geometry.capacity().0 {
                let track = geometry.track_at(next);
                prop_assert_eq!(track.first, next);
                prop_assert!(track.sectors.0 > 0);
                for offset in 0..track.sectors.0 {
                    let lbn = Lbn(next.0 + offset);
                    prop_assert_eq!(geometry.track_at(lbn), track);
                    let position = geometry.locate(lbn);
                    prop_assert_eq!((position.cylinder, position.surface), (track.cylinder, track.surface));
                    prop_assert_eq!(position.sectors_left.0, track.sectors.0 - offset);
                }
                next += track.sectors;
            }
        }
    }

    #[test]
    fn zones_that_overlap_are_refused() {
        let mut config = small_drive();
        config.zones[1].first_cylinder = config.zones[0].last_cylinder;
        let error = Geometry::new(&config).unwrap_err();
        assert_eq!(error.key, "zones[1].first_cylinder");
    }

    #[test]
    fn a_capacity_that_the_zones_do_not_add_up_to_is_refused() {
        let mut config = small_drive();
        config.capacity_sectors = config.capacity_sectors + Sectors(1);
        let error = Geometry::new(&config).unwrap_err();
        assert_eq!(error.key, "capacity_sectors");
    }
}
