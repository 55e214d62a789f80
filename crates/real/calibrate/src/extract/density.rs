//! The map of zones, from a few reads in each of some thousand places.
//!
//! The angle from one sector to the next gives the length of a track. Two sectors of the track are
//! enough for this angle. The two sectors are close together at first, so that the number of
//! revolutions between them is certain. Later the sectors are a quarter of a track apart. Each
//! place is read from above, because a buffer reads ahead upward.
//!
//! This needs angles that are exact to a quarter of a sector. Where reads are noticed less exactly,
//! zones follow from all tracks.

use crate::extract::ExtractError;
use crate::extract::angles::{Angles, Rotation, is_on_line, nearest};
use crate::extract::machine::ExtractionAlgorithm;
use crate::extract::timing::{ExtractionPace, OFF_LINE, tracks};
use crate::extract::zones::{Bracket, ExaminedTrack, FoundZone, PLACES, Sketch, sketch};
use fullstroke_tracks::TRACK_SECTORS_MAX;
use fullstroke_units::Seed;

/// Least length of a cell, in sectors. One track of each cell is examined.
const CELL_MIN: u64 = 2048;

/// Distance in sectors between the first two reads. `GROWTH` is the factor by which the distance
/// grows.
const NEAR: u64 = 4;
const GROWTH: u64 = 8;

/// Distance between the last two reads, as a fraction of a track.
const FAR: f64 = 0.25;

/// Shortest length of a track, in sectors.
const TRACK_SECTORS_MIN: f64 = 12.0;

/// Distance in sectors behind a sector that was read, within which the buffer may hold data.
const BUFFERED: u64 = 1 << 16;

/// Number of addresses tried in a cell. Where a track ends between the reads, the sectors form no
/// line.
const TRIES: u32 = 8;

/// Measured zones of a disk.
#[derive(Clone, Debug)]
pub struct ZoneMap {
    /// Zones, in the order of addresses.
    pub zones: Vec<FoundZone>,
    /// Measured rotation.
    pub rotation: Rotation,
    /// Number of examined places; 0 if all tracks were examined.
    pub places: u64,
}

/// Finds the zones of a device.
///
/// # Errors
/// If timing gives no result.
pub async fn zones(probe: ExtractionAlgorithm, seed: Seed) -> Result<ZoneMap, ExtractError> {
    let mut angles = Angles::measure(probe, seed).await?;
    let rotation = angles.rotation();
    if !rotation.is_quiet() {
        let (timed, _) = tracks(angles, ExtractionPace::Jumping).await?;
        return Ok(ZoneMap {
            zones: timed.zones(),
            rotation,
            places: 0,
        });
    }
    let capacity = angles.probe().capacity().0;
    let count = (capacity / CELL_MIN).clamp(1, PLACES);
    let edge = |index: u64| (u128::from(capacity) * u128::from(index) / u128::from(count)) as u64;
    let cells: Vec<ExaminedRange> = (0..count)
        .map(|index| ExaminedRange {
            first: edge(index),
            end: edge(index + 1),
        })
        .collect();
    let places = survey(&mut angles, &cells).await?;
    let mut sketches = sketch(&places);
    halve(&mut angles, &mut sketches).await?;
    begin(&mut angles, &mut sketches).await?;
    let zones = sketches.into_iter().map(Sketch::zone).collect();
    Ok(ZoneMap {
        zones,
        rotation,
        places: places.len() as u64,
    })
}

/// Returns the track length in each of `cells` where it can be measured.
///
/// Only a buffer of whole tracks holds the sectors below a sector that was read. With such a
/// buffer, reads in several cells take turns. The number of cells is just enough to push old data
/// out. More cells would take too long, because the revolution is known with limited accuracy.
async fn survey(
    angles: &mut Angles,
    cells: &[ExaminedRange],
) -> Result<Vec<ExaminedTrack>, ExtractError> {
    let Rotation {
        whole_tracks,
        evictions,
        ..
    } = angles.rotation();
    let turns = if whole_tracks {
        2 * evictions as usize
    } else {
        1
    };
    let of = cells.len() as u64;
    let mut places = Vec::with_capacity(cells.len());
    for (number, cells) in cells.chunks(turns.max(1)).enumerate() {
        angles
            .probe()
            .progress("zones", (number * turns) as u64, of);
        places.extend(look_at(angles, cells, TRIES).await?.into_iter().flatten());
    }
    Ok(places)
}

/// A range of addresses of which one track is examined.
#[derive(Clone, Copy, Debug)]
struct ExaminedRange {
    first: u64,
    end: u64,
}

/// Halves the range of each zone's first address until less than a track is left.
async fn halve(angles: &mut Angles, sketches: &mut [Sketch]) -> Result<(), ExtractError> {
    loop {
        let mut open: Vec<&mut Bracket> = Vec::new();
        let mut cells: Vec<ExaminedRange> = Vec::new();
        for sketch in sketches.iter_mut() {
            let track = sketch.shortest();
            if let Some(at) = sketch.begins.look(track) {
                open.push(&mut sketch.begins);
                cells.push(ExaminedRange {
                    first: at,
                    end: at + 1,
                });
            }
        }
        if open.is_empty() {
            return Ok(());
        }
        // Within such a short distance, the buffer could answer a read.
        if open.iter().any(|bracket| bracket.gap() < BUFFERED) {
            angles.forget().await?;
        }
        let seen = look_at(angles, &cells, 1).await?;
        assert_eq!(seen.len(), open.len(), "each gap is looked into once");
        open.into_iter()
            .zip(seen)
            .for_each(|(bracket, seen)| bracket.add_look(seen));
    }
}

