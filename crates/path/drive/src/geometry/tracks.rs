//! The order of addresses through the tracks of a zone.
//!
//! Every order is a **group** of neighbouring cylinders that repeats inward. Within a group,
//! addresses pass over **runs**: neighbouring tracks of one surface, inward or outward. A
//! conventional drive has groups of one cylinder and runs of one track. Banded orders have groups
//! of one or two bands on each surface.

use crate::config::{RunConfig, SeekDirection, TrackOrder};
use fullstroke_contract::ConfigError;
use fullstroke_units::Angle;

/// Neighbouring tracks of one surface with consecutive addresses.
#[derive(Clone, Debug, PartialEq)]
struct TrackRun {
    surface: u32,
    /// Outermost cylinder, counted within the group.
    first_cylinder: u32,
    tracks: u32,
    direction: SeekDirection,
    sectors_per_track: u64,
    sector_angle: Angle,
    /// First sector, counted within the group.
    start: u64,
    /// Angle of the first track, from the origin of the group.
    angle: Angle,
    /// Angle from the beginning of one track to the beginning of the next.
    step: Angle,
}

/// Neighbouring cylinders that form one period of the order.
#[derive(Clone, Debug)]
struct Group {
    runs: Vec<TrackRun>,
    /// Number of sectors of each run, if all runs are equal.
    run_sectors: Option<u64>,
    /// Mean number of sectors of a run, at least 1.
    mean_run: u64,
    sectors: u64,
}

/// The tracks of a zone.
#[derive(Clone, Debug)]
pub(super) struct ZoneTracks {
    group: Group,
    group_cylinders: u32,
    groups: u32,
    /// The incomplete group at the inner end. `None` if the last group is complete.
    tail: Option<Group>,
    /// Angle from the origin of one group to the origin of the next.
    group_advance: Angle,
    /// Number of sectors of the zone.
    sectors: u64,
}

/// The track of a sector.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoundTrack {
    /// Cylinder, counted within the zone.
    pub(super) cylinder: u32,
    pub(super) surface: u32,
    /// First sector of the track, counted within the zone.
    pub(super) start: u64,
    pub(super) sectors: u64,
    /// Angle of the track, from the origin of the zone.
    pub(super) angle: Angle,
    pub(super) sector_angle: Angle,
}

/// Input for the tracks of a zone.
pub(super) struct TracksConfig<'a> {
    pub(super) order: TrackOrder,
    pub(super) band_tracks: u32,
    pub(super) band_start: SeekDirection,
    /// Runs of one group in place of the order; empty if `order` holds.
    pub(super) runs: &'a [RunConfig],
    pub(super) cylinders: u32,
    /// Track length in sectors by surface.
    pub(super) lengths: &'a [u64],
    pub(super) track_skew: Angle,
    pub(super) cylinder_skew: Angle,
}

impl TracksConfig<'_> {
    /// True if the track skew holds at every change of head, instead of changes within a cylinder
    /// only. In orders that return to the first surface, a change of head includes a movement of
    /// the arm.
    fn skews_by_head(&self) -> bool {
        let returns = matches!(
            self.order,
            TrackOrder::BandedAlternating | TrackOrder::BandedForward
        );
        returns && self.runs.is_empty()
    }

    /// Returns the skew from the last track of one run to the first track of the next.
    fn skew_between(&self, before: &TrackRun, next: &TrackRun) -> Angle {
        let by_track = if self.skews_by_head() {
            before.surface != next.surface
        } else {
            before.last_place() == next.first_place()
        };
        if by_track {
            self.track_skew
        } else {
            self.cylinder_skew
        }
    }

    /// Returns the skew from the last track of a group to the first track of the next.
    fn skew_of_groups(&self) -> Angle {
        if self.skews_by_head() && self.lengths.len() > 1 {
            self.track_skew
        } else {
            self.cylinder_skew
        }
    }
}

