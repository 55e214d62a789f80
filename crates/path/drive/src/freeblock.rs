//! Free-block scheduling: a background scan reads in the rotational latency of foreground requests
//! (Lumb, Schindler, Ganger, Nagle & Riedel, *Towards Higher Disk Head Utilization*, OSDI 2000,
//! section 3).
//!
//! Before the arm leaves for a request, the drive knows when the first sector of the request will
//! be under the head. The time until then, less the seek, is free. In the free time the arm reads
//! sectors that the scan has not read yet. The arm may read on the current track before the arm
//! leaves, on one track on the way, and on the target track before the first sector passes. The
//! scan takes the route on which the arm reads most. The request ends at the same time as without
//! the scan, because the scan skips sectors that do not fit.
//!
//! The scan reads each sector once and keeps no data: the scan stands for a check of the medium, or
//! for a consumer that takes the data at once. The scan costs no bus time, and no energy beyond the
//! energy of the latency.

use crate::config::{FreeblockConfig, milliseconds};
use crate::geometry::{Geometry, Position};
use crate::mechanics::{HeadPosition, Mechanics};
use fullstroke_contract::{ConfigError, Extent, LayerReadings, SectorSet, TrackExtent, TrackTable};
use fullstroke_units::{Angle, Cylinder, Duration, Lbn, Sectors, Time};

#[cfg(test)]
pub(crate) mod tests;

/// Largest number of places to try for each request.
const MOST_ON_THE_WAY: u32 = 1024;

/// The scan of one arm.
#[derive(Clone, Debug)]
pub(crate) struct Freeblock {
    margin: Duration,
    on_the_way: u32,
    /// Sectors read so far.
    covered: SectorSet,
    /// Time when the scan read the last sector.
    ended: Option<Time>,
    /// Rate of a sequential read of the whole medium, in bytes a second.
    potential: f64,
    /// Extents read on the best route so far, and on the route under trial.
    best: Vec<Extent>,
    trial: Vec<Extent>,
}

/// Begin and end of the arm's route to a request.
#[derive(Clone, Copy, Debug)]
struct ArmRoute<'a> {
    mechanics: &'a Mechanics,
    head: HeadPosition,
    leaves: Time,
    target: TrackExtent,
    write: bool,
    /// Time when the first sector of the request is under the head.
    due: Time,
}

impl Freeblock {
    /// Creates a scan with no sectors read.
    ///
    /// # Errors
    /// Fails if the margin is no valid time or a revolution or longer, because then no latency is
    /// left. Fails if `on_the_way` is above 1024.
    pub(crate) fn new(
        config: &FreeblockConfig,
        mechanics: &Mechanics,
    ) -> Result<Freeblock, ConfigError> {
        let margin = milliseconds("margin_ms", config.margin_ms)?;
        let revolution = mechanics.spindle().revolution();
        if margin >= revolution {
            let message = format!(
                "found {}; expected less than a revolution, {} ms, the longest rotational latency",
                config.margin_ms,
                revolution.as_millis_f64()
            );
            return Err(ConfigError::new("margin_ms", message));
        }
        if config.on_the_way > MOST_ON_THE_WAY {
            let message = format!(
                "found {}; expected {MOST_ON_THE_WAY} at most",
                config.on_the_way
            );
            return Err(ConfigError::new("on_the_way", message));
        }
        Ok(Freeblock {
            margin,
            on_the_way: config.on_the_way,
            covered: SectorSet::default(),
            ended: None,
            potential: potential(mechanics.geometry()),
            best: Vec::new(),
            trial: Vec::new(),
        })
    }

