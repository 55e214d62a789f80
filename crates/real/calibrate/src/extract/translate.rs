//! Tracks by address translation (Qian & Wang, section 4.1).
//!
//! From address 0 sector by sector to the first change of cylinder or surface:
//! the size S of the first track. Then, with T the last boundary, T+S and T+S-1
//! are translated: if the two lie on different tracks, T+S is a boundary; if not,
//! the size has changed, and the track is gone through sector by sector.
//!
//! That two neighbours lie on different tracks does not say that T+S-1 is still
//! on the track of T: where a track is shorter by as much as the next is long,
//! the text's test is fooled. T+S-1 is held against the track of T, which needs
//! no further translation.
//!
//! On drives whose surfaces take turns by bands, lengths change every few dozen tracks,
//! and sector by sector is nearly all of the work: 174 of 200 million translations on a
//! drive of 24 TB. So where the size has changed, lengths that were seen before are tried
//! ([`Search::Halves`]), and else the end is found by halves: a track is one stretch
//! of addresses. [`Search::Sectors`] is the document's way.

use crate::extract::ExtractError;
use crate::extract::machine::{Place, Probe};
use fullstroke_tracks::{Boundaries, Builder};
use fullstroke_units::Sectors;
use std::collections::VecDeque;

/// What translation found.
#[derive(Clone, Debug)]
pub struct Translated {
    /// The tracks.
    pub table: Boundaries,
    /// Tracks that were searched, or gone through sector by sector.
    pub irregular: u64,
    /// Their sectors.
    pub irregular_sectors: u64,
    /// Cylinder and surface of the first tracks, in the order of addresses.
    pub first_places: Vec<(u32, u32)>,
}

/// How the end of a track is found whose length is not that of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Search {
    /// Lengths that were seen before are tried, the latest first; else by halves.
    #[default]
    Halves,
    /// Sector by sector, as the document has it.
    Sectors,
}

/// Tracks of which the place is kept.
const PLACES: usize = 256;

/// Lengths that are tried: two for each surface of a band, and some.
const LENGTHS: usize = 16;

/// Finds all tracks by translation, quickly.
///
/// # Errors
/// If the device does not translate.
pub async fn translate(probe: Probe) -> Result<Translated, ExtractError> {
    translate_by(probe, Search::Halves).await
}

/// Finds all tracks by translation.
///
/// # Errors
/// If the device does not translate.
pub async fn translate_by(probe: Probe, search: Search) -> Result<Translated, ExtractError> {
    let capacity = probe.capacity().0;
    let mut found = Found {
        builder: Builder::default(),
        first_places: Vec::new(),
    };
    let (mut irregular, mut irregular_sectors) = (0, 0);
    let mut start = 0;
    let mut size = 0;
    let mut here = probe.translate(0).await?;
    let mut lengths = Lengths::default();
    while start < capacity {
        probe.progress("tracks", start, capacity);
        let predicted = start + size;
        if size > 0
            && predicted == capacity
            && same_track(probe.translate(predicted - 1).await?, here)
        {
            found.track(size, here)?;
            break;
        }
        if size > 0 && predicted < capacity {
            // A boundary where the table says; the last sector is on this track.
            let next = probe.translate(predicted).await?;
            if !same_track(next, here) && same_track(probe.translate(predicted - 1).await?, here) {
                found.track(size, here)?;
                (start, here) = (predicted, next);
                continue;
            }
        }
        let (end, next) = match search {
            Search::Sectors => by_sector(&probe, start, here).await?,
            Search::Halves => by_halves(&probe, start, here, &lengths).await?,
        };
        lengths.saw(end - start);
        irregular += 1;
        irregular_sectors += end - start;
        size = end - start;
        found.track(size, here)?;
        (start, here) = (end, next);
    }
    Ok(Translated {
        table: found.builder.finish("address translation")?,
        irregular,
        irregular_sectors,
        first_places: found.first_places,
    })
}

struct Found {
    builder: Builder,
    first_places: Vec<(u32, u32)>,
}

impl Found {
    fn track(&mut self, sectors: u64, place: Place) -> Result<(), ExtractError> {
        self.builder.push(Sectors(sectors))?;
        if self.first_places.len() < PLACES {
            self.first_places.push((place.cylinder.0, place.surface));
        }
        Ok(())
    }
}

/// Where the track of `start` ends, and where the address behind it lies.
async fn by_sector(probe: &Probe, start: u64, here: Place) -> Result<(u64, Place), ExtractError> {
    for lbn in start + 1..probe.capacity().0 {
        let place = probe.translate(lbn).await?;
        if !same_track(place, here) {
            return Ok((lbn, place));
        }
    }
    Ok((probe.capacity().0, here))
}

/// Lengths of tracks that were seen, the latest first.
#[derive(Debug, Default)]
struct Lengths(VecDeque<u64>);

impl Lengths {
    fn saw(&mut self, sectors: u64) {
        self.0.retain(|&seen| seen != sectors);
        self.0.push_front(sectors);
        self.0.truncate(LENGTHS);
    }
}

/// The same as [`by_sector`], if a track is one stretch of addresses.
async fn by_halves(
    probe: &Probe,
    start: u64,
    here: Place,
    lengths: &Lengths,
) -> Result<(u64, Place), ExtractError> {
    let capacity = probe.capacity().0;
    // The last address that is known to be on the track, the first known not to be.
    let (mut low, mut high) = (start, capacity);
    let mut next = here;
    for &sectors in &lengths.0 {
        let end = start + sectors;
        if end > low && end < high {
            let place = probe.translate(end).await?;
            if same_track(place, here) {
                low = end
            } else {
                (high, next) = (end, place)
            }
        }
        if end - 1 > low && end - 1 < high {
            let place = probe.translate(end - 1).await?;
            if same_track(place, here) {
                low = end - 1
            } else {
                (high, next) = (end - 1, place)
            }
        }
        if high - low == 1 {
            return Ok((high, next));
        }
    }
    let mut step = 64;
    while high == capacity && low + step < capacity {
        let place = probe.translate(low + step).await?;
        if same_track(place, here) {
            low += step
        } else {
            (high, next) = (low + step, place)
        }
        step *= 2;
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        let place = probe.translate(middle).await?;
        if same_track(place, here) {
            low = middle
        } else {
            (high, next) = (middle, place)
        }
    }
    Ok((high, next))
}

fn same_track(one: Place, other: Place) -> bool {
    (one.cylinder, one.surface) == (other.cylinder, other.surface)
}