impl ZoneTracks {
    pub(super) fn new(config: &TracksConfig<'_>) -> Result<ZoneTracks, ConfigError> {
        let (group_cylinders, runs) = if config.runs.is_empty() {
            let (cylinders, runs) = outlines(config);
            // A zone may be narrower than one band.
            (cylinders.min(config.cylinders), runs)
        } else {
            described(config)?
        };
        let groups = config.cylinders / group_cylinders;
        let rest = config.cylinders % group_cylinders;
        let (group, group_advance) = Group::new(&runs, group_cylinders, config);
        let tail = (rest > 0).then(|| Group::new(&runs, rest, config).0);
        let sectors =
            group.sectors * u64::from(groups) + tail.as_ref().map_or(0, |tail| tail.sectors);
        Ok(ZoneTracks {
            group,
            group_cylinders,
            groups,
            tail,
            group_advance,
            sectors,
        })
    }

    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns the angle of a sector on the longest track. The tail has no other tracks than the
    /// groups.
    pub(super) fn least_sector(&self) -> Angle {
        self.group
            .runs
            .iter()
            .map(|run| run.sector_angle)
            .min()
            .unwrap_or(Angle::ZERO)
    }

    /// Returns sectors, tracks and revolutions of one group during a sequential pass.
    pub(super) fn of_group(&self) -> (u64, f64, f64) {
        let tracks: u32 = self.group.runs.iter().map(|run| run.tracks).sum();
        let mut switched = 0.0;
        let mut before: Option<&TrackRun> = None;
        for run in &self.group.runs {
            let into = before.map_or(Angle::ZERO, |before| run.angle - before.last_angle());
            switched +=
                into.as_revolutions() + run.step.as_revolutions() * f64::from(run.tracks - 1);
            before = Some(run);
        }
        let last = before.map_or(Angle::ZERO, TrackRun::last_angle);
        switched += (self.group_advance - last).as_revolutions();
        (
            self.group.sectors,
            f64::from(tracks),
            f64::from(tracks) + switched,
        )
    }

    /// Returns the track of `sector`.
    #[inline]
    pub(super) fn holding(&self, sector: u64) -> FoundTrack {
        debug_assert!(
            sector < self.sectors,
            "sector {sector} of a zone that has {}",
            self.sectors
        );
        let number = sector / self.group.sectors;
        let (group, number) = match &self.tail {
            Some(tail) if number >= u64::from(self.groups) => (tail, u64::from(self.groups)),
            _ => (&self.group, number),
        };
        let start = number * self.group.sectors;
        let within = sector - start;
        let run = match group.run_sectors {
            // One division in place of a search, for drives whose surfaces have equal tracks.
            Some(sectors) => &group.runs[(within / sectors) as usize],
            None => group.run_holding(within),
        };
        // Conventional orders have runs of one track, and a 64-bit division costs more than the
        // branch.
        let track = if run.tracks == 1 {
            0
        } else {
            ((within - run.start) / run.sectors_per_track) as u32
        };
        self.track(number as u32, run, track)
    }

    /// Returns the track of `surface` at `cylinder` of the zone, if there is one.
    pub(super) fn at(&self, cylinder: u32, surface: u32) -> Option<FoundTrack> {
        let number = (cylinder / self.group_cylinders).min(self.groups);
        let group = if number < self.groups {
            &self.group
        } else {
            self.tail.as_ref()?
        };
        let within = cylinder - number * self.group_cylinders;
        let run = group.runs.iter().find(|run| {
            run.surface == surface
                && (run.first_cylinder..run.first_cylinder + run.tracks).contains(&within)
        })?;
        let track = match run.direction {
            SeekDirection::Inward => within - run.first_cylinder,
            SeekDirection::Outward => run.first_cylinder + run.tracks - 1 - within,
        };
        Some(self.track(number, run, track))
    }

    /// Returns track number `track` of `run` in group number `group`.
    #[inline]
    fn track(&self, group: u32, run: &TrackRun, track: u32) -> FoundTrack {
        let cylinder = match run.direction {
            SeekDirection::Inward => run.first_cylinder + track,
            SeekDirection::Outward => run.first_cylinder + run.tracks - 1 - track,
        };
        // Angles wrap at a whole revolution, so wrapping arithmetic loses nothing.
        let angle = self
            .group_advance
            .0
            .wrapping_mul(u64::from(group))
            .wrapping_add(run.angle.0)
            .wrapping_add(run.step.0.wrapping_mul(u64::from(track)));
        FoundTrack {
            cylinder: group * self.group_cylinders + cylinder,
            surface: run.surface,
            start: u64::from(group) * self.group.sectors
                + run.start
                + u64::from(track) * run.sectors_per_track,
            sectors: run.sectors_per_track,
            angle: Angle(angle),
            sector_angle: run.sector_angle,
        }
    }
}

