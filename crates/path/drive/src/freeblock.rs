//! Free-block scheduling: a background scan reads in the rotational latency of the
//! foreground (Lumb, Schindler, Ganger, Nagle & Riedel, *Towards Higher Disk Head
//! Utilization*, OSDI 2000, section 3).
//!
//! Before the arm leaves for a request it is known when that request's first sector will
//! be under the head. The time up to then, less the seek, is nobody's. In it the arm reads
//! what the scan has not read yet: on the track where it stands, before it leaves; on one
//! track on the way; and on the track of the request, until its turn comes. Of all these
//! ways the one is taken on which most is read. The request itself ends when it would have
//! ended otherwise: what does not fit is not read.
//!
//! The scan wants each sector once, and keeps nothing: it is a check of the medium, or what
//! goes to a consumer at once. What it reads costs no bus, and no energy beyond that of the
//! latency.

use crate::config::{FreeblockConfig, milliseconds};
use crate::geometry::{Geometry, Position};
use crate::mechanics::{Head, Mechanics};
use fullstroke_contract::{ConfigError, Extent, LayerReadings, SectorSet, Track, TrackTable};
use fullstroke_units::{Angle, Cylinder, Duration, Lbn, Sectors, Time};

#[cfg(test)]
pub(crate) mod tests;

/// Places that may be looked at for each request.
const MOST_ON_THE_WAY: u32 = 1024;

/// The scan of one arm.
#[derive(Clone, Debug)]
pub(crate) struct Freeblock {
    margin: Duration,
    on_the_way: u32,
    /// What was read.
    covered: SectorSet,
    /// The last sector was read then.
    ended: Option<Time>,
    /// What the medium delivers where it is read in order, in bytes a second.
    potential: f64,
    /// The best way so far, and the one that is tried.
    best: Vec<Extent>,
    trial: Vec<Extent>,
}

/// From where the arm leaves, when, and when it must be where.
#[derive(Clone, Copy, Debug)]
struct Way<'a> {
    mechanics: &'a Mechanics,
    head: Head,
    leaves: Time,
    target: Track,
    write: bool,
    /// The request's first sector is under the head.
    due: Time,
}

impl Freeblock {
    /// Nothing read yet.
    ///
    /// # Errors
    /// A margin that is no time, or too long for there to be any latency left; more places
    /// than can be looked at.
    pub(crate) fn new(
        config: &FreeblockConfig,
        mechanics: &Mechanics,
    ) -> Result<Freeblock, ConfigError> {
        let margin = milliseconds("margin_ms", config.margin_ms)?;
        let revolution = mechanics.spindle().revolution();
        if margin >= revolution {
            let message = format!(
                "found {}; expected less than a revolution, {} ms: no latency is longer",
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

    /// Reads what passes while `head`, which leaves at `leaves`, waits for a request at
    /// `position` that covers `span` of its track.
    pub(crate) fn serve(
        &mut self,
        mechanics: &Mechanics,
        head: Head,
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
        let way = Way {
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

    /// Leaves in `best` what is read on the way on which most is.
    fn choose(&mut self, way: &Way<'_>) {
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

    /// The first track behind the beginning of `cylinder` of which something is unread, if
    /// it lies before the end of `last`.
    fn unread_behind(&self, geometry: &Geometry, cylinder: u32, last: u32) -> Option<Track> {
        let first = (0..geometry.surfaces())
            .find_map(|surface| geometry.track_on(Cylinder(cylinder), surface))?;
        let lbn = self.covered.first_missing(first.first.0);
        let track = (lbn < geometry.capacity().0).then(|| geometry.track_at(Lbn(lbn)))?;
        (cylinder..=last)
            .contains(&track.cylinder.0)
            .then_some(track)
    }

    /// Tries the way over `stop`: if it reads more than `most`, it is the best. Answers how
    /// much is read on the best.
    fn try_stop(&mut self, way: &Way<'_>, stop: Option<Track>, most: u64) -> u64 {
        self.trial.clear();
        let Way {
            mechanics,
            target,
            write,
            due,
            ..
        } = *way;
        let (mut head, mut clock) = (way.head, way.leaves);
        if let Some(track) = stop {
            let landing = clock + mechanics.seek(head, track.cylinder, track.surface, false);
            head = Head {
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
        let landing = clock + seek(write).max(seek(false));
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

    /// What was read until `now`.
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

/// What the medium delivers where all of it is read in order, in bytes a second.
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

/// Adds the unread sectors of `track` that pass whole between `from` and `until`; answers
/// when the last of them has, if any does.
fn passing(
    covered: &SectorSet,
    mechanics: &Mechanics,
    head: Head,
    track: Track,
    from: Time,
    until: Time,
    into: &mut Vec<Extent>,
) -> Option<Time> {
    let (geometry, spindle) = (mechanics.geometry(), mechanics.spindle());
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
            // Where the head is within the track already, its beginning comes round again.
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
    // The whole turn is shorter than a revolution, which an angle holds.
    last.map(|turned| (from + spindle.time_to_turn(Angle(turned as u64))).min(until))
}

/// The first of `count` indices from which on `holds` does; `count` if none.
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