/// Finds the one boundary left in each gap. The search goes down from above: first in steps of the
/// square root of the gap, then sector by sector through the last step.
async fn begin(angles: &mut Angles, sketches: &mut [Sketch]) -> Result<(), ExtractError> {
    for fine in [false, true] {
        angles.forget().await?;
        for sketch in sketches.iter_mut() {
            let (track, bracket) = (sketch.shortest(), &mut sketch.begins);
            if (1..track).contains(&bracket.gap()) {
                let step = if fine { 1 } else { bracket.gap().isqrt() };
                descend(angles, bracket, step).await?;
            }
        }
    }
    Ok(())
}

/// Follows the line of a zone's first track down to its end.
async fn descend(
    angles: &mut Angles,
    bracket: &mut Bracket,
    step: u64,
) -> Result<(), ExtractError> {
    let width = 1.0 / bracket.high.sectors as f64;
    let rough = angles.rough();
    let top = bracket.high.first;
    let angle = angles.of(top).await?;
    while bracket.gap() > 0 {
        let lbn = bracket.high.first.saturating_sub(step).max(bracket.low.end);
        let off = nearest(angle - angles.of(lbn).await? - (top - lbn) as f64 * width);
        if off.abs() >= OFF_LINE || !is_on_line(off, width, rough) {
            bracket.low.end = lbn + 1;
            return Ok(());
        }
        bracket.high.first = lbn;
    }
    Ok(())
}

/// The line of a track, from a sector downward.
#[derive(Clone, Copy, Debug)]
struct TrackLine {
    /// Highest sector of the line.
    top: u64,
    /// Angle of the highest sector.
    angle: Option<f64>,
    /// Angle of one sector in revolutions. `known` is the number of sectors over which the angle
    /// was measured.
    width: f64,
    known: u64,
    tries: u32,
    found: bool,
}

impl TrackLine {
    fn at(top: u64) -> TrackLine {
        TrackLine {
            top,
            angle: None,
            width: 0.0,
            known: 0,
            tries: 1,
            found: false,
        }
    }

    /// Returns the distance of the next read below the top; `None` if there is no such sector.
    fn next(&self) -> Option<u64> {
        let distance = match (self.angle, self.known) {
            (None, _) => 0,
            (_, 0) => NEAR,
            // The distance grows step by step, because the error of the width must stay below a
            // third of a sector at the next distance.
            (_, known) => (known * GROWTH).min(self.far()),
        };
        (distance <= self.top).then_some(distance)
    }

    /// Returns the distance in sectors between the first and the last read.
    fn far(&self) -> u64 {
        ((FAR / self.width) as u64).max(2 * NEAR)
    }

    /// Adds the angle of the sector `distance` below the top. Returns true if the sector lies on
    /// the line.
    fn tell(&mut self, distance: u64, angle: f64, rough: f64) -> bool {
        let Some(top) = self.angle else {
            self.angle = Some(angle);
            return true;
        };
        match distance.checked_div(self.known) {
            None => {
                self.width = (top - angle).rem_euclid(1.0) / distance as f64;
                if !(TRACK_SECTORS_MIN..TRACK_SECTORS_MAX as f64).contains(&(1.0 / self.width)) {
                    return false;
                }
            }
            Some(times) => {
                let off = nearest(top - angle - distance as f64 * self.width);
                if off.abs() >= (self.width / 3.0).max(rough * times as f64) {
                    return false;
                }
                self.width += off / distance as f64;
            }
        }
        self.known = distance;
        self.found = distance >= self.far();
        true
    }

    fn place(&self) -> Option<ExaminedTrack> {
        let sectors = (1.0 / self.width).round() as u64;
        self.found.then_some(ExaminedTrack {
            first: self.top - self.known,
            end: self.top + 1,
            sectors,
        })
    }
}

/// Returns the track length in each of `cells`; `None` where no line was found.
async fn look_at(
    angles: &mut Angles,
    cells: &[ExaminedRange],
    tries: u32,
) -> Result<Vec<Option<ExaminedTrack>>, ExtractError> {
    let drawn = |angles: &mut Angles, cell: &ExaminedRange| {
        TrackLine::at(cell.first + angles.random().below((cell.end - cell.first).max(1)))
    };
    let mut lines: Vec<TrackLine> = cells.iter().map(|cell| drawn(angles, cell)).collect();
    let rough = angles.rough();
    let mut open: Vec<usize> = (0..cells.len()).collect();
    while !open.is_empty() {
        let mut left = Vec::with_capacity(open.len());
        for index in open {
            let line = &mut lines[index];
            let on = match line.next() {
                Some(distance) => {
                    let angle = angles.of(line.top - distance).await?;
                    line.tell(distance, angle, rough)
                }
                None => false,
            };
            let again = !on && line.tries < tries;
            if again {
                *line = TrackLine {
                    tries: line.tries + 1,
                    ..drawn(angles, &cells[index])
                };
            }
            if again || on && !line.found {
                left.push(index);
            }
        }
        open = left;
    }
    Ok(lines.iter().map(TrackLine::place).collect())
}