impl Group {
    /// Returns the run that holds sector `within` of the group. The tracks of the surfaces differ
    /// by a few per cent, so the mean length of a run leads to a run nearby.
    #[inline]
    fn run_holding(&self, within: u64) -> &TrackRun {
        let last = self.runs.len() - 1;
        let mut at = ((within / self.mean_run) as usize).min(last);
        while self.runs[at].start > within {
            at -= 1;
        }
        while at < last && self.runs[at + 1].start <= within {
            at += 1;
        }
        &self.runs[at]
    }
}

/// A run whose sectors and angles are not computed yet.
#[derive(Clone, Debug)]
struct RunOutline {
    surface: u32,
    first_cylinder: u32,
    tracks: u32,
    direction: SeekDirection,
    /// Track length in sectors. `None` means the length of the surface.
    sectors: Option<u64>,
    /// Angle of the first track, from the origin of the group. `None` means from the skews.
    angle: Option<Angle>,
    /// Angle from the beginning of one track to the beginning of the next. `None` means the
    /// cylinder skew.
    step: Option<Angle>,
}

impl RunOutline {
    fn new(surface: u32, first_cylinder: u32, tracks: u32, direction: SeekDirection) -> RunOutline {
        RunOutline {
            surface,
            first_cylinder,
            tracks,
            direction,
            sectors: None,
            angle: None,
            step: None,
        }
    }
}

/// Returns the number of cylinders of a group and the runs, for each named order.
fn outlines(config: &TracksConfig<'_>) -> (u32, Vec<RunOutline>) {
    let surfaces = config.lengths.len() as u32;
    let one = |surface, cylinder| RunOutline::new(surface, cylinder, 1, SeekDirection::Inward);
    match config.order {
        TrackOrder::Cylinder => (1, (0..surfaces).map(|surface| one(surface, 0)).collect()),
        TrackOrder::CylinderSerpentine => {
            let there = (0..surfaces).map(|surface| one(surface, 0));
            let back = (0..surfaces).rev().map(|surface| one(surface, 1));
            (2, there.chain(back).collect())
        }
        TrackOrder::SurfaceSerpentine => {
            let turn = |surface: u32| {
                if surface.is_multiple_of(2) {
                    SeekDirection::Inward
                } else {
                    SeekDirection::Outward
                }
            };
            let runs = (0..surfaces)
                .map(|surface| RunOutline::new(surface, 0, config.cylinders, turn(surface)));
            (config.cylinders, runs.collect())
        }
        TrackOrder::BandedSerpentine => {
            let band = config.band_tracks;
            let turn = |place: u32| {
                if place.is_multiple_of(2) {
                    config.band_start
                } else {
                    config.band_start.other()
                }
            };
            let there = (0..surfaces).map(|place| RunOutline::new(place, 0, band, turn(place)));
            let back = (0..surfaces)
                .map(|place| RunOutline::new(surfaces - 1 - place, band, band, turn(place)));
            (2 * band, there.chain(back).collect())
        }
        TrackOrder::BandedAlternating | TrackOrder::BandedForward => {
            let alternates = config.order == TrackOrder::BandedAlternating;
            let turn = |surface: u32| {
                let back = alternates && !surface.is_multiple_of(2);
                if back {
                    config.band_start.other()
                } else {
                    config.band_start
                }
            };
            let band = config.band_tracks;
            let runs =
                (0..surfaces).map(|surface| RunOutline::new(surface, 0, band, turn(surface)));
            (band, runs.collect())
        }
    }
}

