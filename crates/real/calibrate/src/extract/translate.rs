//! Tracks by address translation (Qian & Wang, section 4.1).
//!
//! The search goes from address 0 sector by sector to the first change of cylinder or surface. This
//! gives the size S of the first track. Let T be the last boundary. Then T+S and T+S-1 are
//! translated. If the two lie on different tracks, T+S is a boundary. If not, the size has changed,
//! and the track is gone through sector by sector.
//!
//! Two neighbours on different tracks do not prove that T+S-1 is still on the track of T. If a
//! track is shorter by exactly the length of the next track, the test of the text is fooled. So
//! T+S-1 is compared with the track of T, which needs no further translation.
//!
//! On drives whose surfaces take turns by bands, lengths change every few dozen tracks. Then the
//! search by sector is nearly all of the work: 174 of 200 million translations on a drive of 24 TB.
//! So where the size has changed, earlier lengths are tried first ([`EndSearch::Halves`]). If none
//! fits, the end is found by halving, because a track is one stretch of addresses.
//! [`EndSearch::Sectors`] is the document's way.

use crate::extract::ExtractError;
use crate::extract::machine::{ExtractionAlgorithm, PhysicalPlace};
use fullstroke_tracks::{Boundaries, Builder};
use fullstroke_units::Sectors;
use std::collections::VecDeque;

/// Result of address translation.
#[derive(Clone, Debug)]
pub struct Translated {
    /// The tracks.
    pub table: Boundaries,
    /// Number of tracks searched by halves or sector by sector.
    pub irregular: u64,
    /// Number of sectors of the searched tracks.
    pub irregular_sectors: u64,
    /// Cylinder and surface of the first tracks, in the order of addresses.
    pub first_places: Vec<(u32, u32)>,
}

/// Method to find the end of a track whose length differs from the track before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EndSearch {
    /// Tries earlier lengths, the latest first, and then halves.
    #[default]
    Halves,
    /// Goes sector by sector, as in the document.
    Sectors,
}

/// Number of first tracks whose places are kept.
const PLACES: usize = 256;

/// Number of lengths to try: two for each surface of a band, and some more.
const LENGTHS: usize = 16;

/// Finds all tracks by translation, quickly.
///
/// # Errors
/// If the device does not translate.
pub async fn translate(probe: ExtractionAlgorithm) -> Result<Translated, ExtractError> {
    translate_by(probe, EndSearch::Halves).await
}

/// Finds all tracks by translation.
///
/// # Errors
/// If the device does not translate.
pub async fn translate_by(
    probe: ExtractionAlgorithm,
    search: EndSearch,
) -> Result<Translated, ExtractError> {
    let capacity = probe.capacity().0;
    let mut found = FoundTracks {
        builder: Builder::default(),
        first_places: Vec::new(),
    };
    let (mut irregular, mut irregular_sectors) = (0, 0);
    let mut start = 0;
    let mut size = 0;
    let mut here = probe.translate(0).await?;
    let mut lengths = EarlierLengths::default();
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
            // The prediction holds: the boundary is real, and the last sector is on this track.
            let next = probe.translate(predicted).await?;
            if !same_track(next, here) && same_track(probe.translate(predicted - 1).await?, here) {
                found.track(size, here)?;
                (start, here) = (predicted, next);
                continue;
            }
        }
        let (end, next) = match search {
            EndSearch::Sectors => by_sector(&probe, start, here).await?,
            EndSearch::Halves => by_halves(&probe, start, here, &lengths).await?,
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

struct FoundTracks {
    builder: Builder,
    first_places: Vec<(u32, u32)>,
}

impl FoundTracks {
    fn track(&mut self, sectors: u64, place: PhysicalPlace) -> Result<(), ExtractError> {
        self.builder.push(Sectors(sectors))?;
        if self.first_places.len() < PLACES {
            self.first_places.push((place.cylinder.0, place.surface));
        }
        Ok(())
    }
}

/// Returns the end of the track of `start`, and the place of the address behind.
async fn by_sector(
    probe: &ExtractionAlgorithm,
    start: u64,
    here: PhysicalPlace,
) -> Result<(u64, PhysicalPlace), ExtractError> {
    for lbn in start + 1..probe.capacity().0 {
        let place = probe.translate(lbn).await?;
        if !same_track(place, here) {
            return Ok((lbn, place));
        }
    }
    Ok((probe.capacity().0, here))
}

/// Earlier lengths of tracks, the latest first.
#[derive(Debug, Default)]
struct EarlierLengths(VecDeque<u64>);

impl EarlierLengths {
    fn saw(&mut self, sectors: u64) {
        self.0.retain(|&seen| seen != sectors);
        self.0.push_front(sectors);
        self.0.truncate(LENGTHS);
    }
}

/// Returns the same as [`by_sector`], if a track is one stretch of addresses.
async fn by_halves(
    probe: &ExtractionAlgorithm,
    start: u64,
    here: PhysicalPlace,
    lengths: &EarlierLengths,
) -> Result<(u64, PhysicalPlace), ExtractError> {
    let capacity = probe.capacity().0;
    // The last address known to be on the track, and the first known to be off the track.
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

fn same_track(one: PhysicalPlace, other: PhysicalPlace) -> bool {
    (one.cylinder, one.surface) == (other.cylinder, other.surface)
}