    /// Reads sectors while the arm waits for a request. The head `head` leaves at `leaves`. The
    /// request begins at `position` and covers `span` of the track.
    pub(crate) fn serve(
        &mut self,
        mechanics: &Mechanics,
        head: HeadPosition,
        leaves: Time,
        position: &Position,
        span: Angle,
        write: bool,
    ) {
        if self.ended.is_some() {
            return;
        }
        let landing = leaves + mechanics.seek(head, position.cylinder, position.surface, write);
        let Some(due) = mechanics.due(head, landing, position.angle, span, write) else {
            return;
        };
        let Some(target) = mechanics
            .geometry()
            .track_on(position.cylinder, position.surface)
        else {
            return;
        };
        let way = ArmRoute {
            mechanics,
            head,
            leaves,
            target,
            write,
            due,
        };
        self.choose(&way);
        for extent in &self.best {
            self.covered.add(*extent);
        }
        if self.covered.sectors() == mechanics.geometry().capacity() {
            self.ended = Some(due);
        }
    }

    /// Leaves in `best` the extents of the route on which the arm reads most.
    fn choose(&mut self, way: &ArmRoute<'_>) {
        self.best.clear();
        let geometry = way.mechanics.geometry();
        let here = geometry.track_on(way.head.cylinder, way.head.surface);
        let mut most = self.try_stop(way, None, 0);
        most = self.try_stop(way, here, most);
        let (low, high) = order(way.head.cylinder.0, way.target.cylinder.0);
        for place in 0..self.on_the_way {
            let cylinder = low
                + (u64::from(high - low) * u64::from(place) / u64::from(self.on_the_way)) as u32;
            let stop = self.unread_behind(geometry, cylinder, high);
            most = self.try_stop(way, stop, most);
        }
    }

    /// Returns the first track with unread sectors from the beginning of `cylinder` on. `None` if
    /// that track lies behind cylinder `last`.
    fn unread_behind(&self, geometry: &Geometry, cylinder: u32, last: u32) -> Option<TrackExtent> {
        let first = (0..geometry.surfaces())
            .find_map(|surface| geometry.track_on(Cylinder(cylinder), surface))?;
        let lbn = self.covered.first_missing(first.first.0);
        let track = (lbn < geometry.capacity().0).then(|| geometry.track_at(Lbn(lbn)))?;
        (cylinder..=last)
            .contains(&track.cylinder.0)
            .then_some(track)
    }

    /// Tries the route over `stop`. If the route reads more than `most` sectors, the route becomes
    /// the best. Returns the number of sectors on the best route.
    fn try_stop(&mut self, way: &ArmRoute<'_>, stop: Option<TrackExtent>, most: u64) -> u64 {
        self.trial.clear();
        let ArmRoute {
            mechanics,
            target,
            write,
            due,
            ..
        } = *way;
        let (mut head, mut clock) = (way.head, way.leaves);
        if let Some(track) = stop {
            let landing = clock + mechanics.seek(head, track.cylinder, track.surface, false);
            head = HeadPosition {
                cylinder: track.cylinder,
                surface: track.surface,
                wrote: false,
                ..head
            };
            let back = mechanics.seek(head, target.cylinder, target.surface, write) + self.margin;
            let leaves = Time::from_nanos(due.as_nanos().saturating_sub(back.as_nanos()));
            let Some(end) = passing(
                &self.covered,
                mechanics,
                head,
                track,
                landing,
                leaves,
                &mut self.trial,
            ) else {
                return most;
            };
            clock = end;
        }
        let seek = |write| mechanics.seek(head, target.cylinder, target.surface, write);
        // Reading on the target track needs the seek of a read. That seek is longer than a write's
        // if `write_settle_ms` is negative.
        let landing = clock + seek(write).max(seek(false));
        // A route that stops on the target track has read that track already.
        let again = stop.is_some_and(|stop| stop.first == target.first);
        if !again {
            passing(
                &self.covered,
                mechanics,
                head,
                target,
                landing,
                due,
                &mut self.trial,
            );
        }
        let read = self.trial.iter().map(|extent| extent.sectors.0).sum();
        if read <= most {
            return most;
        }
        std::mem::swap(&mut self.best, &mut self.trial);
        read
    }