/// Returns the number of cylinders of a group and the runs, if the file describes each run. The
/// runs must cover each track of the group once.
fn described(config: &TracksConfig<'_>) -> Result<(u32, Vec<RunOutline>), ConfigError> {
    let surfaces = config.lengths.len() as u32;
    let fail =
        |index: usize, message: String| Err(ConfigError::new(format!("runs[{index}]"), message));
    let cylinders = config
        .runs
        .iter()
        .map(|run| run.first_cylinder.saturating_add(run.tracks))
        .max()
        .unwrap_or(0);
    // The table of seen tracks below takes one byte per track, so 16 MiB at most.
    if u64::from(cylinders) * u64::from(surfaces) > 1 << 24 {
        return Err(ConfigError::new(
            "runs",
            format!("a group of {cylinders} cylinders is too large to check"),
        ));
    }
    let mut seen = vec![false; cylinders as usize * surfaces as usize];
    for (index, run) in config.runs.iter().enumerate() {
        if run.surface >= surfaces || run.tracks == 0 || run.sectors_per_track == Some(0) {
            return fail(
                index,
                format!("expected a surface below {surfaces}, and at least one track and sector"),
            );
        }
        for cylinder in run.first_cylinder..run.first_cylinder + run.tracks {
            let place = &mut seen[(cylinder * surfaces + run.surface) as usize];
            if std::mem::replace(place, true) {
                return fail(
                    index,
                    format!(
                        "cylinder {cylinder} of surface {} occurs twice",
                        run.surface
                    ),
                );
            }
        }
    }
    if let Some(missing) = seen.iter().position(|seen| !seen) {
        let (cylinder, surface) = (missing as u32 / surfaces, missing as u32 % surfaces);
        return Err(ConfigError::new(
            "runs",
            format!("cylinder {cylinder} of surface {surface} is in no run"),
        ));
    }
    let outline = |run: &RunConfig| RunOutline {
        sectors: run.sectors_per_track.map(u64::from),
        angle: run.offset_revolutions.map(Angle::from_revolutions),
        step: run.step_revolutions.map(Angle::from_revolutions),
        ..RunOutline::new(run.surface, run.first_cylinder, run.tracks, run.direction)
    };
    Ok((cylinders, config.runs.iter().map(outline).collect()))
}

impl TrackRun {
    fn first_place(&self) -> u32 {
        match self.direction {
            SeekDirection::Inward => self.first_cylinder,
            SeekDirection::Outward => self.first_cylinder + self.tracks - 1,
        }
    }

    fn last_place(&self) -> u32 {
        match self.direction {
            SeekDirection::Inward => self.first_cylinder + self.tracks - 1,
            SeekDirection::Outward => self.first_cylinder,
        }
    }

    /// Angle of the beginning of the last track.
    fn last_angle(&self) -> Angle {
        Angle(
            self.angle
                .0
                .wrapping_add(self.step.0.wrapping_mul(u64::from(self.tracks - 1))),
        )
    }
}

impl Group {
    /// Builds the first `cylinders` cylinders of a group. Also returns the angle from the origin of
    /// this group to the origin of the next.
    fn new(outlines: &[RunOutline], cylinders: u32, config: &TracksConfig<'_>) -> (Group, Angle) {
        let mut runs: Vec<TrackRun> = Vec::with_capacity(outlines.len());
        let mut sectors = 0;
        for outline in outlines
            .iter()
            .filter(|outline| outline.first_cylinder < cylinders)
        {
            let length = outline
                .sectors
                .unwrap_or(config.lengths[outline.surface as usize]);
            let mut run = TrackRun {
                surface: outline.surface,
                first_cylinder: outline.first_cylinder,
                // The incomplete group at the end cuts runs short.
                tracks: outline.tracks.min(cylinders - outline.first_cylinder),
                direction: outline.direction,
                sectors_per_track: length,
                sector_angle: sector_angle(length),
                start: sectors,
                angle: Angle::ZERO,
                step: outline.step.unwrap_or(config.cylinder_skew),
            };
            if let Some(before) = runs.last() {
                run.angle = before.last_angle() + config.skew_between(before, &run);
            }
            // A given angle comes from a measurement and replaces the one from the skews.
            run.angle = outline.angle.unwrap_or(run.angle);
            sectors += length * u64::from(run.tracks);
            runs.push(run);
        }
        let advance =
            runs.last().map_or(Angle::ZERO, TrackRun::last_angle) + config.skew_of_groups();
        let each = runs
            .first()
            .map_or(0, |run| u64::from(run.tracks) * run.sectors_per_track);
        let equal = runs
            .iter()
            .all(|run| u64::from(run.tracks) * run.sectors_per_track == each);
        (
            Group {
                mean_run: (sectors / runs.len().max(1) as u64).max(1),
                runs,
                run_sectors: equal.then_some(each),
                sectors,
            },
            advance,
        )
    }
}

/// Returns the angle of one sector. The only sector of a track has the largest angle, because a
/// whole revolution would wrap to 0.
fn sector_angle(sectors: u64) -> Angle {
    if sectors == 1 {
        Angle(u64::MAX)
    } else {
        Angle::from_ratio(1, sectors)
    }
}
