//! The map between logical blocks and places on the platters, in both directions.
//!
//! | file | content |
//! |---|---|
//! | `tracks.rs` | the order of addresses through the tracks of a zone |
//! | `slips.rs` | sectors without an LBN, and LBNs on replacement sectors |
//! | `zone.rs` | the map between the sectors of a zone and LBNs |
//!
//! An address is found in three steps: the zone by search, the sector within the zone past slips
//! and spares, and the track of that sector by division.

mod slips;
mod tracks;
mod zone;

use crate::config::DriveConfig;
use fullstroke_contract::{ConfigError, TrackExtent, TrackTable, ZoneRate};
use fullstroke_units::{Angle, Cylinder, Lbn, Sectors, Spindle};
use zone::{Zone, ZoneSector};

/// Place of one sector, and the number of LBNs after the sector on the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Position {
    /// Cylinder, counted from the outer edge.
    pub cylinder: Cylinder,
    /// Surface, and number of the head.
    pub surface: u32,
    /// Angle of the beginning of the sector.
    pub angle: Angle,
    /// Angle of one sector of this track.
    pub sector_angle: Angle,
    /// Number of LBNs from this one on, inclusive, that can be transferred before the heads must
    /// move. The run ends at the end of the track or before an LBN on a replacement sector.
    pub sectors_left: Sectors,
    /// Index of the zone.
    zone: u32,
    /// Number of the sector within the zone in LBN order, including sectors without LBN.
    within_zone: u64,
    /// Index of the first run of slips behind the sector.
    next_slip: u32,
}

/// The layout of addresses on a drive.
#[derive(Clone, Debug)]
pub struct Geometry {
    spindle: Spindle,
    capacity: Sectors,
    surfaces: u32,
    cylinders: u32,
    zones: Vec<Zone>,
    /// First LBN of each zone.
    firsts: Vec<u64>,
    /// For each `1 << shift` LBNs, the zone of the first of them. Several entries fall into one
    /// zone, so that a look-up rarely goes further than one zone from its entry.
    index: Vec<u32>,
    shift: u32,
}

/// Number of entries in the index of zones for each zone, at least.
const ENTRIES_PER_ZONE: u64 = 8;

impl Geometry {
    /// Lays out a drive.
    ///
    /// # Errors
    /// Names the key of a zone that overlaps another zone, is empty, has no capacity left or lies
    /// outside the drive. Names the capacity if the zones do not add up to the capacity.
    pub fn new(config: &DriveConfig) -> Result<Geometry, ConfigError> {
        let spindle = Spindle::new(config.rpm).ok_or_else(|| {
            ConfigError::new(
                "rpm",
                format!(
                    "found {}; expected revolutions a minute, above 0",
                    config.rpm
                ),
            )
        })?;
        if config.surfaces == 0 {
            return Err(ConfigError::new(
                "surfaces",
                "a drive has at least one surface",
            ));
        }
        if config.zones.is_empty() {
            return Err(ConfigError::new("zones", "a drive has at least one zone"));
        }
        let mut zones = Vec::with_capacity(config.zones.len());
        let mut first_lbn = 0;
        let mut free_cylinder = 0;
        for (index, zone) in config.zones.iter().enumerate() {
            let built = Zone::new(zone, config, first_lbn, free_cylinder)
                .map_err(|error| error.below(&format!("zones[{index}]")))?;
            first_lbn += built.lbns;
            free_cylinder = zone.last_cylinder + 1;
            zones.push(built);
        }
        if config.actuators == 0 {
            return Err(ConfigError::new(
                "actuators",
                "found 0; a drive has at least one arm",
            ));
        }
        // The zones describe one arm, and each arm has an equal share of the addresses.
        let all = first_lbn.saturating_mul(u64::from(config.actuators));
        if all != config.capacity_sectors.0 {
            return Err(ConfigError::new(
                "capacity_sectors",
                format!(
                    "found {}, but the zones hold {all} (tracks x sectors - spares - dead space); \
                     mend the zone table or its spares",
                    config.capacity_sectors.0
                ),
            ));
        }
        let capacity = Sectors(first_lbn);
        let firsts: Vec<u64> = zones.iter().map(|zone| zone.first_lbn).collect();
        let entries = ENTRIES_PER_ZONE * zones.len() as u64;
        let shift = (capacity.0 / entries).max(1).ilog2();
        let zone_of = |lbn: u64| firsts.partition_point(|&first| first <= lbn) as u32 - 1;
        // The index gives the zone at the start of each interval, so that few steps remain instead
        // of a binary search.
        let index = (0..=(capacity.0 - 1) >> shift).map(|entry| zone_of(entry << shift));
        Ok(Geometry {
            spindle,
            capacity,
            surfaces: config.surfaces,
            cylinders: free_cylinder,
            zones,
            index: index.collect(),
            firsts,
            shift,
        })
    }