    /// Returns the counters of the scan until `now`.
    pub(crate) fn readings(&self, now: Time, capacity: Sectors) -> LayerReadings {
        let read = self.covered.sectors();
        let scan = self.ended.unwrap_or(now).since(Time::ZERO).as_secs_f64();
        let rate = if scan > 0.0 {
            read.bytes().0 as f64 / scan
        } else {
            0.0
        };
        LayerReadings::new(
            "free blocks",
            &[
                ("freeblock_read_mb", read.bytes().0 as f64 / 1e6),
                ("freeblock_mb_per_s", rate / 1e6),
                ("freeblock_potential_share", rate / self.potential),
                ("freeblock_scanned_share", read.0 as f64 / capacity.0 as f64),
                ("freeblock_scan_s", scan),
            ],
        )
    }
}

fn order(one: u32, other: u32) -> (u32, u32) {
    (one.min(other), one.max(other))
}

/// Returns the rate of a sequential read of the whole medium, in bytes a second.
fn potential(geometry: &Geometry) -> f64 {
    let bytes_per_s = |sectors_per_revolution: f64| {
        sectors_per_revolution * 512.0 * geometry.spindle().rpm() / 60.0
    };
    let bytes = geometry.capacity().bytes().0 as f64;
    bytes
        / geometry
            .zones()
            .map(|zone| zone.sectors.bytes().0 as f64 / bytes_per_s(zone.sectors_per_revolution))
            .sum::<f64>()
}

/// Adds the unread sectors of `track` that pass completely between `from` and `until`. Returns when
/// the last of these sectors has passed, or `None` if none passes.
fn passing(
    covered: &SectorSet,
    mechanics: &Mechanics,
    head: HeadPosition,
    track: TrackExtent,
    from: Time,
    until: Time,
    into: &mut Vec<Extent>,
) -> Option<Time> {
    let (geometry, spindle) = (mechanics.geometry(), mechanics.spindle());
    // A window of a whole revolution would wrap to angle 0.
    let turns = until
        .saturating_since(from)
        .min(spindle.revolution().saturating_sub(Duration::from_nanos(1)));
    if turns == Duration::ZERO {
        return None;
    }
    let window = u128::from((spindle.angle_at(from + turns) - spindle.angle_at(from)).0);
    let mut last = None;
    let (mut lbn, end) = (track.first, track.first + track.sectors);
    while lbn < end {
        let position = geometry.locate(lbn);
        let sectors = position.sectors_left.0.min(end.since(lbn).0);
        if (position.cylinder, position.surface) == (track.cylinder, track.surface) {
            let begin = u128::from((spindle.angle_at(from) + head.phase - position.angle).0);
            let sector = u128::from(position.sector_angle.0);
            let begins = |index: u64| {
                u128::from(geometry.passed(&position, Sectors(index + 1)) - 1) * sector
            };
            // If the head lands in the middle of the track, the beginning of the track passes in
            // the second round. One revolution is 2^64 in units of [`Angle`].
            for round in [0, 1u128 << 64] {
                let first = first_index(sectors, |index| round + begins(index) >= begin);
                let behind = first_index(sectors, |index| {
                    round + begins(index) + sector > begin + window
                });
                covered.missing(lbn.0 + first, lbn.0 + behind.max(first), |start, end| {
                    into.push(Extent::new(start, end - start));
                    let ends = round + begins(end - 1 - lbn.0) + sector - begin;
                    last = last.max(Some(ends));
                });
            }
        }
        lbn += Sectors(sectors);
    }
    // The whole turn is shorter than one revolution, so an angle can hold the turn.
    last.map(|turned| (from + spindle.time_to_turn(Angle(turned as u64))).min(until))
}

/// Returns the first of `count` indices from which on `holds` is true; `count` if there is none.
fn first_index(count: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle
        } else {
            low = middle + 1
        }
    }
    low
}
