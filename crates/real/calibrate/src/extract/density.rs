//! The map of zones, from a few reads in each of some thousand places.
//!
//! How long a track is shows in how far the angle goes on from a sector to the next,
//! and that in two sectors of it: near each other at first, so that it is told by
//! how many revolutions they differ, then a quarter of a track apart. Each place is read
//! from above, for a buffer has read ahead upward.
//!
//! A sector's angle must be exact to a quarter of a sector for that. Where reads are
//! noticed less exactly, zones are told by all tracks.

use crate::extract::ExtractError;
use crate::extract::angles::{Angles, Rotation, is_on_line, nearest};
use crate::extract::machine::Probe;
use crate::extract::timing::{OFF_LINE, Pace, tracks};
use crate::extract::zones::{Bracket, FoundZone, PLACES, Place, Sketch, sketch};
use fullstroke_tracks::TRACK_SECTORS_MAX;
use fullstroke_units::Seed;

/// Sectors of a cell, one of whose tracks is looked at, at least.
const CELL_MIN: u64 = 2048;

/// Sectors between the first two that are read, and by how many times the distance grows.
const NEAR: u64 = 4;
const GROWTH: u64 = 8;

/// Of a track, how far apart the last two are.
const FAR: f64 = 0.25;

/// Sectors of a track at least.
const TRACK_SECTORS_MIN: f64 = 12.0;

/// What lies so near behind a sector that was read may be in the buffer.
const BUFFERED: u64 = 1 << 16;

/// Addresses of a cell that are tried: where a track ends between the reads, they are on
/// no line.
const TRIES: u32 = 8;

/// What is known of a disk's zones.
#[derive(Clone, Debug)]
pub struct ZoneMap {
    /// The zones, in the order of addresses.
    pub zones: Vec<FoundZone>,
    /// The revolution.
    pub rotation: Rotation,
    /// Places that were looked at; 0 where all tracks were.
    pub places: u64,
}

/// Finds the zones of a device.
///
/// # Errors
/// If timing does not tell.
pub async fn zones(probe: Probe, seed: Seed) -> Result<ZoneMap, ExtractError> {
    let mut angles = Angles::measure(probe, seed).await?;
    let rotation = angles.rotation();
    if !rotation.is_quiet() {
        let (timed, _) = tracks(angles, Pace::Jumping).await?;
        return Ok(ZoneMap {
            zones: timed.zones(),
            rotation,
            places: 0,
        });
    }
    let capacity = angles.probe().capacity().0;
    let count = (capacity / CELL_MIN).clamp(1, PLACES);
    let edge = |index: u64| (u128::from(capacity) * u128::from(index) / u128::from(count)) as u64;
    let cells: Vec<Cell> = (0..count)
        .map(|index| Cell {
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

/// How long a track is in each of `cells` where that can be told. Only a buffer of
/// whole tracks has what lies below a sector that was read: there so many take turns
/// as drive it out, and no more: a revolution is known to a part only.
async fn survey(angles: &mut Angles, cells: &[Cell]) -> Result<Vec<Place>, ExtractError> {
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

/// Addresses, one of whose tracks is looked at.
#[derive(Clone, Copy, Debug)]
struct Cell {
    first: u64,
    end: u64,
}

/// Finds beginnings until less than a track is left.
async fn halve(angles: &mut Angles, sketches: &mut [Sketch]) -> Result<(), ExtractError> {
    loop {
        let mut open: Vec<&mut Bracket> = Vec::new();
        let mut cells: Vec<Cell> = Vec::new();
        for sketch in sketches.iter_mut() {
            let track = sketch.shortest();
            if let Some(at) = sketch.begins.look(track) {
                open.push(&mut sketch.begins);
                cells.push(Cell {
                    first: at,
                    end: at + 1,
                });
            }
        }
        if open.is_empty() {
            return Ok(());
        }
        if open.iter().any(|bracket| bracket.gap() < BUFFERED) {
            angles.forget().await?;
        }
        let seen = look_at(angles, &cells, 1).await?;
        assert_eq!(seen.len(), open.len(), "each gap is looked into once");
        open.into_iter()
            .zip(seen)
            .for_each(|(bracket, seen)| bracket.tell(seen));
    }
}

/// Finds the one boundary that is left in each gap: down from above in as many steps as
/// each then has sectors, and through these.
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

/// Follows the line of a zone's first track down to where it ends.
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
struct Line {
    /// The sector.
    top: u64,
    /// Its angle.
    angle: Option<f64>,
    /// The angle of a sector, and over how many that is known.
    width: f64,
    known: u64,
    tries: u32,
    found: bool,
}

impl Line {
    fn at(top: u64) -> Line {
        Line {
            top,
            angle: None,
            width: 0.0,
            known: 0,
            tries: 1,
            found: false,
        }
    }

    /// How far below the top is read next; nothing where there is no such sector.
    fn next(&self) -> Option<u64> {
        let distance = match (self.angle, self.known) {
            (None, _) => 0,
            (_, 0) => NEAR,
            (_, known) => (known * GROWTH).min(self.far()),
        };
        (distance <= self.top).then_some(distance)
    }

    /// Sectors between the first and the last that are read.
    fn far(&self) -> u64 {
        ((FAR / self.width) as u64).max(2 * NEAR)
    }

    /// The sector `distance` below the top is at `angle`: whether that is on a line.
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

    fn place(&self) -> Option<Place> {
        let sectors = (1.0 / self.width).round() as u64;
        self.found.then_some(Place {
            first: self.top - self.known,
            end: self.top + 1,
            sectors,
        })
    }
}

/// How long a track is in each of `cells`; nothing where no line was met.
async fn look_at(
    angles: &mut Angles,
    cells: &[Cell],
    tries: u32,
) -> Result<Vec<Option<Place>>, ExtractError> {
    let drawn = |angles: &mut Angles, cell: &Cell| {
        Line::at(cell.first + angles.random().below((cell.end - cell.first).max(1)))
    };
    let mut lines: Vec<Line> = cells.iter().map(|cell| drawn(angles, cell)).collect();
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
                *line = Line {
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
    Ok(lines.iter().map(Line::place).collect())
}