    /// Returns the spindle motor.
    pub fn spindle(&self) -> Spindle {
        self.spindle
    }

    /// Number of addresses of one arm.
    pub fn capacity(&self) -> Sectors {
        self.capacity
    }

    /// Number of cylinders from the outer edge to the end of the last zone.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Number of heads.
    pub fn surfaces(&self) -> u32 {
        self.surfaces
    }

    /// Returns the place of `lbn`.
    ///
    /// # Panics
    /// Panics if `lbn` is not below the capacity.
    #[inline]
    pub fn locate(&self, lbn: Lbn) -> Position {
        let (index, zone, placed) = self.natural(lbn);
        match zone.remapped(&placed) {
            // The neighbours of a replacement sector have other LBNs, so the heads move after one
            // sector.
            Ok(spare) => self.position(index, &zone.replacement(spare), 1),
            Err(before_remap) => self.position(index, &placed, before_remap),
        }
    }

    /// Returns the place of the LBN that follows `sectors` LBNs after the LBN at `position`, as
    /// [`locate`](Geometry::locate) does. `None` if the heads must move in between.
    #[inline]
    pub fn after(&self, position: &Position, sectors: Sectors) -> Option<Position> {
        if sectors >= position.sectors_left {
            return None;
        }
        let zone = &self.zones[position.zone as usize];
        let (within_zone, next_slip) =
            zone.following(position.within_zone, position.next_slip, sectors.0);
        let passed = within_zone - position.within_zone;
        Some(Position {
            angle: Angle(
                position
                    .angle
                    .0
                    .wrapping_add(position.sector_angle.0.wrapping_mul(passed)),
            ),
            sectors_left: position.sectors_left - sectors,
            within_zone,
            next_slip,
            ..*position
        })
    }

    /// Returns the first LBN after the LBNs that follow `lbn` at `position` without a pause, with
    /// its place. `None` behind the last LBN.
    #[inline]
    pub fn next_track(&self, lbn: Lbn, position: &Position) -> Option<(Lbn, Position)> {
        let next = lbn + position.sectors_left;
        (next.0 < self.capacity.0).then(|| (next, self.locate(next)))
    }

    /// Returns the number of sectors that pass under the head during a transfer of `sectors` LBNs
    /// from `position` on. The number exceeds `sectors` if slips lie between the LBNs.
    ///
    /// `sectors` must be at least 1 and stay on the track.
    #[inline]
    pub fn passed(&self, position: &Position, sectors: Sectors) -> u64 {
        debug_assert!(
            (1..=position.sectors_left.0).contains(&sectors.0),
            "{sectors} do not lie on the track of {position:?}"
        );
        self.zones[position.zone as usize].passed(
            position.within_zone,
            position.next_slip,
            sectors.0,
        )
    }

    /// Returns the LBN at `sector` of a track, counted from the start of the track. `None` if the
    /// sector has no LBN.
    pub fn lbn_at(&self, cylinder: Cylinder, surface: u32, sector: u64) -> Option<Lbn> {
        let index = self
            .zones
            .partition_point(|zone| zone.first_cylinder <= cylinder.0)
            .checked_sub(1)?;
        let zone = &self.zones[index];
        let relative = cylinder.0 - zone.first_cylinder;
        if relative >= zone.cylinders {
            return None;
        }
        let track = zone.tracks.at(relative, surface)?;
        if sector >= track.sectors {
            return None;
        }
        zone.offset_on(track.start + sector)
            .map(|offset| Lbn(zone.first_lbn + offset))
    }

    /// Returns the track of `surface` at `cylinder`, as [`track_at`](TrackTable::track_at) does for
    /// the LBNs of the track. `None` if the track has no LBN.
    pub fn track_on(&self, cylinder: Cylinder, surface: u32) -> Option<TrackExtent> {
        let index = self
            .zones
            .partition_point(|zone| zone.first_cylinder <= cylinder.0)
            .checked_sub(1)?;
        let zone = &self.zones[index];
        let track = zone.tracks.at(cylinder.0 - zone.first_cylinder, surface)?;
        let mut sectors = track.start..track.start + track.sectors;
        // The first sectors of a track may be slips or spares.
        let offset = sectors.find_map(|sector| zone.natural_offset(sector))?;
        Some(self.track_at(Lbn(zone.first_lbn + offset)))
    }

    /// Returns the angle of a sector on the longest track.
    pub fn least_sector(&self) -> Angle {
        self.zones
            .iter()
            .map(|zone| zone.tracks.least_sector())
            .min()
            .unwrap_or(Angle::ZERO)
    }

    /// Returns the zones, from the outer edge inward.
    pub fn zones(&self) -> impl Iterator<Item = ZoneView> + '_ {
        self.zones.iter().map(|zone| {
            let (sectors, tracks, revolutions) = zone.tracks.of_group();
            ZoneView {
                first_lbn: Lbn(zone.first_lbn),
                sectors: Sectors(zone.lbns),
                first_cylinder: Cylinder(zone.first_cylinder),
                last_cylinder: Cylinder(zone.first_cylinder + zone.cylinders - 1),
                sectors_per_track: sectors as f64 / tracks,
                sectors_per_revolution: sectors as f64 / revolutions,
            }
        })
    }

    /// Returns the natural place of `lbn`, which holds if the sector is not defective.
    #[inline]
    fn natural(&self, lbn: Lbn) -> (usize, &Zone, ZoneSector) {
        let entry = self.index.get((lbn.0 >> self.shift) as usize);
        let mut index = entry.map_or(self.zones.len() - 1, |&zone| zone as usize);
        // A zone shorter than an interval of the index may begin between the interval's start and
        // `lbn`.
        while self
            .firsts
            .get(index + 1)
            .is_some_and(|&first| first <= lbn.0)
        {
            index += 1;
        }
        let zone = &self.zones[index];
        let offset = lbn.0 - zone.first_lbn;
        assert!(offset < zone.lbns, "LBN {} lies beyond the drive", lbn.0);
        (index, zone, zone.place(offset))
    }

    #[inline]
    fn position(&self, index: usize, placed: &ZoneSector, at_most: u64) -> Position {
        let zone = &self.zones[index];
        let track = zone.tracks.holding(placed.sector);
        Position {
            cylinder: Cylinder(zone.first_cylinder + track.cylinder),
            surface: track.surface,
            angle: zone.angle(placed.sector, &track),
            sector_angle: track.sector_angle,
            sectors_left: Sectors(zone.left_on_track(placed, &track).min(at_most)),
            zone: index as u32,
            within_zone: placed.sector,
            next_slip: placed.next_slip,
        }
    }
}

/// One zone, for tables and plots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZoneView {
    /// First address of the zone.
    pub first_lbn: Lbn,
    /// Number of addresses in the zone.
    pub sectors: Sectors,
    /// Outermost cylinder of the zone.
    pub first_cylinder: Cylinder,
    /// Innermost cylinder of the zone.
    pub last_cylinder: Cylinder,
    /// Mean number of sectors per track, including spares and slips.
    pub sectors_per_track: f64,
    /// Number of sectors per revolution of a sequential transfer, including skews.
    pub sectors_per_revolution: f64,
}

impl ZoneView {
    /// Sequential transfer rate in MB/s (10^6 bytes) at `rpm`.
    pub fn rate_mb_per_s(&self, rpm: f64) -> f64 {
        self.sectors_per_revolution * 512.0 * rpm / 60.0 / 1e6
    }
}

impl TrackTable for Geometry {
    fn capacity(&self) -> Sectors {
        self.capacity
    }

    fn track_at(&self, lbn: Lbn) -> TrackExtent {
        let (_, zone, placed) = self.natural(lbn);
        let track = zone.tracks.holding(placed.sector);
        let before = zone.before_on_track(&placed, &track);
        TrackExtent {
            first: Lbn(lbn.0 - before),
            sectors: Sectors(before + zone.left_on_track(&placed, &track)),
            cylinder: Cylinder(zone.first_cylinder + track.cylinder),
            surface: track.surface,
        }
    }

    fn cylinder_of(&self, lbn: Lbn) -> Cylinder {
        self.locate(Lbn(lbn.0.min(self.capacity.0 - 1))).cylinder
    }

    fn zone_rates(&self) -> Vec<ZoneRate> {
        let rate = |zone: ZoneView| ZoneRate {
            first: zone.first_lbn,
            sectors: zone.sectors,
            bytes_per_s: (zone.rate_mb_per_s(self.spindle.rpm()) * 1e6).round() as u64,
        };
        self.zones().map(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::{small_drive, zone};
    use crate::config::{
        ExceptionConfig, RunConfig, SectorsPerTrack, SeekDirection, SlipConfig, TrackOrder,
    };
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const SURFACES: u32 = 3;

    /// One zone of a made-up drive.
    #[derive(Clone, Debug)]
    struct MadeUp {
        cylinders: u32,
        gap: u32,
        lengths: Vec<u32>,
        uniform: bool,
        spares: u64,
        dead: u64,
        per_track: u32,
        per_cylinder: u32,
        slips: BTreeSet<u64>,
        exception: Option<(u32, u32, u32, u32)>,
    }

    fn made_up() -> impl Strategy<Value = MadeUp> {
        (
            (
                1u32..9,
                0u32..3,
                prop::collection::vec(6u32..30, SURFACES as usize),
                any::<bool>(),
            ),
            (0u64..9, 0u64..4, 0u32..3, 0u32..5),
            prop::collection::btree_set(0u64..200, 0..8),
            prop::option::of((0u32..9, 0u32..SURFACES, 0u32..3, 1u32..4)),
        )
            .prop_map(
                |(
                    (cylinders, gap, lengths, uniform),
                    (spares, dead, per_track, per_cylinder),
                    slips,
                    exception,
                )| {
                    MadeUp {
                        cylinders,
                        gap,
                        lengths,
                        uniform,
                        spares,
                        dead,
                        per_track,
                        per_cylinder,
                        slips,
                        exception,
                    }
                },
            )
    }

    /// Returns a drive with these zones, with as many of their features as fit together.
    fn drive(
        zones: &[MadeUp],
        order: TrackOrder,
        band_tracks: u32,
        band_start: SeekDirection,
    ) -> Option<Geometry> {
        let mut config = small_drive();
        (
            config.surfaces,
            config.order,
            config.band_tracks,
            config.band_start,
        ) = (SURFACES, order, band_tracks, band_start);
        config.zones = Vec::new();
        let mut cylinder = 0;
        for wanted in zones {
            let mut built = zone(
                cylinder + wanted.gap,
                cylinder + wanted.gap + wanted.cylinders - 1,
                wanted.lengths[0],
            );
            cylinder = built.last_cylinder + 1;
            if !wanted.uniform {
                built.sectors_per_track = SectorsPerTrack::PerSurface(wanted.lengths.clone());
            }
            (built.spares, built.dead) = (wanted.spares, wanted.dead);
            let conventional = order == TrackOrder::Cylinder;
            if wanted.uniform && wanted.per_track > 0 {
                built.spares_per_track = wanted.per_track;
            } else if conventional && wanted.per_cylinder > 0 {
                built.spares_per_cylinder = wanted.per_cylinder;
            } else {
                built.spares += wanted.slips.len() as u64;
            }
            built.slips = wanted
                .slips
                .iter()
                .map(|&slip| SlipConfig::One(slip))
                .collect();
            if let Some((relative, surface, skip_first, fewer)) = wanted.exception {
                let length = if wanted.uniform {
                    wanted.lengths[0]
                } else {
                    wanted.lengths[surface as usize]
                };
                built.exceptions = vec![ExceptionConfig {
                    cylinder: built.first_cylinder + relative % wanted.cylinders,
                    surface,
                    sectors: length - skip_first - fewer,
                    skip_first,
                }];
            }
            config.zones.push(built);
        }
        // Contradicting features are left out, zone by zone.
        for index in 0..config.zones.len() {
            for simpler in 0..4 {
                if Zone::new(&config.zones[index], &config, 0, 0).is_ok() {
                    break;
                }
                let zone = &mut config.zones[index];
                match simpler {
                    0 => zone.slips.clear(),
                    1 => zone.exceptions.clear(),
                    2 => (zone.spares_per_track, zone.spares_per_cylinder) = (0, 0),
                    _ => return None,
                }
            }
        }
        let capacity = config
            .zones
            .iter()
            .map(|zone| Zone::new(zone, &config, 0, 0).unwrap().lbns)
            .sum();
        config.capacity_sectors = Sectors(capacity);
        Some(Geometry::new(&config).unwrap())
    }

    fn geometries() -> impl Strategy<Value = Geometry> {
        let orders = prop::sample::select(vec![
            TrackOrder::Cylinder,
            TrackOrder::CylinderSerpentine,
            TrackOrder::SurfaceSerpentine,
            TrackOrder::BandedSerpentine,
            TrackOrder::BandedAlternating,
            TrackOrder::BandedForward,
        ]);
        let starts = prop::sample::select(vec![SeekDirection::Inward, SeekDirection::Outward]);
        (
            prop::collection::vec(made_up(), 1..4),
            orders,
            1u32..5,
            starts,
        )
            .prop_filter_map("no capacity", |(zones, order, band, start)| {
                drive(&zones, order, band, start)
            })
    }

    /// Returns every place of a drive that could have an LBN.
    fn places(geometry: &Geometry) -> impl Iterator<Item = (Cylinder, u32, u64)> + '_ {
        (0..geometry.cylinders()).flat_map(move |cylinder| {
            (0..geometry.surfaces()).flat_map(move |surface| {
                (0..40).map(move |sector| (Cylinder(cylinder), surface, sector))
            })
        })
    }

    proptest! {
        #[test]
        fn the_map_is_one_to_one_both_ways(geometry in geometries()) {
            let mut carrying = 0;
            for (cylinder, surface, sector) in places(&geometry) {
                let Some(lbn) = geometry.lbn_at(cylinder, surface, sector) else { continue };
                let position = geometry.locate(lbn);
                prop_assert_eq!((position.cylinder, position.surface), (cylinder, surface));
                carrying += 1;
            }
            prop_assert_eq!(carrying, geometry.capacity().0);
        }

        #[test]
        fn neighbours_on_a_track_are_neighbours_in_angle(geometry in geometries()) {
            for lbn in 0..geometry.capacity().0 {
                let position = geometry.locate(Lbn(lbn));
                prop_assert!(position.sectors_left.0 > 0);
                for ahead in 1..position.sectors_left.0 {
                    let next = geometry.locate(Lbn(lbn + ahead));
                    prop_assert_eq!((next.cylinder, next.surface), (position.cylinder, position.surface));
                    let passed = geometry.passed(&position, Sectors(ahead + 1)) - 1;
                    let turned = position.sector_angle.0.wrapping_mul(passed);
                    prop_assert_eq!(next.angle - position.angle, Angle(turned));
                }
            }
        }

        #[test]
        fn the_track_table_covers_every_address_once_in_order(geometry in geometries()) {
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
                    for ahead in 0..position.sectors_left.0 {
                        let after = geometry.after(&position, Sectors(ahead));
                        prop_assert_eq!(after, Some(geometry.locate(lbn + Sectors(ahead))));
                    }
                    prop_assert_eq!(geometry.after(&position, position.sectors_left), None);
                }
                next += track.sectors;
            }
        }
    }

    /// One zone of `cylinders`, two surfaces, ten sectors a track, in order.
    fn ordered(order: TrackOrder, cylinders: u32) -> Vec<(u32, u32)> {
        let mut config = small_drive();
        config.zones = vec![zone(0, cylinders - 1, 10)];
        (config.order, config.band_tracks, config.band_start) = (order, 3, SeekDirection::Outward);
        config.capacity_sectors = Sectors(u64::from(cylinders) * 20);
        let geometry = Geometry::new(&config).unwrap();
        let tracks = (0..cylinders * 2).map(|track| geometry.track_at(Lbn(u64::from(track) * 10)));
        tracks
            .map(|track| (track.surface, track.cylinder.0))
            .collect()
    }

    #[test]
    fn serpentine_by_surface_returns_on_the_next_surface() {
        assert_eq!(
            ordered(TrackOrder::SurfaceSerpentine, 3),
            [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)]
        );
    }

    #[test]
    fn banded_serpentine_runs_as_on_the_atlas_10k_v() {
        // Qian & Wang, figure 4.1.2, with bands of 3 tracks: outward on the top surface, inward on
        // the bottom surface, then the next band from the bottom surface.
        let expected = [
            (0, 2),
            (0, 1),
            (0, 0),
            (1, 0),
            (1, 1),
            (1, 2),
            (1, 5),
            (1, 4),
            (1, 3),
            (0, 3),
            (0, 4),
            (0, 5),
            (0, 7),
            (0, 6),
            (1, 6),
            (1, 7),
        ];
        assert_eq!(ordered(TrackOrder::BandedSerpentine, 8), expected);
    }

    #[test]
    fn bands_return_to_the_first_surface_and_alternate_or_not() {
        let alternating = [
            [(0, 2), (0, 1), (0, 0), (1, 0), (1, 1), (1, 2)],
            [(0, 5), (0, 4), (0, 3), (1, 3), (1, 4), (1, 5)],
        ];
        assert_eq!(
            ordered(TrackOrder::BandedAlternating, 6),
            alternating.concat()
        );
        let forward = [
            [(0, 2), (0, 1), (0, 0), (1, 2), (1, 1), (1, 0)],
            [(0, 5), (0, 4), (0, 3), (1, 5), (1, 4), (1, 3)],
        ];
        assert_eq!(ordered(TrackOrder::BandedForward, 6), forward.concat());
    }

    /// If bands return to the first surface, the skew between neighbouring tracks is the track skew
    /// when the head changes. Otherwise the skew is the cylinder skew.
    #[test]
    fn skews_of_returning_bands_are_by_head() {
        for order in [TrackOrder::BandedAlternating, TrackOrder::BandedForward] {
            let mut config = small_drive();
            config.zones = vec![zone(0, 5, 10)];
            (config.order, config.band_tracks) = (order, 3);
            config.capacity_sectors = Sectors(120);
            let geometry = Geometry::new(&config).unwrap();
            let starts: Vec<Position> = (0..12)
                .map(|track| geometry.locate(Lbn(track * 10)))
                .collect();
            for pair in starts.windows(2) {
                let sectors = if pair[0].surface == pair[1].surface {
                    5.0
                } else {
                    3.0
                };
                let skew = (pair[1].angle - pair[0].angle).as_revolutions();
                assert!((skew - sectors / 10.0).abs() < 1e-9, "{order:?}: {pair:?}");
            }
        }
    }

    #[test]
    fn a_remapped_sector_is_found_where_it_lives() {
        let mut config = small_drive();
        config.zones[0].spares = 2;
        // The zone has 800 sectors; the last two are spare.
        config.zones[0].remaps = vec![(5, 799)];
        config.capacity_sectors -= Sectors(2);
        let geometry = Geometry::new(&config).unwrap();
        let position = geometry.locate(Lbn(5));
        assert_eq!(
            (position.cylinder, position.surface, position.sectors_left),
            (Cylinder(9), 1, Sectors(1))
        );
        assert_eq!(geometry.lbn_at(Cylinder(9), 1, 39), Some(Lbn(5)));
        assert_eq!(geometry.lbn_at(Cylinder(0), 0, 5), None);
        assert_eq!(geometry.locate(Lbn(2)).sectors_left, Sectors(3));
        assert_eq!(geometry.locate(Lbn(6)).sectors_left, Sectors(34));
        assert_eq!(geometry.track_at(Lbn(5)).sectors, Sectors(40));
    }

    #[test]
    fn remaps_that_cannot_be_are_refused() {
        for remaps in [
            vec![(5, 6)],
            vec![(799, 798)],
            vec![(5, 799), (5, 798)],
            vec![(5, 799), (6, 799)],
            vec![(5, 9999)],
        ] {
            let mut config = small_drive();
            config.zones[0].spares = 2;
            config.capacity_sectors -= Sectors(2);
            config.zones[0].remaps = remaps.clone();
            assert_eq!(
                Geometry::new(&config).unwrap_err().key,
                "zones[0].remaps",
                "{remaps:?}"
            );
        }
    }

    #[test]
    fn runs_that_leave_a_track_out_are_refused() {
        let run = |surface, first_cylinder| RunConfig {
            surface,
            first_cylinder,
            tracks: 1,
            direction: SeekDirection::Inward,
            sectors_per_track: None,
            offset_revolutions: None,
            step_revolutions: None,
        };
        let mut config = small_drive();
        config.zones[0].runs = vec![run(0, 0), run(1, 0)];
        assert!(Geometry::new(&config).is_ok());
        config.zones[0].runs = vec![run(0, 0), run(1, 1)];
        assert_eq!(Geometry::new(&config).unwrap_err().key, "zones[0].runs");
        config.zones[0].runs = vec![run(0, 0), run(1, 0), run(1, 0)];
        assert_eq!(Geometry::new(&config).unwrap_err().key, "zones[0].runs[2]");
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
        config.capacity_sectors += Sectors(1);
        let error = Geometry::new(&config).unwrap_err();
        assert_eq!(error.key, "capacity_sectors");
    }
}
